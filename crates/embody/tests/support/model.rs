//! The scripted model (`crates/agent/examples/scripted`), and what it was asked.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::support::world::World;

/// A model server that answers by rules.
pub(crate) struct Model {
    process: Child,
    pub(crate) url: String,
    log: PathBuf,
}

/// Whose wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WireFormat {
    OpenAi,
    Anthropic,
}

impl Model {
    /// Starts one that answers by these rules, and makes it this world's model.
    pub(crate) fn start(world: &World, speaks: WireFormat, rules: &Value) -> Self {
        let model = Self::alone(world, rules);
        world.file("embody.toml", model.config(speaks));
        model
    }

    /// Starts one.
    pub(crate) fn alone(world: &World, rules: &Value) -> Self {
        let tests = std::env::current_exe().unwrap();
        let program = tests.parent().unwrap().parent().unwrap().join("examples/scripted");
        assert!(
            program.exists(),
            "{} is missing: `cargo build -p embody-agent --example scripted`",
            program.display()
        );
        let (script, log) = (world.outside("script.json"), world.outside("model.jsonl"));
        std::fs::write(&script, rules.to_string()).unwrap();
        let mut process =
            Command::new(program).arg(&script).arg(&log).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { process, url: line.trim().to_owned(), log }
    }

    /// Its section of `embody.toml`.
    pub(crate) fn config(&self, speaks: WireFormat) -> String {
        let (provider, path) = match speaks {
            WireFormat::OpenAi => ("openai", "/v1"),
            WireFormat::Anthropic => ("anthropic", ""),
        };
        format!(
            "[model]\nprovider = \"{provider}\"\nbase_url = \"{}{path}\"\nmodel = \"scripted\"\n",
            self.url
        )
    }

    /// All requests, in order.
    pub(crate) fn requests(&self) -> Vec<ModelRequest> {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        text.lines()
            .map(|line| ModelRequest(serde_json::from_str::<Value>(line).unwrap()["body"].take()))
            .collect()
    }

    /// The last request.
    pub(crate) fn last(&self) -> ModelRequest {
        self.requests().pop().expect("it was asked")
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The body of one request.
pub(crate) struct ModelRequest(pub(crate) Value);

impl ModelRequest {
    /// The system prompt, exactly as it came.
    pub(crate) fn system(&self) -> String {
        match &self.0["system"] {
            // OpenAI: the first message.
            Value::Null => {
                let first = &self.0["messages"][0];
                assert_eq!(first["role"], "system");
                first["content"].as_str().unwrap().to_owned()
            }
            Value::String(text) => text.clone(),
            Value::Array(blocks) => blocks.iter().map(|block| block["text"].as_str().unwrap()).collect(),
            other => panic!("no system prompt: {other}"),
        }
    }

    /// The conversation as text.
    pub(crate) fn conversation(&self) -> String {
        let all = self.0["messages"].as_array().unwrap();
        all.iter()
            .filter(|message| message["role"] != "system")
            .map(|message| format!("{message}\n"))
            .collect()
    }

    /// The names of the tools on offer.
    pub(crate) fn tools(&self) -> Vec<String> {
        let tools = self.0["tools"].as_array().cloned().unwrap_or_default();
        let name = |tool: &Value| {
            let name = tool["function"]["name"].as_str().or(tool["name"].as_str());
            name.unwrap().to_owned()
        };
        tools.iter().map(name).collect()
    }
}

/// A rule: what the last user message contains and how many tool results came since, and the reply.
pub(crate) fn rule(user: &str, results: u64, reply: Value) -> Value {
    json!({"when": {"user": user, "results": results}, "reply": reply})
}

/// A reply that calls one tool.
pub(crate) fn calls(tool: &str, arguments: Value) -> Value {
    json!({"calls": [{"name": tool, "arguments": arguments}]})
}

/// A reply that only speaks.
pub(crate) fn says(text: &str) -> Value {
    json!({ "text": text })
}
