//! One turn of an agent, the same for every channel: who speaks → workspace and store → prompt → model → tools through the
//! broker → reply. The prompt is built anew for every turn and its receipt is kept. Nothing here knows a channel.

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
/// How often unused sessions are looked for.
const SWEEP: Duration = Duration::from_secs(30);

/// What an agent is made of.
pub struct AgentSetup {
    /// Where its tools are, and its gates.
    pub broker: Arc<Broker>,
    /// Where conversations are kept.
    pub store: Store,
    /// Who answers; none: nobody.
    pub model: Option<ChatModel>,
    /// Where its prompt comes from.
    pub prompt_source: PromptSource,
}

impl fmt::Debug for AgentSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentSetup").field("model", &self.model).finish_non_exhaustive()
    }
}

/// Agents, ready for a turn.
#[derive(Clone)]
pub struct Agent(Arc<Inner>);

struct Inner {
    setup: AgentSetup,
    sessions: Sessions,
    thread_locks: ThreadLocks,
}

/// What one turn is about.
#[derive(Debug, Clone)]
pub struct TurnInput {
    /// Whose, and with which agent.
    pub scope: Scope,
    /// The channel that it comes through, and that the reply goes to.
    pub channel: String,
    /// The thread that it is a part of.
    pub thread: String,
    /// What is said.
    pub text: String,
    /// What the request says about itself.
    pub facts: Facts,
    /// Who will read the reply.
    pub audience: Audience,
    /// Whether nobody sees the reply.
    pub background: bool,
    /// The task that it is about.
    pub task: Option<String>,
}

/// Something that happens in a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnEvent {
    /// More of the reply.
    Text(String),
    /// A tool is called.
    Tool {
        /// The call.
        id: String,
        /// The tool.
        name: String,
    },
    /// The call is over.
    ToolDone {
        /// The call.
        id: String,
        /// The tool.
        name: String,
        /// Whether it failed, or was not made.
        is_error: bool,
        /// What the broker decided, if it was not made: `pending`, `deny` …
        decision: Option<String>,
        /// The approval that it waits for.
        approval: Option<String>,
    },
    /// The model is asked again after a while.
    Waiting {
        /// How long.
        after: Duration,
        /// Why.
        reason: String,
    },
}

/// What a turn came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnResult {
    /// What is said to the user; none is silence, and reaches no channel.
    pub reply: Option<String>,
    /// Whether the model met the limit of its length.
    pub is_cut: bool,
    /// What it cost.
    pub usage: Usage,
    /// The receipt of its prompt.
    pub receipt: String,
    /// How often the model was asked.
    pub rounds: u32,
}

/// A conversation in which tools can be called.
struct PreparedTurn<'a> {
    session: SessionGuard<'a>,
    tools: Vec<ToolSpec>,
    prompt: BuiltPrompt,
}

/// Hears what happens in a turn.
pub type OnEvent<'a> = &'a mut (dyn FnMut(TurnEvent) + Send);

impl Agent {
    /// Agents that act through this broker and keep their conversations in this store.
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

    /// Whether there is a model.
    #[must_use]
    pub fn has_model(&self) -> bool {
        self.0.setup.model.is_some()
    }

    /// The store that conversations are kept in.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.0.setup.store
    }

    /// Runs one turn. Dropping it breaks it off: what was said and done by then stays in the thread.
    ///
    /// # Errors
    /// When there is no reply; what the user said is in the thread unless nothing could be kept.
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

    /// The session of the conversation, with a prompt of this moment that holds for what is called in it.
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

    /// Ends the sessions that wait for another turn.
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
