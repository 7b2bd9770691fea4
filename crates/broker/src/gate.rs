//! Whether a call may happen now. A pure function over everything that counts; its whole table is one snapshot, which is
//! also the policy's documentation. Only this file can make a [`Permit`], and nothing is sent without one.

use crate::policy::{Class, Gate};

/// What the mind must not exceed for a call to pass unasked.
pub const SURPRISE_LIMIT: f64 = 0.7;

/// Everything that counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Situation {
    /// What the tool does, by the definition that it was pinned with: a changed one does not speak for itself.
    pub class: Class,
    /// What the rules say.
    pub gate: Gate,
    /// Whether the body can be reached.
    pub is_body_up: bool,
    /// Whether the tool is still what it was when it was first seen.
    pub pin: Pin,
    /// Whether the whole contract was written to the host before this call came.
    pub is_contract_delivered: bool,
    /// What the mind says.
    pub mind: Mind,
    /// What happens to writes while the mind says nothing.
    pub mind_down: MindDown,
    /// What a person said.
    pub approval: Approval,
}

/// Whether a tool is what it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pin {
    /// It is.
    Same,
    /// It appeared on a server that was known before, and the operator has not accepted it. Its class says so already.
    New,
    /// Its definition has changed, and the operator has not accepted the change.
    Changed,
    /// Its definition hides something or gives orders, and nobody has accepted it.
    Suspicious,
}

/// What the mind says about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mind {
    /// Nothing unusual.
    Calm,
    /// It is surprised, or a rule of the owner's is touched.
    Alarmed,
    /// It is there, but said nothing in time.
    Silent,
    /// It is away.
    Away,
}

/// What happens to writes while the mind says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MindDown {
    /// They do not happen.
    Block,
    /// They happen, and it is said.
    Warn,
}

/// What a person said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approval {
    /// Nobody was asked.
    None,
    /// Nobody has answered yet.
    Pending,
    /// Yes, to this very call.
    Given,
    /// No, or nobody in time.
    Refused,
}

/// What is to be done with a call.
#[derive(Debug, PartialEq, Eq)]
pub enum Decision {
    /// It may be sent.
    Permit(Permit),
    /// The contract is given instead; the model reads it and calls again.
    Bounce,
    /// A person is asked.
    Ask(Why),
    /// It does not happen.
    Deny(Why),
    /// It cannot happen as things are.
    Blocked(Why),
}

/// Why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// A rule says so.
    Rule,
    /// Its class asks for it.
    Class,
    /// The mind is surprised, or a rule of the owner's is touched.
    Mind,
    /// The mind says nothing.
    MindDown,
    /// The body is away.
    BodyDown,
    /// The tool's definition waits for the operator.
    Pin,
    /// A person said no, or nobody said yes in time.
    Person,
}

/// The right to send one call.
#[derive(Debug, PartialEq, Eq)]
pub struct Permit {
    warned: bool,
    uses_approval: bool,
    _only_here: (),
}

impl Permit {
    /// Whether the call goes out although the mind said nothing about it.
    #[must_use]
    pub fn is_warned(&self) -> bool {
        self.warned
    }

    /// Whether an approval is used up by it.
    #[must_use]
    pub fn uses_approval(&self) -> bool {
        self.uses_approval
    }
}

/// Decides.
#[must_use]
pub fn decide(situation: &Situation) -> Decision {
    let Situation { class, gate, is_body_up, pin, is_contract_delivered, mind, mind_down, approval } =
        *situation;
    if gate == Gate::Deny {
        return Decision::Deny(Why::Rule);
    }
    if pin == Pin::Suspicious || pin == Pin::Changed && class != Class::Read {
        return Decision::Blocked(Why::Pin);
    }
    if !is_body_up {
        return Decision::Blocked(Why::BodyDown);
    }
    let is_write = class != Class::Read;
    if is_write && !is_contract_delivered {
        return Decision::Bounce;
    }
    // A mind that is away blocks every write; one that is only slow, those that it is asked about first.
    let is_unheard = mind == Mind::Away || mind == Mind::Silent && class.is_observed_first();
    if is_write && is_unheard && mind_down == MindDown::Block {
        return Decision::Blocked(Why::MindDown);
    }
    let alarm = (class.is_observed_first() && mind == Mind::Alarmed).then_some(Why::Mind);
    let asked =
        (gate == Gate::Ask).then_some(if class.default_gate() == Gate::Ask { Why::Class } else { Why::Rule });
    match (alarm.or(asked), approval) {
        // A no stays a no, whatever has changed since.
        (_, Approval::Refused) => Decision::Deny(Why::Person),
        (None, _) => {
            Decision::Permit(Permit { warned: is_write && is_unheard, uses_approval: false, _only_here: () })
        }
        (Some(_), Approval::Given) => {
            Decision::Permit(Permit { warned: is_write && is_unheard, uses_approval: true, _only_here: () })
        }
        (Some(why), Approval::None | Approval::Pending) => Decision::Ask(why),
    }
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
        let approvals = [Approval::None, Approval::Pending, Approval::Given, Approval::Refused];
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
            if s.approval == Approval::Refused || is_asked && s.approval != Approval::Given {
                assert!(!permits(&s), "{s:?}");
            }
        }
    }

    // spec: N-11
    #[test]
    fn a_read_that_no_rule_stops_always_passes_while_the_body_is_there() {
        let unasked = |s: &Situation| s.gate == Gate::Allow && s.approval == Approval::None;
        for s in situations().filter(|s| s.class == Class::Read && unasked(s)) {
            assert_eq!(permits(&s), s.is_body_up && s.pin != Pin::Suspicious, "{s:?}");
        }
    }

    #[test]
    fn an_approval_is_used_only_where_somebody_had_to_be_asked() {
        for s in situations() {
            if let Decision::Permit(permit) = decide(&s) {
                let is_asked = s.gate == Gate::Ask || s.class.is_observed_first() && s.mind == Mind::Alarmed;
                assert_eq!(permit.uses_approval(), is_asked, "{s:?}");
            }
        }
    }

    /// The table without what another line already decides: a tool as it was, a body that is there.
    #[test]
    fn the_whole_table() {
        let mut table = String::from(
            "| class | gate | contract | mind | mind_down | approval | decision |\n|---|---|---|---|---|---|---|\n",
        );
        for s in situations().filter(|s| s.is_body_up && s.pin == Pin::Same) {
            let contract = if s.is_contract_delivered { "delivered" } else { "not yet" };
            let decision = match decide(&s) {
                Decision::Permit(permit) => {
                    let warned = if permit.is_warned() { ", warned" } else { "" };
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
