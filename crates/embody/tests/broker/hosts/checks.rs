//! What a model does in a host, and what it must get.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::setup::ALLOW_ALL;
use super::super::unruly::Mind;
use super::model::{Next, Request, Step};
use super::program::Program;
use super::scenario::{DONE, Link, RULES, Scenario, assert_decision, results};

/// Without forms a call waits this long for the owner.
const SHORT_WAIT: &str = "[policy]\nask_wait_s = 1\nask_timeout_s = 300\n";
/// A form that is dismissed must end the wait: the call would take this long otherwise.
const FORM_WAIT: &str = "[policy]\nask_wait_s = 40\nask_timeout_s = 300\n";
const DISMISSED_WITHIN: Duration = Duration::from_secs(20);
/// The owner's time is over soon.
const SOON_EXPIRED: &str = "[policy]\nask_wait_s = 1\nask_timeout_s = 3\n";
/// A call waits until the owner has decided, on another channel than the host.
const LONG_WAIT: &str = "[policy]\nask_wait_s = 50\nask_timeout_s = 300\n\
    [[policy.rule]]\ntools = [\"*\"]\nvia = [\"console\", \"cli\", \"telegram\"]\n";

/// Two runs of a host on one workspace, a moment apart: reads, a bounce, pending, approved, denied; then, in a new
/// conversation, another bounce, expired (approved over HTTP, where the server keeps its configuration), held, and a body
/// that is gone.
pub(super) fn two_conversations(program: Program, link: Link) -> [Vec<Step>; 2] {
    let dismisses = program == Program::Claude && link != Link::Http;
    let scenario = Arc::new(Scenario::new(if dismisses { FORM_WAIT } else { SHORT_WAIT }));
    let connection = scenario.connect(link);
    let first = scenario.run(program, &connection, first_conversation(&scenario));
    check_first(&scenario, &first);
    if dismisses {
        let took = first[4].arrived - first[3].answered;
        assert!(took < DISMISSED_WITHIN, "a dismissed form kept the call for {took:?}");
    }
    let expires = link != Link::Http;
    if expires {
        scenario.configure(SOON_EXPIRED);
    }
    let second = scenario.run(program, &connection, second_conversation(&scenario, expires));
    check_second(&scenario, &second, expires);
    [first, second]
}

fn first_conversation(scenario: &Arc<Scenario>) -> impl FnMut(&Request) -> Next + Send + 'static {
    let scenario = Arc::clone(scenario);
    move |request| match request.results.len() {
        0 => Next::call("look", json!({})),
        1 => Next::call("measure", json!({})),
        2 | 3 => Next::call("send_parcel", text("hello")),
        4 => {
            scenario.approve("send_parcel");
            Next::call("send_parcel", text("hello"))
        }
        5 => Next::call("send_note", text("hello")),
        6 => {
            scenario.deny("send_note");
            Next::call("send_note", text("hello"))
        }
        _ => {
            scenario.until_observed();
            Next::Say(DONE)
        }
    }
}

fn check_first(scenario: &Scenario, steps: &[Step]) {
    let results = results(steps);
    let [look, measured, bounce, pending, sent, asked, denied] = results else { panic!("{results:#?}") };
    assert!(look.contains("look is done"), "{look}");
    assert!(measured.contains("250"), "{measured}");
    assert_decision(bounce, "bounce");
    assert!(bounce.contains(RULES), "{bounce}");
    assert_eq!(bounce.matches(RULES).count(), 1, "the contract is there once: {bounce}");
    assert_decision(pending, "pending");
    assert!(!pending.contains("approvals approve"), "{pending}");
    assert!(sent.contains("4711"), "{sent}");
    assert_decision(asked, "pending");
    assert_decision(denied, "deny");
    assert_eq!(scenario.desk.calls("send_parcel"), [text("hello")], "it is sent, and once");
    assert!(scenario.desk.calls("send_note").is_empty());
    check_audit(scenario);
}

/// The audit has the parcel: approved, sent, done.
fn check_audit(scenario: &Scenario) {
    let intents = scenario.audited("intent");
    let [intent] = &intents[..] else { panic!("{intents:#?}") };
    assert_eq!(
        (&intent["tool"], &intent["args_excerpt"]),
        (&json!("send_parcel"), &text("hello")),
        "{intent}"
    );
    let granted = scenario.audited("operator");
    let granted: Vec<&Value> =
        granted.iter().filter(|record| record["action"] == "approval_granted").collect();
    let [granted] = granted[..] else { panic!("{granted:#?}") };
    assert_eq!((&granted["subject"], &granted["note"]), (&intent["approval"], &json!("cli")), "{intent}");
    let outcomes = scenario.audited("outcome");
    let [outcome] = &outcomes[..] else { panic!("{outcomes:#?}") };
    assert_eq!((&outcome["call_id"], &outcome["outcome"]), (&intent["call_id"], &json!("done")), "{outcome}");
    scenario.world.run(&["audit", "verify"]).ok();
}

fn second_conversation(
    scenario: &Arc<Scenario>,
    expires: bool,
) -> impl FnMut(&Request) -> Next + Send + 'static {
    let scenario = Arc::clone(scenario);
    move |request| match request.results.len() {
        0 | 1 => Next::call("send_note", text("again")),
        2 => {
            if expires {
                scenario.until_expired("send_note");
            } else {
                scenario.approve("send_note");
            }
            Next::call("send_note", text("again"))
        }
        3 => {
            scenario.describe_erase("Removes everything.");
            Next::call("look", json!({"trick": "changed"}))
        }
        4 => {
            scenario.until_changed("erase");
            Next::call("erase", json!({}))
        }
        5 => {
            scenario.stop_desk();
            Next::call("look", json!({"trick": "crash"}))
        }
        6 => Next::call("look", json!({})),
        _ => Next::Say(DONE),
    }
}

fn check_second(scenario: &Scenario, steps: &[Step], expires: bool) {
    let results = results(steps);
    let [bounce, pending, decided, look, held, lost, blocked] = results else { panic!("{results:#?}") };
    assert_decision(bounce, "bounce");
    assert!(bounce.contains(RULES), "{bounce}");
    assert_decision(pending, "pending");
    if expires {
        assert_decision(decided, "timeout");
    } else {
        assert!(decided.contains("send_note is done"), "{decided}");
    }
    assert!(look.contains("look is done"), "{look}");
    assert_decision(held, "held");
    assert_decision(lost, "timeout");
    assert_decision(blocked, "blocked");
    assert_eq!(scenario.desk.calls("send_note").len(), usize::from(!expires));
    assert!(scenario.desk.calls("erase").is_empty());
}

/// With a mind that is a server of its own and an owner who decides while the call waits.
pub(super) fn waits_within_a_call(program: Program, link: Link) {
    let scenario = Arc::new(Scenario::new(LONG_WAIT));
    let mind = Mind::new();
    scenario.use_mind(&mind);
    let owner = Arc::clone(&scenario);
    let steps = scenario.run(program, &scenario.connect(link), move |request| match request.results.len() {
        0 => Next::call("runtime_bootstrap", json!({})),
        1 => {
            let owner = Arc::clone(&owner);
            std::thread::spawn(move || owner.approve("send_note"));
            Next::call("send_note", text("hello"))
        }
        _ => {
            owner.until_observed();
            Next::Say(DONE)
        }
    });
    let [packet, sent] = results(&steps) else { panic!("{steps:#?}") };
    assert!(packet.contains(RULES) && packet.contains("Speak softly."), "{packet}");
    assert!(sent.contains("send_note is done"), "{sent}");
    assert_eq!(scenario.desk.calls("send_note"), [text("hello")]);
    let observed = mind.process(&scenario.world).calls("observe");
    let observed: Vec<&Value> = observed.iter().filter(|call| call["tool_name"] == "send_note").collect();
    let after: Vec<&&Value> = observed.iter().filter(|call| call.get("result").is_some()).collect();
    assert!(after.len() == 1 && after[0]["args"] == text("hello"), "{observed:#?}");
    assert!(observed.iter().any(|call| call.get("result").is_none()), "asked before: {observed:#?}");
}

/// An owner who does not decide in time.
pub(super) fn expires(program: Program, link: Link) {
    let scenario = Arc::new(Scenario::new(SOON_EXPIRED));
    let owner = Arc::clone(&scenario);
    let steps = scenario.run(program, &scenario.connect(link), move |request| match request.results.len() {
        0 | 1 => Next::call("send_parcel", text("hello")),
        2 => {
            owner.until_expired("send_parcel");
            Next::call("send_parcel", text("hello"))
        }
        _ => Next::Say(DONE),
    });
    let [bounce, pending, expired] = results(&steps) else { panic!("{steps:#?}") };
    assert_decision(bounce, "bounce");
    assert_decision(pending, "pending");
    assert_decision(expired, "timeout");
    assert_eq!(scenario.writes(), 0);
}

/// Writes beside each other, equal ones too, and a write beside `runtime_bootstrap` bounce, also in hosts that make the
/// calls of one answer one after the other; then they are sent.
pub(super) fn two_writes_in_one_answer(program: Program, link: Link) {
    let scenario = Arc::new(Scenario::new(ALLOW_ALL));
    let (one, two) = (("send_note", text("one")), ("send_note", text("two")));
    let steps = scenario.run(program, &scenario.connect(link), move |request| match request.results.len() {
        0 => Next::Call(vec![one.clone(), one.clone()]),
        2 => Next::Call(vec![("runtime_bootstrap", json!({})), two.clone()]),
        4 => Next::Call(vec![one.clone(), two.clone()]),
        _ => Next::Say(DONE),
    });
    let [first, second, packet, third, ..] = results(&steps) else { panic!("{steps:#?}") };
    for bounce in [first, second, third] {
        assert_decision(bounce, "bounce");
    }
    assert!(packet.contains(RULES), "{packet}");
    assert_eq!(scenario.desk.calls("send_note").len(), 2, "each is sent, and once");
}

fn text(text: &str) -> Value {
    json!({"text": text})
}
