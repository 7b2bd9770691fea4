//! Tests of the configuration as a whole: precedence of sources, the value of every key, and the message for each mistake.

mod sections;

use std::fs;
use std::path::{Path, PathBuf};

use embody_agent::model::Provider;
use embody_broker::InstructionsMode;
use embody_broker::gate::MindDown;
use embody_broker::policy::{Class, Gate, Via};

use super::settings::{CommandLine, Sampling, Transport, Upstream};
use super::*;

/// The example of the published interface, with the placeholders filled in.
const EVERY_KEY: &str = r#"
[prompt]
layout = "tagged"
body = "prompts/agent_system.md"
fresh_last = true
extra_sections = ["user", "skills"]
budget_tokens = 9000
keep_receipts_days = 7
[prompt.sections]
soul = 500
[persona]
url = "http://127.0.0.1:1/mcp"
token_command = ["pass", "show"]
timeout_s = 3
[sandbox]
enabled = true
mode = "all"
backend = "docker"
scope = "session"
image = "box:1"
workspace_mount = "ro"
network = "disabled"
session_override = true
[store]
url = "postgres://u:pw@db/x"
direct_url = "postgres://u:pw@db:2/x"
[mind]
url = "http://127.0.0.1:1/sse"
token_command = ["t"]
observe_timeout_ms = 100
[[body]]
name = "teams"
command = ["teams", "--stdio"]
env = { TOKEN = "pw" }
cwd = "teams"
allow = ["read_*"]
deny = ["x"]
observes = true
trust_annotations = false
forward_methods = ["a/b"]
sampling = "allow"
roots = ["/srv/files"]
instructions = "rules"
[[body]]
name = "mail"
url = "https://mail.example/mcp"
transport = "sse"
token_command = ["t", "u"]
[policy]
mind_down = "warn"
ask_wait_s = 1
ask_timeout_s = 2
[[policy.rule]]
tools = ["send_*"]
class = "human_visible_write"
gate = "ask"
via = ["elicitation", "console", "cli", "telegram"]
when = '!all_in_domain(args, "example.com")'
reason = "mail leaves the building"
[model]
provider = "anthropic"
base_url = "http://127.0.0.1:9"
model = "m"
api_key_env = "KEY"
native_tools = false
[telegram]
token_env = "T"
api_url = "http://127.0.0.1:8"
allow_users = [123]
[telegram.users]
123 = "alice"
[audience]
identity = "public"
soul = "owner"
user = "user"
project = "group"
runtime = "owner"
skills = "user"
workspace_files = "user"
memories = "user"
instructions = "user"
task = "user"
persona = "public"
[log]
level = "debug"
"#;

fn inputs(workspace: &Path, env: &[(&str, &str)]) -> Inputs {
    Inputs {
        file: None,
        workspace: workspace.to_owned(),
        env: env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        overrides: Vec::new(),
    }
}

/// Loads a workspace with this file and this environment.
pub(super) fn load(text: &str, env: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let workspace = tempfile::tempdir().unwrap();
    fs::write(workspace.path().join("embody.toml"), text).unwrap();
    Config::load(inputs(workspace.path(), env))
}

/// The complete message, without the name of the test's folder.
fn printed(error: &ConfigError) -> String {
    let causes = error.causes().into_iter().map(|cause| format!("caused by: {cause}"));
    let hints = error.hints().into_iter().map(|hint| format!("hint: {hint}"));
    let lines: Vec<String> =
        std::iter::once(format!("error: {}", error.message())).chain(causes).chain(hints).collect();
    let short = lines.iter().map(|line| match (line.find(": /"), line.find("embody.toml")) {
        (Some(start), Some(end)) if start < end => format!("{}{}", &line[..start + 2], &line[end..]),
        _ => line.clone(),
    });
    short.collect::<Vec<_>>().join("\n")
}

pub(super) fn error_text(text: &str, env: &[(&str, &str)]) -> String {
    match load(text, env) {
        Ok(_) => panic!("nothing was wrong with {text:?} {env:?}"),
        Err(error) => printed(&error),
    }
}

#[test]
fn no_file_is_all_defaults() {
    let workspace = tempfile::tempdir().unwrap();
    let config = Config::load(inputs(workspace.path(), &[])).unwrap();
    assert_eq!(config.file, None);
    assert_eq!(config.prompt.layout, "channel");
    assert_eq!(config.prompt.body, workspace.path().join("prompts/agent_system.md"));
    assert!(!config.prompt.fresh_last);
    assert_eq!(config.prompt.budget_tokens, 12_000);
    assert_eq!(config.prompt.keep_receipts_days, 30);
    assert_eq!(config.persona.timeout_s, 12);
    assert_eq!(config.store.url, None);
    assert_eq!(config.mind.upstream, None);
    assert_eq!(config.mind.observe_timeout_ms, 250);
    assert_eq!(config.policy.mind_down, MindDown::Block);
    assert_eq!(config.policy.ask_wait_s, 45);
    assert_eq!(config.policy.ask_timeout_s, 300);
    assert_eq!(config.model.api_key_env, "OPENAI_API_KEY");
    assert_eq!(config.model.model, None);
    assert!(config.model.native_tools);
    assert_eq!(config.telegram.token_env, "TELEGRAM_BOT_TOKEN");
    assert_eq!(config.log.level, "info");
    assert!(
        config.bodies.is_empty()
            && config.sandbox.is_none()
            && config.audience == embody_workspace::Audiences::default()
    );
    assert!(config.keys.iter().all(|setting| setting.origin == Origin::Default));
}

#[test]
fn every_documented_key_is_understood() {
    let config = load(EVERY_KEY, &[]).unwrap();
    assert_eq!(config.prompt.layout, "tagged");
    assert_eq!(config.prompt.sections.get("soul"), Some(&500));
    assert_eq!(config.persona.url.as_ref().unwrap().expose(), "http://127.0.0.1:1/mcp");
    let command = config.persona.token_command.unwrap();
    assert_eq!(command, CommandLine { program: "pass".to_owned(), args: vec!["show".to_owned()] });
    // spec: P-05
    let sandbox = config.sandbox.unwrap();
    assert_eq!(sandbox.enabled, Some(true));
    assert_eq!((sandbox.mode.as_deref(), sandbox.network.as_deref()), (Some("all"), Some("disabled")));
    assert_eq!(sandbox.session_override.as_deref(), Some("true"));
    assert_eq!(config.store.url.unwrap().expose(), "postgres://u:pw@db/x");
    assert!(config.store.direct_url.is_some());
    assert!(matches!(config.mind.upstream, Some(Upstream::Remote { transport: Some(Transport::Sse), .. })));
    let [teams, mail] = config.bodies.as_slice() else { panic!("not two bodies") };
    assert_eq!(teams.env["TOKEN"].expose(), "pw");
    assert!(teams.cwd.as_ref().unwrap().is_absolute());
    assert!(teams.observes && teams.trust_annotations == Some(false) && teams.sampling == Sampling::Allow);
    assert!(teams.instructions == InstructionsMode::Rules && mail.instructions == InstructionsMode::Data);
    assert!(matches!(
        &mail.upstream,
        Upstream::Remote { transport: Some(Transport::Sse), token_command: Some(_), .. }
    ));
    assert!(mail.trust_annotations == Some(false) && mail.allow == ["*"] && mail.sampling == Sampling::Deny);
    let [rule] = config.policy.rules.as_slice() else { panic!("not one rule") };
    assert_eq!((rule.class, rule.gate), (Some(Class::HumanVisibleWrite), Some(Gate::Ask)));
    assert_eq!(rule.via.as_deref(), Some(&[Via::Elicitation, Via::Console, Via::Cli, Via::Telegram][..]));
    assert_eq!(config.model.provider, Provider::Anthropic);
    assert_eq!(config.telegram.users[&123], "alice");
    assert_eq!(config.audience.project, embody_prompt::Audience::Group);
    assert_eq!(config.log.level, "debug");
}

#[test]
fn every_documented_key_is_in_the_schema() {
    fn leaves(value: &toml::Value, pointer: &str, found: &mut Vec<String>) {
        match value {
            toml::Value::Table(table) => {
                for (key, value) in table {
                    leaves(value, &format!("{pointer}/properties/{key}"), found);
                }
            }
            toml::Value::Array(items) if items.iter().any(toml::Value::is_table) => {
                items.iter().for_each(|item| leaves(item, &format!("{pointer}/items"), found));
            }
            _ => found.push(pointer.to_owned()),
        }
    }
    let schema = schema::schema();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    let mut pointers = Vec::new();
    leaves(&toml::Value::Table(EVERY_KEY.parse().unwrap()), "", &mut pointers);
    assert!(pointers.len() > 60, "{pointers:?}");
    for pointer in pointers {
        let open = ["/sections/", "/env/", "/users/"].iter().find(|name| pointer.contains(*name));
        let pointer = match open {
            Some(name) => {
                pointer.split(name.trim_end_matches('/')).next().unwrap().to_owned()
                    + name.trim_end_matches('/')
            }
            None => pointer,
        };
        let key = schema.pointer(&pointer).unwrap_or_else(|| panic!("no {pointer}"));
        assert!(key["description"].is_string() && key.get("type").is_some(), "{pointer}: {key}");
    }
    assert_eq!(schema.pointer("/additionalProperties"), Some(&false.into()));
    assert!(!schema.to_string().contains("null"), "TOML has no null");
    let kinds = schema.pointer("/properties/prompt/properties/sections/propertyNames/enum").unwrap();
    assert_eq!(kinds.as_array().unwrap().len(), settings::section_kinds().len());
}

#[test]
fn stronger_sources_win_and_are_named() {
    let workspace = tempfile::tempdir().unwrap();
    let path = workspace.path().join("embody.toml");
    fs::write(&path, "[prompt]\nbudget_tokens = 300\nfresh_last = true\n\n[log]\nlevel = \"warn\"\n")
        .unwrap();
    let mut inputs = inputs(
        workspace.path(),
        &[("EMBODY_PROMPT__BUDGET_TOKENS", "400"), ("EMBODY_LOG__LEVEL", "error"), ("HOME", "/x__y")],
    );
    inputs.overrides.push(Override {
        key: "log.level".to_owned(),
        value: "trace".into(),
        flag: "--log".to_owned(),
    });
    let config = Config::load(inputs).unwrap();
    assert_eq!(config.file.as_deref(), Some(path.as_path()));
    assert_eq!((config.prompt.budget_tokens, config.log.level.as_str()), (400, "trace"));
    let file = |line| Origin::File { path: Arc::from(path.as_path()), line };
    for (key, origin) in [
        ("prompt.layout", Origin::Default),
        ("prompt.fresh_last", file(3)),
        ("prompt.budget_tokens", Origin::Env { name: "EMBODY_PROMPT__BUDGET_TOKENS".to_owned() }),
        ("log.level", Origin::Flag { name: "--log".to_owned() }),
        ("no.such.key", Origin::Default),
    ] {
        assert_eq!(config.origin(key), &origin, "{key}");
    }
}

#[test]
fn environment_sets_every_kind_of_key() {
    let config = load(
        "[[body]]\nname = \"a\"\ncommand = [\"x\"]\nallow = [\"y\"]\n",
        &[
            ("EMBODY_PROMPT__LAYOUT", "full"),
            ("EMBODY_PROMPT__FRESH_LAST", " true "),
            ("EMBODY_PROMPT__SECTIONS__SOUL", "500"),
            ("EMBODY_POLICY__ASK_WAIT_S", "10"),
            ("EMBODY_TELEGRAM__ALLOW_USERS", "[1, 0x10, -5]"),
            ("EMBODY_TELEGRAM__USERS__16", "bob"),
            ("EMBODY_BODY__0__NAME", "b"),
            ("EMBODY_BODY__0__ENV__Mixed__Case", "v = \"x"),
            ("EMBODY_BODY__1__NAME", "c"),
            ("EMBODY_BODY__1__URL", "http://h/mcp"),
            ("EMBODY_POLICY__RULE__0__TOOLS", "['send_*']"),
            ("EMBODY_POLICY__RULE__0__GATE", "deny"),
            ("EMBODY_MODEL__MODEL", "12"),
            ("EMBODY_SANDBOX__NETWORK", "false"),
            ("EMBODY_WORKSPACE", "/elsewhere"),
            ("EMBODY_USER", "u"),
            ("NOT_EMBODY_X__Y", "1"),
        ],
    )
    .unwrap();
    assert_eq!(config.prompt.layout, "full");
    assert!(config.prompt.fresh_last);
    assert_eq!(config.prompt.sections["soul"], 500);
    assert_eq!(config.policy.ask_wait_s, 10);
    assert_eq!(config.telegram.allow_users, [1, 16, -5]);
    assert_eq!(config.telegram.users[&16], "bob");
    assert_eq!(config.bodies.iter().map(|body| body.name.as_str()).collect::<Vec<_>>(), ["b", "c"]);
    assert_eq!(config.bodies[0].env["Mixed__Case"].expose(), "v = \"x");
    assert_eq!(config.bodies[0].allow, ["y"]);
    assert_eq!(config.policy.rules[0].gate, Some(Gate::Deny));
    assert_eq!(config.model.model.as_deref(), Some("12"));
    assert_eq!(config.sandbox.as_ref().unwrap().network.as_deref(), Some("false"));
    assert_eq!(config.origin("body[0].name"), &Origin::Env { name: "EMBODY_BODY__0__NAME".to_owned() });
    assert_eq!(config.origin("body[0].allow").kind(), "file");
}

#[test]
fn persona_variables_override_the_file_and_yield_to_embody_variables() {
    // spec: B-07
    let file = "[persona]\nurl = \"http://file\"\ntoken_command = [\"file\"]\n";
    let outside =
        [("PERSONA_SATI_MCP_URL", "http://outside"), ("PERSONA_SATI_MCP_TOKEN_COMMAND", "pass 'a b' \"c\"")];
    let config = load(file, &outside).unwrap();
    assert_eq!(config.persona.url.unwrap().expose(), "http://outside");
    let command = config.persona.token_command.unwrap();
    assert_eq!((command.program.as_str(), command.args), ("pass", vec!["a b".to_owned(), "c".to_owned()]));

    let ours = [
        ("EMBODY_PERSONA__URL", "http://ours"),
        ("EMBODY_PERSONA__TOKEN_COMMAND", "[\"ours\"]"),
        outside[0],
        outside[1],
    ];
    let config = load(file, &ours).unwrap();
    assert_eq!(config.persona.url.unwrap().expose(), "http://ours");
    assert_eq!(config.persona.token_command.unwrap().program, "ours");

    let empty = [("PERSONA_SATI_MCP_URL", ""), ("PERSONA_SATI_MCP_TOKEN_COMMAND", " ")];
    assert_eq!(load(file, &empty).unwrap().persona.url.unwrap().expose(), "http://file");
}

/// A file with one mistake, and the complete message.
const MISTAKES: &[(&str, &str)] = &[
    (
        "[prompt]\nlayout = \"ful\"",
        "error: embody.toml:2: `prompt.layout` is `ful`, but must be one of body, full, tagged, channel\nhint: did you mean `full` for `prompt.layout`?",
    ),
    (
        "\n[prompt]\nlayot = 1",
        "error: embody.toml:3: unknown key `layot` in `[prompt]`\nhint: did you mean `layout` instead of `layot`?",
    ),
    (
        "[prompt]\ncolour = 1",
        "error: embody.toml:2: unknown key `colour` in `[prompt]`\nhint: the keys of `[prompt]` are body, budget_tokens, extra_sections, fresh_last, keep_receipts_days, layout, sections",
    ),
    (
        "[promt]",
        "error: embody.toml:1: unknown section `promt`\nhint: did you mean `prompt` instead of `promt`?",
    ),
    (
        "layout = \"full\"",
        "error: embody.toml:1: unknown key `layout`\nhint: `layout` belongs below `[prompt]`",
    ),
    (
        "[prompt]\nbudget_tokens = 199",
        "error: embody.toml:2: `prompt.budget_tokens` is `199`, but must be from 200 to 10000000",
    ),
    (
        "[prompt]\nbudget_tokens = 99999999999999999999",
        "error: embody.toml:2: `prompt.budget_tokens` is `99999999999999999999`, which is too large",
    ),
    (
        "[prompt]\nbudget_tokens = \"500\"",
        "error: embody.toml:2: `prompt.budget_tokens` is `\"500\"`, but must be a whole number\nhint: write `prompt.budget_tokens` without quotes",
    ),
    (
        "[prompt]\nbudget_tokens = \"many\"",
        "error: embody.toml:2: `prompt.budget_tokens` is `\"many\"`, but must be a whole number",
    ),
    (
        "[prompt]\nbudget_tokens = 1_000.5e1",
        "error: embody.toml:2: `prompt.budget_tokens` is `10005.0`, but must be a whole number",
    ),
    (
        "[log]\nlevel = -inf",
        "error: embody.toml:2: `log.level` is `-inf`, but must be one of error, warn, info, debug, trace\nhint: write one of these words in quotes, as in `\"error\"`",
    ),
    (
        "[prompt]\nlayout = 2020-01-01",
        "error: embody.toml:2: `prompt.layout` is `2020-01-01`, but must be one of body, full, tagged, channel\nhint: write one of these words in quotes, as in `\"body\"`",
    ),
    (
        "[prompt.sections]\nsouls = 1",
        "error: embody.toml:2: unknown key `souls` in `[prompt.sections]`\nhint: did you mean `soul` instead of `souls`?",
    ),
    (
        "[body]\nname = \"a\"",
        "error: embody.toml:1: `body` is a table, but must be a list of tables\nhint: head each entry `[[body]]`",
    ),
    ("[[log]]", "error: embody.toml:1: `log` is a list, but must be a table\nhint: head it `[log]`"),
    (
        "\n[[body]]\nname = \"a\"",
        "error: embody.toml:2: `body[0]` has neither `command` nor `url`\nhint: add `command = [\"…\"]` or `url = \"http://…\"`",
    ),
    (
        "[[body]]\nurl = \"http://h\"",
        "error: embody.toml:1: `body[0]` has no `name`\nhint: add `name = \"…\"` to the `[[body]]`",
    ),
    (
        "[[body]]\nname = \"A b\"\nurl = \"http://h\"",
        "error: embody.toml:2: `body[0].name` is `A b`, which cannot be a body's name\nhint: a body's name has 1 to 32 of a to z, 0 to 9, `_` and `-`",
    ),
    (
        "[[body]]\nname = \"mind\"\nurl = \"http://h\"",
        "error: embody.toml:2: `body[0].name` is `mind`, which is not a body's but the runtime's own name\nhint: give the body another name",
    ),
    (
        "[[body]]\nname = \"embody\"\nurl = \"http://h\"",
        "error: embody.toml:2: `body[0].name` is `embody`, which is not a body's but the runtime's own name\nhint: give the body another name",
    ),
    (
        "[[body]]\nname = \"a\"\nurl = \"http://h\"\n[[body]]\nname = \"a\"\nurl = \"http://h\"",
        "error: embody.toml:5: `body[1].name` is `a`, but `body[0].name` is called that already\nhint: give each body its own name",
    ),
    (
        "[[body]]\nname = \"a\"\nurl = \"http://h\"\ncommand = [\"x\"]",
        "error: embody.toml:3: `body[0]` has both `command` and `url`\nhint: remove one of `command` and `url`",
    ),
    (
        "[[body]]\nname = \"a\"\nurl = \"http://h\"\ntransport = \"stdio\"",
        "error: embody.toml:4: `body[0].transport` is `stdio`, which does not go with a `url`\nhint: with a `url` it can be `http` or `sse`",
    ),
    (
        "[[body]]\nname = \"a\"\ncommand = [\"x\"]\ntransport = \"sse\"",
        "error: embody.toml:4: `body[0].transport` is `sse`, which does not go with a `command`\nhint: with a `command` it can be `stdio`",
    ),
    (
        "[[body]]\nname = \"a\"\ncommand = []",
        "error: embody.toml:3: `body[0].command` is `[]`, which names no program\nhint: write the program and its arguments as separate texts, or remove the key",
    ),
    // An invalid command is reported once, not also as missing.
    (
        "[[body]]\nname = \"a\"\ncommand = [\"x\", 1]",
        "error: embody.toml:3: `body[0].command[1]` is a single value, but must be text\nhint: put `body[0].command[1]` in quotes",
    ),
    (
        "[mind]\ntransport = \"http\"",
        "error: embody.toml:2: `mind.transport` is set, but neither `mind.url` nor `mind.command` is\nhint: say where the mind is, or remove the key for the embedded one",
    ),
    (
        "[[policy.rule]]\ngate = \"ask\"",
        "error: embody.toml:1: `policy.rule[0]` names no tools\nhint: write `tools = [\"*\"]` for a rule over every tool",
    ),
    (
        "[[policy.rule]]\ntools = [\"x\"]",
        "error: embody.toml:1: `policy.rule[0]` sets neither `class` nor `gate` nor `via`, so it does nothing\nhint: add `gate = \"ask\"`, or remove the rule",
    ),
    (
        "[[policy.rule]]\ntools = [\"x\"]\ngate = \"aks\"",
        "error: embody.toml:3: `policy.rule[0].gate` is `aks`, but must be one of allow, ask, deny\nhint: did you mean `ask` for `policy.rule[0].gate`?",
    ),
    (
        "[[policy.rule]]\ntools = [\"x\"]\ngate = \"ask\"\nwhen = \"arg.to == 1\"",
        "error: embody.toml:4: `policy.rule[0].when` is `arg.to == 1`, which is not a valid condition: unknown variable `arg`; the variables are tool, body, args, channel, user, session\nhint: write it like all_in_domain(args, \"example.com\"), over tool, body, args, channel, user, session",
    ),
    (
        "[[policy.rule]]\ntools = [\"x\"]\ngate = \"ask\"\nwhen = \"args.to ==\"",
        "error: embody.toml:4: `policy.rule[0].when` is `args.to ==`, which is not a valid condition: mismatched input '<EOF>' at 1:11\nhint: write it like all_in_domain(args, \"example.com\"), over tool, body, args, channel, user, session",
    ),
    (
        "[[policy.rule]]\ntools = [\"x\"]\nvia = []",
        "error: embody.toml:3: `policy.rule[0].via` is `[]`, so no place to approve is left\nhint: name at least one way, or use `gate = \"deny\"`",
    ),
    (
        "[store]\ndirect_url = \"postgres://h\"",
        "error: embody.toml:2: `store.direct_url` is set, but `store.url` is not a PostgreSQL address\nhint: set `store.url` to a postgres:// address, or remove `direct_url`",
    ),
    (
        "[telegram.users]\nalice = \"123\"",
        "error: embody.toml:2: `alice` in `[telegram.users]` is not a Telegram user id\nhint: write the number first, as in `123 = \"alice\"`",
    ),
    (
        "[persona]\nurl = \"\"",
        "error: embody.toml:2: `persona.url` is ``, which is not an http:// or https:// address",
    ),
    (
        "[prompt]\nbody = \"a\\u0000b\"",
        "error: embody.toml:2: `prompt.body` holds a NUL character, which no program takes",
    ),
];

#[test]
fn each_mistake_has_its_message() {
    for (text, answer) in MISTAKES {
        assert_eq!(error_text(text, &[]), *answer, "{text}");
    }
}

/// A variable, its invalid value, and the complete message.
const WRONG_VARIABLES: &[(&str, &str, &str)] = &[
    (
        "EMBODY_PROMPT__LAYOT",
        "full",
        "error: EMBODY_PROMPT__LAYOT: this variable names no key\nhint: did you mean `EMBODY_PROMPT__LAYOUT` instead of `EMBODY_PROMPT__LAYOT`?",
    ),
    (
        "EMBODY__PROMPT__LAYOUT",
        "full",
        "error: EMBODY__PROMPT__LAYOUT: this variable names no key\nhint: did you mean `EMBODY_PROMPT__LAYOUT` instead of `EMBODY__PROMPT__LAYOUT`?",
    ),
    (
        "EMBODY_PROMPT__SECTIONS__SOULS",
        "1",
        "error: EMBODY_PROMPT__SECTIONS__SOULS: this variable names no key\nhint: did you mean `EMBODY_PROMPT__SECTIONS__SOUL` instead of `EMBODY_PROMPT__SECTIONS__SOULS`?",
    ),
    (
        "EMBODY_PROMPT__LAYOUT__X",
        "full",
        "error: EMBODY_PROMPT__LAYOUT__X: this variable names no key\nhint: did you mean `EMBODY_PROMPT__LAYOUT`?",
    ),
    (
        "EMBODY_BODY__FIRST__NAME",
        "x",
        "error: EMBODY_BODY__FIRST__NAME: this variable names no key\nhint: after `EMBODY_BODY__` comes the number of an entry, counted from 0",
    ),
    (
        "EMBODY_BODY__00__NAME",
        "x",
        "error: EMBODY_BODY__00__NAME: this variable names no key\nhint: after `EMBODY_BODY__` comes the number of an entry, counted from 0",
    ),
    (
        "EMBODY_BODY__18446744073709551615__NAME",
        "x",
        "error: EMBODY_BODY__18446744073709551615__NAME: `body[18446744073709551615].name` names entry 18446744073709551615, but there are only 0\nhint: entries count from 0, without gaps",
    ),
    (
        "EMBODY_LOG__COLOUR",
        "x",
        "error: EMBODY_LOG__COLOUR: this variable names no key\nhint: after `EMBODY_LOG__` may come LEVEL",
    ),
    (
        "EMBODY_LOG__LEVEL",
        "",
        "error: EMBODY_LOG__LEVEL: `log.level` is ``, but must be one of error, warn, info, debug, trace",
    ),
    (
        "EMBODY_POLICY__ASK_WAIT_S",
        "soon",
        "error: EMBODY_POLICY__ASK_WAIT_S: `policy.ask_wait_s` is `\"soon\"`, but must be a whole number",
    ),
    (
        "EMBODY_POLICY__ASK_WAIT_S",
        "1\n[log]",
        "error: EMBODY_POLICY__ASK_WAIT_S: `policy.ask_wait_s` is `\"\"\"\\n1\\n[log]\"\"\"`, but must be a whole number",
    ),
    (
        "EMBODY_POLICY__ASK_WAIT_S",
        "-1",
        "error: EMBODY_POLICY__ASK_WAIT_S: `policy.ask_wait_s` is `-1`, but must be from 0 to 604800",
    ),
    (
        "EMBODY_PERSONA__TOKEN_COMMAND",
        "pass show",
        "error: EMBODY_PERSONA__TOKEN_COMMAND: `persona.token_command` is a single value, but must be a list\nhint: write `persona.token_command` as a list like `[\"one\", \"two\"]`",
    ),
    (
        "EMBODY_TELEGRAM__ALLOW_USERS",
        "1,2",
        "error: EMBODY_TELEGRAM__ALLOW_USERS: `telegram.allow_users` is `\"1,2\"`, but must be a list\nhint: write `telegram.allow_users` as a list like `[1, 2]`",
    ),
    (
        "PERSONA_SATI_MCP_TOKEN_COMMAND",
        "pass 'x",
        "error: PERSONA_SATI_MCP_TOKEN_COMMAND: `persona.token_command` cannot be split into words\nhint: close every quote",
    ),
    (
        "PERSONA_SATI_MCP_URL",
        "ftp://h",
        "error: PERSONA_SATI_MCP_URL: `persona.url` is `ftp://h`, which is not an http:// or https:// address",
    ),
];

#[test]
fn wrong_variables_are_named() {
    for (name, value, answer) in WRONG_VARIABLES {
        assert_eq!(error_text("", &[(*name, *value)]), *answer, "{name}={value}");
    }
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let text =
        "[prompt]\nlayot = 1\nbudget_tokens = 1\n[[body]]\nurl = \"x\"\n[policy]\nmind_down = \"no\"\n";
    let error = load(text, &[("EMBODY_LOG__LEVEL", "loud")]).unwrap_err();
    let keys: Vec<&str> = error.problems().iter().map(|problem| problem.key.as_deref().unwrap()).collect();
    assert_eq!(
        keys,
        [
            "prompt.layot",
            "prompt.budget_tokens",
            "body[0].name",
            "body[0].url",
            "policy.mind_down",
            "log.level"
        ]
    );
    assert_eq!(error.message(), "the configuration has 6 problems");
    assert_eq!(error.causes().len(), 6);
}

#[test]
fn a_wrong_file_value_is_reported_although_a_variable_overrides_it() {
    let answer = error_text("[log]\nlevel = \"loud\"", &[("EMBODY_LOG__LEVEL", "info")]);
    assert!(answer.starts_with("error: embody.toml:2: `log.level` is `loud`"), "{answer}");
}

#[test]
fn flags_are_checked_and_named() {
    for (key, value, answer) in [
        ("store.url", "mysql://u:pw@h", "--store: `store.url` is `mysql://***@h`, which is neither"),
        ("log.level", "loud", "--store: `log.level` is `loud`"),
        ("log.volume", "x", "--store: unknown key `volume` in `[log]`"),
    ] {
        let workspace = tempfile::tempdir().unwrap();
        let mut inputs = inputs(workspace.path(), &[]);
        let flag = "--store".to_owned();
        inputs.overrides.push(Override { key: key.to_owned(), value: value.into(), flag });
        let error = Config::load(inputs).unwrap_err();
        assert!(error.message().starts_with(answer), "{}", error.message());
    }
}

#[test]
fn broken_toml_shows_line_and_column_and_no_secret() {
    for (text, answer) in [
        ("[prompt]\r\nlayout = full\r\n", "embody.toml:2: invalid TOML at column 10: "),
        ("\u{feff}[prompt", "embody.toml:1: invalid TOML at column 8: "),
        ("[log]\n[log]\n", "embody.toml:2: invalid TOML at column 2: duplicate key"),
        (
            "[log]\nlevel = \"info\"\nlevel = \"warn\"\n",
            "embody.toml:3: invalid TOML at column 1: duplicate key",
        ),
        ("[log]\nlévél = 1\n", "embody.toml:2: invalid TOML at column"),
    ] {
        let message = error_text(text, &[]);
        assert!(message.starts_with(&format!("error: {answer}")), "{message}");
        assert!(message.contains("\ncaused by: line "), "{message}");
        assert!(message.contains("\nhint: "), "{message}");
    }
    assert!(error_text("[prompt]\nlayout = full", &[]).contains("caused by: line 2 reads `layout = full`"));
    for secret in [
        "[store]\nurl = \"postgres://u:pw@h\" x",
        "[store]\nurl = \"postgres://u:\"pw@h\"",
        "[[body]]\nenv = { TOKEN = \"pw\" ",
        "[body.env]\nTOKEN = \"pw",
        "[body.env]\nTOKEN: pw",
    ] {
        let answer = error_text(secret, &[]);
        assert!(!answer.contains("pw"), "{answer}");
    }
    let both = error_text("a = \nb = 1\nc = [\n", &[]);
    assert!(both.contains("embody.toml:1:") && both.contains("the configuration has 2 problems"), "{both}");
}

#[test]
fn no_message_contains_a_secret() {
    for (text, env) in [
        ("[store]\nurl = \"mysql://u:pw@h/x?password=pw\"", ("A", "")),
        ("[store]\nurl = \"u:pw@h\"", ("A", "")),
        ("[store]\nurl = \"host=h password=pw\"", ("A", "")),
        ("[store]\nurl = \"postgres://u:p w\\\"pw@h\"", ("A", "")),
        ("[persona]\nurl = \"http://u:pw@/\"", ("A", "")),
        ("[model]\napi_key_env = \"sk-pw\"", ("A", "")),
        ("[telegram]\ntoken_env = \"123:pw\"", ("A", "")),
        ("[[body]]\nname = \"a\"\nurl = \"http://h\"\nenv = \"TOKEN=pw\"", ("A", "")),
        ("[[body]]\nname = \"a\"\nurl = \"http://h\"\nenv = { TOKEN = [\"pw\"] }", ("A", "")),
        ("[[body]]\nname = \"a\"\nurl = \"http://h\"\n", ("EMBODY_BODY__0__ENV", "TOKEN=pw")),
        ("", ("EMBODY_BODY__0", "{ env = { TOKEN = \"pw\" }")),
        ("", ("EMBODY_STORE__URL", "mysql://u:pw@h")),
        ("", ("EMBODY_STORE__URL__X", "pw")),
    ] {
        let answer = error_text(text, &[env]);
        assert!(!answer.contains("pw"), "{answer}");
    }
}

#[test]
fn shown_keys_and_debug_contain_no_secret() {
    let text = EVERY_KEY.replace("[\"pass\", \"show\"]", "[\"curl\", \"https://u:pw@h/x?pw\"]");
    // The name of a temporary folder may contain `pw`, but no hyphen.
    let text = text.replace("pw", "p-w");
    let config = load(&text, &[]).unwrap();
    let value = |key: &str| {
        let setting = config.keys.iter().find(|setting| setting.key == key);
        setting.unwrap_or_else(|| panic!("no {key}")).value.to_string()
    };
    assert_eq!(value("store.url"), "\"postgres://***@db/x\"");
    assert_eq!(value("body[0].env.TOKEN"), "\"***\"");
    assert_eq!(value("persona.token_command"), "[\"curl\", \"***\"]");
    assert_eq!(value("mind.transport"), "\"sse\"");
    assert_eq!(value("body[0].transport"), "\"stdio\"");
    assert_eq!(value("body[1].trust_annotations"), "false");
    assert_eq!(value("policy.rule[0].gate"), "\"ask\"");
    // Commands are shown by design; the secret parts of URLs in them must be masked too.
    let debug = format!("{:?} {:?} {:?}", config.store, config.bodies, config.keys);
    assert!(!debug.contains("p-w"), "{debug}");
}

#[test]
fn files_that_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("latin1.toml"), b"[log]\nlevel = \"\xe9\"\n").unwrap();
    fs::write(at("large.toml"), vec![b'#'; 1024 * 1024 + 1]).unwrap();
    fs::write(at("just.toml"), vec![b'#'; 1024 * 1024]).unwrap();
    let load = |file: PathBuf| {
        let inputs = Inputs { file: Some(file), ..inputs(folder.path(), &[]) };
        Config::load(inputs)
    };
    assert!(load(at("just.toml")).is_ok());
    for (file, answer) in [
        (at("missing.toml"), "does not exist"),
        (folder.path().to_owned(), "is a folder"),
        (PathBuf::from("/dev/zero"), "is not a regular file"),
        (at("large.toml"), "is larger than 1048576 bytes"),
        (at("latin1.toml"), "is not UTF-8 text: line 2 has a wrong byte"),
        (at("just.toml/x"), "cannot be read"),
    ] {
        let message = load(file.clone()).unwrap_err().message();
        assert!(message.contains(answer) && message.contains(&file.display().to_string()), "{message}");
    }
}

#[cfg(unix)]
#[test]
fn a_dangling_link_is_an_error() {
    let workspace = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/nowhere/at/all", workspace.path().join("embody.toml")).unwrap();
    let error = Config::load(inputs(workspace.path(), &[])).unwrap_err();
    assert!(error.message().contains("does not exist"), "{error}");
}

#[test]
fn noise_is_rejected_with_a_bounded_message() {
    let long_key = format!("[prompt]\n{} = 1", "k".repeat(900_000));
    let many_keys: String = (0..50_000).map(|n| format!("k{n} = 1\n")).collect();
    let many_bodies = "[[body]]\n".repeat(70);
    let long_value = format!("[prompt]\nlayout = \"{}\"", "é".repeat(300_000));
    for (text, count) in [
        (long_key, 1),
        (many_keys, 50_000),
        (many_bodies, 1),
        (long_value, 1),
        (vec!["a"; 400_000].join(".") + " = 1", 1),
        (format!("a = {}", "[".repeat(400_000)), 1),
        ("\u{0}".to_owned(), 1),
        ("[prompt]\n\"lay\\u001b[31mout\" = 1".to_owned(), 1),
        ("[prompt]\nlayout = \"\\u001b[31m\\u202e\"".to_owned(), 1),
    ] {
        let start: String = text.chars().take(40).collect();
        let error = load(&text, &[]).unwrap_err();
        assert_eq!(error.count(), count, "{start:?}");
        let answer = printed(&error);
        assert!(answer.len() < 20_000, "{start:?}: {}", answer.len());
        assert!(!answer.contains(['\u{1b}', '\u{202e}', '\0']), "{answer:?}");
    }
}

#[test]
fn harmless_oddities_are_fine() {
    for text in [
        "",
        "\u{feff}",
        "# only a comment",
        "\r\n[prompt]\r\nlayout = 'full'\r\n",
        "prompt.layout = \"full\"",
        "prompt = { layout = \"full\" }",
        "\"prompt\".\"layout\" = \"full\"",
        "body = []",
        "[prompt]\nbudget_tokens = 12_000",
        "[prompt]\nbudget_tokens = 0x1_000",
        "[[body]]\nname = \"a\"\nurl = \"HTTP://[::1]:80/mcp\"\n[body.env]\nA = \"b\"",
        "[store]\nurl = \"sqlite:///tmp/x.db\"",
        "[sandbox]\nnetwork = false\nimage = \"\"",
    ] {
        assert!(
            load(text, &[]).is_ok(),
            "{text:?}: {}",
            load(text, &[]).err().map(|e| printed(&e)).unwrap_or_default()
        );
    }
}
