//! Send: sends one request to an upstream, at most once. Forwards its notifications to the host in order, answers the
//! server's requests meanwhile, and forwards a cancellation by the host.

use std::sync::Arc;
use std::time::Duration;

use embody_store::Principal;
use embody_store::audit::DecisionKind;
use embody_wire::server::{Call, Era, code};
use embody_wire::upstream::{CallEvent, Link, OutgoingCall, PendingCall};
use embody_wire::{Error, Outcome, Request, Response};
use serde_json::value::RawValue;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::ToolCall;
use super::gate::Permit;
use super::respond::{count_decision, raw};
use crate::meter::trace;
use crate::params::strip_embody_keys;
use crate::server_requests::{Requester, answer_request, too_many_requests};
use crate::session::Session;
use crate::session::untrusted_reads::{APPROVED_KEY, has_text, returns_content};
use crate::upstream::Upstream;
use crate::{Broker, degraded, stateless};

/// How long to wait for a result after a cancellation.
const AFTER_CANCEL: Duration = Duration::from_millis(500);
/// How long a server may take to accept a message that has no response.
const ACCEPT: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) enum CallResult {
    Answered(Outcome),
    Unavailable(String),
    NotSent(Error),
    CancelledUnsent,
    /// Sent, but the connection was lost before the response.
    Lost(Error),
    /// Sent, but not answered in time.
    TimedOut,
    /// Sent, then cancelled by the host.
    Cancelled,
}

/// A request on behalf of a host: its destination and its limits.
#[derive(Clone, Copy)]
pub(crate) struct UpstreamCall<'a> {
    pub(crate) session: &'a Arc<Session>,
    pub(crate) upstream: &'a Arc<Upstream>,
    /// The item that it reads: a tool, or `resource:URI`, `prompt:NAME`, `method:NAME`.
    pub(crate) item: &'a str,
    pub(crate) link: &'a Arc<Link>,
    pub(crate) call: &'a Arc<Call<Principal>>,
    pub(crate) limit: Duration,
    /// Every request of a host to a server needs one.
    pub(crate) permit: &'a Permit,
}

impl UpstreamCall<'_> {
    /// Whether both the host and the server have sessions.
    fn is_of_session_era(&self) -> bool {
        !self.link.is_stateless() && self.call.host.era() != Era::Stateless
    }
}

/// Sends a permitted call. Also returns the upstream's id of the task that continues the call, if any.
pub(super) async fn send(
    broker: &Broker,
    call: &ToolCall<'_>,
    permit: Permit,
) -> (CallResult, Option<String>) {
    // An embedded server trusts this key, because only the broker can set it.
    let approved = call.lasting.as_ref().and_then(|lasting| lasting.approved.as_ref());
    let params_with_approval = approved
        .filter(|_| permit.uses_approval())
        .zip(call.params)
        .and_then(|(approved, params)| degraded::with_meta(params, APPROVED_KEY, approved));
    count_decision(call, DecisionKind::Permit);
    let link = match &call.link {
        Ok(link) => link,
        Err(reason) => return (CallResult::Unavailable(reason.clone()), None),
    };
    let calling =
        OutgoingCall { method: call.method, params: params_with_approval.as_deref().or(call.params) };
    let upstream_call = UpstreamCall {
        session: call.session,
        upstream: call.upstream,
        item: &call.tool.tool,
        link,
        call: call.request,
        limit: call.upstream.spec().call_timeout,
        permit: &permit,
    };
    let began = std::time::Instant::now();
    let result = call_upstream(upstream_call, calling).await;
    call.timing.upstream(began.elapsed());
    if upstream_call.is_of_session_era() || !call.is_tool_call() {
        return (result, None);
    }
    Box::pin(stateless::register_task(broker, call, result)).await
}

/// Sends a request of a host.
pub(crate) async fn call_upstream(upstream_call: UpstreamCall<'_>, calling: OutgoingCall<'_>) -> CallResult {
    let result = if upstream_call.is_of_session_era() {
        call_upstream_once(upstream_call, calling).await
    } else {
        // Boxed because it is rare: inline, it would enlarge the future of every call.
        Box::pin(stateless::call_upstream(upstream_call, calling)).await
    };
    match result {
        CallResult::Answered(outcome) => CallResult::Answered(strip_embody_keys(outcome)),
        result => result,
    }
}

/// Sends the request once and returns an `input_required` result unchanged.
pub(crate) async fn call_upstream_once(
    upstream_call: UpstreamCall<'_>,
    calling: OutgoingCall<'_>,
) -> CallResult {
    let UpstreamCall { session, upstream, item, link, call, limit, permit: Permit { .. } } = upstream_call;
    let name = &upstream.spec().name;
    if let Some(origin) = session.unmarked_origin(name, item, calling.method) {
        Box::pin(session.untrusted_reads.mark(&origin)).await;
    }
    let mut step = trace::upstream_span(upstream, link, calling.method);
    let begun = match link.begin_now(calling) {
        Ok(Some(running)) => Ok(running),
        // Boxed because it is rare: inline, it would enlarge the future of every call.
        Ok(None) => Box::pin(begin(link, calling, call, limit)).await,
        Err(error) => Err(CallResult::NotSent(error)),
    };
    let mut running = match begun {
        Ok(running) => running,
        Err(result) => return step.finish(result, calling.method),
    };
    step.sent(running.number());
    let deadline = Deadline::new(limit, Instant::now());
    let mut watch = Watch { call, deadline, requests: JoinSet::new() };
    let stopped = loop {
        let event = match watch.wait(running.next()).await {
            Ok(event) => event,
            Err(stopped) => break stopped,
        };
        let done = match event {
            CallEvent::Notification(notification)
                if !crate::forward::is_for_host(&notification.method)
                    || !crate::forward::passes_log_level(call, &notification) =>
            {
                Ok(())
            }
            CallEvent::Notification(notification) => {
                // Progress shows that the call is alive.
                if notification.method == "notifications/progress" {
                    watch.deadline.extend(Instant::now());
                }
                if !returns_content(calling.method) && has_text(&notification) {
                    Box::pin(session.mark_read(name, item)).await;
                }
                Box::pin(watch.wait(call.notify(notification))).await
            }
            CallEvent::Request(request) => {
                let requester = Requester {
                    session: Arc::clone(session),
                    upstream: Arc::clone(upstream),
                    call: Some(Arc::clone(call)),
                };
                Box::pin(watch.ask(requester, link, request)).await
            }
            CallEvent::Done(outcome) => return step.finish(CallResult::Answered(outcome), calling.method),
            CallEvent::Lost(error) => return step.finish(CallResult::Lost(error), calling.method),
        };
        if let Err(stopped) = done {
            break stopped;
        }
    };
    let result = match stopped {
        StopReason::Cancelled => {
            let reason = call.cancel_reason().unwrap_or("the host cancelled the call");
            let last = cancel(&mut running, link, reason, CallResult::Cancelled);
            Box::pin(last).await
        }
        StopReason::Late => {
            Box::pin(cancel(&mut running, link, "it took too long", CallResult::TimedOut)).await
        }
    };
    step.finish(result, calling.method)
}

/// Waits for capacity to send, until the host cancels the call or its time limit passes.
async fn begin(
    link: &Link,
    calling: OutgoingCall<'_>,
    call: &Call<Principal>,
    limit: Duration,
) -> Result<PendingCall, CallResult> {
    let mut is_late = false;
    let given_up = async {
        tokio::select! {
            biased;
            () = call.until_cancelled_or_shutdown() => {}
            () = sleep(limit) => is_late = true,
        }
    };
    match link.begin_unless(calling, given_up).await {
        Ok(Some(running)) => Ok(running),
        Ok(None) if is_late => {
            Err(CallResult::NotSent(Error::Timeout { what: "the sending of a call".to_owned(), limit }))
        }
        Ok(None) => Err(CallResult::CancelledUnsent),
        Err(error) => Err(CallResult::NotSent(error)),
    }
}

enum StopReason {
    Cancelled,
    Late,
}

/// A sent call whose result is pending.
struct Watch<'a> {
    call: &'a Call<Principal>,
    deadline: Deadline,
    /// Requests of the server are answered in parallel, so that later messages do not wait for them.
    requests: JoinSet<()>,
}

impl Watch<'_> {
    /// Waits, but returns early when the host cancels the call or the deadline passes; both are checked first.
    async fn wait<T>(&mut self, work: impl Future<Output = T>) -> Result<T, StopReason> {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                biased;
                () = self.call.until_cancelled_or_shutdown() => return Err(StopReason::Cancelled),
                () = sleep_until(self.deadline.until()) => return Err(StopReason::Late),
                Some(_) = self.requests.join_next() => {
                    if self.requests.is_empty() {
                        self.deadline.resume(Instant::now());
                    }
                }
                done = &mut work => return Ok(done),
            }
        }
    }

    async fn ask(
        &mut self,
        requester: Requester,
        link: &Arc<Link>,
        request: Request,
    ) -> Result<(), StopReason> {
        let Some(permit) = requester.upstream.acquire_request_permit() else {
            // Bounded, because the server may not be reading.
            return self.wait(timeout(ACCEPT, link.answer(too_many_requests(request)))).await.map(drop);
        };
        self.deadline.stop(Instant::now());
        let link = Arc::downgrade(link);
        self.requests.spawn(answer_request(requester, link, request, permit, WAIT_MAX));
        Ok(())
    }
}

/// Cancels the call at the server, and accepts a result that arrives shortly after.
async fn cancel(running: &mut PendingCall, link: &Link, reason: &str, otherwise: CallResult) -> CallResult {
    let number = running.number();
    if !matches!(timeout(ACCEPT, link.cancel(number, reason)).await, Ok(Ok(()))) {
        return otherwise;
    }
    let answered = timeout(AFTER_CANCEL, async {
        loop {
            match running.next().await {
                CallEvent::Done(outcome) => return Some(outcome),
                CallEvent::Lost(_) => return None,
                CallEvent::Notification(_) => {}
                CallEvent::Request(request) => {
                    let gone = Response::failure(
                        request.id,
                        code::INTERNAL_ERROR,
                        "the call has ended, so its request cannot be forwarded",
                    );
                    let _ = link.answer(gone).await;
                }
            }
        }
    });
    match answered.await {
        Ok(Some(outcome)) => CallResult::Answered(outcome),
        _ => otherwise,
    }
}

/// Calls a tool of the mind on the broker's own behalf. Drops notifications and rejects requests of the server.
pub(crate) async fn call_mind(
    link: &Arc<Link>,
    tool: &str,
    arguments: &RawValue,
    meta: Option<&RawValue>,
    limit: Duration,
) -> Result<Outcome, String> {
    #[derive(serde::Serialize)]
    struct Params<'a> {
        name: &'a str,
        arguments: &'a RawValue,
        #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
        meta: Option<&'a RawValue>,
    }
    let params = raw(&Params { name: tool, arguments, meta });
    let calling = OutgoingCall { method: "tools/call", params: Some(&params) };
    let (mut number, mut step) = (None, trace::mind_span(link, tool));
    let asked = async {
        let mut running = link.begin(calling).await.map_err(|error| error.to_string())?;
        number = Some(running.number());
        loop {
            match running.next().await {
                CallEvent::Done(outcome) => return Ok(outcome),
                CallEvent::Lost(error) => return Err(error.to_string()),
                CallEvent::Notification(_) => {}
                CallEvent::Request(request) => {
                    let no_receiver = Response::failure(
                        request.id,
                        code::METHOD_NOT_FOUND,
                        "a call of the mind cannot send requests to the host",
                    );
                    let _ = link.answer(no_receiver).await;
                }
            }
        }
    };
    let answered = timeout(limit, asked).await.ok();
    number.iter().for_each(|number| step.sent(*number));
    step.finish_reply(answered.as_ref());
    if let Some(answered) = answered {
        return answered;
    }
    if let Some(number) = number {
        let link = Arc::clone(link);
        tokio::spawn(async move { timeout(ACCEPT, link.cancel(number, "it took too long")).await });
    }
    Err(format!("`{tool}` did not answer within {} ms", limit.as_millis()))
}

/// Progress extends a call up to this bound, or up to the call's own limit if that is longer.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(3600);

#[derive(Debug)]
pub(super) struct Deadline {
    limit: Duration,
    until: Instant,
    end: Instant,
    stopped_at: Option<Instant>,
    /// How much longer the clock may stop: a server must not keep its call open by sending requests without end.
    spare: Duration,
}

impl Deadline {
    pub(super) fn new(limit: Duration, now: Instant) -> Self {
        Self { limit, until: now + limit, end: now + limit.max(WAIT_MAX), stopped_at: None, spare: WAIT_MAX }
    }

    pub(super) fn until(&self) -> Instant {
        if self.stopped_at.is_some() { self.until + self.spare } else { self.until }
    }

    pub(super) fn extend(&mut self, now: Instant) {
        self.until = (self.stopped_at.unwrap_or(now) + self.limit).min(self.end);
    }

    pub(super) fn stop(&mut self, now: Instant) {
        self.stopped_at.get_or_insert(now);
    }

    pub(super) fn resume(&mut self, now: Instant) {
        if let Some(stopped_at) = self.stopped_at.take() {
            let stood = now.saturating_duration_since(stopped_at).min(self.spare);
            self.spare = self.spare.saturating_sub(stood);
            (self.until, self.end) = (self.until + stood, self.end + stood);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn progress_extends_up_to_a_bound() {
        let start = Instant::now();
        let mut deadline = Deadline::new(s(20), start);
        assert_eq!(deadline.until(), start + s(20));
        deadline.extend(start + s(15));
        assert_eq!(deadline.until(), start + s(35));
        deadline.extend(start + s(3590));
        assert_eq!(deadline.until(), start + WAIT_MAX);
        let deadline = Deadline::new(s(7200), start);
        assert_eq!(deadline.until(), start + s(7200), "the operator's own limit holds");
    }

    #[test]
    fn the_time_of_a_question_does_not_count() {
        let start = Instant::now();
        let mut deadline = Deadline::new(s(20), start);
        deadline.stop(start + s(5));
        deadline.stop(start + s(50));
        deadline.resume(start + s(1005));
        deadline.resume(start + s(2000));
        assert_eq!(deadline.until(), start + s(1020), "fifteen were left");
        deadline.stop(start + s(1010));
        deadline.extend(start + s(1500));
        deadline.resume(start + s(2010));
        assert_eq!(deadline.until(), start + s(2030), "progress meanwhile gives the whole limit, not more");
        deadline.extend(start + s(9000));
        assert_eq!(deadline.until(), start + WAIT_MAX + s(2000), "nor does it count against the bound");
    }

    #[test]
    fn the_clock_does_not_stand_still_for_ever() {
        let start = Instant::now();
        let mut deadline = Deadline::new(s(20), start);
        deadline.stop(start);
        deadline.resume(start + WAIT_MAX - s(1));
        deadline.stop(start + WAIT_MAX);
        assert_eq!(deadline.until(), start + WAIT_MAX + s(20), "nineteen are left, and one to stand still");
        deadline.resume(start + WAIT_MAX + s(10));
        assert_eq!(deadline.until(), start + WAIT_MAX + s(20));
    }
}
