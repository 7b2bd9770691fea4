//! One tool call, on its way through the house:
//!
//! face → session → classify → observe(before) → gate → [approval → gate] → audit(intent) → upstream → audit(outcome) →
//! outbox → face
//!
//! Nothing else sends a host's tool call to an upstream, and this sends nothing without a [`Permit`]. A request that is not
//! a tool call takes the same way from the gate on ([`Broker::request`]).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use embody_store::{ApprovalUse, Begun, Intent, Outcome as Ended, UseApproval};
use embody_wire::serve::{Call, Era, Question, code, failure};
use embody_wire::upstream::Calling;
use embody_wire::{Outcome, mirrored, off_runtime};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::approval::{Answer, Wanted, bound_policy, flag_text};
use crate::arguments::Arguments;
use crate::asked::Asked;
use crate::carry::{Carried, Trip, carry};
use crate::catalogue::{Offered, Texts};
use crate::gate::{Approval, Decision, Mind, Permit, Pin, Situation, Why, decide};
use crate::meter::{self, Timing, Verdict, trace};
use crate::observe::after::{After, Told};
use crate::observe::{self, View};
use crate::policy::{Annotations, Class, Facts, Ruled, Via};
use crate::results::{Refused, raw};
use crate::session::delivery::Arrival;
use crate::session::exposure::{self, Lasting};
use crate::session::{Session, observes_itself};
use crate::upstream::{Health, Hold, Role, Upstream};
use crate::words::{ended, on_record};
use crate::{Broker, Principal, degraded, own};

/// Why a call is denied that only a form may approve.
const NO_RIGHT: &str =
    "the rules allow only a form in the host to approve it, and a form in this host is not the owner's";
const CALL: &str = "tools/call";

/// A call that is known for what it is.
pub(crate) struct Act<'a> {
    pub(crate) session: &'a Arc<Session>,
    pub(crate) call: &'a Arc<Call<Principal>>,
    pub(crate) tool: &'a Offered,
    pub(crate) upstream: &'a Arc<Upstream>,
    pub(crate) link: Result<Hold, String>,
    /// `tools/call`, or the method of a request that is no tool call: `tool` is then what it reads.
    pub(crate) method: &'a str,
    pub(crate) params: Option<&'a RawValue>,
    pub(crate) wants_task: bool,
    pub(crate) arguments: Arc<Arguments>,
    pub(crate) ruled: Ruled,
    /// What is said of a call that needs approval because of what the agent has read.
    pub(crate) lasting: Option<Lasting>,
    pub(crate) id: String,
    pub(crate) began: tokio::time::Instant,
    pub(crate) meter: &'a meter::Body,
    pub(crate) timing: Timing,
}

impl Act<'_> {
    pub(crate) fn is_tool_call(&self) -> bool {
        self.method == CALL
    }

    /// What tells this call from every other: its server, its tool and its arguments.
    pub(crate) fn digest(&self) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new();
        for part in [&*self.tool.upstream, &self.tool.tool, self.arguments.canonical()] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        hasher.finalize()
    }
}

/// The gate said yes.
struct Passed {
    permit: Permit,
    approval: Option<String>,
}

impl Broker {
    /// Calls a tool of the mind or of a body.
    pub(crate) async fn proxy(
        &self,
        session: &Arc<Session>,
        call: &Arc<Call<Principal>>,
        asked: Asked,
    ) -> Outcome {
        let catalogue = session.catalogue_for(&self.setup, &asked).await;
        let whose = asked.find(&catalogue).and_then(|tool| session.upstream(&tool.upstream));
        let Some(upstream) = whose else { return self.unknown(session, &asked) };
        upstream.started().await;
        let link = upstream.link().await.map_err(|away| away.to_string());
        // A server that was started again may describe its tools otherwise.
        let catalogue = session.seen(&self.setup, upstream).await;
        let link = link.and_then(|hold| upstream.compared(hold).map_err(|away| away.to_string()));
        let link = link.and_then(|hold| match session.has_compared(upstream) {
            true => Ok(hold),
            false => Err("its tools could not be compared with their pins".to_owned()),
        });
        let found = asked.find(&catalogue).filter(|tool| *tool.upstream == *upstream.spec().name);
        let Some(tool) = found else { return self.unknown(session, &asked) };
        let max_bytes = upstream.spec().role.arguments_max_bytes();
        let arguments = Arguments::read_within(asked.arguments.as_deref(), max_bytes);
        let arguments = arguments.and_then(|arguments| match &asked.beside {
            Some(beside) => arguments.beside(beside, max_bytes),
            None => Ok(arguments),
        });
        let arguments = match arguments {
            Ok(arguments) => Arc::new(arguments),
            Err(error) => return self.rejected(code::INVALID_PARAMS, error.to_string()),
        };
        if let Some(message) = misstated(call, tool, &arguments) {
            return self.rejected(code::HEADER_MISMATCH, message);
        }
        let params = asked.params_for(&tool.tool);
        let bytes = arguments.canonical().len();
        let ruled = off_runtime(bytes, || self.classify(session, tool, upstream, &arguments));
        let (ruled, lasting) = Box::pin(self.guard_lasting(session, tool, upstream, &arguments, ruled)).await;
        let id = uuid::Uuid::now_v7().simple().to_string();
        let (params, wants_task) = (Some(&*params), asked.wants_task);
        let (meter, timing) = (self.setup.meter.body(&tool.upstream), Timing::since(asked.began));
        let act = Act {
            session,
            call,
            tool,
            upstream,
            link,
            method: CALL,
            params,
            wants_task,
            arguments,
            ruled,
            lasting,
            id,
            began: tokio::time::Instant::from_std(asked.began),
            meter,
            timing,
        };
        trace::known(&act);
        self.conduct(&act).await
    }

    /// Says that this is no call of anything.
    pub(crate) fn rejected(&self, code: i64, message: String) -> Outcome {
        self.setup.meter.rejected.add(1);
        failure(code, message)
    }

    async fn conduct(&self, act: &Act<'_>) -> Outcome {
        // Whatever is logged on the way says which call it was, by the id that the audit has too.
        tracing::debug!(
            call = act.id,
            session = act.session.id,
            body = &*act.tool.upstream,
            tool = act.tool.tool,
            class = act.ruled.class.name(),
            "a call"
        );
        if act.ruled.class != Class::Read {
            Box::pin(act.session.refresh_delivery(&self.setup)).await;
        }
        if act.session.wants_to_boot() {
            let booting = act.session.boot_for_a_call(&self.setup, act.ruled.class == Class::Read);
            act.timing.aside(Box::pin(booting)).await;
        }
        let view = self.observe_before(act).await;
        match self.gate(act, &view).await {
            Ok(passed) if act.ruled.class == Class::Read && !passed.permit.uses_approval() => {
                let sent = self.read(act, passed).await;
                self.sent(act, sent)
            }
            // What is seldom or takes long anyway makes room for itself: every call would carry it.
            Ok(passed) => match Box::pin(self.write(act, passed)).await {
                Ok(sent) => self.sent(act, sent),
                Err(refused) => Box::pin(self.refuse(act, refused)).await,
            },
            Err(refused) => Box::pin(self.refuse(act, refused)).await,
        }
    }

    pub(crate) fn classify(
        &self,
        session: &Session,
        tool: &Offered,
        upstream: &Upstream,
        arguments: &Arguments,
    ) -> Ruled {
        let facts = Facts {
            tool: &tool.tool,
            body: &tool.upstream,
            args: arguments.value(),
            channel: &session.host.principal.channel,
            user: session.scope.user(),
            session: &session.id,
        };
        match &upstream.spec().role {
            Role::Body(body) => self.setup.policy.rule(&facts, tool.annotations, body.trust_annotations),
            // What a mind's tools do is known by their names.
            Role::Mind => {
                let ruled = self.setup.policy.rule(&facts, Annotations::of_mind(&tool.tool), true);
                let is_private = session.host.principal.room.is_some() && !own::is_for_a_room(&tool.tool);
                if is_private { ruled.denied(own::ROOM) } else { ruled }
            }
        }
    }

    /// The mind's view is awaited before what others will see, and before what destroys; before anything else it is sent
    /// without waiting.
    async fn observe_before(&self, act: &Act<'_>) -> View {
        let is_body = matches!(act.upstream.spec().role, Role::Body(_));
        if !is_body || !act.ruled.class.is_observed_first() || observes_itself(act.upstream) {
            return if is_body {
                if !observes_itself(act.upstream) {
                    self.unawaited.add(act.session, &act.tool.tool, &act.arguments);
                }
                View::unasked(act.session)
            } else {
                View { mind: Mind::Calm, flags: Vec::new() }
            };
        }
        // The canonical form is JSON by its making.
        let Ok(args) = serde_json::from_str::<&RawValue>(act.arguments.canonical()) else {
            return View { mind: Mind::Silent, flags: Vec::new() };
        };
        let (limit, now) = (self.setup.times.observe, (self.setup.clock)());
        let observing = observe::before(act.session, &act.tool.tool, args, limit, now);
        act.timing.aside(Box::pin(observing)).await
    }

    /// Decides, and asks a person where that is needed.
    async fn gate(&self, act: &Act<'_>, view: &View) -> Result<Passed, Refused> {
        let situation = Situation {
            class: act.ruled.class,
            gate: act.ruled.gate,
            is_body_up: act.link.is_ok(),
            pin: act.tool.pin,
            is_contract_delivered: self.is_delivered(act).await?,
            mind: view.mind,
            mind_down: self.setup.mind_down,
            approval: Approval::None,
        };
        let why = match decide(&situation) {
            Decision::Permit(permit) => return Ok(Passed { permit, approval: None }),
            Decision::Ask(why) => why,
            other => return Err(Box::pin(self.words(act, &other, view, &[])).await),
        };
        let passed = Box::pin(self.gate_with_a_person(act, view, situation, why)).await;
        let origins = || act.lasting.as_ref().map(|lasting| lasting.origins.clone()).unwrap_or_default();
        passed.map_err(|refused| Refused { origins: origins(), ..refused })
    }

    /// Asks a person, and decides once more.
    async fn gate_with_a_person(
        &self,
        act: &Act<'_>,
        view: &View,
        mut situation: Situation,
        why: Why,
    ) -> Result<Passed, Refused> {
        let answer = tokio::select! {
            biased;
            // What nobody waits for any more is not sent, whatever the owner says later.
            () = act.call.until_unwanted() => return Err(Refused::cancelled()),
            answer = act.timing.aside(self.ask(act, why, view)) => answer?,
        };
        let mut asked_on = Vec::new();
        let (approval, id) = match answer {
            Answer::Approved { id } => (Approval::Given, id),
            Answer::Denied { id, by } => return Err(Refused::denied(&by).approval(id)),
            Answer::TimedOut { id } => return Err(Refused::expired().approval(id)),
            Answer::Lapsed { id, .. } => return Err(Refused::lapsed().approval(id)),
            Answer::Pending { id, channels } => {
                asked_on = channels;
                (Approval::Pending, id)
            }
            Answer::Full => return Err(Refused::too_many_approvals()),
            Answer::Unshowable(reason) => return Err(Refused::unshowable(reason)),
        };
        situation.approval = approval;
        // The person took their time: what was there before may be gone, or be something else.
        situation.is_body_up = act.link.as_ref().is_ok_and(|link| link.closed().is_none());
        situation.is_contract_delivered = self.is_delivered(act).await?;
        let now = act.session.catalogue();
        situation.pin = match now.get(&act.tool.name) {
            // Only tools have definitions.
            _ if !act.is_tool_call() => act.tool.pin,
            Some(tool) if tool.hash == act.tool.hash && tool.upstream == act.tool.upstream => tool.pin,
            _ => Pin::Changed,
        };
        if !act.upstream.spec().role.is_mind() && act.session.mind.health() == Health::Unavailable {
            situation.mind = Mind::Away;
        }
        match decide(&situation) {
            Decision::Permit(permit) => Ok(Passed { permit, approval: Some(id) }),
            other => Err(self.words(act, &other, view, &asked_on).await.approval(id)),
        }
    }

    async fn is_delivered(&self, act: &Act<'_>) -> Result<bool, Refused> {
        if act.upstream.spec().role.is_mind() || act.ruled.class == Class::Read {
            return Ok(true);
        }
        let contract = Box::pin(act.session.contract(&self.setup)).await;
        let contract = contract.map_err(Refused::failed)?;
        let body = &act.tool.upstream;
        if let (Ok(_), Some(reason)) = (&act.link, contract.lacks_rules_of(body)) {
            return Err(Refused::failed(format!(
                "the rules of `{body}` belong to the contract, but {reason}"
            )));
        }
        let arrival = || Arrival { number: act.call.number(), at: act.began, digest: act.digest() };
        let share = |conversation| act.session.share_reading(&self.setup, conversation, &contract.hash);
        let is_read = act.session.delivery.covers(&contract.hash, arrival, share);
        Ok(is_read || act.session.is_prompted_with(&contract))
    }

    async fn ask(&self, act: &Act<'_>, why: Why, view: &View) -> Result<Answer, Refused> {
        let reason = match why {
            Why::Mind => {
                let flags =
                    view.flags.iter().take(1).map(|flag| format!("the mind flagged it: {}", flag_text(flag)));
                flags.chain(act.ruled.reasons.iter().cloned()).collect::<Vec<_>>().join("; ")
            }
            _ if !act.ruled.reasons.is_empty() => act.ruled.reasons.join("; "),
            _ => act.ruled.class.why_asked().to_owned(),
        };
        let principal = &act.session.host.principal;
        let difference = act.lasting.iter().flat_map(|lasting| &lasting.difference);
        let difference = difference.map(|line| format!("instructions change: {line}"));
        let wanted = Wanted {
            scope: &act.session.scope,
            session: &act.session.id,
            channel: &principal.channel,
            body: &act.tool.upstream,
            tool: &act.tool.tool,
            class: act.ruled.class,
            arguments: &act.arguments,
            declared: Texts::of(&act.tool.definition).declared_arguments(),
            pin: &act.tool.hash,
            policy: &self.setup.policy_version,
            reason,
            flags: view.flags.iter().cloned().chain(difference).collect(),
            via: &act.ruled.via,
            // A host of the stateless era is asked by the answer to its call: nobody waits on the line.
            is_parked: act.call.host.era() == Era::Stateless,
        };
        if !principal.may_approve && *act.ruled.via == [Via::Elicitation] {
            return Ok(Answer::Unshowable(NO_RIGHT.to_owned()));
        }
        // The host's answer is the owner's only where the host is.
        let can_elicit = principal.may_approve
            && act.ruled.via.contains(&Via::Elicitation)
            && act.session.host.hello().can_show_forms();
        let call = Arc::clone(act.call);
        let elicit = can_elicit.then_some(move |params: Box<RawValue>| async move {
            // Whoever answers in another process has been shown this very text.
            let shown = blake3::hash(params.get().as_bytes()).to_hex();
            let anew = Some(raw(&json!({"approval": shown.as_str()})));
            let (key, method) = (Some("approval".to_owned()), "elicitation/create".to_owned());
            let question = Question { key, method, params: Some(params), anew, must_be_seen: true };
            call.ask_all(vec![question]).await.pop()?.ok()
        });
        let (_asking, step, began) = (self.setup.meter.asking(), trace::asking(), Instant::now());
        let asked = self.approvals.ask(wanted, elicit).await;
        step.done();
        if let Ok(answer) = &asked {
            self.setup.meter.answered(answer, began.elapsed());
        }
        asked.map_err(|error| {
            tracing::error!(call = act.id, session = act.session.id, reason = %error, "nobody can be asked");
            Refused::failed("the owner cannot be asked: the store does not answer")
        })
    }

    /// Sends a request that is not a tool call, if the gate lets it pass; otherwise the refusal. What is decided, recorded
    /// and asked is the same as for a call of a tool.
    pub(crate) async fn request(&self, act: &Act<'_>) -> Result<Carried, Outcome> {
        // The mind is told about reads of tools only.
        let view = if act.ruled.class == Class::Read {
            View::unasked(act.session)
        } else {
            Box::pin(act.session.refresh_delivery(&self.setup)).await;
            self.observe_before(act).await
        };
        let sent = match self.gate(act, &view).await {
            Ok(passed) if act.ruled.class == Class::Read && !passed.permit.uses_approval() => {
                Ok(self.read(act, passed).await)
            }
            Ok(passed) => Box::pin(self.write(act, passed)).await,
            Err(refused) => Err(refused),
        };
        match sent {
            Ok((carried, ended)) => {
                self.count_end(act, ended.into());
                Ok(carried)
            }
            Err(refused) => Err(Box::pin(self.refuse(act, refused)).await),
        }
    }

    /// The answer to a call that was sent.
    fn sent(&self, act: &Act<'_>, (carried, ended): (Carried, Ended)) -> Outcome {
        let outcome = self.answer(act, carried);
        self.count_end(act, ended.into());
        outcome
    }

    /// A read: nobody waits for the disk.
    async fn read(&self, act: &Act<'_>, passed: Passed) -> (Carried, Ended) {
        let (carried, _) = self.send(act, passed.permit).await;
        let ended = ended(&carried).0;
        tracing::debug!(call = act.id, session = act.session.id, outcome = ?ended, "the call is over");
        self.afterwards(act, &carried, Some(ended)).await;
        (carried, ended)
    }

    /// A write: on record before it is sent, and with it the use of its approval.
    async fn write(&self, act: &Act<'_>, passed: Passed) -> Result<(Carried, Ended), Refused> {
        let _under_way = UnderWay::new(act.session);
        if act.call.is_cancelled() {
            return Err(Refused::cancelled());
        }
        let begun = self.begin(act, &passed).await?;
        let (carried, task) = self.send(act, passed.permit).await;
        let (ended, detail) = ended(&carried);
        // What is said to the task later, perhaps to another process, is on record by this name.
        let goes_on = |task: String| format!("the server goes on with it as a task: `{task}`");
        let detail = task.map(goes_on).or(detail);
        tracing::debug!(call = act.id, session = act.session.id, outcome = ?ended, "the call is over");
        if let Err(error) = self.setup.store.finish_write(begun, ended, detail).await {
            self.setup.meter.unrecorded.add(1);
            tracing::error!(call = act.id, session = act.session.id, reason = %error, "the outcome of a write is not on record");
        }
        self.afterwards(act, &carried, None).await;
        Ok((carried, ended))
    }

    async fn begin(&self, act: &Act<'_>, passed: &Passed) -> Result<Begun, Refused> {
        let approval = passed.approval.clone().filter(|_| passed.permit.uses_approval());
        let intent = Intent { call: on_record(act), approval: approval.clone() };
        let begun = match approval {
            None => self.setup.store.begin_write(&act.session.who.actor, intent).await.map(Ok),
            Some(id) => {
                let pin = act.tool.hash.clone();
                let policy = bound_policy(&self.setup.policy_version, act.ruled.class, &act.ruled.via);
                let actor = act.session.who.actor.clone();
                let used = UseApproval { id, actor, intent, pin, policy };
                self.setup.store.use_approval(used).await.map(|used| match used {
                    ApprovalUse::Used(begun) => Ok(begun),
                    ApprovalUse::Refused(why) => Err(why),
                })
            }
        };
        match begun {
            Ok(Ok(begun)) => Ok(begun),
            Ok(Err(why)) => {
                tracing::info!(
                    call = act.id,
                    session = act.session.id,
                    ?why,
                    "an approval does not cover its call any more"
                );
                Err(Refused::approval_spent())
            }
            Err(error) => {
                self.setup.meter.unrecorded.add(1);
                tracing::error!(call = act.id, session = act.session.id, reason = %error, "a write is not made: its audit record cannot be written");
                Err(Refused::failed("its audit record cannot be written, and nothing is sent without one"))
            }
        }
    }

    /// Sends it; also, what its server calls the task that it goes on with it as, if it does. The permit is used up.
    async fn send(&self, act: &Act<'_>, permit: Permit) -> (Carried, Option<String>) {
        // What only a server of ours is told, it believes because only the broker can say it.
        let approved = act.lasting.as_ref().and_then(|lasting| lasting.approved.as_ref());
        let told = approved
            .filter(|_| permit.uses_approval())
            .zip(act.params)
            .map(|(approved, params)| degraded::with_meta(params, exposure::APPROVED_KEY, approved));
        self.count_decision(act, Verdict::Permit);
        let link = match &act.link {
            Ok(link) => link,
            Err(reason) => return (Carried::Away(reason.clone()), None),
        };
        let params = told.flatten();
        let calling = Calling { method: act.method, params: params.as_deref().or(act.params) };
        let (limit, began) = (act.upstream.spec().call_timeout, Instant::now());
        let carried = carry(
            Trip {
                session: act.session,
                upstream: &act.tool.upstream,
                what: &act.tool.tool,
                link,
                call: act.call,
                limit,
                permit: &permit,
            },
            calling,
        )
        .await;
        act.timing.upstream(began.elapsed());
        if act.is_tool_call() { self.begun(act, carried).await } else { (carried, None) }
    }

    /// Leaves to others what nobody has to wait for: a read's record, and the mind's hearing of it.
    async fn afterwards(&self, act: &Act<'_>, carried: &Carried, read: Option<Ended>) {
        let is_observed = act.is_tool_call()
            && matches!(act.upstream.spec().role, Role::Body(_))
            && !observes_itself(act.upstream);
        let told = if is_observed { Told::of(carried) } else { None };
        if read.is_none() && told.is_none() {
            return;
        }
        let after = After {
            who: Arc::clone(&act.session.who),
            call_id: act.id.clone(),
            body: Arc::clone(&act.tool.upstream),
            tool: act.tool.tool.clone(),
            class: act.ruled.class,
            arguments: Arc::clone(&act.arguments),
            read,
            told,
        };
        self.after.add(after).await;
    }
}

/// What a header says otherwise than the argument that it mirrors, in words: whoever stands between may have believed it.
fn misstated(call: &Call<Principal>, tool: &Offered, arguments: &Arguments) -> Option<String> {
    let headers = call.mirrored.as_ref()?;
    let definition: Value = serde_json::from_str(tool.definition.get()).ok()?;
    mirrored::mismatch(definition.get("inputSchema")?, arguments.value(), headers)
}

/// A write that is under way: its session says more often that it lives.
struct UnderWay<'a>(&'a Session);

impl<'a> UnderWay<'a> {
    fn new(session: &'a Session) -> Self {
        session.writes.fetch_add(1, Ordering::AcqRel);
        Self(session)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.writes.fetch_sub(1, Ordering::AcqRel);
    }
}
