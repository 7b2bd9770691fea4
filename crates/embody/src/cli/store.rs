//! `embody store …`: the content of the store, backups and copies, and the upgrade of a database with the old schema.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use clap::{Args, Subcommand};
use embody_store::legacy::{LegacyReport, LegacyState, migrate_legacy, preview_legacy};
use embody_store::transfer::{CopyReport, Target, copy_store};
use embody_store::{DatabaseUrl, ErrorKind};
use serde_json::json;

use super::Context;
use crate::error::CliError;
use crate::output::{self, one_line, pluralize, printable};
use crate::pidfile::UpLock;
use crate::store::{self, block_on, parse_database_url};

const HEAD: Style = Style::new().bold();
const NOTE: Style = AnsiColor::Yellow.on_default();

#[derive(Subcommand, Debug)]
#[command(
    after_help = "Examples:\n  embody store status\n  embody store backup ~/backups/embody.db\n  embody store migrate-legacy postgres://me@db.example/app --dry-run"
)]
pub(crate) enum StoreCommand {
    /// Show the store's location, schema and size
    #[command(after_help = "Examples:\n  embody --store postgres://me@db.example/embody store status --json")]
    Status,
    /// Write everything in the store into one SQLite file, also while embody runs
    #[command(after_help = BACKUP_HELP)]
    Backup {
        /// The file; must not exist
        file: PathBuf,
    },
    /// Fill the configured store from a backup
    #[command(after_help = RESTORE_HELP)]
    Restore {
        /// A file that `embody store backup` wrote
        file: PathBuf,
        /// Rename the present SQLite store, and put the backup in its place
        #[arg(long)]
        replace: bool,
    },
    /// Copy a store into an empty database, also from SQLite to PostgreSQL and back
    #[command(after_help = COPY_HELP)]
    Copy {
        /// The store: sqlite:///path, the path of a SQLite file, or postgres://user@host/database
        from: String,
        /// The empty database, or a file that does not exist
        to: String,
    },
    /// Upgrade a database from the legacy schema in place, after an export of every old row
    MigrateLegacy(MigrateLegacyArgs),
}

#[derive(Args, Debug)]
#[command(after_help = LEGACY_HELP)]
pub(crate) struct MigrateLegacyArgs {
    /// The database: sqlite:///path, the path of a SQLite file, or postgres://user@host/database
    url: String,
    /// The file for the old rows; must not exist [default: embody-legacy-TIME.json in the current folder]
    #[arg(long, value_name = "FILE")]
    export: Option<PathBuf>,
    /// Run the upgrade, roll it back and report what would change
    #[arg(long, conflicts_with = "export")]
    dry_run: bool,
}

const BACKUP_HELP: &str = "The backup is complete: conversations, memories, instructions, schedules, tokens, pins, approvals and the audit chain. \
The key of the audit chain is written beside it, as FILE.audit.key: keep that file apart from the backup, because \
a person who has both can write a false chain.

Examples:
  embody store backup ~/backups/embody-2026-11-18.db
  embody --store postgres://me@db.example/embody store backup embody.db --json";

const RESTORE_HELP: &str = "Without --replace the store must not exist yet. With it, the present file is renamed and kept. Stop every embody \
process first. If records of the audit chain are missing in the backup, `embody audit verify` reports them.

Examples:
  embody store restore ~/backups/embody-2026-11-18.db
  embody store restore ~/backups/embody-2026-11-18.db --replace";

const COPY_HELP: &str = "Afterwards set `[store] url` in embody.toml to the copy and start embody again. With PostgreSQL the key of the audit \
chain is in the folder `keys` of the workspace.

Examples:
  embody store copy ~/.embody/embody.db postgres://me@db.example/embody
  embody store copy postgres://me@db.example/embody ./embody.db";

const LEGACY_HELP: &str =
    "The legacy schema has `agent_configurations.system_prompt` and several JSON rows for each user \
and agent in `user_agent_prompt_customizations`. The upgrade is one transaction. A second run changes nothing.

Examples:
  embody store migrate-legacy ./old.db --dry-run
  embody store migrate-legacy postgres://me@db.example/app --export old-rows.json";

pub(crate) fn migrate(args: &MigrateLegacyArgs, workspace: &Path, json: bool) -> Result<ExitCode, CliError> {
    let url = parse_database_url(&args.url, workspace)?;
    let report = block_on(async {
        let done = match args.dry_run {
            true => preview_legacy(&url).await,
            false => migrate_legacy(&url, &args.export.clone().unwrap_or_else(default_export)).await,
        };
        done.map_err(|error| not_upgraded(&url, error))
    })?;
    if json {
        output::json(&as_json(&report, &url))?;
    } else {
        output::styled(&as_text(&report, &url))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A name that sorts by time and is unique to the second.
fn default_export() -> PathBuf {
    PathBuf::from(jiff::Timestamp::now().strftime("embody-legacy-%Y%m%dT%H%M%SZ.json").to_string())
}

fn not_upgraded(url: &DatabaseUrl, error: embody_store::Error) -> CliError {
    match error.kind() {
        // Whether it was upgraded is unknown.
        ErrorKind::Invalid | ErrorKind::Uncertain => error.into(),
        _ => {
            let failure = CliError::new(format!("`{url}` was not upgraded")).caused_by(&error);
            failure.hint_opt(error.advice())
        }
    }
}

fn as_json(report: &LegacyReport, url: &DatabaseUrl) -> serde_json::Value {
    json!({
        "state": report.state,
        "store": url.to_string(),
        "export": report.export.as_ref().map(|path| path.display().to_string()),
        "agents": report.agents,
        "instructions": report.instructions,
        "notes": report.notes,
    })
}

fn as_text(report: &LegacyReport, url: &DatabaseUrl) -> String {
    let url = url.to_string();
    let url = printable(&url);
    let mut out = match report.state {
        LegacyState::NothingToDo => return format!("Nothing to do: {url} has the current schema.\n"),
        LegacyState::Planned => format!("Dry run: {url} can be upgraded; nothing was changed.\n"),
        LegacyState::Upgraded => format!("Upgraded: {url}\n"),
    };
    if let Some(export) = &report.export {
        let _ = writeln!(out, "Old rows: {}", printable(&export.display().to_string()));
    }
    if !report.agents.is_empty() {
        let _ = writeln!(out, "\n{HEAD}Agents{HEAD:#}");
    }
    for agent in &report.agents {
        let _ =
            writeln!(out, "  {:40}  {}", one_line(&agent.agent), pluralize(agent.characters, "character"));
        notes(&mut out, &agent.notes);
    }
    if !report.instructions.is_empty() {
        let _ = writeln!(out, "\n{HEAD}Instructions{HEAD:#}");
    }
    for entry in &report.instructions {
        let name = format!("{} with {}", one_line(&entry.user), one_line(&entry.agent));
        let (rows, size) = (pluralize(entry.rows, "row"), pluralize(entry.characters, "character"));
        let _ = writeln!(out, "  {name:40}  {size} from {} of {rows}", entry.joined);
        notes(&mut out, &entry.notes);
    }
    if !report.notes.is_empty() {
        out.push('\n');
    }
    notes(&mut out, &report.notes);
    out
}

fn notes(out: &mut String, notes: &[String]) {
    for note in notes {
        let _ = writeln!(out, "  {NOTE}note:{NOTE:#} {}", printable(note));
    }
}

pub(crate) fn backup(file: &Path, context: &Context) -> Result<ExitCode, CliError> {
    let to = DatabaseUrl::File(file.to_owned());
    let report =
        block_on(async { Ok(copy_store(&store::database_url(context), &to, Target::Empty).await?) })?;
    context.print(&copy_json(&report, &to), || copy_text("Backup", &report, &to))
}

pub(crate) fn restore(file: &Path, replace: bool, context: &Context) -> Result<ExitCode, CliError> {
    let (from, to) = (DatabaseUrl::File(file.to_owned()), store::database_url(context));
    let target = match (&to, replace) {
        (DatabaseUrl::File(path), false) if path.exists() => {
            return Err(CliError::new(format!("the store `{}` exists", path.display()))
                .hint("`--replace` renames it and puts the backup in its place"));
        }
        (DatabaseUrl::File(path), true) if path.exists() => Target::Replace,
        (_, true) => {
            return Err(CliError::new(format!("there is no file `{to}` to replace"))
                .hint("leave out `--replace`; a PostgreSQL database must be empty"));
        }
        (_, false) => Target::Empty,
    };
    // No `embody up` can start in the meantime.
    let _lock = UpLock::take(&context.workspace)?;
    let report = block_on(async { Ok(copy_store(&from, &to, target).await?) })?;
    context.print(&copy_json(&report, &to), || copy_text("Restored", &report, &to))
}

pub(crate) fn copy(from: &str, to: &str, workspace: &Path, json: bool) -> Result<ExitCode, CliError> {
    let (from, to) = (parse_database_url(from, workspace)?, parse_database_url(to, workspace)?);
    let report = block_on(async { Ok(copy_store(&from, &to, Target::Empty).await?) })?;
    match json {
        true => output::json(&copy_json(&report, &to))?,
        false => output::styled(&copy_text("Copied", &report, &to))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn copy_json(report: &CopyReport, to: &DatabaseUrl) -> serde_json::Value {
    let CopyReport { tables, rows, audit_key, replaced } = report;
    json!({
        "store": to.to_string(), "tables": tables, "rows": rows, "audit_key": audit_key, "replaced": replaced,
    })
}

fn copy_text(what: &str, report: &CopyReport, to: &DatabaseUrl) -> String {
    let (rows, tables) = (pluralize(report.rows, "row"), pluralize(report.tables, "table"));
    let mut out = format!("{what}: {}, {rows} in {tables}\n", printable(&to.to_string()));
    let _ = match &report.audit_key {
        Some(key) => writeln!(out, "Key of the audit chain: {}", printable(&key.display().to_string())),
        None => writeln!(
            out,
            "{NOTE}note:{NOTE:#} the key of the audit chain is missing; put it beside the store before you start embody, \
             or a new chain begins"
        ),
    };
    if let Some(replaced) = &report.replaced {
        let _ = writeln!(out, "The store before: {}", printable(&replaced.display().to_string()));
    }
    out
}

pub(crate) fn status(context: &Context) -> Result<ExitCode, CliError> {
    let url = store::database_url(context);
    let backend = match url {
        DatabaseUrl::Memory | DatabaseUrl::File(_) => "sqlite",
        DatabaseUrl::Postgres { .. } => "postgres",
    };
    let shown = url.to_string();
    let status = store::with_existing(context, async |store| Ok(store.status().await?))?;
    let json = json!({ "store": shown, "backend": backend, "status": status });
    let mut out = format!("{HEAD}store{HEAD:#}    {}\n{HEAD}backend{HEAD:#}  {backend}\n", printable(&shown));
    match status {
        None => out.push_str("\nThe store does not exist yet; the first write creates it.\n"),
        Some(status) => {
            let _ = writeln!(out, "{HEAD}schema{HEAD:#}   {} ({})", status.schema, status.schema_name);
            let _ = writeln!(out, "{HEAD}size{HEAD:#}     {}\n", size(status.bytes));
            for rows in &status.rows {
                let _ = writeln!(out, "{:>12}  {}", rows.count, rows.what);
            }
        }
    }
    context.print(&json, || out)
}

fn size(bytes: i64) -> String {
    let kibibytes = bytes / 1024;
    match kibibytes {
        0 => format!("{bytes} bytes"),
        1..10_240 => format!("{kibibytes} KiB"),
        _ => format!("{} MiB", kibibytes / 1024),
    }
}
