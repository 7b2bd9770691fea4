//! `embody approvals …`: lists and decides the calls that wait for a person.
//!
//! A person with access to the store is its operator. Calls are shown completely, hidden characters included; a call that
//! cannot be shown completely cannot be approved.

use std::fmt::Write;
use std::process::ExitCode;

use anstyle::Style;
use clap::{Args, Subcommand};
use embody_broker::approval::{ApprovalView, approval_text};
use embody_broker::policy::Via;
use embody_store::approvals::{
    Answer, Approval, ApprovalFilter, ApprovalStatus, DecideApproval, DecideOutcome,
};
use serde_json::json;

use super::Context;
use crate::approvals::{ApprovalJson, check_approvable, check_decision, not_found};
use crate::error::CliError;
use crate::output::{self, printable};
use crate::{store, time};

const EXAMPLES: &str = "Examples:
  embody approvals list                   every call that waits for approval, in full
  embody approvals approve 019a8b3e-…     approve this call, once
  embody approvals deny 019a8b3e-…        deny it";

const BY: &str = Via::Cli.name();
const DIM: Style = Style::new().dimmed();

#[derive(Subcommand, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) enum ApprovalsCommand {
    /// List the calls that wait for approval, newest first
    List(ListArgs),
    /// Approve a call, once, and print it
    Approve {
        /// The approval's id
        id: String,
    },
    /// Deny a call and print it
    Deny {
        /// The approval's id
        id: String,
    },
}

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// Only calls of this user
    #[arg(long)]
    user: Option<String>,
    /// Include decided, used and expired approvals
    #[arg(long)]
    all: bool,
    /// The maximum number of approvals
    #[arg(long, short = 'n', default_value_t = 100)]
    count: u32,
}

pub(crate) fn run(command: &ApprovalsCommand, context: &Context) -> Result<ExitCode, CliError> {
    match command {
        ApprovalsCommand::List(args) => list(args, context),
        ApprovalsCommand::Approve { id } => decide(id, Answer::Approve, context),
        ApprovalsCommand::Deny { id } => decide(id, Answer::Deny, context),
    }
}

fn list(args: &ListArgs, context: &Context) -> Result<ExitCode, CliError> {
    let filter = if args.all { ApprovalFilter::All } else { ApprovalFilter::Pending };
    let found = store::with_existing(context, async |store| {
        Ok(match &args.user {
            Some(user) => store.approvals().list(user, filter, args.count).await?,
            None => store.approvals().list_all(filter, args.count).await?,
        })
    })?;
    let found = found.unwrap_or_default();
    let approvals: Vec<_> = found.iter().map(ApprovalJson::new).collect();
    context.print(&json!({ "approvals": approvals }), || match found.as_slice() {
        [] => "No call waits for approval.\n".to_owned(),
        found => found.iter().map(as_text).collect::<Vec<_>>().join("\n"),
    })
}

fn decide(id: &str, answer: Answer, context: &Context) -> Result<ExitCode, CliError> {
    let approval =
        store::with_existing(context, async |store| Ok(store.approvals().find(id).await?))?.flatten();
    let approval = approval.ok_or_else(|| not_found(id))?;
    if approval.status != ApprovalStatus::Pending {
        return print_decision(&approval, answer, context);
    }
    if answer == Answer::Approve {
        check_approvable(&approval, &context.config, Via::Cli)?;
    }
    // The decision is about what is shown: only the status of an approval can change.
    if !context.json {
        output::styled(&as_text(&approval))?;
    }
    let decision = DecideApproval { user: approval.user, id: approval.id, answer, by: BY.to_owned() };
    let decided =
        store::with_existing(context, async |store| Ok(store.approvals().decide(decision).await?))?;
    match decided {
        Some(DecideOutcome::Decided(approval) | DecideOutcome::NotPending(approval)) => {
            print_decision(&approval, answer, context)
        }
        Some(DecideOutcome::Missing) | None => Err(not_found(id)),
    }
}

/// Deciding the same twice is not an error.
fn print_decision(approval: &Approval, wanted: Answer, context: &Context) -> Result<ExitCode, CliError> {
    let done = check_decision(approval, wanted)?;
    context.print_plain(&ApprovalJson::new(approval), || format!("{done} {}\n", approval.id))
}

fn as_text(approval: &Approval) -> String {
    let (id, end) = (&approval.id, time::display(approval.expires_at));
    let mut out = match approval.status {
        ApprovalStatus::Pending => format!("{DIM}{id}  until {end}{DIM:#}\n"),
        status => {
            let by = approval.decided_by.as_deref().map(|by| format!(" by {by}")).unwrap_or_default();
            format!("{DIM}{id}  {}{}{DIM:#}\n", status.name(), printable(&by))
        }
    };
    match approval_text(&ApprovalView::from(approval)) {
        Ok(text) => text.lines().for_each(|line| {
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
