//! The configuration of a broker.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use embody_store::{Principal, Scope, Store};

use crate::catalogue::{CatalogueCache, ListingLimit};
use crate::gate::MindDown;
use crate::meter::Meter;
use crate::policy::Policy;
use crate::upstream::Spec;

pub struct BrokerConfig {
    pub store: Store,
    /// The agent of hosts that authenticate with a token.
    pub agent: String,
    pub owner: String,
    pub mind: UpstreamFactory,
    pub bodies: Vec<UpstreamFactory>,
    pub policy: Policy,
    /// Changes with the rules: approvals given under other rules are void.
    pub policy_version: String,
    pub mind_down: MindDown,
    /// The body rules, the first part of the contract.
    pub rules: Rules,
    pub times: Timeouts,
    pub listing_limit: ListingLimit,
    /// Shared by all sessions.
    pub catalogues: CatalogueCache,
    pub meter: Arc<Meter>,
    /// The time, in microseconds since 1970.
    pub clock: Box<dyn Fn() -> i64 + Send + Sync>,
}

#[derive(Debug, Clone)]
pub struct Timeouts {
    /// For the mind's view of a call before it is sent.
    pub observe: Duration,
    /// For a tool list, while servers start that were never listed before.
    pub list: Duration,
    /// For one call's wait for a person.
    pub ask_wait: Duration,
    pub ask: Duration,
    /// A call that arrives sooner after the contract counts as made before the model read it.
    pub contract_delay: Duration,
    /// The heartbeat interval of a session with an open write; ten times longer without one.
    pub heartbeat: Duration,
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

pub struct UpstreamFactory(Box<SpecFn>);

impl UpstreamFactory {
    /// An embedded server needs its user.
    pub fn new(of: impl Fn(&Principal) -> Arc<Spec> + Send + Sync + 'static) -> Self {
        Self(Box::new(of))
    }

    /// The same for every principal.
    pub fn fixed(spec: Arc<Spec>) -> Self {
        Self::new(move |_| Arc::clone(&spec))
    }

    pub(crate) fn of(&self, principal: &Principal) -> Arc<Spec> {
        (self.0)(principal)
    }
}

type Reading = Pin<Box<dyn Future<Output = Result<String, String>> + Send>>;

pub struct Rules(Box<dyn Fn(Scope) -> Reading + Send + Sync>);

impl Rules {
    /// Read for each session; the error is the reason as text.
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
