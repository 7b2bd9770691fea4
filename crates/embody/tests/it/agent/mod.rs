//! Agents as people use them: a scripted model answers, everything else is real.

mod channels;
mod doctor;
mod forward;
mod kills;
pub(crate) mod model;
mod patience;
mod proxies;
mod runs;
mod scheduled;
mod seed;
mod status;
mod telegram;
pub(crate) mod up;
