//! Typed records, and how each becomes a row. Every text is redacted and bounded.

use serde::Serialize;

use super::redact::{RedactedArguments, redact_text};
use crate::error::{Error, Result};
use crate::store::{check_name, new_id, now};

const DETAIL_LIMIT: usize = 16 * 1024;
const TEXT_LIMIT: usize = 2 * 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    pub user: String,
    /// `None` for an operator's action.
    pub agent: Option<String>,
    pub session: Option<String>,
    pub channel: Option<String>,
}

#[derive(Clone, Debug)]
pub struct Record {
    pub actor: Actor,
    pub event: Event,
}

#[derive(Clone, Debug)]
pub enum Event {
    Intent(Intent),
    Outcome(CallEnd),
    Decision(DecisionRecord),
    Read(Read),
    Task(TaskMessage),
    Operator(Operation),
}

#[derive(Clone, Debug, Serialize)]
pub struct AuditedCall {
    /// Shared by intent and outcome; a user never reuses one.
    pub call_id: String,
    pub body: String,
    pub tool: String,
    /// As the policy names it.
    pub class: String,
    #[serde(flatten)]
    pub args: RedactedArguments,
}

#[derive(Clone, Debug, Serialize)]
pub struct Intent {
    #[serde(flatten)]
    pub call: AuditedCall,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct CallEnd {
    pub call_id: String,
    pub outcome: AuditOutcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditOutcome {
    Done,
    /// The body reported a failure.
    Failed,
    /// Not sent.
    Denied,
    /// Sent, with an unknown result.
    Unknown,
}

#[derive(Clone, Debug, Serialize)]
pub struct DecisionRecord {
    #[serde(flatten)]
    pub call: AuditedCall,
    pub decision: DecisionKind,
    pub reason: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionKind {
    Permit,
    Deny,
    /// The contract has to be read first.
    Bounce,
    /// A person has to decide.
    Pending,
    /// The mind flagged it.
    Held,
    /// A required part is unavailable.
    Blocked,
    Timeout,
}

impl DecisionKind {
    pub const ALL: [Self; 7] =
        [Self::Permit, Self::Deny, Self::Bounce, Self::Pending, Self::Held, Self::Blocked, Self::Timeout];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Permit => "permit",
            Self::Deny => "deny",
            Self::Bounce => "bounce",
            Self::Pending => "pending",
            Self::Held => "held",
            Self::Blocked => "blocked",
            Self::Timeout => "timeout",
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct Read {
    #[serde(flatten)]
    pub call: AuditedCall,
    pub outcome: AuditOutcome,
}

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
    /// A commit with this entry failed; it may have been written all the same.
    pub(crate) tried: bool,
}

/// The effect of a record on the list of calls without an outcome.
#[derive(Clone, Debug)]
pub(super) enum Call {
    Opens(String),
    Closes(String),
    /// Closes the call if it is open; otherwise writes no record.
    ClosesOpen(String),
    None,
}

impl Record {
    /// Rejects a record that a database would reject: it must not break the commit of others.
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
                let decision = DecisionRecord { reason: told(&decision.reason), ..decision };
                ("decision", Call::None, json(&decision)?)
            }
            Event::Read(read) => {
                read.call.check()?;
                ("read", Call::None, json(&read)?)
            }
            Event::Task(said) => {
                said.check()?;
                let (task, detail) = (told(&said.task), said.detail.as_deref().map(told));
                ("task", Call::None, json(&TaskMessage { task, detail, ..said })?)
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
    /// Only if the call has no outcome when this is written.
    pub(super) fn if_open(self) -> Self {
        let call = match self.call {
            Call::Closes(call_id) => Call::ClosesOpen(call_id),
            other => other,
        };
        Self { call, ..self }
    }

    /// A record of the chain about itself, which belongs to no user.
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

impl AuditedCall {
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

#[derive(Clone, Debug, Serialize)]
pub struct Operation {
    pub action: Action,
    /// An id or a name, never a secret.
    pub subject: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    TokenMade,
    TokenRevoked,
    UserLockedOut,
    UserLetIn,
    ApprovalGranted,
    ApprovalDenied,
    /// The same call asks again.
    DenialWithdrawn,
    PinAccepted,
    InstructionsSet,
    InstructionsReverted,
    AgentSet,
    AgentRemoved,
    KeyMade,
    MemorySaved,
    MemoryEdited,
    MemoryErased,
    MemoryForgotten,
    MemoryReleased,
    MemoriesImported,
    CommitmentSettled,
    ConsolidationUndone,
    ProposalDismissed,
    ScheduleAdded,
    SchedulePaused,
    ScheduleResumed,
    ScheduleRemoved,
    ThreadRenamed,
    ThreadDeleted,
    SoulEdited,
    /// The note says what.
    Other,
}

/// A message of a host to a task that a call became.
#[derive(Clone, Debug, Serialize)]
pub struct TaskMessage {
    /// Known only to the process that made the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    pub body: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The body's id of the task.
    pub task: String,
    pub said: TaskMessageKind,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub args: Option<RedactedArguments>,
    /// Whether the body accepted the message; not the result of the task.
    pub outcome: AuditOutcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskMessageKind {
    Cancel,
    Update,
}

impl TaskMessage {
    pub(super) fn check(&self) -> Result<()> {
        self.call_id.as_deref().map_or(Ok(()), |id| check_name("call", id))?;
        self.tool.as_deref().map_or(Ok(()), |tool| check_name("tool", tool))?;
        check_name("body", &self.body)
    }
}
