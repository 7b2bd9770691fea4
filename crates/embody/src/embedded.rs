//! The embedded mind and body: created once, and reached by each session over a pipe of its own.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use embody_agent::schedule::first_due;
use embody_body::BodyConfig;
use embody_body::server::{BodyHandler, BodyServer};
use embody_broker::upstream::{RawTool, Spec};
use embody_broker::{Principal, UpstreamFactory};
use embody_mind::server::{MindHandler, MindServer};
use embody_store::{Scope, Store};
use embody_wire::Limits;
use embody_wire::server::{CancellationToken, Service, lines};
use embody_wire::upstream::{Route, StreamConnector};

use crate::config::env::non_empty;
use crate::config::resolved::Config;
use crate::prompt_service::PromptService;

const PIPE_BYTES: usize = 256 * 1024;

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
    body_with_channels(store, prompts, agent, channels(&prompts.context().config))
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

/// Connects to an embedded server as `principal`; without a principal, or while the server is unavailable, the pipe is closed.
pub(crate) fn connect<S: Service>(
    service: Arc<S>,
    principal: Option<S::Principal>,
    availability: Availability,
) -> StreamConnector {
    StreamConnector::new(move || {
        let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
        let ending = availability.ending();
        if let (Some(principal), false) = (principal.clone(), ending.is_cancelled()) {
            let (service, streams) = (Arc::clone(&service), tokio::io::split(theirs));
            tokio::spawn(async move {
                let _ = lines::serve(service, principal, streams, Limits::default(), ending).await;
            });
        }
        tokio::io::split(ours)
    })
}

/// An embedded server as an upstream. `admit` maps the caller; an invalid name gets a closed pipe.
pub(crate) fn upstream<S: Service>(
    service: Arc<S>,
    availability: Availability,
    admit: impl Fn(&Principal) -> Option<S::Principal> + Send + Sync + 'static,
    spec: impl Fn(Route) -> Spec + Send + Sync + 'static,
) -> UpstreamFactory {
    UpstreamFactory::new(move |principal: &Principal| {
        let connect = connect(Arc::clone(&service), admit(principal), availability.clone());
        Arc::new(spec(Route::Streams(connect)))
    })
}
