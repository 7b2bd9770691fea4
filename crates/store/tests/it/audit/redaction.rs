//! Secrets never enter the chain.

use embody_store::audit::{AuditOutcome, Event, Intent, Record, RedactedArguments};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{actor, call};
use crate::world::World;

fn excerpt(args: &Value) -> Value {
    RedactedArguments::of(&args.to_string()).excerpt().clone()
}

#[test]
fn values_under_names_of_secrets_are_taken_out() {
    for name in [
        "password",
        "Password",
        "db_password",
        "userPassword",
        "mypasswordhash",
        "token",
        "access_token",
        "accessToken",
        "X-Auth-Token",
        "Authorization",
        "api_key",
        "apiKey",
        "API-KEY",
        "apikey",
        "client_secret",
        "Cookie",
        "Set-Cookie",
        "private_key",
        "credentials",
        "--secret",
        "pin",
        "otp",
        "ssh_key",
        "pass",
        "DB_PASS",
        "smtpPass",
        "pw",
        "user_pw",
        "pwd",
        "passphrase",
    ] {
        let seen = excerpt(&json!({name: "hunter2", "to": "bob"}));
        assert_eq!(seen, json!({name: "[redacted]", "to": "bob"}), "{name}");
        let seen = excerpt(&json!({name: {"deep": ["hunter2"]}}));
        assert_eq!(seen, json!({name: "[redacted]"}), "{name}");
    }
}

#[test]
fn our_own_tokens_are_taken_out_wherever_they_stand() {
    let token = format!("embody_{}", "0123456789abcdef".repeat(4));
    for text in [
        token.clone(),
        format!("curl -H 'X: {token}' http://h"),
        format!("see http://h/?q={token}&x=1"),
        format!("{{\"note\": \"{token}\"}}"),
        format!("a_{token}"),
    ] {
        let seen = excerpt(&json!({"text": text, "list": [text]})).to_string();
        assert!(!seen.contains("0123456789abcdef") && seen.contains("[redacted]"), "{seen}");
    }
    let name = json!({"text": "embody_approvals_pending rises"});
    assert_eq!(excerpt(&name), name);
}

#[test]
fn what_is_no_secret_stays() {
    let args = json!({
        "author": "ann", "key": "colour", "keyboard": "us", "max_tokens": 100, "pinned": true, "secretary": "bob",
        "text": "risk-assessment-plan-2026 for the desk-lamp; see https://example.com:8080/@ann?x=1", "pin": false,
        "sort_key": "name", "password": null, "count": 3, "passenger": "bob", "bypass_cache": "no", "at": "12:30", "address": "ann@example.com",
        "url": "https://example.com/a/b?page=2", "note": "Basic information about bodies: none",
    });
    assert_eq!(excerpt(&args), args);
}

#[test]
fn texts_that_are_secrets_are_taken_out() {
    let seen = |text: &str| excerpt(&json!([text, 1, 2]))[0].as_str().unwrap().to_owned();
    for (text, left) in [
        ("Bearer abcdef123456", "Bearer [redacted]"),
        ("use sk-abcdefghijkl now", "use [redacted] now"),
        ("(ghp_0123456789abcdefABCDEF)", "([redacted])"),
        ("x eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln y", "x [redacted] y"),
        ("AKIAIOSFODNN7EXAMPLE", "[redacted]"),
        ("postgres://ann:p@ss/w0rd@db:5432/x", "postgres://ann:[redacted]@db:5432/x"),
        ("https://0123456789abcdef0123@git.example.com/x", "https://[redacted]@git.example.com/x"),
        ("https://x/y?access_token=abc&z=1", "https://x/y?access_token=[redacted]&z=1"),
        ("password=hunter2 user=bob", "password=[redacted] user=bob"),
        ("password: 'hunter 2' x", "password: '[redacted]' x"),
        (r#"broken {"password": "hun\"ter2", "a": 1"#, r#"broken {"password": "[redacted]", "a": 1"#),
        (r#"broken {\"token\": \"abc\", \"a\": 1"#, r#"broken {\"token\": \"[redacted]\", \"a\": 1"#),
        (r#"{"password":"hunter2","a":1}"#, r#"{"a":1,"password":"[redacted]"}"#),
        (
            "curl -H 'Authorization: Basic YW46YQ==' https://x",
            "curl -H 'Authorization: [redacted]' https://x",
        ),
        ("Cookie: a=b; c=d\nnext", "Cookie: [redacted]\nnext"),
        ("run --password hunter2 --fast", "run --password [redacted] --fast"),
        ("run --pass hunter2 --fast", "run --pass [redacted] --fast"),
        ("host=db pw=hunter2 x", "host=db pw=[redacted] x"),
        ("/bot123456789:AAEabcdefghijklmnopqrstuvwxyz012345/x", "/bot123456789:[redacted]"),
        ("a -----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY----- b", "a [redacted] b"),
        ("a -----BEGIN PRIVATE KEY-----\nabc", "a [redacted]"),
        (r"line\nsk-abcdefghijkl", r"line\n[redacted]"),
        ("a%20ghp_0123456789ab", "a%20[redacted]"),
    ] {
        assert_eq!(seen(text), left);
    }
}

#[test]
fn names_beside_the_secret_count() {
    let args = json!({
        "headers": [{"name": "Authorization", "value": "hunter2"}, {"name": "Accept", "value": "text/plain"}],
        "pairs": [["X-Api-Key", "hunter2"], ["Accept", "text/plain"]],
        "argv": ["login", "--password", "hunter2", "--user", "ann"],
    });
    let seen = excerpt(&args);
    assert!(!seen.to_string().contains("hunter2"), "{seen}");
    assert_eq!(seen.to_string().matches("text/plain").count(), 2);
    assert_eq!(seen["argv"], json!(["login", "--password", "[redacted]", "--user", "ann"]));
}

#[test]
fn large_values_are_told_by_digest_and_beginning() {
    let long = "é".repeat(100_000);
    let seen = excerpt(&json!({ "text": long }));
    let text = seen["text"].as_str().unwrap();
    assert!(text.starts_with(&"é".repeat(256)) && text.len() < 1024, "{text}");
    assert!(text.contains(&blake3::hash(long.as_bytes()).to_hex().to_string()));
    let many: Vec<Value> = (0..10_000).map(|number| json!({"n": number, "text": "x".repeat(400)})).collect();
    assert!(excerpt(&json!(many)).to_string().len() <= 8 * 1024);
    let args = r#"{"b":1,"a":2}"#;
    assert_eq!(RedactedArguments::of(args).digest(), blake3::hash(args.as_bytes()).to_hex().to_string());
    let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    assert!(RedactedArguments::of(&deep).excerpt().to_string().contains("[too deep]"));
    assert_eq!(RedactedArguments::of("not json: token=abc").excerpt(), &json!("not json: token=[redacted]"));
}

#[test]
fn half_a_secret_is_not_left_where_a_text_is_cut() {
    for before in 230..260 {
        let text = format!("{} sk-{} {}", "x".repeat(before), "Q".repeat(40), "y".repeat(600));
        let seen = excerpt(&json!({ "text": text })).to_string();
        assert!(!seen.contains('Q'), "{seen}");
    }
}

/// A secret that cannot come from anywhere else.
const MARK: &str = "Q7zPlantedX9k2";

#[derive(Clone, Debug)]
enum Planted {
    Named(String),
    Text(String),
}

fn planted() -> impl Strategy<Value = Planted> {
    let name =
        prop_oneof!["password", "api_key", "Authorization", "refreshToken", "CLIENT-SECRET", "cookie", "pwd"];
    let affix = "[a-z_.-]{0,6}";
    let named = (prop_oneof![Just(String::new()), "[a-z]{1,6}_"], name.clone())
        .prop_map(|(prefix, name)| Planted::Named(format!("{prefix}{name}")));
    let text = prop_oneof![
        Just(format!("Bearer {MARK}")),
        Just(format!("sk-{MARK}")),
        Just(format!("ghp_{MARK}")),
        Just(format!("eyJhbGciOiJI.{MARK}.abc")),
        Just(format!("-----BEGIN EC PRIVATE KEY-----\n{MARK}\n-----END EC PRIVATE KEY-----")),
        Just(format!("https://ann:{MARK}@example.com/x")),
        Just(format!(r#"{{"password":"{MARK}"}}"#)),
        name.prop_map(|name| format!("{name}={MARK}")),
    ];
    let around = prop_oneof!["[ \\n\\t,;({\"'`|\\\\]{0,3}", "[a-zé ]{0,20} ", Just("x".repeat(600) + " ")];
    let text = (around, text, affix)
        .prop_map(|(before, text, after)| Planted::Text(format!("{before} {text} {after}")));
    prop_oneof![named, text]
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Puts the secret somewhere into the value.
fn plant(value: Value, planted: &Planted, path: &[prop::sample::Index]) -> Value {
    let here = || match planted {
        Planted::Named(name) => json!({ name: MARK }),
        Planted::Text(text) => Value::from(text.as_str()),
    };
    let Some((step, path)) = path.split_first() else { return here() };
    match value {
        Value::Array(mut items) if !items.is_empty() => {
            let at = step.index(items.len());
            items[at] = plant(items[at].take(), planted, path);
            Value::Array(items)
        }
        Value::Object(mut members) if !members.is_empty() => {
            let name = members.keys().nth(step.index(members.len())).unwrap().clone();
            let inner = plant(members[&name].take(), planted, path);
            members.insert(name, inner);
            Value::Object(members)
        }
        _ => here(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_planted_secret_never_appears(
        value in json_value(),
        planted in planted(),
        path in prop::collection::vec(any::<prop::sample::Index>(), 0..5),
        quoted in any::<bool>(),
    ) {
        let args = plant(value, &planted, &path);
        // Some tools take their arguments as JSON in a string.
        let args = if quoted { json!({"body": args.to_string()}) } else { args };
        let kept = RedactedArguments::of(&args.to_string());
        prop_assert!(!kept.excerpt().to_string().contains(MARK), "{args} -> {}", kept.excerpt());
        prop_assert!(kept.excerpt().to_string().len() <= 8 * 1024);
    }

    #[test]
    fn any_text_can_be_searched(text in any::<String>(), noise in "[\\\\\"'=:{}\\[\\]@/ a-z-]{0,200}") {
        let kept = RedactedArguments::of(&text);
        prop_assert!(kept.excerpt().to_string().len() <= 8 * 1024);
        RedactedArguments::of(&json!({"a": noise, "token": text}).to_string());
    }
}

#[tokio::test]
async fn no_free_text_of_a_record_brings_one_in() {
    let world = World::memory().await;
    let store = &world.store;
    let args = RedactedArguments::of(&json!({"password": MARK}).to_string());
    let intent = Intent { call: embody_store::audit::AuditedCall { args, ..call("c-1") }, approval: None };
    let begun = store.audit().begin(&actor("ann"), intent.clone()).await.unwrap();
    store.audit().finish(begun, AuditOutcome::Failed, Some(format!("401 for Bearer {MARK}"))).await.unwrap();
    let decision = embody_store::audit::DecisionRecord {
        call: intent.call,
        decision: embody_store::audit::DecisionKind::Deny,
        reason: format!("token={MARK}"),
    };
    store.audit().append(Record { actor: actor("ann"), event: Event::Decision(decision) }).await.unwrap();
    store.audit().append(super::note("ann", &format!("sk-{MARK}"))).await.unwrap();
    let mut text = Vec::new();
    assert_eq!(store.audit().export(&mut text).await.unwrap(), 4);
    let text = String::from_utf8(text).unwrap();
    assert!(!text.contains(MARK), "{text}");
    assert_eq!(text.matches("[redacted]").count(), 5, "{text}");
}
