//! `embody server test`: starts or contacts servers and lists their tools, and says what to do about one that does not work.

use std::fmt::Write;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use embody_broker::policy::{Class, Gate};
use embody_broker::upstream::CheckedServer;
use embody_store::Store;
use embody_text::truncate;
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{Context, TestArgs, find};
use crate::broker_setup;
use crate::cli::ScopeArgs;
use crate::config::Config;
use crate::config::settings::Body;
use crate::error::CliError;
use crate::output::{self, one_line, pluralize, printable};
use crate::server_check::{self, CheckSettings, ServerFailure};
use crate::server_tools::{self, ServerTool, class_counts, classes_json, quarantined};
use crate::store;

const OK: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();
const WARN: Style = AnsiColor::Yellow.on_default();
const HINT: Style = AnsiColor::Cyan.on_default();
const DIM: Style = Style::new().dimmed();
/// Tools of one class that are named.
const NAMED: usize = 6;
const NAME_CHARS: usize = 60;

pub(super) struct TestResult {
    pub(super) name: String,
    pub(super) checked: Result<CheckedServer, ServerFailure>,
    /// Its tools that are offered.
    pub(super) tools: Vec<ServerTool>,
}

pub(super) fn test(args: &TestArgs, context: &Context) -> Result<ExitCode, CliError> {
    let config = &context.config;
    let bodies: Vec<&Body> = match &args.name {
        Some(name) => vec![find(config, name)?],
        None => config.bodies.iter().collect(),
    };
    let results = run(&bodies, config, args.limit.duration(), context)?;
    let is_ok = results.iter().all(TestResult::is_ok);
    let value = json!({ "ok": is_ok, "servers": results.iter().map(TestResult::json).collect::<Vec<_>>() });
    context.print(&value, || match results.is_empty() {
        true => "No server is configured. Add one: embody server add NAME -- COMMAND\n".to_owned(),
        false => results.iter().map(TestResult::text).collect(),
    })?;
    Ok(output::exit_code(is_ok))
}

/// Tests these servers at the same time, and records what was found.
pub(super) fn run(
    bodies: &[&Body],
    config: &Config,
    limit: std::time::Duration,
    context: &Context,
) -> Result<Vec<TestResult>, CliError> {
    let reaper = broker_setup::reaper();
    store::with(context, async |store| {
        let settings = CheckSettings { proxies: &config.proxies, reaper: &reaper, store: Some(store), limit };
        let checked = join_all(bodies.iter().map(|body| server_check::check(body, &settings))).await;
        let mut results = Vec::new();
        for (body, checked) in bodies.iter().zip(checked) {
            server_tools::record_check(store, body, &checked).await?;
            results.push(TestResult { name: body.name.clone(), checked, tools: Vec::new() });
        }
        add_tools(&mut results, config, store).await?;
        Ok(results)
    })
}

async fn add_tools(results: &mut [TestResult], config: &Config, store: &Store) -> Result<(), CliError> {
    let owner = ScopeArgs::owner();
    let mut tools = server_tools::known_tools(config, Some(store), &owner, &owner).await?;
    for server in results {
        server.tools = tools.extract_if(.., |tool| tool.body == server.name).collect();
    }
    Ok(())
}

impl TestResult {
    pub(super) fn is_ok(&self) -> bool {
        self.checked.is_ok()
    }

    pub(super) fn json(&self) -> Value {
        match &self.checked {
            Ok(checked) => json!({
                "name": self.name,
                "ok": true,
                "transport": checked.transport,
                "took_ms": u64::try_from(checked.took.as_millis()).unwrap_or(u64::MAX),
                "listed": checked.tools.len(),
                "tools": self.tools.len(),
                "classes": classes_json(&self.tools),
                "quarantined": quarantined(&self.tools),
                "left_out": checked.left_out,
            }),
            Err(failure) => json!({
                "name": self.name,
                "ok": false,
                "reason": failure.kind.name(),
                "message": failure.message,
                "hint": failure.hint,
                "stderr": failure.stderr,
            }),
        }
    }

    pub(super) fn text(&self) -> String {
        match &self.checked {
            Ok(checked) => self.ok_text(checked),
            Err(failure) => failure_text(&self.name, failure),
        }
    }

    fn ok_text(&self, checked: &CheckedServer) -> String {
        let Self { name, tools, .. } = self;
        let found = pluralize(checked.tools.len() as u64, "tool");
        let took = checked.took.as_secs_f64();
        let mut out = format!("{OK}ok{OK:#}    {name}: {found} over {}, in {took:.1} s\n", checked.transport);
        for (class, count) in class_counts(tools) {
            let of_class: Vec<&ServerTool> = tools.iter().filter(|tool| tool.class == class).collect();
            let named: Vec<String> =
                of_class.iter().take(NAMED).map(|tool| truncate(&one_line(&tool.tool), NAME_CHARS)).collect();
            let more = if count > NAMED { ", …" } else { "" };
            let (class, gate) = (class_words(class), gate_words(&of_class));
            let _ = writeln!(
                out,
                "        {count:3} {class:20} {gate:14} {DIM}{}{more}{DIM:#}",
                named.join(", ")
            );
        }
        let hidden = checked.tools.len().saturating_sub(tools.len());
        if hidden > 0 {
            let _ =
                writeln!(out, "        {hidden:3} not offered: excluded by `allow` or `deny`, or not valid");
        }
        match quarantined(tools) {
            0 => {}
            count => {
                let waiting = pluralize(count as u64, "definition");
                let _ = writeln!(out, "        {WARN}{waiting} quarantined{WARN:#}: embody pins list");
            }
        }
        if let Some(left_out) = &checked.left_out {
            let _ = writeln!(out, "        {WARN}warning:{WARN:#} {}", printable(left_out));
        }
        out
    }
}

pub(super) fn failure_text(name: &str, failure: &ServerFailure) -> String {
    let mut out = format!("{BAD}FAIL{BAD:#}  {name}: {}\n", printable(&failure.message));
    if !failure.stderr.is_empty() {
        out.push_str("      the end of its stderr:\n");
        for line in &failure.stderr {
            let _ = writeln!(out, "        {DIM}|{DIM:#} {}", printable(line));
        }
    }
    let _ = writeln!(out, "      {HINT}hint:{HINT:#} {}", printable(&failure.hint));
    out
}

pub(super) fn class_words(class: Class) -> &'static str {
    match class {
        Class::Read => "read",
        Class::Write => "write",
        Class::HumanVisibleWrite => "human-visible write",
        Class::Destructive => "destructive",
    }
}

fn gate_words(tools: &[&ServerTool]) -> String {
    let mut gates: Vec<Gate> = tools.iter().map(|tool| tool.gate).collect();
    gates.sort_unstable();
    gates.dedup();
    gates.iter().map(|gate| gate.name()).collect::<Vec<_>>().join(", ")
}
