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

/// What is said about an approval that was asked under another policy.
pub(crate) const RULES_CHANGED: &str =
    "asked under rules that have changed since; approve the new question instead";

/// Whether an open approval was asked under another policy: it is void, and the same call asks again.
pub(crate) fn have_rules_changed(approval: &Approval, config: &Config) -> bool {
    matches!(approval.status, ApprovalStatus::Pending | ApprovalStatus::Approved)
        && bound_version(&approval.policy) != broker_setup::policy_version(&config.policy)
}

/// Fails unless the call can be shown completely, the policy is the one that asked, and its rules allow `way`.
pub(crate) fn check_approvable(approval: &Approval, config: &Config, way: Via) -> Result<(), CliError> {
    approval_text(&ApprovalView::from(approval))
        .map_err(|error| CliError::new(&error).hint("deny it; the agent must use smaller steps"))?;
    if have_rules_changed(approval, config) {
        return Err(CliError::new(format!("this call was {RULES_CHANGED}")).hint(
            "the agent asks the new question when it makes the call again; if it asks under the old rules still, run `embody reload`. \
             Denying is always possible",
        ));
    }
    let rules = broker_setup::policy(config)?;
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
                .hint(match is_denial_in_force(approval) {
                    true => format!(
                        "`embody approvals ask-again {id}` takes the denial back: you are asked when the agent makes the call again"
                    ),
                    false => "the denial is over: you are asked when the agent makes the call again".to_owned(),
                }));
        }
        (ApprovalStatus::Expired, _) => {
            let at = time::display(approval.expires_at);
            let what = match approval.decided_by {
                Some(_) => format!("the call `{id}` was approved by `{by}`, but not made before {at}"),
                None => format!("the approval `{id}` expired at {at} without an answer; it was not denied"),
            };
            return Err(CliError::new(what).hint("you are asked when the agent makes the call again"));
        }
        (ApprovalStatus::Pending, _) => {
            return Err(CliError::new(format!("the approval `{id}` could not be decided")).hint("try again"));
        }
    })
}

/// Whether it is a denial that refuses the same call without a question.
pub(crate) fn is_denial_in_force(approval: &Approval) -> bool {
    approval.status == ApprovalStatus::Denied && approval.expires_at > jiff::Timestamp::now().as_microsecond()
}

/// Why a denial that was to be taken back does not stand.
pub(crate) fn not_denied(approval: &Approval) -> CliError {
    let id = &approval.id;
    match approval.status {
        ApprovalStatus::Denied => {
            let end = time::display(approval.expires_at);
            CliError::new(format!("the denial of `{id}` ended at {end} already"))
                .hint("you are asked when the agent makes the call again")
        }
        ApprovalStatus::Pending => {
            CliError::new(format!("the call `{id}` was not denied; it waits for an answer"))
                .hint(format!("`embody approvals approve {id}` approves it"))
        }
        _ => CliError::new(format!("the call `{id}` was not denied: {}", outcome(approval)))
            .hint("`embody approvals list --all` shows what became of each call"),
    }
}

/// What became of an approval, in words.
pub(crate) fn outcome(approval: &Approval) -> String {
    let by = approval.decided_by.as_deref();
    let by_whom = by.map(|by| format!(" by {by}")).unwrap_or_default();
    match (approval.status, by) {
        (ApprovalStatus::Expired, Some(_)) => format!("approved{by_whom}, but not made in time"),
        (ApprovalStatus::Expired, None) => "expired without an answer".to_owned(),
        (ApprovalStatus::Used, _) => format!("approved{by_whom}, and made"),
        (status, _) => format!("{}{by_whom}", status.name()),
    }
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
    /// Only of an open one: what is approved now does not count.
    rules_changed: bool,
}

impl<'a> ApprovalJson<'a> {
    pub(crate) fn new(approval: &'a Approval, config: &Config) -> Self {
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
            rules_changed: have_rules_changed(approval, config),
        }
    }
}
