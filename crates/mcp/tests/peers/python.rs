//! The official Python client, which follows a plan.

use std::process::Command;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{Place, Target, process, program};

const SCRIPT: &str = include_str!("client.py");
const LIMIT: Duration = Duration::from_secs(120);

/// How the client finds out about the era.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The session era.
    Legacy,
    /// Whichever the server speaks, the newer first.
    Auto,
    /// The stateless era, without looking.
    Modern,
}

/// Follows a plan (its `calls` and `listen`, see `client.py`) and gives what the client has seen.
pub(crate) fn follow(target: &Target, mode: Mode, mut plan: Map<String, Value>) -> Value {
    let mode = match mode {
        Mode::Legacy => "legacy",
        Mode::Auto => "auto",
        Mode::Modern => "2026-07-28",
    };
    let place = match &target.place {
        Place::Command(words) => json!({"command": words}),
        Place::Http(url) => json!({"http": url}),
        Place::Sse(url) => json!({"sse": url}),
    };
    let headers: Map<String, Value> = target
        .token
        .iter()
        .map(|token| ("Authorization".to_owned(), format!("Bearer {token}").into()))
        .collect();
    let environment: Map<String, Value> =
        target.environment.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
    plan.insert("place".into(), place);
    plan.insert("mode".into(), mode.into());
    plan.insert("headers".into(), headers.into());
    plan.insert("environment".into(), environment.into());
    let plan = Value::Object(plan).to_string();
    let said = process::run(Command::new(program("python")).args(["-c", SCRIPT, &plan]), LIMIT);
    assert_eq!(said.code, Some(0), "{}{}", said.output, said.errors);
    serde_json::from_str(&said.output).unwrap_or_else(|_| panic!("{}", said.output))
}
