//! Feeds bytes to the checks of the same name.
#![no_main]

#[path = "../checks/frontmatter.rs"]
mod frontmatter;

libfuzzer_sys::fuzz_target!(|data: &[u8]| frontmatter::check(data));
