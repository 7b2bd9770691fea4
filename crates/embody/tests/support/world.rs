//! A workspace and a home of its own for every test, and the binary run in them: nothing of the environment inherited,
//! no terminal, and never longer than a minute.

use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

/// What stands between the body and everything below it.
pub(crate) const SEPARATOR: &str = "\n\n---\n\n";

/// Longer than any limit of the program; a run that takes it has hung.
const PATIENCE: Duration = Duration::from_secs(60);

const CONTRACT_DELAY: &str = "EMBODY_POLICY__CONTRACT_DELAY_MS";

pub(crate) struct World {
    root: TempDir,
    env: Vec<(String, String)>,
}

/// What a run came to.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl World {
    /// An empty workspace.
    pub(crate) fn new() -> Self {
        Self::at(tempfile::tempdir().unwrap())
    }

    /// An empty workspace in this folder.
    pub(crate) fn at(root: TempDir) -> Self {
        fs::create_dir(root.path().join("home")).unwrap();
        fs::create_dir(root.path().join("workspace")).unwrap();
        // The tests' clients are programs, which answer at once.
        Self { root, env: vec![(CONTRACT_DELAY.to_owned(), "0".to_owned())] }
    }

    /// A workspace with that body and nothing else.
    pub(crate) fn with_body(text: &str) -> Self {
        let world = Self::new();
        world.file("prompts/agent_system.md", text);
        world
    }

    /// The same world for hosts with a model, which takes its time.
    pub(crate) fn with_model(mut self) -> Self {
        self.env.retain(|(name, _)| name != CONTRACT_DELAY);
        self
    }

    /// The same world with a variable set for every run.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.root.path().join("workspace")
    }

    /// A path beside the workspace, which is outside of it.
    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.workspace().join(name)
    }

    /// Writes a file of the workspace.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) {
        write(&self.path(name), content);
    }

    /// Writes a file beside the workspace.
    pub(crate) fn file_outside(&self, name: &str, content: impl AsRef<[u8]>) {
        write(&self.outside(name), content);
    }

    pub(crate) fn link(&self, name: &str, target: impl AsRef<Path>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
    }

    pub(crate) fn fifo(&self, name: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        assert!(fs::metadata(&path).unwrap().file_type().is_fifo());
    }

    /// Runs `embody --workspace … ARGUMENTS`.
    pub(crate) fn run(&self, arguments: &[&str]) -> CommandOutput {
        let mut command = self.command();
        command.arg("--workspace").arg(self.workspace()).args(arguments);
        finish(command)
    }

    /// Runs `embody --workspace … ARGUMENTS` with a terminal as its stdout; what that is sent.
    pub(crate) fn run_in_terminal(&self, arguments: &[&str]) -> String {
        self.in_terminal(arguments, "2>/dev/null")
    }

    /// The same with its stderr on the terminal, too.
    pub(crate) fn run_all_in_terminal(&self, arguments: &[&str]) -> String {
        self.in_terminal(arguments, "")
    }

    fn in_terminal(&self, arguments: &[&str], stderr: &str) -> String {
        let alone = self.command();
        let line = format!(
            "'{}' --workspace '{}' {} {stderr}",
            alone.get_program().display(),
            self.workspace().display(),
            arguments.join(" ")
        );
        let mut command = Command::new("script");
        command.args(["--quiet", "--return", "--command", &line, "/dev/null"]).env_clear();
        command.envs(alone.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        finish(command).ok().stdout
    }

    /// Runs `embody ARGUMENTS`.
    pub(crate) fn run_bare(&self, arguments: &[&str]) -> CommandOutput {
        let mut command = self.command();
        command.args(arguments);
        finish(command)
    }

    /// The prompt: stdout of `prompt show …`, which must succeed.
    pub(crate) fn show(&self, arguments: &[&str]) -> String {
        self.run(&[&["prompt", "show"], arguments].concat()).ok().stdout
    }

    /// The report: `prompt show … --json`, which must succeed.
    pub(crate) fn report(&self, arguments: &[&str]) -> Report {
        Report(self.run(&[&["prompt", "show", "--json"], arguments].concat()).ok().json())
    }

    /// The lines of `logs/embody.jsonl`, each of which must be a JSON object.
    pub(crate) fn log(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.path("logs/embody.jsonl")).unwrap();
        assert!(text.is_empty() || text.ends_with('\n'), "{text}");
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(lines.iter().all(Value::is_object), "{text}");
        lines
    }

    pub(crate) fn last_log(&self) -> Value {
        self.log().pop().unwrap()
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_embody"));
        command
            .env_clear()
            .env("HOME", self.root.path().join("home"))
            .env("PATH", "/usr/bin:/bin")
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .current_dir(self.root.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

pub(crate) fn finish(mut command: Command) -> CommandOutput {
    let child = command.spawn().unwrap();
    let (sender, output) = mpsc::channel();
    std::thread::spawn(move || sender.send(child.wait_with_output().unwrap()));
    let output = output.recv_timeout(PATIENCE).expect("the program must end");
    CommandOutput {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn write(path: &Path, content: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

impl CommandOutput {
    /// The same run, which must have ended with 0.
    pub(crate) fn ok(self) -> Self {
        self.ended(0)
    }

    /// The same run, which must have ended with that code.
    pub(crate) fn ended(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    /// Whether stderr has every one of these.
    pub(crate) fn says(self, words: &[&str]) -> Self {
        for word in words {
            assert!(self.stderr.contains(word), "no {word:?} in {self:#?}");
        }
        self
    }
}

/// What `prompt show --json` prints.
pub(crate) struct Report(pub(crate) Value);

impl Report {
    pub(crate) fn text(&self) -> &str {
        self.0["text"].as_str().unwrap()
    }

    pub(crate) fn kinds(&self) -> Vec<&str> {
        self.sections().iter().map(|section| section["kind"].as_str().unwrap()).collect()
    }

    pub(crate) fn sections(&self) -> &[Value] {
        self.0["sections"].as_array().unwrap()
    }

    pub(crate) fn section(&self, kind: &str) -> Option<&Value> {
        self.sections().iter().find(|section| section["kind"] == kind)
    }

    /// The text of a section, which must be there.
    pub(crate) fn text_of(&self, kind: &str) -> &str {
        let section = self.section(kind).unwrap_or_else(|| panic!("no {kind} in {:?}", self.kinds()));
        let at = |key: &str| usize::try_from(section[key].as_u64().unwrap()).unwrap();
        &self.text()[at("start")..at("end")]
    }

    /// The notes of a kind, each as `SOURCE:LINE MESSAGE`.
    pub(crate) fn notes(&self, kind: &str) -> Vec<String> {
        let notes = self.0["notes"].as_array().unwrap().iter().filter(|note| note["kind"] == kind);
        let shown = |note: &Value| {
            let text = |key: &str| note[key].as_str().unwrap().to_owned();
            format!("{}:{} {}", text("source"), note["line"], text("message"))
        };
        notes.map(shown).collect()
    }
}
