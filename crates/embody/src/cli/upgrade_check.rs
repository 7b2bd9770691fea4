//! `embody upgrade-check`: whether this version can open the store and the configuration, and what that would change. Reads only.

use std::fmt::Write;
use std::process::ExitCode;

use embody_store::DatabaseUrl;
use embody_store::upgrade::{UpgradeReport, check_upgrade, newest_schema};
use serde_json::json;

use super::doctor::{Check, as_text, fail, fail_with, has_failure, ok, warn};
use super::{Global, load};
use crate::config::{Config, ConfigError, Problem};
use crate::error::CliError;
use crate::output::{self, pluralize};
use crate::pidfile::{self, UpProcess};
use crate::settings::Settings;
use crate::store::{block_on, database_url};

pub(super) const EXAMPLES: &str = "Nothing is changed: the store is not upgraded, and no server is started. Exits with 1 if this version cannot open the store or the \
configuration.

Examples:
  embody upgrade-check
  ./embody-new upgrade-check --json         ask a new version before you install it";

const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(crate) fn run(global: Global) -> Result<ExitCode, CliError> {
    let is_json = global.json;
    let (workspace, config) = load(&global)?;
    let (number, name) = newest_schema();
    let mut checks = vec![ok("version", format!("embody {VERSION}, schema {number} ({name})"))];
    let up = pidfile::read(&workspace);
    let mut store = None;
    checks.extend(config_checks(&config));
    match config {
        Ok(config) => {
            let url = database_url(&Settings { workspace, config });
            let found = block_on(async { Ok(check_upgrade(&url).await?) });
            checks.extend(store_checks(&url, &found));
            store = found.ok().flatten();
        }
        Err(_) => checks.push(warn(
            "store",
            "not checked: its address is part of the configuration",
            "correct the configuration, and run this again",
        )),
    }
    checks.push(up_check(up.as_ref()));
    let is_ok = !has_failure(&checks);
    if is_json {
        let store = store.as_ref().map(store_json);
        let schema = json!({ "number": number, "name": name });
        output::json(&json!({
            "ok": is_ok, "version": VERSION, "schema": schema, "store": store, "up": up, "checks": checks,
        }))?;
    } else {
        let mut text = as_text(&checks);
        let _ = writeln!(text, "\n{}", verdict(is_ok, store.as_ref()));
        output::styled(&text)?;
    }
    Ok(output::exit_code(is_ok))
}

fn verdict(is_ok: bool, store: Option<&UpgradeReport>) -> &'static str {
    match store {
        _ if !is_ok => "This version cannot be used as it is: see FAIL above. Nothing was changed.",
        Some(store) if !store.pending.is_empty() => {
            "This version can be used, and upgrades the store when it opens it. Nothing was changed yet."
        }
        _ => "This version can be used; nothing has to be upgraded.",
    }
}

/// Unknown keys are errors, with what they may have meant.
fn config_checks(config: &Result<Config, ConfigError>) -> Vec<Check> {
    match config {
        Ok(config) => vec![match &config.file {
            Some(file) => ok("config", format!("{}: every key is known", file.display())),
            None => ok("config", "no configuration file; the defaults are used"),
        }],
        Err(error) => error.problems().iter().map(problem).collect(),
    }
}

fn problem(problem: &Problem) -> Check {
    let place = problem.origin.as_ref().map(|origin| format!("{origin}: ")).unwrap_or_default();
    let hint = problem.hint.as_deref().unwrap_or("`embody config check` has all problems");
    fail("config", format!("{place}{}", problem.message), hint)
}

fn store_checks(url: &DatabaseUrl, found: &Result<Option<UpgradeReport>, CliError>) -> Vec<Check> {
    let report = match found {
        Err(error) => return vec![fail_with("store", error)],
        Ok(None) => {
            return vec![ok("store", format!("`{url}` does not exist yet; the first write creates it"))];
        }
        Ok(Some(report)) => report,
    };
    let mut checks = vec![schema(url, report)];
    let count = |number: i64, what: &str| pluralize(u64::try_from(number).unwrap_or(0), what);
    if report.pending_approvals > 0 {
        let message = format!("{} waiting", count(report.pending_approvals, "approval"));
        checks.push(warn("approvals", message, "decide before you upgrade: `embody approvals list`"));
    }
    if report.quarantined > 0 {
        let message = format!("{} quarantined", count(report.quarantined, "tool definition"));
        checks.push(warn("pins", message, "they stay quarantined: `embody pins list`"));
    }
    if report.active_sessions > 0 {
        let message = format!("{} active in the last minute", count(report.active_sessions, "session"));
        checks.push(warn("sessions", message, "stop the hosts that run `embody mcp` before you upgrade"));
    }
    checks
}

fn schema(url: &DatabaseUrl, report: &UpgradeReport) -> Check {
    let (number, name) = &report.schema;
    if !report.unknown.is_empty() {
        let message = format!(
            "`{url}` has the schema {number} ({name}): a newer version of embody wrote it, and this one does not know {}",
            report.unknown.join(", ")
        );
        return fail(
            "store",
            message,
            "use that version or a newer one, or restore a backup from before its upgrade",
        );
    }
    if !report.changed.is_empty() {
        let message =
            format!("`{url}` has {} in another form than this version's", report.changed.join(", "));
        return fail("store", message, "use the version of embody that wrote the store");
    }
    match report.pending.as_slice() {
        [] => ok("store", format!("{url}: schema {number} ({name}), the newest")),
        pending => {
            let migrations = pluralize(pending.len() as u64, "migration");
            let message = format!(
                "{url}: schema {number} ({name}); opening it runs {migrations}: {}",
                pending.join(", ")
            );
            warn("store", message, backup_hint(url))
        }
    }
}

/// The backup of this version needs the new schema.
fn backup_hint(url: &DatabaseUrl) -> &'static str {
    match url {
        DatabaseUrl::Postgres { .. } => {
            "back it up first, with the version that you use now: `embody store backup FILE`, or `pg_dump`"
        }
        DatabaseUrl::Memory | DatabaseUrl::File(_) => {
            "back it up first, with the version that you use now: `embody store backup FILE`"
        }
    }
}

fn up_check(up: Option<&UpProcess>) -> Check {
    let Some(up) = up else { return ok("up", "`embody up` does not run here") };
    let UpProcess { address, pid, version, .. } = up;
    if version == VERSION {
        return ok("up", format!("`embody up` of this version runs at {address} (process {pid})"));
    }
    let other = if version.is_empty() { "an older version" } else { version };
    let message = format!("`embody up` of {other} runs at {address} (process {pid})");
    warn("up", message, "stop it before this version opens the store")
}

fn store_json(report: &UpgradeReport) -> serde_json::Value {
    let (number, name) = &report.schema;
    json!({
        "schema": { "number": number, "name": name },
        "pending_migrations": report.pending,
        "unknown_migrations": report.unknown,
        "changed_migrations": report.changed,
        "pending_approvals": report.pending_approvals,
        "quarantined_definitions": report.quarantined,
        "active_sessions": report.active_sessions,
    })
}
