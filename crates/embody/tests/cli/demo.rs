//! `embody demo` as a newcomer runs it: in an empty home, at a terminal or in a pipe. What it tells has happened, nothing of
//! it is left, and the README shows what it prints.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::support::world::World;
use crate::terminal::Terminal;

/// The time limit of a demo.
const MINUTE: Duration = Duration::from_secs(60);
const TITLES: [&str; 8] = [
    "1  A host connects and gets the contract",
    "2  A read is forwarded at once",
    "3  A write before the contract bounces",
    "4  The same call again needs approval",
    "5  The message is sent once and recorded",
    "6  The mind is informed",
    "7  The mind fails and recovers",
    "8  The audit chain is intact",
];

fn demo(world: &World) -> Command {
    let mut command = world.command();
    command.arg("demo");
    command
}

/// A world whose temporary folder is its own.
fn newcomer() -> World {
    let world = World::new();
    let folder = world.outside("tmp");
    fs::create_dir(&folder).unwrap();
    world.env("TMPDIR", folder.to_str().unwrap())
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().next().is_none()
}

/// Neither a file nor a process is left. Whatever the demo starts has its environment.
fn left_nothing(world: &World) {
    for folder in ["tmp", "home", "workspace"] {
        assert!(is_empty(&world.outside(folder)), "something is left in {folder}");
    }
    let mark = world.outside("tmp").to_str().unwrap().to_owned();
    for entry in fs::read_dir("/proc").unwrap().filter_map(Result::ok) {
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&environment).contains(&mark), "{:?} is left", entry.path());
    }
}

fn says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
}

// spec: N-16
#[test]
fn the_demo_prints_every_step_and_removes_its_folder() {
    let world = newcomer();
    let began = Instant::now();
    let done = world.run_bare(&["demo", "--yes"]).ok();
    assert!(began.elapsed() < MINUTE);
    assert_eq!(done.stderr, "");
    left_nothing(&world);
    let text = &done.stdout;
    says(text, &TITLES);
    says(
        text,
        &[
            "→ runtime_bootstrap {}",
            "│ These rules come first and always hold.",
            "│ Your name is Nova",
            "1 memory, nothing degraded",
            r#""title":"Tell Ann that the workshop moves to Thursday""#,
            "← bounce: this call arrived before the session contract was delivered",
            "│ body: embody",
            "│ tool: send_message",
            "│ Send message to ann@example.com and demo? 28 characters, embody/send_message",
            r#"│   "text": "The workshop is on Thursday.""#,
            "the script approves for you",
            r#""state":"waiting""#,
            "│ to ann@example.com: The workshop is on Thursday.",
            "decision  bounce",
            "intent    send_message",
            "outcome   done",
            "before  only 1 call was seen so far",
            "now     only 2 calls were seen so far",
            "← degraded: mind_unavailable",
            "1 task: reads still work",
            "← blocked: the mind does not answer",
            "← nothing is degraded",
            "← task 2, open: writes work again",
            "│ intact  chain ",
            "The temporary folder is removed.",
        ],
    );
    assert!(!text.contains('\u{1b}'), "{text}");
    let wide = text.lines().find(|line| line.chars().count() > 100);
    assert_eq!(wide, None);
}

#[test]
fn the_demo_ignores_the_users_workspace_and_configuration() {
    let world = newcomer()
        .env("EMBODY_STORE__URL", "postgres://nobody@127.0.0.1:1/none")
        .env("EMBODY_POLICY__MIND_DOWN", "warn")
        .env("EMBODY_USER", "somebody")
        .env("TELEGRAM_BOT_TOKEN", "1:secret");
    let broken = "[prompt]\nbudget_tokns = 3\n";
    world.file("embody.toml", broken);
    world.file("IDENTITY.md", "---\nname: Otto\n---\n");
    let done = world.run(&["demo", "--yes"]).ok();
    says(&done.stdout, &TITLES);
    says(&done.stdout, &["Your name is Nova", "agent assistant of user owner", "← blocked: the mind"]);
    assert_eq!(fs::read_to_string(world.path("embody.toml")).unwrap(), broken);
    assert_eq!(fs::read_dir(world.workspace()).unwrap().count(), 2);
    assert!(is_empty(&world.outside("tmp")) && is_empty(&world.outside("home")));
}

#[test]
fn programs_get_the_same_as_json() {
    let world = newcomer();
    let reported = world.run_bare(&["demo", "--yes", "--json"]).ok().json();
    let steps = reported["steps"].as_array().unwrap();
    let titles: Vec<String> =
        steps.iter().map(|step| format!("{}  {}", step["number"], step["title"].as_str().unwrap())).collect();
    assert_eq!(titles, TITLES);
    says(steps[6]["text"].as_str().unwrap(), &["← blocked: "]);
    assert_eq!(reported["approved"], true);
    assert_eq!(reported["audit"][0]["state"], "intact");
    assert!(reported["audit"][0]["records"].as_u64().unwrap() > 5, "{reported}");
    left_nothing(&world);
}

#[test]
fn without_a_terminal_the_demo_needs_yes() {
    let world = newcomer();
    for arguments in [&["demo"][..], &["demo", "--json"]] {
        let done = world
            .run_bare(arguments)
            .ended(2)
            .says(&["error: the demo asks for an approval", "hint: `embody demo --yes`"]);
        assert_eq!(done.stdout, "");
    }
    left_nothing(&world);
}

#[test]
fn an_unwritable_temporary_folder_is_reported() {
    let world = newcomer().env("TMPDIR", "/nowhere/at/all");
    world.run_bare(&["demo", "--yes"]).ended(1).says(&["`/nowhere/at/all/embody-demo-", "TMPDIR"]);
}

// spec: N-10
#[test]
fn a_no_at_the_terminal_denies_the_call() {
    let world = newcomer();
    let mut terminal = Terminal::start(demo(&world));
    terminal.until("May it be sent? [y/N] ");
    terminal.write("perhaps\n");
    terminal.until("Please answer y or n.");
    terminal.until("May it be sent? [y/N] ");
    terminal.write("n\n");
    let (status, text) = terminal.end();
    assert!(status.success(), "{text}");
    says(
        &text,
        &[
            "5  The message is not sent, and that is recorded",
            "← deny: the owner declined it in this host",
            "decision  deny",
            "6  The mind is not informed of a call that was not sent",
            "now     only 1 call was seen so far",
            TITLES[6],
            "│ intact  chain ",
        ],
    );
    assert!(!text.contains("intent    send_message") && !text.contains("│ to ann@example.com"), "{text}");
    left_nothing(&world);
}

#[test]
fn a_yes_at_the_terminal_sends_and_colours_are_shown_there() {
    let world = newcomer().env("TERM", "xterm");
    let mut terminal = Terminal::start(demo(&world));
    terminal.until("May it be sent? [y/N] ");
    terminal.write("y\n");
    let (status, text) = terminal.end();
    assert!(status.success(), "{text}");
    says(&text, &["The message is sent once and recorded", "to ann@example.com: The workshop", "\u{1b}["]);
    left_nothing(&world);
}

#[test]
fn an_interrupted_demo_leaves_nothing() {
    let world = newcomer();
    let mut terminal = Terminal::start(demo(&world));
    terminal.until("May it be sent? [y/N] ");
    assert!(!is_empty(&world.outside("tmp")), "it works in the temporary folder");
    terminal.signal(Signal::INT);
    let (status, text) = terminal.end();
    assert_eq!(status.code(), Some(1), "{text}");
    says(&text, &["\nerror: the demo was interrupted"]);
    left_nothing(&world);
}

/// The README shows what the demo prints: each line of it, in order; where it has `…` alone, lines are left out.
#[test]
fn the_readme_shows_what_is_printed() {
    let readme = include_str!("../../../../README.md");
    let after = readme.split_once("\n## What you see\n").expect("the README shows the demo").1;
    let shown = after.split_once("```text\n").unwrap().1.split_once("\n```").unwrap().0;
    let printed = newcomer().run_bare(&["demo", "--yes"]).ok().stdout;
    let mut rest = printed.lines().map(steady);
    let mut may_skip = true;
    let mut count = 0;
    for line in shown.lines().map(steady) {
        if line == "…" {
            may_skip = true;
            continue;
        }
        let found = if may_skip { rest.find(|other| *other == line) } else { rest.next() };
        assert_eq!(found.as_ref(), Some(&line), "the README is not what the demo prints:\n{printed}");
        (may_skip, count) = (false, count + 1);
    }
    assert!(count > 15, "the README shows little of it");
}

/// A line without what differs from run to run, or with every change of the templates: ids, times, lengths.
fn steady(line: &str) -> String {
    let pieces = line.trim_end().split_inclusive([' ', '"', ',']).map(|piece| {
        let (bare, end) = piece.split_at(piece.trim_end_matches([' ', '"', ',']).len());
        let is_id = bare.len() >= 16 && bare.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
        let is_time = bare.starts_with("20") && bare.contains('T') && bare.ends_with('Z');
        let bare = if is_id {
            "ID"
        } else if is_time {
            "TIME"
        } else {
            bare
        };
        format!("{bare}{end}")
    });
    let mut pieces: Vec<String> = pieces.collect();
    for index in 1..pieces.len() {
        let unit = pieces[index].trim_end_matches([' ', ',', '.', ':']);
        if ["ms", "s", "characters"].contains(&unit) && pieces[index - 1].trim_end().parse::<f64>().is_ok() {
            pieces[index - 1] = "N ".to_owned();
        }
    }
    pieces.concat()
}
