//! One contact with a server outside any session: connects, lists its tools, and closes. For the operator's commands.

use std::time::{Duration, Instant};

use embody_wire::upstream::{ConnectOptions, Link, Route, StderrTail};
use embody_wire::{InitializeParams, Kind, Limits};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::initialize::InitializeResult;
use super::state::error_text;
use super::{RawTool, Spec, listing};

/// Messages of the server that are not read; more are dropped.
const MESSAGES: usize = 64;
/// The time to end a connection that does not answer.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct CheckedServer {
    pub tools: Vec<RawTool>,
    pub transport: &'static str,
    /// How long it took until the tools were listed.
    pub took: Duration,
    /// Whether tools were left out, and why.
    pub left_out: Option<String>,
}

#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub struct CheckError {
    pub kind: CheckErrorKind,
    pub reason: String,
    /// The last lines that the process wrote to stderr, with secrets masked.
    pub stderr: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckErrorKind {
    /// No session was opened.
    Connect(Kind),
    /// The process ended before it answered.
    Ended,
    /// Its session works, but its tools cannot be listed.
    List,
    /// It is an embody broker.
    Broker,
    /// It took longer than the limit.
    Timeout,
}

/// Connects to the server and lists its tools, in `limit` altogether. The process ends before this returns.
///
/// # Errors
/// When it cannot be reached, rejects the credentials, is too slow, or lists no tools that can be read.
pub async fn check(spec: &Spec, limit: Duration) -> Result<CheckedServer, CheckError> {
    let stderr = StderrTail::default();
    let mut route = spec.route.clone();
    if let Route::Child(child) = &mut route {
        child.stderr = Some(stderr.clone());
    }
    // A process may have to be downloaded first; an address is tried as a session tries it.
    let attempt_timeout = match route {
        Route::Child(_) => limit,
        _ => spec.limits.attempt_timeout.min(limit),
    };
    let options = ConnectOptions {
        route,
        params: InitializeParams::named(crate::broker::NAME),
        tokens: spec.tokens.clone(),
        proxies: spec.proxies.clone(),
        limits: Limits { attempt_timeout, ..spec.limits.clone() },
        era: spec.era.clone(),
    };
    let fail = |kind, reason| CheckError { kind, reason, stderr: stderr.lines() };
    let started = Instant::now();
    let (messages, _inbox) = mpsc::channel(MESSAGES);
    let link = match timeout(limit, Box::pin(Link::open(&options, messages.clone()))).await {
        Ok(Ok(link)) => link,
        Ok(Err(error)) => {
            let error = innermost(&error);
            let kind = match (error, error.kind()) {
                (embody_wire::Error::Ended { .. }, _) => CheckErrorKind::Ended,
                (_, Kind::Timeout) => CheckErrorKind::Timeout,
                (_, kind) => CheckErrorKind::Connect(kind),
            };
            return Err(fail(kind, error_text(error)));
        }
        Err(_) => {
            return Err(fail(CheckErrorKind::Timeout, format!("no answer within {} s", limit.as_secs())));
        }
    };
    let initialized = InitializeResult::read(link.initialize_result());
    let listed = if initialized.is_broker() {
        Err((CheckErrorKind::Broker, "it is an embody broker, which cannot be a body of another".to_owned()))
    } else if initialized.has_tools() {
        let rest = limit.saturating_sub(started.elapsed()).max(Duration::from_secs(1));
        let listed = Box::pin(listing::read(&link, &messages, rest.min(spec.limits.request_timeout))).await;
        listed.map_err(|reason| (CheckErrorKind::List, format!("its tools cannot be listed: {reason}")))
    } else {
        Ok(listing::Listing::default())
    };
    let (transport, took) = (link.transport(), started.elapsed());
    let _ = timeout(CLOSE_TIMEOUT, link.close()).await;
    let (tools, left_out) = listed.map_err(|(kind, reason)| fail(kind, reason))?.into_parts();
    Ok(CheckedServer { tools: tools.to_vec(), transport, took, left_out })
}

/// Why the connection closed, if the error says only that it did.
fn innermost(error: &embody_wire::Error) -> &embody_wire::Error {
    match error {
        embody_wire::Error::Closed(cause) => innermost(cause),
        error => error,
    }
}
