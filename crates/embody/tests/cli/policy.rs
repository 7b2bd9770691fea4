//! `policy test`: the decision about a call, and why, without making it.

use embody_store::pins::{Definition, SeenTool};
use serde_json::{Value, json};

use crate::support::stores::StoreFixture;

const RULES: &str = r#"
[[body]]
name = "mail"
command = ["true"]
[[body]]
name = "far"
url = "http://127.0.0.1:9/mcp"
[[policy.rule]]
tools = ["send_*"]
gate = "ask"
via = ["cli", "console"]
when = '!all_in_domain(args.to, "example.com")'
reason = "mail leaves the building"
[[policy.rule]]
tools = ["mail/*"]
gate = "deny"
when = 'channel == "telegram" && user != "ann"'
reason = "not from a chat"
[[policy.rule]]
tools = ["far/wipe"]
class = "destructive"
"#;

fn stored() -> StoreFixture {
    let stored = StoreFixture::workspace();
    stored.world.file("embody.toml", RULES);
    stored
}

fn test(stored: &StoreFixture, arguments: &[&str]) -> Value {
    stored.run(&[&["--json", "policy", "test"], arguments].concat()).ok().json()
}

fn see(stored: &StoreFixture, body: &str, tool: &str, annotations: &Value) {
    let text = json!({ "name": tool, "annotations": annotations }).to_string();
    let definition = Definition { hash: text.len().to_string(), text };
    let seen =
        SeenTool { body: body.into(), tool: tool.into(), definition, acceptable: true, rehash: |_, _| None };
    stored.directly(async |store| drop(store.pins().record(seen).await.unwrap()));
}

// spec: N-10
#[test]
fn policy_test_prints_class_gate_channels_and_matching_rules() {
    let stored = stored();
    let args = ["send_email", "--body", "mail", "--args", r#"{"to": "bob@example.com, ann@home.example"}"#];
    let said = test(&stored, &args);
    assert_eq!(said["class"], "human_visible_write");
    assert_eq!(said["class_because"], "by the tool's name");
    assert_eq!((&said["gate"], &said["gate_because"]), (&json!("ask"), &json!("set by a rule")));
    assert_eq!(said["via"], json!(["console", "cli"]));
    assert_eq!(said["reasons"], json!(["mail leaves the building"]));
    let rules = said["rules"].as_array().unwrap();
    let counted = |rule: &Value| (rule["key"].clone(), rule["holds"].clone(), rule["sets_gate"].clone());
    assert_eq!(
        rules.iter().map(counted).collect::<Vec<_>>(),
        [
            (json!("policy.rule[0]"), json!(true), json!(true)),
            (json!("policy.rule[1]"), json!(false), json!(false)),
        ]
    );
    assert!(rules[0]["source"].as_str().unwrap().contains("embody.toml:"), "{rules:?}");
    let text = stored.run(&[&["policy", "test"], &args[..]].concat()).ok().stdout;
    for part in [
        "send_email of mail\n",
        "class  human_visible_write  by the tool's name\n",
        "gate   ask  set by a rule\n",
        "via    console, cli",
        "reason mail leaves the building",
        "policy.rule[0] ",
        " matches, sets the gate\n",
        "when !all_in_domain(args.to, \"example.com\")\n",
        "mail   ann@home.example, bob@example.com",
        " does not match: its condition is false\n",
        "embody has not listed this tool yet",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

const OWN_DOMAIN: &str = r#"
[[policy.rule]]
tools = ["send_*"]
gate = "allow"
when = 'all_in_domain(args, "example.com")'
[[policy.rule]]
tools = ["post_*"]
gate = "allow"
when = 'args.to.endsWith("@example.com")'
[[policy.rule]]
tools = ["file_*"]
class = "write"
when = 'has(args.to) && args.to.contains("@example.com")'
[[policy.rule]]
tools = ["post_*"]
gate = "ask"
when = 'args.to.endsWith("@example.org")'
"#;

// spec: N-10
#[test]
fn a_rule_for_ones_own_domain_allows_no_other_recipient() {
    let stored = StoreFixture::workspace();
    stored.world.file("embody.toml", OWN_DOMAIN);
    for (args, gate, clear, unclear) in [
        (json!({"to": "carol@example.com"}), "allow", &["carol@example.com"][..], &[][..]),
        (
            json!({"to": "evil@other.example,carol@example.com"}),
            "ask",
            &["carol@example.com", "evil@other.example"],
            &[],
        ),
        (
            json!({"to": "carol@example.com", "cc": [{"email": "evil@other.example"}]}),
            "ask",
            &["carol@example.com", "evil@other.example"],
            &[],
        ),
        (json!({"to": "carol@example.com@evil.example"}), "ask", &[], &["carol@example.com@evil.example"]),
        (json!({"text": "no recipient"}), "ask", &[], &[]),
    ] {
        let said = test(&stored, &["send_email", "--args", &args.to_string()]);
        assert_eq!(said["gate"], gate, "{args}");
        assert_eq!(said["addresses"], json!({"clear": clear, "unclear": unclear}), "{args}");
    }
    let unclear = ["policy", "test", "send_email", "--args", r#"{"to": "a@b@example.com"}"#];
    let text = stored.run(&unclear).ok().stdout;
    assert!(text.contains("mail   none"), "{text}");
    assert!(text.contains("mail   a@b@example.com  unclear, so it is in no domain\n"), "{text}");
}

#[test]
fn a_rule_that_allows_by_a_part_of_a_text_is_warned_of() {
    let stored = StoreFixture::workspace();
    stored.world.file("embody.toml", OWN_DOMAIN);
    let file = stored.world.path("embody.toml");
    let warning = |line: u32, rule: u32, target: &str| {
        format!(
            "warning: {}:{line}: `policy.rule[{rule}].when` tests only a part of the text of `args.to`, \
             {target}(\"@example.com\"): `evil@other.example,carol@example.com` passes\n\
             hint: use all_in_domain(args, \"example.com\"), which is true only if every address in the call is in that domain\n",
            file.display()
        )
    };
    let expected =
        format!("ok: {}\n{}{}", file.display(), warning(9, 1, "endsWith"), warning(13, 2, "contains"));
    assert_eq!(stored.run(&["config", "check"]).ok().stdout, expected);
    let said = stored.run(&["--json", "config", "check"]).ok().json();
    assert_eq!(said["warnings"][0]["key"], "policy.rule[1].when");
    let text = stored.run(&["policy", "test", "post_it"]).ok().stdout;
    assert!(text.contains("warning: this rule tests only a part of the text of `args.to`"), "{text}");
    let text = stored.run(&["policy", "test", "send_it"]).ok().stdout;
    assert!(!text.contains("warning"), "{text}");
    let doctor = stored.run(&["--json", "doctor"]).json();
    let rules = doctor["checks"].as_array().unwrap().iter().filter(|check| check["name"] == "policy");
    assert_eq!(rules.filter(|check| check["state"] == "warn").count(), 2, "{doctor}");
}

#[test]
fn the_documented_rules_about_addresses_are_valid() {
    let page = include_str!("../../../../docs/policy.md");
    let section = page.split("### Mail addresses in conditions").nth(1).unwrap();
    let rules = section.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let stored = StoreFixture::workspace();
    stored.world.file("embody.toml", rules);
    let checked = stored.run(&["--json", "config", "check"]).ok().json();
    assert_eq!(checked["warnings"], json!([]));
    let body = "[[body]]\nname = \"mail\"\ncommand = [\"true\"]\n";
    stored.world.file("embody.toml", format!("{body}{rules}"));
    for (to, gate) in [
        ("bob@example.com", "allow"),
        ("ann@home.example", "allow"),
        ("eve@other.example", "ask"),
        ("bob@example.com, press@other.example", "deny"),
        ("bob@example.com@other.example", "deny"),
    ] {
        let args = json!({ "to": to }).to_string();
        assert_eq!(test(&stored, &["mail/send_email", "--args", &args])["gate"], gate, "{to}");
    }
}

// spec: N-10
#[test]
fn channel_user_and_undecided_conditions_count() {
    let stored = stored();
    let telegram = ["send_email", "--body", "mail", "--channel", "telegram", "--args", r#"{"to": "x"}"#];
    assert_eq!(test(&stored, &telegram)["gate"], "deny");
    assert_eq!(test(&stored, &[&telegram[..], &["--user", "ann"]].concat())["gate"], "ask");
    // `args.to` is absent: the first rule is undecided.
    let unknown = test(&stored, &["send_it", "--body", "far"]);
    assert_eq!(unknown["rules"][0]["holds"], Value::Null);
    assert_eq!((&unknown["gate"], &unknown["via"]), (&json!("ask"), &json!(["console", "cli"])));
    let wiped = test(&stored, &["wipe", "--body", "far"]);
    assert_eq!((&wiped["class"], &wiped["class_because"]), (&json!("destructive"), &json!("set by a rule")));
    assert_eq!(wiped["via"], json!(["console", "cli", "telegram"]));
}

// spec: N-09
#[test]
fn annotations_count_if_the_server_is_trusted() {
    let stored = stored();
    for body in ["mail", "far"] {
        see(&stored, body, "look", &json!({"readOnlyHint": true}));
    }
    see(&stored, "far", "drop_all", &json!({"destructiveHint": true}));
    let class = |arguments: &[&str]| test(&stored, arguments)["class"].as_str().unwrap().to_owned();
    assert_eq!(class(&["look", "--body", "mail"]), "read");
    assert_eq!(class(&["look", "--body", "far"]), "human_visible_write");
    // Only one body has it, so that it need not be named.
    let found = test(&stored, &["drop_all"]);
    assert_eq!((&found["body"], &found["class"]), (&json!("far"), &json!("destructive")));
    assert_eq!(class(&["far/look"]), "human_visible_write");
    assert_eq!(class(&["mind/recall"]), "read");
    assert_eq!(class(&["recall", "--body", "mind"]), "read");
    assert_eq!(class(&["save_memory", "--body", "mind"]), "write");
}

const EMBEDDED: &str = r#"
[[body]]
name = "files"
command = ["true"]
[[policy.rule]]
tools = ["embody/create_task"]
gate = "deny"
[[policy.rule]]
tools = ["embody/send_message"]
gate = "allow"
when = 'args.to == "123456"'
"#;

// spec: N-10
#[test]
fn the_embedded_body_and_the_mind_are_bodies_too() {
    let stored = StoreFixture::workspace();
    stored.world.file("embody.toml", EMBEDDED);
    for arguments in [&["embody/create_task"][..], &["create_task"], &["create_task", "--body", "embody"]] {
        let said = test(&stored, arguments);
        assert_eq!(
            (&said["tool"], &said["body"]),
            (&json!("create_task"), &json!("embody")),
            "{arguments:?}"
        );
        assert_eq!((&said["class"], &said["gate"]), (&json!("write"), &json!("deny")), "{arguments:?}");
        assert_eq!(said["class_because"], "by the annotation of the embedded body");
        assert_eq!(said["rules"][0]["key"], "policy.rule[0]");
        assert_eq!(said["is_seen"], true);
    }
    let to = |to: &str| test(&stored, &["embody/send_message", "--args", &format!(r#"{{"to": "{to}"}}"#)]);
    assert_eq!((&to("123456")["gate"], &to("7")["gate"]), (&json!("allow"), &json!("ask")));
    let memory = test(&stored, &["save_memory"]);
    assert_eq!((&memory["body"], &memory["class"]), (&json!("mind"), &json!("write")));
    assert_eq!(memory["class_because"], "by the tool's name");
    let text = stored.run(&["policy", "test", "embody/wipe"]).ok().stdout;
    assert!(text.contains("the embedded body has no such tool"), "{text}");
    // What the embedded body does not have, the only other one may.
    assert_eq!(test(&stored, &["read_file"])["body"], "files");
    // A body of one's own keeps a name that the embedded one has too.
    see(&stored, "files", "create_task", &json!({}));
    assert_eq!(test(&stored, &["create_task"])["body"], "files");
    assert_eq!(test(&stored, &["embody/create_task"])["gate"], "deny");
}

/// The classes that `docs/embedded-body.md` tells are those that calls get.
#[test]
fn the_embedded_tools_have_the_classes_of_the_page() {
    let stored = StoreFixture::workspace();
    let page = include_str!("../../../../docs/embedded-body.md");
    let rows: Vec<(&str, &str)> = page
        .lines()
        .filter_map(|line| {
            let (name, rest) = line.strip_prefix("| `")?.split_once([' ', '`'])?;
            Some((name, rest.trim_end_matches('|').trim().rsplit(" | ").next()?))
        })
        .collect();
    assert_eq!(rows.len(), 9, "{rows:?}");
    for (tool, class) in rows {
        let said = test(&stored, &[&format!("embody/{tool}")]);
        assert_eq!(said["class"], class.replace([' ', '-'], "_"), "{tool}");
    }
}

#[test]
fn an_unknown_body_is_rejected() {
    let stored = stored();
    for arguments in [&["filez/read"][..], &["read", "--body", "filez"]] {
        stored
            .run(&[&["policy", "test"], arguments].concat())
            .ended(2)
            .says(&["error: unknown body `filez`", "hint: known bodies: `embody`, `mind`, `mail`, `far`"]);
    }
    // A tool's own name may have a slash.
    see(&stored, "far", "repos/list", &json!({}));
    let said = test(&stored, &["repos/list"]);
    assert_eq!((&said["tool"], &said["body"]), (&json!("repos/list"), &json!("far")));
    assert_eq!(test(&stored, &["issues/list", "--body", "mail"])["tool"], "issues/list");
}

#[test]
fn wrong_arguments_and_conditions_are_reported() {
    let stored = stored();
    for args in ["[]", "{", "{\"a\":1,\"a\":2}", "", "7"] {
        stored
            .run(&["policy", "test", "x", "--args", args])
            .ended(2)
            .says(&["error: `--args` is not a JSON object"]);
    }
    stored
        .world
        .file("embody.toml", "[[policy.rule]]\ntools = [\"*\"]\ngate = \"ask\"\nwhen = \"nobody == 1\"\n");
    stored
        .run(&["policy", "test", "x"])
        .ended(2)
        .says(&["embody.toml:4: `policy.rule[0].when` is `nobody == 1`, which is not a valid condition"]);
}

#[test]
fn works_without_rules_and_without_a_store() {
    let stored = StoreFixture::workspace();
    let said = test(&stored, &["whoami"]);
    assert_eq!(
        (&said["class"], &said["gate"], &said["rules"]),
        (&json!("read"), &json!("allow"), &json!([]))
    );
    assert!(!stored.world.path("embody.db").exists());
}
