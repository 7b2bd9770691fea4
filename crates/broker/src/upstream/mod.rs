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
#[derive(Debug)] pub struct Upstream { spec: Arc<Spec>, hello: Hello, said: mpsc::Sender<Heard>, link: tokio::sync::OnceCell<Arc<Link>>, tools: std::sync::Mutex<Arc<[RawTool]>> }
impl Upstream {
 pub fn start(spec: Arc<Spec>, hello: Hello, said: mpsc::Sender<Heard>) -> Arc<Self> { let u = Arc::new(Self{spec, hello, said, link: Default::default(), tools: std::sync::Mutex::new(Arc::from([]))}); let v = Arc::clone(&u); tokio::spawn(async move { let _ = v.link().await; }); u }
 pub fn spec(&self) -> &Spec { &self.spec }
 pub async fn link(&self) -> Result<Arc<Link>, Away> {
   self.link.get_or_try_init(|| async {
     let (tx, mut rx) = mpsc::channel(64);
     let opening = embody_wire::upstream::Opening { route: self.spec.route.clone(), hello: embody_wire::upstream::Hello { capabilities: self.hello.capabilities.clone(), identity: Default::default() }, tokens: self.spec.tokens.clone(), limits: self.spec.limits.clone() };
     let link = Link::open(&opening, tx).await.map_err(|e| Away(e.to_string()))?;
     let (out, name) = (self.said.clone(), Arc::<str>::from(self.spec.name.as_str()));
     tokio::spawn(async move { while let Some(said) = rx.recv().await { let _ = out.send(Heard::Said { upstream: name.clone(), said }).await; } });
     let mut running = link.begin(embody_wire::upstream::Calling { method: "tools/list", params: None }).await.map_err(|e| Away(e.to_string()))?;
     if let embody_wire::upstream::CallEvent::Done(embody_wire::Outcome::Result(r)) = running.next().await {
        #[derive(serde::Deserialize)] struct L { tools: Vec<Box<RawValue>> } #[derive(serde::Deserialize)] struct N { name: String }
        if let Ok(l) = serde_json::from_str::<L>(r.get()) { *self.tools.lock().unwrap_or_else(|e| e.into_inner()) = l.tools.into_iter().filter_map(|d| { let n: N = serde_json::from_str(d.get()).ok()?; Some(RawTool { name: n.name, definition: d }) }).collect(); }
     }
     Ok(Arc::new(link))
   }).await.cloned()
 }
 pub fn state(&self) -> State { State { health: if self.link.get().is_some() { Health::Connected } else { Health::Connecting }, reason: None, since_ms: 0, transport: None, version: None, restarts: 0, stderr: vec![] } }
 pub fn tools(&self) -> Arc<[RawTool]> { Arc::clone(&self.tools.lock().unwrap_or_else(|e| e.into_inner())) }
 pub async fn settled(&self) { let _ = self.link().await; }
 pub async fn end(&self) { if let Some(l) = self.link.get() { l.close().await; } }
}
