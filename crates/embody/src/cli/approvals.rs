//! `embody approvals …`: the calls that wait for a person, and that person's word.
//!
//! Whoever reaches the store with this command is its operator. What is shown is all there is to see, hidden characters
//! included; what cannot be shown whole cannot be approved here either.

use std::fmt::Write;
use std::process::ExitCode;

use anstyle::Style;
use clap::{Args, Subcommand};
use embody_broker::approval::{Subject, bound_version, words};
use embody_broker::arguments::Arguments;
use embody_broker::policy::{Annotations, Facts, Via};
use embody_store::{Answer, Approval, ApprovalFilter, ApprovalStatus, DecideApproval, Decided};
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::Context;
use crate::failure::Failure;
use crate::output::{self, printable};
use crate::{policy, store, time};

const EXAMPLES: &str = "Examples:
  embody approvals list                   every call that waits, with all that there is to see
  embody approvals approve 019a8b3e-…     this call may happen, once
  embody approvals deny 019a8b3e-…        it may not";

/// Who decides, when it is done here.
const BY: &str = Via::Cli.name();
const DIM: Style = Style::new().dimmed();

/// What to do with them.
#[derive(Subcommand, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) enum ApprovalsCommand {
    /// Shows the calls that wait, the newest first
    List(ListArgs),
    /// Approves a call, once, and shows which
    Approve(DecideArgs),
    /// Denies a call, and shows which
    Deny(DecideArgs),
}

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// Only those of this user
    #[arg(long)]
    user: Option<String>,
    /// Also those that are decided, used or expired
    #[arg(long)]
    all: bool,
    /// At most so many
    #[arg(long, short = 'n', default_value_t = 100)]
    count: u32,
}

#[derive(Args, Debug)]
pub(crate) struct DecideArgs {
    /// The approval's id
    id: String,
}

pub(crate) fn run(command: &ApprovalsCommand, context: &Context) -> Result<ExitCode, Failure> {
    match command {
        ApprovalsCommand::List(args) => list(args, context),
        ApprovalsCommand::Approve(args) => decide(args, Answer::Approve, context),
        ApprovalsCommand::Deny(args) => decide(args, Answer::Deny, context),
    }
}

fn list(args: &ListArgs, context: &Context) -> Result<ExitCode, Failure> {
    let filter = if args.all { ApprovalFilter::All } else { ApprovalFilter::Pending };
    let found = store::read(context, async |store| {
        Ok(match &args.user {
            Some(user) => store.approvals(user, filter, args.count).await?,
            None => store.all_approvals(filter, args.count).await?,
        })
    })?;
    let found = found.unwrap_or_default();
    if context.json {
        let approvals: Vec<_> = found.iter().map(Shown::of).collect();
        output::json(&json!({ "approvals": approvals }))?;
    } else if found.is_empty() {
        output::plain("No call waits for an approval.\n")?;
    } else {
        let shown: Vec<String> = found.iter().map(as_text).collect();
        output::styled(&shown.join("\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn decide(args: &DecideArgs, answer: Answer, context: &Context) -> Result<ExitCode, Failure> {
    let asked = store::change(context, async |store| Ok(store.anyones_approval(&args.id).await?))?.flatten();
    let asked = asked.ok_or_else(|| missing(&args.id))?;
    if asked.status != ApprovalStatus::Pending {
        return settled(&asked, answer, context);
    }
    if answer == Answer::Approve {
        words(&Subject::from(&asked))
            .map_err(|error| Failure::new(&error).hint("deny it; the agent has to do it in smaller steps"))?;
        may_be_approved_here(&asked, context)?;
    }
    // What was shown is what is decided: nothing in an approval changes but its status.
    if !context.json {
        output::styled(&as_text(&asked))?;
    }
    let word = DecideApproval { user: asked.user, id: asked.id, answer, by: BY.to_owned() };
    let decided = store::change(context, async |store| Ok(store.decide_approval(word).await?))?;
    match decided {
        Some(Decided::Decided(approval) | Decided::NotPending(approval)) => {
            settled(&approval, answer, context)
        }
        Some(Decided::Missing) | None => Err(missing(&args.id)),
    }
}

/// Whether the rules let the terminal approve this call. Only the policy that asked can say.
fn may_be_approved_here(asked: &Approval, context: &Context) -> Result<(), Failure> {
    let rules = policy::of(&context.config)?;
    if rules.version != bound_version(&asked.policy) {
        return Err(Failure::new(
            "the call was made under another policy than this configuration has, so nobody can say here who may approve it",
        )
        .hint("use the configuration that the broker runs with, or start the broker anew; denying is always possible"));
    }
    let raw = RawValue::from_string(asked.args.clone()).ok();
    let args = Arguments::read(raw.as_deref()).map_err(|error| Failure::new(&error))?;
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
    if ways.contains(&Via::Cli) {
        return Ok(());
    }
    let ways: Vec<&str> = ways.into_iter().map(Via::name).collect();
    Err(Failure::new(format!(
        "the rules do not let the terminal approve this call, only: {}",
        ways.join(", ")
    ))
    .hint("`via` of the matching `[[policy.rule]]` says who may; denying is always possible"))
}

/// What was decided, by this command or before it. Asking twice for the same is no failure.
fn settled(approval: &Approval, wanted: Answer, context: &Context) -> Result<ExitCode, Failure> {
    let (id, by) = (&approval.id, approval.decided_by.as_deref().unwrap_or("nobody"));
    let done = match (approval.status, wanted) {
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
    };
    if context.json {
        output::json(&Shown::of(approval))?;
    } else {
        output::plain(&format!("{done} {id}\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn missing(id: &str) -> Failure {
    Failure::new(format!("there is no approval `{id}`")).hint("`embody approvals list` shows those that wait")
}

fn as_text(approval: &Approval) -> String {
    let (id, end) = (&approval.id, time::shown(approval.expires_at));
    let mut out = match approval.status {
        ApprovalStatus::Pending => format!("{DIM}{id}  until {end}{DIM:#}\n"),
        status => {
            let by = approval.decided_by.as_deref().map(|by| format!(" by {by}")).unwrap_or_default();
            format!("{DIM}{id}  {}{}{DIM:#}\n", name(status), printable(&by))
        }
    };
    match words(&Subject::from(approval)) {
        Ok(words) => words.lines().for_each(|line| {
            let indent = if line.is_empty() { "" } else { "  " };
            let _ = writeln!(out, "{indent}{line}");
        }),
        Err(error) => {
            let _ =
                writeln!(out, "  {} of {}: {error}", printable(&approval.tool), printable(&approval.body));
        }
    }
    out
}

fn name(status: ApprovalStatus) -> &'static str {
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
struct Shown<'a> {
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
    fn of(approval: &'a Approval) -> Self {
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
