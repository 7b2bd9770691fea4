//! The three well-known servers that `tools/mcp-peers` installs, each as a command and as a body of the broker, with the
//! same folder, the same environment and a clock that stands still.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use super::host::Reply;
use super::setup::body;
use crate::peers::program;
use crate::support::world::World;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Server {
    Everything,
    Filesystem,
    Memory,
}

impl Server {
    pub(super) const ALL: [Self; 3] = [Self::Everything, Self::Filesystem, Self::Memory];

    fn name(self) -> &'static str {
        match self {
            Self::Everything => "everything",
            Self::Filesystem => "filesystem",
            Self::Memory => "memory",
        }
    }
}

/// Where they work: beside a workspace.
pub(super) struct Servers<'a>(&'a World);

impl<'a> Servers<'a> {
    /// Everything that they find, as it is at the beginning.
    pub(super) fn prepare(world: &'a World) -> Self {
        let servers = Self(world);
        world.file_outside("servers/still.cjs", include_str!("still.cjs"));
        // Never made anew: the times of its files are in an answer.
        world.file_outside("servers/kept/kept.txt", "kept\n");
        servers.reset();
        servers
    }

    /// Takes back what they have changed.
    pub(super) fn reset(&self) {
        let _ = fs::remove_dir_all(self.path("files"));
        let _ = fs::remove_file(self.path("memory.jsonl"));
        for (name, content) in [
            ("a.txt", "one\ntwo\nthree\n".as_bytes()),
            ("b.md", "# Überschrift\n\n„Zitat“ \u{1f9ed}\n".as_bytes()),
            ("empty.txt", b""),
            ("picture.png", b"\x89PNG\r\n\x1a\nnot much of one"),
            ("sound.mp3", b"ID3\x03\x00"),
            ("blob.bin", b"\x00\x01\xfe\xff"),
            ("sub/c.txt", b"deep\n"),
            ("sub/deeper/d.txt", b"deeper\n"),
        ] {
            self.0.file_outside(&format!("servers/files/{name}"), content);
        }
    }

    /// A path that they know.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.outside("servers").join(name)
    }

    /// The server itself.
    pub(super) fn command(&self, server: Server) -> Command {
        let words = self.words(server);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).env_clear().envs(self.environment()).current_dir(self.path(""));
        command.env("HOME", self.0.outside("home")).env("PATH", "/usr/bin:/bin");
        command
    }

    /// The server as a body.
    pub(super) fn body(&self, server: Server) -> String {
        let environment: Vec<String> =
            self.environment().map(|(name, value)| format!("{name} = \"{value}\"")).to_vec();
        let more = format!(
            "cwd = \"{}\"\nenv = {{ {} }}\nsampling = \"allow\"\nroots = \"forward\"\n",
            self.path("").display(),
            environment.join(", ")
        );
        body(server.name(), &self.words(server), &more)
    }

    fn words(&self, server: Server) -> Vec<String> {
        let mut words = vec![program(&format!("server-{}", server.name())).display().to_string()];
        if server == Server::Filesystem {
            words.extend(["files", "kept"].map(|folder| self.path(folder).display().to_string()));
        }
        words
    }

    fn environment(&self) -> [(&'static str, String); 2] {
        [
            ("NODE_OPTIONS", format!("--require={}", self.path("still.cjs").display())),
            ("MEMORY_FILE_PATH", self.path("memory.jsonl").display().to_string()),
        ]
    }

    /// A host that can do everything that they ask for.
    pub(super) fn capabilities() -> Value {
        json!({
            "sampling": {},
            "elicitation": {"form": {}, "url": {}},
            "roots": {"listChanged": true},
            "tasks": {
                "list": {},
                "cancel": {},
                "requests": {"sampling": {"createMessage": {}}, "elicitation": {"create": {}}},
            },
        })
    }

    /// The responses of that host. It runs calls as tasks if requested.
    pub(super) fn script(&self) -> impl FnMut(&str, &Value) -> Reply + use<> {
        let roots = ["files", "kept"].map(|name| format!("file://{}", self.path(name).display()));
        let roots = roots.map(|uri| json!({"uri": uri, "name": "a root"}));
        let mut task = "";
        move |method, params| {
            if params.get("task").is_some() {
                task = if method.starts_with("elicitation") { "elicitation" } else { "sampling" };
                return Reply::Result(json!({"task": working(task)}));
            }
            let asked = match method {
                "tasks/result" => task,
                _ => method.split_once('/').map_or("", |(kind, _)| kind),
            };
            match (asked, method) {
                ("roots", _) => Reply::Result(json!({"roots": roots})),
                ("sampling", _) => Reply::Result(json!({
                    "role": "assistant",
                    "content": {"type": "text", "text": "As you say. \u{1f99c}"},
                    "model": "a parrot",
                    "stopReason": "endTurn",
                })),
                ("elicitation", _) if params["mode"] == "url" => Reply::Result(json!({"action": "accept"})),
                ("elicitation", _) => Reply::Result(json!({
                    "action": "accept",
                    "content": {"name": "Ann", "check": true, "interpretation": "historical"},
                })),
                (_, "tasks/get") => {
                    let mut done = working(task);
                    done["status"] = "completed".into();
                    Reply::Result(done)
                }
                _ => Reply::Error(-32601, "no such method"),
            }
        }
    }
}

fn working(task: &str) -> Value {
    let at = "2026-01-01T00:00:00Z";
    json!({
        "taskId": format!("the host's {task}"),
        "status": "working",
        "ttl": null,
        "createdAt": at,
        "lastUpdatedAt": at,
        "pollInterval": 10,
    })
}
