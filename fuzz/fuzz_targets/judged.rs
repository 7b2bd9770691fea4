//! Feeds bytes to the checks of the same name.
#![no_main]

#[path = "../checks/judged/mod.rs"]
mod judged;
#[allow(dead_code)]
#[path = "../../crates/broker/tests/it/stage.rs"]
mod stage;

libfuzzer_sys::fuzz_target!(|data: &[u8]| judged::check(data));
