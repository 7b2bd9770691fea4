//! Requests between the two eras, and their rounds: a stateless server asks for input with its result (`input_required`), and
//! the answers are sent with another request, perhaps by another process.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use embody_wire::server::{Era, code, failure};
use embody_wire::upstream::OutgoingCall;
use embody_wire::{Error, Outcome};
use serde_json::value::RawValue;
use tokio::time::{sleep, timeout};

use super::era_meta::{strip_era_params, strip_era_result};
use crate::pipeline::respond::raw;
use crate::pipeline::send::{CallResult, UpstreamCall, WAIT_MAX, call_upstream_once};
use crate::server_requests::{Requester, answer_all};

/// How often a stateless server may request input for one call.
const ROUNDS: u32 = 16;
/// Backoff step for a server that asks the client to call again.
const PAUSE: Duration = Duration::from_millis(100);

/// Sends a request to a stateless server, or for a host of the stateless era; resumes one that another process sent.
pub(crate) async fn call_upstream(upstream_call: UpstreamCall<'_>, calling: OutgoingCall<'_>) -> CallResult {
    let UpstreamCall { link, call, .. } = upstream_call;
    let result = resume_or_call(upstream_call, calling).await;
    match result {
        CallResult::Answered(Outcome::Result(result))
            if link.is_stateless() && call.host.era() != Era::Stateless =>
        {
            CallResult::Answered(Outcome::Result(strip_era_result(result, calling.method)))
        }
        result => result,
    }
}

async fn resume_or_call(upstream_call: UpstreamCall<'_>, calling: OutgoingCall<'_>) -> CallResult {
    let UpstreamCall { link, call, .. } = upstream_call;
    let upstream = &*upstream_call.upstream.spec().name;
    // Only the broker sets the `_meta` members that describe the host to such a server.
    let params = calling.params.map(ToOwned::to_owned);
    let params = if link.is_stateless() { strip_era_params(params, calling.method) } else { params };
    let calling = OutgoingCall { params: params.as_deref(), ..calling };
    let result = match call.resume_data().and_then(ResumeData::read) {
        None => call_upstream_once(upstream_call, calling).await,
        // Another process sent the call, and the server requested this input.
        Some(sent) if link.is_stateless() && sent.is_of(upstream, calling.method) => {
            CallResult::Answered(Outcome::Result(sent.result.to_owned()))
        }
        // The call was sent and cannot be resumed.
        Some(sent) if sent.is_of(upstream, calling.method) => return CallResult::Lost(Error::NoAnswer),
        Some(_) => call_upstream_once(upstream_call, calling).await,
    };
    answer_rounds(upstream_call, calling, result).await
}

/// Forwards the server's input requests to the host and sends the answers, until a final result arrives.
async fn answer_rounds(
    upstream_call: UpstreamCall<'_>,
    calling: OutgoingCall<'_>,
    mut result: CallResult,
) -> CallResult {
    let UpstreamCall { session, upstream, link, call, .. } = upstream_call;
    let name = &upstream.spec().name;
    for round in 0..ROUNDS {
        let asks = match &result {
            CallResult::Answered(outcome) => link.input_required(outcome),
            _ => None,
        };
        let Some(asks) = asks else { return result };
        if asks.requests.is_empty() {
            // The server asks to be called again.
            sleep(PAUSE * round).await;
        }
        let requester =
            Requester { session: Arc::clone(session), upstream: Arc::clone(upstream), call: None };
        let resume_data = match &result {
            CallResult::Answered(Outcome::Result(result)) => resume_data(result, name, calling.method),
            _ => None,
        };
        let answers = match timeout(WAIT_MAX, answer_all(&requester, (&asks, resume_data), call)).await {
            Ok(Ok(answers)) => answers,
            Ok(Err(_)) if call.is_cancelled() => return CallResult::Cancelled,
            Ok(Err(refused)) => return CallResult::Answered(refused),
            Err(_) => return CallResult::TimedOut,
        };
        let Some(params) = asks.params(calling.params, &answers) else { return result };
        let again = OutgoingCall { method: calling.method, params: Some(&params) };
        result = match call_upstream_once(upstream_call, again).await {
            // An earlier request of this call was already sent.
            CallResult::Unavailable(_) | CallResult::NotSent(_) => CallResult::Lost(Error::NoAnswer),
            CallResult::CancelledUnsent => CallResult::Cancelled,
            result => result,
        };
    }
    CallResult::Answered(failure(code::INTERNAL_ERROR, format!("`{name}` asked for input too many times")))
}

/// The longest `input_required` result that another process can resume.
const RESUMABLE_BYTES: usize = 256 * 1024;

/// The state that another process needs to resume a call.
#[derive(serde::Serialize, serde::Deserialize)]
struct ResumeData<'a> {
    #[serde(borrow)]
    upstream: Cow<'a, str>,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    result: &'a RawValue,
}

impl<'a> ResumeData<'a> {
    fn read(resume_data: &'a RawValue) -> Option<Self> {
        serde_json::from_str(resume_data.get()).ok()
    }

    fn is_of(&self, upstream: &str, method: &str) -> bool {
        self.upstream == upstream && self.method == method
    }
}

fn resume_data(result: &RawValue, upstream: &str, method: &str) -> Option<Box<RawValue>> {
    let (upstream, method) = (upstream.into(), method.into());
    (result.get().len() <= RESUMABLE_BYTES).then(|| raw(&ResumeData { upstream, method, result }))
}
