//! The official Inspector on its command line.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::{Era, Place, Target, process, program};

const LIMIT: Duration = Duration::from_secs(120);

/// Asks the server something, as in `["--method", "tools/list"]`. Gives the result, or the exit code and what was said:
/// 4 if the server cannot be reached, 5 if the tool is missing or has failed.
pub(crate) fn inspect(target: &Target, era: Era, question: &[&str]) -> Result<Value, (i32, String)> {
    let mut command = Command::new(program("inspector"));
    command.args(["--cli", "-q", "--format", "json", "--protocol-era"]);
    command.arg(match era {
        Era::Session => "legacy",
        Era::Stateless => "modern",
    });
    if let Some(token) = &target.token {
        command.args(["--header", &format!("Authorization: Bearer {token}")]);
    }
    for (name, value) in &target.environment {
        command.args(["-e", &format!("{name}={value}")]);
    }
    command.args(question);
    match &target.place {
        Place::Command(words) => command.arg("--").args(words),
        Place::Http(url) => command.args(["--transport", "http", "--server-url", url]),
        Place::Sse(url) => command.args(["--transport", "sse", "--server-url", url]),
    };
    let said = process::run(&mut command, LIMIT);
    if said.code != Some(0) {
        return Err((said.code.unwrap_or(-1), format!("{}{}", said.output, said.errors)));
    }
    let output: Value = serde_json::from_str(&said.output).unwrap_or_else(|_| panic!("{}", said.output));
    Ok(output["result"].clone())
}
