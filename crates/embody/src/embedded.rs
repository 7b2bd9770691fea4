//! The servers that are part of this program, the mind and the body: made once, and reached over a pipe of its own by each
//! session.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use embody_agent::schedule::first_due;
use embody_body::Setting;
use embody_body::server::{BodyOffer, BodyServer};
use embody_broker::upstream::{RawTool, Spec};
use embody_broker::{Principal, SpecSource};
use embody_mind::server::{MindOffer, MindServer};
use embody_store::{Scope, Store};
use embody_wire::Limits;
use embody_wire::serve::{Ending, Service, lines};
use embody_wire::upstream::{Connect, Route};
use tokio::sync::watch;

use crate::config::env::non_empty;
use crate::config::resolved::Config;
use crate::contract::Voice;

const PIPE_BYTES: usize = 256 * 1024;

/// The mind.
pub(crate) fn mind(store: &Store, voice: &Arc<Voice>, agent: &str) -> Arc<embody_mcp::Server<MindOffer>> {
    let clock = {
        let voice = Arc::clone(voice);
        move |scope: &Scope| voice.now(scope)
    };
    MindServer::new(store.clone(), voice.source(), agent.to_owned(), clock).service()
}

/// The body.
pub(crate) fn body(store: &Store, voice: &Arc<Voice>, agent: &str) -> Arc<embody_mcp::Server<BodyOffer>> {
    body_with(store, voice, agent, channels(&voice.context().config))
}

/// The body with these channels to other people.
pub(crate) fn body_with(
    store: &Store,
    voice: &Arc<Voice>,
    agent: &str,
    channels: Vec<String>,
) -> Arc<embody_mcp::Server<BodyOffer>> {
    let zone = {
        let voice = Arc::clone(voice);
        move |scope: &Scope| voice.zone_to_plan_in(scope)
    };
    let setting = Setting {
        due: Box::new(first_due),
        zone: Box::new(zone),
        clock: Box::new(|| jiff::Timestamp::now().as_microsecond()),
        gives_orders: Arc::new(|text| embody_mind::quarantine::order(text).is_some()),
        channels,
    };
    BodyServer::new(store.clone(), agent.to_owned(), setting).service()
}

/// The channels over which other people are reached: those that are set up.
fn channels(config: &Config) -> Vec<String> {
    let has_telegram = non_empty(&config.telegram.token_env).is_some();
    has_telegram.then(|| "telegram".to_owned()).into_iter().collect()
}

/// What a server of ours lists. One that could not be written would be asked for them like any other.
pub(crate) fn tools(definitions: Vec<embody_mcp::Tool>) -> Option<Arc<[RawTool]>> {
    definitions.iter().map(|tool| RawTool::new(&tool.name, tool).ok()).collect()
}

/// Whether a server of ours can be reached. It can, unless somebody takes it away.
#[derive(Clone)]
pub(crate) struct Presence(Arc<Mutex<(watch::Sender<bool>, Ending)>>);

impl Presence {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(Ending::new())))
    }

    /// Ends every connection; nobody answers at a new one.
    pub(crate) fn leave(&self) {
        self.now().0.send_replace(true);
    }

    /// New connections are answered again.
    pub(crate) fn come_back(&self) {
        *self.now() = Ending::new();
    }

    /// Tells a connection that is opened now when it ends.
    fn ending(&self) -> Ending {
        self.now().1.clone()
    }

    fn now(&self) -> MutexGuard<'_, (watch::Sender<bool>, Ending)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Pipes to a server of ours for whoever speaks; nobody answers if that is nobody, or while the server is away.
pub(crate) fn pipes<S: Service>(
    service: Arc<S>,
    principal: Option<S::Principal>,
    presence: Presence,
) -> Connect {
    Connect::new(move || {
        let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
        let ending = presence.ending();
        if let (Some(principal), false) = (principal.clone(), ending.has_begun()) {
            let (service, streams) = (Arc::clone(&service), tokio::io::split(theirs));
            tokio::spawn(async move {
                let _ = lines::serve(service, principal, streams, Limits::default(), ending).await;
            });
        }
        tokio::io::split(ours)
    })
}

/// A server of ours as an upstream. Whoever has a name that is none does not get as far as a session: nobody answers.
pub(crate) fn upstream<S: Service>(
    service: Arc<S>,
    presence: Presence,
    admit: impl Fn(&Principal) -> Option<S::Principal> + Send + Sync + 'static,
    spec: impl Fn(Route) -> Spec + Send + Sync + 'static,
) -> SpecSource {
    SpecSource::new(move |principal: &Principal| {
        let connect = pipes(Arc::clone(&service), admit(principal), presence.clone());
        Arc::new(spec(Route::Streams(connect)))
    })
}
