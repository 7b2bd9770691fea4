//! What every way to decide on an approval shares: who may, what is shown, and what an answer that came too late is told.

use embody_broker::approval::{Subject, bound_version, words};
use embody_broker::arguments::Arguments;
use embody_broker::policy::{Annotations, Facts, Via};
use embody_store::{Answer, Approval, ApprovalStatus};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::config::Config;
use crate::failure::Failure;
use crate::{policy, time};

/// Whether this call may be approved in this way: it can be shown whole, and the rules say so. Only the policy that asked can
/// say.
pub(crate) fn may_be_approved(asked: &Approval, config: &Config, way: Via) -> Result<(), Failure> {
    words(&Subject::from(asked))
        .map_err(|error| Failure::new(&error).hint("deny it; the agent has to do it in smaller steps"))?;
    let rules = policy::of(config)?;
    if rules.version != bound_version(&asked.policy) {
        return Err(Failure::new(
            "the call was made under another policy than this configuration has, so nobody can say here who may approve it",
        )
        .hint("use the configuration that the broker runs with, or start the broker anew; denying is always possible"));
    }
    let args = Arguments::read_stored(&asked.args).map_err(|error| Failure::new(&error))?;
    let facts = Facts {
        tool: &asked.tool,
        body: &asked.body,
        args: args.value(),
        channel: &asked.channel,
        user: &asked.user,
        session: &asked.session,
    };
    // Hints of the server open no way and close none but the host's.
    let ways = rules.policy.rule(&facts, Annotations::default(), false).via;
    if ways.contains(&way) {
        return Ok(());
    }
    let ways: Vec<&str> = ways.into_iter().map(Via::name).collect();
    let here = match way {
        Via::Cli => "the terminal",
        Via::Console => "the console",
        Via::Telegram => "a chat on Telegram",
        Via::Elicitation => "the host",
    };
    Err(Failure::new(format!("the rules do not let {here} approve this call, only: {}", ways.join(", ")))
        .hint("`via` of the matching `[[policy.rule]]` says who may; denying is always possible"))
}

/// What was decided, in a word, now or before. Asking twice for the same is no failure.
pub(crate) fn verdict(approval: &Approval, wanted: Answer) -> Result<&'static str, Failure> {
    let (id, by) = (&approval.id, approval.decided_by.as_deref().unwrap_or("nobody"));
    Ok(match (approval.status, wanted) {
        (ApprovalStatus::Approved, Answer::Approve) => "approved",
        (ApprovalStatus::Denied, Answer::Deny) => "denied",
        (ApprovalStatus::Approved, Answer::Deny) => {
            return Err(Failure::new(format!("the approval `{id}` was given by `{by}` already")).hint(
                format!(
                    "it cannot be taken back; unless it is used it ends at {}",
                    time::shown(approval.expires_at)
                ),
            ));
        }
        (ApprovalStatus::Used, _) => {
            let at = time::shown(approval.used_at.unwrap_or(approval.expires_at));
            return Err(Failure::new(format!("the approval `{id}` was given by `{by}` and used at {at}"))
                .hint("`embody audit tail` shows what came of the call"));
        }
        (ApprovalStatus::Denied, Answer::Approve) => {
            return Err(Failure::new(format!("the approval `{id}` was denied by `{by}` already"))
                .hint("the agent may ask again when its time is over"));
        }
        (ApprovalStatus::Expired, _) => {
            let at = time::shown(approval.expires_at);
            return Err(Failure::new(format!("the approval `{id}` expired at {at}, which counts as denied"))
                .hint("the agent has to make the call again"));
        }
        (ApprovalStatus::Pending, _) => {
            return Err(Failure::new(format!("the approval `{id}` could not be decided")).hint("try again"));
        }
    })
}

/// What is said of an id that nobody knows.
pub(crate) fn missing(id: &str) -> Failure {
    Failure::new(format!("there is no approval `{id}`")).hint("`embody approvals list` shows those that wait")
}

/// A status in a word.
pub(crate) fn name(status: ApprovalStatus) -> &'static str {
    match status {
        ApprovalStatus::Pending => "pending",
        ApprovalStatus::Approved => "approved",
        ApprovalStatus::Denied => "denied",
        ApprovalStatus::Expired => "expired",
        ApprovalStatus::Used => "used",
    }
}

/// For programs. The arguments are the very text that was asked about.
#[derive(Serialize)]
pub(crate) struct Shown<'a> {
    id: &'a str,
    user: &'a str,
    agent: &'a str,
    session: &'a str,
    channel: &'a str,
    body: &'a str,
    tool: &'a str,
    class: &'a str,
    args: Option<Box<RawValue>>,
    reason: &'a str,
    flags: &'a [String],
    status: &'static str,
    decided_by: Option<&'a str>,
    created_at: String,
    expires_at: String,
    text: Option<String>,
}

impl<'a> Shown<'a> {
    pub(crate) fn of(approval: &'a Approval) -> Self {
        Self {
            id: &approval.id,
            user: &approval.user,
            agent: &approval.agent,
            session: &approval.session,
            channel: &approval.channel,
            body: &approval.body,
            tool: &approval.tool,
            class: &approval.class,
            args: RawValue::from_string(approval.args.clone()).ok(),
            reason: &approval.reason,
            flags: &approval.flags,
            status: name(approval.status),
            decided_by: approval.decided_by.as_deref(),
            created_at: time::rfc3339(approval.created_at),
            expires_at: time::rfc3339(approval.expires_at),
            text: words(&Subject::from(approval)).ok(),
        }
    }
}
