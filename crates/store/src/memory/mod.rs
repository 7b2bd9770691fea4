//! What an agent remembers: saving, searching, revising and forgetting, scoped by user and agent.

mod analyze;
mod postings;
mod rank;
