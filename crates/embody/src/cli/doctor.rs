//! `embody doctor`: checks the workspace, the store and every configured connection. A configuration that cannot work fails;
//! a server that is only unreachable or slow is a warning. Starts each server and ends it again; waits seconds at most.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use embody_agent::model::{FailureLog, ModelError, ModelTimes, ProbeResult};
use embody_agent::telegram::{ApiError, user_for};
use embody_broker::upstream::CheckedServer;
use embody_prompt::{NoteKind, assemble};
use embody_store::DatabaseUrl;
use embody_store::audit::ChainState;
use embody_workspace::exposed_directories;
use futures_util::future::join_all;
use serde::Serialize;
use serde_json::json;

use super::prompt::{PromptArgs, display_source, findings, load_prompt};
use super::unused_files::{self, UnusedFile};
use super::{Context, ScopeArgs, policy};
use crate::config::env::non_empty;
use crate::config::settings::{Body, Config};
use crate::config::tree::Origin;
use crate::error::CliError;
use crate::output::{self, pluralize, printable};
use crate::prompt_report::PromptReport;
use crate::prompt_service::LoadedPrompt;
use crate::server_check::{self, CheckSettings, FailureKind, ServerFailure};
use crate::status::unknown_outcomes;
use crate::{app, broker_setup, channels, store};

/// The recommended size of a contract, which hosts handle together with the rest of the bootstrap result.
const CONTRACT_BYTES: usize = 6 * 1024;

pub(super) const EXAMPLES: &str = "Examples:\n  embody doctor\n  embody doctor --agent mailer --json";

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

pub(crate) fn run(args: &PromptArgs, context: &Context) -> Result<ExitCode, CliError> {
    let mut checks = vec![workspace(&context.workspace), config(context)];
    let warnings = policy::warnings(&context.config);
    checks.extend(warnings.iter().map(|warning| warn("policy", warning.text(), &warning.hint)));
    checks.extend(proxy(context));
    checks.extend(connection_checks(context));
    let stored = store_checks(context);
    let has_store = !has_failure(&stored);
    checks.extend(stored);
    checks.extend(user_checks(context));
    checks.extend(directories(&context.workspace));
    // Without the store there is no prompt to check.
    if has_store {
        checks.extend(prompt(args, context)?);
    }
    let is_ok = !has_failure(&checks);
    context.print(&json!({ "ok": is_ok, "checks": checks }), || as_text(&checks))?;
    Ok(output::exit_code(is_ok))
}

pub(super) fn has_failure(checks: &[Check]) -> bool {
    checks.iter().any(|check| check.state == State::Fail)
}

fn prompt(args: &PromptArgs, context: &Context) -> Result<Vec<Check>, CliError> {
    let loaded = load_prompt(context, args)?;
    let prompt = assemble(&loaded.workspace.input, &loaded.layout);
    let mut checks = vec![body(&loaded), identity(&loaded), soul(&loaded)];
    checks.extend(
        prompt
            .notes
            .iter()
            .filter(|note| matches!(note.kind, NoteKind::PersonaUnavailable | NoteKind::Insecure))
            .map(|note| {
                let hint = "check [persona] url and token_command; without the persona the agent uses the local files";
                warn("persona", note.message.clone(), hint)
            }),
    );
    checks.extend(persona(&loaded, context).filter(|_| checks.iter().all(|check| check.name != "persona")));
    checks.push(contract_size(&loaded.contract(&context.config), context));
    let rendered = embody_prompt::render(&prompt);
    let unused = unused_files::find(args, context, &loaded, (&rendered, &prompt.notes));
    checks.extend(unused.iter().map(unused_file));
    checks.push(size(&loaded.report(), context));
    checks.extend(findings(&loaded.workspace.input, &prompt.notes).into_iter().map(|finding| Check {
        name: "prompt",
        state: State::Fail,
        message: format!(
            "{} {}: {}",
            display_source(&finding.source, finding.line),
            finding.rule,
            finding.message
        ),
        hint: None,
    }));
    Ok(checks)
}

/// A blank file is named, and nothing is wrong with it.
fn unused_file(unused: &UnusedFile) -> Check {
    let UnusedFile { file, reason, hint, is_blank } = unused;
    let state = if *is_blank { State::Ok } else { State::Warn };
    Check { state, ..warn("unused", format!("{file}: {reason}"), hint) }
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
            ok("config", format!("{} does not exist; defaults are used", file.display()))
        }
    }
}

/// Directories of agents that contain files of the workspace itself.
fn directories(workspace: &Path) -> Vec<Check> {
    let exposed = |(agent, path): (String, PathBuf)| {
        let message = format!(
            "agent `{agent}` lists `{}`, which contains files of the workspace itself",
            path.display()
        );
        let hint = "list a folder outside the workspace, or remove the entry: the agent can use `files` in its own folder";
        warn("files", message, hint)
    };
    exposed_directories(workspace).into_iter().map(exposed).collect()
}

fn proxy(context: &Context) -> Option<Check> {
    let proxies = &context.config.proxies;
    let through = [("https", proxies.https()), ("http", proxies.http())];
    let routes: Vec<String> =
        through.into_iter().filter_map(|(kind, proxy)| Some(format!("{kind} through {}", proxy?))).collect();
    (!routes.is_empty())
        .then(|| ok("proxy", format!("{}; not for this machine and NO_PROXY", routes.join(", "))))
}

fn body(loaded: &LoadedPrompt) -> Check {
    let body = &loaded.workspace.body;
    if body.loaded {
        ok("rules", format!("{}, {} bytes, {} included", body.name, body.bytes, body.included))
    } else {
        let reason = body.reason.clone().unwrap_or_else(|| format!("{} does not exist", body.name));
        let message = format!("{reason}: the agent has no rules");
        warn("rules", message, "run `embody init`, or set [prompt] body")
    }
}

fn identity(loaded: &LoadedPrompt) -> Check {
    let input = &loaded.workspace.input;
    match (&input.identity, &input.agent.identity, &input.agent.role) {
        (Some(identity), ..) => ok("identity", identity.source().name()),
        (_, Some(text), _) | (_, _, Some(text)) => ok("identity", text.source().name()),
        _ => warn("identity", "the agent has no name", "write IDENTITY.md, or run `embody init`"),
    }
}

fn soul(loaded: &LoadedPrompt) -> Check {
    let input = &loaded.workspace.input;
    match input.soul.as_ref().or(input.persona.as_ref()) {
        Some(soul) => ok("soul", soul.source().name()),
        None => ok("soul", "built-in"),
    }
}

/// The remote persona, if it has no note of its own.
fn persona(loaded: &LoadedPrompt, context: &Context) -> Option<Check> {
    let url = context.config.persona.url.as_ref()?;
    if context.config.persona.token_command.is_none() {
        let message = format!("{url} is not used: `persona.token_command` is not set");
        return Some(warn("persona", message, "set the command that prints the token, or remove `url`"));
    }
    Some(match loaded.workspace.input.persona {
        Some(_) => ok("persona", url.to_string()),
        None => ok("persona", format!("{url} is not used: this layout has no section for it")),
    })
}

fn size(report: &PromptReport, context: &Context) -> Check {
    let budget = context.config.prompt.budget_tokens as usize;
    let message = format!("{} tokens of {budget}, layout {}", report.tokens, report.layout);
    if report.tokens > budget {
        warn("size", message, "raise [prompt] budget_tokens, or shorten the rules and the instructions")
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
        let hint = "shorten the rules, or set `instructions = \"data\"` for a [[body]] whose rules are long";
        warn("contract", message, hint)
    } else {
        ok("contract", message)
    }
}

pub(super) fn as_text(checks: &[Check]) -> String {
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

/// The timeout of each connection; all are checked at once.
const TIMEOUT: Duration = Duration::from_secs(3);
/// The same for a server, which is really started.
const SERVER_TIMEOUT: Duration = Duration::from_secs(10);

fn connection_checks(context: &Context) -> Vec<Check> {
    let config = &context.config;
    let checks = store::block_on(async {
        let reaper = broker_setup::reaper();
        let settings =
            CheckSettings { proxies: &config.proxies, reaper: &reaper, store: None, limit: SERVER_TIMEOUT };
        let servers = join_all(config.bodies.iter().map(|body| server(body, &settings)));
        let (mut checks, mind, servers, telegram) =
            tokio::join!(model(config), mind(config, &settings), servers, telegram(config));
        checks.extend(mind);
        checks.extend(servers);
        checks.extend(telegram);
        Ok(checks)
    });
    checks.unwrap_or_else(|error| vec![fail_with("model", &error)])
}

pub(super) fn fail_with(name: &'static str, error: &CliError) -> Check {
    let (message, hint) = error.summary();
    fail(name, message, &hint)
}

async fn model(config: &Config) -> Vec<Check> {
    let settings = &config.model;
    let times = ModelTimes { connect: TIMEOUT, ..ModelTimes::default() };
    let model = match app::model(config, times, FailureLog::Debug) {
        Ok(Some(model)) => model,
        Ok(None) => {
            let (message, hint) = app::no_model_error(config).summary();
            return vec![warn("model", message, &hint)];
        }
        Err(error) => return vec![fail_with("model", &error)],
    };
    let at = format!("{} at {}", model.name(), settings.base_url);
    let reached = match model.probe(TIMEOUT).await {
        Ok(ProbeResult::Lists) => ok("model", at),
        Ok(ProbeResult::Answers(status)) => warn(
            "model",
            format!(
                "{at} answers, but returns no list of models (status {status}): key and path are not tested"
            ),
            "if calls fail, check `base_url` in `[model]`: it ends with `/v1` for `openai`, and without it for `anthropic`",
        ),
        Err(error) => {
            let (message, hint) = (error.to_string(), error.hint().unwrap_or_default());
            if matches!(error, ModelError::Unauthorized { .. }) {
                return vec![fail("model", message, &hint)];
            }
            warn("model", message, &hint)
        }
    };
    // A list of models is often public, so it does not prove the key. Local models seldom need one.
    let variable = &settings.api_key_env;
    let has_key = settings.api_key_file.is_some() || non_empty(variable).is_some();
    let lacks_key = !has_key && !settings.base_url.is_loopback();
    let key = lacks_key.then(|| {
        let message =
            format!("the environment variable {variable} is not set, so there is no key for the model");
        warn("key", message, "set it to the key, or name another variable with `api_key_env` in `[model]`")
    });
    [reached].into_iter().chain(key).collect()
}

async fn mind(config: &Config, settings: &CheckSettings<'_>) -> Option<Check> {
    let upstream = config.mind.upstream.clone()?;
    let mind = Body::at(broker_setup::MIND, upstream);
    Some(server_state("mind", "", server_check::check(&mind, settings).await))
}

/// Starts it or connects to it, as `embody server test` does, for a shorter time.
async fn server(body: &Body, settings: &CheckSettings<'_>) -> Check {
    server_state("server", &format!("{}: ", body.name), server_check::check(body, settings).await)
}

fn server_state(name: &'static str, prefix: &str, checked: Result<CheckedServer, ServerFailure>) -> Check {
    let failure = match checked {
        Ok(checked) => {
            let tools = pluralize(checked.tools.len() as u64, "tool");
            return ok(name, format!("{prefix}{tools} over {}", checked.transport));
        }
        Err(failure) => failure,
    };
    let message = format!("{prefix}{}", failure.message);
    match failure.kind {
        FailureKind::RelativePath | FailureKind::Unreachable | FailureKind::Timeout => {
            warn(name, message, &failure.hint)
        }
        FailureKind::Misconfigured
        | FailureKind::Ended
        | FailureKind::Unauthorized
        | FailureKind::Protocol => fail(name, message, &failure.hint),
    }
}

async fn telegram(config: &Config) -> Option<Check> {
    const NAME: &str = "telegram";
    const UNREACHABLE: &str = "check `api_url` in `[telegram]` and the network";
    let variable = &config.telegram.token_env;
    let token = format!("check the bot's token in the environment variable {variable}");
    let scope = ScopeArgs::default();
    let bot = match channels::bot(config, &scope.user(), &scope.agent()) {
        Ok(Some(bot)) => bot,
        Ok(None) => {
            let is_set = |key: &str| key.starts_with("telegram.");
            let is_wanted = config.keys.iter().any(|key| is_set(&key.key) && key.origin != Origin::Default);
            let message = format!("the environment variable {variable} is not set, so there is no bot");
            return is_wanted.then(|| warn(NAME, message, "set it to the bot's token"));
        }
        Err(error) => {
            let (message, _) = error.summary();
            return Some(fail(NAME, message, &token));
        }
    };
    let allowed = config.telegram.allow_users.len();
    Some(match tokio::time::timeout(TIMEOUT, bot.name()).await {
        Ok(Ok(name)) if allowed == 0 => warn(
            NAME,
            format!("@{name}: no user is allowed to write to it"),
            "add Telegram user ids to `allow_users` in `[telegram]`",
        ),
        Ok(Ok(name)) => ok(NAME, format!("@{name}; {allowed} allowed")),
        // The API responds 404 to an unknown token.
        Ok(Err(error @ ApiError::Refused { status: 401 | 404, .. })) => {
            fail(NAME, error.to_string(), &format!("{token}, and `api_url` in `[telegram]`"))
        }
        Ok(Err(ApiError::Lost(why))) => warn(NAME, format!("Telegram does not answer: {why}"), UNREACHABLE),
        Ok(Err(error)) => warn(NAME, error.to_string(), UNREACHABLE),
        Err(_) => {
            warn(NAME, format!("no answer from {} within {TIMEOUT:?}", config.telegram.api_url), UNREACHABLE)
        }
    })
}

/// Does not create a store.
fn store_checks(context: &Context) -> Vec<Check> {
    let url = store::database_url(context);
    let result = store::with_existing(context, async |store| {
        store.check().await?;
        Ok((store.audit().verify().await?, unknown_outcomes(store).await?.len()))
    });
    match result {
        Err(error) => vec![fail_with("store", &error)],
        Ok(None) => vec![ok("store", format!("`{url}` does not exist yet; the first write creates it"))],
        Ok(Some((report, lost))) => {
            let kind = if matches!(url, DatabaseUrl::Postgres { .. }) { "PostgreSQL" } else { "SQLite" };
            let mut checks = vec![ok("store", format!("{kind}, {url}"))];
            let records: u64 = report.chains.iter().map(|chain| chain.records).sum();
            let away = report.chains.iter().filter(|chain| chain.state == ChainState::KeyAway).count();
            checks.push(match report.broken() {
                Some((chain, found)) => fail(
                    "audit",
                    format!("the chain {} is broken at {found}", chain.chain),
                    "see `embody audit verify` and docs/audit.md",
                ),
                None if away > 0 => warn(
                    "audit",
                    format!(
                        "{}; {away} of the chains cannot be verified: their keys are not on this machine",
                        pluralize(records, "record")
                    ),
                    "run `embody audit verify` on the machines that wrote them",
                ),
                None => ok("audit", format!("{}, intact", pluralize(records, "record"))),
            });
            if lost > 0 {
                checks.push(warn(
                    "unknown",
                    format!("{lost} messages or runs with an unknown outcome"),
                    "`embody status` lists them for a user; see docs/unknown-outcomes.md",
                ));
            }
            checks
        }
    }
}

/// Names the known users that cannot use a body because it has no `users`.
fn user_checks(context: &Context) -> Vec<Check> {
    let is_unset = |index: usize| *context.config.origin(&format!("body[{index}].users")) == Origin::Default;
    let bodies: Vec<&str> = (context.config.bodies.iter().enumerate())
        .filter(|(index, _)| is_unset(*index))
        .map(|(_, body)| body.name.as_str())
        .collect();
    if bodies.is_empty() {
        return Vec::new();
    }
    // An unreadable store has a check of its own.
    let known = store::with_existing(context, async |store| Ok(store.users().list_known().await?));
    let mut users: BTreeSet<String> = known.ok().flatten().unwrap_or_default().into_iter().collect();
    let telegram = &context.config.telegram;
    users.extend(telegram.allow_users.iter().map(|id| user_for(*id, &telegram.users)));
    users.remove(&ScopeArgs::owner());
    if users.is_empty() {
        return Vec::new();
    }
    let users: Vec<String> = users.iter().map(|user| format!("`{user}`")).collect();
    let bodies: Vec<String> = bodies.iter().map(|body| format!("`{body}`")).collect();
    let message = format!("{} cannot use {}", users.join(", "), bodies.join(", "));
    let hint =
        "a [[body]] without `users` is for the owner only; list the users in `users`, or write \"all\"";
    vec![warn("users", message, hint)]
}
