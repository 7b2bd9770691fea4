//! `embody notices …`: what agents told their user outside of a conversation.

use std::fmt::Write;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use clap::{Args, Subcommand};
use embody_store::notices::{Notice, NoticeFilter};
use embody_store::{IdSet, ShortIds};
use serde_json::json;

use super::args::ScopeArgs;
use super::{Context, ids};
use crate::error::CliError;
use crate::notices::{NoticeJson, origin_text};
use crate::output::{pluralize, printable};
use crate::{store, time};

const EXAMPLES: &str = "Examples:
  embody notices list                  the unread ones first, with date and origin
  embody notices list --unread
  embody notices read 3e5f01aa         mark one as read, by the end of its id
  embody notices read --all";

const UNREAD: Style = AnsiColor::Yellow.on_default().bold();
const DIM: Style = Style::new().dimmed();

#[derive(Subcommand, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) enum NoticesCommand {
    /// List notices with their date and origin, the unread ones first
    List(ListArgs),
    /// Mark notices as read
    Read(ReadArgs),
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  embody notices list --unread\n  embody notices list -n 5 --json")]
pub(crate) struct ListArgs {
    /// Only unread notices
    #[arg(long)]
    unread: bool,
    /// The maximum number of notices
    #[arg(long, short = 'n', default_value_t = 50)]
    count: u32,
    /// The user [env: EMBODY_USER] [default: owner]
    #[arg(long)]
    user: Option<String>,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  embody notices read 3e5f01aa 3e5f02bb\n  embody notices read --all")]
pub(crate) struct ReadArgs {
    /// The notices' ids, or their ends, see `notices list`
    #[arg(value_name = "ID", required_unless_present = "all")]
    ids: Vec<String>,
    /// All unread notices
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    /// The user [env: EMBODY_USER] [default: owner]
    #[arg(long)]
    user: Option<String>,
}

pub(crate) fn run(command: &NoticesCommand, context: &Context) -> Result<ExitCode, CliError> {
    match command {
        NoticesCommand::List(args) => list(args, context),
        NoticesCommand::Read(args) => read(args, context),
    }
}

fn user(given: &Option<String>) -> String {
    given.clone().unwrap_or_else(ScopeArgs::owner)
}

fn list(args: &ListArgs, context: &Context) -> Result<ExitCode, CliError> {
    let user = user(&args.user);
    let filter = if args.unread { NoticeFilter::Unread } else { NoticeFilter::All };
    let found = store::with_existing(context, async |store| {
        let found = store.notices().list(&user, filter, args.count).await?;
        let unread = store.notices().unread(&user).await?.count;
        let ids = found.iter().map(|notice| &notice.id);
        Ok((ids::shorten(context, store, IdSet::Notices(&user), ids).await?, found, unread))
    })?;
    let (short, found, unread) = found.unwrap_or_default();
    let notices: Vec<NoticeJson> = found.iter().map(NoticeJson::new).collect();
    context.print(&json!({ "notices": notices, "unread": unread }), || as_text(&found, &short, args.unread))
}

fn as_text(found: &[Notice], short: &ShortIds, is_unread_only: bool) -> String {
    if found.is_empty() {
        return if is_unread_only { "No unread notices.\n" } else { "No notices.\n" }.to_owned();
    }
    let mut out = String::new();
    for notice in found {
        let (id, at) = (short.of(&notice.id), time::local(notice.created_at));
        let (style, state) = if notice.read_at.is_none() { (UNREAD, "unread") } else { (DIM, "read") };
        let urgency = Some(&notice.urgency).filter(|urgency| *urgency != "normal");
        let urgency = urgency.map(|urgency| format!("{urgency} urgency, ")).unwrap_or_default();
        let origin = format!("{urgency}{}", origin_text(notice));
        let _ = writeln!(out, "{id}  {at}  {style}{state}{style:#}  {DIM}{}{DIM:#}", printable(&origin));
        for line in notice.text.lines() {
            let _ = writeln!(out, "  {}", printable(line));
        }
    }
    out
}

fn read(args: &ReadArgs, context: &Context) -> Result<ExitCode, CliError> {
    let user = user(&args.user);
    let read = store::with_existing(context, async |store| {
        if args.all {
            return Ok(store.notices().mark_all_read(&user).await?);
        }
        let mut full = Vec::with_capacity(args.ids.len());
        for id in &args.ids {
            let set = IdSet::Notices(&user);
            let id = ids::resolve(store, set, id, |id| not_found(id, &user)).await?;
            // A whole id was not looked up.
            if store.ids().matching(set, &id, 1).await?.is_empty() {
                return Err(not_found(&id, &user));
            }
            full.push(id);
        }
        Ok(store.notices().mark_read(&user, full).await?)
    })?;
    let read = match (read, args.ids.first()) {
        (None, Some(id)) => return Err(not_found(id, &user)),
        (read, _) => read.unwrap_or_default(),
    };
    context
        .print_plain(&json!({ "read": read }), || format!("marked {} as read\n", pluralize(read, "notice")))
}

fn not_found(id: &str, user: &str) -> CliError {
    CliError::new(format!("user `{}` has no notice `{}`", printable(user), printable(id)))
        .hint("`embody notices list` shows the ids; `--user` selects the user")
}
