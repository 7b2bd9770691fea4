//! The middle of the demo: a message that other people will see, from a call that comes too early to the letter that
//! leaves, or does not.

use std::time::{Duration, Instant};

use embody_store::{AuditRecord, Fenced, Lease, OutgoingEnd};
use serde_json::{Value, json};

use super::host::Host;
use super::person::{Answer, Person, Seat};
use super::stage::{CHANNEL, Stage, USER};
use super::steps::{LOOK, NOTICING, data, decision, heard, text};
use super::tale::Tale;
use crate::failure::Failure;

const TO: &str = "ann@example.com";
const TEXT: &str = "The workshop is on Thursday.";
const TOOL: &str = "send_message";
/// Records that are looked through for those of a call.
const RECORDS: u32 = 100;

fn message() -> Value {
    json!({"channel": CHANNEL, "to": TO, "text": TEXT})
}

/// Steps 3 to 6, in a session of its own, which stays open.
pub(super) async fn send(stage: &Stage, tale: &mut Tale, seat: Seat) -> Result<(Host, Answer), Failure> {
    let host = Host::connect(&stage.broker).await?;
    bounce(stage, tale, &host).await?;
    let before = view(tale, &host).await?;
    let (result, answer) = ask(tale, &host, seat).await?;
    match answer {
        Answer::Yes => sent(stage, tale, result).await?,
        Answer::No => denied(stage, tale, &result).await?,
    }
    hear(tale, &host, answer, &before).await?;
    Ok((host, answer))
}

async fn bounce(stage: &Stage, tale: &mut Tale, host: &Host) -> Result<(), Failure> {
    tale.step("A write that comes too early bounces")?;
    tale.say("A second host connects. Its model skips the start and sends a message at once.")?;
    tale.sent(TOOL, &message())?;
    let bounced = host.call(TOOL, &message()).await?;
    let decided = decision(&bounced);
    tale.sure(text(&decided, "/decision") == "bounce", "the call was not bounced", &bounced)?;
    let contract = text(&bounced, "/content/0/text").splitn(3, "\n\n").nth(2).unwrap_or_default();
    let contract = contract.chars().count();
    tale.sure(contract > 0, "the bounce carries no contract", &bounced)?;
    let outbox = stage.store.outgoing(USER, 1).await?;
    tale.sure(outbox.is_empty(), "something was sent", &json!(outbox.len()))?;
    tale.got(&format!("bounce: {}", text(&decided, "/reason")))?;
    tale.got(&format!("next: {}", text(&decided, "/required_next_action")))?;
    tale.got(&format!("and below it the contract, {contract} characters"))?;
    tale.say(
        "Nothing was sent. The refusal brings the rules along, so that the model has read them before its \
         first write, also in a host that never shows them.",
    )
}

async fn ask(tale: &mut Tale, host: &Host, seat: Seat) -> Result<(Value, Answer), Failure> {
    tale.step("The same call again: now a person is asked")?;
    tale.sent(TOOL, &message())?;
    tale.say(
        "Other people will see this, so it waits for the owner. The broker has the host show this form:",
    )?;
    let mut person = Person { seat, tale };
    let (result, answer) = host.call_asking(TOOL, &message(), &mut person).await?;
    match answer {
        Some(answer) => Ok((result, answer)),
        None => {
            tale.sure(false, "nobody was asked", &result)?;
            Ok((result, Answer::No))
        }
    }
}

async fn sent(stage: &Stage, tale: &mut Tale, result: Value) -> Result<(), Failure> {
    tale.step("It is sent, once, and on record")?;
    let result = data(result);
    let id = text(&result, "/id").to_owned();
    tale.sure(text(&result, "/channel") == CHANNEL && !id.is_empty(), "it was not sent", &result)?;
    tale.got(&result.to_string())?;
    let letter = deliver(stage, tale, &id).await?;
    tale.say("It waited in the outbox for its channel, which has it now. That of this demo reaches nobody:")?;
    tale.quote(&letter)?;
    let records = on_record(stage, tale, &["bounce", "send_message", "done"]).await?;
    tale.say("On record, in this order:")?;
    tale.quote(&records)?;
    tale.say(
        "The intent was on disk before the message left, and your consent is used up by it. To send the \
         same text again, the agent would have to ask again.",
    )
}

async fn denied(stage: &Stage, tale: &mut Tale, result: &Value) -> Result<(), Failure> {
    tale.step("It is not sent, and that is on record")?;
    let decided = decision(result);
    tale.sure(text(&decided, "/decision") == "deny", "it was not denied", result)?;
    tale.got(&format!("deny: {}", text(&decided, "/reason")))?;
    let outbox = stage.store.outgoing(USER, 1).await?;
    tale.sure(outbox.is_empty(), "something was sent", &json!(outbox.len()))?;
    let records = on_record(stage, tale, &["bounce", "deny"]).await?;
    tale.say("You said no. The outbox is empty. On record, in this order:")?;
    tale.quote(&records)
}

/// Takes the message from the outbox as a channel does, and gives what it would deliver.
async fn deliver(stage: &Stage, tale: &Tale, id: &str) -> Result<String, Failure> {
    let lease = Lease { owner: "embody demo".to_owned(), duration: Duration::from_secs(30) };
    let claims = stage.store.claim_outgoing(CHANNEL, &lease, 2).await?;
    let seen = json!(claims.len());
    let [claim] = claims.as_slice() else {
        tale.sure(false, "not exactly one message is in the outbox", &seen)?;
        return Ok(String::new());
    };
    let outgoing = &claim.outgoing;
    let is_it = outgoing.id == id && outgoing.to == TO && outgoing.text == TEXT;
    tale.sure(is_it, "another message is in the outbox", &json!(outgoing.text))?;
    let is_ours = stage.store.begin_part(claim, 0).await? == Fenced::Kept
        && stage.store.finish_outgoing(claim, OutgoingEnd::Sent).await? == Fenced::Kept;
    tale.sure(is_ours, "the message was taken by somebody else", &seen)?;
    Ok(format!("to {}: {}", outgoing.to, outgoing.text))
}

/// The records about the message, when they say exactly this, in this order. Those of refusals are written soon, not at once.
async fn on_record(stage: &Stage, tale: &Tale, expected: &[&str]) -> Result<String, Failure> {
    let since = Instant::now();
    loop {
        let records = about_the_message(stage).await?;
        if records.iter().map(gist).eq(expected.iter().copied()) {
            let line = |record: &AuditRecord| format!("{:8}  {}", record.event, gist(record));
            return Ok(records.iter().map(line).collect::<Vec<_>>().join("\n"));
        }
        let claim = format!("the record is not: {}", expected.join(", "));
        tale.sure(since.elapsed() < NOTICING, &claim, &json!(records))?;
        tokio::time::sleep(LOOK).await;
    }
}

async fn about_the_message(stage: &Stage) -> Result<Vec<AuditRecord>, Failure> {
    let records = stage.store.audit_tail(RECORDS, Some(USER)).await?;
    let is_call = |record: &&AuditRecord| record.text("tool").as_deref() == Some(TOOL);
    let calls: Vec<Option<String>> =
        records.iter().filter(is_call).map(|record| record.text("call_id")).collect();
    Ok(records.into_iter().filter(|record| calls.contains(&record.text("call_id"))).collect())
}

/// What a record says in a word: what was decided, what came of a call, or else which tool was to be called.
fn gist(record: &AuditRecord) -> String {
    let said = ["decision", "outcome", "tool"].into_iter().find_map(|member| record.text(member));
    said.unwrap_or_default()
}

/// What the mind says of the message.
async fn view(tale: &Tale, host: &Host) -> Result<String, Failure> {
    let view = data(host.call("observe", &json!({"tool_name": TOOL, "args": message()})).await?);
    let reason = text(&view, "/reasons/0");
    tale.sure(!reason.is_empty(), "the mind has no view", &view)?;
    Ok(reason.to_owned())
}

async fn hear(tale: &mut Tale, host: &Host, answer: Answer, before: &str) -> Result<(), Failure> {
    match answer {
        Answer::Yes => {
            tale.step("The mind hears of it")?;
            heard(tale, host).await?;
        }
        Answer::No => tale.step("The mind has nothing to hear of")?,
    }
    let after = view(tale, host).await?;
    let seen = json!([before, after]);
    match answer {
        Answer::Yes => tale.sure(before != after, "the mind has learned nothing", &seen)?,
        Answer::No => {
            tale.sure(before == after, "the mind has learned from a call that was not made", &seen)?;
        }
    }
    tale.say("What the mind makes of such a message, before you were asked and now:")?;
    tale.quote(&format!("before  {before}\nnow     {after}"))?;
    match answer {
        Answer::Yes => tale.say(
            "It counts what is usual: which tools, to whom, at what hour. It is asked before every \
                 message, and what is unusual, or against a rule you gave, is held for you.",
        ),
        Answer::No => tale.say("A call that was not made teaches it nothing about what is usual."),
    }
}
