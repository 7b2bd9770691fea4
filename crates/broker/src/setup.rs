//! What a broker is made of: everything that it does not decide by itself.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use embody_store::{Scope, Store};

use crate::Principal;
use crate::catalogue::{Catalogues, Shelf};
use crate::gate::MindDown;
use crate::meter::Meter;
use crate::policy::Policy;
use crate::upstream::Spec;

/// What a broker is made of.
pub struct Setup {
    /// Where everything is kept.
    pub store: Store,
    /// The agent that a token's user speaks through.
    pub agent: String,
    /// The user whose workspace it is.
    pub owner: String,
    /// The mind.
    pub mind: SpecSource,
    /// The bodies.
    pub bodies: Vec<SpecSource>,
    /// The operator's rules.
    pub policy: Policy,
    /// Changes whenever the rules do: an approval given under other rules does not count.
    pub policy_version: String,
    /// Writes while the mind says nothing.
    pub mind_down: MindDown,
    /// The body's rules.
    pub rules: Rules,
    /// The bounds in time.
    pub times: Times,
    /// How many tools are listed.
    pub shelf: Shelf,
    /// The catalogues that its sessions share; empty at first.
    pub catalogues: Catalogues,
    /// What is counted, and where spans go.
    pub meter: Arc<Meter>,
    /// The time, in microseconds since 1970.
    pub clock: Box<dyn Fn() -> i64 + Send + Sync>,
}

impl fmt::Debug for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup")
            .field("agent", &self.agent)
            .field("bodies", &self.bodies.len())
            .finish_non_exhaustive()
    }
}

/// How long things may take.
#[derive(Debug, Clone)]
pub struct Times {
    /// The mind's view of a call that is about to happen.
    pub observe: Duration,
    /// A list of tools, while servers start that were never seen before.
    pub list: Duration,
    /// One call's wait for a person.
    pub ask_wait: Duration,
    /// The life of an approval.
    pub ask: Duration,
    /// How long after the contract a call still counts as made before the model has read it.
    pub contract_delay: Duration,
    /// How often a session says that it lives while it has a write under way; otherwise ten times more seldom.
    pub heartbeat: Duration,
    /// How long the receipts of prompts are kept.
    pub receipts: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            observe: Duration::from_millis(250),
            list: Duration::from_secs(3),
            ask_wait: Duration::from_secs(45),
            ask: Duration::from_secs(300),
            contract_delay: Duration::from_millis(250),
            heartbeat: Duration::from_secs(2),
            receipts: Duration::from_secs(30 * 24 * 3600),
        }
    }
}

type SpecOf = dyn Fn(&Principal) -> Arc<Spec> + Send + Sync;

/// Where a server is, for whoever speaks.
pub struct SpecSource(Box<SpecOf>);

impl SpecSource {
    /// One per principal: a server that is embedded has to know whose it is.
    pub fn new(of: impl Fn(&Principal) -> Arc<Spec> + Send + Sync + 'static) -> Self {
        Self(Box::new(of))
    }

    /// The same for everybody.
    #[must_use]
    pub fn fixed(spec: Arc<Spec>) -> Self {
        Self::new(move |_| Arc::clone(&spec))
    }

    pub(crate) fn of(&self, principal: &Principal) -> Arc<Spec> {
        (self.0)(principal)
    }
}

type Reading = Pin<Box<dyn Future<Output = Result<String, String>> + Send>>;

/// Where the body's rules come from.
pub struct Rules(Box<dyn Fn(Scope) -> Reading + Send + Sync>);

impl Rules {
    /// Read for each session; in words, why they cannot be.
    pub fn new<F>(read: impl Fn(Scope) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<String, String>> + Send + 'static,
    {
        Self(Box::new(move |scope| Box::pin(read(scope))))
    }

    pub(crate) async fn of(&self, scope: &Scope) -> Result<String, String> {
        (self.0)(scope.clone()).await
    }
}
