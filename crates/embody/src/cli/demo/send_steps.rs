//! The middle of the demo: a message that other people see, from a call before the contract to the delivered or denied
//! message.

use std::time::{Duration, Instant};

use embody_store::audit::AuditRecord;
use embody_store::outgoing::OutgoingEnd;
use embody_store::{Lease, LeaseStatus};
use serde_json::{Value, json};

use super::approver::{Answer, AnswerSource, Approver};
use super::host::Host;
use super::runtime::{CHANNEL, DemoRuntime, USER};
use super::steps::{POLL_INTERVAL, STATUS_TIMEOUT, data, decision, text, wait_until_observed};
use super::transcript::Transcript;
use crate::error::CliError;

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
    source: AnswerSource,
) -> Result<(Host, Answer), CliError> {
    let host = Host::connect(&runtime.broker).await?;
    bounce(runtime, transcript, &host).await?;
    let before = view(transcript, &host).await?;
    let (result, answer) = ask(transcript, &host, source).await?;
    match answer {
        Answer::Yes => sent(runtime, transcript, result).await?,
        Answer::No => denied(runtime, transcript, &result).await?,
    }
    hear(transcript, &host, answer, &before).await?;
    Ok((host, answer))
}

async fn bounce(runtime: &DemoRuntime, transcript: &mut Transcript, host: &Host) -> Result<(), CliError> {
    transcript.step("A write that comes too early bounces")?;
    transcript.say("A second host connects. Its model skips the start and sends a message at once.")?;
    transcript.sent(TOOL, &message())?;
    let bounced = host.call(TOOL, &message()).await?;
    let decided = decision(&bounced);
    transcript.check(text(&decided, "/decision") == "bounce", "the call was not bounced", &bounced)?;
    let contract = text(&bounced, "/content/0/text").splitn(3, "\n\n").nth(2).unwrap_or_default();
    let contract = contract.chars().count();
    transcript.check(contract > 0, "the bounce carries no contract", &bounced)?;
    let outbox = runtime.store.outgoing().list(USER, 1).await?;
    transcript.check(outbox.is_empty(), "something was sent", &json!(outbox.len()))?;
    transcript.received(&format!("bounce: {}", text(&decided, "/reason")))?;
    transcript.received(&format!("next: {}", text(&decided, "/required_next_action")))?;
    transcript.received(&format!("and below it the contract, {contract} characters"))?;
    transcript.say(
        "Nothing was sent. The refusal brings the rules along, so that the model has read them before its \
         first write, also in a host that never shows them.",
    )
}

async fn ask(
    transcript: &mut Transcript,
    host: &Host,
    source: AnswerSource,
) -> Result<(Value, Answer), CliError> {
    transcript.step("The same call again: now a person is asked")?;
    transcript.sent(TOOL, &message())?;
    transcript.say(
        "Other people will see this, so it waits for the owner. The broker has the host show this form:",
    )?;
    let mut approver = Approver { source, transcript };
    let (result, answer) = host.call_with_approval(TOOL, &message(), &mut approver).await?;
    match answer {
        Some(answer) => Ok((result, answer)),
        None => {
            transcript.check(false, "nobody was asked", &result)?;
            Ok((result, Answer::No))
        }
    }
}

async fn sent(runtime: &DemoRuntime, transcript: &mut Transcript, result: Value) -> Result<(), CliError> {
    transcript.step("It is sent, once, and on record")?;
    let result = data(result);
    let id = text(&result, "/id").to_owned();
    transcript.check(text(&result, "/channel") == CHANNEL && !id.is_empty(), "it was not sent", &result)?;
    transcript.received(&result.to_string())?;
    let message = deliver(runtime, transcript, &id).await?;
    transcript.say(
        "It waited in the outbox for its channel, which has it now. That of this demo reaches nobody:",
    )?;
    transcript.quote(&message)?;
    let records = wait_for_records(runtime, transcript, &["bounce", "send_message", "done"]).await?;
    transcript.say("On record, in this order:")?;
    transcript.quote(&records)?;
    transcript.say(
        "The intent was on disk before the message left, and your consent is used up by it. To send the \
         same text again, the agent would have to ask again.",
    )
}

async fn denied(runtime: &DemoRuntime, transcript: &mut Transcript, result: &Value) -> Result<(), CliError> {
    transcript.step("It is not sent, and that is on record")?;
    let decided = decision(result);
    transcript.check(text(&decided, "/decision") == "deny", "it was not denied", result)?;
    transcript.received(&format!("deny: {}", text(&decided, "/reason")))?;
    let outbox = runtime.store.outgoing().list(USER, 1).await?;
    transcript.check(outbox.is_empty(), "something was sent", &json!(outbox.len()))?;
    let records = wait_for_records(runtime, transcript, &["bounce", "deny"]).await?;
    transcript.say("You said no. The outbox is empty. On record, in this order:")?;
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
    transcript.check(is_ours, "the message was taken by somebody else", &seen)?;
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
        let records = about_the_message(runtime).await?;
        if records.iter().map(record_summary).eq(expected.iter().copied()) {
            let line = |record: &AuditRecord| format!("{:8}  {}", record.event, record_summary(record));
            return Ok(records.iter().map(line).collect::<Vec<_>>().join("\n"));
        }
        let claim = format!("the record is not: {}", expected.join(", "));
        transcript.check(since.elapsed() < STATUS_TIMEOUT, &claim, &json!(records))?;
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

async fn about_the_message(runtime: &DemoRuntime) -> Result<Vec<AuditRecord>, CliError> {
    let records = runtime.store.audit().tail(RECORDS, Some(USER)).await?;
    let is_call = |record: &&AuditRecord| record.text("tool").as_deref() == Some(TOOL);
    let calls: Vec<Option<String>> =
        records.iter().filter(is_call).map(|record| record.text("call_id")).collect();
    Ok(records.into_iter().filter(|record| calls.contains(&record.text("call_id"))).collect())
}

/// A record in one word: the decision, the outcome, or else the tool.
fn record_summary(record: &AuditRecord) -> String {
    let said = ["decision", "outcome", "tool"].into_iter().find_map(|member| record.text(member));
    said.unwrap_or_default()
}

/// The mind's view of the message.
async fn view(transcript: &Transcript, host: &Host) -> Result<String, CliError> {
    let view = data(host.call("observe", &json!({"tool_name": TOOL, "args": message()})).await?);
    let reason = text(&view, "/reasons/0");
    transcript.check(!reason.is_empty(), "the mind has no view", &view)?;
    Ok(reason.to_owned())
}

async fn hear(
    transcript: &mut Transcript,
    host: &Host,
    answer: Answer,
    before: &str,
) -> Result<(), CliError> {
    match answer {
        Answer::Yes => {
            transcript.step("The mind hears of it")?;
            wait_until_observed(transcript, host).await?;
        }
        Answer::No => transcript.step("The mind has nothing to hear of")?,
    }
    let after = view(transcript, host).await?;
    let seen = json!([before, after]);
    match answer {
        Answer::Yes => transcript.check(before != after, "the mind has learned nothing", &seen)?,
        Answer::No => {
            transcript.check(before == after, "the mind has learned from a call that was not made", &seen)?;
        }
    }
    transcript.say("What the mind makes of such a message, before you were asked and now:")?;
    transcript.quote(&format!("before  {before}\nnow     {after}"))?;
    match answer {
        Answer::Yes => transcript.say(
            "It counts what is usual: which tools, to whom, at what hour. It is asked before every \
                 message, and what is unusual, or against a rule you gave, is held for you.",
        ),
        Answer::No => transcript.say("A call that was not made teaches it nothing about what is usual."),
    }
}
