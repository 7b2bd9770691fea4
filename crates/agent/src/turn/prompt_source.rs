//! Where a turn's prompt comes from: whoever reads workspace and store gives a closure, and the turn gives what only it
//! knows.

use std::fmt;
use std::pin::Pin;

use embody_broker::ServerInstructions;
use embody_prompt::Audience;
use embody_store::{NewReceipt, Scope};

use crate::model::ToolSpec;

/// What the request itself says, for the runtime section.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// The conversation's key.
    pub session: Option<String>,
    /// The languages that it asks for.
    pub accept_language: Option<String>,
    /// Its address.
    pub remote_ip: Option<String>,
    /// Where it comes from.
    pub location: Option<String>,
}

/// What a turn knows of the prompt that it needs.
#[derive(Debug, Clone)]
pub struct PromptRequest {
    /// Whose, and with which agent.
    pub scope: Scope,
    /// The channel that the reply goes to.
    pub channel: String,
    /// Who will read the reply.
    pub audience: Audience,
    /// Whether nobody sees it.
    pub background: bool,
    /// The task that it is about.
    pub task: Option<String>,
    /// What the request says.
    pub facts: Facts,
    /// The tools on offer.
    pub tools: Vec<ToolSpec>,
    /// What the bodies behind them say about themselves.
    pub servers: ServerInstructions,
    /// Only the first sentence: for a summary.
    pub minimal: bool,
}

/// A prompt, and the account of it that is kept.
#[derive(Debug, Clone)]
pub struct BuiltPrompt {
    /// Exactly what is sent.
    pub text: String,
    /// How many bytes of it stay the same in the next turn.
    pub stable_len: usize,
    /// The account.
    pub receipt: NewReceipt,
}

type Composing = Pin<Box<dyn Future<Output = Result<BuiltPrompt, String>> + Send>>;

/// Where prompts come from.
pub struct PromptSource(Box<dyn Fn(PromptRequest) -> Composing + Send + Sync>);

impl PromptSource {
    /// Called for every turn; in words, why there is no prompt.
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
