//! The Python client lists, calls, answers what it is asked and hears of changes, over every transport.

use serde_json::{Map, Value, json};

use crate::fixture;
use crate::peers::{Mode, Place, follow};

fn plan() -> Map<String, Value> {
    let call = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments});
    let calls = json!([
        call("add", json!({"a": 2, "b": 3})),
        call("test_tool_with_progress", json!({})),
        call("test_tool_with_logging", json!({})),
        call("test_elicitation", json!({"message": "?"})),
        call("test_sampling", json!({"prompt": "?"})),
        call("test_input_required_result_multiple_inputs", json!({})),
        call("test_input_required_result_multi_round", json!({})),
        // Headers cannot carry this as it is.
        call("test_headers", json!({"region": "Zürich ", "count": 7})),
        call("test_reconnection", json!({})),
        call("nothing", json!({})),
    ]);
    Map::from_iter([("calls".to_owned(), calls), ("listen".to_owned(), "test_trigger_tool_change".into())])
}

fn gets_along(place: Place, mode: Mode, version: &str) {
    let seen = follow(&place.into(), mode, plan());
    assert_eq!(seen["version"], version);
    assert!(seen["tools"].as_array().unwrap().contains(&json!("add")));
    assert!(seen["resources"].as_array().unwrap().contains(&json!("test://static-text")));
    let results = seen["results"].as_array().unwrap();
    assert_eq!(results[0]["structuredContent"], json!({"sum": 5}));
    let said: Vec<&str> = results.iter().filter_map(|result| result["content"][0]["text"].as_str()).collect();
    assert_eq!(
        said,
        [
            "5",
            "Reported progress three times.",
            "Logged three times.",
            r#"Elicitation completed: action=accept, content={"response":"peer"}"#,
            "LLM response: from a model",
            "Name: peer; Greeting: from a model; Roots: 1",
            "Multi-round complete for peer who likes peer",
            r#"Called with {"count":7,"region":"Zürich "}"#,
            "The stream was ended, and taken up again.",
        ]
    );
    assert_eq!(results[9]["error"]["code"], -32602);
    let done: Vec<f64> =
        seen["progress"].as_array().unwrap().iter().map(|step| step[0].as_f64().unwrap()).collect();
    assert_eq!(done, [0.0, 50.0, 100.0]);
    let logs = ["Tool execution started", "Tool processing data", "Tool execution completed"];
    assert_eq!(seen["logs"], json!(logs));
    assert_eq!(seen["heard"], "ToolsListChanged");
}

#[test]
fn over_stdio() {
    gets_along(fixture::stdio(), Mode::Legacy, "2025-11-25");
    gets_along(fixture::stdio(), Mode::Auto, "2026-07-28");
    gets_along(fixture::stdio(), Mode::Modern, "2026-07-28");
}

#[test]
fn over_http() {
    let server = fixture::listening();
    gets_along(server.http(), Mode::Legacy, "2025-11-25");
    gets_along(server.http(), Mode::Auto, "2026-07-28");
    gets_along(server.http(), Mode::Modern, "2026-07-28");
}

#[test]
fn over_legacy_sse() {
    let server = fixture::listening();
    gets_along(server.sse(), Mode::Legacy, "2025-11-25");
}
