//! Where the demo plays: the broker, the mind and the body as `embody mcp` has them, in a folder of their own. Two things
//! differ: the mind can be taken away, and messages leave by a channel that reaches nobody.

use std::path::Path;
use std::sync::Arc;

use embody_broker::Broker;
use embody_broker::meter::Meter;
use embody_store::{NewMemory, Scope, Store, TaskContent};

use super::super::{Context, Global, init};
use crate::config::{Config, Inputs};
use crate::contract::Voice;
use crate::embedded::{self, Presence};
use crate::failure::Failure;
use crate::{nerves, store};

pub(super) const USER: &str = "owner";
pub(super) const AGENT: &str = "assistant";
/// The only channel to other people. It is the demo itself.
pub(super) const CHANNEL: &str = "demo";
/// What is on the list before anybody comes.
pub(super) const TASK: &str = "Tell Ann that the workshop moves to Thursday";
const MEMORY: &str = "Ann runs the workshop.";
/// A person may think for a while, and a machine may have much else to do. Only the demo itself can answer, so that an
/// answer from a script counts too.
const CONFIG: &str = "[mind]\nobserve_timeout_ms = 5000\n\n[policy]\nask_wait_s = 660\nask_timeout_s = 660\ncontract_delay_ms = 0\n\n\
                      [[policy.rule]]\ntools = [\"*\"]\nvia = [\"elicitation\"]\n";

/// Everything that is open.
pub(super) struct Stage {
    pub(super) store: Store,
    pub(super) broker: Arc<Broker>,
    /// Whether the mind can be reached.
    pub(super) mind: Presence,
    voice: Arc<Voice>,
}

impl Stage {
    /// Makes a workspace in this folder and opens everything there. Nothing of the user's configuration, environment or
    /// workspace counts.
    pub(super) async fn open(folder: &Path, global: Global) -> Result<Self, Failure> {
        write(folder)?;
        let config = Config::load(Inputs {
            file: None,
            workspace: folder.to_owned(),
            env: Vec::new(),
            overrides: Vec::new(),
        })?;
        let context = Context { workspace: folder.to_owned(), config, json: global.json, global };
        let store = Store::open(store::place(&context)).await?;
        let scope = Scope::new(USER, AGENT)?;
        fill(&store, &scope).await?;
        let voice = Voice::new(context, store.clone(), USER.to_owned());
        let meter = Arc::new(Meter::new());
        let mut setup = nerves::setup(voice.context(), store.clone(), &voice, AGENT, meter)?;
        let mind = Presence::new();
        setup.mind = nerves::own_mind(embedded::mind(&store, &voice, AGENT), mind.clone());
        let channels = vec![CHANNEL.to_owned()];
        setup.bodies = vec![nerves::own_body(embedded::body_with(&store, &voice, AGENT, channels))];
        voice.find_zone(AGENT).await?;
        Ok(Self { store, broker: Arc::new(Broker::start(setup)), mind, voice })
    }

    /// Ends the broker: everything is on disk then.
    pub(super) async fn end(&self) {
        self.broker.end().await;
    }

    /// Closes what is left.
    pub(super) async fn close(self) {
        let Self { store, broker, voice, .. } = self;
        broker.end().await;
        drop((broker, voice));
        store.close().await;
    }
}

/// What `embody init` writes, but with more patience.
fn write(folder: &Path) -> Result<(), Failure> {
    init::write(folder)?;
    let path = folder.join("embody.toml");
    std::fs::write(&path, CONFIG)
        .map_err(|error| Failure::new(format!("`{}` could not be written", path.display())).because(&error))
}

/// Something to read.
async fn fill(store: &Store, scope: &Scope) -> Result<(), Failure> {
    let task = TaskContent {
        agent: AGENT.to_owned(),
        title: TASK.to_owned(),
        description: String::new(),
        status: "open".to_owned(),
        steps: Vec::new(),
        trust: "owner".to_owned(),
    };
    store.add_task(USER, task).await?;
    store.save_memory(scope, NewMemory::note(MEMORY, "demo", "owner")).await?;
    Ok(())
}
