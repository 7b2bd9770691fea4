//! `embody today`: what the agent did, asked and was denied on a day, and what waits, in sentences.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::process::ExitCode;

use anstyle::Style;
use clap::Args;
use embody_store::Store;
use embody_store::approvals::ApprovalFilter;
use embody_store::audit::AuditRange;
use embody_store::proposals::ProposalStatus;
use jiff::Zoned;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::{Context, ScopeArgs};
use crate::audit_entries::{AuditEntry, EXPIRED, EntryFilter, OPEN, read};
use crate::error::CliError;
use crate::output::{self, pluralize, printable};
use crate::status::is_waiting;
use crate::{store, time};

const EXAMPLES: &str = "Examples:
  embody today
  embody today --date yesterday
  embody today --date 2026-11-15 --json";

/// Entries of a day that are counted.
const COUNTED: usize = 50_000;
const WAITING: u32 = 100;
/// How the reason of a call begins that a person denied.
const OWNER: &str = "the owner ";
/// Kinds of calls that get a sentence each.
const SENTENCES: usize = 20;

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TodayArgs {
    /// The day: today, yesterday, monday, or 2026-11-15
    #[arg(long, value_name = "DAY", default_value = "today", value_parser = time::parse_day)]
    date: Date,
    #[command(flatten)]
    scope: ScopeArgs,
}

/// What happened, and what waits now.
#[derive(Default)]
struct Day {
    /// Writes by body and tool, and by outcome.
    writes: BTreeMap<(String, String), BTreeMap<String, usize>>,
    reads: usize,
    failed_reads: usize,
    /// Other decisions of the gate that kept a call from being sent, by outcome; without those that only asked.
    refused: BTreeMap<String, usize>,
    /// Denied by the rules, not by a person.
    against_rules: usize,
    asked: i64,
    /// Expired without an answer.
    expired: i64,
    /// Approved, but not made in time.
    unused: i64,
    approved: usize,
    denied: usize,
    /// Denials that were taken back.
    taken_back: usize,
    /// Changes that the operator made, by action.
    changes: BTreeMap<String, usize>,
    is_cut: bool,
}

#[derive(Default)]
struct Waiting {
    approvals: usize,
    definitions: usize,
    proposals: usize,
}

pub(crate) fn run(args: &TodayArgs, context: &Context) -> Result<ExitCode, CliError> {
    let scope = args.scope.resolve()?;
    let wrong = || CliError::usage(format!("the day `{}` has no midnight", args.date));
    let at = |date: Date| date.to_zoned(TimeZone::system()).map_err(|_| wrong());
    let (from, to) = (at(args.date)?, at(args.date.tomorrow().map_err(|_| wrong())?)?);
    let found = store::with_existing(context, async |store| {
        let day = count(store, scope.user(), &from, &to).await?;
        let approvals = store.approvals().list(scope.user(), ApprovalFilter::Pending, WAITING).await?.len();
        let definitions = store::pins(store, WAITING as usize, is_waiting).await?.len();
        let proposals = store.proposals().list(&scope, ProposalStatus::Open, WAITING).await?.len();
        Ok((day, Waiting { approvals, definitions, proposals }))
    })?;
    let (day, waiting) = found.unwrap_or_default();
    if day.is_cut {
        output::stderr_line(&format!("only the newest {COUNTED} records of the day are counted"));
    }
    context.print(&as_json(args.date, &day, &waiting), || as_text(args.date, &day, &waiting))
}

async fn count(store: &Store, user: &str, from: &Zoned, to: &Zoned) -> Result<Day, CliError> {
    let micros = |at: &Zoned| at.timestamp().as_microsecond();
    let (since, until) = (micros(from), micros(to));
    let range = AuditRange { user: Some(user.to_owned()), since, until };
    let (entries, is_cut) = read(store, range, &EntryFilter::default(), COUNTED).await?;
    let mut day = Day { is_cut: is_cut || entries.len() == COUNTED, ..Day::default() };
    for entry in &entries {
        day.add(entry);
    }
    let counts = store.approvals().count_between(user, since, until).await?;
    (day.asked, day.expired, day.unused) = (counts.asked, counts.expired, counts.unused);
    Ok(day)
}

impl Day {
    fn add(&mut self, entry: &AuditEntry) {
        let outcome = entry.outcome().unwrap_or_default();
        match &*entry.record.event {
            "read" => {
                self.reads += 1;
                self.failed_reads += usize::from(outcome != "done");
            }
            "intent" => {
                let name = |member| entry.text(member).unwrap_or_default().to_owned();
                let outcomes = self.writes.entry((name("body"), name("tool"))).or_default();
                *outcomes.entry(outcome).or_default() += 1;
            }
            // A call that bounced or that asked comes again; what expired is counted by its approval.
            // The person's own answer is counted where it was given.
            "decision" if outcome == "denied" => {
                let is_own = entry.text("reason").is_some_and(|reason| reason.starts_with(OWNER));
                self.against_rules += usize::from(!is_own);
            }
            "decision" if !matches!(&*outcome, "bounce" | "pending" | "held" | "permit" | EXPIRED) => {
                *self.refused.entry(outcome).or_default() += 1;
            }
            "operator" => match entry.text("action").unwrap_or_default() {
                "approval_granted" => self.approved += 1,
                "approval_denied" => self.denied += 1,
                "denial_withdrawn" => self.taken_back += 1,
                action => *self.changes.entry(action.to_owned()).or_default() += 1,
            },
            _ => {}
        }
    }

    fn is_empty(&self) -> bool {
        self.writes.is_empty()
            && self.against_rules == 0
            && self.reads == 0
            && self.refused.is_empty()
            && self.asked == 0
            && self.changes.is_empty()
    }
}

fn as_json(date: Date, day: &Day, waiting: &Waiting) -> Value {
    let writes = day.writes.iter().flat_map(|((body, tool), outcomes)| {
        outcomes.iter().map(
            move |(outcome, count)| json!({"body": body, "tool": tool, "outcome": outcome, "count": count}),
        )
    });
    json!({
        "date": date.to_string(),
        "writes": writes.collect::<Vec<_>>(),
        "reads": day.reads,
        "failed_reads": day.failed_reads,
        "refused": day.refused,
        "denied_by_rules": day.against_rules,
        "asked": day.asked,
        "approved": day.approved,
        "denied": day.denied,
        "expired": day.expired,
        "unused": day.unused,
        "taken_back": day.taken_back,
        "changes": day.changes,
        "waiting": {
            "approvals": waiting.approvals, "definitions": waiting.definitions, "proposals": waiting.proposals,
        },
    })
}

fn as_text(date: Date, day: &Day, waiting: &Waiting) -> String {
    const HEAD: Style = Style::new().bold();
    let mut out = format!("{HEAD}{}{HEAD:#}\n", date.strftime("%A, %Y-%m-%d"));
    let mut sentences = Vec::new();
    if day.is_empty() {
        sentences.push("The agent did nothing.".to_owned());
    }
    tell_calls(day, &mut |text| sentences.push(text));
    tell_decisions(day, &mut |text| sentences.push(text));
    tell_waiting(waiting, &mut |text| sentences.push(text));
    for sentence in sentences {
        let _ = writeln!(out, "{}", printable(&sentence));
    }
    out
}

fn tell_calls(day: &Day, say: &mut dyn FnMut(String)) {
    let writes = || day.writes.iter().filter_map(|(name, outcomes)| Some((name, *outcomes.get("done")?)));
    writes().take(SENTENCES).for_each(|((body, tool), count)| say(sentence(body, tool, count)));
    if let Some(more) = writes().count().checked_sub(SENTENCES).filter(|more| *more > 0) {
        say(format!("{} more.", pluralize(more, "other tool")));
    }
    let ended = |wanted: &str| -> Vec<String> {
        let of_tool = day.writes.iter().filter_map(|((body, tool), outcomes)| {
            Some(format!("{body}/{tool} ({})", outcomes.get(wanted)?))
        });
        of_tool.take(SENTENCES).collect()
    };
    for (outcome, text) in [
        ("failed", "Failed"),
        ("denied", "Not sent"),
        ("unknown", "Outcome unknown"),
        (OPEN, "Without an outcome yet"),
    ] {
        let names = ended(outcome);
        if !names.is_empty() {
            say(format!("{text}: {}.", names.join(", ")));
        }
    }
    if day.reads > 0 {
        let failed = if day.failed_reads == 0 {
            String::new()
        } else {
            format!(" {} of them failed.", day.failed_reads)
        };
        say(format!("{}.{failed}", pluralize(day.reads, "read")));
    }
}

fn tell_decisions(day: &Day, say: &mut dyn FnMut(String)) {
    let calls = |count: usize| {
        let verb = if count == 1 { "was" } else { "were" };
        format!("{} {verb}", pluralize(count, "call"))
    };
    if day.asked > 0 {
        say(format!("You were asked about {}.", pluralize(day.asked, "call")));
    }
    let [expired, unused] = [day.expired, day.unused].map(|count| usize::try_from(count).unwrap_or_default());
    for (count, text) in [
        (day.approved, "approved by you"),
        (day.denied, "denied by you"),
        (day.taken_back, "denied by you, and the denial taken back"),
        (expired, "not answered by you in time, and expired"),
        (unused, "approved by you, but not made in time"),
        (day.against_rules, "denied by the rules"),
        (
            day.refused.get("blocked").copied().unwrap_or_default(),
            "blocked: a needed part was unavailable, or the call was certain to fail",
        ),
        (day.refused.get("timeout").copied().unwrap_or_default(), "given up because the time was over"),
    ] {
        if count > 0 {
            say(format!("{} {text}.", calls(count)));
        }
    }
    if !day.changes.is_empty() {
        let changes: Vec<String> = day
            .changes
            .iter()
            .map(|(action, count)| {
                let action = action.replace('_', " ");
                if *count == 1 { action } else { format!("{action} ({count})") }
            })
            .collect();
        say(format!("You changed: {}.", changes.join(", ")));
    }
}

fn tell_waiting(waiting: &Waiting, say: &mut dyn FnMut(String)) {
    for (count, what, command) in [
        (waiting.approvals, "call", "embody approvals list"),
        (waiting.definitions, "tool definition", "embody pins list"),
        (waiting.proposals, "proposed instruction", "embody instructions proposals"),
    ] {
        if count > 0 {
            let verb = if count == 1 { "waits" } else { "wait" };
            say(format!("{} {verb} for you: `{command}`.", pluralize(count, what)));
        }
    }
}

/// What a tool did, told by its name: `send_email` twice is `Sent 2 emails (mail).`
fn sentence(body: &str, tool: &str, count: usize) -> String {
    const VERBS: [(&str, &str); 15] = [
        ("send", "Sent"),
        ("post", "Posted"),
        ("create", "Created"),
        ("add", "Added"),
        ("update", "Updated"),
        ("edit", "Edited"),
        ("write", "Wrote"),
        ("delete", "Deleted"),
        ("remove", "Removed"),
        ("move", "Moved"),
        ("copy", "Copied"),
        ("close", "Closed"),
        ("open", "Opened"),
        ("schedule", "Scheduled"),
        ("upload", "Uploaded"),
    ];
    let verb = tool.split_once(['_', '-']).and_then(|(verb, object)| {
        let (_, past) = VERBS.iter().find(|(name, _)| *name == verb)?;
        let object = object.replace(['_', '-'], " ");
        // A plural would become a wrong one.
        (!object.ends_with('s') && !object.is_empty())
            .then(|| format!("{past} {} ({body}).", pluralize(count, &object)))
    });
    verb.unwrap_or_else(|| {
        format!(
            "Called {body}/{tool} {}.",
            if count == 1 { "once".to_owned() } else { format!("{count} times") }
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_told_by_its_name() {
        for (tool, count, text) in [
            ("send_email", 2, "Sent 2 emails (mail)."),
            ("create-event", 1, "Created 1 event (mail)."),
            ("update_settings", 1, "Called mail/update_settings once."),
            ("frobnicate_it", 3, "Called mail/frobnicate_it 3 times."),
            ("send", 1, "Called mail/send once."),
        ] {
            assert_eq!(sentence("mail", tool, count), text);
        }
    }
}
