//! `embody usage`: the tokens and the money that models took, and what is left of the budgets.

use std::fmt::Write;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use clap::Args;
use serde_json::json;

use super::{Context, ScopeArgs};
use crate::error::CliError;
use crate::output::{one_line, pluralize};
use crate::prompt_service::PromptService;
use crate::store;
use crate::usage::{UsageBy, UsageQuery, UsageReport, UsageRow, usage_report};

pub(super) const EXAMPLES: &str = "Examples:
  embody usage                              the last 30 days, day by day
  embody usage --by model --since 7d
  embody usage --by schedule --since 2026-11-01 --until 2026-11-15
  embody usage --by agent --json";

const HEAD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const BAD: Style = AnsiColor::Yellow.on_default();

#[derive(Args, Debug)]
pub(crate) struct UsageArgs {
    /// What the lines are about
    #[arg(long, value_parser = UsageBy::NAMES, default_value = "day")]
    by: String,
    /// From this day or time on, or this long ago: 2026-11-01, 2026-11-15T21:30:00Z, 7d [default: 30 days]
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Up to the end of this day, or up to this time
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
}

pub(crate) fn run(args: &UsageArgs, context: &Context) -> Result<ExitCode, CliError> {
    let by = UsageBy::from_name(&args.by).unwrap_or(UsageBy::Day);
    let report = store::with_existing(context, async |store| {
        let owner = ScopeArgs::owner();
        let prompts = PromptService::new(context.settings.clone(), Some(store.clone()), owner);
        prompts.load_zone(&ScopeArgs::default().agent()).await?;
        let query = UsageQuery { by, since: args.since.as_deref(), until: args.until.as_deref(), user: None };
        usage_report(store, &context.config, &prompts.owner_zone(), query).await
    })?;
    let Some(report) = report else {
        let empty = json!({"by": by.name(), "rows": [], "budgets": []});
        return context.print_plain(&empty, || "Nothing has run in this workspace yet.\n".to_owned());
    };
    context.print(&report.json(), || as_text(&report))
}

fn as_text(report: &UsageReport) -> String {
    let mut out = String::new();
    if report.rows.is_empty() {
        out.push_str("No model was asked in this time.\n");
    } else {
        table(report, &mut out);
    }
    notes(&report.total, &mut out);
    for state in &report.budgets {
        let style =
            if state.percent() >= embody_agent::usage::WARN_PERCENT.into() { BAD } else { Style::new() };
        let at = state.resets_at.strftime("%Y-%m-%d %H:%M");
        let _ = writeln!(
            out,
            "{style}{}: {} of {} used today ({} %), resets at {at} ({}){style:#}",
            one_line(&state.scope.to_string()),
            state.used,
            state.limit,
            state.percent(),
            report.zone
        );
    }
    out
}

const COLUMNS: [&str; 6] = ["requests", "input", "cached", "output", "cost", ""];

fn table(report: &UsageReport, out: &mut String) {
    let mut lines = vec![(report.by.name().to_owned(), COLUMNS.map(str::to_owned), HEAD)];
    for row in &report.rows {
        let key = if row.key.is_empty() { "(none)".to_owned() } else { one_line(&row.key) };
        lines.push((key, cells(row), Style::new()));
    }
    if report.rows.len() > 1 {
        lines.push(("total".to_owned(), cells(&report.total), HEAD));
    }
    let first = lines.iter().map(|(key, ..)| key.chars().count()).max().unwrap_or(0);
    let width = |column: usize| {
        lines.iter().filter_map(|(_, cells, _)| cells.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..COLUMNS.len()).map(|column| width(column).unwrap_or(0)).collect();
    for (key, cells, style) in &lines {
        let mut line = format!("{key:first$}");
        for (cell, width) in cells.iter().zip(&widths) {
            let _ = write!(line, "  {cell:>width$}");
        }
        let _ = writeln!(out, "{style}{}{style:#}", line.trim_end());
    }
}

fn cells(row: &UsageRow) -> [String; 6] {
    let tokens = |count: Option<u64>| grouped(UsageRow::tokens(count));
    // Some of the models have a price and some have none.
    let mark = if row.cost.is_some() && !row.unpriced.is_empty() { "+" } else { "" };
    [
        grouped(row.requests),
        tokens(row.usage.input),
        tokens(row.usage.cache_read),
        tokens(row.usage.output),
        row.cost.map_or_else(|| "-".to_owned(), |cost| cost.to_string()),
        mark.to_owned(),
    ]
}

/// `1234567` as `1,234,567`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn notes(total: &UsageRow, out: &mut String) {
    if total.unreported > 0 {
        let requests = pluralize(total.unreported, "request");
        let _ = writeln!(out, "{DIM}The provider reported no tokens for {requests}.{DIM:#}");
    }
    if !total.unpriced.is_empty() {
        let names: Vec<String> = total.unpriced.iter().map(|name| format!("`{}`", one_line(name))).collect();
        let names = names.join(", ");
        let _ = writeln!(
            out,
            "{DIM}Without a price, counted in tokens only: {names}. Add it below `[prices]` in embody.toml.{DIM:#}"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_numbers_are_grouped() {
        for (number, shown) in [(0, "0"), (999, "999"), (1000, "1,000"), (12_345_678, "12,345,678")] {
            assert_eq!(grouped(number), shown);
        }
    }
}
