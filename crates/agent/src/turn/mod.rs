//! One turn of an agent, the same for every channel: resolve the user → workspace and store → prompt → model → tools
//! through the broker → reply. The prompt is built anew for every turn and its receipt is stored. Independent of
//! channels.

mod deferred_calls;
mod error;
mod history;
mod prompt_source;
mod sessions;
mod thread_locks;
mod tool_loop;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use embody_broker::{Broker, InProcessClient, Principal, ServerInstructions};
use embody_prompt::Audience;
use embody_store::{Scope, Store};

pub use self::error::{MODEL_CONFIG_EXAMPLE, TurnError};
pub use self::history::CallDecision;
use self::history::{History, to_stored};
pub use self::prompt_source::{BuiltPrompt, Facts, PromptRequest, PromptSource};
use self::sessions::{SessionGuard, Sessions};
use self::thread_locks::ThreadLocks;
use crate::model::{ChatMessage, ChatModel, ToolSpec, Usage};

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
                setup.store.receipts().insert(&input.scope, prompt.receipt.clone()),
                setup.store.threads().append(input.scope.user(), &input.thread, vec![to_stored(&said)])
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
