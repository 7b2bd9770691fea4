//! Requests that belong to one server.

use embody_broker::Broker;

use crate::stage::{Host, Reply, Server, body, recorded, result, setup};

const RESOURCES: &str = r#"{"resources":{"subscribe":true},"completions":{}}"#;

/// Lists one URI and one template, and has another URI that it does not list.
fn library(
    name: &'static str,
    listed: &'static str,
    template: &'static str,
    unlisted: &'static str,
) -> Server {
    Server::new(name, RESOURCES, move |method, params| match method {
        "resources/list" => result(format!(r#"{{"resources":[{{"uri":"{listed}","name":"x"}}]}}"#)),
        "resources/templates/list" => {
            result(format!(r#"{{"resourceTemplates":[{{"uriTemplate":"{template}","name":"x"}}]}}"#))
        }
        "resources/read" => {
            let params: serde_json::Value = serde_json::from_str(params).unwrap();
            let uri = params["uri"].as_str().unwrap();
            if uri == listed || uri == unlisted || uri.starts_with("tpl://") {
                return result(format!(r#"{{ "contents":[{{"uri":"{uri}","text":"{name}","n":1.0}}] }}"#));
            }
            Some(Reply::Error(-32002, "not mine"))
        }
        "resources/subscribe" | "resources/unsubscribe" => result("{}"),
        "completion/complete" => {
            result(format!(r#"{{"completion":{{"values":["{name}"]}},"got":{params}}}"#))
        }
        _ => None,
    })
}

fn text(uri: &str, by: &str) -> String {
    format!(r#"{{ "contents":[{{"uri":"{uri}","text":"{by}","n":1.0}}] }}"#)
}

#[tokio::test]
async fn a_resource_is_read_from_its_server() {
    let a = library("a", "both://1", "a://{x}", "a-only://1");
    let b = library("b", "both://1", "tpl://{x}", "b-only://1");
    let host = Host::new(&[&a, &b]).await;
    // No server has listed anything: each is asked in turn.
    let read = async |uri: &str| host.result("resources/read", &format!(r#"{{ "uri":"{uri}" }}"#)).await;
    assert_eq!(read("b-only://1").await, text("b-only://1", "b"));
    assert_eq!(a.received("resources/read").len(), 1);
    // From now on the owner is known.
    assert_eq!(read("b-only://1").await, text("b-only://1", "b"));
    assert_eq!(a.received("resources/read").len(), 1);
    host.result("resources/list", "").await;
    host.result("resources/templates/list", "").await;
    assert_eq!(read("both://1").await, text("both://1", "a"), "the first has it");
    assert_eq!(read("tpl://7").await, text("tpl://7", "b"), "a template says so");
    assert_eq!(a.received("resources/read").len(), 2);
    assert_eq!(a.received("resources/read")[1], r#"{ "uri":"both://1" }"#);
    let (code, words) = host.error("resources/read", r#"{"uri":"nobody://1"}"#).await;
    assert_eq!((code, &*words), (-32002, "not mine"));
    assert_eq!(host.error("resources/read", "{}").await.0, -32602);
    host.end().await;
}

#[tokio::test]
async fn who_could_not_be_asked_for_a_resource_is_said() {
    let away = Server::silent("away").closed();
    let host = Host::new(&[&away]).await;
    let (code, words) = host.error("resources/read", r#"{"uri":"x://1"}"#).await;
    assert_eq!(code, -32603);
    // Without text of the server.
    let expected = "`away` has not started yet, and `resource:x://1` may belong to it; try again later, or see runtime_status";
    assert_eq!(words, expected);
    host.end().await;
}

#[tokio::test]
async fn an_unlisted_resource_goes_to_the_only_server_with_resources() {
    let a = library("a", "a://1", "a://{x}", "a://2");
    let host = Host::new(&[&Server::silent("b"), &a]).await;
    let (code, words) = host.error("resources/read", r#"{"uri":"odd://1"}"#).await;
    assert_eq!((code, &*words), (-32002, "not mine"));
    host.end().await;
}

#[tokio::test]
async fn a_completion_goes_where_its_prompt_or_template_is() {
    let prompts = |name: &'static str| {
        Server::new(name, r#"{"prompts":{},"completions":{}}"#, move |method, params| match method {
            "prompts/list" => result(r#"{"prompts":[{"name":"greet"}]}"#),
            "completion/complete" => result(format!(r#"{{"by":"{name}","got":{params}}}"#)),
            _ => None,
        })
    };
    let (a, b, shelf) = (prompts("a"), prompts("b"), library("shelf", "s://1", "s://{x}", "s://2"));
    let host = Host::new(&[&a, &b, &shelf]).await;
    let params =
        r#"{"argument":{"name":"b__greet","value":"b"}, "ref":{ "type":"ref/prompt","name":"b__greet" }}"#;
    let expected = params.replace(r#""ref/prompt","name":"b__greet""#, r#""ref/prompt","name":"greet""#);
    assert_eq!(host.result("completion/complete", params).await, format!(r#"{{"by":"b","got":{expected}}}"#));
    host.result("resources/templates/list", "").await;
    let params = r#"{"ref":{"type":"ref/resource","uri":"s://{x}"},"argument":{"name":"x","value":"1"}}"#;
    assert_eq!(
        host.result("completion/complete", params).await,
        format!(r#"{{"completion":{{"values":["shelf"]}},"got":{params}}}"#)
    );
    assert_eq!(host.error("completion/complete", "{}").await.0, -32602);
    host.end().await;
}

#[tokio::test]
async fn other_methods_go_to_the_body_that_lists_them_and_nowhere_else() {
    let script = |method: &str, params: &str| match method {
        "x/y" | "x/z" => result(format!(r#"{{"got":[{params}] }}"#)),
        _ => None,
    };
    let (a, b) = (Server::new("a", "{}", script), Server::new("b", "{}", script));
    let mut spec = body();
    spec.forward_methods = vec!["x/y".to_owned()];
    let host = Host::with(&Server::silent("mind"), &[(&a, body()), (&b, spec)]).await;
    host.until("b", "connected").await;
    assert_eq!(host.result("x/y", r#"{ "a":1.0,"b":null }"#).await, r#"{"got":[{ "a":1.0,"b":null }] }"#);
    assert_eq!(host.result("x/y", "").await, r#"{"got":[] }"#, "no parameters are none");
    for method in ["x/z", "X/Y", "x/y/", "nonsense"] {
        let (code, words) = host.error(method, "{}").await;
        assert_eq!((code, words), (-32601, format!("Method not found: {method}")));
    }
    assert!(a.received("x/y").is_empty() && b.received("x/z").is_empty());
    b.close();
    host.until("b", "unavailable").await;
    let (code, words) = host.error("x/y", "{}").await;
    assert_eq!(code, -32603);
    assert!(words.starts_with("`b` is unavailable: "), "{words}");
    host.end().await;
}

#[tokio::test]
async fn a_server_gets_no_id_and_no_cursor_that_it_did_not_give() {
    let only = Server::new("only", r#"{"tools":{},"tasks":{"list":{}}}"#, |method, params| match method {
        "tools/list" => result(
            r#"{"tools":[{"name":"look","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}"#,
        ),
        "tools/call" => result(r#"{"task":{"taskId":"t-1","status":"working"}}"#),
        "tasks/list" if params.contains(r#""cursor":"more""#) => result(r#"{"tasks":[{"taskId":"t-3"}]}"#),
        "tasks/list" => result(r#"{ "tasks":[{"taskId":"t-2", "n":1.0}], "nextCursor" : "more", "x":1.0 }"#),
        "tasks/get" | "tasks/result" | "tasks/cancel" => result(r#"{"status":"working"}"#),
        _ => None,
    });
    let host = Host::new(&[&only]).await;
    host.until("only", "connected").await;
    // It is the only server with tasks, but an id could still be any text.
    let about =
        async |method: &str, task: &str| host.call(method, &format!(r#"{{"taskId":"{task}"}}"#)).await;
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        for task in ["t-1", "t-2", "t-3", "the password is hunter2"] {
            let refused = about(method, task).await.unwrap_err();
            assert!(refused.contains("-32602") && refused.contains(task), "{method} {refused}");
        }
        assert!(only.received(method).is_empty(), "{method}");
    }
    for cursor in ["more", "k1:more", "k1:0.0:more", "the password is hunter2"] {
        let (code, _) = host.error("tasks/list", &format!(r#"{{"cursor":"{cursor}"}}"#)).await;
        assert_eq!(code, -32602, "{cursor}");
    }
    assert!(only.received("tasks/list").is_empty());
    // Nor in `_meta`, whether the id was returned or not.
    let related = r#""_meta":{"io.modelcontextprotocol/related-task":{"taskId":"the password is hunter2"}}"#;
    let call = format!(r#"{{"name":"look","arguments":{{}},"task":{{"ttl":1000}},{related}}}"#);
    host.result("tools/call", &call).await;
    host.result("tasks/result", &format!(r#"{{"taskId":"t-1",{related}}}"#)).await;
    about("tasks/get", "t-2").await.unwrap_err();
    // A listed task counts as returned; only the cursor changes.
    let list = host.result("tasks/list", "").await;
    let read: serde_json::Value = serde_json::from_str(&list).unwrap();
    let next = read["nextCursor"].as_str().unwrap();
    let whole = format!(r#" "tasks":[{{"taskId":"t-2", "n":1.0}}], "nextCursor" : "{next}", "x":1.0 }}"#);
    assert!(list.ends_with(&whole), "{list}");
    about("tasks/get", "t-2").await.unwrap();
    about("tasks/get", "t-3").await.unwrap_err();
    let list = host.result("tasks/list", &format!(r#"{{"cursor":"{next}"}}"#)).await;
    assert!(list.contains(r#""tasks":[{"taskId":"t-3"}]"#), "{list}");
    about("tasks/cancel", "t-3").await.unwrap();
    assert_eq!(only.received("tasks/list"), ["", r#"{"cursor":"more"}"#]);
    host.result("tasks/list", &format!("{{{related}}}")).await;
    assert_eq!(only.received("tasks/list").len(), 3);
    for method in ["tools/call", "tasks/result", "tasks/list"] {
        let seen = only.received(method);
        assert!(seen.iter().all(|params| !params.contains("hunter2")), "{method} {seen:?}");
    }
    host.end().await;
}

#[tokio::test]
async fn a_task_is_asked_for_where_it_runs() {
    let tasks = |name: &'static str| {
        let capabilities = r#"{"tools":{},"tasks":{"list":{},"requests":{"tools":{"call":{}}}}}"#;
        Server::new(name, capabilities, move |method, params| match method {
            "tools/list" => result(format!(
                r#"{{"tools":[{{"name":"{name}_read","inputSchema":{{"type":"object"}},"annotations":{{"readOnlyHint":true,"openWorldHint":false}}}}]}}"#
            )),
            "tools/call" => result(format!(r#"{{"task":{{"taskId":"{name}-1","status":"working"}}}}"#)),
            "tasks/list" => result(format!(r#"{{"tasks":[{{"taskId":"{name}-2", "n":1.0}}]}}"#)),
            "tasks/get" | "tasks/result" | "tasks/cancel" => {
                result(format!(r#"{{"by":"{name}","got":{params}}}"#))
            }
            _ => None,
        })
    };
    let (a, b) = (tasks("a"), tasks("b"));
    let setup = setup(&Server::silent("mind"), &[(&a, body()), (&b, body())]).await;
    let store = setup.store.clone();
    let host = Host::initialized(Broker::start(setup)).await;
    host.until("b", "connected").await;
    host.result("tools/list", "").await;
    assert_eq!(host.error("tasks/get", r#"{"taskId":"b-1"}"#).await.0, -32602, "nobody has said so");
    let created = host.result("tools/call", r#"{"name":"b_read","arguments":{},"task":{"ttl":1000}}"#).await;
    assert!(created.contains(r#""task":{"taskId":"b-1","status":"working"}"#), "{created}");
    let got = async |method: &str, task: &str| {
        let params = format!(r#"{{ "taskId":"{task}" }}"#);
        let got = host.result(method, &params).await;
        assert!(got.contains(&format!(r#""got":{params}"#)), "{got}");
        serde_json::from_str::<serde_json::Value>(&got).unwrap()["by"].as_str().unwrap().to_owned()
    };
    assert_eq!(got("tasks/get", "b-1").await, "b");
    let list = host.result("tasks/list", "").await;
    assert!(list.contains(r#""tasks":[{"taskId":"a-2", "n":1.0},{"taskId":"b-2", "n":1.0}]"#), "{list}");
    assert_eq!(got("tasks/result", "a-2").await, "a");
    assert_eq!(got("tasks/cancel", "b-2").await, "b");
    // The cancellation is recorded.
    let record = recorded(&store, "task").await;
    let words = ["body", "task", "said", "outcome"].map(|name| record.text(name).unwrap());
    assert_eq!(words, ["b", "b-2", "cancel", "done"]);
    host.end().await;
}
