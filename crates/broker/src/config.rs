//! The configuration of a broker.

use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
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
    pub settings: CurrentSettings,
    /// The body rules, the first part of the contract.
    pub rules: Rules,
    /// Shared by all sessions.
    pub catalogues: CatalogueCache,
    pub meter: Arc<Meter>,
    /// The time, in microseconds since 1970.
    pub clock: Box<dyn Fn() -> i64 + Send + Sync>,
}

impl BrokerConfig {
    pub(crate) fn settings(&self) -> Arc<BrokerSettings> {
        self.settings.get()
    }

    /// The bodies that this principal may use.
    pub(crate) fn body_specs(&self, principal: &Principal) -> Vec<Arc<Spec>> {
        let settings = self.settings();
        let specs = settings.bodies.iter().map(|body| body.of(principal));
        specs.filter(|spec| spec.role.is_for(principal.scope.user(), &self.owner)).collect()
    }
}

/// The part of the configuration that can change while the broker runs. It changes as a whole, and a call uses one version of
/// it from beginning to end.
#[derive(Clone)]
pub struct BrokerSettings {
    pub bodies: Vec<UpstreamFactory>,
    pub policy: Arc<Policy>,
    /// Changes with the rules: approvals given under other rules are void.
    pub policy_version: String,
    pub mind_down: MindDown,
    pub times: Timeouts,
    pub listing_limit: ListingLimit,
}

pub struct CurrentSettings(RwLock<Arc<BrokerSettings>>);

impl CurrentSettings {
    pub fn new(settings: BrokerSettings) -> Self {
        Self(RwLock::new(Arc::new(settings)))
    }

    pub(crate) fn get(&self) -> Arc<BrokerSettings> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn replace(&self, settings: BrokerSettings) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
    }

    /// For settings that differ from the built ones.
    pub fn edit(&self, change: impl FnOnce(&mut BrokerSettings)) {
        let mut settings = (*self.get()).clone();
        change(&mut settings);
        self.replace(settings);
    }
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

#[derive(Clone)]
pub struct UpstreamFactory(Arc<SpecFn>);

impl UpstreamFactory {
    /// An embedded server needs its user.
    pub fn new(of: impl Fn(&Principal) -> Arc<Spec> + Send + Sync + 'static) -> Self {
        Self(Arc::new(of))
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
