//! Gates and approvals: by the host's form, or by the command line of another process.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::host::{Host, Reply};
use super::setup::{Scene, decision, host, is_done};
use super::unruly::Mind;
use crate::support::world::World;

/// One call waits a moment only; the approval itself lives long.
const SHORT_WAIT: &str = "[policy]\nask_wait_s = 1\nask_timeout_s = 300\n";
/// A call waits long enough for the other process.
const LONG_WAIT: &str = "[policy]\nask_wait_s = 60\nask_timeout_s = 300\n";

fn approvals(scene: &Scene) -> Vec<Value> {
    let mut listed = scene.world.run(&["approvals", "list", "--json"]).ok().json();
    serde_json::from_value(listed["approvals"].take()).unwrap()
}

/// Waits until an approval is pending, by polling the list.
fn asked(scene: &Scene) -> String {
    let deadline = std::time::Instant::now() + super::host::SOON;
    loop {
        if let Some(approval) = approvals(scene).first() {
            return approval["id"].as_str().unwrap().to_owned();
        }
        assert!(std::time::Instant::now() < deadline, "nobody is asked");
    }
}

fn pending(host: &mut Host, tool: &str, arguments: &Value) -> String {
    let result = host.call(tool, arguments);
    assert_eq!(decision(&result), "pending", "{result}");
    let reported = &result["_meta"]["embody/decision"];
    assert!(reported["required_next_action"].is_string(), "{result}");
    // A model with a shell must not learn how to approve itself.
    for word in ["approvals approve", "embody approve", "/api/approvals"] {
        assert!(!result.to_string().contains(word), "{word}: {result}");
    }
    reported["approval_id"].as_str().unwrap().to_owned()
}

// spec: N-09
#[test]
fn each_class_has_its_gate() {
    let scene = Scene::new("", &[SHORT_WAIT]);
    let mut host = scene.plain_host();
    assert!(is_done(&host.call("look", &json!({})), "look"));
    assert!(is_done(&host.call("note", &json!({})), "note"));
    pending(&mut host, "send_note", &json!({}));
    pending(&mut host, "erase", &json!({}));
    let mut classes: Vec<Value> =
        approvals(&scene).iter().map(|approval| approval["class"].clone()).collect();
    classes.sort_by_key(Value::to_string);
    assert_eq!(classes, ["destructive", "human_visible_write"]);
    assert!(scene.desk.calls("send_note").is_empty() && scene.desk.calls("erase").is_empty());
}

// spec: N-09
#[test]
fn annotations_of_an_untrusted_body_can_only_tighten() {
    let scene = Scene::new("trust_annotations = false", &[SHORT_WAIT]);
    let mut host = scene.plain_host();
    for tool in ["look", "note", "send_note", "erase"] {
        pending(&mut host, tool, &json!({}));
    }
    let listed = approvals(&scene);
    let class = |tool: &str| listed.iter().find(|one| one["tool"] == tool).unwrap()["class"].clone();
    assert_eq!(class("look"), "human_visible_write");
    assert_eq!(class("erase"), "destructive");
}

// spec: N-10
#[test]
fn a_form_that_is_accepted_lets_exactly_this_call_pass() {
    let scene = Scene::new("", &[]);
    let mut host = scene.asked_host("accept");
    let arguments = json!({"text": "hello\u{202e}there", "to": ["ann@example.com"]});
    assert!(is_done(&host.call("send_note", &arguments), "send_note"));
    assert_eq!(scene.desk.calls("send_note"), std::slice::from_ref(&arguments));
    let form = host.questions[0].data();
    let message = form["message"].as_str().unwrap();
    assert!(
        message.starts_with("Send note to ann@example.com? 11 characters, desk/send_note\n"),
        "{message}"
    );
    for part in ["desk", "send_note", "ann@example.com", "hello", "there"] {
        assert!(message.contains(part), "no `{part}` in {message}");
    }
    assert!(!message.contains('\u{202e}'), "{message}");
    assert_eq!(form["requestedSchema"]["properties"], json!({}), "{form}");
    // It is used up: the same call is asked about again.
    assert!(is_done(&host.call("send_note", &arguments), "send_note"));
    assert_eq!(host.questions.len(), 2);
    assert_eq!(scene.desk.calls("send_note").len(), 2);
}

// spec: N-10
#[test]
fn a_declined_form_denies_the_call() {
    let scene = Scene::new("", &[LONG_WAIT]);
    let mut host = host(&scene.world, &json!({"elicitation": {}}), |_, _| Reply::Silence);
    let call = host.begin_call("send_note", &json!({"text": "hello"}));
    host.until("the form", |host| !host.questions.is_empty());
    // A person reads it.
    std::thread::sleep(super::host::READING_TIME);
    let form = host.questions[0].clone();
    host.reply(&form, &super::host::elicited("decline"));
    assert_eq!(decision(&host.answer(call).result()), "deny");
    assert!(scene.desk.calls("send_note").is_empty());
    assert!(approvals(&scene).is_empty());
}

/// In both eras, at once: the call would wait for a minute, and a host of the stateless era for five.
// spec: N-10
#[test]
fn an_unanswered_form_leaves_the_approval_pending_elsewhere() {
    let scene = Scene::new("", &[LONG_WAIT]);
    let mut session = scene.asked_host("cancel");
    let mut alone = SlowApprover::new(&scene.world, "cancel");
    for (era, text) in [("session", "one"), ("stateless", "two")] {
        let arguments = json!({"text": text});
        let began = Instant::now();
        let result = match era {
            "session" => session.call("send_note", &arguments),
            _ => alone.call("send_note", &arguments),
        };
        assert!(began.elapsed() < Duration::from_secs(30), "{era}: {:?}", began.elapsed());
        assert_eq!(decision(&result), "pending", "{era}: {result}");
        let said = result["content"][0]["text"].as_str().unwrap();
        assert!(said.contains("in the embody console"), "{said}");
        scene.world.run(&["approvals", "approve", &asked(&scene)]).ok();
        let again = match era {
            "session" => session.call("send_note", &arguments),
            _ => alone.call("send_note", &arguments),
        };
        assert_eq!(again["content"][0]["text"], "send_note is done", "{era}: {again}");
    }
    assert_eq!((session.questions.len(), alone.forms), (1, 1), "what is approved is not asked about again");
    // An answer of a host without a person does not decide either. If the machine takes long it may pass for a person's.
    for action in ["decline", "accept"] {
        alone.action = action;
        let fast = (0..100).find_map(|number| {
            let began = Instant::now();
            let answered = alone.call("send_note", &json!({"amount": number, "text": action}));
            (began.elapsed() < Duration::from_millis(500)).then_some(answered)
        });
        assert_eq!(fast.as_ref().map(decision), Some("pending"), "{action}: {fast:?}");
    }
}

/// A host of the stateless era with the contract that answers every form like this.
struct SlowApprover {
    host: Host,
    action: &'static str,
    forms: usize,
}

impl SlowApprover {
    fn new(world: &World, action: &'static str) -> Self {
        let mut alone = Self { host: Host::start(super::setup::broker(world)), action, forms: 0 };
        let packet = alone.call("runtime_bootstrap", &json!({}));
        assert_ne!(packet["isError"], true, "{packet}");
        alone
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let mut params = json!({"name": tool, "arguments": arguments, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        }});
        loop {
            let result = self.host.ask("tools/call", &params.to_string()).result();
            if result["resultType"] != "input_required" {
                return result;
            }
            self.forms += 1;
            params["requestState"] = result["requestState"].clone();
            params["inputResponses"] = json!({"approval": {"action": self.action}});
        }
    }
}

// spec: N-10
#[test]
fn a_call_too_long_for_a_form_is_asked_on_other_channels() {
    let scene = Scene::new("", &[SHORT_WAIT]);
    let mut host = scene.asked_host("accept");
    let long = json!({"text": "line\n".repeat(40), "to": "ann@example.com"});
    let result = host.call("send_note", &long);
    assert_eq!(decision(&result), "pending", "{result}");
    assert!(host.questions.is_empty(), "{:?}", host.questions);
    let said = result["content"][0]["text"].as_str().unwrap();
    assert!(said.contains("in the embody console"), "{said}");
    scene.world.run(&["approvals", "approve", &asked(&scene)]).ok();
    assert!(is_done(&host.call("send_note", &long), "send_note"));
}

// spec: N-10
#[test]
fn a_destructive_call_is_never_approved_by_a_form_alone() {
    let scene = Scene::new("", &[SHORT_WAIT]);
    let mut host = scene.asked_host("accept");
    pending(&mut host, "erase", &json!({"text": "all"}));
    assert!(host.questions.is_empty(), "{:?}", host.questions);
    assert!(scene.desk.calls("erase").is_empty());
}

// spec: N-10
#[test]
fn an_approval_from_another_process_reaches_the_call_that_waits() {
    let scene = Scene::new("", &[LONG_WAIT]);
    let mut host = scene.plain_host();
    let call = host.begin_call("send_note", &json!({"text": "hello"}));
    let id = asked(&scene);
    let listed = approvals(&scene);
    assert_eq!(listed[0]["body"], "desk");
    assert_eq!(listed[0]["tool"], "send_note");
    assert_eq!(listed[0]["args"], json!({"text": "hello"}));
    scene.world.run(&["approvals", "approve", &id]).ok();
    assert!(is_done(&host.answer(call).result(), "send_note"));
    assert_eq!(scene.desk.calls("send_note").len(), 1);
    assert!(approvals(&scene).is_empty());
}

// spec: N-10
#[test]
fn repeating_a_pending_call_picks_the_answer_up_once() {
    let scene = Scene::new("", &[SHORT_WAIT]);
    let mut host = scene.plain_host();
    let arguments = json!({"text": "hello", "amount": 1});
    let id = pending(&mut host, "send_note", &arguments);
    assert_eq!(pending(&mut host, "send_note", &arguments), id, "the same call is the same approval");
    assert_ne!(pending(&mut host, "send_note", &json!({"text": "hello", "amount": 2})), id);
    scene.world.run(&["approvals", "approve", &id]).ok();
    assert!(scene.desk.calls("send_note").is_empty(), "an approval sends nothing by itself");
    assert!(is_done(&host.call("send_note", &arguments), "send_note"));
    assert_eq!(scene.desk.calls("send_note"), std::slice::from_ref(&arguments));
    assert_ne!(pending(&mut host, "send_note", &arguments), id, "it was used up");
    scene.world.run(&["approvals", "approve", &id]).ended(1);
}

// spec: N-10
#[test]
fn a_denial_from_another_process_denies_the_call() {
    let scene = Scene::new("", &[SHORT_WAIT]);
    let mut host = scene.plain_host();
    let id = pending(&mut host, "send_note", &json!({"text": "hello"}));
    scene.world.run(&["approvals", "deny", &id]).ok();
    assert_eq!(decision(&host.call("send_note", &json!({"text": "hello"}))), "deny");
    assert!(scene.desk.calls("send_note").is_empty());
    scene.world.run(&["approvals", "approve", &id]).ended(1);
    scene.world.run(&["approvals", "approve", "nobody's"]).ended(1).says(&["nobody's"]);
}

// spec: N-10
#[test]
fn an_expired_approval_denies_the_call() {
    let scene = Scene::new("", &["[policy]\nask_wait_s = 1\nask_timeout_s = 1\n"]);
    let mut host = scene.plain_host();
    let mut result = host.call("send_note", &json!({"text": "hello"}));
    if decision(&result) == "pending" {
        result = host.call("send_note", &json!({"text": "hello"}));
    }
    assert_eq!(decision(&result), "timeout", "{result}");
    assert!(scene.desk.calls("send_note").is_empty());
    assert!(approvals(&scene).is_empty());
}

// spec: N-10
#[test]
fn an_approval_survives_the_broker() {
    let scene = Scene::new("", &[SHORT_WAIT]);
    let mut first = scene.plain_host();
    let id = pending(&mut first, "send_note", &json!({"text": "hello"}));
    first.kill();
    scene.world.run(&["approvals", "approve", &id]).ok();
    let mut second = scene.plain_host();
    assert!(is_done(&second.call("send_note", &json!({"text": "hello"})), "send_note"));
    assert_eq!(scene.desk.calls("send_note").len(), 1);
}

// spec: N-10
#[test]
fn an_approval_ends_with_the_policy_that_it_was_given_under() {
    let scene = Scene::new("", &[SHORT_WAIT]);
    let mut first = scene.plain_host();
    let id = pending(&mut first, "send_note", &json!({"text": "hello"}));
    assert!(first.close().success());
    scene.world.run(&["approvals", "approve", &id]).ok();
    let config = std::fs::read_to_string(scene.world.path("embody.toml")).unwrap();
    let rule = "[[policy.rule]]\ntools = [\"send_*\"]\ngate = \"ask\"\nreason = \"look twice\"\n";
    scene.world.file("embody.toml", config + rule);
    let mut second = scene.plain_host();
    assert_ne!(pending(&mut second, "send_note", &json!({"text": "hello"})), id);
    assert!(scene.desk.calls("send_note").is_empty());
}

// spec: N-10
#[test]
fn rules_look_at_arguments_and_the_strictest_wins() {
    let rules = "[[policy.rule]]\ntools = [\"send_*\"]\ngate = \"allow\"\nreason = \"friends\"\n\
                 when = 'all_in_domain(args, \"example.com\")'\n\
                 [[policy.rule]]\ntools = [\"desk/*\"]\ngate = \"deny\"\nreason = \"never to Bob\"\n\
                 when = 'has(args.to) && args.to.startsWith(\"bob\")'\n";
    let scene = Scene::new("", &[SHORT_WAIT, rules]);
    let mut host = scene.plain_host();
    assert!(is_done(&host.call("send_note", &json!({"to": "ann@example.com"})), "send_note"));
    let refused = host.call("send_note", &json!({"to": "bob@example.com"}));
    assert_eq!(decision(&refused), "deny");
    assert!(refused.to_string().contains("never to Bob"), "{refused}");
    pending(&mut host, "send_note", &json!({"to": "ann@example.org"}));
    pending(&mut host, "send_note", &json!({"to": "evil@other.example,ann@example.com"}));
    pending(&mut host, "send_note", &json!({"to": "ann@example.com", "bcc": ["evil@other.example"]}));
    // A condition that cannot be evaluated allows nothing, and holds where it forbids.
    assert_eq!(decision(&host.call("send_note", &json!({"to": 7}))), "deny");
    assert_eq!(scene.desk.calls("send_note").len(), 1);
}

// spec: N-07
#[test]
fn a_call_that_the_mind_flags_is_held() {
    let allow = "[[policy.rule]]\ntools = [\"*\"]\ngate = \"allow\"\nreason = \"a test\"\n";
    for (view, is_held) in
        [((0.8, &[][..]), true), ((0.1, &["it was never done so late"][..]), true), ((0.7, &[][..]), false)]
    {
        let mind = Mind::new().viewing(view.0, view.1);
        let scene = Scene::new("", &[SHORT_WAIT, allow]);
        mind.serve(&scene.world);
        let mut host = scene.plain_host();
        let result = host.call("send_note", &json!({"text": "hello"}));
        if is_held {
            assert_eq!(decision(&result), "held", "{view:?}: {result}");
            assert!(view.1.iter().all(|flag| result.to_string().contains(flag)), "{result}");
            assert!(scene.desk.calls("send_note").is_empty());
            // Held is not denied: a person may approve, and sees the mind's reasons.
            let listed = approvals(&scene);
            assert!(view.1.iter().all(|flag| listed[0]["flags"].to_string().contains(flag)), "{listed:?}");
            scene.world.run(&["approvals", "approve", listed[0]["id"].as_str().unwrap()]).ok();
            assert!(is_done(&host.call("send_note", &json!({"text": "hello"})), "send_note"));
        } else {
            assert!(is_done(&result, "send_note"), "{view:?}: {result}");
        }
        // What only the owner sees, the mind does not hold back.
        assert!(is_done(&host.call("note", &json!({})), "note"));
    }
}

// spec: N-10, N-14
#[test]
fn every_decision_and_every_write_is_on_record() {
    let scene = Scene::new("", &[SHORT_WAIT]);
    let mut host = scene.plain_host();
    host.call("note", &json!({"text": "kept"}));
    host.call("note", &json!({"trick": "fail"}));
    let id = pending(&mut host, "send_note", &json!({"text": "sent"}));
    scene.world.run(&["approvals", "approve", &id]).ok();
    host.call("send_note", &json!({"text": "sent"}));
    assert!(host.close().success());
    let exported = scene.world.run(&["audit", "export"]).ok().stdout;
    let records: Vec<Value> = exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |event: &str| {
        records.iter().filter(|one| one["event"] == event).map(|one| &one["detail"]).collect::<Vec<_>>()
    };
    let intents = of("intent");
    assert_eq!(intents.len(), 3, "{exported}");
    assert_eq!(intents[2]["approval"], id.as_str());
    let outcomes: Vec<&Value> = of("outcome").iter().map(|end| &end["outcome"]).collect();
    assert_eq!(outcomes, ["done", "failed", "done"]);
    assert!(of("decision").iter().any(|decision| decision["decision"] == "pending"), "{exported}");
    scene.world.run(&["audit", "verify"]).ok();
}

#[test]
fn another_user_sees_and_decides_nothing() {
    let scene = Scene::new("users = \"all\"", &[SHORT_WAIT]);
    let mut host = scene.plain_host();
    let id = pending(&mut host, "send_note", &json!({"text": "hello"}));
    let theirs = scene.world.run(&["approvals", "list", "--json", "--user", "somebody else"]);
    assert!(theirs.code == Some(0) && !theirs.stdout.contains(&id), "{theirs:?}");
    // Another host of another user repeats the call: it is another call.
    let mut command = super::setup::broker(&scene.world);
    command.args(["--user", "ann"]);
    let mut other = Host::start(command);
    other.initialize(&json!({}));
    other.call("runtime_bootstrap", &json!({}));
    assert_ne!(pending(&mut other, "send_note", &json!({"text": "hello"})), id);
}

// spec: N-10
#[test]
fn an_unanswered_form_can_be_decided_on_the_command_line() {
    let scene = Scene::new("", &[LONG_WAIT]);
    let mut host = host(&scene.world, &json!({"elicitation": {}}), |_, _| Reply::Silence);
    let call = host.begin_call("send_note", &json!({"text": "hello"}));
    host.until("the form", |host| !host.questions.is_empty());
    scene.world.run(&["approvals", "approve", &asked(&scene)]).ok();
    assert!(is_done(&host.answer(call).result(), "send_note"));
    // Too late, and without harm.
    let form = host.questions[0].clone();
    host.reply(&form, &super::host::elicited("accept"));
    assert!(is_done(&host.call("look", &json!({})), "look"));
    assert_eq!(scene.desk.calls("send_note").len(), 1);
}

// spec: N-10
#[test]
fn a_call_without_a_required_argument_is_refused_before_the_owner_is_asked() {
    let definition = json!([{
        "name": "send_letter", "description": "Sends a letter.",
        "inputSchema": {"type": "object", "properties": {"to": {}, "text": {}}, "required": ["to", "text"]},
    }]);
    let scene = super::pins::scene(&definition.to_string());
    let config = std::fs::read_to_string(scene.world.path("embody.toml")).unwrap();
    scene.world.file("embody.toml", config.replace("gate = \"allow\"", "gate = \"ask\""));
    let mut host = scene.plain_host();
    let refused = host.call("send_letter", &json!({"text": "hello"}));
    assert_eq!(decision(&refused), "blocked", "{refused}");
    let words = refused["content"][0]["text"].as_str().unwrap();
    assert!(
        words.contains("the required argument `to` is missing.\nNext: repeat the call with other"),
        "{words}"
    );
    assert!(approvals(&scene).is_empty());
}

// spec: N-10
#[test]
fn a_denial_that_is_taken_back_asks_again() {
    let scene = Scene::new("", &[SHORT_WAIT]);
    let mut host = scene.plain_host();
    let arguments = json!({"text": "hello"});
    let first = pending(&mut host, "send_note", &arguments);
    scene.world.run(&["approvals", "deny", &first]).ok();
    for _ in 0..2 {
        let denied = host.call("send_note", &arguments);
        assert_eq!(decision(&denied), "deny", "{denied}");
        let words = denied["content"][0]["text"].as_str().unwrap();
        assert!(words.contains("the owner denied it on the command line"), "{words}");
        assert!(words.contains("they can take the denial back"), "{words}");
    }
    assert!(approvals(&scene).is_empty(), "a denial stands: the owner is not asked");
    let listed = scene.world.run(&["approvals", "list", "--all"]).ok().stdout;
    assert!(listed.contains("denied by cli; the same call is refused until 2"), "{listed}");
    scene
        .world
        .run(&["approvals", "approve", &first])
        .ended(1)
        .says(&["already denied by `cli`", &format!("`embody approvals ask-again {first}`")]);
    let again = scene.world.run(&["approvals", "ask-again", &first]).ok().stdout;
    assert_eq!(again, format!("taken back {first}; you are asked when the agent makes the call again\n"));
    scene.world.run(&["approvals", "ask-again", &first]).ended(1).says(&[
        "the denial",
        "ended at 2",
        "already",
    ]);
    let second = pending(&mut host, "send_note", &arguments);
    assert_ne!(first, second);
    scene.world.run(&["approvals", "ask-again", &second]).ended(1).says(&["was not denied; it waits"]);
    scene.world.run(&["approvals", "approve", &second]).ok();
    assert!(is_done(&host.call("send_note", &arguments), "send_note"));
    scene
        .world
        .run(&["approvals", "ask-again", &second])
        .ended(1)
        .says(&["was not denied: approved by cli, and made"]);
    let today = scene.world.run(&["today"]).ok().stdout;
    for sentence in [
        "1 call was denied by you.",
        "1 call was denied by you, and the denial taken back.",
        "1 call was approved by you.",
    ] {
        assert!(today.lines().any(|line| line == sentence), "{sentence}: {today}");
    }
    let tail = scene.world.run(&["audit", "tail"]).ok().stdout;
    assert!(tail.lines().any(|line| line.contains("denial_withdrawn") && line.contains("cli")), "{tail}");
}

// spec: N-10
#[test]
fn what_expired_is_told_apart_from_what_was_denied() {
    let scene = Scene::new("", &["[policy]\nask_wait_s = 0\nask_timeout_s = 1\n"]);
    let mut host = scene.plain_host();
    let unanswered = pending(&mut host, "send_note", &json!({"text": "one"}));
    let unused = pending(&mut host, "send_note", &json!({"text": "two"}));
    scene.world.run(&["approvals", "approve", &unused]).ok();
    let listed = |wanted: usize| {
        let all = scene.world.run(&["approvals", "list", "--all"]).ok().stdout;
        let is_over = |text: &str| all.contains("  expired without an answer\n") && all.contains(text);
        (is_over("  approved by cli, but not made in time\n") && wanted == 2).then_some(all)
    };
    let deadline = Instant::now() + super::host::SOON;
    while listed(2).is_none() {
        assert!(Instant::now() < deadline, "they do not expire");
    }
    for (text, reason) in [
        ("one", "the approval expired before the owner answered, so it was not denied"),
        ("two", "the owner approved it, but the approval expired before the call was repeated"),
    ] {
        let result = host.call("send_note", &json!({ "text": text }));
        assert_eq!(decision(&result), "timeout", "{result}");
        assert!(result["content"][0]["text"].as_str().unwrap().contains(reason), "{result}");
    }
    for (id, words) in [
        (&unanswered, "without an answer; it was not denied"),
        (&unused, "was approved by `cli`, but not made"),
    ] {
        scene.world.run(&["approvals", "deny", id]).ended(1).says(&[words]);
    }
    let today = scene.world.run(&["today"]).ok().stdout;
    for sentence in [
        "1 call was not answered by you in time, and expired.",
        "1 call was approved by you, but not made in time.",
    ] {
        assert!(today.lines().any(|line| line == sentence), "{sentence}: {today}");
    }
    assert!(!today.contains("denied") && !today.contains("given up"), "{today}");
    let expired = scene.world.run(&["audit", "tail", "--outcome", "expired", "--json"]).ok().json();
    assert_eq!(expired["records"].as_array().unwrap().len(), 2, "{expired}");
}

// spec: N-10
#[test]
fn an_approval_under_old_rules_says_so() {
    let scene = Scene::new("", &[SHORT_WAIT]);
    let mut before = scene.plain_host();
    let arguments = json!({"text": "hello"});
    let old = pending(&mut before, "send_note", &arguments);
    scene.world.run(&["approvals", "approve", &old]).ok();
    let other = pending(&mut before, "send_note", &json!({"text": "other"}));
    let config = std::fs::read_to_string(scene.world.path("embody.toml")).unwrap();
    let rule = "[[policy.rule]]\ntools = [\"send_note\"]\ngate = \"ask\"\nreason = \"new\"\n";
    scene.world.file("embody.toml", format!("{config}{rule}"));
    // The approval was given under the old rules; with the new ones the owner is asked anew, and the model reads why.
    let mut after = scene.plain_host();
    let result = after.call("send_note", &arguments);
    assert_eq!(decision(&result), "pending");
    let words = result["content"][0]["text"].as_str().unwrap();
    assert!(words.contains("asked under rules that have changed since, and does not count"), "{words}");
    assert!(scene.desk.calls("send_note").is_empty());
    let changed = |filter: &[&str]| -> Vec<(Value, Value)> {
        let mut command = vec!["approvals", "list", "--json"];
        command.extend(filter);
        let listed = scene.world.run(&command).ok().json();
        let listed = listed["approvals"].as_array().unwrap().iter();
        listed.map(|one| (one["id"].clone(), one["rules_changed"].clone())).collect()
    };
    let new = result["_meta"]["embody/decision"]["approval_id"].clone();
    assert_eq!(
        changed(&["--all"]),
        [(new, json!(false)), (json!(other), json!(true)), (json!(old), json!(true))]
    );
    let shown = scene.world.run(&["approvals", "list"]).ok().stdout;
    let says = "asked under rules that have changed since; approve the new question instead";
    assert_eq!(shown.matches(says).count(), 1, "{shown}");
    scene.world.run(&["approvals", "approve", &other]).ended(1).says(&[says]);
}
