//! Real hosts that have only the broker's entry, with scripted models. `./test` runs these stories, `./test hosts` those
//! of [`matrix`] too: every story in every host over every transport.

mod checks;
mod matrix;
mod model;
mod program;
mod scenario;
mod snapshots;

use self::checks::{two_conversations, two_writes_in_one_answer, waits_within_a_call};
use self::program::Program::{Claude, Codex, Gemini, Opencode};
use self::scenario::Link::{Http, Stdio, StdioWithoutDiscover};

// spec: N-16
#[test]
fn codex_over_stdio_gets_the_contract_in_each_of_two_conversations() {
    let conversations = two_conversations(Codex, Stdio);
    snapshots::check("codex", &conversations);
}

// spec: N-16
#[test]
fn claude_code_over_stdio_gets_the_contract_in_each_of_two_conversations() {
    let conversations = two_conversations(Claude, Stdio);
    snapshots::check("claude_code", &conversations);
}

// spec: N-16
#[test]
fn claude_code_over_http_gets_the_contract_in_each_of_two_conversations() {
    two_conversations(Claude, Http);
}

// spec: N-16
#[test]
fn claude_code_with_the_handshake_gets_the_contract_in_each_of_two_conversations() {
    two_conversations(Claude, StdioWithoutDiscover);
}

// spec: N-16
#[test]
fn opencode_over_stdio_gets_the_contract_in_each_of_two_conversations() {
    two_conversations(Opencode, Stdio);
}

// spec: N-16
#[test]
fn gemini_cli_over_stdio_gets_the_contract_in_each_of_two_conversations() {
    two_conversations(Gemini, Stdio);
}

// spec: N-16
#[test]
fn codex_over_http_waits_for_the_owner_within_a_call() {
    waits_within_a_call(Codex, Http);
}

// spec: N-16
#[test]
fn opencode_over_http_waits_for_the_owner_within_a_call() {
    waits_within_a_call(Opencode, Http);
}

// spec: N-16
#[test]
fn gemini_cli_over_http_waits_for_the_owner_within_a_call() {
    waits_within_a_call(Gemini, Http);
}

#[test]
fn codex_gets_the_contract_before_either_of_two_writes_in_one_answer() {
    two_writes_in_one_answer(Codex, Stdio);
}

#[test]
fn claude_code_gets_the_contract_before_either_of_two_writes_in_one_answer() {
    two_writes_in_one_answer(Claude, Stdio);
}
