//! The trait of a server's own logic, and the closed set of requests that it answers.

use embody_wire::Secret;
use embody_wire::server::{AuthError, Credentials};
use serde_json::{Map, Value};

use crate::context::RequestContext;

pub trait ServerHandler: Send + Sync + 'static {
    /// The authenticated caller.
    type Principal: Clone + PartialEq + Send + Sync + 'static;

    fn server_info(&self) -> ServerInfo;

    fn capabilities(&self) -> Capabilities;

    /// Authenticates a caller over HTTP.
    fn authenticate(
        &self,
        credentials: Credentials,
    ) -> impl Future<Output = Result<Self::Principal, AuthError>> + Send;

    /// Whether each of these tokens, which [`ServerHandler::authenticate`] accepted, is still valid, in their order.
    fn are_valid(&self, bearers: &[Secret]) -> impl Future<Output = Vec<bool>> + Send {
        std::future::ready(vec![true; bearers.len()])
    }

    /// The error with which this call is certain to end, if any: it is asked before a person approves the call. It must change
    /// nothing.
    fn check(
        &self,
        _principal: &Self::Principal,
        _call: CallToolParams,
    ) -> impl Future<Output = Option<String>> + Send {
        std::future::ready(None)
    }

    /// Returns the `result` of the method, without the members that the era adds.
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
    /// How to use the server. Hosts may truncate or hide it.
    pub instructions: String,
}

/// Requests outside these capabilities fail with "method not found".
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Capabilities {
    pub tools: bool,
    pub prompts: bool,
    pub resources: bool,
    pub completions: bool,
    pub logging: bool,
    /// Calls that continue as tasks, for stateless hosts that declare the extension.
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
    Task { id: String, request: TaskRequest },
}

#[derive(Debug, Clone, PartialEq)]
pub enum TaskRequest {
    Get,
    /// Answers to its input requests, by key.
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
    /// The host does not declare this capability.
    MissingCapability(&'static str),
    /// The host does not declare this extension.
    MissingExtension(&'static str),
    HeaderMismatch(String),
    Internal(String),
}

/// A list with one page, as the `result` of its method.
pub fn single_page(
    cursor: Option<String>,
    name: &str,
    list: Value,
) -> Result<Map<String, Value>, RequestError> {
    if let Some(cursor) = cursor {
        let cursor: String = cursor.chars().take(64).collect();
        return Err(RequestError::InvalidParams(format!("unknown cursor `{cursor}`")));
    }
    let mut result = Map::new();
    result.insert(name.to_owned(), list);
    Ok(result)
}
