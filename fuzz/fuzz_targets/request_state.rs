//! Feeds bytes to the checks of the same name.
#![no_main]

#[path = "../checks/request_state.rs"]
mod request_state;
#[allow(dead_code)]
#[path = "../../crates/broker/tests/it/stage.rs"]
mod stage;

libfuzzer_sys::fuzz_target!(|data: &[u8]| request_state::check(data));
