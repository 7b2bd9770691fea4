//! The embedded mind and body: created once, and called by every session as functions.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use embody_agent::schedule::first_due;
use embody_body::BodyConfig;
use embody_body::server::{BodyHandler, BodyServer};
use embody_broker::UpstreamFactory;
use embody_broker::upstream::{RawTool, Spec};
use embody_mind::server::{MindHandler, MindServer};
use embody_store::{Principal, Scope, Store};
use embody_wire::server::{CancellationToken, Service};
use embody_wire::upstream::{InProcessServer, Route};

use crate::config::Config;
use crate::config::env::non_empty;
use crate::prompt_service::PromptService;

pub(crate) fn mind(
    store: &Store,
    prompts: &Arc<PromptService>,
    agent: &str,
) -> Arc<embody_mcp::Server<MindHandler>> {
    let clock = {
        let prompts = Arc::clone(prompts);
        move |scope: &Scope| prompts.now(scope)
    };
    MindServer::new(store.clone(), prompts.contract_source(), agent.to_owned(), clock).service()
}

pub(crate) fn body(
    store: &Store,
    prompts: &Arc<PromptService>,
    agent: &str,
) -> Arc<embody_mcp::Server<BodyHandler>> {
    body_with_channels(store, prompts, agent, channels(&prompts.settings().config))
}

/// The body with these channels to other people.
pub(crate) fn body_with_channels(
    store: &Store,
    prompts: &Arc<PromptService>,
    agent: &str,
    channels: Vec<String>,
) -> Arc<embody_mcp::Server<BodyHandler>> {
    let zone = {
        let prompts = Arc::clone(prompts);
        move |scope: &Scope| prompts.scheduling_zone(scope)
    };
    let setting = BodyConfig {
        due: Box::new(first_due),
        zone: Box::new(zone),
        clock: Box::new(|| jiff::Timestamp::now().as_microsecond()),
        gives_orders: Arc::new(embody_mind::quarantine::gives_orders),
        channels,
    };
    BodyServer::new(store.clone(), agent.to_owned(), setting).service()
}

/// The configured channels to other people.
fn channels(config: &Config) -> Vec<String> {
    let has_telegram = non_empty(&config.telegram.token_env).is_some();
    has_telegram.then(|| "telegram".to_owned()).into_iter().collect()
}

/// The tools of an embedded server; `None`, if they cannot be serialized, lists them over the connection.
pub(crate) fn tools(definitions: Vec<embody_mcp::Tool>) -> Option<Arc<[RawTool]>> {
    definitions.iter().map(|tool| RawTool::new(&tool.name, tool).ok()).collect()
}

/// Whether an embedded server accepts connections; the demo switches it off and on.
#[derive(Clone)]
pub(crate) struct Availability(Arc<Mutex<CancellationToken>>);

impl Availability {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(CancellationToken::new())))
    }

    /// Ends every connection and refuses new ones.
    pub(crate) fn disconnect(&self) {
        self.lock().cancel();
    }

    /// Accepts connections again.
    pub(crate) fn restore(&self) {
        *self.lock() = CancellationToken::new();
    }

    /// The shutdown signal for a connection that is opened now.
    fn ending(&self) -> CancellationToken {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, CancellationToken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An embedded server as an upstream. `admit` maps the caller.
pub(crate) fn upstream<S: Service<Principal = Principal>>(
    service: Arc<S>,
    availability: Availability,
    admit: impl Fn(&Principal) -> Principal + Send + Sync + 'static,
    spec: impl Fn(Route) -> Spec + Send + Sync + 'static,
) -> UpstreamFactory {
    UpstreamFactory::new(move |principal: &Principal| {
        let (principal, availability) = (admit(principal), availability.clone());
        let server =
            InProcessServer::new(Arc::clone(&service), move || (principal.clone(), availability.ending()));
        Arc::new(spec(Route::InProcess(server)))
    })
}
