//! A call of the stateless era that asks its host something: it goes on over several requests.
//!
//! The host is asked by the answer to its request, `input_required`, and answers with a request of its own that brings back
//! the state it was given. In between nobody is connected: the call waits in [`Parked`], for a bounded time, and each
//! state is good for one request of whoever the call belongs to. What a service seals into a state is its own business.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::{Notify, oneshot};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::cancel::Cancel;
use super::refusal::{code, failure};
use super::service::{Answered, AskError, Question};
use super::way::Way;
use super::written::Written;
use crate::message::{self, Outcome, Request, may_have};
use crate::secret::Secret;

/// How long a call waits for its host's answers. A person may have to be found first.
const PATIENCE: Duration = Duration::from_secs(900);
/// Calls that wait at one face.
const MOST: usize = 4096;
/// Those of one principal.
const MOST_EACH: usize = 256;
/// Questions that one call has open.
const MOST_QUESTIONS: usize = 64;

/// Whether a host may be asked by the answer to this method.
pub(crate) fn may_ask(method: &str) -> bool {
    matches!(method, "tools/call" | "prompts/get" | "resources/read")
}

/// One call and what it asks, from whichever request of its host it is seen.
#[derive(Default)]
pub(crate) struct Rounds {
    inside: Mutex<Inside>,
    news: Notify,
    /// Cancels the call, not one of its requests.
    pub(crate) cancel: Cancel,
    /// What waits for the call's own answer to be written.
    pub(crate) written: Written,
    /// What its question said in another process, if it is begun anew.
    pub(crate) anew: Option<Box<RawValue>>,
}

#[derive(Default)]
struct Inside {
    /// Not put to the host yet.
    waiting: Vec<Open>,
    /// Put to the host with the last answer.
    asked: Vec<Open>,
    /// What came of the call.
    outcome: Option<Outcome>,
    /// Where the request is answered that the host waits for now.
    way: Option<Way>,
    /// Answers that came with the call itself, before anything was asked.
    early: HashMap<String, Box<RawValue>>,
    last: u64,
}

struct Open {
    key: String,
    method: String,
    params: Option<Box<RawValue>>,
    anew: Option<Box<RawValue>>,
    /// When the host was sent it last.
    sent: Option<Instant>,
    answer: oneshot::Sender<Answered>,
}

/// What the host is told by the answer to one request.
pub(crate) enum Turn {
    /// The call is over.
    Over(Outcome),
    /// It asks.
    Asks {
        /// The `inputRequests`.
        requests: String,
        /// What another process needs to go on, if all that is asked says the same.
        anew: Option<Box<RawValue>>,
    },
}

impl Rounds {
    /// A call as it begins, or begins anew.
    pub(crate) fn new(request: &Request, way: Way, anew: Option<Box<RawValue>>) -> Self {
        let early = answers(request).into_iter().map(|(key, answer)| (key, answer.to_owned())).collect();
        let inside = Mutex::new(Inside { way: Some(way), early, ..Inside::default() });
        Self { inside, anew, ..Self::default() }
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the host all of this with one answer, and waits for what it says to each.
    pub(crate) async fn ask(&self, questions: Vec<Question>) -> Vec<Result<Answered, AskError>> {
        let count = questions.len();
        let Some(answers) = self.put(questions) else { return vec![Err(AskError::TooMany); count] };
        let mut outcomes = Vec::with_capacity(count);
        for answer in answers {
            let outcome = tokio::select! {
                outcome = answer => outcome.map_err(|_| AskError::Gone),
                () = self.cancel.wait() => Err(AskError::Gone),
            };
            outcomes.push(outcome);
        }
        outcomes
    }

    fn put(&self, questions: Vec<Question>) -> Option<Vec<oneshot::Receiver<Answered>>> {
        let mut inside = self.inside();
        if inside.waiting.len() + inside.asked.len() + questions.len() > MOST_QUESTIONS {
            return None;
        }
        let mut answers = Vec::with_capacity(questions.len());
        for Question { key, method, params, anew, must_be_seen } in questions {
            let (answer, receiver) = oneshot::channel();
            answers.push(receiver);
            // Only what has a name that its asker gave it can have been answered before it was asked; and what is asked of a
            // person, only if it was this very question.
            let said = |raw: &Option<Box<RawValue>>| raw.as_deref().map(RawValue::get).map(str::to_owned);
            let is_known = !must_be_seen || anew.is_some() && said(&anew) == said(&self.anew);
            if let Some(early) = key.as_ref().filter(|_| is_known).and_then(|key| inside.early.remove(key)) {
                let _ = answer.send(Answered { outcome: Outcome::Result(early), after: None });
                continue;
            }
            let key = inside.free(key);
            inside.waiting.push(Open { key, method, params, anew, sent: None, answer });
        }
        drop(inside);
        self.news.notify_one();
        Some(answers)
    }

    /// The call is over.
    pub(crate) fn finish(&self, outcome: Outcome) {
        self.inside().outcome = Some(outcome);
        self.news.notify_one();
    }

    /// A request of the host is there: what the call says meanwhile goes this way.
    pub(crate) fn attach(&self, way: Way) {
        self.inside().way = Some(way);
    }

    /// Where the host hears of the call now; nowhere while no request of it is there.
    pub(crate) fn way(&self) -> Option<Way> {
        self.inside().way.clone()
    }

    /// What the host is to be told next.
    pub(crate) async fn turn(&self) -> Turn {
        loop {
            if let Some(turn) = self.look() {
                return turn;
            }
            self.news.notified().await;
        }
    }

    fn look(&self) -> Option<Turn> {
        let mut inside = self.inside();
        let turn = match inside.outcome.take() {
            Some(outcome) => Turn::Over(outcome),
            None => inside.next_round()?,
        };
        inside.way = None;
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
                    drop(open.answer.send(Answered { outcome, after }));
                }
                None => inside.waiting.push(open),
            }
        }
        drop(inside);
        self.news.notify_one();
    }
}

impl Inside {
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
    fn next_round(&mut self) -> Option<Turn> {
        let wanted = std::mem::take(&mut self.waiting).into_iter().filter(|open| !open.answer.is_closed());
        self.asked.extend(wanted);
        self.asked.retain(|open| !open.answer.is_closed());
        if self.asked.is_empty() {
            return None;
        }
        let one = |open: &Open| {
            let key = serde_json::Value::from(open.key.as_str());
            let method = serde_json::Value::from(open.method.as_str());
            let params = open.params.as_deref().map_or("{}", RawValue::get);
            format!(r#"{key}:{{"method":{method},"params":{params}}}"#)
        };
        let all: Vec<String> = self.asked.iter().map(one).collect();
        let anew = self.asked.first().and_then(|first| first.anew.clone());
        let is_one =
            |open: &Open| open.anew.as_deref().map(RawValue::get) == anew.as_deref().map(RawValue::get);
        let anew = if self.asked.iter().all(is_one) { anew } else { None };
        Some(Turn::Asks { requests: format!("{{{}}}", all.join(",")), anew })
    }
}

/// The result that asks a host.
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
struct Brought<'a> {
    #[serde(borrow, default)]
    input_responses: Option<HashMap<String, &'a RawValue>>,
    #[serde(default)]
    request_state: Option<String>,
}

fn brought(request: &Request) -> Option<Brought<'_>> {
    request.params.as_deref().map_or_else(|| Some(Brought::default()), message::members)
}

fn answers(request: &Request) -> HashMap<String, &RawValue> {
    brought(request).and_then(|brought| brought.input_responses).unwrap_or_default()
}

/// The state that a request brings back, if it does.
///
/// # Errors
/// When it brings something back that cannot be read: that is no new call.
pub(crate) fn state(request: &Request) -> Result<Option<String>, Outcome> {
    let is_plain =
        |params: &RawValue| !may_have(params, "requestState") && !may_have(params, "inputResponses");
    if request.params.as_deref().is_none_or(is_plain) {
        return Ok(None);
    }
    let message = "`requestState` must be a text, and `inputResponses` an object, each once";
    brought(request)
        .map(|brought| brought.request_state)
        .ok_or_else(|| failure(code::INVALID_PARAMS, message))
}

/// The calls of one face that wait for their hosts.
pub(crate) struct Parked<P> {
    waiting: Mutex<HashMap<String, Waiting<P>>>,
}

/// Whose a call is that waits.
#[derive(Clone)]
pub(crate) struct Owner<P> {
    pub(crate) principal: P,
    /// The token that let them in, if one did.
    pub(crate) bearer: Option<Secret>,
}

/// One of them, and whoever would give it up. Nobody does once it is taken.
struct Waiting<P> {
    owner: Owner<P>,
    rounds: Arc<Rounds>,
    giving_up: AbortHandle,
}

impl<P> Drop for Waiting<P> {
    fn drop(&mut self) {
        self.giving_up.abort();
    }
}

impl<P> Default for Parked<P> {
    fn default() -> Self {
        Self { waiting: Mutex::default() }
    }
}

impl<P: PartialEq + Send + 'static> Parked<P> {
    fn waiting(&self) -> MutexGuard<'_, HashMap<String, Waiting<P>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a call wait under this ticket; `false` if too many do. One that nobody asks for in time is cancelled.
    pub(crate) fn park(self: &Arc<Self>, ticket: &str, owner: Owner<P>, rounds: &Arc<Rounds>) -> bool {
        let mut waiting = self.waiting();
        let own = waiting.values().filter(|one| one.owner.principal == owner.principal).count();
        if waiting.len() >= MOST || own >= MOST_EACH {
            return false;
        }
        let (parked, name) = (Arc::downgrade(self), ticket.to_owned());
        let cancel = rounds.cancel.clone();
        let giving_up = tokio::spawn(async move {
            tokio::select! {
                () = tokio::time::sleep(PATIENCE) => {}
                () = cancel.wait() => {}
            }
            let late = parked.upgrade().and_then(|parked| parked.waiting().remove(&name));
            if let Some(late) = late {
                late.rounds.cancel.now();
            }
        });
        let (rounds, giving_up) = (Arc::clone(rounds), giving_up.abort_handle());
        waiting.insert(ticket.to_owned(), Waiting { owner, rounds, giving_up });
        true
    }

    /// The call that waits under this ticket, and whose it is. Only for whoever has seen to it that they may have it.
    pub(crate) fn take_any(&self, ticket: &str) -> Option<(Owner<P>, Arc<Rounds>)>
    where
        P: Clone,
    {
        let taken = self.waiting().remove(ticket)?;
        Some((taken.owner.clone(), Arc::clone(&taken.rounds)))
    }

    /// The call that waits under this ticket, if it is theirs. A ticket is good once.
    pub(crate) fn take(&self, ticket: &str, principal: &P) -> Option<Arc<Rounds>> {
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
        let of_token = |_: &String, one: &mut Waiting<P>| one.owner.bearer.as_ref() == Some(bearer);
        let cancelled: Vec<_> = self.waiting().extract_if(of_token).map(|(_, one)| one).collect();
        cancelled.iter().for_each(|one| one.rounds.cancel.now());
    }

    /// Nobody will come back: what waits is cancelled.
    pub(crate) fn close(&self) {
        let all = std::mem::take(&mut *self.waiting());
        all.into_values().for_each(|one| one.rounds.cancel.now());
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

    fn question(key: &str, anew: Option<&str>) -> Question {
        let anew = anew.map(|anew| RawValue::from_string(anew.to_owned()).unwrap());
        let (key, method) = (Some(key.to_owned()), "elicitation/create".to_owned());
        Question { key, method, params: None, anew, must_be_seen: true }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_knows_how_long_after_its_question_was_written_it_came() {
        let way = Way::Queue(tokio::sync::mpsc::channel(1).0);
        let rounds = Arc::new(Rounds::new(&request(&json!({})), way, None));
        let asking = tokio::spawn({
            let rounds = Arc::clone(&rounds);
            async move { rounds.ask(vec![question("a", None)]).await.pop() }
        });
        assert!(matches!(rounds.turn().await, Turn::Asks { .. }));
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
        let way = Way::Queue(tokio::sync::mpsc::channel(1).0);
        let anew = RawValue::from_string("1".to_owned()).ok();
        let early = request(&json!({"inputResponses": {"a": {"action": "decline"}}}));
        let rounds = Rounds::new(&early, way, anew);
        let answered = rounds.ask(vec![question("a", Some("1"))]).await.pop().unwrap().unwrap();
        assert_eq!(answered.after, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_whose_host_never_comes_back_is_cancelled_and_forgotten() {
        let way = Way::Queue(tokio::sync::mpsc::channel(1).0);
        let rounds = Arc::new(Rounds::new(&request(&json!({})), way, None));
        let parked = Arc::new(Parked::<&str>::default());
        let owner = Owner { principal: "ann", bearer: None };
        assert!(parked.park("ticket", owner, &rounds));
        tokio::time::sleep(PATIENCE + Duration::from_secs(1)).await;
        assert!(rounds.cancel.is_cancelled());
        assert!(parked.waiting().is_empty());
        assert_eq!(Arc::strong_count(&rounds), 1);
    }
}
