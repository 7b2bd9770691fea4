//! Feeds bytes to the checks of the same name.
#![no_main]

#[path = "../checks/layout_rendering/mod.rs"]
mod layout_rendering;

libfuzzer_sys::fuzz_target!(|data: &[u8]| layout_rendering::check(data));
