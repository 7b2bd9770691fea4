//! `embody approvals …`: lists and decides the calls that wait for a person.
//!
//! A person with access to the store is its operator. Calls are shown completely, hidden characters included; a call that
//! cannot be shown completely cannot be approved.

mod watch;

use std::fmt::Write;
use std::process::ExitCode;

use anstyle::Style;
use clap::{Args, Subcommand};
use embody_broker::approval::{ApprovalView, approval_text};
use embody_broker::policy::Via;
use embody_store::IdSet;
use embody_store::approvals::{
    Answer, Approval, ApprovalFilter, ApprovalStatus, DecideApproval, DecideOutcome,
};
use serde_json::json;

use super::{Context, ids, terminal};
use crate::approvals::{
    ApprovalJson, RULES_CHANGED, check_approvable, check_decision, have_rules_changed, is_denial_in_force,
    not_denied, not_found, outcome,
};
use crate::config::Config;
use crate::error::CliError;
use crate::output::{self, printable};
use crate::{store, time};

const EXAMPLES: &str = "Examples:
  embody approvals list                   every call that waits for approval, in full
  embody approvals approve 019a8b3e       approve this call, once
  embody approvals approve --last         show the newest call, ask, and approve it
  embody approvals deny 019a8b3e          deny it
  embody approvals ask-again 019a8b3e     take the denial back: you are asked about this call again
  embody approvals watch                  decide about each call as it comes";

const BY: &str = Via::Cli.name();
const DIM: Style = Style::new().dimmed();

#[derive(Subcommand, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) enum ApprovalsCommand {
    /// List the calls that wait for approval, newest first
    #[command(
        after_help = "Examples:\n  embody approvals list\n  embody approvals list --all --user ann --json"
    )]
    List(ListArgs),
    /// Approve a call, once, and print it
    #[command(
        after_help = "Examples:\n  embody approvals approve 8f21c0de\n  embody approvals approve --last"
    )]
    Approve(DecideArgs),
    /// Deny a call and print it
    #[command(after_help = "Examples:\n  embody approvals deny 8f21c0de\n  embody approvals deny --last")]
    Deny(DecideArgs),
    /// Take a denial back: the same call asks again
    #[command(after_help = "Examples:\n  embody approvals ask-again 8f21c0de")]
    AskAgain(AskAgainArgs),
    /// Show each call as it comes and decide with one key; needs a terminal
    #[command(after_help = "Examples:\n  embody approvals watch")]
    Watch {
        /// Only calls of this user
        #[arg(long)]
        user: Option<String>,
    },
}

#[derive(Args, Debug)]
pub(crate) struct DecideArgs {
    /// The approval's id, or its end
    #[arg(required_unless_present = "last")]
    id: Option<String>,
    /// The newest call that waits for approval; needs a terminal
    #[arg(long, conflicts_with = "id")]
    last: bool,
}

#[derive(Args, Debug)]
pub(crate) struct AskAgainArgs {
    /// The denied approval's id, or its end
    id: String,
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
        ApprovalsCommand::Approve(args) => decide(args, Answer::Approve, context),
        ApprovalsCommand::Deny(args) => decide(args, Answer::Deny, context),
        ApprovalsCommand::AskAgain(args) => ask_again(&args.id, context),
        ApprovalsCommand::Watch { user } => {
            watch::watch(user.as_deref(), context)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn list(args: &ListArgs, context: &Context) -> Result<ExitCode, CliError> {
    let filter = if args.all { ApprovalFilter::All } else { ApprovalFilter::Pending };
    let found = store::with_existing(context, async |store| {
        let found = match &args.user {
            Some(user) => store.approvals().list(user, filter, args.count).await?,
            None => store.approvals().list_all(filter, args.count).await?,
        };
        let ids = found.iter().map(|approval| &approval.id);
        Ok((ids::shorten(context, store, IdSet::Approvals, ids).await?, found))
    })?;
    let (short, found) = found.unwrap_or_default();
    let config = &context.config;
    let approvals: Vec<_> = found.iter().map(|approval| ApprovalJson::new(approval, config)).collect();
    context.print(&json!({ "approvals": approvals }), || match found.as_slice() {
        [] => "No call waits for approval.\n".to_owned(),
        found => found
            .iter()
            .map(|approval| as_text(approval, short.of(&approval.id), config))
            .collect::<Vec<_>>()
            .join("\n"),
    })
}

fn decide(args: &DecideArgs, answer: Answer, context: &Context) -> Result<ExitCode, CliError> {
    let approval = match &args.id {
        Some(id) => with_id(id, context)?,
        None => newest(answer, context)?,
    };
    if approval.status != ApprovalStatus::Pending {
        return print_decision(&approval, answer, context);
    }
    if answer == Answer::Approve {
        check_approvable(&approval, &context.config, Via::Cli)?;
    }
    // The decision is about what is shown: only the status of an approval can change.
    if !context.json {
        output::styled(&as_text(&approval, &approval.id, &context.config))?;
    }
    // Another call may have come after the one that the person read.
    if args.id.is_none() && answer == Answer::Approve && !terminal::confirm("Approve this call? [y/N] ")? {
        return Err(
            CliError::new("not approved; the call still waits").hint("`embody approvals list` shows it")
        );
    }
    let Approval { user, id, .. } = approval;
    let decision = DecideApproval { user, id: id.clone(), answer, by: BY.to_owned() };
    let decided =
        store::with_existing(context, async |store| Ok(store.approvals().decide(decision).await?))?;
    match decided {
        Some(DecideOutcome::Decided(approval) | DecideOutcome::NotPending(approval)) => {
            print_decision(&approval, answer, context)
        }
        Some(DecideOutcome::Missing) | None => Err(not_found(&id)),
    }
}

/// A program could approve whatever comes without looking: only a person may leave the id out.
fn newest(answer: Answer, context: &Context) -> Result<Approval, CliError> {
    let command = match answer {
        Answer::Approve => "embody approvals approve --last",
        Answer::Deny => "embody approvals deny --last",
    };
    terminal::require_terminal(command)?;
    let newest = store::with_existing(context, async |store| {
        Ok(store.approvals().list_all(ApprovalFilter::Pending, 1).await?.pop())
    })?;
    newest.flatten().ok_or_else(|| {
        CliError::new("no call waits for approval")
            .hint("`embody approvals list --all` lists those that were decided or expired")
    })
}

fn ask_again(id: &str, context: &Context) -> Result<ExitCode, CliError> {
    let approval = with_id(id, context)?;
    let ended = store::with_existing(context, async |store| {
        Ok(store.approvals().ask_again(&approval.user, &approval.id, BY).await?)
    })?;
    let Some(approval) = ended.flatten() else { return Err(not_denied(&approval)) };
    context.print_plain(&ApprovalJson::new(&approval, &context.config), || {
        format!("taken back {}; you are asked when the agent makes the call again\n", approval.id)
    })
}

fn with_id(id: &str, context: &Context) -> Result<Approval, CliError> {
    let approval = store::with_existing(context, async |store| {
        let id = ids::resolve(store, IdSet::Approvals, id, not_found).await?;
        Ok(store.approvals().find(&id).await?)
    })?
    .flatten();
    approval.ok_or_else(|| not_found(id))
}

/// Deciding the same twice is not an error.
fn print_decision(approval: &Approval, wanted: Answer, context: &Context) -> Result<ExitCode, CliError> {
    let done = check_decision(approval, wanted)?;
    context.print_plain(&ApprovalJson::new(approval, &context.config), || format!("{done} {}\n", approval.id))
}

/// `id` may be the short form.
fn as_text(approval: &Approval, id: &str, config: &Config) -> String {
    let end = time::display(approval.expires_at);
    let state = match approval.status {
        ApprovalStatus::Pending => format!("until {end}"),
        _ if is_denial_in_force(approval) => {
            format!("{}; the same call is refused until {end}, or until `ask-again`", outcome(approval))
        }
        _ => outcome(approval),
    };
    let mut out = format!("{DIM}{id}  {}{DIM:#}\n", printable(&state));
    if have_rules_changed(approval, config) {
        let _ = writeln!(out, "  {RULES_CHANGED}");
    }
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

/// The first lines of a call that has more than `limit` lines.
fn summary(approval: &Approval, limit: usize) -> Option<String> {
    const FIRST: usize = 3;
    let text = approval_text(&ApprovalView::from(approval)).ok()?;
    let first = text.lines().take(FIRST).map(|line| format!("  {line}\n"));
    (text.lines().count() > limit).then(|| first.collect())
}
