//! `embody approvals …`: the calls that wait for a person, and that person's word.
//!
//! Whoever reaches the store with this command is its operator. What is shown is all there is to see, hidden characters
//! included; what cannot be shown whole cannot be approved here either.

use std::fmt::Write;
use std::process::ExitCode;

use anstyle::Style;
use clap::{Args, Subcommand};
use embody_broker::approval::{Subject, words};
use embody_broker::policy::Via;
use embody_store::{Answer, Approval, ApprovalFilter, ApprovalStatus, DecideApproval, Decided};
use serde_json::json;

use super::Context;
use crate::approvals::{Shown, may_be_approved, missing, name, verdict};
use crate::failure::Failure;
use crate::output::{self, printable};
use crate::{store, time};

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
        may_be_approved(&asked, &context.config, Via::Cli)?;
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

/// What was decided, by this command or before it. Asking twice for the same is no failure.
fn settled(approval: &Approval, wanted: Answer, context: &Context) -> Result<ExitCode, Failure> {
    let done = verdict(approval, wanted)?;
    if context.json {
        output::json(&Shown::of(approval))?;
    } else {
        output::plain(&format!("{done} {}\n", approval.id))?;
    }
    Ok(ExitCode::SUCCESS)
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
