//! The steps of the demo except sending a message: bootstrap, a read, an outage of the mind, the audit.

use std::time::{Duration, Instant};

use embody_store::audit::{AuditReport, ChainState};
use serde_json::{Value, json};

use super::super::audit::report_text;
use super::host::Host;
use super::runtime::{DemoRuntime, TASK};
use super::transcript::Transcript;
use crate::error::CliError;

/// How long a change may take to show in the status, and how often it is polled.
pub(super) const STATUS_TIMEOUT: Duration = Duration::from_secs(15);
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(20);
const EXCERPT_LINES: usize = 2;

pub(super) const WELCOME: &str = "\
This is embody at work. The mind remembers and notices, the body acts, and the broker between them
and the host decides which call may happen. All three are real. Only the host is scripted: it stands
where your coding agent or your chat would, and no model is behind it. Everything happens in a
temporary folder, which is removed at the end. Nothing leaves this machine.

  →  what the host calls      ←  what it gets      │  quoted";

/// Steps 1 and 2.
pub(super) async fn introduce(runtime: &DemoRuntime, transcript: &mut Transcript) -> Result<(), CliError> {
    transcript.step("A host connects and learns who the agent is")?;
    let host = Host::connect(&runtime.broker).await?;
    transcript.sent("runtime_bootstrap", &json!({}))?;
    let packet = host.call("runtime_bootstrap", &json!({})).await?;
    // The first paragraph is about embody; the part after the contract is about the mind.
    let told = text(&packet, "/content/0/text");
    let contract =
        told.split_once("\n\n").and_then(|(_, rest)| rest.rsplit_once("\n\n---\n\n")).unwrap_or_default().0;
    let remembers_one = told.contains("\"total_count\":1");
    let (told, contract) = (told.to_owned(), contract.to_owned());
    let packet = packet.pointer("/_meta/embody~1bootstrap").cloned().unwrap_or_default();
    let rules = contract.find("These rules come first").is_some_and(|place| place < 100);
    let name = contract.lines().find(|line| line.contains("Nova")).unwrap_or_default();
    transcript.check(rules && !name.is_empty(), "the contract has no rules or no name", &packet)?;
    transcript.check(remembers_one, "the mind does not know its one memory", &json!(told))?;
    transcript.received(&format!(
        "the contract, {} characters: the rules of the body first, then who the agent is",
        contract.chars().count()
    ))?;
    for line in contract.lines().filter(|line| !line.is_empty()).take(EXCERPT_LINES) {
        transcript.quote(&shortened(line))?;
    }
    transcript.quote("…")?;
    transcript.quote(&shortened(name))?;
    transcript.quote("…")?;
    transcript.check(
        packet.pointer("/embody/degraded") == Some(&json!([])),
        "something is missing",
        &packet,
    )?;
    transcript.received("from the mind: it remembers 1 thing, and nothing is missing")?;
    transcript.say(
        "This is how the agent is the same everywhere: whatever host it runs in, the first call tells it \
         its rules, its name, its voice and what it remembers.",
    )?;
    transcript.step("A read goes straight through")?;
    transcript.sent("list_tasks", &json!({}))?;
    let listed = data(host.call("list_tasks", &json!({})).await?);
    transcript.check(text(&listed, "/tasks/0/title") == TASK, "the task is not on the list", &listed)?;
    let member = |name: &str| listed.pointer(&format!("/tasks/0/{name}")).cloned().unwrap_or_default();
    let [id, title] = ["id", "title"].map(member);
    transcript.received(&format!(r#"{{"tasks":[{{"id":{id},"title":{title}, …}}]}}"#))?;
    wait_until_observed(transcript, &host).await?;
    transcript.say("Reading changes nothing, so nobody is asked. It is on record all the same, and the mind has heard of it.")?;
    host.close().await;
    Ok(())
}

/// Waits until the mind has observed the last call of this session.
pub(super) async fn wait_until_observed(transcript: &Transcript, host: &Host) -> Result<(), CliError> {
    wait_for_status(transcript, host, "the mind has not heard of the call", |status| {
        text(status, "/last_cognition/what") == "observe after"
            && status.pointer("/last_cognition/failure") == Some(&Value::Null)
    })
    .await
    .map(drop)
}

/// Polls `runtime_status` until the condition holds, and returns the status.
pub(super) async fn wait_for_status(
    transcript: &Transcript,
    host: &Host,
    otherwise: &str,
    is_met: impl Fn(&Value) -> bool,
) -> Result<Value, CliError> {
    let since = Instant::now();
    loop {
        let status = data(host.call("runtime_status", &json!({})).await?);
        if is_met(&status) {
            return Ok(status);
        }
        transcript.check(since.elapsed() < STATUS_TIMEOUT, otherwise, &status)?;
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Step 8.
pub(super) async fn verify(
    runtime: &DemoRuntime,
    transcript: &mut Transcript,
) -> Result<AuditReport, CliError> {
    transcript.step("The record is whole")?;
    runtime.end().await;
    let report = runtime.store.audit().verify().await?;
    let seen = serde_json::to_value(&report).unwrap_or_default();
    let is_whole =
        |chain: &embody_store::audit::ChainReport| chain.state == ChainState::Intact && chain.records > 0;
    transcript.check(
        report.chains.len() == 1 && report.chains.iter().all(is_whole),
        "the chain is broken",
        &seen,
    )?;
    transcript.say("What `embody audit verify` says of this demo's own chain:")?;
    transcript.quote(&anstream::adapter::strip_str(&report_text(&report)).to_string())?;
    transcript.say(
        "Each record carries the keyed hash of the one before it. Whoever changes one, cuts some off or \
         puts old ones back is found out.",
    )?;
    Ok(report)
}

pub(super) fn closing_text(took: Duration) -> String {
    format!(
        "\nThat was all of it, in {:.1} s. What was told was checked as it happened. The folder is gone.\n\n\
         Yours next:\n  \
         embody init    a workspace with rules, a name and a voice to edit\n  \
         embody mcp     the one entry for your host, with your own servers behind it\n  \
         embody up      the same agent in the browser\n",
        took.as_secs_f64()
    )
}

/// The structured content of a result.
pub(super) fn data(mut result: Value) -> Value {
    result.get_mut("structuredContent").map(Value::take).unwrap_or(result)
}

pub(super) fn decision(result: &Value) -> Value {
    result.pointer("/_meta/embody~1decision").cloned().unwrap_or_default()
}

/// The string at a JSON pointer, or an empty one.
pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn shortened(line: &str) -> String {
    crate::time::truncate(line, 90)
}

const AWAY: &str = "mind_unavailable";

/// Step 7.
pub(super) async fn mind_outage(
    runtime: &DemoRuntime,
    transcript: &mut Transcript,
    host: &Host,
) -> Result<(), CliError> {
    let task = json!({"title": "Book a room for Thursday"});
    transcript.step("The mind goes away, and comes back")?;
    transcript.say("The connection to the mind is cut, and new ones are not answered.")?;
    runtime.mind.disconnect();
    wait_for_status(transcript, host, "the broker does not say that the mind is away", |status| {
        is_mind(status, "unavailable") && status.get("degraded_modes") == Some(&json!([AWAY]))
    })
    .await?;
    transcript.sent("runtime_status", &json!({}))?;
    transcript.received(&format!("degraded: {AWAY}"))?;
    transcript.sent("list_tasks", &json!({}))?;
    let listed = data(host.call("list_tasks", &json!({})).await?);
    let count = tasks(&listed);
    transcript.check(count == Some(1), "a read does not go on", &listed)?;
    transcript.received("1 task, as before: reads go on")?;
    transcript.sent("create_task", &task)?;
    let blocked = host.call("create_task", &task).await?;
    let decided = decision(&blocked);
    transcript.check(text(&decided, "/decision") == "blocked", "a write was not blocked", &blocked)?;
    transcript.received(&format!("blocked: {}", text(&decided, "/reason")))?;
    transcript.say("The mind is let back in. Nothing is restarted; the same session goes on.")?;
    runtime.mind.restore();
    let since = Instant::now();
    wait_for_status(transcript, host, "the mind is not back", |status| {
        is_mind(status, "connected") && status.get("degraded") == Some(&json!(false))
    })
    .await?;
    let took = since.elapsed().as_millis();
    transcript.sent("runtime_status", &json!({}))?;
    transcript.received(&format!(
        "nothing is degraded: the broker has found the mind by itself, after {took} ms"
    ))?;
    transcript.sent("create_task", &task)?;
    let made = data(host.call("create_task", &task).await?);
    transcript.check(text(&made, "/title") == text(&task, "/title"), "the task was not made", &made)?;
    transcript.received(&format!(
        "task {}, {}: writes go on, too",
        text(&made, "/id"),
        text(&made, "/status")
    ))
}

fn tasks(listed: &Value) -> Option<usize> {
    Some(listed.get("tasks")?.as_array()?.len())
}

fn is_mind(status: &Value, state: &str) -> bool {
    let upstreams = status.get("upstreams").and_then(Value::as_array);
    upstreams.into_iter().flatten().any(|one| text(one, "/role") == "mind" && text(one, "/state") == state)
}
