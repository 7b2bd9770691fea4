//! A [`ServerHandler`] as a service: maps methods to typed requests, and their results to outcomes.

use std::sync::Arc;

use embody_wire::message::{Notification, Outcome};
use embody_wire::server::{AuthError, Call, Credentials, Era, Host, Service, TASKS, supported};
use embody_wire::{Secret, Version, param_headers};
use serde_json::{Map, Value, json};

use crate::changes::ChangeNotifier;
use crate::context::{LogLevel, RequestContext};
use crate::era;
use crate::handler::{CallToolParams, Capabilities, ClientRequest, RequestError, ServerHandler, TaskRequest};

pub struct Server<H: ServerHandler> {
    handler: Arc<H>,
    changes: Arc<ChangeNotifier<H::Principal>>,
}

impl<H: ServerHandler> Server<H> {
    /// `changes` is shared with the code that reports changes.
    #[must_use]
    pub fn new(handler: Arc<H>, changes: Arc<ChangeNotifier<H::Principal>>) -> Self {
        Self { handler, changes }
    }

    /// See [`ServerHandler::check`].
    pub async fn check(&self, principal: &H::Principal, call: CallToolParams) -> Option<String> {
        self.handler.check(principal, call).await
    }

    async fn dispatch(&self, call: Call<H::Principal>) -> Result<Map<String, Value>, RequestError> {
        let era = call.host.era();
        let params = match &call.request.params {
            None => Map::new(),
            Some(params) => serde_json::from_str(params.get())
                .map_err(|_| RequestError::InvalidParams("the parameters are not an object".to_owned()))?,
        };
        let can = self.handler.capabilities();
        match (era, &*call.request.method) {
            (Era::Session(_), "initialize") => return Ok(self.initialize(&params)),
            (Era::Session(_), "ping") => return Ok(Map::new()),
            (Era::Session(_), "logging/setLevel") if can.logging => return self.set_level(&call, &params),
            (Era::Session(_), method @ ("resources/subscribe" | "resources/unsubscribe"))
                if can.resources =>
            {
                let on = method == "resources/subscribe";
                if !self.changes.set_subscribed(&call.host, &text(&params, "uri")?, on) {
                    return Err(RequestError::InvalidParams(
                        "this session has too many resource subscriptions".to_owned(),
                    ));
                }
                return Ok(Map::new());
            }
            (Era::Stateless, "server/discover") => return Ok(self.discover()),
            (Era::Stateless, "subscriptions/listen") => {
                let wanted = object(&params, "notifications");
                if can.tasks && wanted.contains_key("taskIds") {
                    require_tasks(&call)?;
                }
                let result = self.changes.listen(&call, &wanted, can).await;
                return Ok(era::add_era_meta(result, &self.handler.server_info(), None));
            }
            _ => {}
        }
        // Sessions have tasks of another kind, which are not served.
        let can = Capabilities { tasks: can.tasks && era == Era::Stateless, ..can };
        let request = parse_request(&call.request.method, params.clone(), can)?;
        if let ClientRequest::Task { .. } = request {
            require_tasks(&call)?;
        }
        let ttl_ms = era::ttl_ms(&request);
        let level = self.level(&call.host, era);
        let context = RequestContext::new(call, &params, level);
        self.check_headers(&request, &context).await?;
        let result = self.handler.handle(request, &context).await?;
        if era != Era::Stateless {
            return Ok(result);
        }
        Ok(era::add_era_meta(result, &self.handler.server_info(), ttl_ms))
    }

    fn initialize(&self, params: &Map<String, Value>) -> Map<String, Value> {
        let wanted = params.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
        let version = Version::parse(wanted).unwrap_or(Version::LATEST);
        let info = self.handler.server_info();
        let mut result = Map::new();
        result.insert("protocolVersion".into(), version.as_str().into());
        result.insert("capabilities".into(), capabilities(self.handler.capabilities()));
        result.insert("serverInfo".into(), era::implementation(&info));
        result.insert("instructions".into(), info.instructions.into());
        result
    }

    fn discover(&self) -> Map<String, Value> {
        let info = self.handler.server_info();
        let mut result = Map::new();
        result.insert("supportedVersions".into(), supported().into());
        let can = self.handler.capabilities();
        let mut capabilities = capabilities(can);
        if let (true, Some(members)) = (can.tasks, capabilities.as_object_mut()) {
            members.insert("extensions".into(), json!({TASKS: {}}));
        }
        result.insert("capabilities".into(), capabilities);
        result.insert("instructions".into(), info.instructions.clone().into());
        era::add_era_meta(result, &info, Some(0))
    }

    fn set_level(
        &self,
        call: &Call<H::Principal>,
        params: &Map<String, Value>,
    ) -> Result<Map<String, Value>, RequestError> {
        let level = params.get("level").cloned().unwrap_or_default();
        let level: LogLevel = serde_json::from_value(level.clone())
            .map_err(|_| RequestError::InvalidParams(format!("unknown log level {level}")))?;
        self.changes.set_level(&call.host, level);
        Ok(Map::new())
    }

    fn level(&self, host: &Host<H::Principal>, era: Era) -> Option<LogLevel> {
        match era {
            Era::Session(_) => self.changes.level(host),
            // A host without a level receives no log messages.
            Era::Stateless => host
                .initialize_params()
                .log_level
                .as_ref()
                .and_then(|level| serde_json::from_value(json!(level)).ok()),
        }
    }

    /// A parameter that a header mirrors must have the same value in both.
    async fn check_headers(
        &self,
        request: &ClientRequest,
        context: &RequestContext<H::Principal>,
    ) -> Result<(), RequestError> {
        let (ClientRequest::Tool(call), Some(headers)) = (request, &context.call().param_headers) else {
            return Ok(());
        };
        let listed = self.handler.handle(ClientRequest::Tools { cursor: None }, context).await?;
        let tools = listed.get("tools").and_then(Value::as_array);
        let named = |tool: &&Value| tool.get("name").and_then(Value::as_str) == Some(&call.name);
        let schema = tools.into_iter().flatten().find(named).and_then(|tool| tool.get("inputSchema"));
        let arguments = Value::Object(call.arguments.clone());
        match schema.and_then(|schema| param_headers::mismatch(schema, &arguments, headers)) {
            Some(message) => Err(RequestError::HeaderMismatch(message)),
            None => Ok(()),
        }
    }
}

impl<H: ServerHandler> Service for Server<H> {
    type Principal = H::Principal;

    fn authenticate(
        &self,
        credentials: Credentials,
    ) -> impl Future<Output = Result<Self::Principal, AuthError>> + Send {
        self.handler.authenticate(credentials)
    }

    fn are_valid(&self, bearers: &[Secret]) -> impl Future<Output = Vec<bool>> + Send {
        self.handler.are_valid(bearers)
    }

    async fn call(&self, call: Call<Self::Principal>) -> Outcome {
        let (method, era) = (call.request.method.clone(), call.host.era());
        match self.dispatch(call).await {
            Ok(result) => era::success(result),
            Err(why) => era::error_outcome(why, &method, era),
        }
    }

    async fn on_notification(&self, host: Arc<Host<Self::Principal>>, notification: Notification) {
        if notification.method == "notifications/initialized" {
            self.changes.add_session(&host);
        }
    }

    async fn on_disconnect(&self, host: Arc<Host<Self::Principal>>) {
        self.changes.remove_session(&host);
    }
}

fn capabilities(can: Capabilities) -> Value {
    let mut capabilities = Map::new();
    let mut add = |name: &str, on: bool, value: Value| {
        if on {
            capabilities.insert(name.to_owned(), value);
        }
    };
    add("tools", can.tools, json!({"listChanged": true}));
    add("prompts", can.prompts, json!({"listChanged": true}));
    add("resources", can.resources, json!({"listChanged": true, "subscribe": true}));
    add("completions", can.completions, json!({}));
    add("logging", can.logging, json!({}));
    capabilities.into()
}

fn parse_request(
    method: &str,
    params: Map<String, Value>,
    can: Capabilities,
) -> Result<ClientRequest, RequestError> {
    let cursor = || match params.get("cursor") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(cursor)) => Ok(Some(cursor.clone())),
        Some(other) => Err(RequestError::InvalidParams(format!("the cursor {other} is not a string"))),
    };
    Ok(match method {
        "tools/list" if can.tools => ClientRequest::Tools { cursor: cursor()? },
        "tools/call" if can.tools => {
            let name = text(&params, "name")?;
            ClientRequest::Tool(CallToolParams { name, arguments: arguments(&params)? })
        }
        "resources/list" if can.resources => ClientRequest::Resources { cursor: cursor()? },
        "resources/templates/list" if can.resources => ClientRequest::ResourceTemplates { cursor: cursor()? },
        "resources/read" if can.resources => ClientRequest::Resource { uri: text(&params, "uri")? },
        "prompts/list" if can.prompts => ClientRequest::Prompts { cursor: cursor()? },
        "prompts/get" if can.prompts => {
            ClientRequest::Prompt { name: text(&params, "name")?, arguments: arguments(&params)? }
        }
        "completion/complete" if can.completions => ClientRequest::Completion {
            reference: params.get("ref").cloned().unwrap_or_default(),
            argument: params.get("argument").cloned().unwrap_or_default(),
        },
        "tasks/get" if can.tasks => {
            ClientRequest::Task { id: text(&params, "taskId")?, request: TaskRequest::Get }
        }
        "tasks/update" if can.tasks => {
            let answers = params.get("inputResponses").and_then(Value::as_object);
            let answers = answers
                .ok_or_else(|| RequestError::InvalidParams("`inputResponses` is not an object".to_owned()))?;
            ClientRequest::Task {
                id: text(&params, "taskId")?,
                request: TaskRequest::Update(answers.clone()),
            }
        }
        "tasks/cancel" if can.tasks => {
            ClientRequest::Task { id: text(&params, "taskId")?, request: TaskRequest::Cancel }
        }
        _ => return Err(RequestError::MethodNotFound),
    })
}

/// Fails unless the host declares the extension for tasks.
fn require_tasks<P>(call: &Call<P>) -> Result<(), RequestError> {
    if call.host.initialize_params().has_extension(TASKS) {
        Ok(())
    } else {
        Err(RequestError::MissingExtension(TASKS))
    }
}

fn arguments(params: &Map<String, Value>) -> Result<Map<String, Value>, RequestError> {
    match params.get("arguments") {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(arguments)) => Ok(arguments.clone()),
        Some(_) => Err(RequestError::InvalidParams("the arguments are not an object".to_owned())),
    }
}

fn text(params: &Map<String, Value>, name: &str) -> Result<String, RequestError> {
    let text = params.get(name).and_then(Value::as_str);
    text.map(str::to_owned).ok_or_else(|| {
        RequestError::InvalidParams(format!("the parameter `{name}` is missing or not a string"))
    })
}

fn object(params: &Map<String, Value>, name: &str) -> Map<String, Value> {
    params.get(name).and_then(Value::as_object).cloned().unwrap_or_default()
}
