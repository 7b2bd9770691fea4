//! Finds out which era a server is of and greets it accordingly: `server/discover` first, then `initialize`.
//!
//! Servers of the session era answer the probe with any error, do not answer it at all, or end. The Python SDK up to 1.8.1
//! stops reading and ends with the next message it is sent, so the end may come only after `initialize`.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::era_cache::{EraCache, KnownEra};
use super::route::{Hello, Opening};
use super::stateless::{self, Stateless};
use super::way::Way;
use super::{CallEvent, Calling, Running, Said, greeting};
use crate::error::Error;
use crate::message::{Notification, Response};
use crate::secret::Redactor;
use crate::serve::code;
use crate::version::Version;

/// How long a server may take to say that it has no sessions. One that is slow to start is then asked for a session, which
/// nearly all have.
const PROBE: Duration = Duration::from_secs(1);

/// The version both speak, what the server says of itself, and what is kept of one without sessions.
pub(super) type Found = (Version, Box<RawValue>, Option<Arc<Stateless>>);

/// Why no session was opened.
pub(super) struct Unopened {
    pub(super) error: Error,
    /// The connection ended after a probe: the server may answer `initialize` if that comes first.
    pub(super) ended_by_probe: bool,
}

impl From<Error> for Unopened {
    fn from(error: Error) -> Self {
        Self { error, ended_by_probe: false }
    }
}

impl From<Unopened> for Error {
    fn from(unopened: Unopened) -> Self {
        unopened.error
    }
}

/// Who hears what a server says while it is greeted, and what must not stand in errors about it.
pub(super) struct Hears<'a> {
    pub(super) said: &'a mpsc::Sender<Said>,
    pub(super) redactor: &'a Redactor,
}

/// What a probe says about a server.
enum Probed {
    Stateless(Found),
    /// It answered with an error, or with something else than the probe asks for.
    Refused,
    /// It did not answer in time. On a pipe the answer may still come, before that to `initialize`.
    Silent(Option<Running>),
}

/// Greets a server. After a connection that a probe has ended (`is_after_probe`) it is of the session era.
pub(super) async fn found(
    way: &Way,
    opening: &Opening,
    (transport, is_after_probe): (&'static str, bool),
    hears: &Hears<'_>,
) -> Result<Found, Unopened> {
    let cache = &opening.era;
    // What is part of this program has sessions, and so has everything on the legacy transport.
    let may_be_stateless = transport != "embedded" && !matches!(way, Way::Sse(_));
    let known = if may_be_stateless && !is_after_probe { cache.get().await } else { KnownEra::Sessions };
    let (mut is_proven, mut late) = (is_after_probe, None);
    if known != KnownEra::Sessions {
        match discover(way, opening, hears).await {
            Ok(Probed::Stateless(found)) => {
                cache.set(KnownEra::Stateless);
                return Ok(found);
            }
            Ok(Probed::Refused) => is_proven = true,
            Ok(Probed::Silent(running)) => late = running,
            Err(error) => return Err(after_probe(error, way, cache, known)),
        }
        // Also if `initialize` gets no answer: the next connection begins with it.
        cache.set(KnownEra::Sessions);
    }
    let refused = match greet(way, &opening.hello, hears).await {
        Ok((version, greeting)) => {
            cache.set(KnownEra::Sessions);
            if is_proven || refused_late(way, late, hears).await {
                cache.save(true).await;
            }
            return Ok((version, greeting, None));
        }
        Err(error) => error,
    };
    let has_no_sessions =
        matches!(refused, Error::Rpc { code: code::METHOD_NOT_FOUND | code::UNSUPPORTED_VERSION, .. });
    if may_be_stateless
        && has_no_sessions
        && let Probed::Stateless(found) = discover(way, opening, hears).await?
    {
        cache.set(KnownEra::Stateless);
        cache.save(false).await;
        return Ok(found);
    }
    if known != KnownEra::Sessions {
        return Err(after_probe(refused, way, cache, known));
    }
    // It may be another program by now. One that ended twice, before, is first given a start without a probe.
    if !is_after_probe {
        cache.set(KnownEra::Unknown);
        cache.save(false).await;
    }
    Err(refused.into())
}

/// The end of a connection on which a probe was sent. A server that was stateless before has failed for another reason.
fn after_probe(error: Error, way: &Way, cache: &EraCache, known: KnownEra) -> Unopened {
    let is_over = matches!(error, Error::Closed(_) | Error::Ended { .. } | Error::NoAnswer | Error::Pipe(_));
    let ended_by_probe = known == KnownEra::Unknown && is_over && matches!(way, Way::Pipe(_));
    cache.set(if ended_by_probe { KnownEra::Sessions } else { KnownEra::Unknown });
    Unopened { error, ended_by_probe }
}

async fn discover(way: &Way, opening: &Opening, hears: &Hears<'_>) -> Result<Probed, Error> {
    let alone = Arc::new(Stateless::new(&opening.hello));
    if let Way::Http(http) = way {
        http.stand_alone(true);
    }
    let mut running = None;
    let asked = async {
        let calling = Calling { method: "server/discover", params: None };
        let begun = way.begin_alone(&alone, calling, std::future::pending()).await?;
        greeted(way, running.insert(begun.ok_or(Error::NoAnswer)?), hears).await
    };
    let probed = match timeout(PROBE.min(opening.limits.attempt_timeout / 2), asked).await {
        Ok(Ok(answer)) => stateless::greeting(&answer)
            .map_or(Probed::Refused, |greeting| Probed::Stateless((Version::LATEST, greeting, Some(alone)))),
        // Wrong credentials and an unreachable server are the same in both eras.
        Ok(Err(error @ (Error::Unauthorized { .. } | Error::NoToken { .. }))) => return Err(error),
        Ok(Err(error @ (Error::Unreachable(_) | Error::Proxy { .. }))) => return Err(error),
        Ok(Err(error @ (Error::Closed(_) | Error::Ended { .. }))) => return Err(error),
        Ok(Err(Error::Timeout { .. } | Error::Lost(_))) => Probed::Silent(None),
        Err(_) => Probed::Silent(running.filter(|_| matches!(way, Way::Pipe(_)))),
        Ok(Err(_)) => Probed::Refused,
    };
    if let Way::Http(http) = way
        && !matches!(probed, Probed::Stateless(_))
    {
        http.stand_alone(false);
    }
    Ok(probed)
}

/// Whether a probe that took too long has been answered with an error by now.
async fn refused_late(way: &Way, late: Option<Running>, hears: &Hears<'_>) -> bool {
    let Some(mut late) = late else { return false };
    let answered = timeout(Duration::ZERO, greeted(way, &mut late, hears)).await;
    matches!(answered, Ok(Err(Error::Rpc { .. })))
}

async fn greet(way: &Way, hello: &Hello, hears: &Hears<'_>) -> Result<(Version, Box<RawValue>), Error> {
    let params = greeting::params(hello)?;
    let hello = Calling { method: "initialize", params: Some(&params) };
    let mut running = way.begin(hello, std::future::pending()).await?.ok_or(Error::NoAnswer)?;
    let answer = greeted(way, &mut running, hears).await?;
    let version = greeting::version(&answer, hears.redactor)?;
    if let Way::Http(http) = way {
        http.agree(version);
    }
    let ready = Notification { method: "notifications/initialized".to_owned(), params: None };
    way.send(ready.print()).await?;
    if let Way::Http(http) = way {
        http.listen();
    }
    Ok((version, answer))
}

/// The answer to a greeting.
async fn greeted(way: &Way, running: &mut Running, hears: &Hears<'_>) -> Result<Box<RawValue>, Error> {
    loop {
        match running.next().await {
            CallEvent::Done(outcome) => return greeting::into_result(outcome, hears.redactor),
            CallEvent::Lost(error) => return Err(error),
            // A server may log before its greeting is over. What finds no room is lost, as at any time.
            CallEvent::Notification(notification) => {
                let _ = hears.said.try_send(Said::Notification(notification));
            }
            // The protocol allows none but `ping` before the greeting is over.
            CallEvent::Request(request) => {
                let refusal = Response::failure(request.id, code::INVALID_REQUEST, "not yet");
                way.send(refusal.print()).await?;
            }
        }
    }
}
