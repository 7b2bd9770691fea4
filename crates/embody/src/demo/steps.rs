//! The steps of the demo: bootstrap, a read, a message that other people see (from a call before the contract to the delivered or
//! denied message), an outage of the mind, the audit.

use std::time::{Duration, Instant};

use embody_store::audit::{AuditRecord, AuditReport, ChainState};
use embody_store::outgoing::OutgoingEnd;
use embody_store::{Lease, LeaseStatus};
use embody_text::truncate;
use serde_json::{Value, json};

use super::approver::{Answer, Approver};
use super::host::Host;
use super::transcript::Transcript;
use super::{CHANNEL, DemoRuntime, TASK, USER};
use crate::audit_report::report_text;
use crate::error::CliError;

/// How long a change may take to show in the status, and how often it is polled.
const STATUS_TIMEOUT: Duration = Duration::from_secs(15);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
const EXCERPT_LINES: usize = 2;
const QUOTE_CHARS: usize = 90;

/// Steps 1 and 2.
pub(super) async fn introduce(runtime: &DemoRuntime, transcript: &mut Transcript) -> Result<(), CliError> {
    transcript.step("A host connects and gets the contract")?;
    let host = Host::connect(&runtime.broker).await?;
    transcript.sent("runtime_bootstrap", &json!({}))?;
    let packet = host.call("runtime_bootstrap", &json!({})).await?;
    // The first paragraph is about embody; the part after the contract is about the mind.
    let packet_text = text(&packet, "/content/0/text");
    let contract = packet_text
        .split_once("\n\n")
        .and_then(|(_, rest)| rest.rsplit_once("\n\n---\n\n"))
        .unwrap_or_default()
        .0;
    let remembers_one = packet_text.contains("\"total_count\":1");
    let (packet_text, contract) = (packet_text.to_owned(), contract.to_owned());
    let packet = packet.pointer("/_meta/embody~1bootstrap").cloned().unwrap_or_default();
    let rules = contract.find("These rules come first").is_some_and(|position| position < 100);
    let name = contract.lines().find(|line| line.contains("Nova")).unwrap_or_default();
    transcript.check(rules && !name.is_empty(), "the contract has no rules or no name", &packet)?;
    transcript.check(remembers_one, "the mind does not know its one memory", &json!(packet_text))?;
    transcript.received(&format!(
        "the contract, {} bytes: first the rules, then the agent's identity",
        contract.len()
    ))?;
    for line in contract.lines().filter(|line| !line.is_empty()).take(EXCERPT_LINES) {
        transcript.quote(&truncate(line, QUOTE_CHARS))?;
    }
    transcript.quote("…")?;
    transcript.quote(&truncate(name, QUOTE_CHARS))?;
    transcript.quote("…")?;
    transcript.check(
        packet.pointer("/embody/degraded") == Some(&json!([])),
        "something is missing",
        &packet,
    )?;
    transcript.received("from the mind: 1 memory, nothing degraded")?;
    transcript.narrate(
        "Every host gets the same text, so the agent has the same rules, name and manner everywhere.",
    )?;
    transcript.step("A read is forwarded at once")?;
    transcript.sent("list_tasks", &json!({}))?;
    let listed = data(host.call("list_tasks", &json!({})).await?);
    transcript.check(text(&listed, "/tasks/0/title") == TASK, "the task is not on the list", &listed)?;
    let member = |name: &str| listed.pointer(&format!("/tasks/0/{name}")).cloned().unwrap_or_default();
    let [id, title] = ["id", "title"].map(member);
    transcript.received(&format!(r#"{{"tasks":[{{"id":{id},"title":{title}, …}}]}}"#))?;
    wait_until_observed(transcript, &host).await?;
    transcript.narrate(
        "A read changes nothing, so it needs no approval. It is recorded, and the mind is informed.",
    )?;
    host.close().await;
    Ok(())
}

/// Waits until the mind has observed the last call of this session.
async fn wait_until_observed(transcript: &Transcript, host: &Host) -> Result<(), CliError> {
    wait_for_status(transcript, host, "the mind was not informed of the call", |status| {
        text(status, "/last_cognition/what") == "observe after"
            && status.pointer("/last_cognition/failure") == Some(&Value::Null)
    })
    .await
    .map(drop)
}

/// Polls `runtime_status` until the condition holds, and returns the status.
async fn wait_for_status(
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
    transcript.step("The audit chain is intact")?;
    runtime.broker.shutdown().await;
    let report = runtime.store.audit().verify().await?;
    let seen = serde_json::to_value(&report).unwrap_or_default();
    let is_whole =
        |chain: &embody_store::audit::ChainReport| chain.state == ChainState::Intact && chain.records > 0;
    transcript.check(
        report.chains.len() == 1 && report.chains.iter().all(is_whole),
        "the chain is broken",
        &seen,
    )?;
    transcript.narrate("The output of `embody audit verify` for this demo:")?;
    transcript.quote(&anstream::adapter::strip_str(&report_text(&report)).to_string())?;
    transcript.narrate(
        "Each record contains a keyed hash of the record before it. Changed, removed or restored records \
         break the chain.",
    )?;
    Ok(report)
}

/// The structured content of a result.
fn data(mut result: Value) -> Value {
    result.get_mut("structuredContent").map(Value::take).unwrap_or(result)
}

fn decision(result: &Value) -> Value {
    result.pointer("/_meta/embody~1decision").cloned().unwrap_or_default()
}

/// The string at a JSON pointer, or an empty one.
fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

const MIND_UNAVAILABLE: &str = "mind_unavailable";

/// Step 7.
pub(super) async fn mind_outage(
    runtime: &DemoRuntime,
    transcript: &mut Transcript,
    host: &Host,
) -> Result<(), CliError> {
    let task = json!({"title": "Book a room for Thursday"});
    transcript.step("The mind fails and recovers")?;
    transcript.narrate("The connection to the mind is cut, and new connections fail.")?;
    runtime.mind.disconnect();
    wait_for_status(transcript, host, "the broker does not report that the mind is unavailable", |status| {
        is_mind(status, "unavailable") && status.get("degraded_modes") == Some(&json!([MIND_UNAVAILABLE]))
    })
    .await?;
    transcript.sent("runtime_status", &json!({}))?;
    transcript.received(&format!("degraded: {MIND_UNAVAILABLE}"))?;
    transcript.sent("list_tasks", &json!({}))?;
    let listed = data(host.call("list_tasks", &json!({})).await?);
    let count = listed.get("tasks").and_then(Value::as_array).map(Vec::len);
    transcript.check(count == Some(1), "a read failed", &listed)?;
    transcript.received("1 task: reads still work")?;
    transcript.sent("create_task", &task)?;
    let blocked = host.call("create_task", &task).await?;
    let decided = decision(&blocked);
    transcript.check(text(&decided, "/decision") == "blocked", "a write was not blocked", &blocked)?;
    transcript.received(&format!("blocked: {}", text(&decided, "/reason")))?;
    transcript
        .narrate("The mind accepts connections again. Nothing is restarted; the session is the same.")?;
    runtime.mind.restore();
    let since = Instant::now();
    wait_for_status(transcript, host, "the mind is not back", |status| {
        is_mind(status, "connected") && status.get("degraded") == Some(&json!(false))
    })
    .await?;
    let took = since.elapsed().as_millis();
    transcript.sent("runtime_status", &json!({}))?;
    transcript.received(&format!("nothing is degraded: the broker reconnected after {took} ms"))?;
    transcript.sent("create_task", &task)?;
    let made = data(host.call("create_task", &task).await?);
    transcript.check(text(&made, "/title") == text(&task, "/title"), "the task was not made", &made)?;
    transcript.received(&format!(
        "task {}, {}: writes work again",
        text(&made, "/id"),
        text(&made, "/status")
    ))
}

fn is_mind(status: &Value, state: &str) -> bool {
    let upstreams = status.get("upstreams").and_then(Value::as_array);
    let is_it = |upstream: &Value| text(upstream, "/role") == "mind" && text(upstream, "/state") == state;
    upstreams.into_iter().flatten().any(is_it)
}

const TO: &str = "ann@example.com";
const TEXT: &str = "The workshop is on Thursday.";
const TOOL: &str = "send_message";
/// Audit records that are searched for those of a call.
const RECORDS: u32 = 100;

fn message() -> Value {
    json!({"channel": CHANNEL, "to": TO, "text": TEXT})
}

/// Steps 3 to 6, in a separate session, which stays open.
pub(super) async fn send(
    runtime: &DemoRuntime,
    transcript: &mut Transcript,
    approver: &mut Approver,
) -> Result<(Host, Answer), CliError> {
    let host = Host::connect(&runtime.broker).await?;
    bounce(runtime, transcript, &host).await?;
    let before = view(transcript, &host).await?;
    let (result, answer) = ask(transcript, &host, approver).await?;
    match answer {
        Answer::Yes => sent(runtime, transcript, result).await?,
        Answer::No => denied(runtime, transcript, &result).await?,
    }
    compare_views(transcript, &host, answer, &before).await?;
    Ok((host, answer))
}

async fn bounce(runtime: &DemoRuntime, transcript: &mut Transcript, host: &Host) -> Result<(), CliError> {
    transcript.step("A write before the contract bounces")?;
    transcript
        .narrate("A second host connects. Its model does not bootstrap and sends a message at once.")?;
    transcript.sent(TOOL, &message())?;
    let bounced = host.call(TOOL, &message()).await?;
    let decided = decision(&bounced);
    transcript.check(text(&decided, "/decision") == "bounce", "the call was not bounced", &bounced)?;
    let contract = text(&bounced, "/content/0/text").splitn(3, "\n\n").nth(2).unwrap_or_default();
    let contract = contract.len();
    transcript.check(contract > 0, "the bounce carries no contract", &bounced)?;
    let outbox = runtime.store.outgoing().list(USER, 1).await?;
    transcript.check(outbox.is_empty(), "something was sent", &json!(outbox.len()))?;
    transcript.received(&format!("bounce: {}", text(&decided, "/reason")))?;
    transcript.received(&format!("next: {}", text(&decided, "/required_next_action")))?;
    transcript.received(&format!("followed by the contract, {contract} bytes"))?;
    transcript.narrate(
        "Nothing was sent. The result contains the rules, so the model reads them before its first write, \
         even in a host that does not show server instructions.",
    )
}

async fn ask(
    transcript: &mut Transcript,
    host: &Host,
    approver: &mut Approver,
) -> Result<(Value, Answer), CliError> {
    transcript.step("The same call again needs approval")?;
    transcript.sent(TOOL, &message())?;
    transcript.narrate(
        "Other people will see this message, so the owner must approve it. The host shows this form:",
    )?;
    let (result, answer) = host.call_with_approval(TOOL, &message(), approver, transcript).await?;
    match answer {
        Some(answer) => Ok((result, answer)),
        None => {
            transcript.check(false, "no approval was requested", &result)?;
            Ok((result, Answer::No))
        }
    }
}

async fn sent(runtime: &DemoRuntime, transcript: &mut Transcript, result: Value) -> Result<(), CliError> {
    transcript.step("The message is sent once and recorded")?;
    let result = data(result);
    let id = text(&result, "/id").to_owned();
    transcript.check(text(&result, "/channel") == CHANNEL && !id.is_empty(), "it was not sent", &result)?;
    transcript.received(&result.to_string())?;
    let message = deliver(runtime, transcript, &id).await?;
    transcript.narrate(
        "The message waited in the store until its channel accepted it. The demo's channel only prints it:",
    )?;
    transcript.quote(&message)?;
    let records = wait_for_records(runtime, transcript, &["bounce", "send_message", "done"]).await?;
    transcript.narrate("The audit chain has, in this order:")?;
    transcript.quote(&records)?;
    transcript.narrate(
        "The intent was on disk before the message was sent, and the approval is used up. To send the same \
         text again, the agent needs another approval.",
    )
}

async fn denied(runtime: &DemoRuntime, transcript: &mut Transcript, result: &Value) -> Result<(), CliError> {
    transcript.step("The message is not sent, and that is recorded")?;
    let decided = decision(result);
    transcript.check(text(&decided, "/decision") == "deny", "it was not denied", result)?;
    transcript.received(&format!("deny: {}", text(&decided, "/reason")))?;
    let outbox = runtime.store.outgoing().list(USER, 1).await?;
    transcript.check(outbox.is_empty(), "something was sent", &json!(outbox.len()))?;
    let records = wait_for_records(runtime, transcript, &["bounce", "deny"]).await?;
    transcript.narrate("You declined. The outbox is empty. The audit chain has, in this order:")?;
    transcript.quote(&records)
}

/// Takes the message from the outbox like a channel, and returns the text that it would deliver.
async fn deliver(runtime: &DemoRuntime, transcript: &Transcript, id: &str) -> Result<String, CliError> {
    let lease = Lease { owner: "embody demo".to_owned(), duration: Duration::from_secs(30) };
    let claims = runtime.store.outgoing().claim(CHANNEL, &lease, 2).await?;
    let seen = json!(claims.len());
    let [claim] = claims.as_slice() else {
        transcript.check(false, "not exactly one message is in the outbox", &seen)?;
        return Ok(String::new());
    };
    let outgoing = &claim.outgoing;
    let is_it = outgoing.id == id && outgoing.to == TO && outgoing.text == TEXT;
    transcript.check(is_it, "another message is in the outbox", &json!(outgoing.text))?;
    let is_ours = runtime.store.outgoing().begin_part(claim, 0).await? == LeaseStatus::Kept
        && runtime.store.outgoing().finish(claim, OutgoingEnd::Sent).await? == LeaseStatus::Kept;
    transcript.check(is_ours, "another process took the message", &seen)?;
    Ok(format!("to {}: {}", outgoing.to, outgoing.text))
}

/// Waits for exactly these audit records about the message, in this order. Refusals are recorded with a short delay.
async fn wait_for_records(
    runtime: &DemoRuntime,
    transcript: &Transcript,
    expected: &[&str],
) -> Result<String, CliError> {
    let since = Instant::now();
    loop {
        let records = records_of_message(runtime).await?;
        if records.iter().map(record_summary).eq(expected.iter().copied()) {
            let line = |record: &AuditRecord| format!("{:8}  {}", record.event, record_summary(record));
            return Ok(records.iter().map(line).collect::<Vec<_>>().join("\n"));
        }
        let claim = format!("the record is not: {}", expected.join(", "));
        transcript.check(since.elapsed() < STATUS_TIMEOUT, &claim, &json!(records))?;
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

async fn records_of_message(runtime: &DemoRuntime) -> Result<Vec<AuditRecord>, CliError> {
    let records = runtime.store.audit().tail(RECORDS, Some(USER)).await?;
    let is_call = |record: &&AuditRecord| record.text("tool").as_deref() == Some(TOOL);
    let calls: Vec<Option<String>> =
        records.iter().filter(is_call).map(|record| record.text("call_id")).collect();
    Ok(records.into_iter().filter(|record| calls.contains(&record.text("call_id"))).collect())
}

/// A record in one word: the decision, the outcome, or else the tool.
fn record_summary(record: &AuditRecord) -> String {
    let summary = ["decision", "outcome", "tool"].into_iter().find_map(|member| record.text(member));
    summary.unwrap_or_default()
}

async fn view(transcript: &Transcript, host: &Host) -> Result<String, CliError> {
    let view = data(host.call("observe", &json!({"tool_name": TOOL, "args": message()})).await?);
    let reason = text(&view, "/reasons/0");
    transcript.check(!reason.is_empty(), "the mind has no view", &view)?;
    Ok(reason.to_owned())
}

async fn compare_views(
    transcript: &mut Transcript,
    host: &Host,
    answer: Answer,
    before: &str,
) -> Result<(), CliError> {
    match answer {
        Answer::Yes => {
            transcript.step("The mind is informed")?;
            wait_until_observed(transcript, host).await?;
        }
        Answer::No => transcript.step("The mind is not informed of a call that was not sent")?,
    }
    let after = view(transcript, host).await?;
    let seen = json!([before, after]);
    match answer {
        Answer::Yes => transcript.check(before != after, "the mind has learned nothing", &seen)?,
        Answer::No => {
            transcript.check(before == after, "the mind has learned from a call that was not made", &seen)?;
        }
    }
    transcript.narrate("The mind's view of such a message, before the approval and now:")?;
    transcript.quote(&format!("before  {before}\nnow     {after}"))?;
    match answer {
        Answer::Yes => transcript.narrate(
            "The mind counts which tools are used, for which recipients and at what hour. The broker asks it \
             before every message. An unusual message, or one that touches a rule of yours, needs approval.",
        ),
        Answer::No => {
            transcript.narrate("A call that was not sent does not change what the mind considers usual.")
        }
    }
}
