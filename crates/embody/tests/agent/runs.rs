//! `embody run`: one turn, on a terminal.

use serde_json::json;

use crate::support::model::{Model, WireFormat, calls, rule, says};
use crate::support::stores::StoreFixture;
use crate::support::world::World;

const BOTH: [WireFormat; 2] = [WireFormat::OpenAi, WireFormat::Anthropic];

// spec: S-10, T-01
#[test]
fn the_bytes_that_are_sent_are_those_of_the_receipt() {
    for speaks in BOTH {
        let world = World::with_body("Never send money.\n");
        let model = Model::start(&world, speaks, &json!([rule("hello", 0, says("Good morning."))]));
        let done = world.run(&["run", "--json", "hello"]).ok().json();
        assert_eq!(done["reply"], "Good morning.");
        let sent = model.last().system();
        let receipt = world.run(&["prompt", "receipt", done["receipt"].as_str().unwrap()]).ok().stdout;
        assert_eq!(sent, receipt, "{speaks:?}");
        assert!(sent.starts_with("Never send money."), "{sent}");
        assert!(sent.contains("You are responding via web."), "{sent}");
    }
}

// spec: S-10
#[test]
fn a_receipt_replays_the_whole_request() {
    let world = World::with_body("Never send money.\n");
    let model = Model::start(&world, WireFormat::OpenAi, &json!([rule("hello", 0, says("Good morning."))]));
    let first = world.run(&["run", "--json", "hello"]).ok().json();
    let more = ["run", "--json", "--thread", first["thread"].as_str().unwrap(), "hello again"];
    let done = world.run(&more).ok().json();
    let id = done["receipt"].as_str().unwrap();
    let receipt = world.run(&["prompt", "receipt", "--json", id]).ok().json();
    let sent = model.last();
    assert_eq!(receipt["text"], sent.system());
    let tools = receipt["tools"].as_array().unwrap();
    assert!(tools.len() > 10 && tools.len() == sent.tools().len(), "{receipt}");
    for (kept, sent) in tools.iter().zip(sent.0["tools"].as_array().unwrap()) {
        let (kept, sent) = (&kept["definition"], &sent["function"]);
        assert_eq!((&kept["name"], &kept["description"]), (&sent["name"], &sent["description"]));
        assert_eq!(kept["schema"], sent["parameters"]);
    }
    let messages = receipt["messages"].as_array().unwrap();
    let texts: Vec<_> = messages.iter().map(|one| (&one["role"], &one["message"]["text"])).collect();
    let user = |text| (json!("user"), json!(text));
    let expected = [user("hello"), (json!("assistant"), json!("Good morning.")), user("hello again")];
    assert_eq!(texts, expected.iter().map(|(role, text)| (role, text)).collect::<Vec<_>>());
    assert_eq!(receipt["usage"], done["usage"], "one round");
    assert!(receipt["usage"]["input"].is_u64(), "{receipt}");
    let explained = world.run(&["prompt", "explain", "--receipt", id]).ok().stdout;
    for words in ["system prompt", "tools", "3 messages", "reported"] {
        assert!(explained.contains(words), "{words}: {explained}");
    }
    assert!(explained.lines().all(|line| line.chars().count() <= 100), "{explained}");
}

#[test]
fn the_reply_alone_is_on_stdout() {
    let world = World::new();
    let _model = Model::start(&world, WireFormat::OpenAi, &json!([rule("hello", 0, says("Good morning."))]));
    let done = world.run(&["run", "hello"]).ok();
    assert_eq!(done.stdout, "Good morning.\n");
    assert!(done.stderr.contains("thread "), "{}", done.stderr);
}

#[test]
fn control_characters_are_escaped_on_a_terminal_and_kept_in_a_pipe() {
    const EVIL: &str = "a\u{1b}]0;owned\u{7}b\u{9b}2J\u{202e}c";
    const SHOWN: &str = "a⟨U+001B⟩]0;owned⟨U+0007⟩b⟨U+009B⟩2J⟨U+202E⟩c";
    let world = World::new();
    let _model = Model::start(&world, WireFormat::OpenAi, &json!([rule("", 0, says(EVIL))]));
    assert_eq!(world.run(&["run", "hello"]).ok().stdout, format!("{EVIL}\n"));
    assert_eq!(world.run_in_terminal(&["run", "hello"]).lines().next(), Some(SHOWN));
    world.run(&["schedule", "add", "--cron", "0 9 * * *", EVIL]).ok();
    world.run(&["memory", "add", EVIL]).ok();
    for command in
        [&["schedule", "list"][..], &["memory", "list"], &["audit", "tail"], &["instructions", "history"]]
    {
        let shown = world.run_in_terminal(command);
        assert!(
            !shown.contains(['\u{7}', '\u{9b}', '\u{202e}']) && !shown.contains("\u{1b}]"),
            "{command:?}: {shown:?}"
        );
    }
    assert!(world.run_in_terminal(&["schedule", "list"]).contains(SHOWN));
    let json = world.run_in_terminal(&["memory", "list", "--json"]);
    assert!(json.contains(r"b\u009b2J\u202ec"), "{json:?}");
    world.run(&["instructions", "set", EVIL]).ended(2).says(&["control character U+001B"]);
}

#[test]
fn the_title_of_a_conversation_is_its_first_words() {
    let stored = StoreFixture::workspace();
    let _model =
        Model::start(&stored.world, WireFormat::OpenAi, &json!([rule("", 0, says("Good morning."))]));
    let first = stored.run(&["run", "--json", "\n hello there\nand more"]).ok().json();
    let thread = first["thread"].as_str().unwrap();
    stored.run(&["run", "--thread", thread, "something else"]).ok();
    let kept = stored.directly(async |store| store.threads().get("owner", thread).await.unwrap().unwrap());
    assert_eq!(kept.title.as_deref(), Some("hello there"));
}

#[test]
fn a_thread_continues_with_its_history() {
    let world = World::new();
    let rules = json!([rule("first", 0, says("One.")), rule("second", 0, says("Two."))]);
    let model = Model::start(&world, WireFormat::Anthropic, &rules);
    let first = world.run(&["run", "--json", "the first thing"]).ok().json();
    let thread = first["thread"].as_str().unwrap();
    let second = world.run(&["run", "--json", "--thread", thread, "the second thing"]).ok().json();
    assert_eq!((&second["reply"], &second["thread"]), (&json!("Two."), &first["thread"]));
    let conversation = model.last().conversation();
    for said in ["the first thing", "One.", "the second thing"] {
        assert!(conversation.contains(said), "{conversation}");
    }
    let other = world.run(&["run", "--json", "the second thing"]).ok().json();
    assert!(!model.last().conversation().contains("first"), "another thread knows nothing of it");
    assert_ne!(other["thread"], first["thread"]);
    let wrong = world.run(&["run", "--thread", "nowhere", "x"]);
    assert_eq!(wrong.code, Some(1));
    assert!(wrong.stderr.contains("has no thread `nowhere`"), "{}", wrong.stderr);
}

// spec: P-10
#[test]
fn an_empty_answer_after_a_tool_is_silence_and_without_one_is_a_failure() {
    for speaks in BOTH {
        let world = World::new();
        let rules = json!([
            rule("quietly", 0, calls("whoami", json!({}))),
            rule("quietly", 1, says("")),
            rule("nothing", 0, says("")),
        ]);
        let model = Model::start(&world, speaks, &rules);
        let done = world.run(&["run", "do it quietly"]).ok();
        assert_eq!(done.stdout, "", "{speaks:?}");
        assert_eq!(model.requests().len(), 2);
        let done = world.run(&["run", "say nothing"]);
        assert_eq!(done.code, Some(1));
        assert!(done.stderr.contains("error: the model returned an empty response"), "{}", done.stderr);
    }
}

#[test]
fn calls_of_one_response_run_concurrently_and_return_in_order() {
    for speaks in BOTH {
        let world = World::new();
        let both = json!({"calls": [{"name": "whoami", "arguments": {}}, {"name": "list_tasks", "arguments": {}}, {"name": "no_such_tool", "arguments": {}}]});
        let model =
            Model::start(&world, speaks, &json!([rule("both", 0, both), rule("both", 3, says("Done."))]));
        let done = world.run(&["run", "--json", "do both"]).ok().json();
        assert_eq!((&done["reply"], &done["rounds"]), (&json!("Done."), &json!(2)));
        let conversation = model.last().conversation();
        assert!(conversation.contains("no_such_tool"), "{conversation}");
    }
}

// spec: P-09
#[test]
fn a_model_without_tools_of_its_own_gets_schemas_and_writes_blocks() {
    let world = World::new();
    let block = "I look.\n```tool_call\n{\"tool\": \"list_tasks\", \"arguments\": {}}\n```";
    let rules = json!([rule("tasks?", 0, says(block)), rule("tasks?", 1, says("None."))]);
    let model = Model::alone(&world, &rules);
    world.file(
        "embody.toml",
        model.config(WireFormat::OpenAi) + "native_tools = false\n[prompt]\nlayout = \"full\"\n",
    );
    let done = world.run(&["run", "--json", "any tasks?"]).ok().json();
    assert_eq!((&done["reply"], &done["rounds"]), (&json!("None."), &json!(2)));
    let requests = model.requests();
    assert!(requests[0].tools().is_empty());
    let system = requests[0].system();
    assert!(system.contains("```tool_call") && system.contains("list_tasks"), "{system}");
    // The only layout that teaches it is taken whatever is configured.
    world.file("embody.toml", model.config(WireFormat::OpenAi) + "native_tools = false\n");
    world.run(&["run", "any tasks?"]).ok();
    assert!(model.last().system().contains("```tool_call"));
}

#[test]
fn without_a_model_the_error_shows_what_to_configure() {
    let world = World::new();
    let done = world.run(&["run", "hello"]);
    assert_eq!(done.code, Some(1));
    assert!(done.stderr.starts_with("error: no model is configured"), "{}", done.stderr);
    for line in ["[model]", "base_url = ", "model = "] {
        assert!(done.stderr.contains(line), "{}", done.stderr);
    }
    let doctor = world.run(&["doctor"]);
    assert!(doctor.stdout.contains("model") || doctor.stderr.contains("model"), "{doctor:?}");
}

#[test]
fn a_dead_model_is_a_clear_error() {
    let world = World::new();
    // Nobody listens there: the port was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    world.file("embody.toml", format!("[model]\nbase_url = \"http://127.0.0.1:{port}/v1\"\nmodel = \"m\"\n"));
    let done = world.run(&["run", "hello"]);
    assert_eq!(done.code, Some(1));
    assert!(done.stderr.contains(&format!("127.0.0.1:{port}")), "{}", done.stderr);
}

// spec: N-12, N-10, B-09
#[test]
fn human_visible_writes_wait_for_the_owner() {
    let world = World::with_body("Ask before you write to others.\n").env("TELEGRAM_BOT_TOKEN", "1:nobody");
    let send = json!({"channel": "telegram", "to": "4711", "text": "See you at noon."});
    let rules = json!([
        rule("tell bob", 0, calls("send_message", send)),
        {"when": {"user": "tell bob", "results": 1}, "reply": {"text": "It waits for you."}},
    ]);
    let model = Model::alone(&world, &rules);
    world.file("embody.toml", model.config(WireFormat::OpenAi) + "[policy]\nask_wait_s = 1\n");
    let done = world.run(&["run", "tell bob when we meet"]).ok();
    assert_eq!(done.stdout, "It waits for you.\n");
    let result = model.last().conversation();
    assert!(result.contains("Not sent (pending)") && !result.contains("approvals approve"), "{result}");
    let waiting = world.run(&["approvals", "list", "--json"]).ok().json();
    let approval = &waiting["approvals"][0];
    assert_eq!(
        (&approval["tool"], &approval["args"]["text"]),
        (&json!("send_message"), &json!("See you at noon."))
    );
    world.run(&["approvals", "approve", approval["id"].as_str().unwrap()]).ok();
    // The model makes the same call again, and this time it passes.
    let again = world.run(&["run", "tell bob when we meet"]).ok();
    assert_eq!(again.stdout, "It waits for you.\n");
    let result = model.last().conversation();
    assert!(!result.contains("was not made") && result.contains("waiting"), "{result}");
}

#[test]
fn a_turn_that_failed_keeps_its_reason_and_is_tried_again() {
    let stored = StoreFixture::workspace();
    let rules = json!([
        rule("look", 0, calls("whoami", json!({}))),
        {"when": {"user": "look", "results": 1}, "reply": {"status": 503, "retry_after": 0}, "times": 8},
        rule("look", 1, says("I looked.")),
    ]);
    let model = Model::start(&stored.world, WireFormat::OpenAi, &rules);
    let failed = stored.run(&["run", "look"]).ended(1);
    let retry = failed.stderr.lines().find(|line| line.ends_with("tries this turn again")).unwrap();
    let thread = retry.split(' ').nth(3).unwrap().to_owned();
    assert_eq!(retry, format!("`embody run --thread {thread} --retry` tries this turn again"));
    let roles = || {
        let messages =
            stored.directly(async |store| store.threads().messages("owner", &thread, 0, 100).await.unwrap());
        messages
            .into_iter()
            .map(|message| (message.message.role, message.message.content))
            .collect::<Vec<_>>()
    };
    let kept = roles();
    let names: Vec<&str> = kept.iter().map(|(role, _)| role.as_str()).collect();
    assert_eq!(names, ["user", "assistant", "tool", "failure"]);
    assert!(kept[3].1.contains("503"), "{kept:?}");
    let asked = model.requests().len();
    assert_eq!(stored.run(&["run", "--thread", &thread, "--retry"]).ok().stdout, "I looked.\n");
    // It goes on behind the call, which is not made again; the model does not see the failure.
    assert_eq!(model.requests().len(), asked + 1);
    let sent = model.last().conversation();
    assert_eq!((sent.matches("look").count() > 0, sent.contains("503")), (true, false), "{sent}");
    let names: Vec<String> = roles().into_iter().map(|(role, _)| role).collect();
    assert_eq!(names, ["user", "assistant", "tool", "failure", "assistant"]);
    stored
        .run(&["run", "--thread", &thread, "--retry"])
        .ended(1)
        .says(&["did not fail", "hint: send a message"]);
    stored.run(&["run", "--retry"]).ended(2);
    stored.run(&["run", "--thread", &thread, "--retry", "text"]).ended(2);
}

#[test]
fn retries_are_counted_in_one_line_of_a_terminal() {
    let world = World::new();
    let rules = json!([
        {"when": {"user": "hello"}, "reply": {"status": 503, "retry_after": 0}, "times": 3},
        rule("hello", 0, says("Good morning.")),
    ]);
    let _model = Model::start(&world, WireFormat::OpenAi, &rules);
    let shown = world.run_all_in_terminal(&["run", "hello"]);
    let lines: Vec<&str> = shown.split('\n').filter(|line| line.contains("does not answer")).collect();
    assert_eq!(lines.len(), 1, "one line, which is replaced: {shown:?}");
    for retry in 1..=3 {
        let counted = format!("\r\u{1b}[2K· The model does not answer; retry {retry} of 7 in 1 s: ");
        assert_eq!(shown.matches(&counted).count(), 1, "{counted:?}: {shown:?}");
    }
    assert!(shown.contains("\r\u{1b}[2KGood morning."), "the line is gone when the model answers: {shown:?}");
}
