//! Methods to questions, answers to results: an [`Offer`] as a service on the wire.

use std::sync::Arc;

use embody_wire::message::{Notification, Outcome};
use embody_wire::serve::{Call, Credentials, Era, Host, Refusal, Service, TASKS, supported};
use embody_wire::{Secret, Version, mirrored};
use serde_json::{Map, Value, json};

use crate::changes::Changes;
use crate::context::{Context, Level};
use crate::era;
use crate::offer::{Ask, Capabilities, Failure, Offer, TaskAct, ToolCall};

/// An offer on the wire.
pub struct Server<O: Offer> {
    offer: Arc<O>,
    changes: Arc<Changes<O::Principal>>,
}

impl<O: Offer> Server<O> {
    /// Puts an offer on the wire. Who tells of changes shares `changes` with it.
    #[must_use]
    pub fn new(offer: Arc<O>, changes: Arc<Changes<O::Principal>>) -> Self {
        Self { offer, changes }
    }

    async fn answer(&self, call: Call<O::Principal>) -> Result<Map<String, Value>, Failure> {
        let era = call.host.era();
        let params = match &call.request.params {
            None => Map::new(),
            Some(params) => serde_json::from_str(params.get())
                .map_err(|_| Failure::Invalid("the parameters are not an object".to_owned()))?,
        };
        let can = self.offer.capabilities();
        match (era, &*call.request.method) {
            (Era::Session(_), "initialize") => return Ok(self.greet(&params)),
            (Era::Session(_), "ping") => return Ok(Map::new()),
            (Era::Session(_), "logging/setLevel") if can.logging => return self.set_level(&call, &params),
            (Era::Session(_), method @ ("resources/subscribe" | "resources/unsubscribe"))
                if can.resources =>
            {
                let on = method == "resources/subscribe";
                if !self.changes.watch(&call.host, &text(&params, "uri")?, on) {
                    return Err(Failure::Invalid("this session watches too many resources".to_owned()));
                }
                return Ok(Map::new());
            }
            (Era::Stateless, "server/discover") => return Ok(self.discover()),
            (Era::Stateless, "subscriptions/listen") => {
                let wanted = object(&params, "notifications");
                if can.tasks && wanted.contains_key("taskIds") {
                    needs_tasks(&call)?;
                }
                let result = self.changes.listen(&call, &wanted, can).await;
                return Ok(era::dress(result, &self.offer.about(), None));
            }
            _ => {}
        }
        // Sessions have tasks of another kind, which are not served.
        let can = Capabilities { tasks: can.tasks && era == Era::Stateless, ..can };
        let ask = ask(&call.request.method, params.clone(), can)?;
        if let Ask::Task { .. } = ask {
            needs_tasks(&call)?;
        }
        let ttl_ms = era::ttl_ms(&ask);
        let level = self.level(&call.host, era);
        let context = Context::new(call, &params, level);
        self.check_headers(&ask, &context).await?;
        let result = self.offer.answer(ask, &context).await?;
        if era != Era::Stateless {
            return Ok(result);
        }
        Ok(era::dress(result, &self.offer.about(), ttl_ms))
    }

    fn greet(&self, params: &Map<String, Value>) -> Map<String, Value> {
        let wanted = params.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
        let version = Version::parse(wanted).unwrap_or(Version::LATEST);
        let about = self.offer.about();
        let mut result = Map::new();
        result.insert("protocolVersion".into(), version.as_str().into());
        result.insert("capabilities".into(), capabilities(self.offer.capabilities()));
        result.insert("serverInfo".into(), era::implementation(&about));
        result.insert("instructions".into(), about.instructions.into());
        result
    }

    fn discover(&self) -> Map<String, Value> {
        let about = self.offer.about();
        let mut result = Map::new();
        result.insert("supportedVersions".into(), supported().into());
        let can = self.offer.capabilities();
        let mut capabilities = capabilities(can);
        if let (true, Some(members)) = (can.tasks, capabilities.as_object_mut()) {
            members.insert("extensions".into(), json!({TASKS: {}}));
        }
        result.insert("capabilities".into(), capabilities);
        result.insert("instructions".into(), about.instructions.clone().into());
        era::dress(result, &about, Some(0))
    }

    fn set_level(
        &self,
        call: &Call<O::Principal>,
        params: &Map<String, Value>,
    ) -> Result<Map<String, Value>, Failure> {
        let level = params.get("level").cloned().unwrap_or_default();
        let level: Level = serde_json::from_value(level.clone())
            .map_err(|_| Failure::Invalid(format!("there is no log level {level}")))?;
        self.changes.set_level(&call.host, level);
        Ok(Map::new())
    }

    fn level(&self, host: &Host<O::Principal>, era: Era) -> Option<Level> {
        match era {
            Era::Session(_) => self.changes.level(host),
            // Whoever does not say that they want to hear, do not.
            Era::Stateless => {
                host.hello().log_level.as_ref().and_then(|level| serde_json::from_value(json!(level)).ok())
            }
        }
    }

    /// A parameter that headers mirror must say the same in both.
    async fn check_headers(&self, ask: &Ask, context: &Context<O::Principal>) -> Result<(), Failure> {
        let (Ask::Tool(call), Some(headers)) = (ask, &context.call().mirrored) else { return Ok(()) };
        let listed = self.offer.answer(Ask::Tools { cursor: None }, context).await?;
        let tools = listed.get("tools").and_then(Value::as_array);
        let named = |tool: &&Value| tool.get("name").and_then(Value::as_str) == Some(&call.name);
        let schema = tools.into_iter().flatten().find(named).and_then(|tool| tool.get("inputSchema"));
        let arguments = Value::Object(call.arguments.clone());
        match schema.and_then(|schema| mirrored::mismatch(schema, &arguments, headers)) {
            Some(message) => Err(Failure::Headers(message)),
            None => Ok(()),
        }
    }
}

impl<O: Offer> Service for Server<O> {
    type Principal = O::Principal;

    fn admit(
        &self,
        credentials: Credentials,
    ) -> impl Future<Output = Result<Self::Principal, Refusal>> + Send {
        self.offer.admit(credentials)
    }

    fn are_valid(&self, bearers: &[Secret]) -> impl Future<Output = Vec<bool>> + Send {
        self.offer.are_valid(bearers)
    }

    async fn call(&self, call: Call<Self::Principal>) -> Outcome {
        let (method, era) = (call.request.method.clone(), call.host.era());
        match self.answer(call).await {
            Ok(result) => era::success(result),
            Err(why) => era::failed(why, &method, era),
        }
    }

    async fn notice(&self, host: Arc<Host<Self::Principal>>, notification: Notification) {
        if notification.method == "notifications/initialized" {
            self.changes.enter(&host);
        }
    }

    async fn gone(&self, host: Arc<Host<Self::Principal>>) {
        self.changes.leave(&host);
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

fn ask(method: &str, params: Map<String, Value>, can: Capabilities) -> Result<Ask, Failure> {
    let cursor = || match params.get("cursor") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(cursor)) => Ok(Some(cursor.clone())),
        Some(other) => Err(Failure::Invalid(format!("the cursor {other} is not a text"))),
    };
    Ok(match method {
        "tools/list" if can.tools => Ask::Tools { cursor: cursor()? },
        "tools/call" if can.tools => {
            let name = text(&params, "name")?;
            Ask::Tool(ToolCall { name, arguments: arguments(&params)? })
        }
        "resources/list" if can.resources => Ask::Resources { cursor: cursor()? },
        "resources/templates/list" if can.resources => Ask::ResourceTemplates { cursor: cursor()? },
        "resources/read" if can.resources => Ask::Resource { uri: text(&params, "uri")? },
        "prompts/list" if can.prompts => Ask::Prompts { cursor: cursor()? },
        "prompts/get" if can.prompts => {
            Ask::Prompt { name: text(&params, "name")?, arguments: arguments(&params)? }
        }
        "completion/complete" if can.completions => Ask::Completion {
            reference: params.get("ref").cloned().unwrap_or_default(),
            argument: params.get("argument").cloned().unwrap_or_default(),
        },
        "tasks/get" if can.tasks => Ask::Task { id: text(&params, "taskId")?, act: TaskAct::Get },
        "tasks/update" if can.tasks => {
            let answers = params.get("inputResponses").and_then(Value::as_object);
            let answers =
                answers.ok_or_else(|| Failure::Invalid("`inputResponses` is not an object".to_owned()))?;
            Ask::Task { id: text(&params, "taskId")?, act: TaskAct::Update(answers.clone()) }
        }
        "tasks/cancel" if can.tasks => Ask::Task { id: text(&params, "taskId")?, act: TaskAct::Cancel },
        _ => return Err(Failure::NoMethod),
    })
}

/// Whoever says nothing of tasks has none.
fn needs_tasks<P>(call: &Call<P>) -> Result<(), Failure> {
    if call.host.hello().has_extension(TASKS) { Ok(()) } else { Err(Failure::NeedsExtension(TASKS)) }
}

fn arguments(params: &Map<String, Value>) -> Result<Map<String, Value>, Failure> {
    match params.get("arguments") {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(arguments)) => Ok(arguments.clone()),
        Some(_) => Err(Failure::Invalid("the arguments are not an object".to_owned())),
    }
}

fn text(params: &Map<String, Value>, name: &str) -> Result<String, Failure> {
    let text = params.get(name).and_then(Value::as_str);
    text.map(str::to_owned)
        .ok_or_else(|| Failure::Invalid(format!("the parameter `{name}` is missing or not a text")))
}

fn object(params: &Map<String, Value>, name: &str) -> Map<String, Value> {
    params.get(name).and_then(Value::as_object).cloned().unwrap_or_default()
}
