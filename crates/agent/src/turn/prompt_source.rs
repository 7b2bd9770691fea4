//! Builds a turn's prompt: the owner of workspace and store supplies a closure, and the turn passes what only it knows.

use std::fmt;
use std::pin::Pin;

use embody_broker::ServerInstructions;
use embody_prompt::Audience;
use embody_store::Scope;
use embody_store::receipts::NewReceipt;

use crate::model::ToolSpec;

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
