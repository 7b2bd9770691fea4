//! Calls of the stateless era that ask their host for input (`input_required`). The host sends another request with the answers
//! and the state it was given; until then the call waits in [`SuspendedCalls`] for a bounded time. Each state is valid for one
//! request of the call's owner. The service decides how to sign a state.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::{Notify, oneshot};
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::errors::{code, failure};
use super::outbound::OnFlushed;
use super::outbound::Outbound;
use super::service::{AskError, HostResponse, ServerRequest};
use crate::message::{self, Outcome, Request, may_contain};
use crate::secret::Secret;

/// How long a call waits for its host's answers. A person may be needed first.
const SUSPEND_TIMEOUT: Duration = Duration::from_secs(900);
/// Suspended calls of one server.
const MOST: usize = 4096;
const MOST_EACH: usize = 256;
const MOST_QUESTIONS: usize = 64;

/// Whether the response to this method may ask the host for input.
pub(crate) fn may_ask(method: &str) -> bool {
    matches!(method, "tools/call" | "prompts/get" | "resources/read")
}

/// One call and its open server requests, shared by all HTTP requests that carry it.
#[derive(Default)]
pub(crate) struct MultiRoundCall {
    state: Mutex<CallState>,
    news: Notify,
    /// Cancels the call, not one of its requests.
    pub(crate) cancel: CancellationToken,
    /// Callbacks for when the call's own response is flushed.
    pub(crate) on_flushed: OnFlushed,
    /// The resume data of its server request in another process, if the call is restarted.
    pub(crate) resume_data: Option<Box<RawValue>>,
}

#[derive(Default)]
struct CallState {
    waiting: Vec<OpenRequest>,
    /// Sent to the host with the last response.
    asked: Vec<OpenRequest>,
    outcome: Option<Outcome>,
    /// Where the current request of the host is answered.
    outbound: Option<Outbound>,
    /// Answers that came with the first request, before anything was asked.
    early: HashMap<String, Box<RawValue>>,
    last: u64,
}

struct OpenRequest {
    key: String,
    method: String,
    params: Option<Box<RawValue>>,
    resume_data: Option<Box<RawValue>>,
    /// When it was last sent to the host.
    sent: Option<Instant>,
    answer: oneshot::Sender<HostResponse>,
}

/// The response to one request of the host.
pub(crate) enum Round {
    Done(Outcome),
    InputRequired {
        /// The `inputRequests`.
        requests: String,
        /// What another process needs to resume the call, if all open requests have the same.
        resume_data: Option<Box<RawValue>>,
    },
}

impl MultiRoundCall {
    /// A new call, or a restarted one.
    pub(crate) fn new(request: &Request, outbound: Outbound, resume_data: Option<Box<RawValue>>) -> Self {
        let early = answers(request).into_iter().map(|(key, answer)| (key, answer.to_owned())).collect();
        let state = Mutex::new(CallState { outbound: Some(outbound), early, ..CallState::default() });
        Self { state, resume_data, ..Self::default() }
    }

    fn state(&self) -> MutexGuard<'_, CallState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the host all questions with one response, and waits for the answer to each.
    pub(crate) async fn ask(&self, questions: Vec<ServerRequest>) -> Vec<Result<HostResponse, AskError>> {
        let count = questions.len();
        let Some(answers) = self.put(questions) else { return vec![Err(AskError::TooMany); count] };
        let mut outcomes = Vec::with_capacity(count);
        for answer in answers {
            let outcome = tokio::select! {
                outcome = answer => outcome.map_err(|_| AskError::Gone),
                () = self.cancel.cancelled() => Err(AskError::Gone),
            };
            outcomes.push(outcome);
        }
        outcomes
    }

    fn put(&self, questions: Vec<ServerRequest>) -> Option<Vec<oneshot::Receiver<HostResponse>>> {
        let mut state = self.state();
        if state.waiting.len() + state.asked.len() + questions.len() > MOST_QUESTIONS {
            return None;
        }
        let mut answers = Vec::with_capacity(questions.len());
        for ServerRequest { key, method, params, resume_data, must_be_seen } in questions {
            let (answer, receiver) = oneshot::channel();
            answers.push(receiver);
            // Only a request with a key chosen by the service can have been answered in advance; a request that a
            // person must see, only if the call was restarted for exactly this request.
            let text = |raw: &Option<Box<RawValue>>| raw.as_deref().map(RawValue::get).map(str::to_owned);
            let is_known =
                !must_be_seen || resume_data.is_some() && text(&resume_data) == text(&self.resume_data);
            if let Some(early) = key.as_ref().filter(|_| is_known).and_then(|key| state.early.remove(key)) {
                let _ = answer.send(HostResponse { outcome: Outcome::Result(early), after: None });
                continue;
            }
            let key = state.free(key);
            state.waiting.push(OpenRequest { key, method, params, resume_data, sent: None, answer });
        }
        drop(state);
        self.news.notify_one();
        Some(answers)
    }

    pub(crate) fn finish(&self, outcome: Outcome) {
        self.state().outcome = Some(outcome);
        self.news.notify_one();
    }

    /// Attaches a request of the host: from now on the messages of the call go to it.
    pub(crate) fn attach(&self, outbound: Outbound) {
        self.state().outbound = Some(outbound);
    }

    /// The current request's outbound queue; `None` while no request is attached.
    pub(crate) fn outbound(&self) -> Option<Outbound> {
        self.state().outbound.clone()
    }

    /// Waits for the next response to the host.
    pub(crate) async fn next_round(&self) -> Round {
        loop {
            if let Some(round) = self.try_round() {
                return round;
            }
            self.news.notified().await;
        }
    }

    fn try_round(&self) -> Option<Round> {
        let mut state = self.state();
        let round = match state.outcome.take() {
            Some(outcome) => Round::Done(outcome),
            None => state.take_round()?,
        };
        state.outbound = None;
        Some(round)
    }

    /// Called when the response that asks is about to be written: from now on the host can answer.
    pub(crate) fn mark_sent(&self) {
        let now = Instant::now();
        self.state().asked.iter_mut().for_each(|open| open.sent = Some(now));
    }

    /// Applies the answers in a request to the open server requests; unanswered ones are asked again.
    pub(crate) fn answer(&self, request: &Request, arrived: Instant) {
        let answers = answers(request);
        let mut state = self.state();
        for open in std::mem::take(&mut state.asked) {
            match answers.get(&open.key) {
                // The asker may have left meanwhile.
                Some(answer) => {
                    let outcome = Outcome::Result((*answer).to_owned());
                    let after = open.sent.map(|sent| arrived.saturating_duration_since(sent));
                    drop(open.answer.send(HostResponse { outcome, after }));
                }
                None => state.waiting.push(open),
            }
        }
        drop(state);
        self.news.notify_one();
    }
}

impl CallState {
    /// A key that no open server request uses.
    fn free(&mut self, wanted: Option<String>) -> String {
        let is_taken = |key: &str| self.waiting.iter().chain(&self.asked).any(|open| open.key == key);
        if let Some(wanted) = wanted.filter(|wanted| !is_taken(wanted)) {
            return wanted;
        }
        loop {
            self.last += 1;
            let key = format!("question-{}", self.last);
            if !self.waiting.iter().chain(&self.asked).any(|open| open.key == key) {
                return key;
            }
        }
    }

    /// Combines all waiting server requests into one `inputRequests`.
    fn take_round(&mut self) -> Option<Round> {
        let wanted = std::mem::take(&mut self.waiting).into_iter().filter(|open| !open.answer.is_closed());
        self.asked.extend(wanted);
        self.asked.retain(|open| !open.answer.is_closed());
        if self.asked.is_empty() {
            return None;
        }
        let one = |open: &OpenRequest| {
            let key = serde_json::Value::from(open.key.as_str());
            let method = serde_json::Value::from(open.method.as_str());
            let params = open.params.as_deref().map_or("{}", RawValue::get);
            format!(r#"{key}:{{"method":{method},"params":{params}}}"#)
        };
        let all: Vec<String> = self.asked.iter().map(one).collect();
        let resume_data = self.asked.first().and_then(|first| first.resume_data.clone());
        let is_one = |open: &OpenRequest| {
            open.resume_data.as_deref().map(RawValue::get) == resume_data.as_deref().map(RawValue::get)
        };
        let resume_data = if self.asked.iter().all(is_one) { resume_data } else { None };
        Some(Round::InputRequired { requests: format!("{{{}}}", all.join(",")), resume_data })
    }
}

pub(crate) fn input_required(requests: &str, state: &str) -> Outcome {
    let state = serde_json::Value::from(state);
    let text =
        format!(r#"{{"resultType":"input_required","inputRequests":{requests},"requestState":{state}}}"#);
    match RawValue::from_string(text) {
        Ok(result) => Outcome::Result(result),
        // The service may have passed invalid parameters.
        Err(_) => failure(code::INTERNAL_ERROR, "the input requests for the host cannot be written"),
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct ResumeParams<'a> {
    #[serde(borrow, default)]
    input_responses: Option<HashMap<String, &'a RawValue>>,
    #[serde(default)]
    request_state: Option<String>,
}

fn resume_params(request: &Request) -> Option<ResumeParams<'_>> {
    request.params.as_deref().map_or_else(|| Some(ResumeParams::default()), message::members)
}

fn answers(request: &Request) -> HashMap<String, &RawValue> {
    resume_params(request).and_then(|resume_params| resume_params.input_responses).unwrap_or_default()
}

/// The state that a request brings back, if any.
///
/// # Errors
/// When `requestState` is present but cannot be read: the request is not a new call.
pub(crate) fn request_state(request: &Request) -> Result<Option<String>, Outcome> {
    let is_plain =
        |params: &RawValue| !may_contain(params, "requestState") && !may_contain(params, "inputResponses");
    if request.params.as_deref().is_none_or(is_plain) {
        return Ok(None);
    }
    let message = "`requestState` must be a string and `inputResponses` an object, each at most once";
    resume_params(request)
        .map(|resume_params| resume_params.request_state)
        .ok_or_else(|| failure(code::INVALID_PARAMS, message))
}

/// The calls of one server that wait for their hosts.
pub(crate) struct SuspendedCalls<P> {
    waiting: Mutex<HashMap<String, SuspendedEntry<P>>>,
}

/// The owner of a suspended call.
#[derive(Clone)]
pub(crate) struct Owner<P> {
    pub(crate) principal: P,
    /// The token the owner authenticated with, if any.
    pub(crate) bearer: Option<Secret>,
}

/// A suspended call and its expiry task, which is aborted when the call is taken.
struct SuspendedEntry<P> {
    owner: Owner<P>,
    rounds: Arc<MultiRoundCall>,
    giving_up: AbortHandle,
}

impl<P> Drop for SuspendedEntry<P> {
    fn drop(&mut self) {
        self.giving_up.abort();
    }
}

impl<P> Default for SuspendedCalls<P> {
    fn default() -> Self {
        Self { waiting: Mutex::default() }
    }
}

impl<P: PartialEq + Send + 'static> SuspendedCalls<P> {
    fn waiting(&self) -> MutexGuard<'_, HashMap<String, SuspendedEntry<P>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Suspends a call under this ticket; returns `false` if there are too many. The call is cancelled if it is not
    /// resumed in time.
    pub(crate) fn suspend(
        self: &Arc<Self>,
        ticket: &str,
        owner: Owner<P>,
        rounds: &Arc<MultiRoundCall>,
    ) -> bool {
        let mut waiting = self.waiting();
        let own = waiting.values().filter(|one| one.owner.principal == owner.principal).count();
        if waiting.len() >= MOST || own >= MOST_EACH {
            return false;
        }
        let (suspended, name) = (Arc::downgrade(self), ticket.to_owned());
        let cancel = rounds.cancel.clone();
        let giving_up = tokio::spawn(async move {
            tokio::select! {
                () = tokio::time::sleep(SUSPEND_TIMEOUT) => {}
                () = cancel.cancelled() => {}
            }
            let late = suspended.upgrade().and_then(|suspended| suspended.waiting().remove(&name));
            if let Some(late) = late {
                late.rounds.cancel.cancel();
            }
        });
        let (rounds, giving_up) = (Arc::clone(rounds), giving_up.abort_handle());
        waiting.insert(ticket.to_owned(), SuspendedEntry { owner, rounds, giving_up });
        true
    }

    /// The call with this ticket, and its owner. The caller must check ownership first.
    pub(crate) fn take_any(&self, ticket: &str) -> Option<(Owner<P>, Arc<MultiRoundCall>)>
    where
        P: Clone,
    {
        let taken = self.waiting().remove(ticket)?;
        Some((taken.owner.clone(), Arc::clone(&taken.rounds)))
    }

    /// The call with this ticket, if it belongs to `principal`. A ticket is valid once.
    pub(crate) fn take(&self, ticket: &str, principal: &P) -> Option<Arc<MultiRoundCall>> {
        let mut waiting = self.waiting();
        let is_theirs = waiting.get(ticket).is_some_and(|one| one.owner.principal == *principal);
        let taken = is_theirs.then(|| waiting.remove(ticket)).flatten()?;
        Some(Arc::clone(&taken.rounds))
    }

    /// The tokens that have suspended calls.
    pub(crate) fn bearers(&self) -> Vec<Secret> {
        self.waiting().values().filter_map(|one| one.owner.bearer.clone()).collect()
    }

    /// Cancels the suspended calls of a token.
    pub(crate) fn cancel_of(&self, bearer: &Secret) {
        let of_token = |_: &String, one: &mut SuspendedEntry<P>| one.owner.bearer.as_ref() == Some(bearer);
        let cancelled: Vec<_> = self.waiting().extract_if(of_token).map(|(_, one)| one).collect();
        cancelled.iter().for_each(|one| one.rounds.cancel.cancel());
    }

    /// Cancels all suspended calls: no host can resume them.
    pub(crate) fn close(&self) {
        let all = std::mem::take(&mut *self.waiting());
        all.into_values().for_each(|one| one.rounds.cancel.cancel());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::time::advance;

    use super::*;

    fn request(params: &serde_json::Value) -> Request {
        let params = RawValue::from_string(params.to_string()).ok();
        Request { id: 1.into(), method: "tools/call".to_owned(), params }
    }

    fn question(key: &str, resume_data: Option<&str>) -> ServerRequest {
        let resume_data =
            resume_data.map(|resume_data| RawValue::from_string(resume_data.to_owned()).unwrap());
        let (key, method) = (Some(key.to_owned()), "elicitation/create".to_owned());
        ServerRequest { key, method, params: None, resume_data, must_be_seen: true }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_knows_how_long_after_its_question_was_written_it_came() {
        let outbound = Outbound::Pipe(tokio::sync::mpsc::channel(1).0);
        let rounds = Arc::new(MultiRoundCall::new(&request(&json!({})), outbound, None));
        let asking = tokio::spawn({
            let rounds = Arc::clone(&rounds);
            async move { rounds.ask(vec![question("a", None)]).await.pop() }
        });
        assert!(matches!(rounds.next_round().await, Round::InputRequired { .. }));
        // Until the response is written, the host has nothing to answer.
        advance(Duration::from_secs(5)).await;
        rounds.mark_sent();
        advance(Duration::from_millis(499)).await;
        let answers = request(&json!({"inputResponses": {"a": {"action": "decline"}}}));
        rounds.answer(&answers, Instant::now());
        advance(Duration::from_secs(5)).await;
        let answered = asking.await.unwrap().unwrap().unwrap();
        assert_eq!(answered.after, Some(Duration::from_millis(499)));
    }

    #[tokio::test]
    async fn how_long_ago_another_process_asked_is_not_known() {
        let outbound = Outbound::Pipe(tokio::sync::mpsc::channel(1).0);
        let resume_data = RawValue::from_string("1".to_owned()).ok();
        let early = request(&json!({"inputResponses": {"a": {"action": "decline"}}}));
        let rounds = MultiRoundCall::new(&early, outbound, resume_data);
        let answered = rounds.ask(vec![question("a", Some("1"))]).await.pop().unwrap().unwrap();
        assert_eq!(answered.after, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_whose_host_never_comes_back_is_cancelled_and_forgotten() {
        let outbound = Outbound::Pipe(tokio::sync::mpsc::channel(1).0);
        let rounds = Arc::new(MultiRoundCall::new(&request(&json!({})), outbound, None));
        let suspended = Arc::new(SuspendedCalls::<&str>::default());
        let owner = Owner { principal: "ann", bearer: None };
        assert!(suspended.suspend("ticket", owner, &rounds));
        tokio::time::sleep(SUSPEND_TIMEOUT + Duration::from_secs(1)).await;
        assert!(rounds.cancel.is_cancelled());
        assert!(suspended.waiting().is_empty());
        assert_eq!(Arc::strong_count(&rounds), 1);
    }
}
