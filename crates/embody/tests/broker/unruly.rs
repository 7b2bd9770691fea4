//! The body that misbehaves on command (`crates/broker/examples/unruly`), and what it has written down.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::host::SOON;
use crate::support::world::World;

/// How it is started, and where it writes down what it does.
pub(super) struct Unruly {
    words: Vec<String>,
    log: PathBuf,
}

impl Unruly {
    /// One that writes to that file.
    pub(super) fn new(log: PathBuf) -> Self {
        let tests = std::env::current_exe().unwrap();
        let program = tests.parent().unwrap().parent().unwrap().join("examples/unruly");
        assert!(
            program.exists(),
            "{} is missing: `cargo build -p embody-broker --example unruly`",
            program.display()
        );
        let words = [program.as_path(), Path::new("--log"), &log].map(|word| word.display().to_string());
        Self { words: words.to_vec(), log }
    }

    /// The same with further words on its command line.
    pub(super) fn with(mut self, words: &[&str]) -> Self {
        self.words.extend(words.iter().map(|word| (*word).to_owned()));
        self
    }

    /// Its command line.
    pub(super) fn words(&self) -> &[String] {
        &self.words
    }

    /// Everything that is written down whole. A process that is killed may leave half a line.
    pub(super) fn events(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let lines = whole.lines().filter(|line| !line.is_empty()).map(serde_json::from_str);
        let is_whole =
            |read: &serde_json::Result<Value>| !read.as_ref().is_err_and(serde_json::Error::is_eof);
        lines.filter(is_whole).map(Result::unwrap).collect()
    }

    /// Those of a kind.
    pub(super) fn of_kind(&self, kind: &str) -> Vec<Value> {
        self.events().into_iter().filter(|event| event["event"] == kind).collect()
    }

    /// The arguments of every executed call of a tool, in order.
    pub(super) fn calls(&self, tool: &str) -> Vec<Value> {
        let calls = self.of_kind("call").into_iter().filter(|call| call["tool"] == tool);
        calls.map(|mut call| call["params"]["arguments"].take()).collect()
    }

    /// Waits until so many things of a kind have happened.
    pub(super) fn until(&self, kind: &str, count: usize) -> Vec<Value> {
        let deadline = Instant::now() + SOON;
        loop {
            let found = self.of_kind(kind);
            if found.len() >= count {
                return found;
            }
            assert!(Instant::now() < deadline, "{} of {count} `{kind}`: {:#?}", found.len(), self.events());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until none of its processes, nor any that they have started, is left.
    pub(super) fn gone(&self) {
        let started = self.of_kind("start");
        let ids: Vec<u64> = started
            .iter()
            .flat_map(|start| [&start["pid"], &start["child"]])
            .filter_map(Value::as_u64)
            .collect();
        assert!(!ids.is_empty(), "it was never started");
        let deadline = Instant::now() + SOON;
        while let Some(id) = ids.iter().find(|id| is_alive(**id)) {
            assert!(Instant::now() < deadline, "process {id} is left: {started:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Whether a process runs; one that has ended and was not collected does not.
pub(super) fn is_alive(id: u64) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{id}/stat")) else { return false };
    !stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z') || rest.starts_with('X'))
}

/// A mind with scripted answers: `unruly` with the tools of a mind.
pub(super) struct Mind {
    tools: Vec<&'static str>,
    replies: Value,
}

impl Mind {
    /// One that has nothing against anything.
    pub(super) fn new() -> Self {
        let structured = |data: Value| json!({"result": {"content": [], "structuredContent": data}});
        let replies = json!({
            "bootstrap_session": structured(json!({"schema_version": 1, "mind_contract": "Speak softly.", "mind_contract_available": true})),
            "get_system_prompt": {"result": {"content": [{"type": "text", "text": "Speak softly."}]}},
            "context": structured(json!({"open_commitments": [], "recent": [], "instructions": ""})),
            "list_memory_files": structured(json!({"files": []})),
            "observe": structured(json!({"prediction_error": 0.1, "cautionary_flags": [], "reasons": [], "related": []})),
            "reflect": structured(json!({"noted": true, "related": []})),
        });
        let tools =
            ["bootstrap_session", "get_system_prompt", "context", "list_memory_files", "observe", "reflect"];
        Self { tools: tools.to_vec(), replies }
    }

    /// One that lacks a tool.
    pub(super) fn without(tool: &str) -> Self {
        let mut mind = Self::new();
        mind.tools.retain(|name| *name != tool);
        mind
    }

    /// The same with another reply: `{trick?, amount?, result?}`.
    pub(super) fn replying(mut self, tool: &str, reply: &Value) -> Self {
        self.replies[tool] = reply.clone();
        self
    }

    /// One whose view of every call is this.
    pub(super) fn viewing(self, prediction_error: f64, flags: &[&str]) -> Self {
        let view = json!({"prediction_error": prediction_error, "cautionary_flags": flags, "reasons": flags, "related": []});
        self.replying("observe", &json!({"result": {"content": [], "structuredContent": view}}))
    }

    /// Makes it the mind of the workspace. It is there while `mind.here` is.
    pub(super) fn serve(&self, world: &World) {
        let tool = |name: &&str| json!({"name": name, "description": format!("The mind's {name}."), "inputSchema": {"type": "object"}});
        world.file_outside(
            "mind.tools",
            Value::from(self.tools.iter().map(tool).collect::<Vec<_>>()).to_string(),
        );
        self.reply(world);
        world.file_outside("mind.here", "");
        let config = std::fs::read_to_string(world.path("embody.toml")).unwrap();
        let command = Value::from(self.process(world).words());
        let config = format!("{config}\n[mind]\ncommand = {command}\n");
        world.file("embody.toml", config);
    }

    /// From now on it replies like this, without a restart.
    pub(super) fn reply(&self, world: &World) {
        world.file_outside("mind.replies", self.replies.to_string());
    }

    /// Its command, and what it has written down.
    pub(super) fn process(&self, world: &World) -> Unruly {
        let path = |name: &str| world.outside(name).display().to_string();
        Unruly::new(world.outside("mind.log")).with(&[
            "--tools",
            &path("mind.tools"),
            "--replies",
            &path("mind.replies"),
            "--while",
            &path("mind.here"),
        ])
    }
}
