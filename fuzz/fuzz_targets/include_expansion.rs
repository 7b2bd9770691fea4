//! Feeds bytes to the checks of the same name.
#![no_main]

#[path = "../checks/include_expansion.rs"]
mod include_expansion;

libfuzzer_sys::fuzz_target!(|data: &[u8]| include_expansion::check(data));
