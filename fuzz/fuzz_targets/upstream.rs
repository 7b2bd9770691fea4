//! Feeds bytes to the checks of the same name.
#![no_main]

#[path = "../checks/upstream/mod.rs"]
mod upstream;

libfuzzer_sys::fuzz_target!(|data: &[u8]| upstream::check(data));
