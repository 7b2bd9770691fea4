//! The first steps and the last: who the agent is, a read, and the record of it all.

use std::time::{Duration, Instant};

use embody_store::{AuditReport, ChainState};
use serde_json::{Value, json};

use super::super::audit::verdicts;
use super::host::Host;
use super::stage::{Stage, TASK};
use super::tale::Tale;
use crate::failure::Failure;

/// How long something may take to be noticed, and the time between two looks.
pub(super) const NOTICING: Duration = Duration::from_secs(15);
pub(super) const LOOK: Duration = Duration::from_millis(20);
/// The lines of the contract that a reader sees of it.
const EXCERPT_LINES: usize = 2;

pub(super) const WELCOME: &str = "\
This is embody at work. The mind remembers and notices, the body acts, and the broker between them
and the host decides which call may happen. All three are real. Only the host is scripted: it stands
where your coding agent or your chat would, and no model is behind it. Everything happens in a
temporary folder, which is removed at the end. Nothing leaves this machine.

  →  what the host calls      ←  what it gets      │  quoted";

/// Steps 1 and 2: a host that does it by the book.
pub(super) async fn introduce(stage: &Stage, tale: &mut Tale) -> Result<(), Failure> {
    tale.step("A host connects and learns who the agent is")?;
    let host = Host::connect(&stage.broker).await?;
    tale.sent("runtime_bootstrap", &json!({}))?;
    let packet = host.call("runtime_bootstrap", &json!({})).await?;
    // The first paragraph says how embody speaks; what follows the contract, how to use the mind.
    let told = text(&packet, "/content/0/text");
    let contract =
        told.split_once("\n\n").and_then(|(_, rest)| rest.rsplit_once("\n\n---\n\n")).unwrap_or_default().0;
    let remembers_one = told.contains("\"total_count\":1");
    let (told, contract) = (told.to_owned(), contract.to_owned());
    let packet = packet.pointer("/_meta/embody~1bootstrap").cloned().unwrap_or_default();
    let rules = contract.find("These rules come first").is_some_and(|place| place < 100);
    let name = contract.lines().find(|line| line.contains("Nova")).unwrap_or_default();
    tale.sure(rules && !name.is_empty(), "the contract has no rules or no name", &packet)?;
    tale.sure(remembers_one, "the mind does not know its one memory", &json!(told))?;
    tale.got(&format!(
        "the contract, {} characters: the rules of the body first, then who the agent is",
        contract.chars().count()
    ))?;
    for line in contract.lines().filter(|line| !line.is_empty()).take(EXCERPT_LINES) {
        tale.quote(&shortened(line))?;
    }
    tale.quote("…")?;
    tale.quote(&shortened(name))?;
    tale.quote("…")?;
    tale.sure(packet.pointer("/embody/degraded") == Some(&json!([])), "something is missing", &packet)?;
    tale.got("from the mind: it remembers 1 thing, and nothing is missing")?;
    tale.say(
        "This is how the agent is the same everywhere: whatever host it runs in, the first call tells it \
         its rules, its name, its voice and what it remembers.",
    )?;
    tale.step("A read goes straight through")?;
    tale.sent("list_tasks", &json!({}))?;
    let listed = data(host.call("list_tasks", &json!({})).await?);
    tale.sure(text(&listed, "/tasks/0/title") == TASK, "the task is not on the list", &listed)?;
    let member = |name: &str| listed.pointer(&format!("/tasks/0/{name}")).cloned().unwrap_or_default();
    let [id, title] = ["id", "title"].map(member);
    tale.got(&format!(r#"{{"tasks":[{{"id":{id},"title":{title}, …}}]}}"#))?;
    heard(tale, &host).await?;
    tale.say("Reading changes nothing, so nobody is asked. It is on record all the same, and the mind has heard of it.")?;
    host.leave().await;
    Ok(())
}

/// Waits until the mind has heard of the last call in this session.
pub(super) async fn heard(tale: &Tale, host: &Host) -> Result<(), Failure> {
    until(tale, host, "the mind has not heard of the call", |status| {
        text(status, "/last_cognition/what") == "observe after"
            && status.pointer("/last_cognition/failure") == Some(&Value::Null)
    })
    .await
    .map(drop)
}

/// Waits until the broker says of the session that something is so, and gives what it says.
pub(super) async fn until(
    tale: &Tale,
    host: &Host,
    otherwise: &str,
    is_so: impl Fn(&Value) -> bool,
) -> Result<Value, Failure> {
    let since = Instant::now();
    loop {
        let status = data(host.call("runtime_status", &json!({})).await?);
        if is_so(&status) {
            return Ok(status);
        }
        tale.sure(since.elapsed() < NOTICING, otherwise, &status)?;
        tokio::time::sleep(LOOK).await;
    }
}

/// Step 8: everything is on disk, and nobody has touched it.
pub(super) async fn verify(stage: &Stage, tale: &mut Tale) -> Result<AuditReport, Failure> {
    tale.step("The record is whole")?;
    stage.end().await;
    let report = stage.store.verify_audit().await?;
    let seen = serde_json::to_value(&report).unwrap_or_default();
    let is_whole = |chain: &embody_store::ChainReport| chain.state == ChainState::Intact && chain.records > 0;
    tale.sure(report.chains.len() == 1 && report.chains.iter().all(is_whole), "the chain is broken", &seen)?;
    tale.say("What `embody audit verify` says of this demo's own chain:")?;
    tale.quote(&anstream::adapter::strip_str(&verdicts(&report)).to_string())?;
    tale.say(
        "Each record carries the keyed hash of the one before it. Whoever changes one, cuts some off or \
         puts old ones back is found out.",
    )?;
    Ok(report)
}

pub(super) fn farewell(took: Duration) -> String {
    format!(
        "\nThat was all of it, in {:.1} s. What was told was checked as it happened. The folder is gone.\n\n\
         Yours next:\n  \
         embody init    a workspace with rules, a name and a voice to edit\n  \
         embody mcp     the one entry for your host, with your own servers behind it\n  \
         embody up      the same agent in the browser\n",
        took.as_secs_f64()
    )
}

/// What a result holds for programs.
pub(super) fn data(mut result: Value) -> Value {
    result.get_mut("structuredContent").map(Value::take).unwrap_or(result)
}

/// What embody decided instead of making a call.
pub(super) fn decision(result: &Value) -> Value {
    result.pointer("/_meta/embody~1decision").cloned().unwrap_or_default()
}

/// A text somewhere in a value; empty if there is none.
pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn shortened(line: &str) -> String {
    crate::time::clipped(line, 90)
}
