//! What an operator watches: numbers for Prometheus, traces for a collector, of real processes with a real body.

mod collector;
mod exposition;
mod metrics;
mod traces;
