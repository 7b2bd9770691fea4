//! Agents as people use them: a scripted model answers, everything else is real.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests may fail loudly"
)]

mod channels;
mod doctor;
mod forward;
mod kills;
mod model_timeouts;
mod prompt_show;
mod proxies;
mod runs;
mod scheduled;
mod seed;
mod slow_servers;
mod status;
#[path = "../support/mod.rs"]
mod support;
mod usage;
