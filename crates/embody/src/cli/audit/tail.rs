//! `embody audit tail`: one line per call with its outcome, one per other record.

use std::fmt::Write;
use std::process::ExitCode;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use clap::Args;
use embody_broker::policy::Glob;
use embody_store::audit::{AuditFollower, AuditRange};
use embody_text::truncate;
use jiff::Timestamp;
use serde_json::Value;

use crate::audit_entries::{AuditEntry, EntryFilter, Joiner, OPEN, OUTCOMES, read};
use crate::cli::Context;
use crate::error::CliError;
use crate::output::{self, one_line, printable};
use crate::{serve, store, time};

/// Entries without `--count`: the newest, or all of a time.
const NEWEST: usize = 20;
const ALL: usize = 10_000;
const POLL: Duration = Duration::from_millis(300);
/// How many polls `--follow` waits for the outcome of a call before it prints the call without one.
const POLLS: u32 = 7;
/// More polls than that: the call was printed without an outcome.
const PRINTED: u32 = POLLS + 1;
/// Calls whose outcome `--follow` waits for.
const WAITING: usize = 1000;

/// Characters of the arguments and of any other text in a line.
const ARGUMENTS: usize = 200;
const TEXT: usize = 100;

#[derive(Args, Debug)]
pub(crate) struct TailArgs {
    /// The number of entries [default: 20; with a time 10000]
    #[arg(long, short = 'n')]
    count: Option<usize>,
    /// Only from this time on: 2h, 3d, today, yesterday, monday, 2027-01-31, 2027-01-31 09:00, or RFC 3339
    #[arg(long, value_name = "WHEN", value_parser = time::parse_since)]
    since: Option<Timestamp>,
    /// Only before this time, or up to the end of this day
    #[arg(long, value_name = "WHEN", value_parser = time::parse_until)]
    until: Option<Timestamp>,
    /// Only calls of this tool: TOOL or BODY/TOOL, with `*` and `?` as in rules
    #[arg(long)]
    tool: Option<String>,
    /// Only calls of this body
    #[arg(long)]
    body: Option<String>,
    /// Only records of this user
    #[arg(long)]
    user: Option<String>,
    /// Only calls with this outcome
    #[arg(long, value_parser = OUTCOMES)]
    outcome: Option<String>,
    /// Continue with new calls as they end; Ctrl-C ends it. With --json, one object per line
    #[arg(long, short, conflicts_with = "until")]
    follow: bool,
}

impl TailArgs {
    fn range(&self) -> AuditRange {
        AuditRange {
            user: self.user.clone(),
            since: self.since.map_or(i64::MIN, Timestamp::as_microsecond),
            until: self.until.map_or(i64::MAX, Timestamp::as_microsecond),
        }
    }

    fn filter(&self) -> EntryFilter {
        EntryFilter {
            tool: self.tool.as_deref().map(Glob::new),
            body: self.body.clone(),
            outcome: self.outcome.clone(),
        }
    }

    fn count(&self) -> usize {
        let is_bounded = self.since.is_some() || self.until.is_some();
        self.count.unwrap_or(if is_bounded { ALL } else { NEWEST })
    }
}

pub(super) fn tail(args: &TailArgs, context: &Context) -> Result<ExitCode, CliError> {
    if args.follow {
        return follow(args, context);
    }
    let found = store::with_existing(context, async |store| {
        read(store, args.range(), &args.filter(), args.count()).await
    })?;
    let (entries, is_cut) = found.unwrap_or_default();
    if is_cut {
        output::stderr_line("older records were not searched; `--until` continues from an earlier time");
    }
    context.print_list("records", &entries, AuditEntry::json, |entries| match entries {
        [] if args.is_filtered() => "No matching record.\n".to_owned(),
        [] => "The audit chain has no records yet.\n".to_owned(),
        entries => entries.iter().map(line).collect(),
    })
}

impl TailArgs {
    fn is_filtered(&self) -> bool {
        let texts = [&self.tool, &self.body, &self.user, &self.outcome];
        self.since.is_some() || self.until.is_some() || texts.iter().any(|text| text.is_some())
    }
}

fn follow(args: &TailArgs, context: &Context) -> Result<ExitCode, CliError> {
    let stop = serve::shutdown_signal()?;
    store::with(context, async |store| {
        // Before the first page, so that no record is between the two.
        let mut follower = store.audit().follow().await?;
        let (entries, _) = read(store, args.range(), &args.filter(), args.count()).await?;
        for entry in &entries {
            follower.skip(&entry.record);
            entry.end.iter().for_each(|end| follower.skip(end));
            print(entry, context)?;
        }
        let is_open = |entry: &AuditEntry| entry.outcome().as_deref() == Some(OPEN);
        let waiting = entries.into_iter().filter(is_open).map(|entry| (entry, PRINTED)).collect();
        let mut followed = Followed { args, filter: args.filter(), context, waiting };
        loop {
            followed.poll(&mut follower).await?;
            tokio::select! {
                () = stop.cancelled() => return Ok(ExitCode::SUCCESS),
                () = tokio::time::sleep(POLL) => {}
            }
        }
    })
}

/// Calls that `--follow` saw begin and not end, with the number of polls since then.
struct Followed<'a> {
    args: &'a TailArgs,
    filter: EntryFilter,
    context: &'a Context,
    waiting: Vec<(AuditEntry, u32)>,
}

impl Followed<'_> {
    async fn poll(&mut self, follower: &mut AuditFollower) -> Result<(), CliError> {
        let mut joiner = Joiner::default();
        let records = follower.next().await?;
        let ours = |user: &str| self.args.user.as_deref().is_none_or(|wanted| wanted == user);
        let mut records: Vec<_> = records.into_iter().filter(|record| ours(&record.user)).collect();
        records.reverse();
        let mut found: Vec<AuditEntry> =
            records.into_iter().filter_map(|record| joiner.add(record)).collect();
        for end in joiner.rest() {
            let is_its = |(waiting, _): &(AuditEntry, u32)| {
                waiting.record.user == end.record.user && waiting.text("call_id") == end.text("call_id")
            };
            match self.waiting.iter().position(is_its) {
                Some(at) => {
                    let (begun, _) = self.waiting.remove(at);
                    found.push(AuditEntry::new(begun.record, Some(end.record)));
                }
                None => found.push(end),
            }
        }
        found.sort_by_key(|entry| (entry.record.at, entry.record.seq));
        for entry in found {
            if entry.outcome().as_deref() == Some(OPEN) {
                self.waiting.push((entry, 0));
            } else {
                self.print(&entry)?;
            }
        }
        for (entry, polls) in &mut self.waiting {
            *polls = PRINTED.min(*polls + 1);
            if *polls == POLLS && self.filter.matches(entry) {
                print(entry, self.context)?;
            }
        }
        let surplus = self.waiting.len().saturating_sub(WAITING);
        self.waiting.drain(..surplus);
        Ok(())
    }

    fn print(&self, entry: &AuditEntry) -> Result<(), CliError> {
        if self.filter.matches(entry) { print(entry, self.context) } else { Ok(()) }
    }
}

fn print(entry: &AuditEntry, context: &Context) -> Result<(), CliError> {
    if context.json { output::plain(&format!("{}\n", entry.json())) } else { output::styled(&line(entry)) }
}

fn line(entry: &AuditEntry) -> String {
    const CALM: Style = AnsiColor::Cyan.on_default();
    const BAD: Style = AnsiColor::Yellow.on_default();
    let (when, user) = (time::local(entry.record.at), printable(&entry.record.user));
    let outcome = entry.outcome();
    let what = outcome.as_deref().unwrap_or(&entry.record.event);
    let style = if matches!(what, "done" | "operator") { CALM } else { BAD };
    let mut out = String::new();
    let _ = writeln!(out, "{when}  {style}{:8}{style:#}  {user:12}  {}", printable(what), summary(entry));
    out
}

/// Tool and arguments first, then the reason. `--json` and `export` have everything.
fn summary(entry: &AuditEntry) -> String {
    if entry.detail.is_empty() {
        return one_line(&truncate(&entry.record.detail, ARGUMENTS));
    }
    let tool: Vec<&str> = ["body", "tool"].into_iter().filter_map(|name| entry.text(name)).collect();
    let mut parts = vec![tool.join("/")];
    parts.extend(entry.detail.get("args_excerpt").map(|args| truncate(&args.to_string(), ARGUMENTS)));
    for key in ["action", "subject", "said", "task", "reason", "detail", "note"] {
        parts.extend(entry.detail.get(key).map(|value| truncate(&text(value), TEXT)));
    }
    parts.extend(entry.end.as_ref().and_then(|end| end.text("detail")).map(|text| truncate(&text, TEXT)));
    // The outcome of a call that began before.
    if entry.record.event == "outcome" {
        parts.extend(entry.text("call_id").map(|id| format!("call {}", truncate(id, TEXT))));
    }
    // What no release before wrote, such as a gap.
    if !matches!(&*entry.record.event, "intent" | "read" | "decision" | "outcome" | "task" | "operator") {
        parts.extend(
            entry.detail.iter().map(|(key, value)| format!("{key} {}", truncate(&text(value), TEXT))),
        );
    }
    parts.retain(|part| !part.is_empty());
    one_line(&parts.join("  "))
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use embody_store::audit::AuditRecord;
    use serde_json::json;

    use super::*;

    fn entry(event: &str, detail: &str, end: Option<&str>) -> AuditEntry {
        let record = |event: &str, detail: &str| AuditRecord {
            chain: "c".into(),
            seq: 1,
            id: "i".into(),
            at: 0,
            user: "ann".into(),
            agent: None,
            session: None,
            channel: None,
            event: event.into(),
            detail: detail.into(),
            mac: String::new(),
        };
        AuditEntry::new(record(event, detail), end.map(|end| record("outcome", end)))
    }

    #[test]
    fn arguments_come_first_and_the_reason_last() {
        let call = json!({
            "call_id": "0199-1", "body": "embody", "tool": "send_message", "class": "human_visible_write",
            "args_digest": "0123", "args_excerpt": {"to": "123", "text": "Good morning"},
            "decision": "deny", "reason": "not from here",
        });
        let denied = entry("decision", &call.to_string(), None);
        assert_eq!(
            summary(&denied),
            r#"embody/send_message  {"text":"Good morning","to":"123"}  not from here"#
        );
        assert_eq!(denied.outcome().as_deref(), Some("denied"));
        let call = json!({"call_id": "0199-1", "body": "mail", "tool": "send"}).to_string();
        let failed =
            entry("intent", &call, Some(r#"{"call_id":"0199-1","outcome":"failed","detail":"no route"}"#));
        assert_eq!(
            (summary(&failed), failed.outcome()),
            ("mail/send  no route".into(), Some("failed".into()))
        );
        assert_eq!(entry("intent", &call, None).outcome().as_deref(), Some("open"));
        let operation = json!({"action": "token_made", "subject": "7", "note": "for ann"}).to_string();
        assert_eq!(summary(&entry("operator", &operation, None)), "token_made  7  for ann");
    }

    #[test]
    fn a_line_stays_one_line() {
        let long = json!({"args_excerpt": {"text": "x".repeat(9000)}, "odd": {"a": ["y".repeat(9000)]}});
        assert!(summary(&entry("read", &long.to_string(), None)).chars().count() < 400);
        assert_eq!(summary(&entry("read", "no\nJSON", None)), "no\\nJSON");
        // Quoted text cannot add a line that looks like a record.
        let quoted = json!({"outcome": "failed", "detail": "{\n\t\"code\": 1\n}\n     9  forged", "odd": "a\u{1b}[1mb"});
        assert_eq!(
            summary(&entry("gap", &quoted.to_string(), None)).split("  ").next(),
            Some(r#"{\n\t"code": 1\n}\n"#)
        );
        assert!(!line(&entry("od\u{1b}d", &quoted.to_string(), None)).contains("\u{1b}d"));
    }
}
