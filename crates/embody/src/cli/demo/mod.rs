//! `embody demo`: a guided run without a model or a host.
//!
//! A scripted MCP host calls the broker; mind, body, gate and audit are those of `embody mcp`, with two differences: the mind can
//! be disconnected, and the only channel delivers to no recipient. It runs in a temporary folder, and each claim is checked
//! before it is printed.
//!
//! - `host`: the scripted host, and the person or script that answers its approvals
//! - `transcript`: the output
//! - `steps`: the steps

mod host;
mod steps;
mod transcript;

use std::fs::{self, DirBuilder};
use std::io::{ErrorKind, IsTerminal, stdin, stdout};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use embody_broker::Broker;
use embody_broker::meter::Meter;
use embody_store::audit::AuditReport;
use embody_store::memories::NewMemory;
use embody_store::tasks::TaskContent;
use embody_store::{Scope, Store};
use serde_json::json;
use tracing::level_filters::LevelFilter;

use self::host::{Answer, AnswerSource};
use self::transcript::Transcript;
use super::{Global, init};
use crate::config::{Config, Inputs};
use crate::embedded::{self, Availability};
use crate::error::{CliError, ErrorContext};
use crate::prompt_service::PromptService;
use crate::settings::Settings;
use crate::{broker_setup, log, output, serve, store};

const EXAMPLES: &str = "Examples:
  embody demo          asks you for one approval
  embody demo --yes    approves by itself

The demo uses its own workspace in a temporary folder and removes it. It does not read or write your workspace.";

const USER: &str = "owner";
const AGENT: &str = "assistant";
/// The only channel to other people: the demo itself.
const CHANNEL: &str = "demo";
const TASK: &str = "Tell Ann that the workshop moves to Thursday";
const MEMORY: &str = "Ann runs the workshop.";
/// Long timeouts, for a slow person or machine. Only elicitation is allowed, so that an answer of the script counts too.
const CONFIG: &str = "[mind]\nobserve_timeout_ms = 5000\n\n[policy]\nask_wait_s = 660\nask_timeout_s = 660\ncontract_delay_ms = 0\n\n\
                      [[policy.rule]]\ntools = [\"*\"]\nvia = [\"elicitation\"]\n";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DemoArgs {
    /// Answer the question with yes instead of asking
    #[arg(long)]
    yes: bool,
}

struct Outcome {
    answer: Answer,
    report: AuditReport,
}

pub(crate) fn run(args: &DemoArgs, global: Global) -> Result<ExitCode, CliError> {
    let source = answer_source(args, &global)?;
    let started = Instant::now();
    let is_json = global.json;
    let folder = Folder::new()?;
    // An unavailable mind is part of the demo, so warnings are off.
    let level = super::log_flag(&global).unwrap_or(LevelFilter::ERROR);
    log::start(folder.path(), level, level);
    let mut transcript = Transcript::new(is_json);
    let outcome = store::block_on_multi_thread(async {
        let ending = serve::shutdown_signal()?;
        let runtime = DemoRuntime::open(folder.path()).await?;
        let result = tokio::select! {
            result = run_steps(&runtime, &mut transcript, source) => result,
            () = ending.cancelled() => {
                // The error starts on a new line after a question.
                output::stderr_line("");
                Err(CliError::new("the demo was interrupted"))
            }
        };
        runtime.close().await;
        result
    })?;
    folder.remove()?;
    let took = started.elapsed();
    if is_json {
        output::json(&json!({
            "steps": transcript.into_steps(),
            "approved": outcome.answer == Answer::Yes,
            "audit": outcome.report.chains,
            "took_ms": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        }))?;
    } else {
        output::styled(&steps::closing_text(took))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Fails without a terminal, because the demo needs an answer.
fn answer_source(args: &DemoArgs, global: &Global) -> Result<AnswerSource, CliError> {
    if args.yes {
        return Ok(AnswerSource::Script);
    }
    let hint = "`embody demo --yes` approves by itself";
    if global.json {
        return Err(CliError::usage("the demo asks for an approval, which `--json` cannot show").hint(hint));
    }
    if !stdin().is_terminal() || !stdout().is_terminal() {
        return Err(CliError::usage("the demo asks for an approval, and there is no terminal").hint(hint));
    }
    Ok(AnswerSource::Terminal)
}

async fn run_steps(
    runtime: &DemoRuntime,
    transcript: &mut Transcript,
    source: AnswerSource,
) -> Result<Outcome, CliError> {
    transcript.line(steps::WELCOME)?;
    steps::introduce(runtime, transcript).await?;
    let (host, answer) = steps::send(runtime, transcript, source).await?;
    steps::mind_outage(runtime, transcript, &host).await?;
    host.close().await;
    let report = steps::verify(runtime, transcript).await?;
    Ok(Outcome { answer, report })
}

struct DemoRuntime {
    store: Store,
    broker: Arc<Broker>,
    mind: Availability,
    prompts: Arc<PromptService>,
}

impl DemoRuntime {
    /// Creates a workspace in the folder and opens it. Ignores the configuration, environment and workspace of the user.
    async fn open(folder: &Path) -> Result<Self, CliError> {
        write_workspace(folder)?;
        let config = Config::load(Inputs {
            file: None,
            workspace: folder.to_owned(),
            env: Vec::new(),
            overrides: Vec::new(),
        })?;
        let settings = Arc::new(Settings { workspace: folder.to_owned(), config });
        let store = Store::open(store::database_url(&settings)).await?;
        let scope = Scope::new(USER, AGENT)?;
        add_content(&store, &scope).await?;
        let prompts = PromptService::new(settings, Some(store.clone()), USER.to_owned());
        let meter = Arc::new(Meter::new());
        let (mut setup, _) = broker_setup::build(&prompts, store.clone(), AGENT, meter)?;
        let mind = Availability::new();
        setup.mind = broker_setup::embedded_mind(embedded::mind(&store, &prompts, AGENT), mind.clone());
        let channels = vec![CHANNEL.to_owned()];
        let body = broker_setup::embedded_body(&store, &prompts, AGENT, channels);
        setup.settings.edit(|settings| settings.bodies = vec![body]);
        prompts.load_zone(AGENT).await?;
        Ok(Self { store, broker: Arc::new(Broker::start(setup)), mind, prompts })
    }

    async fn close(self) {
        let Self { store, broker, prompts, .. } = self;
        broker.shutdown().await;
        drop((broker, prompts));
        store.close().await;
    }
}

/// The files of `embody init`, with the configuration of the demo.
fn write_workspace(folder: &Path) -> Result<(), CliError> {
    init::write(folder)?;
    let path = folder.join("embody.toml");
    fs::write(&path, CONFIG).context(format!("`{}` could not be written", path.display()))
}

async fn add_content(store: &Store, scope: &Scope) -> Result<(), CliError> {
    let task = TaskContent {
        agent: AGENT.to_owned(),
        title: TASK.to_owned(),
        description: String::new(),
        status: "open".to_owned(),
        steps: Vec::new(),
        trust: "owner".to_owned(),
    };
    store.tasks().add(USER, task).await?;
    store.memories().save(scope, NewMemory::note(MEMORY, "demo", "owner")).await?;
    Ok(())
}

/// A new folder of the owner that is removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self, CliError> {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).map_err(|_| CliError::new("the system returned no random bytes"))?;
        let path = std::env::temp_dir().join(format!("embody-demo-{:016x}", u64::from_ne_bytes(bytes)));
        // Fails if it exists; only the owner may read it.
        DirBuilder::new().mode(0o700).create(&path).map_err(|error| {
            CliError::new(format!("the folder `{}` could not be made", path.display()))
                .caused_by(&error)
                .hint("TMPDIR sets the folder for temporary files")
        })?;
        Ok(Self(path))
    }

    fn path(&self) -> &Path {
        &self.0
    }

    /// Removes the folder and reports an error, which drop cannot.
    fn remove(self) -> Result<(), CliError> {
        match fs::remove_dir_all(&self.0) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(CliError::new(format!("the folder `{}` could not be removed", self.0.display()))
                    .caused_by(&error)
                    .hint("it is no longer needed; remove it by hand"))
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
