//! Detects the protocol era of a server and initializes it accordingly: `server/discover` first, then `initialize`.
//! Session-era servers answer the probe with any error, do not answer it, or exit. The Python SDK up to 1.8.1 stops reading
//! and exits at the next message, so the exit may come only after `initialize`.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::era_cache::{EraCache, KnownEra};
use super::route::ConnectOptions;
use super::stateless::{self, Stateless};
use super::transport::Transport;
use super::{CallEvent, OutgoingCall, PendingCall, ServerMessage};
use crate::error::Error;
use crate::initialize::Version;
use crate::initialize::{InitializeParams, protocol_version};
use crate::message::{Message, Notification, Response};
use crate::secret::Redactor;
use crate::server::code;

/// How long a server may take to answer the probe. A server that starts slowly is then sent `initialize`, which nearly
/// all servers support.
const PROBE: Duration = Duration::from_secs(1);

/// The negotiated version, the `initialize` result, and the state kept for a stateless server.
pub(super) type ServerProfile = (Version, Box<RawValue>, Option<Arc<Stateless>>);

pub(super) struct OpenError {
    pub(super) error: Error,
    /// The connection ended after a probe: the server may answer `initialize` if that is sent first.
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

/// What initialization needs: the receiver of early server messages, and the redactor for errors.
pub(super) struct InitContext<'a> {
    pub(super) messages: &'a mpsc::Sender<ServerMessage>,
    pub(super) redactor: &'a Redactor,
}

enum ProbeResult {
    Stateless(ServerProfile),
    /// The server answered with an error, or with an unexpected result.
    Refused,
    /// The server did not answer in time. On a pipe the answer may still arrive, before the one to `initialize`.
    Silent(Option<PendingCall>),
}

/// Initializes a server. After a connection that a probe ended (`is_after_probe`), the server uses the session era.
pub(super) async fn negotiate(
    transport: &Transport,
    options: &ConnectOptions,
    (transport_name, is_after_probe): (&'static str, bool),
    context: &InitContext<'_>,
) -> Result<ServerProfile, OpenError> {
    let cache = &options.era;
    // Embedded servers, and all servers on the legacy transport, have sessions.
    let may_be_stateless = transport_name != "embedded" && !matches!(transport, Transport::Sse(_));
    let known = if may_be_stateless && !is_after_probe { cache.get().await } else { KnownEra::Sessions };
    let (mut is_proven, mut late) = (is_after_probe, None);
    if known != KnownEra::Sessions {
        match discover(transport, options, context).await {
            Ok(ProbeResult::Stateless(found)) => {
                cache.set(KnownEra::Stateless);
                return Ok(found);
            }
            Ok(ProbeResult::Refused) => is_proven = true,
            Ok(ProbeResult::Silent(running)) => late = running,
            Err(error) => return Err(after_probe(error, transport, cache, known)),
        }
        // Set even if `initialize` is not answered: the next connection starts with `initialize`.
        cache.set(KnownEra::Sessions);
    }
    let refused = match initialize(transport, &options.params, context).await {
        Ok((version, result)) => {
            cache.set(KnownEra::Sessions);
            if is_proven || refused_late(transport, late, context).await {
                cache.save(true).await;
            }
            return Ok((version, result, None));
        }
        Err(error) => error,
    };
    let has_no_sessions =
        matches!(refused, Error::Rpc { code: code::METHOD_NOT_FOUND | code::UNSUPPORTED_VERSION, .. });
    if may_be_stateless
        && has_no_sessions
        && let ProbeResult::Stateless(found) = discover(transport, options, context).await?
    {
        cache.set(KnownEra::Stateless);
        cache.save(false).await;
        return Ok(found);
    }
    if known != KnownEra::Sessions {
        return Err(after_probe(refused, transport, cache, known));
    }
    // It may be another program by now. A server that exited twice is first started without a probe.
    if !is_after_probe {
        cache.set(KnownEra::Unknown);
        cache.save(false).await;
    }
    Err(refused.into())
}

/// Handles the end of a connection on which a probe was sent. A server that was stateless before failed for another
/// reason.
fn after_probe(error: Error, transport: &Transport, cache: &EraCache, known: KnownEra) -> OpenError {
    let is_over = matches!(error, Error::Closed(_) | Error::Ended { .. } | Error::NoAnswer | Error::Pipe(_));
    let ended_by_probe = known == KnownEra::Unknown && is_over && matches!(transport, Transport::Pipe(_));
    cache.set(if ended_by_probe { KnownEra::Sessions } else { KnownEra::Unknown });
    OpenError { error, ended_by_probe }
}

async fn discover(
    transport: &Transport,
    options: &ConnectOptions,
    context: &InitContext<'_>,
) -> Result<ProbeResult, Error> {
    let stateless = Arc::new(Stateless::new(&options.params));
    if let Transport::Http(http) = transport {
        http.set_stateless(true);
    }
    let mut running = None;
    let asked = async {
        let call = OutgoingCall { method: "server/discover", params: None };
        let begun = transport.begin_stateless(&stateless, call, std::future::pending()).await?;
        await_result(transport, running.insert(begun.ok_or(Error::NoAnswer)?), context).await
    };
    let probed = match timeout(PROBE.min(options.limits.attempt_timeout / 2), asked).await {
        Ok(Ok(answer)) => stateless::initialize_result(&answer).map_or(ProbeResult::Refused, |result| {
            ProbeResult::Stateless((Version::LATEST, result, Some(stateless)))
        }),
        // Wrong credentials and an unreachable server mean the same in both eras.
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

/// Whether a probe that timed out has been answered with an error by now.
async fn refused_late(transport: &Transport, late: Option<PendingCall>, context: &InitContext<'_>) -> bool {
    let Some(mut late) = late else { return false };
    let answered = timeout(Duration::ZERO, await_result(transport, &mut late, context)).await;
    matches!(answered, Ok(Err(Error::Rpc { .. })))
}

async fn initialize(
    transport: &Transport,
    params: &InitializeParams,
    context: &InitContext<'_>,
) -> Result<(Version, Box<RawValue>), Error> {
    let params = params.to_json()?;
    let call = OutgoingCall { method: "initialize", params: Some(&params) };
    let mut running = transport.begin(call, std::future::pending()).await?.ok_or(Error::NoAnswer)?;
    let answer = await_result(transport, &mut running, context).await?;
    let version = protocol_version(&answer)
        .ok_or(Error::Protocol("the response to `initialize` names no protocol version"))?;
    let version = Version::parse(&version)
        .ok_or_else(|| Error::Version { version: context.redactor.quote(&version) })?;
    if let Transport::Http(http) = transport {
        http.agree(version);
    }
    let ready = Notification { method: "notifications/initialized".to_owned(), params: None };
    transport.send(Message::Notification(ready)).await?;
    if let Transport::Http(http) = transport {
        http.listen();
    }
    Ok((version, answer))
}

async fn await_result(
    transport: &Transport,
    running: &mut PendingCall,
    context: &InitContext<'_>,
) -> Result<Box<RawValue>, Error> {
    loop {
        match running.next().await {
            CallEvent::Done(outcome) => return outcome.into_result(context.redactor),
            CallEvent::Lost(error) => return Err(error),
            // A server may log before initialization is complete. If the queue is full, the message is dropped as
            // usual.
            CallEvent::Notification(notification) => {
                let _ = context.messages.try_send(ServerMessage::Notification(notification));
            }
            // The protocol allows only `ping` before initialization is complete.
            CallEvent::Request(request) => {
                let refusal = Response::failure(request.id, code::INVALID_REQUEST, "not yet");
                transport.send(Message::Response(refusal)).await?;
            }
        }
    }
}
