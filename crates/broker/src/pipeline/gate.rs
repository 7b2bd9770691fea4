//! Gate: decides whether a call may be sent now. [`decide`] is a pure function; one snapshot holds its whole table and
//! documents the policy. Only this file creates a [`Permit`], and nothing is sent without one.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ToolCall;
use super::observe::MindView;
use super::respond::CallRefusal;
use crate::BrokerConfig;
use crate::policy::{Class, Gate};
use crate::session::delivery::Arrival;

/// A prediction error above this limit requires approval.
pub(crate) const SURPRISE_LIMIT: f64 = 0.7;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Situation {
    /// From the pinned definition: a changed definition cannot declare itself harmless.
    pub(crate) class: Class,
    pub(crate) gate: Gate,
    pub(crate) is_body_up: bool,
    pub(crate) pin: Pin,
    /// Whether the whole contract was written to the host before this call arrived.
    pub(crate) is_contract_delivered: bool,
    pub(crate) mind: Mind,
    pub(crate) mind_down: MindDown,
    pub(crate) approval: ApprovalCheck,
}

/// How a tool compares with its pinned definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pin {
    Same,
    /// A new tool of a known server that the operator has not accepted. Its class already reflects this.
    New,
    /// The operator has not accepted the change.
    Changed,
    /// The definition hides text or contains instructions, and the operator has not accepted it.
    Suspicious,
}

/// The mind's view of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mind {
    Calm,
    /// The call is unusual, or matches one of the owner's rules.
    Alarmed,
    /// Connected, but did not answer in time.
    Silent,
    Away,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MindDown {
    #[default]
    Block,
    // Writes are sent, and results report it.
    Warn,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalCheck {
    None,
    Pending,
    /// Valid for exactly this call.
    Given,
    /// Denied, or expired.
    Refused,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    Permit(Permit),
    /// Returns the contract instead; the model reads it and calls again.
    Bounce,
    Ask(Reason),
    Deny(Reason),
    /// The call cannot be sent in the current state.
    Blocked(Reason),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    Rule,
    Class,
    Mind,
    MindDown,
    BodyDown,
    /// The tool's definition awaits the operator's review.
    Pin,
    Person,
}

/// The right to send one call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Permit {
    uses_approval: bool,
    _only_here: (),
}

impl Permit {
    pub(crate) fn uses_approval(&self) -> bool {
        self.uses_approval
    }
}

#[must_use]
pub(crate) fn decide(situation: &Situation) -> Decision {
    let Situation { class, gate, is_body_up, pin, is_contract_delivered, mind, mind_down, approval } =
        *situation;
    if gate == Gate::Deny {
        return Decision::Deny(Reason::Rule);
    }
    if pin == Pin::Suspicious || pin == Pin::Changed && class != Class::Read {
        return Decision::Blocked(Reason::Pin);
    }
    if !is_body_up {
        return Decision::Blocked(Reason::BodyDown);
    }
    let is_write = class != Class::Read;
    if is_write && !is_contract_delivered {
        return Decision::Bounce;
    }
    if is_write && is_unobserved(mind, class) && mind_down == MindDown::Block {
        return Decision::Blocked(Reason::MindDown);
    }
    let alarm = (class.is_observed_first() && mind == Mind::Alarmed).then_some(Reason::Mind);
    let asked = (gate == Gate::Ask).then_some(if class.default_gate() == Gate::Ask {
        Reason::Class
    } else {
        Reason::Rule
    });
    match (alarm.or(asked), approval) {
        // A denial stays in force, whatever has changed since.
        (_, ApprovalCheck::Refused) => Decision::Deny(Reason::Person),
        (None, _) => Decision::Permit(Permit { uses_approval: false, _only_here: () }),
        (Some(_), ApprovalCheck::Given) => Decision::Permit(Permit { uses_approval: true, _only_here: () }),
        (Some(reason), ApprovalCheck::None | ApprovalCheck::Pending) => Decision::Ask(reason),
    }
}

/// An unavailable mind observes no write; a slow one misses only the writes that it must see first.
fn is_unobserved(mind: Mind, class: Class) -> bool {
    mind == Mind::Away || mind == Mind::Silent && class.is_observed_first()
}

/// Collects the inputs of the decision that are available before the owner is asked.
pub(super) async fn situation(
    config: &Arc<BrokerConfig>,
    call: &ToolCall<'_>,
    view: &MindView,
) -> Result<Situation, CallRefusal> {
    Ok(Situation {
        class: call.ruling.class,
        gate: call.ruling.gate,
        is_body_up: call.link.is_ok(),
        pin: call.tool.pin,
        is_contract_delivered: is_contract_delivered(config, call).await?,
        mind: view.mind,
        mind_down: call.settings.mind_down,
        approval: ApprovalCheck::None,
    })
}

/// Whether the model had read the contract when it made this call. Reads and the mind's own tools need no contract.
pub(super) async fn is_contract_delivered(
    config: &Arc<BrokerConfig>,
    call: &ToolCall<'_>,
) -> Result<bool, CallRefusal> {
    if call.upstream.spec().role.is_mind() || call.is_read() {
        return Ok(true);
    }
    let contract = Box::pin(call.session.contract(config)).await.map_err(CallRefusal::failed)?;
    let body = &call.tool.upstream;
    if let (Ok(_), Some(reason)) = (&call.link, contract.lacks_rules_of(body)) {
        return Err(CallRefusal::failed(format!(
            "the rules of `{body}` belong to the contract, but {reason}"
        )));
    }
    let arrival = || Arrival { number: call.request.number(), at: call.began, digest: call.digest() };
    let share = |conversation| call.session.share_contract_read(config, conversation, &contract.hash);
    let is_read = call.session.delivery.covers(&contract.hash, arrival, share);
    Ok(is_read || call.session.is_prompted_with(&contract))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;

    fn situations() -> impl Iterator<Item = Situation> {
        let bools = [true, false];
        let pins = [Pin::Same, Pin::New, Pin::Changed, Pin::Suspicious];
        let minds = [Mind::Calm, Mind::Alarmed, Mind::Silent, Mind::Away];
        let downs = [MindDown::Block, MindDown::Warn];
        let approvals =
            [ApprovalCheck::None, ApprovalCheck::Pending, ApprovalCheck::Given, ApprovalCheck::Refused];
        Class::ALL.into_iter().flat_map(move |class| {
            Gate::ALL.into_iter().flat_map(move |gate| {
                bools.into_iter().flat_map(move |is_body_up| {
                    pins.into_iter().flat_map(move |pin| {
                        bools.into_iter().flat_map(move |is_contract_delivered| {
                            minds.into_iter().flat_map(move |mind| {
                                downs.into_iter().flat_map(move |mind_down| {
                                    approvals.into_iter().map(move |approval| Situation {
                                        class,
                                        gate,
                                        is_body_up,
                                        pin,
                                        is_contract_delivered,
                                        mind,
                                        mind_down,
                                        approval,
                                    })
                                })
                            })
                        })
                    })
                })
            })
        })
    }

    fn permits(situation: &Situation) -> bool {
        matches!(decide(situation), Decision::Permit(_))
    }

    // spec: N-07, N-10, N-11, N-12
    #[test]
    fn what_must_never_pass_does_not() {
        for s in situations() {
            let is_write = s.class != Class::Read;
            if s.gate == Gate::Deny || !s.is_body_up || s.pin == Pin::Suspicious {
                assert!(!permits(&s), "{s:?}");
            }
            if is_write && (!s.is_contract_delivered || s.pin == Pin::Changed) {
                assert!(!permits(&s), "{s:?}");
            }
            if is_write && s.mind == Mind::Away && s.mind_down == MindDown::Block {
                assert!(!permits(&s), "{s:?}");
            }
            let is_asked = s.gate == Gate::Ask || s.class.is_observed_first() && s.mind == Mind::Alarmed;
            if s.approval == ApprovalCheck::Refused || is_asked && s.approval != ApprovalCheck::Given {
                assert!(!permits(&s), "{s:?}");
            }
        }
    }

    // spec: N-11
    #[test]
    fn a_read_that_no_rule_stops_always_passes_while_the_body_is_there() {
        let unasked = |s: &Situation| s.gate == Gate::Allow && s.approval == ApprovalCheck::None;
        for s in situations().filter(|s| s.class == Class::Read && unasked(s)) {
            assert_eq!(permits(&s), s.is_body_up && s.pin != Pin::Suspicious, "{s:?}");
        }
    }

    #[test]
    fn an_approval_is_used_only_where_one_is_required() {
        for s in situations() {
            if let Decision::Permit(permit) = decide(&s) {
                let is_asked = s.gate == Gate::Ask || s.class.is_observed_first() && s.mind == Mind::Alarmed;
                assert_eq!(permit.uses_approval(), is_asked, "{s:?}");
            }
        }
    }

    /// The table without rows that another row already decides: an unchanged tool, an available body.
    #[test]
    fn the_whole_table() {
        let mut table = String::from(
            "| class | gate | contract | mind | mind_down | approval | decision |\n|---|---|---|---|---|---|---|\n",
        );
        for s in situations().filter(|s| s.is_body_up && s.pin == Pin::Same) {
            let contract = if s.is_contract_delivered { "delivered" } else { "not yet" };
            let decision = match decide(&s) {
                Decision::Permit(permit) => {
                    let is_warned = s.class != Class::Read && is_unobserved(s.mind, s.class);
                    let warned = if is_warned { ", warned" } else { "" };
                    let used = if permit.uses_approval() { ", approval used" } else { "" };
                    format!("permit{warned}{used}")
                }
                other => format!("{other:?}").to_lowercase(),
            };
            let _ = writeln!(
                table,
                "| {} | {} | {contract} | {:?} | {:?} | {:?} | {decision} |",
                s.class.name(),
                s.gate.name(),
                s.mind,
                s.mind_down,
                s.approval
            );
        }
        insta::assert_snapshot!("gate", table);
    }
}
