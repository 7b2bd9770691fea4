//! The audit chain: what enters, what comes out, what is noticed when somebody tampers with it.

mod chain;
mod files;
mod journal;
mod process;
mod redaction;
mod soon;
mod tamper;

use embody_store::Store;
use embody_store::audit::{
    Action, Actor, AuditReport, AuditedCall, Break, ChainState, Event, Intent, Operation, Record,
    RedactedArguments,
};

pub(crate) fn actor(user: &str) -> Actor {
    Actor {
        user: user.into(),
        agent: Some("assistant".into()),
        session: Some("s-1".into()),
        channel: Some("web".into()),
    }
}

pub(crate) fn call(id: &str) -> AuditedCall {
    AuditedCall {
        call_id: id.into(),
        body: "teams".into(),
        tool: "send_message".into(),
        class: "human_visible_write".into(),
        args: RedactedArguments::of(r#"{"to":"bob","text":"hello"}"#),
    }
}

pub(crate) fn intent(id: &str) -> Intent {
    Intent { call: call(id), approval: Some("a-1".into()) }
}

pub(crate) fn note(user: &str, subject: &str) -> Record {
    let operation = Operation { action: Action::Other, subject: subject.into(), note: None };
    Record { actor: actor(user), event: Event::Operator(operation) }
}

pub(crate) async fn append(store: &Store, count: usize) {
    for number in 0..count {
        store.audit().append(note("ann", &format!("note {number}"))).await.unwrap();
    }
}

/// The state of the one chain that is not somebody else's.
pub(crate) fn state(report: &AuditReport) -> &ChainState {
    let mut own = report.chains.iter().filter(|chain| chain.state != ChainState::KeyAway);
    let state = &own.next().expect("a chain of ours").state;
    assert!(own.next().is_none(), "{report:?}");
    state
}

pub(crate) async fn broken(store: &Store) -> Break {
    let report = store.audit().verify().await.unwrap();
    let (_, found) = report.broken().unwrap_or_else(|| panic!("nothing was noticed: {report:?}"));
    found.clone()
}

pub(crate) async fn assert_intact(store: &Store, records: u64) {
    let report = store.audit().verify().await.unwrap();
    assert_eq!(state(&report), &ChainState::Intact);
    let own = report.chains.iter().find(|chain| chain.state == ChainState::Intact).unwrap();
    assert_eq!((own.records, own.beyond_head, &own.head_trouble), (records, 0, &None));
}
