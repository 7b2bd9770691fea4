//! What reaches the model, kept as reviewed snapshots: the broker's instructions, its tools, and the results of
//! [`two_conversations`](super::stories::two_conversations).

use std::fmt::Write;

use serde_json::Value;

use super::model::{Next, Request, Step, Tool};

/// The name of the entry.
const ENTRY: &str = "embody";

pub(super) fn check(host: &str, conversations: &[Vec<Step>; 2]) {
    let first = &conversations[0][0].request;
    insta::assert_snapshot!(format!("{host}_instructions"), instructions(first));
    insta::assert_snapshot!(format!("{host}_tools"), tools(first));
    insta::assert_snapshot!(format!("{host}_results"), results(conversations));
}

/// Codex shows them with the group of the server's tools, Claude Code in a reminder that has a heading for each server.
fn instructions(request: &Request) -> String {
    let grouped = request.tools.iter().filter_map(|tool| tool.namespace.as_ref());
    if let Some(group) = grouped.into_iter().find(|group| group.name.contains(ENTRY)) {
        return group.description.clone();
    }
    let heading = format!("\n## {ENTRY}\n");
    let reminder = find(&request.body, &heading).expect("the host must show the broker's instructions");
    let (_, rest) = reminder.split_once(&heading).unwrap();
    rest.split("</system-reminder>").next().unwrap().trim().to_owned()
}

fn find<'a>(value: &'a Value, text: &str) -> Option<&'a str> {
    match value {
        Value::String(found) => found.contains(text).then_some(found),
        Value::Array(parts) => parts.iter().find_map(|part| find(part, text)),
        Value::Object(members) => members.values().find_map(|member| find(member, text)),
        _ => None,
    }
}

fn tools(request: &Request) -> String {
    let mut text = String::new();
    for tool in request.tools.iter().filter(|tool| is_ours(tool)) {
        let schema = serde_json::to_string_pretty(&tool.schema).unwrap();
        write!(text, "## {}\n{}\n{schema}\n\n", tool.name, tool.description).unwrap();
    }
    text
}

fn is_ours(tool: &Tool) -> bool {
    tool.namespace.as_ref().map_or(&tool.name, |group| &group.name).contains(ENTRY)
}

/// Each call with its result.
fn results(conversations: &[Vec<Step>; 2]) -> String {
    let mut text = String::new();
    for (number, steps) in (1..).zip(conversations) {
        let calls = steps.iter().filter_map(|step| match &step.next {
            Next::Call(calls) => Some(calls),
            Next::Say(_) => None,
        });
        let results = &steps[steps.len() - 1].request.results;
        for ((tool, arguments), result) in calls.flatten().zip(results) {
            let result = normalize(result);
            write!(text, "## conversation {number}: {tool} {arguments}\n{result}\n\n").unwrap();
        }
    }
    text
}

/// Without what differs between two runs: ids, times, hashes, durations, and what Claude Code appends.
fn normalize(text: &str) -> String {
    let text = text.split("\n<system-reminder>").next().unwrap().trim_end();
    let text = without_codes(text);
    let mut normal = String::new();
    for part in text.split_inclusive(|end: char| !is_word(end)) {
        let word = part.trim_end_matches(|end: char| !is_word(end));
        normal += replacement(word).unwrap_or(word);
        normal += &part[word.len()..];
    }
    normal
}

/// With `CODE` for the session's code.
fn without_codes(text: &str) -> String {
    const BEGIN: &str = "[embody ";
    let mut parts = text.split(BEGIN);
    let mut rest = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        rest += BEGIN;
        rest += "CODE";
        rest += part.find(']').map_or(part, |end| &part[end..]);
    }
    rest
}

fn is_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '-' | ':' | '.' | '+')
}

fn replacement(word: &str) -> Option<&'static str> {
    let is_hex = |text: &str| text.chars().all(|digit| digit.is_ascii_hexdigit());
    let shape: Vec<usize> = word.split('-').map(str::len).collect();
    if shape == [8, 4, 4, 4, 12] && word.split('-').all(is_hex) {
        return Some("ID");
    }
    if word.len() >= 16 && is_hex(word) {
        return Some("HASH");
    }
    let digits = word.starts_with(|digit: char| digit.is_ascii_digit());
    match word.split_once('T') {
        Some((date, time)) if digits && date.len() == 10 && time.contains(':') => Some("TIME"),
        // Codex says how long the call took.
        None if digits && word.contains('.') && word.parse::<f64>().is_ok() => Some("NUMBER"),
        _ => None,
    }
}
