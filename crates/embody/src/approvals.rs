//! Shared by every way to decide on an approval: who may decide, how it is shown, and the error for a decision that comes too
//! late.

use embody_broker::approval::{ApprovalView, approval_text, bound_version};
use embody_broker::arguments::Arguments;
use embody_broker::policy::{Annotations, Facts, Via};
use embody_store::approvals::{Answer, Approval, ApprovalStatus};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::config::Config;
use crate::error::CliError;
use crate::{broker_setup, time};

/// Fails unless the call can be shown completely, the policy is the one that asked, and its rules allow `way`.
pub(crate) fn check_approvable(approval: &Approval, config: &Config, way: Via) -> Result<(), CliError> {
    approval_text(&ApprovalView::from(approval))
        .map_err(|error| CliError::new(&error).hint("deny it; the agent must use smaller steps"))?;
    let rules = broker_setup::policy(config)?;
    if rules.version != bound_version(&approval.policy) {
        return Err(CliError::new(
            "the rules have changed since this call asked for approval, so it cannot be approved",
        )
        .hint("let the agent repeat the call and approve the new question; denying is always possible"));
    }
    let args = Arguments::read_stored(&approval.args).map_err(|error| CliError::new(&error))?;
    let facts = Facts {
        tool: &approval.tool,
        body: &approval.body,
        args: args.value(),
        has_extra: args.has_extra(),
        channel: &approval.channel,
        user: &approval.user,
        session: &approval.session,
    };
    // Annotations of the server affect only the elicitation of the host.
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
    Err(CliError::new(format!(
        "the rules do not allow approval of this call by {here}, only by: {}",
        ways.join(", ")
    ))
    .hint("see `via` of the matching `[[policy.rule]]`; denying is always possible"))
}

/// The decision in one word. Deciding the same twice is not an error.
pub(crate) fn check_decision(approval: &Approval, wanted: Answer) -> Result<&'static str, CliError> {
    let (id, by) = (&approval.id, approval.decided_by.as_deref().unwrap_or("unknown"));
    Ok(match (approval.status, wanted) {
        (ApprovalStatus::Approved, Answer::Approve) => "approved",
        (ApprovalStatus::Denied, Answer::Deny) => "denied",
        (ApprovalStatus::Approved, Answer::Deny) => {
            return Err(CliError::new(format!("the call `{id}` was already approved by `{by}`")).hint(
                format!(
                    "an approval cannot be withdrawn; if it is not used, it expires at {}",
                    time::display(approval.expires_at)
                ),
            ));
        }
        (ApprovalStatus::Used, _) => {
            let at = time::display(approval.used_at.unwrap_or(approval.expires_at));
            return Err(CliError::new(format!("the call `{id}` was approved by `{by}` and made at {at}"))
                .hint("`embody audit tail` shows the outcome of the call"));
        }
        (ApprovalStatus::Denied, Answer::Approve) => {
            return Err(CliError::new(format!("the call `{id}` was already denied by `{by}`"))
                .hint("the agent can ask again after it expires"));
        }
        (ApprovalStatus::Expired, _) => {
            let at = time::display(approval.expires_at);
            return Err(CliError::new(format!(
                "the approval `{id}` expired at {at}, which counts as denied"
            ))
            .hint("the agent must make the call again"));
        }
        (ApprovalStatus::Pending, _) => {
            return Err(CliError::new(format!("the approval `{id}` could not be decided")).hint("try again"));
        }
    })
}

pub(crate) fn not_found(id: &str) -> CliError {
    CliError::new(format!("unknown approval `{id}`"))
        .hint("`embody approvals list` lists the calls that wait for approval")
}

/// Whether serde_json can convert the text to a `Value`: not if it has one of its private keys, which older versions stored.
fn is_convertible(args: &RawValue) -> bool {
    serde_json::from_str::<serde_json::Value>(args.get()).is_ok()
}

/// An approval in JSON. The arguments are the exact text that was asked about.
#[derive(Serialize)]
pub(crate) struct ApprovalJson<'a> {
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

impl<'a> ApprovalJson<'a> {
    pub(crate) fn new(approval: &'a Approval) -> Self {
        Self {
            id: &approval.id,
            user: &approval.user,
            agent: &approval.agent,
            session: &approval.session,
            channel: &approval.channel,
            body: &approval.body,
            tool: &approval.tool,
            class: &approval.class,
            args: RawValue::from_string(approval.args.clone()).ok().filter(|args| is_convertible(args)),
            reason: &approval.reason,
            flags: &approval.flags,
            status: approval.status.name(),
            decided_by: approval.decided_by.as_deref(),
            created_at: time::rfc3339(approval.created_at),
            expires_at: time::rfc3339(approval.expires_at),
            text: approval_text(&ApprovalView::from(approval)).ok(),
        }
    }
}
