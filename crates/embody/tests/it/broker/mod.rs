//! The broker as hosts run it: `embody mcp` on a pipe, with real bodies behind it.

mod approvals;
mod chaos;
mod conformance;
mod contract;
mod degraded;
mod differential;
mod embedded;
mod endurance;
mod host;
mod hosts;
mod kills;
mod large;
mod lossless;
mod names;
mod pins;
mod remote;
mod replicas;
mod rest;
mod reverse;
mod servers;
mod setup;
mod tasks;
mod unruly;
mod watched;
mod web;
