//! The Inspector lists, calls and reads over every transport, in both eras.

use serde_json::{Value, json};

use crate::fixture;
use crate::peers::{Era, Place, inspect};

fn sees_everything(place: Place, era: Era) {
    let target = place.into();
    let ask = |question: &[&str]| inspect(&target, era, question).unwrap();
    let tools = ask(&["--method", "tools/list", "--strict"]);
    let is_add = |tool: &&Value| tool["name"] == "add";
    let add = tools["tools"].as_array().unwrap().iter().find(is_add).unwrap();
    assert_eq!(add["outputSchema"]["required"], json!(["sum"]));
    let sum =
        ask(&["--method", "tools/call", "--tool-name", "add", "--tool-arg", "a=2", "--tool-arg", "b=3"]);
    assert_eq!(sum["structuredContent"], json!({"sum": 5}));
    let text = ask(&["--method", "resources/read", "--uri", "test://template/7/data"]);
    assert!(text["contents"][0]["text"].as_str().unwrap().contains("Data for ID: 7"), "{text}");
    let words = ["--prompt-args", "arg1=one", "--prompt-args", "arg2=two"];
    let prompt =
        ask(&[&["--method", "prompts/get", "--prompt-name", "test_prompt_with_arguments"], &words[..]]
            .concat());
    let said = prompt["messages"][0]["content"]["text"].as_str().unwrap();
    assert!(said.contains("one") && said.contains("two"), "{said}");
    let failed = inspect(&target, era, &["--method", "tools/call", "--tool-name", "test_error_handling"]);
    let (code, said) = failed.unwrap_err();
    assert_eq!(code, 5, "{said}");
}

#[test]
fn over_stdio_in_the_session_era() {
    sees_everything(fixture::stdio(), Era::Session);
}

#[test]
fn over_stdio_in_the_stateless_era() {
    sees_everything(fixture::stdio(), Era::Stateless);
}

#[test]
fn over_http_in_the_session_era() {
    let server = fixture::listening();
    sees_everything(server.http(), Era::Session);
}

#[test]
fn over_http_in_the_stateless_era() {
    let server = fixture::listening();
    sees_everything(server.http(), Era::Stateless);
}

#[test]
fn over_legacy_sse() {
    let server = fixture::listening();
    sees_everything(server.sse(), Era::Session);
}

#[test]
fn many_calls_at_once_all_succeed() {
    let server = fixture::listening();
    for (place, era) in [
        (server.http(), Era::Session),
        (server.http(), Era::Stateless),
        (server.sse(), Era::Session),
        (fixture::stdio(), Era::Session),
    ] {
        let load = ["--load", "--load-requests", "200", "--load-concurrency", "8"];
        let call = ["--method", "tools/call", "--tool-name", "test_simple_text"];
        let report = inspect(&place.into(), era, &[&call[..], &load[..]].concat()).unwrap();
        assert_eq!((&report["ok"], &report["errorRate"]), (&json!(200), &json!(0)), "{report}");
    }
}
