//! A guided run without a model or a host: `embody demo`, and the guided tour of the console.
//!
//! A scripted MCP host calls the broker; mind, body, gate and audit are those of `embody mcp`, with two differences: the mind can
//! be disconnected, and the only channel delivers to no recipient. It runs in a temporary folder, and each claim is checked
//! before it is shown.
//!
//! - `host`: the scripted host
//! - `approver`: the person or script that answers its approvals
//! - `transcript`: the output
//! - `steps`: the steps

mod approver;
mod host;
mod steps;
mod transcript;

use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use embody_broker::Broker;
use embody_broker::meter::Meter;
use embody_store::audit::AuditReport;
use embody_store::memories::NewMemory;
use embody_store::tasks::TaskContent;
use embody_store::{Scope, Store};

pub(crate) use self::approver::{Answer, Approver};
pub(crate) use self::transcript::{DemoEvent, Destination, Transcript};
use crate::config::{Config, Inputs};
use crate::embedded::{self, Availability};
use crate::error::{CliError, ErrorContext};
use crate::prompt_service::PromptService;
use crate::settings::Settings;
use crate::{broker_setup, store, workspace_files};

const USER: &str = "owner";
const AGENT: &str = "assistant";
/// The only channel to other people: the demo itself.
const CHANNEL: &str = "demo";
const TASK: &str = "Tell Ann that the workshop moves to Thursday";
const MEMORY: &str = "Ann runs the workshop.";
/// Long timeouts, for a slow person or machine. Only elicitation is allowed, so that an answer of the script counts too.
const CONFIG: &str = "[mind]\nobserve_timeout_ms = 5000\n\n[policy]\nask_wait_s = 660\nask_timeout_s = 660\ncontract_delay_ms = 0\n\n\
                      [[policy.rule]]\ntools = [\"*\"]\nvia = [\"elicitation\"]\n";

pub(crate) struct Outcome {
    pub(crate) answer: Answer,
    pub(crate) report: AuditReport,
}

/// Runs every step in a new workspace in this folder, unless `interruption` comes first; its error is the result then. Returns once
/// everything that it started has ended.
pub(crate) async fn run(
    folder: &Path,
    transcript: &mut Transcript,
    mut approver: Approver,
    interruption: impl Future<Output = CliError>,
) -> Result<Outcome, CliError> {
    let runtime = DemoRuntime::open(folder).await?;
    let result = tokio::select! {
        result = run_steps(&runtime, transcript, &mut approver) => result,
        error = interruption => Err(error),
    };
    runtime.close().await;
    result
}

async fn run_steps(
    runtime: &DemoRuntime,
    transcript: &mut Transcript,
    approver: &mut Approver,
) -> Result<Outcome, CliError> {
    steps::introduce(runtime, transcript).await?;
    let (host, answer) = steps::send(runtime, transcript, approver).await?;
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
    workspace_files::write(folder)?;
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
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Result<Self, CliError> {
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

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Removes the folder and reports an error, which drop cannot.
    pub(crate) fn remove(self) -> Result<(), CliError> {
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
