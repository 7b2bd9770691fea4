//! `embody doctor`: looks at the workspace as a new user would want somebody to, and says what is wrong.

use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use clap::Args;
use embody_prompt::{NoteKind, assemble};
use embody_workspace::exposed_directories;
use serde::Serialize;
use serde_json::json;

use super::prompt::{PromptReport, findings, shown};
use super::{Context, doctor_reach, doctor_store, doctor_users};
use crate::compose::{Composed, PromptArgs, compose, contract};
use crate::failure::Failure;
use crate::output::{self, printable};

/// The size of a contract up to which it and the rest of the bootstrap result are no burden to a host.
const CONTRACT_BYTES: usize = 6 * 1024;

/// What to look at.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  embody doctor\n  embody doctor --agent mailer --json")]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    prompt: PromptArgs,
}

/// How one check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    Ok,
    Warn,
    Fail,
}

#[derive(Debug, Serialize)]
pub(super) struct Check {
    name: &'static str,
    state: State,
    message: String,
    hint: Option<String>,
}

pub(crate) fn run(args: &DoctorArgs, context: &Context) -> Result<ExitCode, Failure> {
    let mut checks = vec![workspace(&context.workspace), config(context)];
    checks.extend(proxy(context));
    checks.extend(doctor_reach::checks(context));
    let stored = doctor_store::checks(context);
    let has_store = !failed(&stored);
    checks.extend(stored);
    checks.extend(doctor_users::checks(context));
    checks.extend(directories(&context.workspace));
    // Without its store there is no prompt to look at.
    if has_store {
        checks.extend(prompt(args, context)?);
    }
    let failed = failed(&checks);
    if context.json {
        output::json(&json!({ "ok": !failed, "checks": checks }))?;
    } else {
        output::styled(&as_text(&checks))?;
    }
    Ok(output::verdict(!failed))
}

fn failed(checks: &[Check]) -> bool {
    checks.iter().any(|check| check.state == State::Fail)
}

fn prompt(args: &DoctorArgs, context: &Context) -> Result<Vec<Check>, Failure> {
    let composed = compose(context, &args.prompt)?;
    let prompt = assemble(&composed.loaded.input, &composed.layout);
    let mut checks = vec![body(&composed), identity(&composed), soul(&composed)];
    checks.extend(
        prompt
            .notes
            .iter()
            .filter(|note| matches!(note.kind, NoteKind::PersonaUnavailable | NoteKind::Insecure))
            .map(|note| Check {
                name: "persona",
                state: State::Warn,
                message: note.message.clone(),
                hint: Some(
                    "check [persona] url and token_command; without it the agent runs on what is here".into(),
                ),
            }),
    );
    checks.extend(persona(&composed, context).filter(|_| checks.iter().all(|check| check.name != "persona")));
    checks.push(contract_size(&contract(&composed, &context.config), context));
    checks.push(size(&PromptReport::of(&prompt, embody_prompt::render(&prompt)), context));
    checks.extend(findings(&composed.loaded.input, &prompt.notes).into_iter().map(|finding| Check {
        name: "prompt",
        state: State::Fail,
        message: format!("{} {}: {}", shown(&finding.source, finding.line), finding.rule, finding.message),
        hint: None,
    }));
    Ok(checks)
}

pub(super) fn ok(name: &'static str, message: impl Into<String>) -> Check {
    Check { name, state: State::Ok, message: message.into(), hint: None }
}

pub(super) fn warn(name: &'static str, message: impl Into<String>, hint: &str) -> Check {
    Check { name, state: State::Warn, message: message.into(), hint: Some(hint.to_owned()) }
}

pub(super) fn fail(name: &'static str, message: impl Into<String>, hint: &str) -> Check {
    Check { state: State::Fail, ..warn(name, message, hint) }
}

fn workspace(path: &Path) -> Check {
    if path.is_dir() {
        ok("workspace", path.display().to_string())
    } else {
        warn(
            "workspace",
            format!("{} does not exist; built-in defaults are used", path.display()),
            "run `embody init`",
        )
    }
}

fn config(context: &Context) -> Check {
    match &context.config.file {
        Some(file) => ok("config", file.display().to_string()),
        None => {
            let file = context.workspace.join("embody.toml");
            ok("config", format!("there is no {}; the defaults hold", file.display()))
        }
    }
}

/// Directories that agents may use and that hold what the workspace is made of.
fn directories(workspace: &Path) -> Vec<Check> {
    let exposed = |(agent, path): (String, std::path::PathBuf)| {
        let message = format!(
            "agent `{agent}` lists `{}`, which holds files that the workspace is made of",
            path.display()
        );
        let hint =
            "list a folder outside the workspace, or leave it out: `files` in the agent's folder is its own";
        warn("files", message, hint)
    };
    exposed_directories(workspace).into_iter().map(exposed).collect()
}

/// Which way leads out, if it is not the straight one.
fn proxy(context: &Context) -> Option<Check> {
    let proxies = &context.config.proxies;
    let through = [("https", proxies.https()), ("http", proxies.http())];
    let told: Vec<String> =
        through.into_iter().filter_map(|(kind, proxy)| Some(format!("{kind} through {}", proxy?))).collect();
    (!told.is_empty()).then(|| ok("proxy", format!("{}; this machine and NO_PROXY without", told.join(", "))))
}

fn body(composed: &Composed) -> Check {
    let body = &composed.loaded.body;
    if body.loaded {
        ok("body", format!("{}, {} bytes, {} included", body.name, body.bytes, body.included))
    } else {
        let why = body.reason.clone().unwrap_or_else(|| format!("there is no {}", body.name));
        let message = format!("{why}: the agent has no rules of its own");
        warn("body", message, "run `embody init`, or set [prompt] body")
    }
}

fn identity(composed: &Composed) -> Check {
    let input = &composed.loaded.input;
    match (&input.identity, &input.agent.identity, &input.agent.role) {
        (Some(identity), ..) => ok("identity", identity.source().name()),
        (_, Some(text), _) | (_, _, Some(text)) => ok("identity", text.source().name()),
        _ => warn("identity", "the agent has no name", "write IDENTITY.md, or run `embody init`"),
    }
}

fn soul(composed: &Composed) -> Check {
    let input = &composed.loaded.input;
    match input.soul.as_ref().or(input.persona.as_ref()) {
        Some(soul) => ok("soul", soul.source().name()),
        None => ok("soul", "the built-in one"),
    }
}

/// The remote one, where nothing is wrong with it.
fn persona(composed: &Composed, context: &Context) -> Option<Check> {
    let url = context.config.persona.url.as_ref()?;
    if context.config.persona.token_command.is_none() {
        let message = format!("{url} is never asked: `persona.token_command` is not set");
        return Some(warn("persona", message, "say which command prints the token, or remove `url`"));
    }
    Some(match composed.loaded.input.persona {
        Some(_) => ok("persona", url.to_string()),
        None => ok("persona", format!("{url} is not asked: this prompt has no place for it")),
    })
}

fn size(report: &PromptReport, context: &Context) -> Check {
    let budget = context.config.prompt.budget_tokens as usize;
    let message = format!("{} tokens of {budget}, layout {}", report.tokens, report.layout);
    if report.tokens > budget {
        warn("size", message, "raise [prompt] budget_tokens, or shorten the body and the instructions")
    } else {
        ok("size", message)
    }
}

/// The contract is delivered whole, however long it is; a host may cut a long result.
fn contract_size(contract: &str, context: &Context) -> Check {
    let bytes = contract.len();
    let without = if context.config.mind.upstream.is_some() { ", without what the mind adds" } else { "" };
    let message = format!("{bytes} bytes{without}");
    if bytes > CONTRACT_BYTES {
        let message = format!(
            "{message}, more than the recommended {CONTRACT_BYTES}; every session gets all of it, and a host may cut long results"
        );
        let hint =
            "shorten the body rules, or set `instructions = \"data\"` for a [[body]] whose rules are long";
        warn("contract", message, hint)
    } else {
        ok("contract", message)
    }
}

fn as_text(checks: &[Check]) -> String {
    const HINT: Style = AnsiColor::Cyan.on_default();
    let mut out = String::new();
    for check in checks {
        let (mark, style) = match check.state {
            State::Ok => ("ok  ", AnsiColor::Green.on_default()),
            State::Warn => ("warn", AnsiColor::Yellow.on_default()),
            State::Fail => ("FAIL", AnsiColor::Red.on_default().bold()),
        };
        let _ = writeln!(out, "{style}{mark}{style:#}  {:10} {}", check.name, printable(&check.message));
        if let Some(hint) = &check.hint {
            let hint = hint.replace('\n', "\n                   ");
            let _ = writeln!(out, "                 {HINT}hint:{HINT:#} {hint}");
        }
    }
    out
}
