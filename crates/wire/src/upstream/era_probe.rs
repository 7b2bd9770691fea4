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
use super::route::{ClientInfo, ConnectOptions};
use super::stateless::{self, Stateless};
use super::transport::Transport;
use super::{CallEvent, OutgoingCall, PendingCall, ServerMessage, greeting};
use crate::error::Error;
use crate::message::{Notification, Response};
use crate::secret::Redactor;
use crate::server::code;
use crate::version::Version;

/// How long a server may take to say that it has no sessions. One that is slow to start is then asked for a session, which
/// nearly all have.
const PROBE: Duration = Duration::from_secs(1);

/// The version both speak, what the server says of itself, and what is kept of one without sessions.
pub(super) type ServerProfile = (Version, Box<RawValue>, Option<Arc<Stateless>>);

pub(super) struct OpenError {
    pub(super) error: Error,
    /// The connection ended after a probe: the server may answer `initialize` if that comes first.
    pub(super) ended_by_probe: bool,
}

impl From<Error> for OpenError {
    fn from(error: Error) -> Self {
        Self { error, ended_by_probe: false }
    }
}

impl From<OpenError> for Error {
    fn from(unopened: OpenError) -> Self {
        unopened.error
    }
}

/// Who hears what a server says while it is greeted, and what must not stand in errors about it.
pub(super) struct InitContext<'a> {
    pub(super) said: &'a mpsc::Sender<ServerMessage>,
    pub(super) redactor: &'a Redactor,
}

/// What a probe says about a server.
enum ProbeResult {
    Stateless(ServerProfile),
    /// It answered with an error, or with something else than the probe asks for.
    Refused,
    /// It did not answer in time. On a pipe the answer may still come, before that to `initialize`.
    Silent(Option<PendingCall>),
}

/// Greets a server. After a connection that a probe has ended (`is_after_probe`) it is of the session era.
pub(super) async fn negotiate(
    transport: &Transport,
    options: &ConnectOptions,
    (transport_name, is_after_probe): (&'static str, bool),
    hears: &InitContext<'_>,
) -> Result<ServerProfile, OpenError> {
    let cache = &options.era;
    // What is part of this program has sessions, and so has everything on the legacy transport.
    let may_be_stateless = transport_name != "embedded" && !matches!(transport, Transport::Sse(_));
    let known = if may_be_stateless && !is_after_probe { cache.get().await } else { KnownEra::Sessions };
    let (mut is_proven, mut late) = (is_after_probe, None);
    if known != KnownEra::Sessions {
        match discover(transport, options, hears).await {
            Ok(ProbeResult::Stateless(found)) => {
                cache.set(KnownEra::Stateless);
                return Ok(found);
            }
            Ok(ProbeResult::Refused) => is_proven = true,
            Ok(ProbeResult::Silent(running)) => late = running,
            Err(error) => return Err(after_probe(error, transport, cache, known)),
        }
        // Also if `initialize` gets no answer: the next connection begins with it.
        cache.set(KnownEra::Sessions);
    }
    let refused = match initialize(transport, &options.client_info, hears).await {
        Ok((version, greeting)) => {
            cache.set(KnownEra::Sessions);
            if is_proven || refused_late(transport, late, hears).await {
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
        && let ProbeResult::Stateless(found) = discover(transport, options, hears).await?
    {
        cache.set(KnownEra::Stateless);
        cache.save(false).await;
        return Ok(found);
    }
    if known != KnownEra::Sessions {
        return Err(after_probe(refused, transport, cache, known));
    }
    // It may be another program by now. One that ended twice, before, is first given a start without a probe.
    if !is_after_probe {
        cache.set(KnownEra::Unknown);
        cache.save(false).await;
    }
    Err(refused.into())
}

/// The end of a connection on which a probe was sent. A server that was stateless before has failed for another reason.
fn after_probe(error: Error, transport: &Transport, cache: &EraCache, known: KnownEra) -> OpenError {
    let is_over = matches!(error, Error::Closed(_) | Error::Ended { .. } | Error::NoAnswer | Error::Pipe(_));
    let ended_by_probe = known == KnownEra::Unknown && is_over && matches!(transport, Transport::Pipe(_));
    cache.set(if ended_by_probe { KnownEra::Sessions } else { KnownEra::Unknown });
    OpenError { error, ended_by_probe }
}

async fn discover(
    transport: &Transport,
    options: &ConnectOptions,
    hears: &InitContext<'_>,
) -> Result<ProbeResult, Error> {
    let stateless = Arc::new(Stateless::new(&options.client_info));
    if let Transport::Http(http) = transport {
        http.set_stateless(true);
    }
    let mut running = None;
    let asked = async {
        let call = OutgoingCall { method: "server/discover", params: None };
        let begun = transport.begin_stateless(&stateless, call, std::future::pending()).await?;
        await_result(transport, running.insert(begun.ok_or(Error::NoAnswer)?), hears).await
    };
    let probed = match timeout(PROBE.min(options.limits.attempt_timeout / 2), asked).await {
        Ok(Ok(answer)) => stateless::initialize_result(&answer).map_or(ProbeResult::Refused, |greeting| {
            ProbeResult::Stateless((Version::LATEST, greeting, Some(stateless)))
        }),
        // Wrong credentials and an unreachable server are the same in both eras.
        Ok(Err(error @ (Error::Unauthorized { .. } | Error::NoToken { .. }))) => return Err(error),
        Ok(Err(error @ (Error::Unreachable(_) | Error::Proxy { .. }))) => return Err(error),
        Ok(Err(error @ (Error::Closed(_) | Error::Ended { .. }))) => return Err(error),
        Ok(Err(Error::Timeout { .. } | Error::Lost(_))) => ProbeResult::Silent(None),
        Err(_) => ProbeResult::Silent(running.filter(|_| matches!(transport, Transport::Pipe(_)))),
        Ok(Err(_)) => ProbeResult::Refused,
    };
    if let Transport::Http(http) = transport
        && !matches!(probed, ProbeResult::Stateless(_))
    {
        http.set_stateless(false);
    }
    Ok(probed)
}

/// Whether a probe that took too long has been answered with an error by now.
async fn refused_late(transport: &Transport, late: Option<PendingCall>, hears: &InitContext<'_>) -> bool {
    let Some(mut late) = late else { return false };
    let answered = timeout(Duration::ZERO, await_result(transport, &mut late, hears)).await;
    matches!(answered, Ok(Err(Error::Rpc { .. })))
}

async fn initialize(
    transport: &Transport,
    client_info: &ClientInfo,
    hears: &InitContext<'_>,
) -> Result<(Version, Box<RawValue>), Error> {
    let params = greeting::params(client_info)?;
    let client_info = OutgoingCall { method: "initialize", params: Some(&params) };
    let mut running = transport.begin(client_info, std::future::pending()).await?.ok_or(Error::NoAnswer)?;
    let answer = await_result(transport, &mut running, hears).await?;
    let version = greeting::version(&answer, hears.redactor)?;
    if let Transport::Http(http) = transport {
        http.agree(version);
    }
    let ready = Notification { method: "notifications/initialized".to_owned(), params: None };
    transport.send(ready.print()).await?;
    if let Transport::Http(http) = transport {
        http.listen();
    }
    Ok((version, answer))
}

async fn await_result(
    transport: &Transport,
    running: &mut PendingCall,
    hears: &InitContext<'_>,
) -> Result<Box<RawValue>, Error> {
    loop {
        match running.next().await {
            CallEvent::Done(outcome) => return greeting::into_result(outcome, hears.redactor),
            CallEvent::Lost(error) => return Err(error),
            // A server may log before its greeting is over. What finds no room is lost, as at any time.
            CallEvent::Notification(notification) => {
                let _ = hears.said.try_send(ServerMessage::Notification(notification));
            }
            // The protocol allows none but `ping` before the greeting is over.
            CallEvent::Request(request) => {
                let refusal = Response::failure(request.id, code::INVALID_REQUEST, "not yet");
                transport.send(refusal.print()).await?;
            }
        }
    }
}
