//! `/api/chat`: turns that stream, continue without readers, are resumed and cancelled.

use embody_store::{DatabaseUrl, Store};
use serde_json::{Value, json};

use crate::support::model::{Model, WireFormat, calls, rule, says};
use crate::support::served::{Event, Served, text, token};
use crate::support::world::World;

/// An answer that does not come to an end by itself.
fn endless() -> Value {
    json!({"text": "on and on ", "repeat": 3_000, "chunk": 10, "delay_ms": 20})
}

/// A world in which messages to others can be queued, but are not delivered.
fn reaching_others() -> World {
    World::new().env("TELEGRAM_BOT_TOKEN", "1:nobodys")
}

const NOBODY: &str = "[telegram]\napi_url = \"http://127.0.0.1:9\"\n";

fn turn(event: &Event) -> String {
    assert_eq!(event.name, "turn");
    event.data["turn"].as_str().unwrap().to_owned()
}

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

// spec: S-04, S-08, P-05
#[test]
fn an_answer_streams_and_the_prompt_knows_the_request() {
    let world = World::new();
    let rules = json!([rule("hello", 0, json!({"text": "Good morning to you.", "chunk": 4}))]);
    let model = Model::alone(&world, &rules);
    world.file("embody.toml", model.config(WireFormat::OpenAi) + "[prompt]\nlayout = \"full\"\n");
    let chat = token(&world, "owner", "chat");
    let served = Served::start(&world);
    let body = json!({"text": "hello there", "location": "Paris\n## Evil"});
    let auth = bearer(&chat);
    let headers = [("authorization", auth.as_str()), ("accept-language", "fr-FR, fr;q=0.8")];
    let events = served.begin("POST /api/chat", &headers, Some(&body)).events();
    assert_eq!(text(&events), "Good morning to you.");
    let done = events.last().unwrap();
    assert_eq!((done.name.as_str(), &done.data["reply"]), ("done", &json!("Good morning to you.")));
    assert!(done.data["usage"]["output"].as_u64().is_some(), "{done:?}");
    let ids: Vec<u64> = events.iter().map(|event| event.id.parse().unwrap()).collect();
    assert!(ids.windows(2).all(|two| two[0] < two[1]), "{ids:?}");
    let sent = model.last().system();
    for part in ["accept_language=fr-FR, fr;q=0.8", "remote_ip=127.0.0.1", "location=Paris"] {
        assert!(sent.contains(part), "no {part} in {sent}");
    }
    assert!(!sent.contains("\n## Evil"), "{sent}");
    let receipt = done.data["receipt"].as_str().unwrap();
    assert_eq!(world.run(&["prompt", "receipt", receipt]).ok().stdout, sent);

    let thread = events[0].data["thread"].as_str().unwrap();
    let shown = served.get(&format!("/api/threads/{thread}"), &chat).json();
    let said: Vec<_> = shown["messages"].as_array().unwrap().iter().map(|one| &one["text"]).collect();
    assert_eq!(said, ["hello there", "Good morning to you."]);
    assert_eq!(shown["thread"]["title"], "hello there");
    let listed = served.get("/api/threads", &chat).json();
    assert_eq!(listed["threads"][0]["id"], thread);
}

// issue 6, must hold 5
#[test]
fn without_a_model_it_fails_plainly_with_the_lines_to_add() {
    let world = World::new();
    let chat = token(&world, "owner", "chat");
    let served = Served::start(&world);
    let events = served.begin_post("/api/chat", &chat, &json!({"text": "hello"})).events();
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(events[0].name, "failed");
    assert!(events[0].data["message"].as_str().unwrap().contains("no model is configured"));
    for line in ["[model]", "base_url = ", "model = "] {
        assert!(events[0].data["hint"].as_str().unwrap().contains(line), "{events:?}");
    }
    assert_eq!(served.get("/api/threads", &chat).json(), json!({"threads": [], "waiting": []}));
    let doctor = world.run(&["doctor"]).ok().stdout;
    assert!(doctor.contains("no model is configured") && doctor.contains("base_url = "), "{doctor}");
}

#[test]
fn a_model_without_a_name_is_reported_to_the_owner_without_a_second_table() {
    let world = World::new();
    world.file("embody.toml", "[model]\nbase_url = \"http://127.0.0.1:1/v1\"\n");
    let [owner, ann] = ["owner", "ann"].map(|user| token(&world, user, "chat"));
    let served = Served::start(&world);
    let failed = |token: &str| {
        let events = served.begin_post("/api/chat", token, &json!({"text": "hello"})).events();
        events[0].data["message"].as_str().unwrap().to_owned()
            + " | "
            + events[0].data["hint"].as_str().unwrap()
    };
    let reported = failed(&owner);
    assert!(
        reported.starts_with("`model.model` is not set") && !reported.contains("[model]\n"),
        "{reported}"
    );
    assert!(!reported.contains("start `embody up` again"), "a running process applies it: {reported}");
    // Another user must not see it.
    assert!(failed(&ann).starts_with("no model is configured"));
    let me = |headers: &[(&str, &str)]| served.ask("GET /api/me", headers, None).json();
    let cookie = served.sign_in(&served.code);
    assert!(me(&[("cookie", &cookie)])["lacks"].as_str().unwrap().starts_with("`model.model` is not set"));
    assert_eq!(me(&[("authorization", &format!("Bearer {ann}"))])["lacks"], Value::Null);
}

#[test]
fn a_turn_continues_without_readers_and_can_be_resumed() {
    let world = World::new();
    let words: String = (0..200).map(|number| format!("word{number} ")).collect();
    let rules = json!([rule("slowly", 0, json!({"text": words.trim(), "chunk": 9, "delay_ms": 5}))]);
    let _model = Model::start(&world, WireFormat::Anthropic, &rules);
    let chat = token(&world, "owner", "chat");
    let served = Served::start(&world);
    let mut first = served.begin_post("/api/chat", &chat, &json!({"text": "slowly"}));
    let turn = turn(&first.event().unwrap());
    let seen: Vec<Event> = (0..5).map(|_| first.event().unwrap()).collect();
    drop(first);
    let auth = bearer(&chat);
    let resume = |last: &str| {
        let headers = [("authorization", auth.as_str()), ("last-event-id", last)];
        served.begin(&format!("GET /api/chat/{turn}"), &headers, None).events()
    };
    let rest = resume(&seen.last().unwrap().id);
    assert_eq!(text(&seen) + &text(&rest), words.trim());
    assert_eq!(rest.last().unwrap().name, "done");
    // From the beginning, for a client that cannot send the header.
    assert_eq!(text(&resume("0")), words.trim());
    let after = format!("/api/chat/{turn}?after={}", rest[rest.len() - 2].id);
    let only_end = served.begin(&format!("GET {after}"), &[("authorization", &auth)], None).events();
    assert_eq!(only_end.len(), 1, "{only_end:?}");
}

#[test]
fn after_a_restart_a_turn_is_read_from_its_thread() {
    let world = World::new();
    let rules = json!([rule("hello", 0, says("Good morning.")), rule("ever", 0, endless())]);
    let _model = Model::start(&world, WireFormat::OpenAi, &rules);
    let chat = token(&world, "owner", "chat");
    let mut served = Served::start(&world);
    let events = served.begin_post("/api/chat", &chat, &json!({"text": "hello"})).events();
    let answered = turn(&events[0]);
    let mut going = served.begin_post("/api/chat", &chat, &json!({"text": "for ever"}));
    let broken = turn(&going.event().unwrap());
    going.until("text");
    served.signal("-INT");
    assert_eq!(going.until("cancelled").data, json!({}));
    assert_eq!(served.process.wait().unwrap().code(), Some(0));
    let served = Served::start(&world);
    let reported = |turn: &str| {
        served.begin(&format!("GET /api/chat/{turn}"), &[("authorization", &bearer(&chat))], None)
    };
    let events = reported(&answered).events();
    assert_eq!((events[0].name.as_str(), &events[1].data["reply"]), ("turn", &json!("Good morning.")));
    assert_eq!(reported(&broken).events()[1].name, "cancelled");
    let thread = broken.split('.').next().unwrap();
    let kept = served.get(&format!("/api/threads/{thread}"), &chat).json()["messages"][1]["text"].take();
    let kept = kept.as_str().unwrap();
    assert!(kept.starts_with("on and on") && kept.ends_with(" [stopped]"), "{kept}");
    for nonsense in
        ["x", "x.1.y", &format!("{answered}0.9.z"), &answered.replace(".1.", ".7."), "..", "%2e%2e"]
    {
        assert_eq!(reported(nonsense).status, 404, "{nonsense}");
    }
}

#[test]
fn one_turn_at_a_time_in_a_thread_and_it_can_be_broken_off() {
    let world = World::new();
    let rules = json!([rule("now", 0, says("I listen.")), rule("ever", 0, endless())]);
    let _model = Model::start(&world, WireFormat::OpenAi, &rules);
    let chat = token(&world, "owner", "chat");
    let served = Served::start(&world);
    let mut going = served.begin_post("/api/chat", &chat, &json!({"text": "for ever"}));
    let first = going.event().unwrap();
    let (turn, thread) = (turn(&first), first.data["thread"].clone());
    going.until("text");
    let again = json!({"text": "now", "thread": thread});
    let busy = served.post("/api/chat", &chat, &again).refused(409, "still answering");
    assert_eq!(busy.json()["error"]["turn"], json!(turn));
    let listed = served.get("/api/threads", &chat).json();
    assert_eq!(listed["threads"][0]["turn"]["id"], json!(turn));
    let cancel = |token: &str| {
        served.ask(&format!("DELETE /api/chat/{turn}"), &[("authorization", &bearer(token))], None)
    };
    assert_eq!(cancel(&chat).status, 202);
    going.until("cancelled");
    cancel(&chat).refused(409, "has already ended");
    let events = served.begin_post("/api/chat", &chat, &again).events();
    assert_eq!(events.last().unwrap().data["reply"], "I listen.");
}

#[test]
fn users_cannot_read_or_cancel_turns_of_others() {
    let world = World::new();
    let _model = Model::start(&world, WireFormat::OpenAi, &json!([rule("ever", 0, endless())]));
    let [ann, bob] = ["ann", "bob"].map(|user| token(&world, user, "chat"));
    let served = Served::start(&world);
    let mut going = served.begin_post("/api/chat", &ann, &json!({"text": "for ever"}));
    let first = going.event().unwrap();
    let (turn, thread) = (turn(&first), first.data["thread"].as_str().unwrap().to_owned());
    going.until("text");
    served.get(&format!("/api/chat/{turn}"), &bob).refused(404, "unknown turn");
    served.get(&format!("/api/threads/{thread}"), &bob).refused(404, "unknown conversation");
    served
        .post("/api/chat", &bob, &json!({"text": "hi", "thread": thread}))
        .refused(404, "unknown conversation");
    let stop = format!("DELETE /api/chat/{turn}");
    served.ask(&stop, &[("authorization", &bearer(&bob))], None).refused(404, "unknown turn");
    assert_eq!(served.get("/api/threads", &bob).json(), json!({"threads": [], "waiting": []}));
    going.until("text");
    assert_eq!(served.ask(&stop, &[("authorization", &bearer(&ann))], None).status, 202);
}

// spec: N-10, N-12
#[test]
fn a_call_waits_for_approval_at_the_console() {
    let world = reaching_others();
    let send = json!({"channel": "telegram", "to": "4711", "text": "See you at noon."});
    let rules =
        json!(
            [rule("tell bob", 0, calls("send_message", send.clone())), rule("tell bob", 1, says("Told.")),]
        );
    let model = Model::alone(&world, &rules);
    world.file("embody.toml", model.config(WireFormat::OpenAi) + NOBODY + "[policy]\nask_wait_s = 60\n");
    let (chat, operate) = (token(&world, "owner", "chat"), token(&world, "owner", "operate"));
    let ann = token(&world, "ann", "operate");
    let served = Served::start(&world);
    let mut going = served.begin_post("/api/chat", &chat, &json!({"text": "tell bob"}));
    going.until("tool");
    let approval = loop {
        let listed = served.get("/api/approvals", &operate).json();
        if let Some(one) = listed["approvals"].as_array().unwrap().first() {
            break one.clone();
        }
    };
    assert_eq!((&approval["tool"], &approval["args"]), (&json!("send_message"), &send));
    assert!(approval["text"].as_str().unwrap().contains("See you at noon."));
    let word = |decision: &str| json!({"id": approval["id"], "decision": decision});
    assert_eq!(served.get("/api/approvals", &ann).json(), json!({"approvals": [], "denied": []}));
    served.post("/api/approvals", &ann, &word("approve")).refused(404, "unknown approval");
    served.post("/api/approvals", &operate, &word("perhaps")).refused(400, "unknown variant `perhaps`");
    let decided = served.post("/api/approvals", &operate, &word("approve")).json();
    assert_eq!(decided["decided_by"], "console");
    assert_eq!(going.until("tool_done").data["is_error"], false);
    assert_eq!(going.until("done").data["reply"], "Told.");
    served.post("/api/approvals", &operate, &word("deny")).refused(409, "made at");
}

// spec: N-10
#[test]
fn the_owner_decides_about_everybodys_calls_that_are_left_to_the_console() {
    let world = reaching_others();
    let send = |to: &str| json!({"channel": "telegram", "to": to, "text": "Between us."});
    let rules = json!([
        rule("owner denied the waiting call", 0, says("As they wish.")),
        rule("tell bob", 0, calls("send_message", send("4711"))),
        rule("tell bob", 1, says("It waits.")),
        rule("tell eve", 0, calls("send_message", send("4712"))),
        rule("tell eve", 1, says("It waits too.")),
    ]);
    let model = Model::alone(&world, &rules);
    let policy = "[policy]\nask_wait_s = 1\n[[policy.rule]]\ntools = [\"send_*\"]\ngate = \"ask\"\nvia = [\"cli\"]\nreason = \"r\"\nwhen = \"args.to == '4712'\"\n";
    world.file("embody.toml", model.config(WireFormat::OpenAi) + NOBODY + policy);
    let [ann, carl, owners] = [("ann", "chat"), ("carl", "operate"), ("owner", "operate")]
        .map(|(user, scope)| token(&world, user, scope));
    let served = Served::start(&world);
    let asked = |text: &str| {
        let events = served.begin_post("/api/chat", &ann, &json!({"text": text})).events();
        let done = events.iter().find(|event| event.name == "tool_done").unwrap();
        assert_eq!(done.data["decision"], "pending", "{done:?}");
        (events[0].data["thread"].as_str().unwrap().to_owned(), done.data["approval"].clone())
    };
    let (thread, bobs) = asked("tell bob");
    let (_, eves) = asked("tell eve");
    // Whoever waits sees that they do, in the list and in the conversation, and nothing that decides.
    served.get("/api/approvals", &ann).refused(403, "`operate` is required");
    let listed = served.get("/api/threads", &ann).json();
    let waits = |approval: &Value| json!({"approval": approval, "channel": "web", "body": "embody", "tool": "send_message"});
    assert_eq!(listed["waiting"], json!([waits(&eves), waits(&bobs)]));
    let result = || {
        let shown = served.get(&format!("/api/threads/{thread}"), &ann).json();
        let messages = shown["messages"].as_array().unwrap().clone();
        messages.into_iter().find(|message| message["role"] == "tool").unwrap()
    };
    assert_eq!((&result()["decision"], &result()["settled"]), (&json!("pending"), &json!("pending")));
    // A token is one user's: another operator's, and the owner's own.
    let word = |id: &Value| json!({"id": id, "decision": "deny"});
    for token in [&carl, &owners] {
        let none = json!({"approvals": [], "denied": []});
        assert_eq!(served.get("/api/approvals?all=true", token).json(), none);
        served.post("/api/approvals", token, &word(&bobs)).refused(404, "unknown approval");
    }
    // The owner sees the user of each approval, but none that the rules leave to other channels.
    let (cookie, ours) = (served.sign_in(&served.code), format!("http://{}", served.host));
    let headers = [("cookie", cookie.as_str()), ("origin", ours.as_str())];
    let seen = || served.ask("GET /api/approvals", &headers, None).json();
    let decides = |id: &Value| served.ask("POST /api/approvals", &headers, Some(&word(id)));
    let waiting = seen();
    let waiting: Vec<_> = waiting["approvals"].as_array().unwrap().iter().collect();
    assert_eq!(waiting.len(), 1, "{waiting:?}");
    assert_eq!((&waiting[0]["id"], &waiting[0]["user"]), (&bobs, &json!("ann")));
    decides(&eves).refused(404, "unknown approval");
    assert_eq!(decides(&bobs).json()["status"], "denied");
    assert_eq!((&result()["decision"], &result()["settled"]), (&json!("pending"), &json!("denied")));
    let now = seen();
    assert_eq!((&now["approvals"], &now["denied"][0]["id"]), (&json!([]), &bobs));
    // What was denied can be taken back, by those who can decide.
    let again = json!({"id": bobs, "decision": "ask_again"});
    served.post("/api/approvals", &owners, &again).refused(404, "unknown approval");
    let ask_again = || served.ask("POST /api/approvals", &headers, Some(&again));
    assert_eq!(ask_again().json()["status"], "denied");
    ask_again().refused(409, "ended at 2");
    assert_eq!(seen(), json!({"approvals": [], "denied": []}));
}

// spec: N-10
#[test]
fn the_rules_determine_whether_the_console_may_approve() {
    let world = reaching_others();
    let send = json!({"channel": "telegram", "to": "4711", "text": "x"});
    let rules = json!([rule("tell", 0, calls("send_message", send)), rule("tell", 1, says("It waits."))]);
    let model = Model::alone(&world, &rules);
    let policy = "[policy]\nask_wait_s = 1\n[[policy.rule]]\ntools = [\"send_*\"]\ngate = \"ask\"\nvia = [\"cli\"]\nreason = \"r\"\n";
    world.file("embody.toml", model.config(WireFormat::OpenAi) + NOBODY + policy);
    let (chat, operate) = (token(&world, "owner", "chat"), token(&world, "owner", "operate"));
    let served = Served::start(&world);
    let events = served.begin_post("/api/chat", &chat, &json!({"text": "tell bob"})).events();
    let pending = events.iter().find(|event| event.name == "tool_done").unwrap();
    assert_eq!(pending.data["decision"], "pending", "{pending:?}");
    let word = json!({"id": pending.data["approval"], "decision": "approve"});
    served
        .post("/api/approvals", &operate, &word)
        .refused(403, "do not allow approval of this call by the console");
}

// spec: N-10
#[test]
fn a_conversation_resumes_when_a_call_is_approved_after_its_turn() {
    let world = reaching_others();
    let send = json!({"channel": "telegram", "to": "4711", "text": "See you at noon."});
    let rules = json!([
        rule("approved", 0, says("So it is sent.")),
        rule("tell bob", 0, calls("send_message", send)),
        rule("tell bob", 1, says("It waits for you.")),
    ]);
    let model = Model::alone(&world, &rules);
    world.file("embody.toml", model.config(WireFormat::OpenAi) + NOBODY + "[policy]\nask_wait_s = 1\n");
    let (chat, operate) = (token(&world, "owner", "chat"), token(&world, "owner", "operate"));
    let served = Served::start(&world);
    let events = served.begin_post("/api/chat", &chat, &json!({"text": "tell bob"})).events();
    let thread = events[0].data["thread"].as_str().unwrap().to_owned();
    let pending = events.iter().find(|event| event.name == "tool_done").unwrap();
    let word = json!({"id": pending.data["approval"], "decision": "approve"});
    assert_eq!(served.post("/api/approvals", &operate, &word).status, 200);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        let shown = served.get(&format!("/api/threads/{thread}"), &chat).json();
        let said = shown["messages"].to_string();
        if said.contains("So it is sent.") {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "{said}");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(outcomes_by(&served, &operate, &pending.data["approval"]), ["done"]);
    let listed = served.get("/api/approvals?all=true", &operate).json();
    let approvals = listed["approvals"].as_array().unwrap();
    let all: Vec<_> = approvals.iter().map(|one| (&one["id"], &one["status"])).collect();
    assert_eq!(all, [(&pending.data["approval"], &json!("used"))]);
}

// spec: N-10
#[test]
fn a_call_does_not_wait_for_ever_when_its_approval_is_forgotten() {
    let world = reaching_others();
    let send = json!({"channel": "telegram", "to": "4711", "text": "x"});
    let rules = json!([rule("tell", 0, calls("send_message", send)), rule("tell", 1, says("It waits."))]);
    let model = Model::alone(&world, &rules);
    let policy = "[policy]\nask_wait_s = 0\nask_timeout_s = 1\n";
    world.file("embody.toml", model.config(WireFormat::OpenAi) + NOBODY + policy);
    let chat = token(&world, "owner", "chat");
    let served = Served::start(&world);
    let events = served.begin_post("/api/chat", &chat, &json!({"text": "tell"})).events();
    let thread = events[0].data["thread"].as_str().unwrap();
    let settled = || {
        let messages = served.get(&format!("/api/threads/{thread}"), &chat).json()["messages"].take();
        let mut messages = messages.as_array().unwrap().clone().into_iter();
        let result = messages.find(|message| message["role"] == "tool").unwrap();
        assert_eq!(result["decision"], "pending");
        result["settled"].as_str().unwrap().to_owned()
    };
    let until = |wanted: &str, meanwhile: &dyn Fn()| {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while settled() != wanted {
            assert!(std::time::Instant::now() < deadline, "it is {}, not {wanted}", settled());
            meanwhile();
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    };
    until("expired", &|| {});
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let store = runtime.block_on(Store::open(DatabaseUrl::File(world.path("embody.db")))).unwrap();
    until("unknown", &|| {
        runtime.block_on(store.approvals().expire(100)).unwrap();
        runtime.block_on(store.approvals().prune(i64::MAX, 100)).unwrap();
    });
}

#[test]
fn a_failed_turn_is_kept_with_its_reason_and_tried_again() {
    let world = World::new();
    let rules = json!([
        {"when": {"user": "hello"}, "reply": {"status": 503, "retry_after": 0}, "times": 8},
        rule("hello", 0, says("Good morning.")),
    ]);
    let _model = Model::start(&world, WireFormat::OpenAi, &rules);
    let chat = token(&world, "owner", "chat");
    let served = Served::start(&world);
    let events = served.begin_post("/api/chat", &chat, &json!({"text": "hello"})).events();
    let counted: Vec<_> = events.iter().filter(|event| event.name == "waiting").collect();
    let numbers: Vec<(u64, u64)> = counted
        .iter()
        .map(|event| (event.data["retry"].as_u64().unwrap(), event.data["most"].as_u64().unwrap()))
        .collect();
    assert_eq!(numbers, (1..=7).map(|retry| (retry, 7)).collect::<Vec<_>>());
    let failed = events.last().unwrap().clone();
    assert_eq!(failed.name, "failed");
    let (first, thread) = (turn(&events[0]), events[0].data["thread"].as_str().unwrap());
    let messages = || served.get(&format!("/api/threads/{thread}"), &chat).json()["messages"].take();
    let kept = messages();
    assert_eq!(
        (&kept[1]["role"], &kept[1]["text"], &kept[1]["hint"]),
        (&json!("failure"), &failed.data["message"], &failed.data["hint"])
    );
    for (body, words) in [
        (json!({"retry": true}), "`retry` needs a `thread`"),
        (json!({"retry": true, "thread": thread, "text": "hello"}), "`retry` needs a `thread`"),
        (json!({ "thread": thread }), "`text` is empty"),
    ] {
        served.post("/api/chat", &chat, &body).refused(400, words);
    }
    let retry = json!({"thread": thread, "retry": true});
    let events = served.begin_post("/api/chat", &chat, &retry).events();
    let second = turn(&events[0]);
    assert_eq!(events.last().unwrap().data["reply"], "Good morning.");
    let kept = messages();
    let roles: Vec<&str> = kept.as_array().unwrap().iter().map(|one| one["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "failure", "assistant"]);
    served.post("/api/chat", &chat, &retry).refused(409, "did not fail");
    // Both turns are replayed from the thread when they are no longer in memory.
    drop(served);
    let served = Served::start(&world);
    let end = |turn: &str| {
        let headers = [("authorization", &*bearer(&chat))];
        served.begin(&format!("GET /api/chat/{turn}"), &headers, None).events().pop().unwrap()
    };
    assert_eq!(end(&first).data, failed.data);
    assert_eq!(end(&second).data["reply"], "Good morning.");
}

// spec: N-10
#[test]
fn the_console_does_not_approve_under_old_rules() {
    let world = reaching_others();
    let send = json!({"channel": "telegram", "to": "4711", "text": "x"});
    let rules = json!([rule("tell", 0, calls("send_message", send)), rule("tell", 1, says("It waits."))]);
    let model = Model::alone(&world, &rules);
    let config = |rule: &str| model.config(WireFormat::OpenAi) + NOBODY + "[policy]\nask_wait_s = 0\n" + rule;
    world.file("embody.toml", config(""));
    let (chat, operate) = (token(&world, "owner", "chat"), token(&world, "owner", "operate"));
    let served = Served::start(&world);
    let events = served.begin_post("/api/chat", &chat, &json!({"text": "tell"})).events();
    let id = events.iter().find(|event| event.name == "tool_done").unwrap().data["approval"].clone();
    assert_eq!(served.get("/api/approvals", &operate).json()["approvals"][0]["rules_changed"], false);
    world.file(
        "embody.toml",
        config("[[policy.rule]]\ntools = [\"send_*\"]\ngate = \"ask\"\nreason = \"new\"\n"),
    );
    world.run(&["reload"]).ok();
    assert_eq!(served.get("/api/approvals", &operate).json()["approvals"][0]["rules_changed"], true);
    let words = "asked under rules that have changed since; approve the new question instead";
    served.post("/api/approvals", &operate, &json!({"id": id, "decision": "approve"})).refused(403, words);
    let denied = served.post("/api/approvals", &operate, &json!({"id": id, "decision": "deny"})).json();
    assert_eq!(denied["status"], "denied");
}

/// What became of the calls that this approval was used for.
fn outcomes_by(served: &Served, operate: &str, approval: &Value) -> Vec<Value> {
    let records = served.get("/api/audit?limit=500", operate).json()["records"].take();
    let of = |event: &str| {
        let records = records.as_array().unwrap().iter();
        records.filter(|record| record["event"] == event).map(|record| &record["detail"]).collect::<Vec<_>>()
    };
    let intents = of("intent");
    let calls: Vec<_> = intents
        .iter()
        .filter(|intent| intent["approval"] == *approval)
        .map(|intent| &intent["call_id"])
        .collect();
    let ends = of("outcome").into_iter().filter(|end| calls.contains(&&end["call_id"]));
    ends.map(|end| end["outcome"].clone()).collect()
}

#[test]
fn another_users_prompt_has_nothing_of_the_owners_files() {
    let world = World::new();
    world.file("memories.json", r#"["Tea, not coffee"]"#);
    world.file("tasks.json", r#"[{"id": "42", "title": "Ship it"}]"#);
    world.file("agents/assistant/agent.toml", "identity = \"I am the assistant.\"\n");
    let model = Model::alone(&world, &json!([rule("hello", 0, says("Hi."))]));
    world.file("embody.toml", model.config(WireFormat::OpenAi) + "[prompt]\nlayout = \"tagged\"\n");
    let (owner, ann) = (token(&world, "owner", "chat"), token(&world, "ann", "chat"));
    let served = Served::start(&world);
    served.begin_post("/api/chat", &owner, &json!({"text": "hello", "task": "42"})).events();
    let own = model.last().system();
    assert!(own.contains("Tea, not coffee") && own.contains("Ship it"), "{own}");
    let files = world.path("agents/assistant/files");
    assert!(own.contains(&format!("Your working directory is: {}\n", files.display())), "{own}");
    assert!(files.is_dir());
    served.begin_post("/api/chat", &ann, &json!({"text": "hello"})).events();
    let theirs = model.last().system();
    assert!(!theirs.contains("Tea, not coffee"), "{theirs}");
    let failed = served.begin_post("/api/chat", &ann, &json!({"text": "hello", "task": "1"})).events();
    let failed = format!("{:?}", failed.last());
    assert!(failed.contains("unknown task `1`") && !failed.contains("42"), "{failed}");
}

#[test]
fn a_revoked_token_ends_its_turn_and_its_stream() {
    let world = World::new();
    let model = Model::alone(&world, &json!([rule("hello", 0, endless())]));
    world.file("embody.toml", model.config(WireFormat::OpenAi));
    let chat = token(&world, "ann", "chat");
    let listed = world.run(&["token", "list", "--json"]).ok().json();
    let served = Served::start(&world);
    let mut reading = served.begin_post("/api/chat", &chat, &json!({"text": "hello"}));
    let begun = reading.until("turn");
    world.run(&["token", "revoke", listed["tokens"][0]["id"].as_str().unwrap()]).ok();
    while let Some(event) = reading.event() {
        assert!(!matches!(event.name.as_str(), "done" | "failed"), "{event:?}");
    }
    // The same user comes with another token, and finds that interrupted.
    let chat = token(&world, "ann", "chat");
    let path = format!("GET /api/chat/{}", turn(&begun));
    let events = served.begin(&path, &[("authorization", &bearer(&chat))], None).events();
    assert_eq!(events.last().unwrap().name, "cancelled", "{events:?}");
}
