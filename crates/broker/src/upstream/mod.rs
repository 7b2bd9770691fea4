//! The servers behind the broker, one supervised connection each.

use crate::policy::Glob;
use serde_json::value::RawValue;

/// What an upstream is.
#[derive(Debug, Clone)]
pub enum Role {
    /// The mind.
    Mind,
    /// A body.
    Body(BodySpec),
}

/// What the operator says about a body.
#[derive(Debug, Clone, Default)]
pub struct BodySpec {
    /// The tools that are exposed.
    pub allow: Vec<Glob>,
    /// Those that are not, whatever `allow` says.
    pub deny: Vec<Glob>,
    /// Whether it tells the mind of its calls itself.
    pub observes: bool,
    /// Whether its annotations count.
    pub trust_annotations: bool,
    /// Unknown request methods that are forwarded to it.
    pub forward_methods: Vec<String>,
    /// Whether it may ask the host's model.
    pub sampling: bool,
}

/// A tool as its server lists it.
#[derive(Debug, Clone)]
pub struct RawTool {
    /// Its own name.
    pub name: String,
    /// The whole definition, as it came.
    pub definition: Box<RawValue>,
}
