//! The broker as hosts run it: `embody mcp` on a pipe, with real bodies behind it.

mod differential;
mod host;
mod servers;
mod setup;
mod unruly;
mod web;
