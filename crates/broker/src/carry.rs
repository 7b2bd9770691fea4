//! One request on its way to an upstream and back: what is said about it on the way reaches the host in its order, what
//! is asked is answered, and when the host no longer wants it the upstream is told.

mod patience;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use embody_wire::serve::{Call, Era, code, failure};
use embody_wire::upstream::{CallEvent, Calling, Link, Running};
use embody_wire::{Error, Outcome, Request, Response};
use serde_json::value::RawValue;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use self::patience::Patience;
use crate::Principal;
use crate::gate::Permit;
use crate::meter::trace;
use crate::results::raw;
use crate::reverse::{Asker, answer_all, give, too_many};
use crate::session::Session;
use crate::session::exposure::{has_text, returns_content};
use crate::stateless::{result_without_era, without_era, without_ours};

/// How long a server has for its last word about a call that nobody wants any more.
const LAST_WORD: Duration = Duration::from_millis(500);
/// How often a server without sessions may ask for one call.
const ROUNDS: u32 = 16;
/// How long one waits that only wants to be asked again, longer each time.
const PAUSE: Duration = Duration::from_millis(100);
/// How long a server has to take note of something that it need not answer.
const COURTESY: Duration = Duration::from_secs(2);

/// What came of it.
#[derive(Debug)]
pub(crate) enum Carried {
    /// The server's own answer.
    Answered(Outcome),
    /// Nobody is there to send it to.
    Away(String),
    /// It was not sent.
    NotSent(Error),
    /// The host did not want it any more before it was sent. It was not, and has no effect.
    Withdrawn,
    /// It was sent, and there is no answer.
    Lost(Error),
    /// It was sent, and took too long.
    TimedOut,
    /// It was sent, and the host does not want it any more.
    Unwanted,
}

/// On whose behalf a request is carried, where to, and how long it may take.
#[derive(Clone, Copy)]
pub(crate) struct Trip<'a> {
    pub(crate) session: &'a Arc<Session>,
    pub(crate) upstream: &'a str,
    /// What is read there: a tool, or `resource:URI`, `prompt:NAME`, `method:NAME`.
    pub(crate) what: &'a str,
    pub(crate) link: &'a Arc<Link>,
    pub(crate) call: &'a Arc<Call<Principal>>,
    pub(crate) limit: Duration,
    /// Nothing of a host reaches a server without one.
    pub(crate) permit: &'a Permit,
}

/// Carries a request of a host. What a server without sessions asks by its answer is answered by another request; a host of
/// the session era gets its result without the members of the other era.
pub(crate) async fn carry(trip: Trip<'_>, calling: Calling<'_>) -> Carried {
    let is_stateless_for_sessions = trip.link.is_stateless() && trip.call.host.era() != Era::Stateless;
    let carried = if !trip.link.is_stateless() && trip.call.anew().is_none() {
        carry_once(trip, calling).await
    } else {
        Box::pin(carry_on(trip, calling)).await
    };
    let Carried::Answered(outcome) = carried else { return carried };
    Carried::Answered(match without_ours(outcome) {
        Outcome::Result(result) if is_stateless_for_sessions => {
            Outcome::Result(result_without_era(result, calling.method))
        }
        outcome => outcome,
    })
}

/// The same to a server without sessions, or for a call that another process has begun.
async fn carry_on(trip: Trip<'_>, calling: Calling<'_>) -> Carried {
    let Trip { upstream, link, call, .. } = trip;
    // What such a server is told of its host, and what it has asked, only the broker says.
    let params = calling.params.map(ToOwned::to_owned);
    let params = if link.is_stateless() { without_era(params, calling.method) } else { params };
    let calling = Calling { params: params.as_deref(), ..calling };
    let carried = match call.anew().and_then(GoingOn::read) {
        None => carry_once(trip, calling).await,
        // It was sent by another process, and asked this.
        Some(sent) if link.is_stateless() && sent.is_of(upstream, calling.method) => {
            Carried::Answered(Outcome::Result(sent.result.to_owned()))
        }
        // It was sent, and cannot be gone on with; a request on the way to it is another one.
        Some(sent) if sent.is_of(upstream, calling.method) => return Carried::Lost(Error::NoAnswer),
        Some(_) => carry_once(trip, calling).await,
    };
    rounds(trip, calling, carried).await
}

/// Asks the host whatever the server asks, and goes on with the answers.
async fn rounds(trip: Trip<'_>, calling: Calling<'_>, mut carried: Carried) -> Carried {
    let Trip { session, upstream, link, call, .. } = trip;
    for round in 0..ROUNDS {
        let asks = match &carried {
            Carried::Answered(outcome) => link.input_required(outcome),
            _ => None,
        };
        let Some(asks) = asks else { return carried };
        if asks.requests.is_empty() {
            // It only wants to be asked again.
            sleep(PAUSE * round).await;
        }
        let asker = Asker { session: Arc::clone(session), upstream: upstream.to_owned(), call: None };
        let anew = match &carried {
            Carried::Answered(Outcome::Result(result)) => going_on(result, upstream, calling.method),
            _ => None,
        };
        let answers = match timeout(patience::LONGEST, answer_all(&asker, (&asks, anew), call)).await {
            Ok(Ok(answers)) => answers,
            Ok(Err(_)) if call.is_cancelled() => return Carried::Unwanted,
            Ok(Err(refused)) => return Carried::Answered(refused),
            Err(_) => return Carried::TimedOut,
        };
        let Some(params) = asks.params(calling.params, &answers) else { return carried };
        let again = Calling { method: calling.method, params: Some(&params) };
        carried = match carry_once(trip, again).await {
            // It was sent before, whatever became of this part of it.
            Carried::Away(_) | Carried::NotSent(_) => Carried::Lost(Error::NoAnswer),
            Carried::Withdrawn => Carried::Unwanted,
            carried => carried,
        };
    }
    Carried::Answered(failure(code::INTERNAL_ERROR, format!("`{upstream}` asks without end")))
}

/// The longest question of a server that another process could go on with.
const LONGEST_QUESTION: usize = 256 * 1024;

/// What another process needs to go on with a call of a server that has asked this.
#[derive(serde::Serialize, serde::Deserialize)]
struct GoingOn<'a> {
    #[serde(borrow)]
    upstream: Cow<'a, str>,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    result: &'a RawValue,
}

impl<'a> GoingOn<'a> {
    fn read(anew: &'a RawValue) -> Option<Self> {
        serde_json::from_str(anew.get()).ok()
    }

    fn is_of(&self, upstream: &str, method: &str) -> bool {
        self.upstream == upstream && self.method == method
    }
}

fn going_on(result: &RawValue, upstream: &str, method: &str) -> Option<Box<RawValue>> {
    let (upstream, method) = (upstream.into(), method.into());
    (result.get().len() <= LONGEST_QUESTION).then(|| raw(&GoingOn { upstream, method, result }))
}

/// Carries it once: whatever a server without sessions asks by its answer is the answer.
pub(crate) async fn carry_once(trip: Trip<'_>, calling: Calling<'_>) -> Carried {
    let Trip { session, upstream, what, link, call, limit, permit: Permit { .. } } = trip;
    if let Some(origin) = session.unmarked(upstream, what, calling.method) {
        Box::pin(session.exposure.mark(&origin)).await;
    }
    let mut step = trace::towards(session, upstream, link, calling.method);
    let begun = match link.begin_now(calling) {
        Ok(Some(running)) => Ok(running),
        // What seldom happens makes room for itself: every call would carry it.
        Ok(None) => Box::pin(begin(link, calling, call, limit)).await,
        Err(error) => Err(Carried::NotSent(error)),
    };
    let mut running = match begun {
        Ok(running) => running,
        Err(carried) => return step.over(carried, calling.method),
    };
    step.sent(running.number());
    let patience = Patience::new(limit, Instant::now());
    let mut watch = Watch { call, patience, questions: JoinSet::new() };
    let over = loop {
        let event = match watch.wait(running.next()).await {
            Ok(event) => event,
            Err(over) => break over,
        };
        let done = match event {
            CallEvent::Notification(notification)
                if !crate::forward::is_for_host(&notification.method)
                    || !crate::forward::is_wanted(call, &notification) =>
            {
                Ok(())
            }
            CallEvent::Notification(notification) => {
                // A call that tells of its progress is alive.
                if notification.method == "notifications/progress" {
                    watch.patience.extend(Instant::now());
                }
                if !returns_content(calling.method) && has_text(&notification) {
                    Box::pin(session.mark_read(upstream, what)).await;
                }
                Box::pin(watch.wait(call.notify(notification))).await
            }
            CallEvent::Request(request) => {
                let asker = Asker {
                    session: Arc::clone(session),
                    upstream: upstream.to_owned(),
                    call: Some(Arc::clone(call)),
                };
                Box::pin(watch.ask(asker, link, request)).await
            }
            CallEvent::Done(outcome) => return step.over(Carried::Answered(outcome), calling.method),
            CallEvent::Lost(error) => return step.over(Carried::Lost(error), calling.method),
        };
        if let Err(over) = done {
            break over;
        }
    };
    let carried = match over {
        Over::Unwanted => {
            let reason = call.cancel_reason().unwrap_or("the host has cancelled the call");
            let last = last_word(&mut running, link, reason, Carried::Unwanted);
            Box::pin(last).await
        }
        Over::Late => Box::pin(last_word(&mut running, link, "it took too long", Carried::TimedOut)).await,
    };
    step.over(carried, calling.method)
}

/// Sends it, for as long as it is wanted and there is time.
async fn begin(
    link: &Link,
    calling: Calling<'_>,
    call: &Call<Principal>,
    limit: Duration,
) -> Result<Running, Carried> {
    let mut is_late = false;
    let given_up = async {
        tokio::select! {
            biased;
            () = call.until_unwanted() => {}
            () = sleep(limit) => is_late = true,
        }
    };
    match link.begin_unless(calling, given_up).await {
        Ok(Some(running)) => Ok(running),
        Ok(None) if is_late => {
            Err(Carried::NotSent(Error::Timeout { what: "the sending of a call".to_owned(), limit }))
        }
        Ok(None) => Err(Carried::Withdrawn),
        Err(error) => Err(Carried::NotSent(error)),
    }
}

/// Why a call is not waited for any longer.
enum Over {
    Unwanted,
    Late,
}

/// A call that was sent, while it is waited for.
struct Watch<'a> {
    call: &'a Call<Principal>,
    patience: Patience,
    /// Whoever asks is answered beside the stream: what follows a question does not wait for it.
    questions: JoinSet<()>,
}

impl Watch<'_> {
    /// Waits for something for as long as the call is wanted and has time. These come first: what a server or a host does
    /// or does not do must not stand before them.
    async fn wait<T>(&mut self, what: impl Future<Output = T>) -> Result<T, Over> {
        let mut what = std::pin::pin!(what);
        loop {
            tokio::select! {
                biased;
                () = self.call.until_unwanted() => return Err(Over::Unwanted),
                () = sleep_until(self.patience.until()) => return Err(Over::Late),
                Some(_) = self.questions.join_next() => {
                    if self.questions.is_empty() {
                        self.patience.go_on(Instant::now());
                    }
                }
                done = &mut what => return Ok(done),
            }
        }
    }

    /// Has a question of the server answered.
    async fn ask(&mut self, asker: Asker, link: &Arc<Link>, request: Request) -> Result<(), Over> {
        let place = asker.session.upstream(&asker.upstream).and_then(|upstream| upstream.question());
        let Some(place) = place else {
            // A server that does not read its answers gets none.
            return self.wait(timeout(COURTESY, link.answer(too_many(request)))).await.map(drop);
        };
        self.patience.stop(Instant::now());
        let link = Arc::downgrade(link);
        // A person may be slow, but nobody is asked for ever.
        self.questions.spawn(give(asker, link, request, place, patience::LONGEST));
        Ok(())
    }
}

/// Tells the server that nobody waits, and takes the answer if it comes at once.
async fn last_word(running: &mut Running, link: &Link, reason: &str, otherwise: Carried) -> Carried {
    let number = running.number();
    if !matches!(timeout(COURTESY, link.cancel(number, reason)).await, Ok(Ok(()))) {
        return otherwise;
    }
    let answered = timeout(LAST_WORD, async {
        loop {
            match running.next().await {
                CallEvent::Done(outcome) => return Some(outcome),
                CallEvent::Lost(_) => return None,
                CallEvent::Notification(_) => {}
                CallEvent::Request(request) => {
                    let gone =
                        Response::failure(request.id, code::INTERNAL_ERROR, "nobody can be asked any more");
                    let _ = link.answer(gone).await;
                }
            }
        }
    });
    match answered.await {
        Ok(Some(outcome)) => Carried::Answered(outcome),
        _ => otherwise,
    }
}

/// Calls a tool on the broker's own behalf. What is said on the way is for nobody, and nobody can be asked.
pub(crate) async fn ask(
    link: &Arc<Link>,
    tool: &str,
    arguments: &RawValue,
    limit: Duration,
) -> Result<Outcome, String> {
    ask_with(link, tool, arguments, None, limit).await
}

/// The same with `_meta`.
pub(crate) async fn ask_with(
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
    let calling = Calling { method: "tools/call", params: Some(&params) };
    let (mut number, mut step) = (None, trace::towards_mind(link, tool));
    let asked = async {
        let mut running = link.begin(calling).await.map_err(|error| error.to_string())?;
        number = Some(running.number());
        loop {
            match running.next().await {
                CallEvent::Done(outcome) => return Ok(outcome),
                CallEvent::Lost(error) => return Err(error.to_string()),
                CallEvent::Notification(_) => {}
                CallEvent::Request(request) => {
                    let nobody =
                        Response::failure(request.id, code::METHOD_NOT_FOUND, "nobody can be asked here");
                    let _ = link.answer(nobody).await;
                }
            }
        }
    };
    let answered = timeout(limit, asked).await.ok();
    number.iter().for_each(|number| step.sent(*number));
    step.answered(answered.as_ref());
    if let Some(answered) = answered {
        return answered;
    }
    if let Some(number) = number {
        // Whoever asked has waited long enough.
        let link = Arc::clone(link);
        tokio::spawn(async move { timeout(COURTESY, link.cancel(number, "it took too long")).await });
    }
    Err(format!("`{tool}` gave no answer within {} ms", limit.as_millis()))
}
