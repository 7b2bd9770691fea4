//! The commands in the README and the quick start work as they stand there: each `sh` fence runs in a shell, in order, in one
//! empty home. A fence that cannot run here says so and why: ```` ```sh no-test: REASON ````.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::world::World;

const README: &str = include_str!("../../../../README.md");
const QUICK_START: &str = include_str!("../../../../docs/quick-start.md");
/// Longer than any of the commands takes.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A fenced block: the words after the fence, and its lines.
struct Fence<'a> {
    info: &'a str,
    text: String,
}

fn fences(page: &str) -> Vec<Fence<'_>> {
    let mut lines = page.lines();
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        if let Some(info) = line.strip_prefix("```") {
            let inside = lines.by_ref().take_while(|line| !line.starts_with("```"));
            let text = inside.map(|line| format!("{line}\n")).collect();
            found.push(Fence { info, text });
        }
    }
    found
}

/// The scripts of a page, without those that are marked with a reason.
fn scripts(page: &str) -> Vec<String> {
    let shell = fences(page).into_iter().filter(|fence| fence.info.split(' ').next() == Some("sh"));
    shell
        .filter(|fence| {
            let mark = fence.info.strip_prefix("sh").unwrap().trim();
            let reason = mark.strip_prefix("no-test:").map(str::trim);
            assert!(mark.is_empty() || reason.is_some_and(|reason| !reason.is_empty()), "{:?}", fence.info);
            mark.is_empty()
        })
        .map(|fence| fence.text.replace("cargo run --release --", "embody"))
        .collect()
}

/// The shell, with the built program as `embody` and nothing of this environment but `PATH`.
fn shell(home: &Path, script: &str) -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_embody"));
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("sh");
    command.args(["-eu", "-c", script]).env_clear().env("HOME", home).env("PATH", path).current_dir(home);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs the lines before and after `embody up` in the shell, and `embody up` until its first line of output.
fn run(home: &Path, script: &str) {
    let mut pending = String::new();
    for line in script.lines() {
        if line.starts_with("embody up") {
            finish(home, &std::mem::take(&mut pending));
            serve(home);
        } else {
            pending.push_str(line);
            pending.push('\n');
        }
    }
    finish(home, &pending);
}

fn finish(home: &Path, script: &str) {
    let output = shell(home, script).output().unwrap();
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "this fails:\n{script}\n{text}");
}

/// `embody up` on a free port, because the documented one may be in use here.
fn serve(home: &Path) {
    let mut process = shell(home, "exec embody up --listen 127.0.0.1:0").spawn().unwrap();
    let mut first = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert!(first.starts_with("http://127.0.0.1:") && first.contains("/#code="), "{first:?}");
    let pid = Pid::from_raw(i32::try_from(process.id()).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    let began = Instant::now();
    loop {
        if let Some(status) = process.try_wait().unwrap() {
            break assert!(status.success(), "{status}");
        }
        assert!(began.elapsed() < TIMEOUT, "`embody up` does not end");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn run_page(page: &str, at_least: usize) {
    let world = World::new();
    let home = world.outside("home");
    let scripts = scripts(page);
    let commands: usize = scripts.iter().map(|script| script.matches("embody ").count()).sum();
    assert!(commands >= at_least, "only {commands} commands were found");
    scripts.iter().for_each(|script| run(&home, script));
    assert!(fs::exists(home.join(".embody/embody.toml")).unwrap());
}

#[test]
fn the_commands_of_the_readme_work_in_an_empty_home() {
    run_page(README, 3);
}

#[test]
fn the_commands_of_the_quick_start_work_in_an_empty_home() {
    run_page(QUICK_START, 10);
}

/// The configuration that both pages show is accepted as it stands.
#[test]
fn the_configuration_in_the_readme_and_the_quick_start_is_valid() {
    for page in [README, QUICK_START] {
        let shown: Vec<Fence<'_>> = fences(page).into_iter().filter(|fence| fence.info == "toml").collect();
        assert!(!shown.is_empty());
        for fence in shown {
            let world = World::new();
            world.file("embody.toml", &fence.text);
            world.run(&["config", "check"]).ok();
        }
    }
}

#[test]
fn a_fence_without_a_reason_is_not_left_out() {
    let page = "```sh\none\n```\n```sh no-test: needs a network\ntwo\n```\n```text\nthree\n```\n";
    assert_eq!(scripts(page), ["one\n"]);
    assert!(std::panic::catch_unwind(|| scripts("```sh no-test\none\n```\n")).is_err());
}
