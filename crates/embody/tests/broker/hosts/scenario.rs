//! A workspace with one body, the broker's entry for a host, and the owner at a terminal.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use super::super::setup::{body, broker, until};
use super::super::unruly::{Mind, Unruly};
use super::model::{Model, Next, Request, Step};
use super::program::{Entry, Program};
use crate::peers::Listening;
use crate::support::world::World;

/// The body's rules: the contract has them word for word.
pub(super) const RULES: &str = "Be honest. The rules of the house.";
/// How the model ends its turn.
pub(super) const DONE: &str = "That is all.";
/// The body's tools that others see.
pub(super) const WRITES: [&str; 3] = ["send_note", "send_parcel", "erase"];

/// How the host reaches the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Link {
    Stdio,
    /// Over stdio, behind a relay that rejects `server/discover`: the host falls back to the `initialize` handshake.
    StdioWithoutDiscover,
    Http,
}

pub(super) struct Scenario {
    pub(super) world: World,
    pub(super) desk: Unruly,
}

/// The entry, and the server behind it if the host does not start one.
pub(super) struct Connection {
    entry: Entry,
    _server: Option<Listening>,
}

impl Scenario {
    /// `policy` is the top of `embody.toml`. The mind is the embedded one.
    pub(super) fn new(policy: &str) -> Self {
        let world = World::with_body(RULES).with_model();
        let path = |name: &str| world.outside(name).display().to_string();
        let words = [
            "--tools",
            &path("desk.tools"),
            "--replies",
            &path("desk.replies"),
            "--while",
            &path("desk.here"),
        ];
        let desk = Unruly::new(world.outside("desk.log")).with(&words);
        let scenario = Self { world, desk };
        scenario.describe_erase("Removes the draft.");
        let parcel = json!({"content": [{"type": "text", "text": "{\"number\":4711}"}], "structuredContent": {"number": 4711}});
        let weight = json!({"content": [{"type": "text", "text": "{\"grams\":250}"}], "structuredContent": {"grams": 250}});
        let replies = json!({"send_parcel": {"result": parcel}, "measure": {"result": weight}});
        scenario.world.file_outside("desk.replies", replies.to_string());
        scenario.world.file_outside("desk.here", "");
        scenario.configure(policy);
        scenario
    }

    /// Writes `embody.toml`.
    pub(super) fn configure(&self, policy: &str) {
        // A starting host takes most of the machine: the mind gets more time than usual.
        let mind = "[mind]\nobserve_timeout_ms = 20000\n";
        self.world.file("embody.toml", format!("{policy}{mind}{}", body("desk", self.desk.words(), "")));
    }

    /// Replaces the embedded mind.
    pub(super) fn use_mind(&self, mind: &Mind) {
        let config = fs::read_to_string(self.world.path("embody.toml")).unwrap();
        let command = Value::from(mind.process(&self.world).words());
        let config = config.replace("[mind]\n", &format!("[mind]\ncommand = {command}\n"));
        mind.serve(&self.world);
        self.world.file("embody.toml", config);
    }

    /// Two reads and three writes; one of each kind has an `outputSchema`.
    pub(super) fn describe_erase(&self, description: &str) {
        let text = json!({"type": "object", "properties": {"text": {"type": "string"}}});
        let trick = json!({"type": "object", "properties": {"trick": {"type": "string"}}});
        let number = |name: &str| json!({"type": "object", "properties": {name: {"type": "integer"}}, "required": [name], "additionalProperties": false});
        let read = json!({"readOnlyHint": true});
        let tools = json!([
            {"name": "look", "description": "Looks around.", "inputSchema": trick, "annotations": read},
            {"name": "measure", "description": "Weighs the parcel.", "inputSchema": {"type": "object"}, "outputSchema": number("grams"), "annotations": read},
            {"name": "send_note", "description": "Sends a note.", "inputSchema": text, "annotations": {}},
            {"name": "send_parcel", "description": "Sends the parcel.", "inputSchema": text, "outputSchema": number("number"), "annotations": {}},
            {"name": "erase", "description": description, "inputSchema": {"type": "object"}, "annotations": {"destructiveHint": true}},
        ]);
        self.world.file_outside("desk.tools", tools.to_string());
    }

    /// From now on the body cannot be started.
    pub(super) fn stop_desk(&self) {
        fs::remove_file(self.world.outside("desk.here")).unwrap();
    }

    pub(super) fn connect(&self, link: Link) -> Connection {
        let mut command = broker(&self.world);
        let mut words: Vec<String> = std::iter::once(command.get_program())
            .chain(command.get_args())
            .map(|word| word.to_str().unwrap().to_owned())
            .collect();
        match link {
            Link::Stdio => Connection { entry: Entry::Command(words), _server: None },
            Link::StdioWithoutDiscover => {
                words.insert(0, self.relay().display().to_string());
                words.insert(0, "bash".to_owned());
                Connection { entry: Entry::Command(words), _server: None }
            }
            Link::Http => {
                let made = self.world.run(&[
                    "token",
                    "add",
                    "--user",
                    "owner",
                    "--scope",
                    "mcp",
                    "--may-approve",
                    "--json",
                ]);
                let token = made.ok().json()["token"].as_str().unwrap().to_owned();
                let server = Listening::start(command.args(["--listen", "127.0.0.1:0"]));
                Connection { entry: Entry::Http { url: server.url.clone(), token }, _server: Some(server) }
            }
        }
    }

    /// A script that starts the broker and passes everything on to it but `server/discover`.
    fn relay(&self) -> PathBuf {
        let script = r#"exec 3> >(exec "$@")
while IFS= read -r line; do
  case $line in
    *'"server/discover"'*)
      [[ $line =~ \"id\":([^,}]+) ]]
      printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}\n' "${BASH_REMATCH[1]}"
      ;;
    *) printf '%s\n' "$line" >&3 ;;
  esac
done
"#;
        self.world.file_outside("relay.sh", script);
        self.world.outside("relay.sh")
    }

    /// The number of writes that have arrived at the body.
    pub(super) fn writes(&self) -> usize {
        let calls = self.desk.of_kind("call");
        calls.iter().filter(|call| WRITES.iter().any(|write| call["tool"] == *write)).count()
    }

    /// Runs the host once: one conversation. The model must have read the contract whenever one of its writes arrived.
    pub(super) fn run(
        self: &Arc<Self>,
        program: Program,
        connection: &Connection,
        script: impl FnMut(&Request) -> Next + Send + 'static,
    ) -> Vec<Step> {
        let observed = Arc::clone(self);
        let model = Model::start(move || observed.writes(), script);
        let before = self.writes();
        let output = program.run(&self.world, &model, &connection.entry);
        let steps = model.steps();
        // Shown when the test fails.
        println!("results: {:#?}", steps.last().map(|step| &step.request.results));
        assert!(output.contains(DONE), "{output}");
        assert_eq!(steps[0].count, before, "a write arrived before the model asked for one");
        for pair in steps.windows(2) {
            assert!(
                pair[0].count == pair[1].count || pair[0].request.contains(RULES),
                "a write arrived that the model made without the contract: {:#?}",
                pair[1].request.results
            );
        }
        assert_eq!(self.writes(), steps[steps.len() - 1].count, "a write arrived after the end");
        steps
    }

    /// The owner approves the call of this tool that waits.
    pub(super) fn approve(&self, tool: &str) {
        self.decide("approve", tool);
    }

    pub(super) fn deny(&self, tool: &str) {
        self.decide("deny", tool);
    }

    fn decide(&self, command: &str, tool: &str) {
        until("a call to decide about", || self.waiting(tool).is_some());
        let id = self.waiting(tool).expect("it waits until it is decided");
        self.world.run(&["approvals", command, &id]).ok();
    }

    /// Waits until the owner's time is over.
    pub(super) fn until_expired(&self, tool: &str) {
        until("the approval to expire", || self.waiting(tool).is_none());
    }

    /// The id of a call of this tool that waits for the owner.
    pub(super) fn waiting(&self, tool: &str) -> Option<String> {
        let listed = self.world.run(&["approvals", "list", "--json"]).ok().json();
        let found = listed["approvals"].as_array()?.iter().find(|approval| approval["tool"] == tool)?;
        Some(found["id"].as_str()?.to_owned())
    }

    /// Waits until the broker has seen that the tool's definition changed.
    pub(super) fn until_changed(&self, tool: &str) {
        until("the change of a definition", || {
            let listed = self.world.run(&["pins", "list", "--json"]).ok().json();
            let pins = listed["pins"].as_array().unwrap();
            pins.iter()
                .any(|pin| pin["tool"] == tool && pin["diff"].as_str().is_some_and(|diff| !diff.is_empty()))
        });
    }

    /// Waits until the mind has received every observation.
    pub(super) fn until_observed(&self) {
        until("the mind to receive every observation", || {
            self.world.run(&["status", "--json"]).ok().json()["observations_waiting"] == 0
        });
    }

    /// The details of the audit's records of an event.
    pub(super) fn audited(&self, event: &str) -> Vec<Value> {
        let exported = self.world.run(&["audit", "export"]).ok().stdout;
        let records = exported.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        records.filter(|record| record["event"] == event).map(|mut record| record["detail"].take()).collect()
    }
}

/// The results that the model had at the end.
pub(super) fn results(steps: &[Step]) -> &[String] {
    &steps[steps.len() - 1].request.results
}

/// Asserts that the broker answered in place of the body, with this decision, in words that the model can read.
pub(super) fn assert_decision(result: &str, decision: &str) {
    let start = result.find("[embody ").unwrap_or_else(|| panic!("not the broker's: {result}"));
    // Gemini CLI shows an error as JSON.
    let line = result[start..].split(['\n', '\\']).next().unwrap();
    assert!(line.contains(&format!("({decision})")), "not `{decision}`: {result}");
}
