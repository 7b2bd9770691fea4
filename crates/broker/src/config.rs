//! The configuration of a broker: everything that it does not decide itself.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use embody_store::{Scope, Store};

use crate::Principal;
use crate::catalogue::{CatalogueCache, ListingLimit};
use crate::gate::MindDown;
use crate::meter::Meter;
use crate::policy::Policy;
use crate::upstream::Spec;

pub struct BrokerConfig {
    pub store: Store,
    /// The agent of hosts that authenticate with a token.
    pub agent: String,
    /// The user whose workspace it is.
    pub owner: String,
    pub mind: UpstreamFactory,
    pub bodies: Vec<UpstreamFactory>,
    pub policy: Policy,
    /// Changes whenever the rules do: approvals given under other rules are void.
    pub policy_version: String,
    /// What happens to writes while the mind does not answer.
    pub mind_down: MindDown,
    /// The body's rules.
    pub rules: Rules,
    pub times: Timeouts,
    /// Which tools are listed.
    pub listing_limit: ListingLimit,
    /// The catalogues that sessions share; empty at first.
    pub catalogues: CatalogueCache,
    pub meter: Arc<Meter>,
    /// The time, in microseconds since 1970.
    pub clock: Box<dyn Fn() -> i64 + Send + Sync>,
}

impl fmt::Debug for BrokerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BrokerConfig")
            .field("agent", &self.agent)
            .field("bodies", &self.bodies.len())
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Clone)]
pub struct Timeouts {
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
    /// The heartbeat of a session with an open write; without one it is ten times longer.
    pub heartbeat: Duration,
    /// How long the receipts of prompts are kept.
    pub receipts: Duration,
}

impl Default for Timeouts {
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

type SpecFn = dyn Fn(&Principal) -> Arc<Spec> + Send + Sync;

/// Makes the specification of an upstream for a principal.
pub struct UpstreamFactory(Box<SpecFn>);

impl UpstreamFactory {
    /// An embedded server has to know its user.
    pub fn new(of: impl Fn(&Principal) -> Arc<Spec> + Send + Sync + 'static) -> Self {
        Self(Box::new(of))
    }

    /// The same for every principal.
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
