//! One turn of an agent, the same for every channel: resolve the user → workspace and store → prompt → model → tools
//! through the broker → reply. The prompt is built anew for every turn and its receipt is stored. Independent of
//! channels.

mod deferred_calls;
mod history;
mod sessions;
mod tool_loop;

use std::collections::HashMap;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use embody_broker::{Broker, InProcessClient, InProcessError, Principal, ServerInstructions};
use embody_prompt::Audience;
use embody_store::{NewReceipt, Scope, Store};
use tokio::sync::OwnedMutexGuard;

use self::history::{History, to_stored};
use self::sessions::{SessionGuard, Sessions};
use crate::model::{ChatMessage, ChatModel, ModelError, ToolSpec, Usage};

pub use self::history::CallDecision;

/// The longest message of a user, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 256 * 1024;
/// How often idle sessions are closed.
const SWEEP: Duration = Duration::from_secs(30);

pub struct AgentSetup {
    pub broker: Arc<Broker>,
    /// Stores the conversations.
    pub store: Store,
    /// `None` if no model is configured.
    pub model: Option<ChatModel>,
    pub prompt_source: PromptSource,
}

impl fmt::Debug for AgentSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentSetup").field("model", &self.model).finish_non_exhaustive()
    }
}

#[derive(Clone)]
pub struct Agent(Arc<Inner>);

struct Inner {
    setup: AgentSetup,
    sessions: Sessions,
    thread_locks: ThreadLocks,
}

#[derive(Debug, Clone)]
pub struct TurnInput {
    /// The user and the agent.
    pub scope: Scope,
    /// The channel of the message and of its reply.
    pub channel: String,
    pub thread: String,
    /// The user's message.
    pub text: String,
    /// Facts about the request.
    pub facts: Facts,
    /// Who will read the reply.
    pub audience: Audience,
    /// Whether no person sees the reply.
    pub background: bool,
    /// The task that the turn is about.
    pub task: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnEvent {
    /// More of the reply.
    Text(String),
    /// A tool call starts.
    Tool {
        /// The id of the call.
        id: String,
        name: String,
    },
    /// A tool call ends.
    ToolDone {
        /// The id of the call.
        id: String,
        name: String,
        /// Whether it failed, or was not made.
        is_error: bool,
        /// The broker's decision, if the call was not made: `pending`, `deny` …
        decision: Option<String>,
        /// The approval that it waits for.
        approval: Option<String>,
    },
    /// The model request is retried after a delay.
    Waiting {
        after: Duration,
        /// The error that caused the retry.
        reason: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnResult {
    /// `None` is silence, and no channel receives anything.
    pub reply: Option<String>,
    /// Whether the model reached its output limit.
    pub is_cut: bool,
    pub usage: Usage,
    /// The receipt id of its prompt.
    pub receipt: String,
    /// How often the model was called.
    pub rounds: u32,
}

/// A conversation with an open session for tool calls.
struct PreparedTurn<'a> {
    session: SessionGuard<'a>,
    tools: Vec<ToolSpec>,
    prompt: BuiltPrompt,
}

pub type OnEvent<'a> = &'a mut (dyn FnMut(TurnEvent) + Send);

impl Agent {
    /// Agents that act through this broker and store their conversations in this store.
    #[must_use]
    pub fn new(setup: AgentSetup) -> Self {
        let agent = Self(Arc::new(Inner {
            setup,
            sessions: Sessions::default(),
            thread_locks: ThreadLocks::default(),
        }));
        let inner = Arc::downgrade(&agent.0);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(SWEEP).await;
                let Some(inner) = inner.upgrade() else { return };
                inner.sessions.sweep().await;
            }
        });
        agent
    }

    #[must_use]
    pub fn has_model(&self) -> bool {
        self.0.setup.model.is_some()
    }

    #[must_use]
    pub fn store(&self) -> &Store {
        &self.0.setup.store
    }

    /// Runs one turn. Dropping the future interrupts it: messages and results stored by then stay in the thread.
    ///
    /// # Errors
    /// When there is no reply. The user's message is in the thread unless the store failed.
    pub async fn run_turn(&self, input: TurnInput, on: OnEvent<'_>) -> Result<TurnResult, TurnError> {
        let Inner { setup, thread_locks, .. } = &*self.0;
        let model = setup.model.as_ref().ok_or(TurnError::NoModel)?;
        if input.text.len() > MAX_MESSAGE_BYTES {
            return Err(TurnError::TooLong { bytes: input.text.len(), most: MAX_MESSAGE_BYTES });
        }
        let _lock = thread_locks.lock(&input.thread).await;
        let loading = History::load(&setup.store, &input.scope, &input.thread);
        let (PreparedTurn { session, tools, prompt }, mut history) =
            tokio::try_join!(self.prepare(&input), loading)?;
        let Some(local) = session.local() else { return Err(TurnError::Empty) };
        let said = ChatMessage::User { text: input.text.clone() };
        history.push(said.clone());
        let keep = async {
            let (receipt, _) = tokio::try_join!(
                setup.store.keep_receipt(&input.scope, prompt.receipt.clone()),
                setup.store.append_messages(input.scope.user(), &input.thread, vec![to_stored(&said)])
            )?;
            Ok(receipt)
        };
        let turn = tool_loop::ToolLoop { setup, model, local, input: &input, prompt: &prompt, tools: &tools };
        let (receipt, ended) = turn.run(history, keep, on).await?;
        Ok(TurnResult {
            reply: ended.reply,
            is_cut: ended.is_cut,
            usage: ended.usage,
            receipt,
            rounds: ended.rounds,
        })
    }

    /// Opens the session of the conversation and builds a prompt that applies to the calls of this turn.
    async fn prepare(&self, input: &TurnInput) -> Result<PreparedTurn<'_>, TurnError> {
        let Inner { setup, sessions, .. } = &*self.0;
        let principal = Principal::new(input.scope.user(), input.scope.agent(), &input.channel);
        let principal = match input.audience {
            Audience::Owner | Audience::User => principal,
            Audience::Group | Audience::Public => principal.in_shared_conversation(&input.thread),
        };
        let session = sessions.acquire(&setup.broker, principal, &input.thread).await?;
        let Some(local) = session.local() else { return Err(TurnError::Empty) };
        let tools = list_tools(local).await;
        let servers = setup.broker.server_instructions(local).await;
        let request = prompt_request(input, tools.clone(), servers);
        let prompt = setup.prompt_source.build(request).await.map_err(TurnError::Compose)?;
        local.prompted(&prompt.text);
        Ok(PreparedTurn { session, tools, prompt })
    }

    /// Ends the idle sessions.
    pub async fn close_sessions(&self) {
        self.0.sessions.end().await;
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Agent").field(&self.0.setup.model).finish()
    }
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

fn prompt_request(input: &TurnInput, tools: Vec<ToolSpec>, servers: ServerInstructions) -> PromptRequest {
    PromptRequest {
        scope: input.scope.clone(),
        channel: input.channel.clone(),
        audience: input.audience,
        background: input.background,
        task: input.task.clone(),
        facts: Facts { session: Some(input.thread.clone()), ..input.facts.clone() },
        tools,
        servers,
        minimal: false,
    }
}

#[derive(Debug, thiserror::Error)]
pub enum TurnError {
    #[error("no model is configured, so nobody can answer")]
    NoModel,
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The model returned neither text nor calls.
    #[error("the model gave an empty answer")]
    Empty,
    /// The model does not stop calling tools.
    #[error("the model has called tools in {rounds} rounds and has not come to an end")]
    Endless {
        /// How often the model was called.
        rounds: u32,
    },
    /// The user's message is too long.
    #[error("the message has {bytes} bytes; at most {most} are taken")]
    TooLong {
        bytes: usize,
        /// The limit in bytes.
        most: usize,
    },
    /// The prompt could not be built.
    #[error("the prompt cannot be built: {0}")]
    Compose(String),
    /// The tools are unavailable.
    #[error("the tools cannot be reached")]
    Tools(#[from] InProcessError),
    /// The conversation cannot be read or stored.
    #[error("the conversation cannot be kept")]
    Store(#[from] embody_store::Error),
}

/// The settings that configure a model.
pub const MODEL_CONFIG_EXAMPLE: &str = "[model]\nbase_url = \"http://127.0.0.1:11434/v1\"\nmodel = \"qwen3\"";

impl TurnError {
    /// What the owner can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoModel => Some(format!(
                "add these lines to embody.toml in the workspace (`embody config check` says where that is):\n{MODEL_CONFIG_EXAMPLE}"
            )),
            Self::Model(error) => error.hint(),
            Self::Empty => Some("ask again; a model that does this often does not suit the job".to_owned()),
            Self::Endless { .. } => Some("say what you need in smaller steps".to_owned()),
            Self::TooLong { .. } => {
                Some("say it in parts, or put it into a file of the workspace".to_owned())
            }
            Self::Compose(_) => Some("`embody doctor` says what is wrong with the workspace".to_owned()),
            Self::Tools(_) | Self::Store(_) => Some("`embody doctor` says what is wrong".to_owned()),
        }
    }
}

/// Facts about the request, for the runtime section.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// The conversation's key.
    pub session: Option<String>,
    /// The `Accept-Language` of the request.
    pub accept_language: Option<String>,
    pub remote_ip: Option<String>,
    /// Where the request comes from.
    pub location: Option<String>,
}

/// What a turn knows about the prompt that it needs.
#[derive(Debug, Clone)]
pub struct PromptRequest {
    /// The user and the agent.
    pub scope: Scope,
    /// The channel of the reply.
    pub channel: String,
    /// Who will read the reply.
    pub audience: Audience,
    /// Whether no person sees the reply.
    pub background: bool,
    /// The task that the turn is about.
    pub task: Option<String>,
    pub facts: Facts,
    /// The available tools.
    pub tools: Vec<ToolSpec>,
    /// The instructions of the servers behind the tools.
    pub servers: ServerInstructions,
    /// Only the first sentence: for a summary.
    pub minimal: bool,
}

/// A prompt, and its receipt.
#[derive(Debug, Clone)]
pub struct BuiltPrompt {
    /// Exactly the text that is sent.
    pub text: String,
    /// The length of the prefix, in bytes, that stays the same in the next turn.
    pub stable_len: usize,
    pub receipt: NewReceipt,
}

type Composing = Pin<Box<dyn Future<Output = Result<BuiltPrompt, String>> + Send>>;

pub struct PromptSource(Box<dyn Fn(PromptRequest) -> Composing + Send + Sync>);

impl PromptSource {
    /// `build` is called for every turn. Its error is a text that says why there is no prompt.
    pub fn new<F>(build: impl Fn(PromptRequest) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<BuiltPrompt, String>> + Send + 'static,
    {
        Self(Box::new(move |request| Box::pin(build(request))))
    }

    pub(crate) async fn build(&self, request: PromptRequest) -> Result<BuiltPrompt, String> {
        (self.0)(request).await
    }
}

impl fmt::Debug for PromptSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Composer")
    }
}

type Lock = tokio::sync::Mutex<()>;

/// The locks of the threads in use.
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
