//! A call of the stateless era that asks its host something: it goes on over several requests.
//!
//! The host is asked by the answer to its request, `input_required`, and answers with a request of its own that brings back
//! the state it was given. In between nobody is connected: the call waits in [`SuspendedCalls`], for a bounded time, and each
//! state is good for one request of whoever the call belongs to. What a service seals into a state is its own business.

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

/// How long a call waits for its host's answers. A person may have to be found first.
const SUSPEND_TIMEOUT: Duration = Duration::from_secs(900);
/// Calls that wait at one face.
const MOST: usize = 4096;
const MOST_EACH: usize = 256;
const MOST_QUESTIONS: usize = 64;

/// Whether a host may be asked by the answer to this method.
pub(crate) fn may_ask(method: &str) -> bool {
    matches!(method, "tools/call" | "prompts/get" | "resources/read")
}

/// One call and what it asks, from whichever request of its host it is seen.
#[derive(Default)]
pub(crate) struct MultiRoundCall {
    inside: Mutex<Rounds>,
    news: Notify,
    /// Cancels the call, not one of its requests.
    pub(crate) cancel: CancellationToken,
    /// What waits for the call's own answer to be written.
    pub(crate) on_flushed: OnFlushed,
    /// What its question said in another process, if it is begun anew.
    pub(crate) resume_data: Option<Box<RawValue>>,
}

#[derive(Default)]
struct Rounds {
    waiting: Vec<OpenRequest>,
    /// Put to the host with the last answer.
    asked: Vec<OpenRequest>,
    outcome: Option<Outcome>,
    /// Where the request is answered that the host waits for now.
    outbound: Option<Outbound>,
    /// Answers that came with the call itself, before anything was asked.
    early: HashMap<String, Box<RawValue>>,
    last: u64,
}

struct OpenRequest {
    key: String,
    method: String,
    params: Option<Box<RawValue>>,
    resume_data: Option<Box<RawValue>>,
    /// When the host was sent it last.
    sent: Option<Instant>,
    answer: oneshot::Sender<HostResponse>,
}

/// What the host is told by the answer to one request.
pub(crate) enum Round {
    Done(Outcome),
    InputRequired {
        /// The `inputRequests`.
        requests: String,
        /// What another process needs to go on, if all that is asked says the same.
        resume_data: Option<Box<RawValue>>,
    },
}

impl MultiRoundCall {
    /// A call as it begins, or begins anew.
    pub(crate) fn new(request: &Request, outbound: Outbound, resume_data: Option<Box<RawValue>>) -> Self {
        let early = answers(request).into_iter().map(|(key, answer)| (key, answer.to_owned())).collect();
        let inside = Mutex::new(Rounds { outbound: Some(outbound), early, ..Rounds::default() });
        Self { inside, resume_data, ..Self::default() }
    }

    fn inside(&self) -> MutexGuard<'_, Rounds> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the host all of this with one answer, and waits for what it says to each.
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
        let mut inside = self.inside();
        if inside.waiting.len() + inside.asked.len() + questions.len() > MOST_QUESTIONS {
            return None;
        }
        let mut answers = Vec::with_capacity(questions.len());
        for ServerRequest { key, method, params, resume_data, must_be_seen } in questions {
            let (answer, receiver) = oneshot::channel();
            answers.push(receiver);
            // Only what has a name that its asker gave it can have been answered before it was asked; and what is asked of a
            // person, only if it was this very question.
            let said = |raw: &Option<Box<RawValue>>| raw.as_deref().map(RawValue::get).map(str::to_owned);
            let is_known =
                !must_be_seen || resume_data.is_some() && said(&resume_data) == said(&self.resume_data);
            if let Some(early) = key.as_ref().filter(|_| is_known).and_then(|key| inside.early.remove(key)) {
                let _ = answer.send(HostResponse { outcome: Outcome::Result(early), after: None });
                continue;
            }
            let key = inside.free(key);
            inside.waiting.push(OpenRequest { key, method, params, resume_data, sent: None, answer });
        }
        drop(inside);
        self.news.notify_one();
        Some(answers)
    }

    pub(crate) fn finish(&self, outcome: Outcome) {
        self.inside().outcome = Some(outcome);
        self.news.notify_one();
    }

    /// A request of the host is there: what the call says meanwhile goes this way.
    pub(crate) fn attach(&self, outbound: Outbound) {
        self.inside().outbound = Some(outbound);
    }

    /// Where the host hears of the call now; nowhere while no request of it is there.
    pub(crate) fn outbound(&self) -> Option<Outbound> {
        self.inside().outbound.clone()
    }

    /// What the host is to be told next.
    pub(crate) async fn turn(&self) -> Round {
        loop {
            if let Some(turn) = self.look() {
                return turn;
            }
            self.news.notified().await;
        }
    }

    fn look(&self) -> Option<Round> {
        let mut inside = self.inside();
        let turn = match inside.outcome.take() {
            Some(outcome) => Round::Done(outcome),
            None => inside.next_round()?,
        };
        inside.outbound = None;
        Some(turn)
    }

    /// The answer that asks is about to be written: from now on the host can answer.
    pub(crate) fn mark_sent(&self) {
        let now = Instant::now();
        self.inside().asked.iter_mut().for_each(|open| open.sent = Some(now));
    }

    /// Takes what a request says to the open questions; those that it says nothing to are asked again.
    pub(crate) fn answer(&self, request: &Request, arrived: Instant) {
        let answers = answers(request);
        let mut inside = self.inside();
        for open in std::mem::take(&mut inside.asked) {
            match answers.get(&open.key) {
                // Whoever asked may have left meanwhile.
                Some(answer) => {
                    let outcome = Outcome::Result((*answer).to_owned());
                    let after = open.sent.map(|sent| arrived.saturating_duration_since(sent));
                    drop(open.answer.send(HostResponse { outcome, after }));
                }
                None => inside.waiting.push(open),
            }
        }
        drop(inside);
        self.news.notify_one();
    }
}

impl Rounds {
    /// A key that no open question has.
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

    /// Everything that waits, as `inputRequests`.
    fn next_round(&mut self) -> Option<Round> {
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
        // Whoever asks may have sent parameters that are none.
        Err(_) => failure(code::INTERNAL_ERROR, "what the host is asked cannot be written"),
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

/// The state that a request brings back, if it does.
///
/// # Errors
/// When it brings something back that cannot be read: that is no new call.
pub(crate) fn state(request: &Request) -> Result<Option<String>, Outcome> {
    let is_plain =
        |params: &RawValue| !may_contain(params, "requestState") && !may_contain(params, "inputResponses");
    if request.params.as_deref().is_none_or(is_plain) {
        return Ok(None);
    }
    let message = "`requestState` must be a text, and `inputResponses` an object, each once";
    resume_params(request)
        .map(|resume_params| resume_params.request_state)
        .ok_or_else(|| failure(code::INVALID_PARAMS, message))
}

/// The calls of one face that wait for their hosts.
pub(crate) struct SuspendedCalls<P> {
    waiting: Mutex<HashMap<String, SuspendedCall<P>>>,
}

/// Whose a call is that waits.
#[derive(Clone)]
pub(crate) struct Owner<P> {
    pub(crate) principal: P,
    /// The token that let them in, if one did.
    pub(crate) bearer: Option<Secret>,
}

/// One of them, and whoever would give it up. Nobody does once it is taken.
struct SuspendedCall<P> {
    owner: Owner<P>,
    rounds: Arc<MultiRoundCall>,
    giving_up: AbortHandle,
}

impl<P> Drop for SuspendedCall<P> {
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
    fn waiting(&self) -> MutexGuard<'_, HashMap<String, SuspendedCall<P>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a call wait under this ticket; `false` if too many do. One that nobody asks for in time is cancelled.
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
        waiting.insert(ticket.to_owned(), SuspendedCall { owner, rounds, giving_up });
        true
    }

    /// The call that waits under this ticket, and whose it is. Only for whoever has seen to it that they may have it.
    pub(crate) fn take_any(&self, ticket: &str) -> Option<(Owner<P>, Arc<MultiRoundCall>)>
    where
        P: Clone,
    {
        let taken = self.waiting().remove(ticket)?;
        Some((taken.owner.clone(), Arc::clone(&taken.rounds)))
    }

    /// The call that waits under this ticket, if it is theirs. A ticket is good once.
    pub(crate) fn take(&self, ticket: &str, principal: &P) -> Option<Arc<MultiRoundCall>> {
        let mut waiting = self.waiting();
        let is_theirs = waiting.get(ticket).is_some_and(|one| one.owner.principal == *principal);
        let taken = is_theirs.then(|| waiting.remove(ticket)).flatten()?;
        Some(Arc::clone(&taken.rounds))
    }

    /// The tokens whose calls wait.
    pub(crate) fn bearers(&self) -> Vec<Secret> {
        self.waiting().values().filter_map(|one| one.owner.bearer.clone()).collect()
    }

    /// Cancels the calls of a token.
    pub(crate) fn cancel_of(&self, bearer: &Secret) {
        let of_token = |_: &String, one: &mut SuspendedCall<P>| one.owner.bearer.as_ref() == Some(bearer);
        let cancelled: Vec<_> = self.waiting().extract_if(of_token).map(|(_, one)| one).collect();
        cancelled.iter().for_each(|one| one.rounds.cancel.cancel());
    }

    /// Nobody will come back: what waits is cancelled.
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
        assert!(matches!(rounds.turn().await, Round::InputRequired { .. }));
        // Until it is written the host has nothing to answer.
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
