//! `embody reload`: makes the running processes of the workspace read the configuration again, and says what each applied.

use std::fmt::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde_json::json;

use super::Context;
use crate::error::{CliError, ErrorContext};
use crate::output::{self, printable};
use crate::processes::{self, FIX_HINT, Process};
use crate::reload;

pub(super) const EXAMPLES: &str = "Examples:
  embody reload             check the configuration and apply it to the running processes
  embody config check       only check it";

/// How long processes may take. Each of them reads one file.
const TIMEOUT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(20);

/// An invalid configuration fails earlier, before any process is asked.
pub(crate) fn run(context: &Context) -> Result<ExitCode, CliError> {
    let workspace = &context.workspace;
    let file = reload::file(&context.inputs()?);
    let (ours, others): (Vec<Process>, Vec<Process>) = processes::list(workspace)
        .into_iter()
        .partition(|process| reload::is_same_file(&process.configuration.file, &file));
    let answers = match ours.is_empty() {
        true => Vec::new(),
        false => {
            let request = processes::request_reload(workspace)
                .context(format!("the processes of `{}` cannot be asked", workspace.display()))?;
            wait(&ours, request, || processes::list(workspace))
        }
    };
    let is_done = answers.iter().all(|(_, state)| matches!(state, Answer::Applied));
    let report = json!({
        "file": file,
        "processes": answers.iter().map(|(process, answer)| answer.json(process)).collect::<Vec<_>>(),
        "others": others,
    });
    context.print(&report, || as_text(&answers, &others))?;
    Ok(if is_done { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

enum Answer {
    Applied,
    Failed(String),
    /// It did not answer in time.
    Silent,
    /// It ended meanwhile.
    Ended,
}

impl Answer {
    fn json(&self, process: &Process) -> serde_json::Value {
        let mut report = json!(process);
        let state = match self {
            Self::Applied => "applied",
            Self::Failed(_) => "failed",
            Self::Silent => "no_answer",
            Self::Ended => "ended",
        };
        if let Some(members) = report.as_object_mut() {
            members.insert("state".to_owned(), state.into());
        }
        report
    }
}

/// Waits for the answer of each of these processes to this request.
fn wait(asked: &[Process], request: u64, list: impl Fn() -> Vec<Process>) -> Vec<(Process, Answer)> {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let now = list();
        let is_over = Instant::now() >= deadline;
        let answer = |asked: &Process| {
            let Some(found) = now.iter().find(|process| process.id == asked.id) else {
                return Some((asked.clone(), Answer::Ended));
            };
            let answer = match &found.configuration.problem {
                _ if found.configuration.request < request => is_over.then_some(Answer::Silent)?,
                Some(problem) => Answer::Failed(problem.clone()),
                None => Answer::Applied,
            };
            Some((found.clone(), answer))
        };
        if let Some(answers) = asked.iter().map(answer).collect() {
            return answers;
        }
        std::thread::sleep(POLL);
    }
}

fn as_text(answers: &[(Process, Answer)], others: &[Process]) -> String {
    let mut out = String::new();
    if answers.is_empty() {
        out += "No running `embody up` or `embody mcp` uses this configuration; the next one reads it when it starts.\n";
    }
    for (process, answer) in answers {
        let name = name(process);
        let _ = match answer {
            Answer::Applied => writeln!(out, "{name}: {}", applied(process)),
            Answer::Failed(problem) => {
                writeln!(
                    out,
                    "{name}: not applied, the previous configuration is in force: {}; {FIX_HINT}",
                    printable(problem)
                )
            }
            Answer::Silent => writeln!(out, "{name}: no answer within {} s", TIMEOUT.as_secs()),
            Answer::Ended => writeln!(out, "{name}: has ended"),
        };
    }
    for process in others {
        let file = process.configuration.file.display().to_string();
        let _ = writeln!(out, "{}: uses another file, `{}`", name(process), printable(&file));
    }
    out
}

fn name(process: &Process) -> String {
    format!("embody {} (process {})", printable(&process.command), process.pid)
}

fn applied(process: &Process) -> String {
    let state = &process.configuration;
    let list =
        |names: &[String]| names.iter().map(|name| output::printable(name)).collect::<Vec<_>>().join(", ");
    let changed = match &*state.changed {
        [] => "as it was read at the start".to_owned(),
        changed => format!("changed since {}: {}", printable(&state.loaded_at), list(changed)),
    };
    match &*state.needs_restart {
        [] => changed,
        sections => format!("{changed}; start it again to apply: {}", list(sections)),
    }
}
