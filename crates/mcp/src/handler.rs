//! The trait of a server's own logic, and the closed set of requests that it answers.

use embody_wire::Secret;
use embody_wire::server::{AuthError, Credentials};
use serde_json::{Map, Value};

use crate::context::RequestContext;

pub trait ServerHandler: Send + Sync + 'static {
    /// Who calls, once they are let in.
    type Principal: Clone + PartialEq + Send + Sync + 'static;

    fn server_info(&self) -> ServerInfo;

    fn capabilities(&self) -> Capabilities;

    /// Lets somebody in who came over HTTP, or does not.
    fn authenticate(
        &self,
        credentials: Credentials,
    ) -> impl Future<Output = Result<Self::Principal, AuthError>> + Send;

    /// Whether each of these tokens, which [`ServerHandler::authenticate`] accepted, is still valid, in their order.
    fn are_valid(&self, bearers: &[Secret]) -> impl Future<Output = Vec<bool>> + Send {
        std::future::ready(vec![true; bearers.len()])
    }

    /// Answers a question with the `result` of its method, without what the era adds.
    fn handle(
        &self,
        request: ClientRequest,
        context: &RequestContext<Self::Principal>,
    ) -> impl Future<Output = Result<Map<String, Value>, RequestError>> + Send;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerInfo {
    pub name: String,
    pub title: String,
    pub version: String,
    /// How it wants to be used. Hosts may cut it or hide it.
    pub instructions: String,
}

/// What a server can do. What is left out is answered with «no such method».
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Capabilities {
    pub tools: bool,
    pub prompts: bool,
    pub resources: bool,
    pub completions: bool,
    pub logging: bool,
    /// Calls that go on as tasks, for hosts of the stateless era that declare that extension.
    pub tasks: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ClientRequest {
    /// `tools/list`
    Tools { cursor: Option<String> },
    /// `tools/call`
    Tool(CallToolParams),
    /// `resources/list`
    Resources { cursor: Option<String> },
    /// `resources/templates/list`
    ResourceTemplates { cursor: Option<String> },
    /// `resources/read`
    Resource { uri: String },
    /// `prompts/list`
    Prompts { cursor: Option<String> },
    /// `prompts/get`
    Prompt { name: String, arguments: Map<String, Value> },
    /// `completion/complete`
    Completion { reference: Value, argument: Value },
    /// `tasks/get`, `tasks/update` or `tasks/cancel`
    Task { id: String, act: TaskRequest },
}

#[derive(Debug, Clone, PartialEq)]
pub enum TaskRequest {
    Get,
    /// These are answers to what it asks, by their keys.
    Update(Map<String, Value>),
    Cancel,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CallToolParams {
    pub name: String,
    pub arguments: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum RequestError {
    MethodNotFound,
    InvalidParams(String),
    ResourceNotFound(String),
    /// The host would have to be able to do this, and did not say so.
    MissingCapability(&'static str),
    /// The host would have to have declared this extension of the protocol.
    MissingExtension(&'static str),
    HeaderMismatch(String),
    Internal(String),
}

/// A list that has but one page, as the `result` of its method.
pub fn single_page(
    cursor: Option<String>,
    name: &str,
    list: Value,
) -> Result<Map<String, Value>, RequestError> {
    if let Some(cursor) = cursor {
        let cursor: String = cursor.chars().take(64).collect();
        return Err(RequestError::InvalidParams(format!("there is no page `{cursor}`")));
    }
    let mut result = Map::new();
    result.insert(name.to_owned(), list);
    Ok(result)
}
