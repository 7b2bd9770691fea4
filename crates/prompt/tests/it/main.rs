//! Integration tests of the prompt builder.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    reason = "tests may fail loudly"
)]

mod border;
mod budget;
mod corpus;
mod fixture;
mod frames;
mod given;
mod hostile;
mod lint_corpus;
mod lint_rules;
mod parse;
mod requirements;
mod snapshots;
