//! What bodies ask of the host in the middle of a call.

use serde_json::{Value, json};

use super::host::Reply;
use super::setup::{Scene, host};

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
        let greeted = scene.desk.of_kind("initialize")[0]["params"]["capabilities"].clone();
        assert_eq!(greeted.get("sampling").is_some(), allowed, "{greeted}");
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
    host.call("look", &json!({}));
    let told = scene.desk.of_kind("notification");
    assert!(told.iter().any(|event| event["method"] == "notifications/roots/list_changed"), "{told:?}");
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
    let greeted = scene.desk.of_kind("initialize")[0]["params"]["capabilities"].clone();
    for capability in ["elicitation", "sampling", "roots"] {
        assert!(greeted.get(capability).is_none(), "{greeted}");
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
