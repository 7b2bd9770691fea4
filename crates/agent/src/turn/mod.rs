//! One turn of an agent, the same for every channel: resolve the user → workspace and store → prompt → model → tools
//! through the broker → reply. The prompt is built anew for every turn and its receipt is stored. Independent of
//! channels.

mod deferred_calls;
mod history;
mod sessions;
mod tool_loop;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::Duration;

use embody_broker::{Broker, InProcessClient, InProcessError, MissingServer, ServerInstructions};
use embody_prompt::{Audience, Layout, RequestFacts, Source, Tool};
use embody_store::receipts::NewReceipt;
use embody_store::{Principal, Scope, Store};
use jiff::Timestamp;
use tokio::sync::OwnedMutexGuard;

use self::history::History;
use self::sessions::{SessionGuard, Sessions};
use crate::AsyncCallback;
use crate::event::TurnEvent;
use crate::model::{ChatMessage, ChatModel, ModelError, ToolSpec, Usage};
use crate::usage::{Budget, BudgetState, MeteredModel, Price, UsageContext};

pub use self::history::{CallDecision, TurnFailure, thread_title, to_stored};

/// The longest message of a user, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 256 * 1024;
/// How long the first turns of a session wait for servers whose tools are not known yet. A package may have to be downloaded.
const SERVER_WAIT: Duration = Duration::from_secs(20);
/// A wait that is not worth an event.
const QUIET_WAIT: Duration = Duration::from_millis(500);
const SWEEP_INTERVAL: Duration = Duration::from_secs(30);

pub struct AgentSetup {
    pub broker: Arc<Broker>,
    pub store: Store,
    pub settings: AgentSettings,
    pub prompt_source: PromptSource,
    pub usage: UsageContext,
}

/// What can change while the agent runs. A turn uses one version of it from beginning to end.
#[derive(Default)]
pub struct AgentSettings {
    /// `None` if no model is configured.
    pub model: Option<ChatModel>,
    /// By the name of the model.
    pub prices: BTreeMap<String, Price>,
    pub budget: Budget,
}

#[derive(Clone)]
pub struct Agent(Arc<Inner>);

struct Inner {
    broker: Arc<Broker>,
    store: Store,
    prompt_source: PromptSource,
    usage: UsageContext,
    settings: RwLock<Arc<AgentSettings>>,
    sessions: Sessions,
    thread_locks: ThreadLocks,
}

#[derive(Debug, Clone)]
pub struct TurnInput {
    /// Its session is the thread.
    pub prompt: PromptRequest,
    pub thread: String,
    pub body: TurnBody,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnBody {
    Message(String),
    /// Tries the last turn of the thread again: it continues where that failed.
    Retry,
}

impl TurnInput {
    /// The user's message; a retry has none.
    pub fn message(&self) -> Option<&str> {
        match &self.body {
            TurnBody::Message(text) => Some(text),
            TurnBody::Retry => None,
        }
    }

    pub fn scope(&self) -> &Scope {
        &self.prompt.scope
    }

    /// The channel of the message and of its reply.
    pub fn channel(&self) -> &str {
        self.prompt.channel.as_deref().unwrap_or_default()
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TurnResult {
    /// `None` is silence, and no channel receives anything.
    pub reply: Option<String>,
    /// Whether the model reached its output limit.
    pub is_cut: bool,
    /// `None` if unknown.
    pub usage: Option<Usage>,
    /// The receipt id of its prompt; `None` if unknown.
    pub receipt: Option<String>,
    pub rounds: u32,
}

struct PreparedTurn<'a> {
    session: SessionGuard<'a>,
    tools: Vec<ToolSpec>,
    prompt: BuiltPrompt,
}

pub type OnEvent<'a> = &'a mut (dyn FnMut(TurnEvent) + Send);

impl Agent {
    pub fn new(setup: AgentSetup) -> Self {
        let AgentSetup { broker, store, settings, prompt_source, usage } = setup;
        let agent = Self(Arc::new(Inner {
            broker,
            store,
            prompt_source,
            usage,
            settings: RwLock::new(Arc::new(settings)),
            sessions: Sessions::default(),
            thread_locks: ThreadLocks::default(),
        }));
        let inner = Arc::downgrade(&agent.0);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(SWEEP_INTERVAL).await;
                let Some(inner) = inner.upgrade() else { return };
                inner.sessions.close_idle().await;
            }
        });
        agent
    }

    pub fn has_model(&self) -> bool {
        self.settings().model.is_some()
    }

    /// Turns in progress end under the settings that they began with.
    pub fn apply(&self, settings: AgentSettings) {
        *self.0.settings.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
    }

    fn settings(&self) -> Arc<AgentSettings> {
        Arc::clone(&self.0.settings.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// Runs one turn. Dropping the future interrupts it: messages and results stored by then stay in the thread. An
    /// error means that there is no reply; the user's message and the reason are in the thread unless the store failed.
    pub async fn run_turn(&self, input: TurnInput, on: OnEvent<'_>) -> Result<TurnResult, TurnError> {
        let Inner { store, thread_locks, .. } = &*self.0;
        let settings = self.settings();
        let model = settings.model.as_ref().ok_or(TurnError::NoModel)?;
        let message = input.message();
        let bytes = message.map_or(0, str::len);
        if bytes > MAX_MESSAGE_BYTES {
            return Err(TurnError::TooLong { bytes, most: MAX_MESSAGE_BYTES });
        }
        let _lock = thread_locks.lock(&input.thread).await;
        if message.is_none() && TurnFailure::last_in(store, input.scope(), &input.thread).await?.is_none() {
            return Err(TurnError::NothingToRetry);
        }
        // The user's message, until it is stored.
        let unstored = Mutex::new(message.map(|text| ChatMessage::User { text: text.to_owned() }));
        let result = self.run_in_thread(&settings, model, &input, &unstored, on).await;
        if let Err(error) = &result {
            let unstored = unstored.into_inner().unwrap_or_else(PoisonError::into_inner);
            let failure = TurnFailure::of(error).to_stored();
            let messages = unstored.iter().map(to_stored).chain([failure]).collect();
            let stored = store.threads().append(input.scope().user(), &input.thread, messages).await;
            if let Err(error) = stored {
                tracing::warn!(thread = input.thread, reason = %error, "the reason of a failed turn is not stored");
            }
        }
        result
    }

    async fn run_in_thread(
        &self,
        settings: &AgentSettings,
        model: &ChatModel,
        input: &TurnInput,
        unstored: &Mutex<Option<ChatMessage>>,
        on: OnEvent<'_>,
    ) -> Result<TurnResult, TurnError> {
        let Inner { store, prompt_source, usage, .. } = &*self.0;
        let message = unstored.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let loading = History::load(store, input.scope(), &input.thread);
        let (PreparedTurn { session, tools, prompt }, mut history) =
            tokio::try_join!(self.prepare(Some(model), input, on), loading)?;
        let Some(local) = session.client() else { return Err(TurnError::Empty) };
        message.iter().for_each(|message| history.push(message.clone()));
        if history.is_empty() {
            return Err(TurnError::NothingToRetry);
        }
        let receipt = prompt.receipt_with(&history.messages());
        let store_input = async {
            let messages = message.iter().map(to_stored).collect();
            let (receipt, _) = tokio::try_join!(
                store.receipts().insert(input.scope(), receipt),
                store.threads().append(input.scope().user(), &input.thread, messages)
            )?;
            unstored.lock().unwrap_or_else(PoisonError::into_inner).take();
            Ok(receipt)
        };
        let model = MeteredModel { model, settings, store, usage, input };
        let tool_loop =
            tool_loop::ToolLoop { store, prompt_source, model, local, input, prompt: &prompt, tools: &tools };
        tool_loop.run(history, store_input, on).await
    }

    /// Opens the session of the conversation and builds a prompt that applies to the calls of this turn.
    async fn prepare(
        &self,
        model: Option<&ChatModel>,
        input: &TurnInput,
        on: OnEvent<'_>,
    ) -> Result<PreparedTurn<'_>, TurnError> {
        let Inner { broker, prompt_source, sessions, .. } = &*self.0;
        let principal = Principal {
            thread: Some(input.thread.clone()),
            ..Principal::of(input.scope().clone(), input.channel())
        };
        let principal = match input.prompt.audience {
            Audience::Owner | Audience::User => principal,
            Audience::Group | Audience::Public => principal.in_shared_conversation(&input.thread),
        };
        let session = sessions.acquire(broker, principal, &input.thread).await?;
        let Some(local) = session.client() else { return Err(TurnError::Empty) };
        let missing = wait_for_servers(broker, local, on).await;
        let tools = list_tools(local).await;
        let servers = broker.server_instructions(local).await;
        let listed = ToolList { tools: tools.iter().map(listed_tool).collect(), servers, missing };
        let facts = RequestFacts { session: Some(input.thread.clone()), ..input.prompt.facts.clone() };
        // The configuration may have changed since the turn began: the prompt must fit the model that gets it.
        let native_tools = model.map(ChatModel::native_tools);
        let request = PromptRequest { facts, native_tools, ..input.prompt.clone() };
        let prompt = prompt_source.call((request, listed)).await.map_err(TurnError::Compose)?;
        local.set_prompt(&prompt.text);
        Ok(PreparedTurn { session, tools, prompt })
    }

    pub async fn close_sessions(&self) {
        self.0.sessions.end().await;
    }
}

/// Waits until the tools of all servers are known, for a bounded time, and returns the servers that are still missing. Both are
/// shown to the person.
async fn wait_for_servers(broker: &Broker, local: &InProcessClient, on: OnEvent<'_>) -> Vec<MissingServer> {
    if !broker.starting_servers(local).is_empty() {
        broker.wait_for_servers(local, QUIET_WAIT).await;
        let servers = broker.starting_servers(local);
        if !servers.is_empty() {
            on(TurnEvent::Starting { servers });
            broker.wait_for_servers(local, SERVER_WAIT).await;
        }
    }
    let missing = broker.missing_servers(local);
    if !missing.is_empty() {
        on(TurnEvent::Missing { servers: missing.clone() });
    }
    missing
}

async fn list_tools(local: &InProcessClient) -> Vec<ToolSpec> {
    let tools = local.tools().await;
    let spec = |tool: embody_broker::InProcessTool| ToolSpec {
        name: tool.name,
        description: tool.description,
        schema: tool.schema,
    };
    tools.into_iter().map(spec).collect()
}

fn listed_tool(spec: &ToolSpec) -> (Tool, Source) {
    let ToolSpec { name, description, schema } = spec;
    let tool = Tool { name: name.clone(), description: description.clone(), schema: schema.get().to_owned() };
    (tool, Source::fixed("broker"))
}

#[derive(Debug, thiserror::Error)]
pub enum TurnError {
    #[error("no model is configured")]
    NoModel,
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error("{}{state}", if *.has_begun { "stopped: " } else { "" })]
    Budget {
        state: Box<BudgetState>,
        /// Whether the turn had asked the model before.
        has_begun: bool,
    },
    /// The model returned neither text nor calls.
    #[error("the model returned an empty response")]
    Empty,
    #[error("the model called tools in {rounds} rounds without a final reply")]
    Endless { rounds: u32 },
    #[error("the message has {bytes} bytes; the limit is {most}")]
    TooLong { bytes: usize, most: usize },
    #[error("the last turn of this conversation did not fail")]
    NothingToRetry,
    #[error("the prompt cannot be built: {0}")]
    Compose(String),
    #[error("the tools cannot be reached")]
    Tools(#[from] InProcessError),
    #[error("the conversation cannot be stored")]
    Store(#[from] embody_store::Error),
}

/// The settings that configure a model.
const MODEL_CONFIG_EXAMPLE: &str = "[model]\nbase_url = \"http://127.0.0.1:11434/v1\"\nmodel = \"qwen3\"";

impl TurnError {
    /// The error of a turn that had asked the model before.
    fn after_begin(self) -> Self {
        match self {
            Self::Budget { state, .. } => Self::Budget { state, has_begun: true },
            error => error,
        }
    }

    /// Whether the thread keeps it, with the user's message, so that the turn can be tried again.
    pub fn is_kept(&self) -> bool {
        !matches!(self, Self::NoModel | Self::TooLong { .. } | Self::NothingToRetry | Self::Store(_))
    }

    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoModel => Some(format!(
                "`embody model test` finds models on this machine; or add these lines to embody.toml in the workspace (`embody config check` prints its path):\n{MODEL_CONFIG_EXAMPLE}"
            )),
            Self::Model(error) => error.hint(),
            Self::Budget { state, .. } => Some(state.hint()),
            Self::NothingToRetry => Some("send a message".to_owned()),
            Self::Empty => Some("try again; if it happens often, use another model".to_owned()),
            Self::Endless { .. } => Some("ask for smaller steps".to_owned()),
            Self::TooLong { .. } => {
                Some("split the message, or put the text into a file of the workspace".to_owned())
            }
            Self::Compose(_) => Some("run `embody doctor`".to_owned()),
            Self::Tools(_) | Self::Store(_) => Some("run `embody doctor`".to_owned()),
        }
    }
}

/// What a prompt is built for. Turns of every channel, commands and the contract of a host all build one; two equal requests with
/// equal tools give the same prompt.
#[derive(Clone, Debug)]
pub struct PromptRequest {
    pub scope: Scope,
    pub channel: Option<String>,
    /// Who reads the reply. `Owner` becomes `User` if the user is not the owner.
    pub audience: Audience,
    /// Whether no person sees the reply.
    pub background: bool,
    pub task: Option<String>,
    /// The schedule whose run it is.
    pub schedule: Option<String>,
    pub facts: RequestFacts,
    /// `None` is the agent's, else the configured one.
    pub layout: Option<Layout>,
    pub without_body: bool,
    /// `None` is now.
    pub now: Option<Timestamp>,
    /// `None` is the user's.
    pub timezone: Option<String>,
    pub project: Option<PathBuf>,
    /// `None` is as configured.
    pub native_tools: Option<bool>,
    /// In place of the stored standing instructions.
    pub instructions: Option<String>,
}

impl PromptRequest {
    /// A request of this user on no channel, with everything as configured.
    pub fn new(scope: Scope) -> Self {
        Self {
            scope,
            channel: None,
            audience: Audience::Owner,
            background: false,
            task: None,
            schedule: None,
            facts: RequestFacts::default(),
            layout: None,
            without_body: false,
            now: None,
            timezone: None,
            project: None,
            native_tools: None,
            instructions: None,
        }
    }
}

/// The tools of a prompt and the instructions of their servers: those of a session, or those that are known without starting a
/// server.
#[derive(Debug, Clone, Default)]
pub struct ToolList {
    /// Each with its source.
    pub tools: Vec<(Tool, Source)>,
    pub servers: ServerInstructions,
    /// The servers that a turn has to do without.
    pub missing: Vec<MissingServer>,
}

#[derive(Debug, Clone)]
pub struct BuiltPrompt {
    /// Exactly the text that is sent.
    pub text: String,
    /// The length of the prefix, in bytes, that stays the same in the next turn.
    pub stable_len: usize,
    /// Without the messages, which the turn adds.
    pub receipt: NewReceipt,
}

/// Of the messages that a receipt keeps, in bytes and in number: the newest.
const RECEIPT_BYTES: usize = 2 * 1024 * 1024;
const RECEIPT_MESSAGES: usize = 400;

impl BuiltPrompt {
    /// The receipt of a request with these messages.
    fn receipt_with(&self, messages: &[ChatMessage]) -> NewReceipt {
        let json = messages.iter().rev().filter_map(|message| serde_json::to_string(message).ok());
        let mut bytes = 0;
        let kept = json.take(RECEIPT_MESSAGES).take_while(|json| {
            bytes += json.len();
            bytes <= RECEIPT_BYTES
        });
        let mut messages: Vec<String> = kept.collect();
        messages.reverse();
        NewReceipt { messages, ..self.receipt.clone() }
    }
}

/// Builds the prompt of a turn: the owner of workspace and store supplies it. Its error is a text that says why there is no
/// prompt.
pub type PromptSource = AsyncCallback<(PromptRequest, ToolList), Result<BuiltPrompt, String>>;

type Lock = tokio::sync::Mutex<()>;

#[derive(Debug, Default)]
struct ThreadLocks(Mutex<HashMap<String, Weak<Lock>>>);

impl ThreadLocks {
    /// Waits until the thread is free.
    async fn lock(&self, thread: &str) -> OwnedMutexGuard<()> {
        let lock = {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            known.retain(|_, lock| lock.strong_count() > 0);
            let lock = known.get(thread).and_then(Weak::upgrade).unwrap_or_default();
            known.insert(thread.to_owned(), Arc::downgrade(&lock));
            lock
        };
        lock.lock_owned().await
    }
}
