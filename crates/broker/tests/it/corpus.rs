//! Replays the fuzzing corpora: every file is a host's input to a broker, or a request state.

use std::fs;
use std::path::Path;

#[path = "../../../../fuzz/checks/judged/mod.rs"]
mod judged;
#[path = "../../../../fuzz/checks/request_state.rs"]
mod request_state;
#[path = "../../../../fuzz/checks/face/mod.rs"]
mod server;

#[test]
fn every_host_of_the_corpus_is_answered() {
    run("face", server::check);
    server::finish();
}

// spec: N-10
#[test]
fn nothing_of_a_host_reaches_a_body_without_a_permit() {
    run("judged", judged::check);
    run("face", judged::check);
    assert!(judged::arrived() > 0, "no request has reached a body: nothing was checked");
}

const METHODS: [&str; 22] = [
    "tools/call",
    "tools/list",
    "resources/read",
    "resources/subscribe",
    "resources/list",
    "resources/templates/list",
    "prompts/get",
    "prompts/list",
    "completion/complete",
    "tasks/get",
    "tasks/cancel",
    "tasks/list",
    "logging/setLevel",
    "x/do",
    "x/other",
    "ping",
    "initialize",
    "sampling/createMessage",
    "notifications/roots/list_changed",
    "notifications/cancelled",
    "notifications/progress",
    "notifications/x",
];
const PARAMS: [&str; 14] = [
    "{}",
    r#"{"name":"send_mail","arguments":{"to":"eve"}}"#,
    r#"{"name":"look","arguments":{},"more":1,"_meta":{"x":1}}"#,
    r#"{"name":"locked__look"}"#,
    r#"{"name":"body_tool","arguments":{"name":"locked/send_mail","args":{}}}"#,
    r#"{"name":"get_system_prompt"}"#,
    r#"{"name":"locked__locked","_meta":{"smuggled":1}}"#,
    r#"{"uri":"locked://1"}"#,
    r#"{"uri":"memory://1"}"#,
    r#"{"uri":"open://1","_meta":{"smuggled":1}}"#,
    r#"{"cursor":"r1:x","_meta":{"smuggled":1},"smuggled":1}"#,
    r#"{"taskId":"t","smuggled":1}"#,
    r#"{"level":"info","smuggled":1}"#,
    r#"{"ref":{"type":"ref/resource","uri":"locked://1"},"argument":{"name":"a","value":"b"},"requestId":1}"#,
];

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config { cases: 48, ..Default::default() })]
    #[test]
    fn no_sequence_of_host_messages_reaches_a_body_without_a_permit(
        messages in proptest::collection::vec(
            (proptest::sample::select(&METHODS[..]), proptest::sample::select(&PARAMS[..]), proptest::bool::ANY, 0..4u8),
            1..12,
        ),
    ) {
        // `initialize`, and the contract.
        let mut input = vec![0x01, 0x10, 0x1a];
        for (number, (method, params, has_id, rest)) in messages.into_iter().enumerate() {
            let id = if has_id { format!(r#""id":{},"#, number + 100) } else { String::new() };
            input.extend(format!(r#"{{"jsonrpc":"2.0",{id}"method":"{method}","params":{params}}}"#).bytes());
            input.push(b'\n');
            if rest == 0 {
                input.push(0x1a);
            }
        }
        judged::check(&input);
    }
}

// spec: N-10
#[test]
fn every_state_of_the_corpus_is_judged() {
    run("request_state", request_state::check);
}

fn run(corpus: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(corpus);
    let mut files = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        check(&fs::read(path).unwrap());
        files += 1;
    }
    assert!(files >= 20, "{files} files are no corpus");
}
