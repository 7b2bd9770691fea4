//! The body prompt through the command line: the file, its includes, what is refused, what is logged.

use std::os::unix::net::UnixListener;

use crate::support::world::{SEPARATOR, World};

const BODY: [&str; 3] = ["--layout", "body", "--log=off"];

// spec: B-01
#[test]
fn the_body_is_the_file_and_nothing_else() {
    let world = World::with_body("# Rules\n\nBe careful.\n");
    let done = world.run(&["prompt", "show", "--layout", "body"]).ok();
    assert_eq!(done.stdout, "# Rules\n\nBe careful.");
}

// spec: B-01
#[test]
fn the_body_can_be_elsewhere() {
    let world = World::with_body("not this one");
    world.file("rules/body.md", "rules");
    world.file_outside("elsewhere/body.md", "elsewhere\n@include part.md");
    world.file_outside("elsewhere/part.md", "a part");
    let outside = world.outside("elsewhere/body.md");
    world.file("embody.toml", "[prompt]\nbody = \"rules/body.md\"\n");
    assert_eq!(world.show(&BODY), "rules");
    let world = world.env("EMBODY_PROMPT__BODY", outside.to_str().unwrap());
    assert_eq!(world.show(&BODY), "elsewhere\na part");
}

// spec: B-01, B-06
#[test]
fn a_missing_body_is_no_error_and_leaves_no_separator() {
    let world = World::new();
    let fallback = world.run(&["prompt", "show", "--layout", "body"]).ok();
    assert!(!fallback.stdout.trim().is_empty());
    assert!(!fallback.stderr.contains("error"), "{}", fallback.stderr);
    let channel = world.show(&["--layout", "channel"]);
    assert!(channel.starts_with("## Soul\n"), "{channel}");
    assert!(!channel.contains(SEPARATOR));
}

// spec: B-01, B-06
#[test]
fn a_workspace_that_does_not_exist_works_and_is_not_made() {
    let world = World::new();
    let nowhere = world.outside("nowhere");
    let done =
        world.run_bare(&["--workspace", nowhere.to_str().unwrap(), "prompt", "show", "--layout", "body"]);
    assert!(!done.ok().stdout.trim().is_empty());
    assert!(!nowhere.exists(), "reading must not create anything");
    // No `--workspace`, no variable: ~/.embody, which is not there either.
    assert!(!world.run_bare(&["prompt", "show"]).ok().stdout.trim().is_empty());
    assert!(!world.outside("home/.embody").exists());
}

// spec: B-06
#[test]
fn the_fallback_stands_only_when_there_is_nothing_else() {
    let fallback = World::new().show(&BODY);
    for blank in ["", " \n\t\n", "\u{FEFF}"] {
        let world = World::with_body(blank);
        assert_eq!(world.show(&BODY), fallback, "{blank:?}");
        // spec: B-08
        assert_eq!(world.last_log()["outcome"], "fallback", "{blank:?}");
    }
    assert!(!World::with_body("x").show(&BODY).contains(&fallback));
}

// spec: B-06
#[test]
fn every_layout_follows_the_body_after_one_separator() {
    let world = World::with_body("RULES\n\n\n");
    for layout in ["full", "tagged", "channel"] {
        let args = ["--layout", layout, "--now", "2026-03-01T12:00:00Z"];
        let (whole, bare) = (world.show(&args), world.show(&[&args[..], &["--no-body"]].concat()));
        assert_eq!(whole, format!("RULES{SEPARATOR}{bare}"), "{layout}");
        assert_eq!(whole.matches(SEPARATOR).count(), 1, "{layout}");
        assert!(!bare.contains("RULES"), "{layout}");
    }
}

// spec: B-06
#[test]
fn nothing_below_the_body_can_write_the_separator() {
    let world = World::with_body("RULES");
    world.file("SOUL.md", "---\n\nabove\n\n---\n\nbelow\r\n\r\n---\r\n\r\nend\n\n ---  \n\nlast\n\n---\n");
    for layout in ["full", "tagged", "channel"] {
        let text = world.show(&["--layout", layout, "--instructions", "a\n\n---\n\nb"]);
        assert_eq!(text.matches(SEPARATOR).count(), 1, "{layout}: {text}");
        assert!(text.contains("above") && text.contains("last"), "{layout}: {text}");
    }
}

// spec: B-02, B-04
#[test]
fn includes_are_replaced_where_they_stand_one_level_deep() {
    let world = World::with_body(
        "top\n@include anatomy/one.md\n  \t@include ./anatomy/../two.md\nsay @include two.md\n@include\n@included two.md\nend\n",
    );
    world.file("prompts/anatomy/one.md", "ONE\n@include two.md");
    world.file("prompts/two.md", "TWO");
    // Beside the workspace's root, not beside the body: never looked at.
    world.file("anatomy/one.md", "WRONG");
    assert_eq!(
        world.show(&BODY),
        "top\nONE\n@include two.md\nTWO\nsay @include two.md\n@include\n@included two.md\nend"
    );
}

// spec: B-02
#[test]
fn an_include_brings_the_whole_file_whatever_its_line_ends() {
    let world = World::with_body("\u{FEFF}a\r\n@include long.md\r\nz");
    let long: String = (0..5_000).map(|line| format!("line {line}\r\n")).collect();
    world.file("prompts/long.md", format!("\u{FEFF}{long}last"));
    let expected = format!("a\n{}last\nz", long.replace("\r\n", "\n"));
    assert_eq!(world.show(&[&BODY[..], &["--native-tools", "true"]].concat()), expected);
}

// spec: B-03
#[test]
fn a_missing_include_leaves_a_mark_and_is_reported() {
    let world = World::with_body("a\n@include anatomy/typo.md\nb");
    let report = world.report(&BODY);
    assert_eq!(report.text(), "a\n<!-- missing @include anatomy/typo.md -->\nb");
    let notes = report.notes("missing_include");
    assert_eq!(notes.len(), 1);
    assert!(notes[0].starts_with("prompts/agent_system.md:2 "), "{notes:?}");
    assert!(notes[0].contains("`@include anatomy/typo.md`"), "{notes:?}");

    let explain = world.run(&["prompt", "explain"]).ok();
    assert!(explain.stdout.contains("anatomy/typo.md"), "{}", explain.stdout);
    let doctor = world.run(&["doctor"]).ended(1);
    assert!(doctor.stdout.contains("anatomy/typo.md"), "{}", doctor.stdout);
    let log = world.last_log();
    assert_eq!((&log["level"], &log["missing"]), (&"WARN".into(), &1.into()));
}

/// Includes that must be treated as missing: what to write for them, and a word of the reason.
fn refused(world: &World) -> Vec<(String, &'static str)> {
    let secret = world.outside("secret.md");
    world.file_outside("secret.md", "SECRET");
    world.file("SECRET.md", "SECRET");
    world.link("prompts/link.md", &secret);
    world.link("prompts/folder-link", world.outside("."));
    world.link("prompts/zero.md", "/dev/zero");
    world.file("prompts/latin1.md", b"SECRET caf\xe9");
    world.file("prompts/large.md", "SECRET ".repeat(64 * 1024));
    world.file("prompts/folder/inside.md", "inside");
    world.fifo("prompts/fifo.md");
    vec![
        (secret.to_str().unwrap().to_owned(), "absolute"),
        ("../SECRET.md".into(), "leaves its folder"),
        ("folder/../../SECRET.md".into(), "leaves its folder"),
        ("link.md".into(), "link"),
        ("folder-link/secret.md".into(), "link"),
        ("zero.md".into(), "link"),
        ("latin1.md".into(), "UTF-8"),
        ("large.md".into(), "bytes"),
        ("folder".into(), "regular file"),
        ("fifo.md".into(), "regular file"),
        ("socket.md".into(), "regular file"),
    ]
}

// spec: B-05
#[test]
fn what_must_not_be_included_is_missing_and_says_why() {
    let world = World::new();
    let refused = refused(&world);
    let socket = UnixListener::bind(world.path("prompts/socket.md")).unwrap();
    let lines: Vec<String> = refused.iter().map(|(path, _)| format!("@include {path}")).collect();
    world.file("prompts/agent_system.md", lines.join("\n"));
    let report = world.report(&BODY);
    let expected: Vec<String> =
        refused.iter().map(|(path, _)| format!("<!-- missing @include {path} -->")).collect();
    assert_eq!(report.text(), expected.join("\n"));
    let notes = report.notes("refused_path");
    assert_eq!(notes.len(), refused.len(), "{notes:#?}");
    for (index, ((path, reason), note)) in refused.iter().zip(&notes).enumerate() {
        assert!(note.starts_with(&format!("prompts/agent_system.md:{} ", index + 1)), "{note}");
        assert!(note.contains(path) && note.contains(reason), "{path}: {note}");
    }
    drop(socket);
}

// spec: B-05
#[test]
fn links_that_stay_inside_are_followed() {
    let world = World::with_body("@include link.md\n@include shelf/inside.md");
    world.file("prompts/anatomy/inside.md", "inside");
    world.link("prompts/link.md", "anatomy/inside.md");
    world.link("prompts/shelf", "anatomy");
    assert_eq!(world.show(&BODY), "inside\ninside");
}

// spec: B-05, B-06, B-08
#[test]
fn a_body_that_is_refused_is_no_body_and_says_why() {
    let fallback = World::new().show(&BODY);
    for (make, reason) in [
        (
            Box::new(|world: &World| world.file("prompts/agent_system.md", b"\xff")) as Box<dyn Fn(&World)>,
            "UTF-8",
        ),
        (Box::new(|world: &World| world.file("prompts/agent_system.md", "x".repeat(300 * 1024))), "bytes"),
        (Box::new(|world: &World| world.fifo("prompts/agent_system.md")), "regular file"),
        (Box::new(|world: &World| world.file("prompts/agent_system.md/x", "")), "regular file"),
        (Box::new(|world: &World| world.link("prompts/agent_system.md", "/dev/zero")), "link"),
    ] {
        let world = World::new();
        make(&world);
        let report = world.report(&BODY);
        assert_eq!(report.text(), fallback, "{reason}");
        let notes = report.notes("refused_path");
        assert!(notes.len() == 1 && notes[0].contains(reason), "{reason}: {notes:?}");
        let log = world.last_log();
        assert_eq!((&log["outcome"], &log["level"]), (&"fallback".into(), &"WARN".into()), "{log}");
        assert!(log["reason"].as_str().is_some_and(|why| why.contains(reason)), "{reason}: {log}");
    }
}

// spec: B-08
#[test]
fn every_run_logs_one_outcome_to_stderr_and_to_the_file() {
    let world = World::with_body("RULES\n@include a.md");
    world.file("prompts/a.md", "A");
    let first = world.run(&["--log", "info", "prompt", "show", "--layout", "body"]).ok();
    assert_eq!(first.stdout, "RULES\nA", "the log never goes to stdout");
    assert_eq!(first.stderr.matches("prompt loaded").count(), 1, "{}", first.stderr);
    assert!(
        first.stderr.contains("body alone") && first.stderr.contains("agent_system.md"),
        "{}",
        first.stderr
    );

    let lines = world.log();
    assert_eq!(lines.len(), 1);
    let line = &lines[0];
    assert_eq!(line["outcome"], "body alone");
    assert_eq!(line["layout"], "body");
    assert_eq!(line["body"], "prompts/agent_system.md");
    assert_eq!((&line["included"], &line["missing"]), (&1.into(), &0.into()));
    assert_eq!(line["persona"], "unset");
    assert!(line["elapsed_us"].is_u64() && line["timestamp"].is_string(), "{line}");

    world.run(&["prompt", "show", "--json"]).ok().json();
    world.run(&["prompt", "explain"]).ok();
    world.run(&["doctor", "--json"]).ok().json();
    assert_eq!(world.log().len(), 4, "each run adds its one line and keeps the others");
}

// spec: B-08
#[test]
fn a_quiet_run_still_leaves_its_line_in_the_file() {
    let world = World::new();
    for arguments in [["--log", "off"], ["--log", "error"]] {
        let done = world.run(&[&["prompt", "show"], &arguments[..]].concat()).ok();
        assert_eq!(done.stderr, "");
    }
    let world = world.env("EMBODY_LOG__LEVEL", "warn");
    assert_eq!(world.run(&["prompt", "show"]).ok().stderr, "");
    assert_eq!(world.log().len(), 3);
}

// spec: B-08
#[test]
fn a_log_that_cannot_be_written_stops_nothing() {
    let world = World::with_body("RULES");
    world.file("logs", "a file where the folder should be");
    assert_eq!(world.show(&BODY), "RULES");
}

// spec: B-08
#[test]
fn a_log_that_has_grown_is_moved_aside_once() {
    let world = World::with_body("RULES");
    world.file("logs/embody.jsonl", "{}\n".repeat(2 * 1024 * 1024));
    world.show(&BODY);
    assert_eq!(world.log().len(), 1);
    assert!(world.path("logs/embody.jsonl.1").is_file());
}
