//! What was decided about a call and what came of it, in words for the model and on record for the operator.

use embody_store::{Arguments as Kept, Event, Outcome as Ended, Record, ToolCall, Verdict};
use embody_wire::message::may_have;
use embody_wire::{Error, Outcome};
use serde_json::value::RawValue;

use crate::Broker;
use crate::approval::where_asked;
use crate::call::Act;
use crate::carry::Carried;
use crate::catalogue::HoldReason;
use crate::degraded::{self, Degraded};
use crate::gate::{Decision, Pin, Why};
use crate::meter::{End, Verdict as Decided, trace};
use crate::observe::View;
use crate::own;
use crate::policy::Via;
use crate::results::{Refused, Word};
use crate::session::Session;
use crate::session::delivery::Carrier;

impl Broker {
    pub(crate) fn answer(&self, act: &Act<'_>, carried: Carried) -> Outcome {
        let body = &act.tool.upstream;
        let refused = match carried {
            Carried::Answered(Outcome::Result(result)) => {
                if let Some(params) = act.params {
                    crate::forward::shown(act.session, body, params, &result);
                }
                if matches!(act.tool.pin, Pin::Same | Pin::New) && act.session.is_fine() {
                    return Outcome::Result(result);
                }
                let mut degraded = act.session.degraded();
                if act.tool.pin == Pin::Changed {
                    degraded.push(Degraded::DefinitionChanged { tool: act.tool.name.clone() });
                }
                return Outcome::Result(degraded::tell(result, &degraded));
            }
            Carried::Answered(error) => return error,
            Carried::Away(reason) => Refused::unavailable(body, reason),
            Carried::NotSent(error) => Refused::unavailable(body, error),
            Carried::Lost(error) if error.nothing_was_done() => Refused::unavailable(body, error),
            Carried::Lost(error @ Error::Protocol(_)) => {
                Refused::unknown(format!("the answer of `{body}` could not be read")).detail(error)
            }
            Carried::Lost(error) => {
                Refused::unknown(format!("the connection to `{body}` was lost before it answered"))
                    .detail(error)
            }
            Carried::TimedOut => Refused::unknown(format!("`{body}` did not answer in time")),
            Carried::Withdrawn => Refused::cancelled(),
            Carried::Unwanted => Refused::unknown("the host cancelled it after it was sent"),
        };
        self.told(act, refused)
    }

    /// Says no, on record.
    pub(crate) async fn refuse(&self, act: &Act<'_>, refused: Refused) -> Outcome {
        let decision = match refused.decision {
            Word::Deny => Verdict::Deny,
            Word::Pending => Verdict::Pending,
            Word::Bounce => Verdict::Bounce,
            Word::Held => Verdict::Held,
            Word::Timeout => Verdict::Timeout,
            Word::Blocked => Verdict::Blocked,
        };
        self.count_decision(act, refused.decision.into());
        let reason = refused.on_record();
        tracing::debug!(call = act.id, session = act.session.id, ?decision, reason, "the call is not made");
        let event = Event::Decision(embody_store::Decision { call: on_record(act), decision, reason });
        if let Err(error) =
            self.setup.store.audit_soon(Record { actor: act.session.who.actor.clone(), event }).await
        {
            self.setup.meter.unrecorded.add(1);
            tracing::error!(call = act.id, session = act.session.id, reason = %error, "a decision is not on record");
        }
        if refused.decision == Word::Bounce {
            act.session.delivery.bounced(act.digest());
        }
        if let Some(hash) = &refused.contract_hash {
            let carrier = Carrier::Bounce(act.digest());
            Box::pin(act.session.delivers(&self.setup, act.call, hash, carrier)).await;
        }
        let told = self.told(act, refused);
        self.count_end(act, End::Refused);
        told
    }

    /// Counts what was decided about a call: once for each.
    pub(crate) fn count_decision(&self, act: &Act<'_>, decided: Decided) {
        act.meter.decided(act.ruled.class, decided);
        trace::decided(decided);
    }

    /// Counts how a call ended: once for each.
    pub(crate) fn count_end(&self, act: &Act<'_>, end: End) {
        act.meter.over(act.ruled.class, end, &act.timing);
        trace::ended(end);
    }

    fn told(&self, act: &Act<'_>, refused: Refused) -> Outcome {
        let refused = self.with_degraded(act.session, refused);
        if act.wants_task || !act.is_tool_call() { refused.error() } else { refused.outcome() }
    }

    /// The gate's decision in words. `asked_on` is where the owner can still answer, other than in a form of the host.
    pub(crate) async fn words(
        &self,
        act: &Act<'_>,
        decision: &Decision,
        view: &View,
        asked_on: &[Via],
    ) -> Refused {
        let body = &act.tool.upstream;
        let refused = match decision {
            Decision::Permit(_) => Refused::failed("the decision changed while it was made"),
            Decision::Bounce => match act.session.contract(&self.setup).await {
                Ok(contract) if act.session.delivery.is_written(&contract.hash) => Refused::bounce_again(),
                Ok(contract) => Refused::bounce(contract),
                Err(reason) => return Refused::failed(reason),
            },
            Decision::Ask(why) => {
                let word = if *why == Why::Mind { Word::Held } else { Word::Pending };
                match asked_on {
                    [] => Refused::pending_in_a_form(word),
                    channels => Refused::pending(word, &where_asked(channels)),
                }
            }
            Decision::Deny(Why::Person) => Refused::denied(""),
            Decision::Deny(_) => {
                let reasons = act.ruled.reasons.join("; ");
                match &*reasons {
                    "" => Refused::forbidden("a rule of the operator forbids it"),
                    own::ROOM => Refused::in_a_room(),
                    _ => Refused::forbidden(reasons),
                }
            }
            Decision::Blocked(Why::Pin) => {
                let reason = act.tool.hold_reason().unwrap_or(HoldReason::Changed);
                Box::pin(act.session.mark_quoted(act.tool, &reason)).await;
                Refused::quarantined(reason.to_string())
            }
            Decision::Blocked(Why::BodyDown) => {
                let reason = act.link.as_ref().err().cloned().unwrap_or_else(|| "it has gone".to_owned());
                Refused::unavailable(body, reason)
            }
            Decision::Blocked(_) => Refused::mind_unavailable(),
        };
        refused.flags(view.flags.clone())
    }

    pub(crate) fn with_degraded(&self, session: &Session, refused: Refused) -> Refused {
        let degraded = session.degraded();
        // What brings the contract does not say that the contract is missing.
        let is_said =
            |one: &&Degraded| refused.decision != Word::Bounce || **one != Degraded::HostPromptMissing;
        let degraded: Vec<String> = degraded.iter().filter(is_said).map(Degraded::for_model).collect();
        let mark = session.host.principal.mark().map(str::to_owned);
        let refused = Refused { degraded, mark, code: session.code().to_owned(), ..refused };
        let is_shared = session.host.principal.room.is_some();
        if is_shared { refused.for_others() } else { refused }.in_lines()
    }
}

pub(crate) fn on_record(act: &Act<'_>) -> ToolCall {
    ToolCall {
        call_id: act.id.clone(),
        body: act.tool.upstream.to_string(),
        tool: act.tool.tool.clone(),
        class: act.ruled.class.name().to_owned(),
        args: Kept::of(act.arguments.canonical()),
    }
}

/// How a call ended, for the record.
pub(crate) fn ended(carried: &Carried) -> (Ended, Option<String>) {
    match carried {
        Carried::Answered(Outcome::Result(result)) if is_error(result) => (Ended::Failed, None),
        Carried::Answered(Outcome::Result(_)) => (Ended::Done, None),
        Carried::Answered(Outcome::Error(error)) => {
            (Ended::Failed, Some(error.get().chars().take(500).collect()))
        }
        Carried::Away(reason) => (Ended::Denied, Some(format!("not sent: {reason}"))),
        Carried::NotSent(error) => (Ended::Denied, Some(format!("not sent: {error}"))),
        Carried::Lost(error) if error.nothing_was_done() => (Ended::Failed, Some(error.to_string())),
        Carried::Lost(error) => (Ended::Unknown, Some(error.to_string())),
        Carried::TimedOut => (Ended::Unknown, Some("no answer in time".to_owned())),
        Carried::Withdrawn => (Ended::Denied, Some("not sent: cancelled by the host".to_owned())),
        Carried::Unwanted => (Ended::Unknown, Some("cancelled by the host".to_owned())),
    }
}

pub(crate) fn is_error(result: &RawValue) -> bool {
    #[derive(serde::Deserialize)]
    struct Flag {
        #[serde(rename = "isError", default)]
        is_error: Option<bool>,
    }
    may_have(result, "isError")
        && serde_json::from_str::<Flag>(result.get()).is_ok_and(|flag| flag.is_error == Some(true))
}
