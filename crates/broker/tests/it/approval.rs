//! Approvals: the host and the store race, the store decides, and the decision outlives the process.

use std::future::{Ready, pending};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use embody_broker::approval::{Answer, ApprovalPrompt, Approvals, bound_policy};
use embody_broker::arguments::Arguments;
use embody_broker::policy::{Class, Via};
use embody_store::approvals::{
    Answer as StoredAnswer, Approval, ApprovalFilter, ApprovalRequest, ApprovalStatus, ApprovalUse,
    AskOutcome, DecideApproval, DecideOutcome, UseApproval,
};
use embody_store::audit::{Actor, AuditedCall, Intent, RedactedArguments};
use embody_store::{DatabaseUrl, Scope, Store};
use embody_wire::Outcome;
use embody_wire::server::HostResponse;
use serde_json::value::RawValue;
use tempfile::TempDir;

const LONG: Duration = Duration::from_secs(3600);
const SHORT: Duration = Duration::from_millis(20);
/// Faster than a person reads.
const FAST: Duration = Duration::from_millis(499);

/// A host without forms.
const NO_HOST: Option<Elicit> = None;
type Elicit = fn(Box<RawValue>) -> Ready<Option<HostResponse>>;

/// A store in a file, and a second handle on it, as another process has.
struct World {
    store: Store,
    other: Store,
    folder: TempDir,
}

impl World {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (store, other) = (open(&folder).await, open(&folder).await);
        Self { store, other, folder }
    }

    fn approvals(&self, ask_wait: Duration) -> Approvals {
        Approvals::new(self.store.clone(), ask_wait)
    }

    /// The pending approval, as another process sees it.
    async fn pending(&self) -> Approval {
        let mut changes = self.other.changes(embody_store::Topic::Approvals);
        loop {
            if let Some(one) =
                self.other.approvals().list("ann", ApprovalFilter::Pending, 10).await.unwrap().pop()
            {
                return one;
            }
            changes.changed().await.unwrap();
        }
    }
}

async fn open(folder: &TempDir) -> Store {
    Store::open(DatabaseUrl::File(folder.path().join("embody.db"))).await.unwrap()
}

async fn decide(store: &Store, approval: &Approval, answer: StoredAnswer) {
    let (user, id) = (approval.user.clone(), approval.id.clone());
    let decided =
        store.approvals().decide(DecideApproval { user, id, answer, by: "cli".into() }).await.unwrap();
    assert!(matches!(decided, DecideOutcome::Decided(_)), "{decided:?}");
}

struct Call {
    scope: Scope,
    arguments: Arguments,
    class: Class,
    via: Vec<Via>,
}

impl Call {
    fn new() -> Self {
        let raw = RawValue::from_string(r#"{"to": "bob@example.com", "body": "Hi\u202e"}"#.into()).unwrap();
        Self {
            scope: Scope::new("ann", "assistant").unwrap(),
            arguments: Arguments::read(Some(&raw)).unwrap(),
            class: Class::HumanVisibleWrite,
            via: Via::ALL.to_vec(),
        }
    }

    fn prompt(&self) -> ApprovalPrompt<'_> {
        let request = ApprovalRequest { reason: "mail leaves the building".into(), ..self.ask() };
        ApprovalPrompt {
            request,
            class: self.class,
            declared: Vec::new(),
            via: &self.via,
            is_suspended: false,
        }
    }

    fn flagged(&self, flags: Vec<String>) -> ApprovalPrompt<'_> {
        let prompt = self.prompt();
        ApprovalPrompt { request: ApprovalRequest { flags, ..prompt.request }, ..prompt }
    }

    fn open_for(&self, timeout: Duration) -> ApprovalPrompt<'_> {
        let prompt = self.prompt();
        ApprovalPrompt { request: ApprovalRequest { timeout, ..prompt.request }, ..prompt }
    }

    /// As the store is asked for it.
    fn ask(&self) -> ApprovalRequest {
        ApprovalRequest {
            scope: self.scope.clone(),
            session: "s".into(),
            channel: "stdio".into(),
            body: "mail".into(),
            tool: "send_email".into(),
            class: self.class.name().into(),
            args: self.arguments.canonical().into(),
            pin: "p".into(),
            policy: bound_policy("v1", self.class, &self.via),
            reason: String::new(),
            flags: vec!["first time".into()],
            timeout: LONG,
        }
    }
}

/// A host's response, after a person has read the form.
fn action(action: &str) -> Option<HostResponse> {
    answered(action, Duration::from_secs(3))
}

fn answered(action: &str, after: Duration) -> Option<HostResponse> {
    let result = RawValue::from_string(format!(r#"{{"action":"{action}"}}"#)).unwrap();
    Some(HostResponse { outcome: Outcome::Result(result), after: Some(after) })
}

/// Fails if it takes as long as [`LONG`].
async fn soon<T>(asking: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), asking).await.expect("the call waits")
}

fn failed() -> Option<HostResponse> {
    let error = RawValue::from_string(r#"{"code":-32601,"message":"no"}"#.into()).unwrap();
    Some(HostResponse { outcome: Outcome::Error(error), after: Some(Duration::ZERO) })
}

fn id(answer: &Answer) -> &str {
    match answer {
        Answer::Approved { id }
        | Answer::Denied { id, .. }
        | Answer::Pending { id, .. }
        | Answer::Lapsed { id, .. }
        | Answer::TimedOut { id } => id,
        other => panic!("{other:?}"),
    }
}

async fn status(store: &Store, id: &str) -> ApprovalStatus {
    store.approvals().get("ann", id).await.unwrap().unwrap().status
}

// spec: N-10
#[tokio::test]
async fn the_host_shows_the_words_and_its_yes_counts() {
    let world = World::new().await;
    let approvals = world.approvals(LONG);
    let asking = tokio::spawn(async move {
        let call = Call::new();
        let elicit = async |params: Box<RawValue>| {
            let params: serde_json::Value = serde_json::from_str(params.get()).unwrap();
            let message = params["message"].as_str().unwrap();
            for part in ["Send email to bob@example.com?", "mail/send_email", "Hi⟨U+202E⟩", "first time"]
            {
                assert!(message.contains(part), "{part}: {message}");
            }
            assert_eq!(params["requestedSchema"]["properties"], serde_json::json!({}));
            action("accept")
        };
        approvals.ask(call.prompt(), Some(elicit)).await.unwrap()
    });
    let answer = asking.await.unwrap();
    assert!(matches!(answer, Answer::Approved { .. }), "{answer:?}");
    let kept = world.other.approvals().get("ann", id(&answer)).await.unwrap().unwrap();
    assert_eq!((kept.status, kept.decided_by.as_deref()), (ApprovalStatus::Approved, Some("elicitation")));
}

// spec: N-10
#[tokio::test]
async fn the_hosts_no_stands() {
    let world = World::new().await;
    let call = Call::new();
    let first = world.approvals(LONG).ask(call.prompt(), Some(async |_| action("decline"))).await.unwrap();
    assert!(matches!(&first, Answer::Denied { by, .. } if by == "elicitation"), "{first:?}");
    let again =
        world.approvals(LONG).ask(call.prompt(), Some(async |_| panic!("nobody is asked again"))).await;
    assert_eq!(again.unwrap(), first);
}

// spec: N-10
#[tokio::test]
async fn another_process_answers_whatever_the_host_does() {
    for answered_with in ["nothing", "not asked", "no host"] {
        let world = World::new().await;
        let call = Call::new();
        let elicit = async |_| match answered_with {
            "nothing" => pending().await,
            _ => None,
        };
        let approvals = world.approvals(LONG);
        let asking = approvals.ask(call.prompt(), (answered_with != "no host").then_some(elicit));
        let deciding = async {
            let approval = world.pending().await;
            assert_eq!(approval.args, "{\"body\":\"Hi\u{202e}\",\"to\":\"bob@example.com\"}");
            decide(&world.other, &approval, StoredAnswer::Approve).await;
            approval.id
        };
        let (answer, approved) = tokio::join!(asking, deciding);
        assert_eq!(answer.unwrap(), Answer::Approved { id: approved }, "{answered_with}");
    }
}

// spec: N-10
#[tokio::test]
async fn a_form_that_was_dismissed_leaves_the_approval_open_and_the_call_returns_at_once() {
    for is_suspended in [false, true] {
        for answered_with in [action("cancel"), failed(), action("later"), answered("decline", FAST)] {
            let world = World::new().await;
            let call = Call::new();
            let wanted = || ApprovalPrompt { is_suspended, ..call.prompt() };
            let approvals = world.approvals(LONG);
            let answer = soon(approvals.ask(wanted(), Some(async |_| answered_with.clone()))).await.unwrap();
            let Answer::Pending { id, channels, .. } = &answer else {
                panic!("{answered_with:?}: {answer:?}")
            };
            assert_eq!(channels, &[Via::Console, Via::Cli, Via::Telegram]);
            assert_eq!(status(&world.other, id).await, ApprovalStatus::Pending);
            // Another channel may still answer, and a repeated call finds the answer without another form.
            decide(&world.other, &world.pending().await, StoredAnswer::Approve).await;
            let elicit = async |_| panic!("the form is shown again");
            let again = approvals.ask(wanted(), Some(elicit)).await.unwrap();
            assert_eq!(again, Answer::Approved { id: id.clone() });
        }
    }
}

// spec: N-10
#[tokio::test]
async fn what_another_channel_decided_while_the_form_was_dismissed_counts() {
    let world = World::new().await;
    let call = Call::new();
    let elicit = async |_| {
        decide(&world.other, &world.pending().await, StoredAnswer::Approve).await;
        action("cancel")
    };
    let answer = world.approvals(LONG).ask(call.prompt(), Some(elicit)).await.unwrap();
    assert!(matches!(answer, Answer::Approved { .. }), "{answer:?}");
}

// spec: N-10
#[tokio::test]
async fn an_answer_that_no_person_can_have_given_decides_only_where_no_other_channel_is_left() {
    let world = World::new().await;
    let only = Call { via: vec![Via::Elicitation], ..Call::new() };
    let yes = async |_| answered("accept", FAST);
    let answer = world.approvals(LONG).ask(only.prompt(), Some(yes)).await.unwrap();
    assert!(matches!(answer, Answer::Approved { .. }), "{answer:?}");
    let answer = soon(world.approvals(LONG).ask(Call::new().prompt(), Some(yes))).await.unwrap();
    assert!(matches!(answer, Answer::Pending { .. }), "{answer:?}");
    let other = Call { class: Class::Write, ..only };
    let fast = async |_| answered("decline", FAST);
    let answer = world.approvals(LONG).ask(other.prompt(), Some(fast)).await.unwrap();
    assert!(matches!(answer, Answer::Denied { .. }), "{answer:?}");
    let slow = async |_| answered("decline", Duration::from_millis(500));
    let answer = world.approvals(LONG).ask(Call::new().prompt(), Some(slow)).await.unwrap();
    assert!(matches!(answer, Answer::Denied { .. }), "{answer:?}");
}

// spec: N-10
#[tokio::test]
async fn a_parked_form_that_is_never_answered_ends_with_the_approval() {
    let world = World::new().await;
    let call = Call::new();
    let approvals = world.approvals(SHORT);
    let parked = |timeout| ApprovalPrompt { is_suspended: true, ..call.open_for(timeout) };
    let timeout = Duration::from_millis(300);
    let never = async |_| pending().await;
    let answer = soon(approvals.ask(parked(timeout), Some(never))).await.unwrap();
    assert!(matches!(answer, Answer::TimedOut { .. }), "{answer:?}");
    // A call returns at `ask_wait`, also if the host could not be asked.
    let answer = soon(approvals.ask(call.prompt(), Some(never))).await.unwrap();
    assert!(matches!(answer, Answer::Pending { .. }), "{answer:?}");
    let answer = soon(approvals.ask(parked(LONG), Some(async |_| None))).await.unwrap();
    assert!(matches!(answer, Answer::Pending { .. }), "{answer:?}");
}

// spec: N-10
#[tokio::test]
async fn what_does_not_fit_a_form_is_asked_on_the_other_channels() {
    let text = |lines: usize| format!(r#"{{"body":"{}","to":"bob@example.com"}}"#, "a\\n".repeat(lines));
    let arguments = |lines| Arguments::read(Some(&RawValue::from_string(text(lines)).unwrap())).unwrap();
    let world = World::new().await;
    // 12 other lines, flags included, and one more than there are line breaks.
    let short = Call { arguments: arguments(2), ..Call::new() };
    let shown = world.approvals(LONG).ask(short.prompt(), Some(async |_| action("accept"))).await.unwrap();
    assert!(matches!(shown, Answer::Approved { .. }), "{shown:?}");
    let long = Call { arguments: arguments(3), ..Call::new() };
    let elicit = async |_| panic!("the form is shown");
    let asked = world.approvals(SHORT).ask(long.prompt(), Some(elicit)).await.unwrap();
    let Answer::Pending { channels, .. } = &asked else { panic!("{asked:?}") };
    assert_eq!(channels, &[Via::Console, Via::Cli, Via::Telegram]);
    decide(&world.other, &world.pending().await, StoredAnswer::Approve).await;
    let approved = world.approvals(SHORT).ask(long.prompt(), Some(elicit)).await.unwrap();
    assert!(matches!(approved, Answer::Approved { .. }), "{approved:?}");
    // If only a form may answer, the call is denied with this reason.
    let only = Call { via: vec![Via::Elicitation], ..long };
    let denied = world.approvals(SHORT).ask(only.prompt(), Some(elicit)).await.unwrap();
    let Answer::Unshowable(why) = denied else { panic!("{denied:?}") };
    assert!(why.contains("16 lines") && why.contains("`via"), "{why}");
}

// spec: N-10
#[tokio::test]
async fn the_first_answer_decides() {
    let world = World::new().await;
    let call = Call::new();
    let elicit = async |_| {
        decide(&world.other, &world.pending().await, StoredAnswer::Deny).await;
        action("accept")
    };
    let answer = world.approvals(LONG).ask(call.prompt(), Some(elicit)).await.unwrap();
    assert!(matches!(&answer, Answer::Denied { by, .. } if by == "cli"), "{answer:?}");
}

// spec: N-10
#[tokio::test]
async fn a_call_that_waited_long_enough_is_pending_and_takes_its_question_back() {
    struct Taken(Arc<AtomicBool>);
    impl Drop for Taken {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let world = World::new().await;
    let call = Call::new();
    let is_taken_back = Arc::new(AtomicBool::new(false));
    let taken = Taken(Arc::clone(&is_taken_back));
    let elicit = async move |_| {
        let _taken = taken;
        pending().await
    };
    let first = world.approvals(SHORT).ask(call.prompt(), Some(elicit)).await.unwrap();
    assert!(matches!(first, Answer::Pending { .. }), "{first:?}");
    assert!(is_taken_back.load(Ordering::Relaxed));
    assert_eq!(world.approvals(SHORT).ask(call.prompt(), NO_HOST).await.unwrap(), first);
    assert_eq!(status(&world.other, id(&first)).await, ApprovalStatus::Pending);
}

// spec: N-10
#[tokio::test]
async fn the_same_call_picks_the_answer_up_after_a_restart() {
    for (answered_with, is_yes) in [(StoredAnswer::Approve, true), (StoredAnswer::Deny, false)] {
        let World { store, other, folder } = World::new().await;
        let call = Call::new();
        let approvals = Approvals::new(store, SHORT);
        let first = approvals.ask(call.prompt(), NO_HOST).await.unwrap();
        assert!(matches!(first, Answer::Pending { .. }), "{first:?}");
        drop(approvals);
        let approval = other.approvals().get("ann", id(&first)).await.unwrap().unwrap();
        decide(&other, &approval, answered_with).await;
        let reborn = Approvals::new(open(&folder).await, SHORT);
        let elicit = async |_| panic!("nobody is asked again");
        let again = reborn.ask(call.prompt(), Some(elicit)).await.unwrap();
        assert_eq!((matches!(again, Answer::Approved { .. }), id(&again)), (is_yes, id(&first)), "{again:?}");
    }
}

// spec: N-10
#[tokio::test]
async fn a_time_out_is_a_denial_that_is_told_once() {
    let world = World::new().await;
    let call = Call::new();
    let hasty = call.open_for(Duration::from_millis(5));
    // A waiting call receives it.
    let first = world.approvals(LONG).ask(hasty, Some(async |_| pending().await)).await.unwrap();
    assert!(matches!(first, Answer::TimedOut { .. }), "{first:?}");
    // A repeated call receives the answer that the first did not wait for.
    let brief = ApprovalRequest { timeout: Duration::from_millis(1), ..call.ask() };
    let AskOutcome::New(second) = world.other.approvals().ask(brief).await.unwrap().asked else { panic!() };
    assert_ne!(id(&first), second.id);
    while status(&world.other, &second.id).await != ApprovalStatus::Expired {
        tokio::task::yield_now().await;
    }
    // Also after a cleanup in between.
    assert_eq!(world.other.approvals().expire(10).await.unwrap().len(), 1);
    let elicit = async |_| panic!("nobody is asked about what is over");
    let third = world.approvals(LONG).ask(call.prompt(), Some(elicit)).await.unwrap();
    assert_eq!(third, Answer::TimedOut { id: second.id });
    let fourth = world.approvals(LONG).ask(call.prompt(), Some(async |_| action("accept"))).await.unwrap();
    assert!(matches!(fourth, Answer::Approved { .. }), "{fourth:?}");
}

// spec: N-10
#[tokio::test]
async fn an_unused_approval_is_reported_once() {
    let world = World::new().await;
    let call = Call::new();
    let brief = ApprovalRequest { timeout: Duration::from_secs(2), ..call.ask() };
    let AskOutcome::New(given) = world.other.approvals().ask(brief).await.unwrap().asked else { panic!() };
    decide(&world.other, &given, StoredAnswer::Approve).await;
    while status(&world.other, &given.id).await != ApprovalStatus::Expired {
        tokio::task::yield_now().await;
    }
    world.other.approvals().expire(10).await.unwrap();
    let reported = world.approvals(SHORT).ask(call.prompt(), NO_HOST).await.unwrap();
    assert_eq!(reported, Answer::Lapsed { id: given.id, by: "cli".into() });
    let anew = world.approvals(SHORT).ask(call.prompt(), NO_HOST).await.unwrap();
    assert!(matches!(anew, Answer::Pending { .. }), "{anew:?}");
}

// spec: N-10
#[tokio::test]
async fn what_the_mind_flags_afterwards_is_asked_about_anew() {
    for is_given in [false, true] {
        let world = World::new().await;
        let call = Call::new();
        let AskOutcome::New(shown) = world.other.approvals().ask(call.ask()).await.unwrap().asked else {
            panic!()
        };
        if is_given {
            decide(&world.other, &shown, StoredAnswer::Approve).await;
        }
        let flags = vec!["first time".into(), "never mail Bob".into()];
        let more = || call.flagged(flags.clone());
        let anew = world.approvals(SHORT).ask(more(), NO_HOST).await.unwrap();
        assert!(matches!(anew, Answer::Pending { .. }), "{anew:?}");
        assert_ne!(id(&anew), shown.id);
        assert_eq!(status(&world.other, &shown.id).await, ApprovalStatus::Expired);
        let approval = world.other.approvals().get("ann", id(&anew)).await.unwrap().unwrap();
        assert_eq!(approval.flags, flags);
        decide(&world.other, &approval, StoredAnswer::Approve).await;
        // Fewer flags than were shown are covered.
        for wanted in [more(), call.prompt(), call.flagged(Vec::new())] {
            let answer = world.approvals(SHORT).ask(wanted, NO_HOST).await.unwrap();
            assert_eq!(answer, Answer::Approved { id: approval.id.clone() });
        }
    }
}

// spec: N-10
#[tokio::test]
async fn an_approval_is_for_its_class_and_its_ways() {
    let world = World::new().await;
    let call = Call::new();
    let AskOutcome::New(given) = world.other.approvals().ask(call.ask()).await.unwrap().asked else {
        panic!()
    };
    decide(&world.other, &given, StoredAnswer::Approve).await;
    for other in
        [Call { class: Class::Destructive, ..Call::new() }, Call { via: vec![Via::Telegram], ..Call::new() }]
    {
        let answer = world.approvals(SHORT).ask(other.prompt(), NO_HOST).await.unwrap();
        assert!(matches!(answer, Answer::Pending { .. }), "{answer:?}");
    }
    let same = world.approvals(SHORT).ask(call.prompt(), NO_HOST).await.unwrap();
    assert_eq!(same, Answer::Approved { id: given.id });
}

// spec: N-10
#[tokio::test]
async fn the_host_is_not_asked_about_what_destroys_nor_against_the_rules() {
    let no_way = vec![Via::Console, Via::Cli, Via::Telegram];
    for call in [Call { class: Class::Destructive, ..Call::new() }, Call { via: no_way, ..Call::new() }] {
        let world = World::new().await;
        let elicit = async |_| panic!("the host is asked");
        let answer = world.approvals(SHORT).ask(call.prompt(), Some(elicit)).await.unwrap();
        assert!(matches!(answer, Answer::Pending { .. }), "{answer:?}");
    }
}

#[tokio::test]
async fn a_call_does_not_wait_if_only_the_host_may_answer_and_does_not() {
    let call = Call { via: vec![Via::Elicitation], ..Call::new() };
    let world = World::new().await;
    let dismissed = world.approvals(LONG).ask(call.prompt(), Some(async |_| action("cancel"))).await.unwrap();
    assert!(matches!(dismissed, Answer::Pending { .. }), "{dismissed:?}");
    let no_forms = world.approvals(LONG).ask(call.prompt(), NO_HOST).await.unwrap();
    assert!(matches!(no_forms, Answer::Unshowable(_)), "no repetition would help: {no_forms:?}");
    let asked_again =
        world.approvals(LONG).ask(call.prompt(), Some(async |_| action("accept"))).await.unwrap();
    assert_eq!(asked_again, Answer::Approved { id: id(&dismissed).to_owned() });
}

/// A waiter may see the answer before it is used, which is another case; repeat until this case occurs.
#[tokio::test]
async fn an_answer_that_another_call_used_is_asked_for_anew() {
    for _ in 0..50 {
        let world = World::new().await;
        let call = Call::new();
        let used = async |_| {
            let approval = world.pending().await;
            decide(&world.other, &approval, StoredAnswer::Approve).await;
            use_up(&world.other, &approval).await;
            None
        };
        let approvals = world.approvals(LONG);
        let asking = approvals.ask(call.prompt(), Some(used));
        let mut asking = std::pin::pin!(asking);
        // The pending one after the first was used is the second.
        let second = tokio::select! {
            _ = &mut asking => None,
            second = async {
                loop {
                    let all = world.other.approvals().list("ann", ApprovalFilter::All, 10).await.unwrap();
                    match all.as_slice() {
                        [second, first] if first.status == ApprovalStatus::Used => return second.clone(),
                        _ => tokio::task::yield_now().await,
                    }
                }
            } => Some(second),
        };
        let Some(second) = second else { continue };
        decide(&world.other, &second, StoredAnswer::Approve).await;
        assert_eq!(asking.await.unwrap(), Answer::Approved { id: second.id });
        return;
    }
    panic!("the answer was always seen before it was used");
}

async fn use_up(store: &Store, approval: &Approval) {
    let call = AuditedCall {
        call_id: "call".into(),
        body: approval.body.clone(),
        tool: approval.tool.clone(),
        class: approval.class.clone(),
        args: RedactedArguments::of(Call::new().arguments.canonical()),
    };
    let actor = Actor { user: approval.user.clone(), agent: None, session: None, channel: None };
    let used = UseApproval {
        id: approval.id.clone(),
        actor,
        intent: Intent { call, approval: None },
        pin: approval.pin.clone(),
        policy: approval.policy.clone(),
    };
    assert!(matches!(store.approvals().consume(used).await.unwrap(), ApprovalUse::Used(_)));
}

// spec: N-10
#[tokio::test]
async fn what_cannot_be_shown_whole_is_not_asked_about() {
    let world = World::new().await;
    let long = format!(r#"{{"body":"{}"}}"#, "a".repeat(20_000));
    let arguments = Arguments::read(Some(&RawValue::from_string(long).unwrap())).unwrap();
    let call = Call { arguments, ..Call::new() };
    let elicit = async |_| panic!("the host is asked");
    let answer = world.approvals(LONG).ask(call.prompt(), Some(elicit)).await.unwrap();
    let Answer::Unshowable(why) = answer else { panic!("{answer:?}") };
    assert!(why.contains("16384"), "{why}");
    assert_eq!(world.other.approvals().list("ann", ApprovalFilter::All, 10).await.unwrap(), []);
}

#[tokio::test]
async fn a_person_has_only_so_many_questions() {
    let world = World::new().await;
    let approvals = world.approvals(Duration::ZERO);
    for number in 0..=100 {
        let raw = RawValue::from_string(format!(r#"{{"n":{number}}}"#)).unwrap();
        let call = Call { arguments: Arguments::read(Some(&raw)).unwrap(), ..Call::new() };
        let answer = approvals.ask(call.prompt(), NO_HOST).await.unwrap();
        assert_eq!(answer == Answer::Full, number == 100, "{number}: {answer:?}");
    }
}
