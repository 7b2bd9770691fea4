//! Tests of single sections, of shared environment variables, and of the generated reference page and template.

use embody_broker::upstream::BodyUsers;

use super::super::reference::reference_markdown;
use super::super::schema::{self, Shape};
use super::super::settings::{Model, Roots};
use super::super::{Config, ConfigError, TEMPLATE};
use super::{error_text, load};

fn load_policy(text: &str) -> Result<Config, ConfigError> {
    load(&format!("[policy]\n{text}\n"), &[])
}

#[test]
fn the_default_wait_is_shortened_to_a_configured_timeout() {
    for (text, wait, timeout) in [
        ("", 45, 300),
        ("ask_timeout_s = 5", 5, 5),
        ("ask_wait_s = 300", 300, 300),
        ("ask_wait_s = 0", 0, 300),
        ("ask_wait_s = 7\nask_timeout_s = 7", 7, 7),
        ("ask_wait_s = 400\nask_timeout_s = 400", 400, 400),
    ] {
        let policy = load_policy(text).unwrap().policy;
        assert_eq!((policy.ask_wait_s, policy.ask_timeout_s), (wait, timeout), "{text}");
    }
}

#[test]
fn a_wait_longer_than_the_timeout_of_an_approval_is_rejected() {
    const HINT: &str = "a call cannot wait longer than its approval lives";
    for (text, wait, timeout, hint) in [
        ("ask_wait_s = 9\nask_timeout_s = 8", 9, 8, HINT.to_owned()),
        // The default counts too.
        ("ask_wait_s = 400", 400, 300, format!("{HINT}: set `ask_timeout_s` too")),
    ] {
        let error = load_policy(text).unwrap_err();
        let words = format!(
            "embody.toml:2: `policy.ask_wait_s` is `{wait}`, which is longer than `policy.ask_timeout_s`, `{timeout}`"
        );
        assert!(error.message().ends_with(&words), "{}", error.message());
        assert_eq!(error.hints(), [hint]);
    }
}

fn load_model(text: &str) -> Result<Config, ConfigError> {
    load(&format!("[model]\n{text}\n"), &[])
}

#[test]
fn model_timeouts_are_in_seconds() {
    let all = |model: Model| {
        let Model { connect_timeout_s, first_byte_timeout_s, idle_timeout_s, .. } = model;
        [connect_timeout_s, first_byte_timeout_s, idle_timeout_s, model.total_timeout_s, model.retry_s]
    };
    assert_eq!(all(load_model("").unwrap().model), [None; 5]);
    let text = "connect_timeout_s = 1\nfirst_byte_timeout_s = 900\nidle_timeout_s = 30\ntotal_timeout_s = 86400\nretry_s = 0";
    assert_eq!(all(load_model(text).unwrap().model), [1, 900, 30, 86_400, 0].map(Some));
}

#[test]
fn model_timeouts_out_of_range_are_reported() {
    for (text, words) in [
        ("connect_timeout_s = 0", "`model.connect_timeout_s` is `0`, but must be from 1 to 600"),
        ("first_byte_timeout_s = 0", "`model.first_byte_timeout_s` is `0`, but must be from 1 to 86400"),
        ("idle_timeout_s = -1", "`model.idle_timeout_s` is `-1`, but must be from 1 to 86400"),
        ("total_timeout_s = 86401", "`model.total_timeout_s` is `86401`, but must be from 1 to 86400"),
        ("retry_s = 3601", "`model.retry_s` is `3601`, but must be from 0 to 3600"),
        ("total_timeout_s = 1.5", "`model.total_timeout_s` is `1.5`, but must be a whole number"),
        ("idle_timeout_s = \"1m\"", "`model.idle_timeout_s` is `\"1m\"`, but must be a whole number"),
        (
            "first_byte_timeout_s = 61\ntotal_timeout_s = 60",
            "`model.first_byte_timeout_s` is `61`, which is longer than `model.total_timeout_s`, `60`",
        ),
        (
            "idle_timeout_s = 61\ntotal_timeout_s = 60",
            "`model.idle_timeout_s` is `61`, which is longer than `model.total_timeout_s`, `60`",
        ),
        (
            "connect_timeout_s = 61\nfirst_byte_timeout_s = 60",
            "`model.connect_timeout_s` is `61`, which is longer than `model.first_byte_timeout_s`, `60`",
        ),
        (
            "connect_timeout_s = 61\ntotal_timeout_s = 60",
            "`model.connect_timeout_s` is `61`, which is longer than `model.total_timeout_s`, `60`",
        ),
        (
            "retry_s = 61\ntotal_timeout_s = 60",
            "`model.retry_s` is `61`, which is longer than `model.total_timeout_s`, `60`",
        ),
    ] {
        let error = load_model(text).unwrap_err();
        assert!(error.message().contains(words), "{text}: {}", error.message());
    }
    for text in [
        "connect_timeout_s = 60\nfirst_byte_timeout_s = 60\nidle_timeout_s = 60\nretry_s = 60\ntotal_timeout_s = 60",
        "first_byte_timeout_s = 1",
        "total_timeout_s = 1",
        "connect_timeout_s = 600",
        "retry_s = 3600",
    ] {
        load_model(text).unwrap();
    }
}

const FOR_EVE: &str = "when = 'args.to == \"eve\"'\n";

/// A rule for `send_*` with these additional lines.
fn load_rule(more: &str) -> Result<Config, ConfigError> {
    load(&format!("[[policy.rule]]\ntools = [\"send_*\"]\ngate = \"ask\"\n{more}"), &[])
}

// spec: N-10
#[test]
fn matching_examples_are_accepted() {
    load_rule("examples = [\"send_email\", 'mail/send_note {\"n\": 1}']\ncounterexamples = [\"whoami {}\"]")
        .unwrap();
    let calls =
        "examples = ['send_email {\"to\": \"eve\"}']\ncounterexamples = ['send_email {\"to\": \"bob\"}']";
    load_rule(&format!("{FOR_EVE}{calls}")).unwrap();
}

// spec: N-10
#[test]
fn a_wrong_example_is_reported_with_its_line() {
    let for_eve = |more: &str| format!("{FOR_EVE}{more}");
    let other = "examples = [\"send_email\", \"draft {}\"]".to_owned();
    let no_call = "examples = ['{\"tool\": \"x\"}', \"send_email {\", \"send_email [1]\"]".to_owned();
    for (more, line, key, what) in [
        (other, 4, "examples[1]` is `draft {}`", "no pattern of `tools` names that tool"),
        (for_eve("examples = ['send_a {\"to\": \"bob\"}']"), 5, "examples[0]`", "but `when` is false for it"),
        (for_eve("examples = [\"send_a\"]"), 5, "examples[0]`", "and `when` cannot be evaluated for it"),
        (
            for_eve("counterexamples = ['send_a {\"to\": \"eve\"}']"),
            5,
            "counterexamples[0]`",
            "but the rule matches it",
        ),
        (for_eve("counterexamples = [\"send_a\"]"), 5, "counterexamples[0]`", "cannot be evaluated for it"),
        (no_call.clone(), 4, "examples[0]`", "which is not a call: it names no tool"),
        (no_call.clone(), 4, "examples[1]`", "which is not a call: EOF while parsing"),
        (no_call, 4, "examples[2]`", "which is not a call: "),
    ] {
        let error = load_rule(&more).unwrap_err();
        let messages: Vec<String> = error.problems().iter().map(ToString::to_string).collect();
        let line = format!("embody.toml:{line}: `policy.rule[0].{key}");
        assert!(
            messages.iter().any(|one| one.contains(&line) && one.contains(what)),
            "{more}: {messages:#?}"
        );
    }
}

#[test]
fn examples_of_an_invalid_rule_are_not_checked() {
    let error = load_rule("when = \"args.to ==\"\nexamples = [\"draft\"]").unwrap_err();
    assert_eq!(error.problems().len(), 1, "{}", error.message());
}

fn url(config: &Config) -> Option<&str> {
    config.telemetry.otlp_url.as_ref().map(|url| url.expose())
}

#[test]
fn traces_are_off_without_a_url() {
    let config = load("", &[]).unwrap();
    assert_eq!(url(&config), None);
    assert_eq!((config.telemetry.service_name.as_str(), config.telemetry.sample_percent), ("embody", 100));
    let text = "[telemetry]\notlp_url = \"http://u:pw@127.0.0.1:4318\"\nsample_percent = 5\nheaders = { x-key = \"hunter2\" }\n";
    let config = load(text, &[]).unwrap();
    assert_eq!(config.telemetry.sample_percent, 5);
    let (name, value) = config.telemetry.headers.first_key_value().unwrap();
    assert_eq!((name.as_str(), value.expose()), ("x-key", "hunter2"));
    let shown = format!("{:?} {:?}", config.keys, config.telemetry);
    assert!(!shown.contains("hunter2") && !shown.contains("pw"), "{shown}");
}

#[test]
fn shared_variables_override_the_file_and_yield_to_embody_variables() {
    let file = "[telemetry]\notlp_url = \"http://file\"\nservice_name = \"file\"\n";
    let shared = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://shared:4318"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20a%2Cb, x-team = blue,broken,bad name=1,y=%zz"),
        ("OTEL_SERVICE_NAME", "shared"),
    ];
    let config = load(file, &shared).unwrap();
    assert_eq!(
        (url(&config), config.telemetry.service_name.as_str()),
        (Some("http://shared:4318"), "shared")
    );
    let headers: Vec<(&str, &str)> =
        config.telemetry.headers.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
    assert_eq!(headers, [("authorization", "Bearer a,b"), ("x-team", "blue")]);
    assert_eq!(config.origin("telemetry.otlp_url").to_string(), "env OTEL_EXPORTER_OTLP_ENDPOINT");
    // Credentials are not sent to another collector.
    let secret = format!("{file}headers = {{ x-key = \"hunter2\" }}\n");
    assert!(load(&secret, &shared[..1]).unwrap().telemetry.headers.is_empty());
    let config = load(&secret, &shared[1..2]).unwrap();
    assert_eq!((url(&config), config.telemetry.headers.len()), (Some("http://file"), 1));
    let ours = [shared[0], ("EMBODY_TELEMETRY__OTLP_URL", "http://ours")];
    assert_eq!(url(&load(file, &ours).unwrap()), Some("http://ours"));
}

#[test]
fn unusable_shared_variables_are_ignored() {
    let good = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://shared:4317");
    for env in [
        vec![("OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4317")],
        vec![("OTEL_EXPORTER_OTLP_ENDPOINT", "")],
        vec![good, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")],
        vec![good, ("OTEL_TRACES_EXPORTER", "none")],
        vec![good, ("OTEL_SDK_DISABLED", "true")],
    ] {
        assert_eq!(url(&load("", &env).unwrap()), None, "{env:?}");
    }
    let env = [good, ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"), ("OTEL_TRACES_EXPORTER", "otlp")];
    assert_eq!(url(&load("", &env).unwrap()), Some("http://shared:4317"));
}

#[test]
fn invalid_telemetry_is_reported_without_secrets() {
    for (text, words) in [
        (
            "otlp_url = \"collector:4318\"",
            "`telemetry.otlp_url` is `collector:4318`, which is not an http://",
        ),
        ("service_name = \" \"", "`telemetry.service_name` is"),
        ("sample_percent = 101", "telemetry.sample_percent"),
        ("headers = { \"a b\" = \"hunter2\" }", "is not the name of a header"),
        ("headers = { a = \"hunter2\\n\" }", "the value of `telemetry.headers.a` cannot be sent"),
    ] {
        let error = load(&format!("[telemetry]\n{text}\n"), &[]).unwrap_err();
        let message = format!("{} {:?}", error.message(), error.hints());
        assert!(message.contains(words) && !message.contains("hunter2"), "{text}: {message}");
    }
}

const BODY: &str = "[[body]]\nname = \"a\"\nurl = \"http://h\"\n";

#[test]
fn roots_are_a_choice_or_folders_in_the_file_and_in_the_environment() {
    let folders = || Roots::Folders(vec!["/a".into(), "/b c".into()]);
    let read = |line: &str, env: &[(&str, &str)]| {
        load(&format!("{BODY}{line}"), env).unwrap().bodies.remove(0).roots
    };
    assert_eq!(read("", &[]), Roots::Auto);
    assert_eq!(read("roots = \"forward\"", &[]), Roots::Forward);
    assert_eq!(read("roots = [\"/a\", \"/b c\"]", &[]), folders());
    let env = |value| read("", &[("EMBODY_BODY__0__ROOTS", value)]);
    assert_eq!(env("withhold"), Roots::Withhold);
    assert_eq!(env("['/a', '/b c']"), folders());
}

#[test]
fn the_users_of_a_body_are_a_group_or_names() {
    let read = |line: &str, env: &[(&str, &str)]| {
        load(&format!("{BODY}{line}"), env).unwrap().bodies.remove(0).users
    };
    let named = || BodyUsers::Named(vec!["ann".into(), "owner".into()]);
    assert_eq!(read("", &[]), BodyUsers::Owner);
    assert_eq!(read("users = \"owner\"", &[]), BodyUsers::Owner);
    assert_eq!(read("users = \"all\"", &[]), BodyUsers::All);
    assert_eq!(read("users = [\"ann\", \"owner\"]", &[]), named());
    assert_eq!(read("", &[("EMBODY_BODY__0__USERS", "['ann', 'owner']")]), named());
    let wrong = error_text(&format!("{BODY}users = []"), &[]);
    assert!(wrong.contains("`body[0].users` names no user"), "{wrong}");
}

#[test]
fn wrong_values_are_reported_with_line_key_and_hint() {
    for (line, answer) in [
        (
            "users = 3",
            "error: embody.toml:4: `body[0].users` is `3`, but must be one of owner, all or a list of names\nhint: write names as a list like `[\"one\", \"two\"]`, or `\"owner\"` or `\"all\"`",
        ),
        (
            "users = \"ann\"",
            "error: embody.toml:4: `body[0].users` is `ann`, but must be one of owner, all or a list of names\nhint: write names as a list: `[\"ann\"]`",
        ),
        (
            "users = { ann = true }",
            "error: embody.toml:4: `body[0].users` is a table, but must be one of owner, all or a list of names\nhint: write names as a list like `[\"one\", \"two\"]`, or `\"owner\"` or `\"all\"`",
        ),
        (
            "users = [\"ann\", 3]",
            "error: embody.toml:4: `body[0].users[1]` is `3`, but must be text\nhint: put `body[0].users[1]` in quotes",
        ),
        (
            "roots = true",
            "error: embody.toml:4: `body[0].roots` is `true`, but must be one of auto, forward, withhold or a list of folders\nhint: write folders as a list like `[\"one\", \"two\"]`, or `\"auto\"` or `\"forward\"` or `\"withhold\"`",
        ),
        (
            "instructions = 3",
            "error: embody.toml:4: `body[0].instructions` is `3`, but must be one of rules, data, drop\nhint: write one of these words in quotes, as in `\"rules\"`",
        ),
        (
            "allow = 3",
            "error: embody.toml:4: `body[0].allow` is `3`, but must be a list\nhint: write `body[0].allow` as a list like `[\"one\", \"two\"]`",
        ),
        (
            "allow = \"mail\"",
            "error: embody.toml:4: `body[0].allow` is `\"mail\"`, but must be a list\nhint: write `body[0].allow` as a list like `[\"one\", \"two\"]`",
        ),
        (
            "roots = \"withold\"",
            "error: embody.toml:4: `body[0].roots` is `withold`, but must be one of auto, forward, withhold or a list of folders\nhint: write folders as a list: `[\"withold\"]`, or did you mean `withhold`?",
        ),
        (
            "roots = [\"/a\", \"data/b\"]",
            "error: embody.toml:4: `body[0].roots[1]` is `data/b`, which is not an absolute path\nhint: write the whole path of the folder, as in `/srv/files`",
        ),
        (
            "roots = [1]",
            "error: embody.toml:4: `body[0].roots[0]` is `1`, but must be text\nhint: put `body[0].roots[0]` in quotes",
        ),
    ] {
        assert_eq!(error_text(&format!("{BODY}{line}"), &[]), answer, "{line}");
    }
}

#[test]
fn entries_beyond_nine_are_taken_in_the_order_of_their_numbers() {
    let env: Vec<(String, String)> = (0..12)
        .flat_map(|n| {
            [
                (format!("EMBODY_BODY__{n}__NAME"), format!("b{n}")),
                (format!("EMBODY_BODY__{n}__URL"), "http://h".to_owned()),
            ]
        })
        .collect();
    let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(load("", &env).unwrap().bodies.len(), 12);
}

/// The proxies for `http` and `https`.
fn shown(env: &[(&str, &str)]) -> [String; 2] {
    let proxies = load("", env).unwrap().proxies;
    [proxies.http(), proxies.https()].map(|proxy| proxy.map(ToString::to_string).unwrap_or_default())
}

#[test]
fn proxy_variables_work_in_lower_and_upper_case() {
    assert_eq!(shown(&[]), ["", ""]);
    for (name, expected) in [
        ("HTTP_PROXY", ["p:1", ""]),
        ("http_proxy", ["p:1", ""]),
        ("HTTPS_PROXY", ["", "p:1"]),
        ("https_proxy", ["", "p:1"]),
        ("ALL_PROXY", ["p:1", "p:1"]),
        ("all_proxy", ["p:1", "p:1"]),
    ] {
        assert_eq!(shown(&[(name, "http://p:1")]), expected, "{name}");
        assert_eq!(shown(&[(name, " ")]), ["", ""], "{name} is empty");
        let with = |url: &str| {
            let proxies = load("", &[(name, "http://p:1"), ("NO_PROXY", "a.example")]).unwrap().proxies;
            proxies.proxy_for(&embody_wire::Url::parse(url).unwrap()).is_some()
        };
        assert!(with("http://b.example/") || with("https://b.example/"));
        assert!(!with("http://a.example/") && !with("https://a.example/"), "{name}");
    }
}

#[test]
fn specific_and_lower_case_proxy_variables_win() {
    let env = [("ALL_PROXY", "all:1"), ("HTTPS_PROXY", "upper:2"), ("https_proxy", "lower:3")];
    assert_eq!(shown(&env), ["all:1", "lower:3"]);
    assert_eq!(shown(&env[..2]), ["all:1", "upper:2"]);
    // Empty counts as unset.
    assert_eq!(shown(&[("https_proxy", ""), ("HTTPS_PROXY", "upper:2")]), ["", "upper:2"]);
}

#[test]
fn an_invalid_proxy_is_reported_by_its_variable_without_its_value() {
    for (name, value, reason) in [
        ("HTTPS_PROXY", "http://me:hunter2@", "cannot be read as an address"),
        ("https_proxy", "http://me:hunter2@proxy:port", "cannot be read as an address"),
        ("HTTP_PROXY", "ftp://me:hunter2@proxy", "is not an http://, https:// or socks5h:// address"),
        ("ALL_PROXY", "socks5://me:hunter2@proxy:port", "cannot be read as an address"),
        ("all_proxy", "http://me:hun/ter2@proxy:1", "cannot be read as an address"),
    ] {
        let error = load("", &[(name, value)]).unwrap_err();
        assert_eq!(error.count(), 1, "{name} is reported once");
        let words = format!("{name}: its value cannot be used as a proxy: it {reason}");
        assert_eq!(error.message(), words);
        let all = format!("{error:?} {:?}", error.hints());
        assert!(all.contains("http://proxy.example:3128") && !all.contains("hunter2"), "{all}");
    }
    // An invalid proxy that is not used is not reported.
    let env = [("ALL_PROXY", "ftp://p:1"), ("HTTP_PROXY", "p:2"), ("HTTPS_PROXY", "p:3")];
    assert_eq!(shown(&env), ["p:2", "p:3"]);
}

#[test]
fn the_password_of_a_proxy_is_not_printed() {
    let config = load("", &[("HTTPS_PROXY", "http://me:hunter2@proxy.example:3128")]).unwrap();
    let shown = format!("{config:?}");
    assert!(shown.contains("proxy.example:3128") && !shown.contains("hunter2"), "{shown}");
}

#[test]
fn the_reference_page_has_a_row_for_each_kind_of_key() {
    let page = reference_markdown();
    for row in [
        "| `layout` | `body`, `full`, `tagged`, `channel` | `\"channel\"` | ",
        "| `EMBODY_PROMPT__LAYOUT` |",
        "| `EMBODY_BODY__N__ENV__NAME` |",
        "## `[[policy.rule]]`",
        "| `EMBODY_POLICY__RULE__N__GATE` |",
        "integer, 200 to 10000000 | `12000` |",
    ] {
        assert!(page.contains(row), "{row}\n{page}");
    }
    for line in page.lines().filter(|line| line.starts_with('|')) {
        assert_eq!(line.replace("\\|", "").matches('|').count(), 6, "{line}");
    }
}

/// Uncomments only lines with a key or a heading.
fn uncommented() -> String {
    let is_key = |line: &str| {
        let key = line.split(" = ").next().unwrap_or_default();
        line.contains(" = ") && key.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    let lines = TEMPLATE.lines().map(|line| match line.strip_prefix("# ") {
        Some(rest) if is_key(rest) || rest.starts_with('[') => rest,
        _ => line,
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_template_sets_only_what_a_new_workspace_needs() {
    let config = load(TEMPLATE, &[]).unwrap();
    assert_eq!(config.prompt.layout, "channel");
    assert!(config.prompt.fresh_last);
    let set: Vec<&str> = (config.keys.iter())
        .filter(|setting| setting.origin.kind() == "file")
        .map(|setting| setting.key.as_str())
        .collect();
    assert_eq!(set, ["prompt.extra_sections", "prompt.fresh_last", "prompt.layout"]);
    let extra = config.prompt.extra_sections.into_iter().map(embody_prompt::Kind::from);
    assert!(extra.eq(embody_prompt::Layout::extra_kinds()));
}

#[test]
fn the_uncommented_template_is_valid() {
    let config = load(&uncommented(), &[]).unwrap();
    assert_eq!(config.bodies.len(), 2);
    assert_eq!(config.policy.rules.len(), 1);
    assert_eq!(config.telegram.users.len(), 1);
    assert_eq!(config.audience, embody_workspace::Audiences::default());
    assert_eq!(config.sandbox.map(|sandbox| sandbox.enabled.is_some()), Some(true));
}

#[test]
fn the_template_shows_every_key() {
    fn missing(section: &str, shape: &Shape, text: &str, found: &mut Vec<String>) {
        for field in shape.fields() {
            if !text.contains(&format!("{} = ", field.name)) && !text.contains(&format!(".{}]", field.name)) {
                found.push(format!("{section}.{}", field.name));
            }
            if let Shape::List { item, .. } = &field.shape {
                missing(&field.name, item, text, found);
            }
        }
    }
    let mut found = Vec::new();
    for section in schema::root().fields() {
        let start = TEMPLATE.find(&format!("[{}]", section.name)).unwrap();
        let rest = &TEMPLATE[start..];
        // A section ends at the first heading of another section.
        let end = rest
            .match_indices("\n# [")
            .map(|(at, _)| at)
            .find(|at| !rest[at + 4..].trim_start_matches('[').starts_with(&section.name))
            .unwrap_or(rest.len());
        missing(&section.name, &section.shape, &rest[..end], &mut found);
        if let Shape::List { item, .. } = &section.shape {
            missing(&section.name, item, &rest[..end], &mut found);
        }
    }
    assert_eq!(found, Vec::<String>::new());
}
