//! Feeds bytes to the checks of the same name.
#![no_main]

#[path = "../checks/face/mod.rs"]
mod face;
#[allow(dead_code)]
#[path = "../../crates/broker/tests/it/stage.rs"]
mod stage;

libfuzzer_sys::fuzz_target!(|data: &[u8]| face::check(data));
