//! Converts `raw` to `resolved`: checks keys that depend on each other, and computes defaults from other keys. Reports all
//! problems; an invalid section is omitted.

use std::collections::BTreeMap;
use std::time::Duration;

use embody_broker::arguments::Arguments;
use embody_broker::catalogue::ListingLimit;
use embody_broker::policy::{Condition, Facts, Glob};
use embody_prompt::Sandbox;
use embody_wire::{Proxies, Secret};
use embody_workspace::Audiences;
use serde_json::value::RawValue;

use super::check::Checks;
use super::error::quoted;
use super::mask::{self, Address};
use super::raw::{self, ASK_TIMEOUT_S, ASK_WAIT_S, Raw, TextOrFlag};
use super::resolved::{
    Config, Model, ModelTimeouts, Persona, Policy, Prompt, Rule, Store, Telegram, Telemetry,
};
use super::tree::{KeyPath, shown_key};
use super::{env, upstream};

/// Resolves all sections. Returns `None` only if a problem was reported.
pub(super) fn resolve(raw: Raw, checks: &mut Checks<'_>) -> Option<Config> {
    // Resolve every section before unwrapping any, so that all problems are reported.
    let prompt = prompt(raw.prompt, checks);
    let persona = persona(raw.persona, checks);
    let store = store(&raw.store, checks);
    let mind = upstream::mind(raw.mind, checks);
    let bodies = upstream::bodies(raw.body, checks);
    let listing_limit = listing_limit(&raw.tools, checks);
    let policy = policy(raw.policy, checks);
    let model = model(raw.model, checks);
    let telegram = telegram(raw.telegram, checks);
    let telemetry = telemetry(raw.telemetry, checks);
    Some(Config {
        file: None,
        prompt: prompt?,
        persona,
        sandbox: sandbox(raw.sandbox),
        store: store?,
        mind,
        bodies,
        listing_limit,
        policy,
        model: model?,
        telegram: telegram?,
        telemetry: telemetry?,
        audience: audience(&raw.audience),
        log_level: raw.log.level,
        proxies: Proxies::default(),
        keys: Vec::new(),
    })
}

fn prompt(raw: raw::Prompt, checks: &mut Checks<'_>) -> Option<Prompt> {
    let body = checks.filled(&KeyPath::dotted("prompt.body"), Some(raw.body))?;
    Some(Prompt {
        layout: raw.layout,
        body: checks.workspace.join(body),
        fresh_last: raw.fresh_last,
        extra_sections: raw.extra_sections.into_iter().map(Into::into).collect(),
        budget_tokens: raw.budget_tokens,
        keep_receipts: Duration::from_secs(u64::from(raw.keep_receipts_days) * 24 * 3600),
        sections: raw.sections,
    })
}

fn persona(raw: raw::Persona, checks: &mut Checks<'_>) -> Persona {
    Persona {
        url: raw.url.and_then(|url| checks.http(&KeyPath::dotted("persona.url"), &url)),
        token_command: checks.command(&KeyPath::dotted("persona.token_command"), raw.token_command),
        timeout: Duration::from_secs(raw.timeout_s.into()),
    }
}

fn sandbox(raw: raw::Sandbox) -> Option<Sandbox> {
    let text = |fact: Option<TextOrFlag>| {
        fact.map(|fact| match fact {
            TextOrFlag::Flag(flag) => flag.to_string(),
            TextOrFlag::Text(text) => text,
        })
    };
    let sandbox = Sandbox {
        enabled: raw.enabled,
        mode: text(raw.mode),
        backend: text(raw.backend),
        scope: text(raw.scope),
        image: text(raw.image),
        workspace_mount: text(raw.workspace_mount),
        network: text(raw.network),
        session_override: text(raw.session_override),
    };
    (sandbox != Sandbox::default()).then_some(sandbox)
}

const STORES: &str = "write sqlite:PATH for a SQLite file, or postgres://USER@HOST/DATABASE";
const POSTGRES: &str = "write postgres://USER@HOST/DATABASE";

fn store(raw: &raw::Store, checks: &mut Checks<'_>) -> Option<Store> {
    let url_path = KeyPath::dotted("store.url");
    let direct_path = KeyPath::dotted("store.direct_url");
    let direct_url = match &raw.direct_url {
        Some(text) => Some(checks.address(&direct_path, text, (Address::postgres(text), Some(POSTGRES)))?),
        None => None,
    };
    let store = match &raw.url {
        None => Store::Workspace { path: checks.workspace.join("embody.db") },
        Some(text) if text.starts_with("sqlite:") => {
            Store::Sqlite { url: checks.address(&url_path, text, (Address::sqlite(text), Some(STORES)))? }
        }
        Some(text) if !text.contains("://") => {
            let message = format!(
                "`{url_path}` is `{}`, which is neither a postgres:// nor an sqlite: address",
                mask::address(text)
            );
            checks.fail(&url_path, message, Some(STORES));
            return None;
        }
        Some(text) => {
            let url = Address::postgres(text).map_err(|reason| match reason {
                "is not a postgres:// address" => "is neither a postgres:// nor an sqlite: address",
                other => other,
            });
            let url = checks.address(&url_path, text, (url, Some(STORES)))?;
            return Some(Store::Postgres { url, direct_url });
        }
    };
    if direct_url.is_some() && !checks.report.is_bad(&url_path) {
        let message = format!("`{direct_path}` is set, but `{url_path}` is not a PostgreSQL address");
        checks.fail(
            &direct_path,
            message,
            Some("set `store.url` to a postgres:// address, or remove `direct_url`"),
        );
    }
    Some(store)
}

fn listing_limit(raw: &raw::Tools, checks: &mut Checks<'_>) -> ListingLimit {
    checks.all_filled(&KeyPath::dotted("tools.always_listed"), &raw.always_listed);
    ListingLimit {
        max_listed: usize::try_from(raw.max_listed).unwrap_or(usize::MAX),
        always: raw.always_listed.iter().map(|pattern| Glob::new(pattern)).collect(),
    }
}

fn policy(raw: raw::Policy, checks: &mut Checks<'_>) -> Policy {
    let (ask_wait, ask_timeout) = ask_times(&raw, checks);
    let rules = KeyPath::dotted("policy.rule");
    Policy {
        mind_down: raw.mind_down,
        ask_wait,
        ask_timeout,
        contract_delay: Duration::from_millis(raw.contract_delay_ms.into()),
        rules: (raw.rule.into_iter().enumerate())
            .map(|(index, raw)| rule(&rules.index(index), raw, checks))
            .collect(),
    }
}

fn rule(path: &KeyPath, raw: raw::Rule, checks: &mut Checks<'_>) -> Rule {
    let tools = raw.tools.unwrap_or_default();
    checks.all_filled(&path.key("tools"), &tools);
    if tools.is_empty() {
        let message = format!("`{path}` names no tools");
        checks.fail(&path.key("tools"), message, Some("write `tools = [\"*\"]` for a rule over every tool"));
    }
    if raw.class.is_none() && raw.gate.is_none() && raw.via.is_none() {
        let bad = ["class", "gate", "via"].iter().any(|key| checks.report.is_bad(&path.key(key)));
        if !bad {
            let message = format!("`{path}` sets neither `class` nor `gate` nor `via`, so it does nothing");
            checks.fail(&path.key("gate"), message, Some("add `gate = \"ask\"`, or remove the rule"));
        }
    }
    if raw.via.as_ref().is_some_and(Vec::is_empty) {
        let via = path.key("via");
        let message = format!("`{via}` is `[]`, so that nobody could be asked");
        checks.fail(&via, message, Some("name at least one way, or use `gate = \"deny\"`"));
    }
    let has_condition = raw.when.is_some();
    let when = condition(&path.key("when"), raw.when, checks);
    // Examples cannot be checked against an incomplete rule.
    if !tools.is_empty() && has_condition == when.is_some() {
        let scope = RuleScope { tools: &tools, when: when.as_deref() };
        check_examples(&path.key("examples"), &raw.examples, true, &scope, checks);
        check_examples(&path.key("counterexamples"), &raw.counterexamples, false, &scope, checks);
    }
    Rule { tools, class: raw.class, gate: raw.gate, via: raw.via, when, reason: raw.reason }
}

fn condition(path: &KeyPath, text: Option<String>, checks: &mut Checks<'_>) -> Option<String> {
    let text = checks.filled(path, text)?;
    match Condition::new(&text) {
        Ok(_) => Some(text),
        Err(wrong) => {
            let reason = wrong.reason.lines().next().unwrap_or_default();
            let message =
                format!("`{path}` is {}, which is no condition: {}", quoted(&text), mask::text(reason));
            let hint = "write it like all_in_domain(args, \"example.com\"), over tool, body, args, channel, user, session";
            checks.fail(path, message, Some(hint));
            None
        }
    }
}

fn telegram(raw: raw::Telegram, checks: &mut Checks<'_>) -> Option<Telegram> {
    let token_env = checks.variable_name(&KeyPath::dotted("telegram.token_env"), &raw.token_env);
    let api_url = checks.http(&KeyPath::dotted("telegram.api_url"), &raw.api_url);
    let mut users = BTreeMap::new();
    for (id, name) in raw.users {
        let path = KeyPath::dotted("telegram.users").key(&id);
        // `7` and `07` would be one user with two names.
        match id.parse::<i64>().ok().filter(|number| number.to_string() == id) {
            Some(id) => users.extend(checks.filled(&path, Some(name)).map(|name| (id, name))),
            None => {
                let message = format!("`{}` in `[telegram.users]` is not a Telegram user id", shown_key(&id));
                checks.fail(&path, message, Some("write the number first, as in `123 = \"alice\"`"));
            }
        }
    }
    Some(Telegram { token_env: token_env?, api_url: api_url?, allow_users: raw.allow_users, users })
}

fn audience(raw: &raw::Audiences) -> Audiences {
    Audiences {
        identity: raw.identity.into(),
        soul: raw.soul.into(),
        user: raw.user.into(),
        project: raw.project.into(),
        runtime: raw.runtime.into(),
        skills: raw.skills.into(),
        workspace_files: raw.workspace_files.into(),
        memories: raw.memories.into(),
        instructions: raw.instructions.into(),
        task: raw.task.into(),
        persona: raw.persona.into(),
    }
}

/// How long a call waits, and when its approval expires.
fn ask_times(raw: &raw::Policy, checks: &mut Checks<'_>) -> (Duration, Duration) {
    let timeout = raw.ask_timeout_s.unwrap_or(ASK_TIMEOUT_S);
    if let Some(wait) = raw.ask_wait_s.filter(|wait| *wait > timeout) {
        let path = KeyPath::dotted("policy.ask_wait_s");
        let message =
            format!("`{path}` is `{wait}`, which is longer than `policy.ask_timeout_s`, `{timeout}`");
        let hint = match raw.ask_timeout_s {
            Some(_) => "a call cannot wait longer than its approval lives",
            None => "a call cannot wait longer than its approval lives: set `ask_timeout_s` too",
        };
        checks.fail(&path, message, Some(hint));
    }
    // The default wait is shortened to a configured timeout.
    let wait = raw.ask_wait_s.unwrap_or(ASK_WAIT_S.min(timeout));
    (Duration::from_secs(wait.into()), Duration::from_secs(timeout.into()))
}

fn model(raw: raw::Model, checks: &mut Checks<'_>) -> Option<Model> {
    let section = KeyPath::dotted("model");
    let timeouts = timeouts(&section, &raw, checks);
    let base_url = raw.base_url.unwrap_or_else(|| raw.provider.base_url().to_owned());
    let base_url = checks.http(&section.key("base_url"), &base_url);
    let api_key_env = raw.api_key_env.unwrap_or_else(|| raw.provider.api_key_env().to_owned());
    let api_key_env = checks.variable_name(&section.key("api_key_env"), &api_key_env);
    Some(Model {
        provider: raw.provider,
        model: checks.filled(&section.key("model"), raw.model),
        base_url: base_url?,
        api_key_env: api_key_env?,
        native_tools: raw.native_tools,
        max_output_tokens: raw.max_output_tokens,
        timeouts,
    })
}

fn timeouts(section: &KeyPath, raw: &raw::Model, checks: &mut Checks<'_>) -> ModelTimeouts {
    let connect = ("connect_timeout_s", raw.connect_timeout_s);
    let first_byte = ("first_byte_timeout_s", raw.first_byte_timeout_s);
    let idle = ("idle_timeout_s", raw.idle_timeout_s);
    let retry = ("retry_s", raw.retry_s);
    let total = ("total_timeout_s", raw.total_timeout_s);
    let of_an_answer = "a part of an answer cannot take longer than the whole";
    for (part, whole, hint) in [
        (connect, first_byte, "the time for the first byte includes the time for the connection"),
        (connect, total, of_an_answer),
        (first_byte, total, of_an_answer),
        (idle, total, of_an_answer),
        (retry, total, "the whole time includes all attempts"),
    ] {
        let ((key, Some(part)), (whole_key, Some(whole))) = (part, whole) else { continue };
        if part > whole {
            let (path, whole_path) = (section.key(key), section.key(whole_key));
            let message = format!("`{path}` is `{part}`, which is longer than `{whole_path}`, `{whole}`");
            checks.fail(&path, message, Some(hint));
        }
    }
    let seconds = |seconds: u32| Duration::from_secs(seconds.into());
    ModelTimeouts {
        connect: raw.connect_timeout_s.map(seconds),
        first_byte: raw.first_byte_timeout_s.map(seconds),
        idle: raw.idle_timeout_s.map(seconds),
        total: raw.total_timeout_s.map(seconds),
        retrying: raw.retry_s.map(seconds),
    }
}

/// Which of its tools, and when, a rule is about.
struct RuleScope<'a> {
    tools: &'a [String],
    when: Option<&'a str>,
}

enum ExampleResult {
    Matches,
    OtherTool,
    WhenIsFalse,
    WhenIsUndecided,
}

/// Checks the examples of a rule: calls that it must match, or must not. They do not determine the decision, because other
/// rules apply too.
fn check_examples(
    path: &KeyPath,
    texts: &[String],
    must_match: bool,
    scope: &RuleScope<'_>,
    checks: &mut Checks<'_>,
) {
    const FORM: &str =
        "write TOOL or BODY/TOOL, and its arguments: 'send_email {\"to\": \"bob@example.com\"}'";
    const GUARD: &str = "guard the condition, as in has(args.count) && args.count < 10";
    let change = match must_match {
        true => "change the rule or the example: the rule does not do what it was written for",
        false => "change the rule or the example: the rule does more than it was written for",
    };
    for (index, text) in texts.iter().enumerate() {
        let path = path.index(index);
        let (problem, hint) = match evaluate_example(text, scope) {
            Ok(ExampleResult::Matches) if !must_match => ("but the rule holds for it".to_owned(), change),
            Ok(ExampleResult::OtherTool) if must_match => {
                ("but no pattern of `tools` names that tool".to_owned(), change)
            }
            Ok(ExampleResult::WhenIsFalse) if must_match => {
                ("but `when` is not true of it".to_owned(), change)
            }
            // An undecided rule still asks and denies.
            Ok(ExampleResult::WhenIsUndecided) => {
                ("and nobody can tell whether `when` is true of it".to_owned(), GUARD)
            }
            Ok(_) => continue,
            Err(reason) => (format!("which is no call: {}", mask::text(&reason)), FORM),
        };
        checks.fail(&path, format!("`{path}` is {}, {problem}", quoted(text)), Some(hint));
    }
}

/// Evaluates it like `embody policy test`: channel `mcp`, as the owner.
fn evaluate_example(text: &str, scope: &RuleScope<'_>) -> Result<ExampleResult, String> {
    let (name, args) = match text.trim().split_once(char::is_whitespace) {
        Some((name, args)) => (name, Some(args.trim().to_owned())),
        None => (text.trim(), None),
    };
    if name.is_empty() || name.starts_with('{') {
        return Err("it names no tool".to_owned());
    }
    let (body, tool) = name.split_once('/').unwrap_or(("", name));
    let raw = args.map(RawValue::from_string).transpose().map_err(|error| error.to_string())?;
    let args = Arguments::read(raw.as_deref()).map_err(|error| error.to_string())?;
    if !scope.tools.iter().any(|pattern| Glob::new(pattern).matches(body, tool)) {
        return Ok(ExampleResult::OtherTool);
    }
    // An invalid condition was already reported.
    let Some(when) = scope.when.and_then(|when| Condition::new(when).ok()) else {
        return Ok(ExampleResult::Matches);
    };
    let facts = Facts { tool, body, args: args.value(), channel: "mcp", user: "owner", session: "test" };
    Ok(match when.holds(&facts) {
        Some(true) => ExampleResult::Matches,
        Some(false) => ExampleResult::WhenIsFalse,
        None => ExampleResult::WhenIsUndecided,
    })
}

fn telemetry(raw: raw::Telemetry, checks: &mut Checks<'_>) -> Option<Telemetry> {
    let section = KeyPath::dotted("telemetry");
    let url = raw.otlp_url.map(|url| checks.http(&section.key("otlp_url"), &url));
    let service_name = checks.filled(&section.key("service_name"), Some(raw.service_name));
    let mut headers = Vec::new();
    for (name, value) in raw.headers {
        let path = section.key("headers").key(&name);
        if !env::is_header_name(&name) {
            let hint = "a name has letters, digits and `-` only, as in `authorization`";
            checks.fail(&path, format!("`{path}` is not the name of a header"), Some(hint));
        } else if !env::is_header_value(&value) {
            let hint = "a value is one line of plain characters";
            checks.fail(&path, format!("the value of `{path}` cannot be sent"), Some(hint));
        }
        headers.push((name, Secret::new(value)));
    }
    let sample_percent = u8::try_from(raw.sample_percent.min(100)).unwrap_or(100);
    // An invalid URL was already reported.
    let otlp_url = url.map_or(Some(None), |url| url.map(Some))?;
    Some(Telemetry { otlp_url, headers, service_name: service_name?, sample_percent })
}
