//! The nervous system: one MCP entry in front of bodies and mind.
//!
//! So far it holds what decides about a call, all of it pure: no IO, no clock.
//!
//! | module | owns |
//! |---|---|
//! | [`arguments`] | a call's arguments, read once and refused when two readers could read them differently |
//! | [`policy`] | what a tool does to the world, and what the operator's rules say about a call |
//! | [`gate`] | whether a call may happen now; the only maker of a [`gate::Permit`] |

pub mod arguments;
pub mod catalogue;
pub mod gate;
pub mod policy;
pub mod upstream;
