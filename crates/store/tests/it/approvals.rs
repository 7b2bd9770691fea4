//! Approvals: asked once, decided once, used once, for the call that was shown and no other.

use std::time::Duration;

use embody_store::Store;
use embody_store::approvals::{
    Answer, Approval, ApprovalFilter, ApprovalRequest, ApprovalStatus, ApprovalUse, AskOutcome, AskResult,
    DecideApproval, DecideOutcome, UnusableApproval, UseApproval,
};
use embody_store::audit::{Actor, AuditedCall, Intent, RedactedArguments};

use crate::world::{World, contract, eventually, scope};

contract!(
    the_same_call_asks_once,
    another_call_asks_anew,
    is_decided_once,
    is_used_once,
    covers_only_the_call_that_was_shown,
    a_denial_stands_while_its_time_lasts,
    a_denial_can_be_taken_back_once,
    a_question_under_other_rules_is_reported,
    too_late_is_denied,
    a_call_is_told_once_that_its_time_is_over,
    a_call_is_told_also_when_others_ended_it,
    one_that_is_withdrawn_leaves_its_place,
    an_answer_that_nobody_used_expires,
    those_of_a_time_are_counted,
    nobody_is_asked_too_much,
    what_is_over_is_forgotten,
    an_answer_is_on_record,
    outlives_the_process,
    belongs_to_its_user,
    refuses_what_is_too_large,
);

const ARGS: &str = "{\"to\": \"bob\",  \"n\": 9007199254740993, \"x\": 1.0}";
const HOUR: Duration = Duration::from_secs(3600);

pub(crate) fn ask() -> ApprovalRequest {
    ApprovalRequest {
        scope: scope("ann", "assistant"),
        session: "s".into(),
        channel: "stdio".into(),
        body: "teams".into(),
        tool: "send".into(),
        class: "human_visible_write".into(),
        args: ARGS.into(),
        pin: "p".into(),
        policy: "v1".into(),
        reason: "mail leaves the building".into(),
        flags: vec!["first time".into()],
        timeout: HOUR,
    }
}

pub(crate) async fn asked(store: &Store, ask: ApprovalRequest) -> Approval {
    match store.approvals().ask(ask).await.unwrap().asked {
        AskOutcome::New(approval) => approval,
        other => panic!("{other:?}"),
    }
}

fn decide(approval: &Approval, answer: Answer) -> DecideApproval {
    DecideApproval { user: approval.user.clone(), id: approval.id.clone(), answer, by: "owner".into() }
}

pub(crate) async fn approve(store: &Store, approval: &Approval) {
    let decided = store.approvals().decide(decide(approval, Answer::Approve)).await.unwrap();
    assert!(matches!(decided, DecideOutcome::Decided(_)), "{decided:?}");
}

/// The call that was approved.
pub(crate) fn call(approval: &Approval) -> UseApproval {
    UseApproval {
        id: approval.id.clone(),
        actor: actor(&approval.user),
        intent: intent(&approval.body, &approval.tool, &approval.args),
        pin: approval.pin.clone(),
        policy: approval.policy.clone(),
    }
}

fn intent(body: &str, tool: &str, args: &str) -> Intent {
    let call = AuditedCall {
        call_id: "call".into(),
        body: body.into(),
        tool: tool.into(),
        class: "human_visible_write".into(),
        args: RedactedArguments::of(args),
    };
    Intent { call, approval: None }
}

fn actor(user: &str) -> Actor {
    Actor { user: user.into(), agent: Some("assistant".into()), session: None, channel: None }
}

pub(crate) fn is_used(outcome: &ApprovalUse) -> bool {
    matches!(outcome, ApprovalUse::Used(begun) if begun.call_id() == "call")
}

// spec: N-10
async fn the_same_call_asks_once(world: World) {
    let second = world.second().await;
    let asking = (0..16).map(|number| {
        let store = if number % 2 == 0 { world.store.clone() } else { second.clone() };
        tokio::spawn(async move { store.approvals().ask(ask()).await.unwrap().asked })
    });
    let (mut new, mut same) = (Vec::new(), Vec::new());
    for task in asking.collect::<Vec<_>>() {
        match task.await.unwrap() {
            AskOutcome::New(approval) => new.push(approval),
            AskOutcome::Same(approval) => same.push(approval),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((new.len(), same.len()), (1, 15));
    assert!(same.iter().all(|approval| *approval == new[0]));
    assert_eq!((new[0].args.as_str(), new[0].digest.as_str()), (ARGS, RedactedArguments::of(ARGS).digest()));
    assert_eq!(new[0].flags, ["first time"]);
    approve(&second, &new[0]).await;
    let picked_up = world.store.approvals().ask(ask()).await.unwrap().asked;
    let AskOutcome::Same(approval) = picked_up else { panic!("{picked_up:?}") };
    assert_eq!((approval.status, &approval.id), (ApprovalStatus::Approved, &new[0].id));
    assert!(is_used(&world.store.approvals().consume(call(&approval)).await.unwrap()));
    assert_ne!(asked(&world.store, ask()).await.id, approval.id);
}

// spec: N-10
async fn another_call_asks_anew(world: World) {
    asked(&world.store, ask()).await;
    for other in [
        ApprovalRequest { scope: scope("bob", "assistant"), ..ask() },
        ApprovalRequest { scope: scope("ann", "writer"), ..ask() },
        ApprovalRequest { body: "mail".into(), ..ask() },
        ApprovalRequest { tool: "delete".into(), ..ask() },
        ApprovalRequest { args: "{}".into(), ..ask() },
        ApprovalRequest { pin: "q".into(), ..ask() },
        ApprovalRequest { policy: "v2".into(), ..ask() },
    ] {
        asked(&world.store, other).await;
    }
    assert_eq!(world.store.approvals().list_all(ApprovalFilter::Pending, 100).await.unwrap().len(), 8);
    // A host that was started again goes on where it was.
    let later =
        world.store.approvals().ask(ApprovalRequest { session: "t".into(), ..ask() }).await.unwrap().asked;
    assert!(matches!(later, AskOutcome::Same(_)), "{later:?}");
}

// spec: N-10
async fn is_decided_once(world: World) {
    let second = world.second().await;
    let approval = asked(&world.store, ask()).await;
    let deciding = (0..8).map(|number| {
        let store = if number % 2 == 0 { world.store.clone() } else { second.clone() };
        let answer = if number % 3 == 0 { Answer::Approve } else { Answer::Deny };
        let decide = decide(&approval, answer);
        tokio::spawn(async move { store.approvals().decide(decide).await.unwrap() })
    });
    let (mut counted, mut late) = (Vec::new(), Vec::new());
    for task in deciding.collect::<Vec<_>>() {
        match task.await.unwrap() {
            DecideOutcome::Decided(approval) => counted.push(approval),
            DecideOutcome::NotPending(approval) => late.push(approval),
            DecideOutcome::Missing => panic!("it is there"),
        }
    }
    assert_eq!((counted.len(), late.len()), (1, 7));
    assert!(late.iter().all(|approval| *approval == counted[0]));
    assert_eq!(counted[0].decided_by.as_deref(), Some("owner"));
    if let Some(records) = world.count("SELECT count(*) FROM audit").await {
        assert_eq!(records, 1);
    }
    let foreign = DecideApproval { user: "bob".into(), ..decide(&approval, Answer::Approve) };
    assert_eq!(world.store.approvals().decide(foreign).await.unwrap(), DecideOutcome::Missing);
}

// spec: N-10, N-14
async fn is_used_once(world: World) {
    let second = world.second().await;
    let approval = asked(&world.store, ask()).await;
    let early = world.store.approvals().consume(call(&approval)).await.unwrap();
    assert_eq!(early, ApprovalUse::Refused(UnusableApproval::Pending));
    approve(&world.store, &approval).await;
    let using = (0..16).map(|number| {
        let store = if number % 2 == 0 { world.store.clone() } else { second.clone() };
        let call = call(&approval);
        tokio::spawn(async move { store.approvals().consume(call).await.unwrap() })
    });
    let mut outcomes = Vec::new();
    for task in using.collect::<Vec<_>>() {
        outcomes.push(task.await.unwrap());
    }
    let used = outcomes.iter().filter(|outcome| is_used(outcome)).count();
    let refused =
        outcomes.iter().filter(|outcome| **outcome == ApprovalUse::Refused(UnusableApproval::Used)).count();
    assert_eq!((used, refused), (1, 15), "{outcomes:?}");
    if let Some(intents) = world.count("SELECT count(*) FROM audit WHERE event = 'intent'").await {
        assert_eq!(intents, 1);
    }
    let after = world.store.approvals().get("ann", &approval.id).await.unwrap().unwrap();
    assert_eq!(after.status, ApprovalStatus::Used);
    assert!(after.used_at.is_some());
}

// spec: N-10
async fn covers_only_the_call_that_was_shown(world: World) {
    let approval = asked(&world.store, ask()).await;
    approve(&world.store, &approval).await;
    for other in [
        UseApproval { intent: intent("mail", "send", ARGS), ..call(&approval) },
        UseApproval { intent: intent("teams", "delete", ARGS), ..call(&approval) },
        UseApproval { intent: intent("teams", "send", "{\"to\": \"eve\"}"), ..call(&approval) },
        UseApproval { pin: "q".into(), ..call(&approval) },
        UseApproval { policy: "v2".into(), ..call(&approval) },
    ] {
        let outcome = world.store.approvals().consume(other).await.unwrap();
        assert_eq!(outcome, ApprovalUse::Refused(UnusableApproval::OtherCall));
    }
    let foreign = UseApproval { actor: actor("bob"), ..call(&approval) };
    let outcome = world.store.approvals().consume(foreign).await.unwrap();
    assert_eq!(outcome, ApprovalUse::Refused(UnusableApproval::Missing));
    if let Some(records) = world.count("SELECT count(*) FROM audit WHERE event = 'intent'").await {
        assert_eq!(records, 0);
    }
    assert!(is_used(&world.store.approvals().consume(call(&approval)).await.unwrap()));
}

// spec: N-10
async fn a_denial_stands_while_its_time_lasts(world: World) {
    let approval = asked(&world.store, ask()).await;
    world.store.approvals().decide(decide(&approval, Answer::Deny)).await.unwrap();
    let again = world.store.approvals().ask(ask()).await.unwrap().asked;
    let AskOutcome::Denied(denied) = again else { panic!("{again:?}") };
    assert_eq!((denied.status, &denied.id), (ApprovalStatus::Denied, &approval.id));
    let refused = world.store.approvals().consume(call(&approval)).await.unwrap();
    assert_eq!(refused, ApprovalUse::Refused(UnusableApproval::Denied));
    assert_eq!(world.store.approvals().list_all(ApprovalFilter::All, 10).await.unwrap().len(), 1);
    asked(&world.store, ApprovalRequest { tool: "t".into(), ..ask() }).await;
}

// spec: N-10
async fn a_denial_can_be_taken_back_once(world: World) {
    let approvals = world.store.approvals();
    let denied = asked(&world.store, ask()).await;
    assert_eq!(approvals.ask_again("ann", &denied.id, "cli").await.unwrap(), None, "it is not denied");
    approvals.decide(decide(&denied, Answer::Deny)).await.unwrap();
    let ids = async |filter| {
        let (own, all) = (approvals.list("ann", filter, 10).await, approvals.list_all(filter, 10).await);
        let (own, all) = (own.unwrap(), all.unwrap());
        assert_eq!(own, all);
        own.into_iter().map(|one| one.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(ApprovalFilter::Denied).await, std::slice::from_ref(&denied.id));
    assert_eq!(approvals.ask_again("bob", &denied.id, "cli").await.unwrap(), None, "it is ann's");
    let ended = approvals.ask_again("ann", &denied.id, "cli").await.unwrap().unwrap();
    assert_eq!((ended.status, ended.decided_by.as_deref()), (ApprovalStatus::Denied, Some("owner")));
    assert_eq!(approvals.ask_again("ann", &denied.id, "cli").await.unwrap(), None, "once");
    assert_eq!(ids(ApprovalFilter::Denied).await, [""; 0]);
    let records = world.store.audit().tail(1, None).await.unwrap();
    let detail: serde_json::Value = serde_json::from_str(&records[0].detail).unwrap();
    let expected = serde_json::json!({"action": "denial_withdrawn", "subject": denied.id, "note": "cli"});
    assert_eq!(detail, expected);
    let next = asked(&world.store, ask()).await;
    assert_ne!(next.id, denied.id);
    assert_eq!(ids(ApprovalFilter::Pending).await, [next.id]);
}

// spec: N-10
async fn a_question_under_other_rules_is_reported(world: World) {
    let ask_under = async |policy: &str| {
        let ask = ApprovalRequest { policy: policy.into(), ..ask() };
        world.store.approvals().ask(ask).await.unwrap().other_policies
    };
    assert_eq!(ask_under("v1").await, [""; 0]);
    assert_eq!(ask_under("v2").await, ["v1"]);
    assert_eq!(ask_under("v2").await, [""; 0], "only with a new one");
    let other = ApprovalRequest { policy: "v3".into(), args: "{}".into(), ..ask() };
    assert_eq!(world.store.approvals().ask(other).await.unwrap().other_policies, [""; 0]);
    for approval in world.store.approvals().list("ann", ApprovalFilter::Pending, 10).await.unwrap() {
        world.store.approvals().withdraw("ann", &approval.id).await.unwrap();
    }
    assert_eq!(ask_under("v3").await, [""; 0], "the others are over");
}

// spec: N-10
async fn too_late_is_denied(world: World) {
    let second = world.second().await;
    let brief = ApprovalRequest { timeout: Duration::from_millis(1), ..ask() };
    let approval = asked(&world.store, brief.clone()).await;
    over(&world.store, &approval).await;
    let late = world.store.approvals().decide(decide(&approval, Answer::Approve)).await.unwrap();
    let DecideOutcome::NotPending(late) = late else { panic!("{late:?}") };
    assert_eq!(late.status, ApprovalStatus::Expired);
    assert_eq!(world.store.approvals().list("ann", ApprovalFilter::Pending, 10).await.unwrap(), []);
    let refused = world.store.approvals().consume(call(&approval)).await.unwrap();
    assert_eq!(refused, ApprovalUse::Refused(UnusableApproval::Expired));
    let (here, there) = tokio::join!(world.store.approvals().expire(10), second.approvals().expire(10));
    let ended: Vec<_> = here.unwrap().into_iter().chain(there.unwrap()).collect();
    assert_eq!(ended.iter().map(|approval| &approval.id).collect::<Vec<_>>(), [&approval.id]);
    assert_eq!(ended[0].status, ApprovalStatus::Expired);
    let next = asked(&world.store, brief.clone()).await;
    // Nobody has written down that this one is over; asking again does, and hands it out.
    let (last, expired) = eventually("the place to be free", async || {
        let AskResult { asked, expired, .. } = world.store.approvals().ask(brief.clone()).await.unwrap();
        match asked {
            AskOutcome::New(approval) => Some((approval, expired.expect("the one before is over"))),
            AskOutcome::Same(same) => {
                assert_eq!((same.id, expired), (next.id.clone(), None));
                None
            }
            other => panic!("{other:?}"),
        }
    })
    .await;
    assert_ne!(last.id, next.id);
    assert_eq!((&expired.id, expired.status), (&next.id, ApprovalStatus::Expired));
    assert_eq!(world.store.approvals().get("ann", &next.id).await.unwrap(), Some(expired));
    let ended = eventually("the last to be over", async || {
        let ended = world.store.approvals().expire(10).await.unwrap();
        (!ended.is_empty()).then_some(ended)
    })
    .await;
    assert_eq!(ended.iter().map(|approval| &approval.id).collect::<Vec<_>>(), [&last.id]);
}

async fn a_call_is_told_once_that_its_time_is_over(world: World) {
    let second = world.second().await;
    let brief = ApprovalRequest { timeout: Duration::from_millis(1), ..ask() };
    let approval = asked(&world.store, brief.clone()).await;
    over(&world.store, &approval).await;
    for other in [
        ApprovalRequest { scope: scope("ann", "writer"), ..brief.clone() },
        ApprovalRequest { args: "{}".into(), ..brief.clone() },
        ApprovalRequest { scope: scope("bob", "assistant"), ..brief.clone() },
    ] {
        assert_eq!(world.store.approvals().take_expired(other).await.unwrap(), None);
    }
    let (here, there) = tokio::join!(
        world.store.approvals().take_expired(brief.clone()),
        second.approvals().take_expired(brief.clone())
    );
    let told: Vec<_> = here.unwrap().into_iter().chain(there.unwrap()).collect();
    assert_eq!(
        told.iter().map(|one| (&one.id, one.status)).collect::<Vec<_>>(),
        [(&approval.id, ApprovalStatus::Expired)]
    );
    let open = asked(&world.store, ask()).await;
    assert_eq!(world.store.approvals().take_expired(ask()).await.unwrap(), None);
    approve(&world.store, &open).await;
}

// spec: N-10
async fn a_call_is_told_also_when_others_ended_it(world: World) {
    for is_given in [false, true] {
        let timeout = Duration::from_millis(if is_given { 300 } else { 1 });
        let brief = ApprovalRequest { timeout, ..ask() };
        let approval = asked(&world.store, brief.clone()).await;
        if is_given {
            approve(&world.store, &approval).await;
        }
        over(&world.store, &approval).await;
        assert_eq!(world.store.approvals().expire(10).await.unwrap().len(), 1);
        let told = world.store.approvals().take_expired(brief.clone()).await.unwrap().unwrap();
        assert_eq!((told.id, told.decided_at.is_some()), (approval.id, is_given));
        assert_eq!(world.store.approvals().take_expired(brief).await.unwrap(), None);
    }
}

async fn one_that_is_withdrawn_leaves_its_place(world: World) {
    let first = asked(&world.store, ask()).await;
    assert!(!world.store.approvals().withdraw("bob", &first.id).await.unwrap());
    assert!(world.store.approvals().withdraw("ann", &first.id).await.unwrap());
    assert!(!world.store.approvals().withdraw("ann", &first.id).await.unwrap());
    assert_eq!(world.store.approvals().take_expired(ask()).await.unwrap(), None);
    let second = asked(&world.store, ask()).await;
    approve(&world.store, &second).await;
    assert!(world.store.approvals().withdraw("ann", &second.id).await.unwrap());
    let refused = world.store.approvals().consume(call(&second)).await.unwrap();
    assert_eq!(refused, ApprovalUse::Refused(UnusableApproval::Expired));
    let late = world.store.approvals().decide(decide(&first, Answer::Approve)).await.unwrap();
    assert!(matches!(late, DecideOutcome::NotPending(_)), "{late:?}");
}

async fn over(store: &Store, approval: &Approval) {
    eventually("the approval to be over", async || {
        let now = store.approvals().get("ann", &approval.id).await.unwrap().unwrap();
        (now.status == ApprovalStatus::Expired).then_some(())
    })
    .await;
}

async fn nobody_is_asked_too_much(world: World) {
    let brief = ApprovalRequest { timeout: Duration::from_millis(1), tool: "brief".into(), ..ask() };
    let old = asked(&world.store, brief.clone()).await;
    over(&world.store, &old).await;
    let nth = |number: usize| ApprovalRequest { tool: format!("s{number}"), ..ask() };
    let mut pending = Vec::new();
    for number in 0..100 {
        pending.push(asked(&world.store, nth(number)).await);
    }
    let full = world.store.approvals().ask(nth(100)).await.unwrap();
    assert_eq!(full, AskResult { asked: AskOutcome::Full, expired: None, other_policies: vec![] });
    let full = world.store.approvals().ask(brief).await.unwrap();
    assert_eq!(full.asked, AskOutcome::Full);
    assert_eq!(full.expired.map(|approval| approval.id), Some(old.id));
    assert_eq!(world.store.approvals().expire(10).await.unwrap(), []);
    assert_eq!(world.store.approvals().list("ann", ApprovalFilter::All, 200).await.unwrap().len(), 101);
    let same = world.store.approvals().ask(nth(7)).await.unwrap().asked;
    assert_eq!(same, AskOutcome::Same(pending[7].clone()));
    asked(&world.store, ApprovalRequest { scope: scope("bob", "assistant"), ..ask() }).await;
    world.store.approvals().decide(decide(&pending[7], Answer::Deny)).await.unwrap();
    asked(&world.store, nth(100)).await;
}

async fn what_is_over_is_forgotten(world: World) {
    let open = asked(&world.store, ask()).await;
    let denied = asked(&world.store, ApprovalRequest { tool: "denied".into(), ..ask() }).await;
    world.store.approvals().decide(decide(&denied, Answer::Deny)).await.unwrap();
    let given = asked(&world.store, ApprovalRequest { tool: "given".into(), ..ask() }).await;
    approve(&world.store, &given).await;
    for number in 0..3 {
        let tool = format!("s{number}");
        let old = ApprovalRequest { timeout: Duration::from_millis(1), tool, ..ask() };
        over(&world.store, &asked(&world.store, old).await).await;
    }
    // Nobody has put on record that these are over.
    assert_eq!(world.store.approvals().prune(i64::MAX, 10).await.unwrap(), 0);
    assert_eq!(world.store.approvals().expire(10).await.unwrap().len(), 3);
    assert_eq!(world.store.approvals().prune(open.created_at, 10).await.unwrap(), 0);
    assert_eq!(world.store.approvals().prune(i64::MAX, 2).await.unwrap(), 2);
    assert_eq!(world.store.approvals().prune(i64::MAX, 2).await.unwrap(), 1);
    assert_eq!(world.store.approvals().prune(i64::MAX, 2).await.unwrap(), 0);
    let left = world.store.approvals().list("ann", ApprovalFilter::All, 10).await.unwrap();
    let left: Vec<_> = left.iter().map(|approval| approval.id.as_str()).collect();
    assert_eq!(left, [&given.id, &denied.id, &open.id]);
    let mut timeout = Duration::from_millis(50);
    for answer in [Answer::Approve, Answer::Deny] {
        let decided = eventually("an answer in time", async || {
            timeout *= 2;
            let tool = format!("{answer:?} {timeout:?}");
            let approval = asked(&world.store, ApprovalRequest { timeout, tool, ..ask() }).await;
            let decided = world.store.approvals().decide(decide(&approval, answer)).await.unwrap();
            let used = match answer {
                Answer::Approve => is_used(&world.store.approvals().consume(call(&approval)).await.unwrap()),
                Answer::Deny => true,
            };
            (matches!(decided, DecideOutcome::Decided(_)) && used).then_some(approval)
        })
        .await;
        eventually("the decided one to be forgotten", async || {
            world.store.approvals().expire(10).await.unwrap();
            world.store.approvals().prune(i64::MAX, 10).await.unwrap();
            world.store.approvals().get("ann", &decided.id).await.unwrap().is_none().then_some(())
        })
        .await;
    }
    assert_eq!(world.store.approvals().list("ann", ApprovalFilter::All, 10).await.unwrap().len(), 3);
}

// spec: N-10
async fn an_answer_is_on_record(world: World) {
    let yes = asked(&world.store, ask()).await;
    approve(&world.store, &yes).await;
    let no = asked(&world.store, ApprovalRequest { tool: "t".into(), ..ask() }).await;
    world.store.approvals().decide(decide(&no, Answer::Deny)).await.unwrap();
    let records = world.store.audit().tail(10, Some("ann")).await.unwrap();
    let told: Vec<_> =
        records.iter().map(|record| ["action", "subject", "note"].map(|name| record.text(name))).collect();
    let expected =
        |action: &str, approval: &Approval| [action, &approval.id, "owner"].map(|text| Some(text.to_owned()));
    assert_eq!(told, [expected("approval_granted", &yes), expected("approval_denied", &no)]);
}

async fn those_of_a_time_are_counted(world: World) {
    let approvals = world.store.approvals();
    let first = asked(&world.store, ask()).await;
    let brief = ApprovalRequest { timeout: Duration::from_millis(1), args: "{}".into(), ..ask() };
    let brief = asked(&world.store, brief).await;
    over(&world.store, &brief).await;
    let (user, from) = (first.user.as_str(), first.created_at);
    let all = approvals.count_between(user, from, first.expires_at).await.unwrap();
    assert_eq!((all.asked, all.expired), (2, 1), "one that is not over has not expired");
    let before = approvals.count_between(user, 0, from).await.unwrap();
    assert_eq!((before.asked, before.expired), (0, 0));
    let later = approvals.count_between(user, brief.created_at + 1, i64::MAX).await.unwrap();
    assert_eq!((later.asked, later.expired, later.unused), (0, 1, 0));
    assert_eq!(approvals.count_between("nobody", 0, i64::MAX).await.unwrap().asked, 0);
}

async fn an_answer_that_nobody_used_expires(world: World) {
    let mut timeout = Duration::from_millis(50);
    let approval = eventually("an answer in time", async || {
        timeout *= 2;
        let approval = asked(&world.store, ApprovalRequest { timeout, ..ask() }).await;
        match world.store.approvals().decide(decide(&approval, Answer::Approve)).await.unwrap() {
            DecideOutcome::Decided(approval) => Some(approval),
            _ => None,
        }
    })
    .await;
    over(&world.store, &approval).await;
    let refused = world.store.approvals().consume(call(&approval)).await.unwrap();
    assert_eq!(refused, ApprovalUse::Refused(UnusableApproval::Expired));
    if let Some(records) = world.count("SELECT count(*) FROM audit WHERE event = 'intent'").await {
        assert_eq!(records, 0);
    }
    let counts = world.store.approvals().count_between("ann", 0, i64::MAX).await.unwrap();
    assert_eq!(counts.unused, 1, "{counts:?}");
}

// spec: N-10
async fn outlives_the_process(world: World) {
    let approval = asked(&world.store, ask()).await;
    let second = world.second().await;
    approve(&second, &approval).await;
    second.close().await;
    let third = world.second().await;
    let AskOutcome::Same(found) = third.approvals().ask(ask()).await.unwrap().asked else {
        panic!("asked twice")
    };
    assert_eq!(found.id, approval.id);
    assert!(is_used(&third.approvals().consume(call(&found)).await.unwrap()));
}

async fn belongs_to_its_user(world: World) {
    let hers = asked(&world.store, ask()).await;
    let his = asked(&world.store, ApprovalRequest { scope: scope("bob", "assistant"), ..ask() }).await;
    assert_eq!(world.store.approvals().get("bob", &hers.id).await.unwrap(), None);
    assert_eq!(world.store.approvals().find(&hers.id).await.unwrap(), Some(hers.clone()));
    let hers_only = world.store.approvals().list("ann", ApprovalFilter::All, 10).await.unwrap();
    assert_eq!(hers_only, std::slice::from_ref(&hers));
    let all = world.store.approvals().list_all(ApprovalFilter::Pending, 10).await.unwrap();
    assert_eq!(all, [his.clone(), hers.clone()]);
    approve(&world.store, &hers).await;
    assert_eq!(world.store.approvals().list_all(ApprovalFilter::Pending, 10).await.unwrap(), [his]);
    assert_eq!(world.store.approvals().list("ann", ApprovalFilter::Pending, 10).await.unwrap(), []);
}

async fn refuses_what_is_too_large(world: World) {
    let large = ApprovalRequest { args: "x".repeat(1024 * 1024), ..ask() };
    let approval = asked(&world.store, large.clone()).await;
    assert_eq!(approval.args.len(), 1024 * 1024);
    let error = world
        .store
        .approvals()
        .ask(ApprovalRequest { args: format!("{}x", large.args), ..ask() })
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "the text of the arguments has 1048577 bytes; 1048576 are allowed");
}
