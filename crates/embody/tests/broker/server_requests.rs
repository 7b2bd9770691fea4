//! What bodies ask of the host in the middle of a call.

use serde_json::{Value, json};

use super::conformance::fixture;
use super::host::{Host, Reply};
use super::setup::{ALLOW_ALL, Scene, body, host};
use crate::peers::program;
use crate::support::world::World;

fn answering(method: &str, _: &Value) -> Reply {
    match method {
        "elicitation/create" => Reply::Result(json!({"action": "accept", "content": {"name": "Ann \u{e9}"}})),
        "sampling/createMessage" => Reply::Result(json!({
            "role": "assistant", "content": {"type": "text", "text": "Hm."}, "model": "m",
        })),
        "roots/list" => Reply::Result(json!({"roots": [{"uri": "file:///somewhere"}]})),
        _ => Reply::Error(-32601, "no such method"),
    }
}

fn capable() -> Value {
    json!({"elicitation": {}, "sampling": {}, "roots": {"listChanged": true}})
}

// spec: N-10
#[test]
fn a_bodys_own_question_carries_its_name_and_approves_nothing() {
    let scene = Scene::new("", &[]);
    let mut host = host(&scene.world, &capable(), answering);
    let result = host.call("look", &json!({"trick": "elicit"}));
    let expected = json!({"action": "accept", "content": {"name": "Ann \u{e9}"}});
    assert_eq!(result["structuredContent"]["answer"], expected);
    let question = host.questions[0].data();
    let message = question["message"].as_str().unwrap();
    assert!(message.contains("desk") && message.contains("What is your name?"), "{message}");
    assert!(question["requestedSchema"]["properties"]["name"].is_object(), "{question}");
    let listed = scene.world.run(&["approvals", "list", "--json"]).ok().json();
    assert_eq!(listed["approvals"], json!([]));
}

#[test]
fn a_body_asks_the_hosts_model_only_where_the_operator_says_so() {
    for (allowed, more) in [(false, ""), (true, "sampling = \"allow\"")] {
        let scene = Scene::new(more, &[]);
        let mut host = host(&scene.world, &capable(), answering);
        let result = host.call("look", &json!({"trick": "sample"}));
        let answer = &result["structuredContent"]["answer"];
        let initialized = scene.desk.of_kind("initialize")[0]["params"]["capabilities"].clone();
        assert_eq!(initialized.get("sampling").is_some(), allowed, "{initialized}");
        assert_eq!(answer["model"] == "m", allowed, "{result}");
        assert_eq!(host.questions.len(), usize::from(allowed), "{:?}", host.questions);
    }
}

#[test]
fn a_body_learns_the_hosts_roots_and_that_they_change() {
    let scene = Scene::new("", &[]);
    let mut host = host(&scene.world, &capable(), answering);
    let result = host.call("look", &json!({"trick": "roots"}));
    assert_eq!(result["structuredContent"]["answer"], json!({"roots": [{"uri": "file:///somewhere"}]}));
    host.notify("notifications/roots/list_changed", &json!({}));
    // A notification and the next call may overtake each other.
    let reported = scene.desk.until("notification", 2);
    assert!(
        reported.iter().any(|event| event["method"] == "notifications/roots/list_changed"),
        "{reported:?}"
    );
}

#[test]
fn roots_are_withheld_from_a_body_where_the_operator_says_so() {
    let scene = Scene::new("roots = \"withhold\"", &[]);
    let mut host = host(&scene.world, &capable(), answering);
    let result = host.call("look", &json!({"trick": "roots"}));
    assert_eq!(result["structuredContent"]["answer"]["code"], -32601, "{result}");
    let initialized = scene.desk.of_kind("initialize")[0]["params"]["capabilities"].clone();
    assert!(initialized.get("roots").is_none() && initialized.get("elicitation").is_some(), "{initialized}");
    is_not_told_of_changes(&scene, &mut host);
    assert!(host.questions.is_empty(), "{:?}", host.questions);
}

#[test]
fn a_body_is_given_the_folders_of_the_operator_instead_of_the_hosts_roots() {
    let scene = Scene::new("roots = [\"/srv/some files\", \"/data\"]", &[]);
    for capabilities in [capable(), json!({})] {
        let mut host = host(&scene.world, &capabilities, answering);
        let result = host.call("look", &json!({"trick": "roots"}));
        let roots = json!([
            {"uri": "file:///srv/some%20files", "name": "some files"},
            {"uri": "file:///data", "name": "data"},
        ]);
        assert_eq!(result["structuredContent"]["answer"], json!({"roots": roots}));
        let initialized = scene.desk.of_kind("initialize").last().unwrap()["params"]["capabilities"].clone();
        assert_eq!(initialized["roots"], json!({}), "{initialized}");
        is_not_told_of_changes(&scene, &mut host);
        assert!(host.questions.is_empty(), "{:?}", host.questions);
    }
}

/// What the host asks next arrives, but not that its roots have changed.
fn is_not_told_of_changes(scene: &Scene, host: &mut Host) {
    host.notify("notifications/roots/list_changed", &json!({}));
    host.call("look", &json!({}));
    let reported = scene.desk.of_kind("notification");
    assert!(
        !reported.iter().any(|event| event["method"] == "notifications/roots/list_changed"),
        "{reported:?}"
    );
}

#[test]
fn a_stateless_body_is_given_the_same_roots() {
    for (roots, expected) in [
        ("\"forward\"", "Found 1 root(s)"),
        ("[\"/srv/a\", \"/srv/b\", \"/srv/c\"]", "Found 3 root(s)"),
        ("\"withhold\"", ""),
    ] {
        let world = World::with_body("Be honest.");
        let fixture = body("fixture", &fixture("stateless"), &format!("roots = {roots}"));
        world.file("embody.toml", format!("{ALLOW_ALL}{fixture}"));
        let mut host = host(&world, &capable(), answering);
        let params = json!({"name": "test_input_required_result_list_roots", "arguments": {}}).to_string();
        let answer = host.ask("tools/call", &params);
        if expected.is_empty() {
            // The server says itself that its client lacks the capability.
            assert_eq!(answer.error()["code"], -32021);
        } else {
            assert_eq!(answer.result()["content"][0]["text"], expected);
        }
        assert_eq!(host.questions.len(), usize::from(roots == "\"forward\""), "{:?}", host.questions);
    }
}

#[test]
fn a_file_server_works_in_the_folder_of_its_command_whatever_the_hosts_roots_are() {
    // With `forward` it works in the host's roots only, with folders of the operator in those.
    for (more, own_is_read, other_is_read) in
        [("", true, false), ("roots = \"forward\"", false, true), ("roots = [\"OTHER\"]", false, true)]
    {
        let world = World::with_body("Be honest.");
        for folder in ["own", "other"] {
            world.file_outside(&format!("{folder}/note.txt"), folder);
        }
        let [own, other] = ["own", "other"].map(|folder| world.outside(folder).display().to_string());
        let command = [program("server-filesystem").display().to_string(), own.clone()];
        let body = body("files", &command, &more.replace("OTHER", &other));
        world.file("embody.toml", format!("{ALLOW_ALL}{body}"));
        let roots = json!({"roots": [{"uri": format!("file://{other}"), "name": "other"}]});
        let mut host = host(&world, &capable(), move |method, params| match method {
            "roots/list" => Reply::Result(roots.clone()),
            _ => answering(method, params),
        });
        // It takes roots some time after it was greeted.
        let allowed = if own_is_read { &own } else { &other };
        let deadline = std::time::Instant::now() + super::host::SOON;
        loop {
            let listed = host.call("list_allowed_directories", &json!({}));
            let text = listed["content"][0]["text"].as_str().unwrap_or_default();
            if text.lines().skip(1).eq([allowed.as_str()]) {
                break;
            }
            assert!(std::time::Instant::now() < deadline, "{more}: {listed}");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        for (folder, is_read) in [(&own, own_is_read), (&other, other_is_read)] {
            let read = host.call("read_text_file", &json!({"path": format!("{folder}/note.txt")}));
            assert_eq!(read["isError"] != true, is_read, "{more}: {read}");
        }
    }
}

#[test]
fn a_host_that_cannot_be_asked_is_not_asked() {
    let scene = Scene::new("sampling = \"allow\"", &[]);
    let mut host = scene.plain_host();
    for trick in ["elicit", "sample", "roots"] {
        let result = host.call("look", &json!({"trick": trick}));
        assert!(result["structuredContent"]["answer"]["code"].is_i64(), "{trick}: {result}");
    }
    assert!(host.questions.is_empty(), "{:?}", host.questions);
    let initialized = scene.desk.of_kind("initialize")[0]["params"]["capabilities"].clone();
    for capability in ["elicitation", "sampling", "roots"] {
        assert!(initialized.get(capability).is_none(), "{initialized}");
    }
}

#[test]
fn two_hosts_are_asked_each_by_its_own_body() {
    let scene = Scene::new("", &[]);
    let named = |name: &'static str| {
        move |_: &str, _: &Value| Reply::Result(json!({"action": "accept", "content": {"name": name}}))
    };
    let mut ann = host(&scene.world, &capable(), named("Ann"));
    let mut bob = host(&scene.world, &capable(), named("Bob"));
    let asked = [
        ann.begin_call("look", &json!({"trick": "elicit"})),
        bob.begin_call("look", &json!({"trick": "elicit"})),
    ];
    assert_eq!(bob.answer(asked[1]).result()["structuredContent"]["answer"]["content"]["name"], "Bob");
    assert_eq!(ann.answer(asked[0]).result()["structuredContent"]["answer"]["content"]["name"], "Ann");
}
