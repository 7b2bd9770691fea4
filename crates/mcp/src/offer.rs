//! What a server offers: the trait, and the closed set of questions that it answers.

use embody_wire::Secret;
use embody_wire::serve::{Credentials, Refusal};
use serde_json::{Map, Value};

use crate::context::Context;

/// What a server offers.
pub trait Offer: Send + Sync + 'static {
    /// Who calls, once they are let in.
    type Principal: Clone + PartialEq + Send + Sync + 'static;

    /// Who the server is.
    fn about(&self) -> About;

    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// Lets somebody in who came over HTTP, or does not.
    fn admit(
        &self,
        credentials: Credentials,
    ) -> impl Future<Output = Result<Self::Principal, Refusal>> + Send;

    /// Whether each of these tokens, which [`Offer::admit`] accepted, is still valid, in their order.
    fn are_valid(&self, bearers: &[Secret]) -> impl Future<Output = Vec<bool>> + Send {
        std::future::ready(vec![true; bearers.len()])
    }

    /// Answers a question with the `result` of its method, without what the era adds.
    fn answer(
        &self,
        ask: Ask,
        context: &Context<Self::Principal>,
    ) -> impl Future<Output = Result<Map<String, Value>, Failure>> + Send;
}

/// Who a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// The program's name.
    pub name: String,
    /// Its name for people.
    pub title: String,
    /// Its version.
    pub version: String,
    /// How it wants to be used. Hosts may cut it or hide it.
    pub instructions: String,
}

/// What a server can do. What is left out is answered with «no such method».
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Tools; they may change.
    pub tools: bool,
    /// Prompts; they may change.
    pub prompts: bool,
    /// Resources; they may change, one by one too.
    pub resources: bool,
    /// Completion of arguments.
    pub completions: bool,
    /// Log messages.
    pub logging: bool,
    /// Calls that go on as tasks, for hosts of the stateless era that declare that extension.
    pub tasks: bool,
}

/// A question to an offer.
#[derive(Debug, Clone, PartialEq)]
pub enum Ask {
    /// `tools/list`
    Tools {
        /// Where to go on.
        cursor: Option<String>,
    },
    /// `tools/call`
    Tool(ToolCall),
    /// `resources/list`
    Resources {
        /// Where to go on.
        cursor: Option<String>,
    },
    /// `resources/templates/list`
    ResourceTemplates {
        /// Where to go on.
        cursor: Option<String>,
    },
    /// `resources/read`
    Resource {
        /// Which.
        uri: String,
    },
    /// `prompts/list`
    Prompts {
        /// Where to go on.
        cursor: Option<String>,
    },
    /// `prompts/get`
    Prompt {
        /// Which.
        name: String,
        /// With what.
        arguments: Map<String, Value>,
    },
    /// `completion/complete`
    Completion {
        /// What the argument belongs to.
        reference: Value,
        /// Its name and what was typed.
        argument: Value,
    },
    /// `tasks/get`, `tasks/update` or `tasks/cancel`
    Task {
        /// Which.
        id: String,
        /// What about it.
        act: TaskAct,
    },
}

/// What is asked about a task.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskAct {
    /// How it is.
    Get,
    /// These are answers to what it asks, by their keys.
    Update(Map<String, Value>),
    /// It is no longer wanted.
    Cancel,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The tool.
    pub name: String,
    /// Its arguments; none is an empty object.
    pub arguments: Map<String, Value>,
}

/// Why a question has no answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Failure {
    /// There is no such method here.
    NoMethod,
    /// The parameters do not fit.
    Invalid(String),
    /// There is no such resource.
    NoResource(String),
    /// The host would have to be able to do this, and did not say so.
    Needs(&'static str),
    /// The host would have to have declared this extension of the protocol.
    NeedsExtension(&'static str),
    /// Headers and body disagree.
    Headers(String),
    /// The server failed.
    Broken(String),
}

/// A list that has but one page, as the `result` of its method.
///
/// # Errors
/// When another page is asked for.
pub fn one_page(cursor: Option<String>, name: &str, list: Value) -> Result<Map<String, Value>, Failure> {
    if let Some(cursor) = cursor {
        let cursor: String = cursor.chars().take(64).collect();
        return Err(Failure::Invalid(format!("there is no page `{cursor}`")));
    }
    let mut result = Map::new();
    result.insert(name.to_owned(), list);
    Ok(result)
}
