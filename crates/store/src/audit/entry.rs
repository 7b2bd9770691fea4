//! Typed records, and how each becomes a row. No text enters without being searched for secrets and bounded.

use serde::Serialize;

use super::operation::Operation;
use super::redact::{Arguments, redact_text};
use super::task::ToTask;
use crate::error::{Error, Result};
use crate::store::{check_name, new_id, now};

/// The longest event, as JSON.
const DETAIL_LIMIT: usize = 16 * 1024;
/// The longest free text of an event, as JSON.
const TEXT_LIMIT: usize = 2 * 1024;

/// Who did it, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// The user it is done for.
    pub user: String,
    /// The agent that does it; none for what an operator does by hand.
    pub agent: Option<String>,
    /// The broker's session.
    pub session: Option<String>,
    /// The channel the request came from.
    pub channel: Option<String>,
}

/// One thing to put on record.
#[derive(Clone, Debug)]
pub struct Record {
    /// Who did it.
    pub actor: Actor,
    /// What happened.
    pub event: Event,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// A write is about to be sent.
    Intent(Intent),
    /// What became of a write.
    Outcome(CallEnd),
    /// The gate decided about a call.
    Decision(Decision),
    /// A read, with its outcome.
    Read(Read),
    /// A host said something to a task that a call went on as.
    Task(ToTask),
    /// An operator did something.
    Operator(Operation),
}

/// A call of a tool.
#[derive(Clone, Debug, Serialize)]
pub struct ToolCall {
    /// Names the call; its outcome carries the same id. A user never uses one twice.
    pub call_id: String,
    /// The body that has the tool.
    pub body: String,
    /// The tool's name.
    pub tool: String,
    /// The call's class, in the words of the policy.
    pub class: String,
    /// What it is called with.
    #[serde(flatten)]
    pub args: Arguments,
}

/// A write that is about to be sent.
#[derive(Clone, Debug, Serialize)]
pub struct Intent {
    /// The call.
    #[serde(flatten)]
    pub call: ToolCall,
    /// The approval that is used up by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
}

/// What became of a write.
#[derive(Clone, Debug, Serialize)]
pub struct CallEnd {
    /// The id of the intent.
    pub call_id: String,
    /// How it ended.
    pub outcome: Outcome,
    /// In what words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was done.
    Done,
    /// The body says that it failed.
    Failed,
    /// It was not sent.
    Denied,
    /// It was sent, and nobody knows.
    Unknown,
}

/// What the gate decided about a call.
#[derive(Clone, Debug, Serialize)]
pub struct Decision {
    /// The call.
    #[serde(flatten)]
    pub call: ToolCall,
    /// The decision.
    pub decision: Verdict,
    /// Why.
    pub reason: String,
}

/// The gate's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It may be sent.
    Allow,
    /// It may not.
    Deny,
    /// A person has to decide.
    Pending,
    /// The contract has to be read first.
    Bounce,
    /// The mind flagged it.
    Held,
    /// Nobody decided in time.
    Timeout,
    /// Something that it needs is away.
    Blocked,
}

/// A read, with its outcome.
#[derive(Clone, Debug, Serialize)]
pub struct Read {
    /// The call.
    #[serde(flatten)]
    pub call: ToolCall,
    /// How it ended.
    pub outcome: Outcome,
}

/// A record on its way into the chain.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(super) id: String,
    pub(super) at: i64,
    pub(super) user: String,
    pub(super) agent: Option<String>,
    pub(super) session: Option<String>,
    pub(super) channel: Option<String>,
    pub(super) event: &'static str,
    pub(super) detail: String,
    pub(super) call: Call,
    /// A commit with it failed; it may be there all the same.
    pub(crate) tried: bool,
}

/// What a record means for the list of calls without an outcome.
#[derive(Clone, Debug)]
pub(super) enum Call {
    Opens(String),
    Closes(String),
    /// Closes it if nothing else has; otherwise there is no record.
    ClosesOpen(String),
    None,
}

impl Record {
    /// The row. A record that a database would refuse is refused here: it must not spoil the commit of others.
    pub(crate) fn entry(self) -> Result<Entry> {
        let Actor { user, agent, session, channel } = self.actor;
        check_name("user", &user)?;
        for (what, name) in [("agent", &agent), ("session", &session), ("channel", &channel)] {
            name.as_deref().map_or(Ok(()), |name| check_name(what, name))?;
        }
        let (event, call, detail) = match self.event {
            Event::Intent(intent) => {
                intent.call.check()?;
                intent.approval.as_deref().map_or(Ok(()), |id| check_name("approval", id))?;
                ("intent", Call::Opens(intent.call.call_id.clone()), json(&intent)?)
            }
            Event::Outcome(end) => {
                check_name("call", &end.call_id)?;
                let end = CallEnd { detail: end.detail.as_deref().map(told), ..end };
                ("outcome", Call::Closes(end.call_id.clone()), json(&end)?)
            }
            Event::Decision(decision) => {
                decision.call.check()?;
                let decision = Decision { reason: told(&decision.reason), ..decision };
                ("decision", Call::None, json(&decision)?)
            }
            Event::Read(read) => {
                read.call.check()?;
                ("read", Call::None, json(&read)?)
            }
            Event::Task(said) => {
                said.check()?;
                let (task, detail) = (told(&said.task), said.detail.as_deref().map(told));
                ("task", Call::None, json(&ToTask { task, detail, ..said })?)
            }
            Event::Operator(operation) => {
                let subject = told(&operation.subject);
                let note = operation.note.as_deref().map(told);
                ("operator", Call::None, json(&Operation { subject, note, ..operation })?)
            }
        };
        Ok(Entry {
            id: new_id(),
            at: now(),
            user,
            agent,
            session,
            channel,
            event,
            detail,
            call,
            tried: false,
        })
    }
}

impl Entry {
    /// The same, but only for a call that has no outcome when this is written.
    pub(super) fn if_open(self) -> Self {
        let call = match self.call {
            Call::Closes(call_id) => Call::ClosesOpen(call_id),
            other => other,
        };
        Self { call, ..self }
    }

    /// Something that the chain notes about itself. It belongs to no user.
    pub(super) fn note(event: &'static str, detail: &serde_json::Value) -> Self {
        Self {
            id: new_id(),
            at: now(),
            user: String::new(),
            agent: None,
            session: None,
            channel: None,
            event,
            detail: detail.to_string(),
            call: Call::None,
            tried: false,
        }
    }
}

impl ToolCall {
    fn check(&self) -> Result<()> {
        check_name("call", &self.call_id)?;
        check_name("body", &self.body)?;
        check_name("tool", &self.tool)?;
        check_name("class", &self.class)
    }
}

fn told(text: &str) -> String {
    redact_text(text, TEXT_LIMIT)
}

fn json(event: &impl Serialize) -> Result<String> {
    let detail = serde_json::to_string(event)
        .map_err(|error| Error::invalid("the audit record cannot be written as JSON").because(error))?;
    if detail.len() > DETAIL_LIMIT {
        return Err(Error::invalid(format!(
            "the audit record has {} bytes; {DETAIL_LIMIT} are allowed",
            detail.len()
        )));
    }
    Ok(detail)
}
