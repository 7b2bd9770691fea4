//! Checks keys that depend on each other and values with a format of their own, and sets the defaults that depend on other keys.
//! Reports all problems. Connects to nothing.

use std::collections::BTreeMap;
use std::path::Path;

use embody_agent::model::Provider;
use embody_broker::arguments::Arguments;
use embody_broker::policy::{Condition, Facts, Glob, WrongCondition};
use embody_broker::upstream::BodyUsers;
use reqwest::header::{HeaderName, HeaderValue};
use serde_json::value::RawValue;

use super::error::{Problem, Report, quoted};
use super::mask::{self, Address};
use super::settings::{
    Body, CommandLine, Config, Mind, Model, Policy, Roots, Rule, Store, Telegram, Telemetry, Transport,
    Upstream, user_id,
};
use super::tree::{KeyPath, Node, shown_key};

pub(super) fn validate(config: &mut Config, tree: &Node, report: &mut Report) {
    let mut checks = Checks { tree, report };
    checks.filled("prompt.body", config.prompt.body.to_str());
    checks.http("persona.url", config.persona.url.as_ref());
    checks.command("persona.token_command", config.persona.token_command.as_ref());
    store(&config.store, &mut checks);
    mind(&mut config.mind, &mut checks);
    bodies(&mut config.bodies, &mut checks);
    checks.all_filled("tools.always_listed", &config.tools.always_listed);
    policy(&mut config.policy, &mut checks);
    model(&mut config.model, &mut checks);
    budget(config, &mut checks);
    telegram(&config.telegram, &mut checks);
    telemetry(&config.telemetry, &mut checks);
}

struct Checks<'a> {
    tree: &'a Node,
    report: &'a mut Report,
}

impl Checks<'_> {
    /// Reports a problem at `path`, unless its value was already rejected.
    fn fail(&mut self, path: &KeyPath, message: String, hint: Option<&str>) {
        if !self.report.is_bad(path) {
            let problem = Problem::new(message).at(path, self.tree.origin_of(path));
            self.report.add(Problem { hint: hint.map(str::to_owned), ..problem });
        }
    }

    fn is_set(&self, path: &KeyPath) -> bool {
        self.tree.at(path).is_some()
    }

    fn http(&mut self, path: impl Into<KeyPath>, url: Option<&Address>) {
        if let Some(url) = url {
            self.address(&path.into(), url, url.check_http(), None);
        }
    }

    fn address(
        &mut self,
        path: &KeyPath,
        url: &Address,
        checked: Result<(), &'static str>,
        hint: Option<&str>,
    ) {
        if let Err(reason) = checked {
            self.fail(path, format!("`{path}` is `{url}`, which {reason}"), hint);
        }
    }

    fn command(&mut self, path: impl Into<KeyPath>, command: Option<&CommandLine>) {
        if command.is_some_and(|command| command.program.trim().is_empty()) {
            let path = path.into();
            let hint = "write the program and its arguments as separate texts, or remove the key";
            self.fail(&path, format!("`{path}` is `[]`, which names no program"), Some(hint));
        }
    }

    fn filled(&mut self, path: impl Into<KeyPath>, text: Option<&str>) {
        if text.is_some_and(|text| text.trim().is_empty()) {
            let path = path.into();
            let hint = "remove the key to leave it unset";
            self.fail(&path, format!("`{path}` is `\"\"`, which is empty"), Some(hint));
        }
    }

    fn all_filled(&mut self, path: impl Into<KeyPath>, texts: &[String]) {
        let path = path.into();
        for (index, text) in texts.iter().enumerate() {
            self.filled(path.index(index), Some(text));
        }
    }

    /// Does not repeat the value, because people paste the secret itself here.
    fn variable_name(&mut self, path: impl Into<KeyPath>, name: &str) {
        let good = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(good) || name.starts_with(|c: char| c.is_ascii_digit()) {
            let path = path.into();
            let hint = "put the secret into a variable and write that variable's name here";
            self.fail(&path, format!("`{path}` is not the name of an environment variable"), Some(hint));
        }
    }
}

fn store(store: &Store, checks: &mut Checks<'_>) {
    const STORES: &str = "write sqlite:PATH for a SQLite file, or postgres://USER@HOST/DATABASE";
    let (path, direct_path) = (KeyPath::from("store.url"), KeyPath::from("store.direct_url"));
    if let Some(url) = &store.url {
        let checked = if url.is_sqlite() { url.check_sqlite() } else { url.check_postgres() };
        let checked = checked.map_err(|reason| match reason {
            "is not a postgres:// address" => "is neither a postgres:// nor an sqlite: address",
            other => other,
        });
        checks.address(&path, url, checked, Some(STORES));
    }
    let Some(direct_url) = &store.direct_url else { return };
    let hint = Some("write postgres://USER@HOST/DATABASE");
    checks.address(&direct_path, direct_url, direct_url.check_postgres(), hint);
    let is_sqlite = store.url.as_ref().is_none_or(Address::is_sqlite);
    if is_sqlite && direct_url.check_postgres().is_ok() && !checks.report.is_bad(&path) {
        let message = format!("`{direct_path}` is set, but `{path}` is not a PostgreSQL address");
        let hint = "set `store.url` to a postgres:// address, or remove `direct_url`";
        checks.fail(&direct_path, message, Some(hint));
    }
}

fn mind(mind: &mut Mind, checks: &mut Checks<'_>) {
    let path = KeyPath::from("mind");
    if mind.url.is_some() || mind.command.is_some() {
        let endpoint = (&mind.command, &mind.url, &mind.token_command);
        mind.upstream = upstream(&path, endpoint, &mut mind.transport, checks);
        return;
    }
    let stray = [("transport", mind.transport.is_some()), ("token_command", mind.token_command.is_some())];
    if let Some((key, _)) = stray.iter().find(|(_, is_set)| *is_set)
        && !endpoint_is_bad(&path, checks)
    {
        let message = format!("`mind.{key}` is set, but neither `mind.url` nor `mind.command` is");
        let hint = "say where the mind is, or remove the key for the embedded one";
        checks.fail(&path.key(key), message, Some(hint));
    }
}

fn bodies(bodies: &mut [Body], checks: &mut Checks<'_>) {
    let mut seen = BTreeMap::new();
    for (index, body) in bodies.iter_mut().enumerate() {
        let path = KeyPath::from("body").index(index);
        body_name(&path, &body.name, &mut seen, checks);
        let endpoint = (&body.command, &body.url, &body.token_command);
        body.upstream = upstream(&path, endpoint, &mut body.transport, checks).unwrap_or_default();
        body.trust_annotations.get_or_insert(matches!(body.upstream, Upstream::Stdio { .. }));
        for key in body.env.keys().filter(|key| key.is_empty() || key.contains(['=', '\0'])) {
            let path = path.key("env").key(key);
            checks.fail(&path, format!("`{path}` is not the name of an environment variable"), None);
        }
        for (index, name) in body.env_vars.iter().enumerate() {
            checks.variable_name(path.key("env_vars").index(index), name);
        }
        checks.filled(path.key("cwd"), body.cwd.as_deref().and_then(Path::to_str));
        checks.all_filled(path.key("allow"), &body.allow);
        checks.all_filled(path.key("deny"), &body.deny);
        checks.all_filled(path.key("forward_methods"), &body.forward_methods);
        if let BodyUsers::Named(names) = &body.users {
            let path = path.key("users");
            checks.all_filled(path.clone(), names);
            if names.is_empty() {
                let hint = "name the users, write `\"all\"`, or remove the key for the owner alone";
                checks.fail(&path, format!("`{path}` names no user"), Some(hint));
            }
        }
        let folders = if let Roots::Folders(folders) = &body.roots { folders.as_slice() } else { &[] };
        // A relative path would differ between the body and its client.
        for (index, folder) in folders.iter().enumerate().filter(|(_, folder)| !folder.is_absolute()) {
            let (path, folder) = (path.key("roots").index(index), quoted(&folder.to_string_lossy()));
            let message = format!("`{path}` is {folder}, which is not an absolute path");
            checks.fail(&path, message, Some("write the whole path of the folder, as in `/srv/files`"));
        }
    }
}

fn body_name(body: &KeyPath, name: &str, seen: &mut BTreeMap<String, KeyPath>, checks: &mut Checks<'_>) {
    let path = body.key("name");
    let first = seen.entry(name.to_owned()).or_insert_with(|| path.clone());
    let (message, hint) = if name.is_empty() {
        (format!("`{body}` has no `name`"), "add `name = \"…\"` to the `[[body]]`")
    } else if let Some((reason, hint)) = name_problem(name) {
        (format!("`{path}` is {}, which {reason}", quoted(name)), hint)
    } else if *first != path {
        let message = format!("`{path}` is `{name}`, but `{first}` is called that already");
        (message, "give each body its own name")
    } else {
        return;
    };
    checks.fail(&path, message, Some(hint));
}

/// Why a body cannot have this name, and a hint.
pub(crate) fn name_problem(name: &str) -> Option<(&'static str, &'static str)> {
    let is_good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
    if name.is_empty() || name.len() > 32 || !name.chars().all(is_good) {
        let hint = "a body's name has 1 to 32 of a to z, 0 to 9, `_` and `-`";
        return Some(("cannot be a body's name", hint));
    }
    let is_own = ["embody", "mind"].contains(&name);
    is_own.then_some(("is not a body's but the runtime's own name", "give the body another name"))
}

type Endpoint<'a> = (&'a Option<CommandLine>, &'a Option<Address>, &'a Option<CommandLine>);

/// One command or one URL, and a transport that goes with it, which is set if it is not.
fn upstream(
    path: &KeyPath,
    (command, url, token_command): Endpoint<'_>,
    transport: &mut Option<Transport>,
    checks: &mut Checks<'_>,
) -> Option<Upstream> {
    checks.command(path.key("command"), command.as_ref());
    checks.command(path.key("token_command"), token_command.as_ref());
    checks.http(path.key("url"), url.as_ref());
    let configured = *transport;
    match (command, url) {
        (Some(command), None) => {
            transport.get_or_insert(Transport::Stdio);
            check_transport(path, configured, "command", &["stdio"], checks);
            Some(Upstream::Stdio { command: command.clone() })
        }
        (None, Some(url)) => {
            let before_query = url.expose().split(['?', '#']).next().unwrap_or_default();
            let is_sse = before_query.trim_end_matches('/').ends_with("/sse");
            transport.get_or_insert(if is_sse { Transport::Sse } else { Transport::Http });
            check_transport(path, configured, "url", &["http", "sse"], checks);
            let transport = configured.or(is_sse.then_some(Transport::Sse));
            Some(Upstream::Remote { url: url.clone(), transport, token_command: token_command.clone() })
        }
        (Some(_), Some(_)) => {
            let hint = "remove one of `command` and `url`";
            checks.fail(&path.key("url"), format!("`{path}` has both `command` and `url`"), Some(hint));
            None
        }
        (None, None) => {
            if !endpoint_is_bad(path, checks) {
                let hint = "add `command = [\"…\"]` or `url = \"http://…\"`";
                let message = format!("`{path}` has neither `command` nor `url`");
                checks.fail(&path.key("command"), message, Some(hint));
            }
            None
        }
    }
}

fn endpoint_is_bad(path: &KeyPath, checks: &Checks<'_>) -> bool {
    checks.report.is_bad(&path.key("command")) || checks.report.is_bad(&path.key("url"))
}

fn check_transport(
    path: &KeyPath,
    configured: Option<Transport>,
    target: &str,
    legal: &[&str],
    checks: &mut Checks<'_>,
) {
    let name = configured.map(|transport| format!("{transport:?}").to_lowercase());
    if let Some(name) = name.filter(|name| !legal.contains(&name.as_str())) {
        let path = path.key("transport");
        let message = format!("`{path}` is `{name}`, which does not go with a `{target}`");
        checks.fail(&path, message, Some(&format!("with a `{target}` it can be `{}`", legal.join("` or `"))));
    }
}

fn policy(policy: &mut Policy, checks: &mut Checks<'_>) {
    let (wait, timeout) = (KeyPath::from("policy.ask_wait_s"), KeyPath::from("policy.ask_timeout_s"));
    if !checks.is_set(&wait) {
        policy.ask_wait_s = policy.ask_wait_s.min(policy.ask_timeout_s);
    } else if policy.ask_wait_s > policy.ask_timeout_s {
        let Policy { ask_wait_s, ask_timeout_s, .. } = policy;
        let message =
            format!("`{wait}` is `{ask_wait_s}`, which is longer than `{timeout}`, `{ask_timeout_s}`");
        let hint = match checks.is_set(&timeout) {
            true => "a call cannot wait longer than its approval lives",
            false => "a call cannot wait longer than its approval lives: set `ask_timeout_s` too",
        };
        checks.fail(&wait, message, Some(hint));
    }
    for (index, one) in policy.rules.iter().enumerate() {
        rule(&KeyPath::from("policy.rule").index(index), one, checks);
    }
}

fn rule(path: &KeyPath, rule: &Rule, checks: &mut Checks<'_>) {
    checks.all_filled(path.key("tools"), &rule.tools);
    if rule.tools.is_empty() {
        let hint = "write `tools = [\"*\"]` for a rule over every tool";
        checks.fail(&path.key("tools"), format!("`{path}` names no tools"), Some(hint));
    }
    let has_bad_effect = ["class", "gate", "via"].iter().any(|key| checks.report.is_bad(&path.key(key)));
    if rule.class.is_none() && rule.gate.is_none() && rule.via.is_none() && !has_bad_effect {
        let message = format!("`{path}` sets neither `class` nor `gate` nor `via`, so it does nothing");
        checks.fail(&path.key("gate"), message, Some("add `gate = \"ask\"`, or remove the rule"));
    }
    if rule.via.as_ref().is_some_and(Vec::is_empty) {
        let via = path.key("via");
        let message = format!("`{via}` is `[]`, so no place to approve is left");
        checks.fail(&via, message, Some("name at least one way, or use `gate = \"deny\"`"));
    }
    let condition = rule.when.as_deref().map(|text| condition(&path.key("when"), text, checks));
    // Examples cannot be checked against an incomplete rule.
    if rule.tools.is_empty() || matches!(condition, Some(None)) {
        return;
    }
    let scope = (rule.tools.as_slice(), condition.flatten());
    for (key, texts, must_match) in
        [("examples", &rule.examples, true), ("counterexamples", &rule.counterexamples, false)]
    {
        for (index, text) in texts.iter().enumerate() {
            if let Some((problem, hint)) = example_problem(text, must_match, &scope) {
                let path = path.key(key).index(index);
                checks.fail(&path, format!("`{path}` is {}, {problem}", quoted(text)), Some(hint));
            }
        }
    }
}

fn condition(path: &KeyPath, text: &str, checks: &mut Checks<'_>) -> Option<Condition> {
    checks.filled(path.clone(), Some(text));
    if text.trim().is_empty() {
        return None;
    }
    let fail = |wrong: WrongCondition| {
        let reason = mask::text(wrong.reason.lines().next().unwrap_or_default());
        let message = format!("`{path}` is {}, which is not a valid condition: {reason}", quoted(text));
        let hint = "write it like all_in_domain(args, \"example.com\"), over tool, body, args, channel, user, session";
        checks.fail(path, message, Some(hint));
    };
    Condition::new(text).map_err(fail).ok()
}

/// Which tools a rule is about, and when.
type RuleScope<'a> = (&'a [String], Option<Condition>);

/// Why a call that a rule must match does not, or the other way round, and a hint. It does not determine the decision, because
/// other rules apply too. Evaluated like `embody policy test`: channel `mcp`, as the owner.
fn example_problem(
    text: &str,
    must_match: bool,
    (tools, when): &RuleScope<'_>,
) -> Option<(String, &'static str)> {
    const FORM: &str =
        "write TOOL or BODY/TOOL, and its arguments: 'send_email {\"to\": \"bob@example.com\"}'";
    const GUARD: &str = "guard the condition, as in has(args.count) && args.count < 10";
    let change = match must_match {
        true => "change the rule or the example: the rule does not do what it was written for",
        false => "change the rule or the example: the rule does more than it was written for",
    };
    let (name, args) = text.trim().split_once(char::is_whitespace).unwrap_or((text.trim(), "{}"));
    let (body, tool) = name.split_once('/').unwrap_or(("", name));
    let args = match parse_arguments(name, args) {
        Ok(args) => args,
        Err(reason) => return Some((format!("which is not a call: {}", mask::text(&reason)), FORM)),
    };
    let facts = Facts {
        tool,
        body,
        args: args.value(),
        has_extra: false,
        channel: "mcp",
        user: "owner",
        session: "test",
    };
    let is_named = tools.iter().any(|pattern| Glob::new(pattern).matches(body, tool));
    let holds = when.as_ref().map_or(Some(true), |when| when.holds(&facts));
    let (problem, hint) = match (is_named, holds) {
        (true, Some(true)) if !must_match => ("but the rule matches it", change),
        (false, _) if must_match => ("but no pattern of `tools` names that tool", change),
        (true, Some(false)) if must_match => ("but `when` is false for it", change),
        // An undecided rule still asks and denies.
        (true, None) => ("and `when` cannot be evaluated for it", GUARD),
        _ => return None,
    };
    Some((problem.to_owned(), hint))
}

fn parse_arguments(tool: &str, args: &str) -> Result<Arguments, String> {
    if tool.is_empty() || tool.starts_with('{') {
        return Err("it names no tool".to_owned());
    }
    let raw = RawValue::from_string(args.trim().to_owned()).map_err(|error| error.to_string())?;
    Arguments::read(Some(&raw)).map_err(|error| error.to_string())
}

fn model(model: &mut Model, checks: &mut Checks<'_>) {
    let section = KeyPath::from("model");
    let (base_url, api_key_env) = match model.provider {
        Provider::OpenAi => ("https://api.openai.com/v1", "OPENAI_API_KEY"),
        Provider::Anthropic => ("https://api.anthropic.com", "ANTHROPIC_API_KEY"),
    };
    if !checks.is_set(&section.key("base_url")) {
        model.base_url = Address::new(base_url);
    }
    if !checks.is_set(&section.key("api_key_env")) {
        model.api_key_env = api_key_env.to_owned();
    }
    checks.http(section.key("base_url"), Some(&model.base_url));
    checks.variable_name(section.key("api_key_env"), &model.api_key_env);
    key_file(model, checks);
    checks.filled(section.key("model"), model.model.as_deref());
    let connect = ("connect_timeout_s", model.connect_timeout_s);
    let first_byte = ("first_byte_timeout_s", model.first_byte_timeout_s);
    let idle = ("idle_timeout_s", model.idle_timeout_s);
    let retry = ("retry_s", model.retry_s);
    let total = ("total_timeout_s", model.total_timeout_s);
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
}

/// One place of the key: the file, or the variable. The one from the stronger source wins, such as a flag.
fn key_file(model: &mut Model, checks: &mut Checks<'_>) {
    let (path, variable) = (KeyPath::from("model.api_key_file"), KeyPath::from("model.api_key_env"));
    let Some(file) = &model.api_key_file else { return };
    let text = file.to_string_lossy();
    checks.filled(path.clone(), Some(&text));
    if !embody_text::secrets::find(&text).is_empty() {
        let hint = "put the key into a file that only you can read, and write its path here";
        checks.fail(&path, format!("`{path}` is a key, not the path of a file"), Some(hint));
    }
    if !checks.is_set(&variable) {
        model.api_key_env.clear();
        return;
    }
    // Lines of a file do not make a source stronger.
    let (in_file, in_variable) = (checks.tree.origin_of(&path), checks.tree.origin_of(&variable));
    match (in_file, in_variable) {
        _ if in_file.kind() == in_variable.kind() => {
            let message = format!("both `{path}` and `{variable}` are set");
            checks.fail(&path, message, Some("remove one of them: the key is in one place"));
        }
        _ if in_file < in_variable => model.api_key_file = None,
        _ => model.api_key_env.clear(),
    }
}

/// A price must name what both kinds of tokens cost, and a limit of money needs a price for the model.
fn budget(config: &Config, checks: &mut Checks<'_>) {
    let prices = KeyPath::from("prices");
    for name in config.prices.keys() {
        let path = prices.key(name);
        for key in ["input", "output"] {
            if checks.is_set(&path.key(key)) {
                continue;
            }
            let hint =
                format!("add `{key} = …`, the price of a million tokens; 0 for a model that costs nothing");
            checks.fail(&path.key(key), format!("`{path}` has no `{key}`"), Some(&hint));
        }
    }
    let Some(model) = config.model.model.as_ref().filter(|name| !config.prices.contains_key(*name)) else {
        return;
    };
    let price = prices.key(model);
    if config.budget.needs_prices() && !checks.report.is_bad(&price) {
        let message = format!("`budget` limits money, but the model `{}` has no price", mask::text(model));
        let hint = format!(
            "add `{}` with `input` and `output`, or limit tokens with `daily_tokens`",
            price.heading()
        );
        checks.fail(&KeyPath::from("budget"), message, Some(&hint));
    }
}

fn telegram(telegram: &Telegram, checks: &mut Checks<'_>) {
    checks.variable_name("telegram.token_env", &telegram.token_env);
    checks.http("telegram.api_url", Some(&telegram.api_url));
    let path = KeyPath::from("telegram.users");
    for (id, _) in checks.tree.at(&path).into_iter().flat_map(Node::entries) {
        match user_id(id) {
            Some(number) => checks.filled(path.key(id), telegram.users.get(&number).map(String::as_str)),
            None => {
                let message = format!("`{}` in `[telegram.users]` is not a Telegram user id", shown_key(id));
                let hint = "write the number first, as in `123 = \"alice\"`";
                checks.fail(&path.key(id), message, Some(hint));
            }
        }
    }
}

fn telemetry(telemetry: &Telemetry, checks: &mut Checks<'_>) {
    checks.http("telemetry.otlp_url", telemetry.otlp_url.as_ref());
    checks.filled("telemetry.service_name", Some(&telemetry.service_name));
    for (name, value) in &telemetry.headers {
        let path = KeyPath::from("telemetry.headers").key(name);
        if HeaderName::from_bytes(name.as_bytes()).is_err() {
            let hint = "a name has letters, digits and `-`, as in `authorization`";
            checks.fail(&path, format!("`{path}` is not the name of a header"), Some(hint));
        } else if HeaderValue::from_str(value.expose()).is_err() {
            let hint = "a value is one line of plain characters";
            checks.fail(&path, format!("the value of `{path}` cannot be sent"), Some(hint));
        }
    }
}
