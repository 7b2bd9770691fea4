//! The servers that are part of this program, the mind and the body: made once, and reached over a pipe of its own by each
//! session.

use std::sync::Arc;

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
    let zone = {
        let voice = Arc::clone(voice);
        move |scope: &Scope| voice.now(scope).zone().iana_name().unwrap_or("UTC").to_owned()
    };
    let setting = Setting {
        due: Box::new(first_due),
        zone: Box::new(zone),
        clock: Box::new(|| jiff::Timestamp::now().as_microsecond()),
        channels: channels(&voice.context().config),
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

/// A server of ours as an upstream. Whoever has a name that is none does not get as far as a session: nobody answers.
pub(crate) fn upstream<S: Service>(
    service: Arc<S>,
    admit: impl Fn(&Principal) -> Option<S::Principal> + Send + Sync + 'static,
    spec: impl Fn(Route) -> Spec + Send + Sync + 'static,
) -> SpecSource {
    SpecSource::new(move |principal: &Principal| {
        let (service, admitted) = (Arc::clone(&service), admit(principal));
        let connect = Connect::new(move || {
            let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
            if let Some(principal) = admitted.clone() {
                let (service, streams) = (Arc::clone(&service), tokio::io::split(theirs));
                tokio::spawn(async move {
                    let (_switch, ending) = Ending::new();
                    let _ = lines::serve(service, principal, streams, Limits::default(), ending).await;
                });
            }
            tokio::io::split(ours)
        });
        Arc::new(spec(Route::Streams(connect)))
    })
}
