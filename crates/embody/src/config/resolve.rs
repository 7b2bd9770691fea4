//! Converts `raw` to `resolved`: checks keys that depend on each other, and computes defaults from other keys. Reports all
//! problems; an invalid section is omitted.

use std::collections::BTreeMap;
use std::time::Duration;

use embody_broker::policy::Condition;
use embody_wire::Proxies;
use embody_workspace::Audiences;

use super::address::Address;
use super::check::Checks;
use super::defaults::{ASK_TIMEOUT_S, ASK_WAIT_S};
use super::error::quoted;
use super::examples::{self, About};
use super::origin::{KeyPath, shown_key};
use super::raw::{self, Raw, Word};
use super::resolved::{Config, Persona, Policy, Prompt, Rule, Store, Telegram, Tools};
use super::{mask, model, telemetry, upstream};

/// Resolves all sections. Returns `None` only if a problem was reported.
pub(super) fn resolve(raw: Raw, checks: &mut Checks<'_>) -> Option<Config> {
    // Resolve every section before unwrapping any, so that all problems are reported.
    let prompt = prompt(raw.prompt, checks);
    let persona = persona(raw.persona, checks);
    let store = store(&raw.store, checks);
    let mind = upstream::mind(raw.mind, checks);
    let bodies = upstream::bodies(raw.body, checks);
    let tools = tools(raw.tools, checks);
    let policy = policy(raw.policy, checks);
    let model = model::resolve(raw.model, checks);
    let telegram = telegram(raw.telegram, checks);
    let telemetry = telemetry::resolve(raw.telemetry, checks);
    Some(Config {
        file: None,
        prompt: prompt?,
        persona,
        sandbox: sandbox(raw.sandbox),
        store: store?,
        mind,
        bodies,
        tools,
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

fn sandbox(raw: raw::Sandbox) -> Vec<(&'static str, String)> {
    let word = |word: Option<Word>| {
        word.map(|word| match word {
            Word::Flag(flag) => flag.to_string(),
            Word::Text(text) => text,
        })
    };
    let facts = [
        ("enabled", raw.enabled.map(|enabled| enabled.to_string())),
        ("mode", word(raw.mode)),
        ("backend", word(raw.backend)),
        ("scope", word(raw.scope)),
        ("image", word(raw.image)),
        ("workspace_mount", word(raw.workspace_mount)),
        ("network", word(raw.network)),
        ("session_override", word(raw.session_override)),
    ];
    facts.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
}

/// The valid forms of `store.url`.
const STORES: &str = "write sqlite:PATH for a SQLite file, or postgres://USER@HOST/DATABASE";
/// The valid form of `store.direct_url`.
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

fn tools(raw: raw::Tools, checks: &mut Checks<'_>) -> Tools {
    checks.all_filled(&KeyPath::dotted("tools.always_listed"), &raw.always_listed);
    let max_listed = usize::try_from(raw.max_listed).unwrap_or(usize::MAX);
    Tools { max_listed, always_listed: raw.always_listed }
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
        let about = About { tools: &tools, when: when.as_deref() };
        examples::check(&path.key("examples"), &raw.examples, &about, checks);
        examples::check_counter(&path.key("counterexamples"), &raw.counterexamples, &about, checks);
    }
    Rule { tools, class: raw.class, gate: raw.gate, via: raw.via, when, reason: raw.reason }
}

/// The text of a condition, if it parses.
fn condition(path: &KeyPath, text: Option<String>, checks: &mut Checks<'_>) -> Option<String> {
    let text = checks.filled(path, text)?;
    match Condition::new(&text) {
        Ok(_) => Some(text),
        Err(wrong) => {
            let reason = wrong.reason.lines().next().unwrap_or_default();
            let message =
                format!("`{path}` is {}, which is no condition: {}", quoted(&text), mask::text(reason));
            let hint = "write it like args.to.endsWith(\"@example.com\"), over tool, body, args, channel, user, session";
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

#[cfg(test)]
mod tests {
    use super::super::{Config, ConfigError, Inputs};

    fn load(text: &str) -> Result<Config, ConfigError> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("embody.toml");
        std::fs::write(&file, format!("[policy]\n{text}\n")).unwrap();
        let workspace = folder.path().to_owned();
        Config::load(Inputs { file: Some(file), workspace, env: Vec::new(), overrides: Vec::new() })
    }

    #[test]
    fn a_wait_gives_way_to_a_shorter_life_that_is_set() {
        for (text, wait, timeout) in [
            ("", 45, 300),
            ("ask_timeout_s = 5", 5, 5),
            ("ask_wait_s = 300", 300, 300),
            ("ask_wait_s = 0", 0, 300),
            ("ask_wait_s = 7\nask_timeout_s = 7", 7, 7),
            ("ask_wait_s = 400\nask_timeout_s = 400", 400, 400),
        ] {
            let policy = load(text).unwrap().policy;
            assert_eq!((policy.ask_wait.as_secs(), policy.ask_timeout.as_secs()), (wait, timeout), "{text}");
        }
    }

    #[test]
    fn a_wait_that_is_longer_than_its_approval_lives_is_refused() {
        const HINT: &str = "a call cannot wait longer than its approval lives";
        for (text, wait, timeout, hint) in [
            ("ask_wait_s = 9\nask_timeout_s = 8", 9, 8, HINT.to_owned()),
            // The default counts too.
            ("ask_wait_s = 400", 400, 300, format!("{HINT}: set `ask_timeout_s` too")),
        ] {
            let error = load(text).unwrap_err();
            let words = format!(
                "embody.toml:2: `policy.ask_wait_s` is `{wait}`, which is longer than `policy.ask_timeout_s`, `{timeout}`"
            );
            assert!(error.message().ends_with(&words), "{}", error.message());
            assert_eq!(error.hints(), [hint]);
        }
    }
}
