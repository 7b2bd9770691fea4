//! The broker, mind and body of the demo, as in `embody mcp`, in a temporary folder. Two differences: the mind can be
//! disconnected, and the only channel delivers to no recipient.

use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use embody_broker::Broker;
use embody_broker::meter::Meter;
use embody_store::memories::NewMemory;
use embody_store::tasks::TaskContent;
use embody_store::{Scope, Store};

use super::super::{Context, Global, init};
use crate::config::{Config, Inputs};
use crate::embedded::{self, Availability};
use crate::error::CliError;
use crate::prompt_service::PromptService;
use crate::{broker_setup, store};

pub(super) const USER: &str = "owner";
pub(super) const AGENT: &str = "assistant";
/// The only channel to other people: the demo itself.
pub(super) const CHANNEL: &str = "demo";
/// A task that exists at the start.
pub(super) const TASK: &str = "Tell Ann that the workshop moves to Thursday";
const MEMORY: &str = "Ann runs the workshop.";
/// Long timeouts, for a slow person or machine. Only elicitation is allowed, so that an answer of the script counts too.
const CONFIG: &str = "[mind]\nobserve_timeout_ms = 5000\n\n[policy]\nask_wait_s = 660\nask_timeout_s = 660\ncontract_delay_ms = 0\n\n\
                      [[policy.rule]]\ntools = [\"*\"]\nvia = [\"elicitation\"]\n";

pub(super) struct DemoRuntime {
    pub(super) store: Store,
    pub(super) broker: Arc<Broker>,
    pub(super) mind: Availability,
    prompts: Arc<PromptService>,
}

impl DemoRuntime {
    /// Creates a workspace in the folder and opens it. Ignores the configuration, environment and workspace of the user.
    pub(super) async fn open(folder: &Path, global: Global) -> Result<Self, CliError> {
        write(folder)?;
        let config = Config::load(Inputs {
            file: None,
            workspace: folder.to_owned(),
            env: Vec::new(),
            overrides: Vec::new(),
        })?;
        let context = Context { workspace: folder.to_owned(), config, json: global.json, global };
        let store = Store::open(store::database_url(&context)).await?;
        let scope = Scope::new(USER, AGENT)?;
        fill(&store, &scope).await?;
        let prompts = PromptService::new(context, store.clone(), USER.to_owned());
        let meter = Arc::new(Meter::new());
        let mut setup = broker_setup::build(&prompts, store.clone(), AGENT, meter)?;
        let mind = Availability::new();
        setup.mind = broker_setup::embedded_mind(embedded::mind(&store, &prompts, AGENT), mind.clone());
        let channels = vec![CHANNEL.to_owned()];
        setup.bodies = vec![broker_setup::embedded_body(embedded::body_with_channels(
            &store, &prompts, AGENT, channels,
        ))];
        prompts.load_zone(AGENT).await?;
        Ok(Self { store, broker: Arc::new(Broker::start(setup)), mind, prompts })
    }

    /// Ends the broker and flushes everything to disk.
    pub(super) async fn end(&self) {
        self.broker.end().await;
    }

    pub(super) async fn close(self) {
        let Self { store, broker, prompts, .. } = self;
        broker.end().await;
        drop((broker, prompts));
        store.close().await;
    }
}

/// The files of `embody init`, with the configuration of the demo.
fn write(folder: &Path) -> Result<(), CliError> {
    init::write(folder)?;
    let path = folder.join("embody.toml");
    std::fs::write(&path, CONFIG).map_err(|error| {
        CliError::new(format!("`{}` could not be written", path.display())).caused_by(&error)
    })
}

async fn fill(store: &Store, scope: &Scope) -> Result<(), CliError> {
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
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new() -> Result<Self, CliError> {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).map_err(|_| CliError::new("the system gives no random bytes"))?;
        let path = std::env::temp_dir().join(format!("embody-demo-{:016x}", u64::from_ne_bytes(bytes)));
        // Fails if it exists; only the owner may read it.
        DirBuilder::new().mode(0o700).create(&path).map_err(|error| {
            CliError::new(format!("the folder `{}` could not be made", path.display()))
                .caused_by(&error)
                .hint("the variable TMPDIR says where temporary folders are made")
        })?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Removes the folder and reports an error, which drop cannot.
    pub(super) fn remove(self) -> Result<(), CliError> {
        match fs::remove_dir_all(&self.0) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(CliError::new(format!("the folder `{}` could not be removed", self.0.display()))
                    .caused_by(&error)
                    .hint("nothing in it is needed any more: remove it by hand"))
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
