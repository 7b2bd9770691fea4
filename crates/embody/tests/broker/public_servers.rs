//! Twenty public servers from npm and PyPI (`tools/public-servers`): behind the broker they list and answer exactly as they
//! do directly, to the byte. `./test` compares the first five; with `EMBODY_PUBLIC_SERVERS=all`, as `cargo xtask soak`
//! sets it, all are compared.
//!
//! No server reaches a network: its proxy does not exist, and no call needs one.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use super::differential::{LISTS, list};
use super::host::{Answer, Host, Reply};
use super::setup::{ALLOW_ALL, body, host, until_state, world};
use crate::peers::{Era, program};
use crate::support::world::World;

/// In arguments and calls: a folder of the test's own, with a git repository `repo` in it.
const SCRATCH: &str = "SCRATCH";

struct Server {
    /// As in `tools/public-servers`.
    name: &'static str,
    arguments: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
    /// The newest era that it speaks, which is the broker's choice.
    era: Era,
    tool: &'static str,
    /// The arguments of a call that answers without a network; some are errors.
    call: &'static str,
}

/// The servers of the short form come first.
const SERVERS: [Server; 20] = [
    Server {
        name: "time",
        arguments: &[],
        environment: &[],
        era: Era::Stateless,
        tool: "convert_time",
        // A valid time would be answered with today's date.
        call: r#"{"source_timezone": "UTC", "time": "25:00", "target_timezone": "Asia/Tokyo"}"#,
    },
    Server {
        name: "git",
        arguments: &[],
        environment: &[],
        era: Era::Stateless,
        tool: "git_status",
        call: r#"{"repo_path": "SCRATCH/repo"}"#,
    },
    Server {
        name: "sequential-thinking",
        arguments: &[],
        environment: &[],
        era: Era::Session,
        tool: "sequentialthinking",
        call: r#"{"thought": "One.", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1}"#,
    },
    Server {
        name: "github",
        arguments: &[],
        environment: &[],
        era: Era::Session,
        tool: "get_issue",
        call: r#"{"owner": "ann"}"#,
    },
    Server {
        name: "playwright",
        arguments: &["--executable-path", "/nonexistent"],
        environment: &[],
        era: Era::Session,
        tool: "browser_navigate",
        call: r#"{"url": "http://127.0.0.1:9/"}"#,
    },
    Server {
        name: "fetch",
        arguments: &[],
        environment: &[],
        era: Era::Stateless,
        tool: "fetch",
        call: r#"{"url": "http://127.0.0.1:9/"}"#,
    },
    Server {
        name: "arxiv",
        arguments: &["--storage-path", "SCRATCH/papers"],
        environment: &[],
        era: Era::Session,
        tool: "list_papers",
        call: "{}",
    },
    Server {
        name: "duckduckgo",
        arguments: &[],
        environment: &[],
        era: Era::Stateless,
        tool: "fetch_content",
        call: r#"{"url": "http://127.0.0.1:9/"}"#,
    },
    Server {
        name: "excel",
        arguments: &["stdio"],
        environment: &[],
        era: Era::Stateless,
        tool: "describe_workbook",
        call: r#"{"path": "/nonexistent.xlsx"}"#,
    },
    Server {
        name: "aws-documentation",
        arguments: &[],
        environment: &[("FASTMCP_LOG_LEVEL", "ERROR")],
        era: Era::Stateless,
        tool: "read_documentation",
        call: r#"{"url": "http://127.0.0.1:9/"}"#,
    },
    Server {
        name: "atlassian",
        arguments: &[],
        environment: &[
            ("JIRA_URL", "http://127.0.0.1:9"),
            ("JIRA_USERNAME", "ann"),
            ("JIRA_API_TOKEN", "none"),
        ],
        era: Era::Session,
        tool: "jira_get_issue",
        call: r#"{"issue_key": "1"}"#,
    },
    Server {
        name: "wikipedia",
        arguments: &[],
        environment: &[],
        era: Era::Stateless,
        tool: "get_summary",
        call: "{}",
    },
    Server {
        name: "chrome-devtools",
        arguments: &["--executablePath", "/nonexistent"],
        environment: &[],
        era: Era::Session,
        tool: "list_pages",
        call: "{}",
    },
    Server {
        name: "context7",
        arguments: &[],
        environment: &[],
        era: Era::Stateless,
        tool: "resolve-library-id",
        call: "{}",
    },
    Server {
        name: "notion",
        arguments: &[],
        environment: &[("NOTION_TOKEN", "none")],
        era: Era::Session,
        tool: "API-get-self",
        call: "{}",
    },
    Server {
        name: "firecrawl",
        arguments: &[],
        environment: &[("FIRECRAWL_API_KEY", "none"), ("FIRECRAWL_API_URL", "http://127.0.0.1:9")],
        era: Era::Session,
        tool: "firecrawl_scrape",
        call: r#"{"url": "http://127.0.0.1:9/"}"#,
    },
    Server {
        name: "brave-search",
        arguments: &["--transport", "stdio"],
        environment: &[("BRAVE_API_KEY", "none")],
        era: Era::Session,
        tool: "brave_web_search",
        call: "{}",
    },
    Server {
        name: "exa",
        arguments: &[],
        environment: &[("EXA_API_KEY", "none")],
        era: Era::Session,
        tool: "web_search_exa",
        call: "{}",
    },
    Server {
        name: "figma",
        arguments: &["--figma-api-key=none", "--stdio"],
        environment: &[],
        era: Era::Session,
        tool: "get_figma_data",
        call: r#"{"fileKey": "not a key"}"#,
    },
    Server {
        name: "airtable",
        arguments: &[],
        environment: &[("AIRTABLE_API_KEY", "none")],
        era: Era::Session,
        tool: "list_tables",
        call: "{}",
    },
];

/// How many are compared in the short form, and how many tests share the long one.
const SHORT: usize = 5;

/// What a host gets to see, as text.
#[derive(Debug)]
struct Observed {
    /// Kind of list → what tells an item from another → the item.
    listed: BTreeMap<&'static str, BTreeMap<String, String>>,
    answer: Answer,
}

impl Server {
    fn words(&self, world: &World) -> Vec<String> {
        let servers = std::env::var_os("EMBODY_TEST_SERVERS").expect(
            "EMBODY_TEST_SERVERS is not set: run ./test, or \
             EMBODY_TEST_SERVERS=$(tools/public-servers install target/public-servers) cargo nextest run",
        );
        let program = PathBuf::from(servers).join("bin").join(self.name);
        assert!(program.exists(), "`{}` is missing: run `tools/public-servers install`", program.display());
        let arguments = self.arguments.iter().map(|word| in_scratch(word, world));
        std::iter::once(program.display().to_string()).chain(arguments).collect()
    }

    fn environment(&self) -> Vec<(&'static str, String)> {
        let node = program("node");
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", node.parent().unwrap().display());
        let nowhere = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"];
        let nowhere = nowhere.map(|name| (name, "http://127.0.0.1:9".to_owned()));
        let own = self.environment.iter().map(|(name, value)| (*name, (*value).to_owned()));
        let node = ("NODE_USE_ENV_PROXY", "1".to_owned());
        // One server puts sets into its schemas, in the order of their hashes.
        let python = ("PYTHONHASHSEED", "0".to_owned());
        nowhere.into_iter().chain([("PATH", path), node, python]).chain(own).collect()
    }

    fn call(&self, world: &World) -> Value {
        let arguments: Value = serde_json::from_str(&in_scratch(self.call, world)).unwrap();
        json!({"name": self.tool, "arguments": arguments})
    }

    fn body(&self, world: &World) -> String {
        let environment: Vec<String> =
            self.environment().iter().map(|(name, value)| format!("{name} = \"{value}\"")).collect();
        let cwd = world.outside("scratch");
        let more = format!("cwd = \"{}\"\nenv = {{ {} }}\n", cwd.display(), environment.join(", "));
        body(self.name, &self.words(world), &more)
    }

    /// The server itself, in an era that it speaks.
    fn directly(&self, world: &World, era: Era) -> Observed {
        let words = self.words(world);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).env_clear().env("HOME", world.outside("home")).envs(self.environment());
        command.current_dir(world.outside("scratch"));
        let mut host = Host::start(command);
        let params = match era {
            Era::Session => {
                // Not `greet`: some answer with an older version.
                let hello = json!({
                    "protocolVersion": "2025-11-25",
                    "capabilities": {},
                    "clientInfo": {"name": "test", "version": "1"},
                });
                host.ask("initialize", &hello.to_string()).result();
                host.notify("notifications/initialized", &json!({}));
                json!({})
            }
            Era::Stateless => json!({"_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            }}),
        };
        let seen = Observed::of(&mut host, &params, self.call(world));
        // Some do not end by themselves when their host is gone.
        host.kill();
        seen
    }

    fn through_the_broker(&self, world: &World) -> Observed {
        world.file("embody.toml", self.body(world) + ALLOW_ALL);
        let mut host = host(world, &json!({}), |_, _| Reply::Error(-32601, "no such method"));
        until_state(&mut host, self.name, "connected");
        let seen = Observed::of(&mut host, &json!({}), self.call(world));
        assert!(host.close().success());
        seen
    }
}

impl Observed {
    fn of(host: &mut Host, params: &Value, call: Value) -> Self {
        let listed = LISTS
            .map(|(method, key, identity)| {
                (method, list(host, params, method, key, identity).into_iter().collect())
            })
            .into();
        let mut call = call;
        call.as_object_mut().unwrap().extend(params.as_object().unwrap().clone());
        Self { listed, answer: host.ask("tools/call", &call.to_string()) }
    }
}

fn in_scratch(text: &str, world: &World) -> String {
    text.replace(SCRATCH, &world.outside("scratch").display().to_string())
}

/// What differs, one line each.
fn differences(server: &Server) -> Vec<String> {
    let world = world(&[]);
    fs::create_dir(world.outside("scratch")).unwrap();
    let repository = world.outside("scratch/repo");
    let made = Command::new("git").args(["init", "-q", "-b", "main"]).arg(repository).status();
    assert!(made.unwrap().success());
    // What this host would get without the broker.
    let mut expected = server.directly(&world, Era::Session);
    if server.era == Era::Stateless {
        // The order of a definition's members differs between the eras.
        expected.listed = server.directly(&world, server.era).listed;
    }
    assert!(!expected.listed["tools/list"].is_empty(), "{} lists no tools", server.name);
    let got = server.through_the_broker(&world);
    let mut differences = Vec::new();
    for (method, items) in &expected.listed {
        for (name, item) in items {
            let listed = got.listed[method].get(name);
            if listed != Some(item) {
                differences.push(format!("{} {method} `{name}`: {item}\n  became {listed:?}", server.name));
            }
        }
    }
    if expected.answer != got.answer {
        differences.push(format!("{}: {:?}\n  became {:?}", server.name, expected.answer, got.answer));
    }
    differences
}

/// Compares one server, or in the long form every fifth after it too.
fn compare_from(first: usize) {
    let is_long = std::env::var("EMBODY_PUBLIC_SERVERS").is_ok_and(|which| which == "all");
    let count = if is_long { SERVERS.len() } else { 1 };
    let compared = SERVERS.iter().skip(first).step_by(SHORT).take(count);
    let differences: Vec<String> = compared.flat_map(differences).collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

// spec: N-05
#[test]
fn time_and_others_are_the_same_behind_the_broker() {
    compare_from(0);
}

// spec: N-05
#[test]
fn git_and_others_are_the_same_behind_the_broker() {
    compare_from(1);
}

// spec: N-05
#[test]
fn sequential_thinking_and_others_are_the_same_behind_the_broker() {
    compare_from(2);
}

// spec: N-05
#[test]
fn github_and_others_are_the_same_behind_the_broker() {
    compare_from(3);
}

// spec: N-05
#[test]
fn playwright_and_others_are_the_same_behind_the_broker() {
    compare_from(4);
}
