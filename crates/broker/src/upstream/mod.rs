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
// STUB
use std::sync::Arc; use std::time::Duration; use embody_wire::upstream::{Route, TokenSource, Link, Said}; use embody_wire::Limits; use tokio::sync::mpsc;
#[derive(Debug)] pub struct Spec { pub name: String, pub role: Role, pub route: Route, pub tokens: Option<TokenSource>, pub limits: Limits, pub call_timeout: Duration }
#[derive(Debug, Clone, Copy, PartialEq, Eq)] pub enum Health { Connecting, Connected, Unavailable }
#[derive(Debug, Clone)] pub struct State { pub health: Health, pub reason: Option<String>, pub since_ms: i64, pub transport: Option<&'static str>, pub version: Option<&'static str>, pub restarts: u32, pub stderr: Vec<String> }
#[derive(Debug, Clone, thiserror::Error)] #[error("{0}")] pub struct Away(pub String);
pub enum Heard { Said { upstream: Arc<str>, said: Said }, Changed { upstream: Arc<str> } }
#[derive(Debug, Clone)] pub struct Hello { pub capabilities: Option<Box<RawValue>>, pub client: Option<Box<RawValue>> }
impl Hello { pub fn for_upstream(&self, _r: &Role) -> Hello { self.clone() } }
#[derive(Debug)] pub struct Upstream { spec: Arc<Spec> }
impl Upstream {
 pub fn start(spec: Arc<Spec>, _h: Hello, _heard: mpsc::Sender<Heard>) -> Arc<Self> { Arc::new(Self{spec}) }
 pub fn spec(&self) -> &Spec { &self.spec }
 pub async fn link(&self) -> Result<Arc<Link>, Away> { Err(Away("x".into())) }
 pub fn state(&self) -> State { State { health: Health::Connecting, reason: None, since_ms: 0, transport: None, version: None, restarts: 0, stderr: vec![] } }
 pub fn tools(&self) -> Arc<[RawTool]> { Arc::from([]) }
 pub async fn settled(&self) {}
 pub async fn end(&self) {}
}
