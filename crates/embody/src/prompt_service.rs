//! Builds every prompt: of a turn, of a command, and the contract of hosts. All of them are a request and a list of tools, and go
//! through [`PromptService::build`]. Knows the time zone of the owner.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use embody_agent::turn::{BuiltPrompt, PromptRequest, PromptSource, ToolList};
use embody_broker::{Description, ServerInstructions, contract_text};
use embody_mind::{Contract, ContractSource, ZonedNow};
use embody_prompt::{
    Audience, Body, BodyPart, Budget, Kind, Layout, MissingServer, Note, PromptInput, Server, Source, Tool,
    Value, assemble, render,
};
use embody_store::{Scope, Store};
use embody_workspace::{AgentName, LoadRequest, LoadedWorkspace, ModelFacts, StoredValues, load};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::config::Config;
use crate::error::{CliError, ErrorContext};
use crate::output::printable;
use crate::persona::{self, FetchedPersona, PersonaOutcome};
use crate::prompt_report::PromptReport;
use crate::prompt_tools::known_tools;
use crate::settings::Settings;
use crate::store::{self, StoredParts};

/// How long a remote persona is cached, and how long a failure to fetch it.
const PERSONA_TTL: Duration = Duration::from_secs(300);
const FAILURE_TTL: Duration = Duration::from_secs(30);

pub(crate) struct PromptService {
    settings: RwLock<Arc<Settings>>,
    /// `None` before the store exists: a prompt then contains nothing stored.
    store: Option<Store>,
    /// The owner of the workspace: `USER.md` and its time zone apply to no other user.
    owner: String,
    /// The settings that it was fetched with, and when.
    persona: tokio::sync::Mutex<Option<(Arc<Settings>, Instant, FetchedPersona)>>,
    owner_zone: Mutex<Zone>,
}

#[derive(Clone)]
enum Zone {
    Known(TimeZone),
    /// `source` names a time zone that does not exist.
    Unknown {
        name: String,
        source: String,
    },
}

/// Everything that a prompt is rendered from.
pub(crate) struct LoadedPrompt {
    pub(crate) workspace: LoadedWorkspace,
    pub(crate) layout: Layout,
    tools: Vec<(Tool, Source)>,
    pub(crate) servers: ServerInstructions,
    persona: PersonaOutcome,
    /// The task, if it was written after reading untrusted text.
    exposed_task: Option<String>,
    started: Instant,
}

impl PromptService {
    pub(crate) fn new(settings: Arc<Settings>, store: Option<Store>, owner: String) -> Arc<Self> {
        Arc::new(Self {
            settings: RwLock::new(settings),
            store,
            owner,
            persona: tokio::sync::Mutex::default(),
            owner_zone: Mutex::new(Zone::Known(TimeZone::system())),
        })
    }

    /// Loads everything that the prompt for this request is rendered from. The only path to a prompt; writes nothing.
    pub(crate) async fn build(
        &self,
        request: &PromptRequest,
        tools: ToolList,
    ) -> Result<LoadedPrompt, CliError> {
        let started = Instant::now();
        let ToolList { tools, servers, missing } = tools;
        let settings = self.settings();
        let config = &settings.config;
        let (load_request, exposed_task) = self.load_request(&settings, request).await?;
        let value =
            |(tool, source): &(Tool, Source)| Value::new(tool.clone(), source.clone(), Audience::Public);
        let load_request = LoadRequest { tools: tools.iter().map(value).collect(), ..load_request };
        let mut workspace = self.load(load_request).await?;
        add_servers(&mut workspace.input, &servers);
        workspace.input.missing_servers = missing.into_iter().map(missing_server).collect();
        let layout = layout(config, request, &workspace)?;
        let persona = match layout.wants_persona(&workspace.input) {
            true => self.persona(&settings).await,
            false => FetchedPersona::NotNeeded,
        };
        let persona = persona::apply(&mut workspace, config, persona);
        Ok(LoadedPrompt { workspace, layout, tools, servers, persona, exposed_task, started })
    }

    /// The prompt outside a turn, with the tools that are known without starting a server.
    pub(crate) async fn build_with_known_tools(
        &self,
        request: &PromptRequest,
    ) -> Result<LoadedPrompt, CliError> {
        let (settings, user) = (self.settings(), request.scope.user());
        let tools = known_tools(&settings.config, self.store.as_ref(), user, &self.owner).await?;
        self.build(request, tools).await
    }

    pub(crate) fn prompt_source(self: &Arc<Self>) -> PromptSource {
        let service = Arc::clone(self);
        PromptSource::new(move |(request, tools)| {
            let service = Arc::clone(&service);
            async move { service.build_for_turn(&request, tools).await.map_err(|failure| failure.summary().0) }
        })
    }

    /// The prompt that a model is about to read. If its task was written after reading untrusted text, this counts as an untrusted
    /// read.
    async fn build_for_turn(
        &self,
        request: &PromptRequest,
        tools: ToolList,
    ) -> Result<BuiltPrompt, CliError> {
        let loaded = self.build(request, tools).await?;
        create_working_directory(loaded.workspace.files.as_deref());
        if let (Some(store), Some(task)) = (&self.store, &loaded.exposed_task) {
            let (origin, now) = (format!("task:{task}"), store.clock().await?);
            store.untrusted_reads().record(&request.scope, &request.scope.writer(), &[&origin], now).await?;
        }
        let report = loaded.report();
        Ok(BuiltPrompt { receipt: report.new_receipt()?, stable_len: report.stable_len, text: report.text })
    }

    pub(crate) fn contract_source(self: &Arc<Self>) -> ContractSource {
        let service = Arc::clone(self);
        ContractSource::new(move |scope: Scope, now: ZonedNow| {
            let service = Arc::clone(&service);
            let request = PromptRequest {
                layout: Some(Layout::CONTRACT),
                now: Timestamp::from_microsecond(now.micros()).ok(),
                ..PromptRequest::new(scope)
            };
            async move {
                let built = service.build(&request, ToolList::default()).await;
                built
                    .map(|loaded| Contract::assemble(&loaded.workspace.input))
                    .map_err(|failure| failure.summary().0)
            }
        })
    }

    /// The body rules alone; empty if the workspace has none.
    pub(crate) async fn rules(&self, scope: &Scope) -> Result<String, CliError> {
        Ok(rules(&self.load_as_configured(scope).await?))
    }

    /// The current time in the zone of the owner; for other users, in the zone of the machine.
    pub(crate) fn now(&self, scope: &Scope) -> ZonedNow {
        let zone = match self.zone(scope) {
            Zone::Known(zone) => zone,
            Zone::Unknown { .. } => TimeZone::UTC,
        };
        ZonedNow::new(Timestamp::now(), zone)
    }

    /// The time zone of the workspace; UTC if it names one that does not exist.
    pub(crate) fn owner_zone(&self) -> TimeZone {
        match &*self.owner_zone.lock().unwrap_or_else(PoisonError::into_inner) {
            Zone::Known(zone) => zone.clone(),
            Zone::Unknown { .. } => TimeZone::UTC,
        }
    }

    fn zone(&self, scope: &Scope) -> Zone {
        if scope.user() == self.owner {
            self.owner_zone.lock().unwrap_or_else(PoisonError::into_inner).clone()
        } else {
            Zone::Known(TimeZone::system())
        }
    }

    /// The time zone for schedules, or an error if the workspace names one that does not exist: schedules are not guessed.
    pub(crate) fn scheduling_zone(&self, scope: &Scope) -> Result<String, String> {
        match self.zone(scope) {
            Zone::Known(zone) => Ok(zone.iana_name().unwrap_or("UTC").to_owned()),
            Zone::Unknown { name, source } => Err(format!("unknown time zone `{name}` in {source}")),
        }
    }

    /// Reads the workspace once, so that the time zone is known before the first contract.
    pub(crate) async fn load_zone(&self, agent: &str) -> Result<(), CliError> {
        self.load_as_configured(&Scope::new(&self.owner, agent)?).await.map(drop)
    }

    pub(crate) async fn load_zone_or_warn(&self, agent: &str) {
        if let Err(error) = self.load_zone(agent).await {
            tracing::warn!(reason = error.summary().0, "the workspace cannot be read");
        }
    }

    pub(crate) fn owner(&self) -> &str {
        &self.owner
    }

    pub(crate) fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Builds prompts from other settings from now on.
    pub(crate) fn apply(&self, settings: Arc<Settings>) {
        *self.settings.write().unwrap_or_else(PoisonError::into_inner) = settings;
    }

    async fn load_as_configured(&self, scope: &Scope) -> Result<LoadedWorkspace, CliError> {
        let (request, _) = self.load_request(&self.settings(), &PromptRequest::new(scope.clone())).await?;
        self.load(request).await
    }

    /// The request to the workspace, with what the store and the configuration add to it, and the id of a task that was written
    /// after reading untrusted text. Users other than the owner get no files of the owner.
    async fn load_request(
        &self,
        Settings { workspace, config }: &Settings,
        request: &PromptRequest,
    ) -> Result<(LoadRequest, Option<String>), CliError> {
        let PromptRequest { scope, task, .. } = request.clone();
        let is_for_owner = scope.user() == self.owner;
        let system_zone = || TimeZone::system().iana_name().map(str::to_owned).filter(|_| !is_for_owner);
        let stored = match &self.store {
            Some(store) => store::stored_parts(store, &scope, task.as_deref()).await?,
            None => StoredParts::default(),
        };
        let instructions = request.instructions.clone();
        let instructions = instructions.map(|text| (text, Source::fixed("--instructions")));
        let sections = config.prompt.sections.iter();
        let load_request = LoadRequest {
            workspace: workspace.clone(),
            body: config.prompt.body.clone(),
            agent: AgentName::new(scope.agent())?,
            is_for_owner,
            audience: match request.audience {
                Audience::Owner if !is_for_owner => Audience::User,
                audience => audience,
            },
            audiences: config.audience.clone(),
            channel: request.channel.clone(),
            task,
            background: request.background,
            now: request.now,
            timezone: request.timezone.clone().or_else(system_zone),
            project: request.project.clone(),
            facts: request.facts.clone(),
            model: model(config),
            native_tools: request.native_tools.unwrap_or(config.model.native_tools),
            sandbox: config.sandbox.clone(),
            tools: Vec::new(),
            instructions: instructions.or(stored.instructions),
            stored: StoredValues { soul: stored.soul, identity: stored.identity, task: stored.task },
            budget: Budget {
                total: config.prompt.budget_tokens as usize,
                sections: sections
                    .filter_map(|(name, limit)| Some((Kind::from_name(name)?, *limit as usize)))
                    .collect(),
            },
        };
        Ok((load_request, stored.exposed_task))
    }

    async fn load(&self, request: LoadRequest) -> Result<LoadedWorkspace, CliError> {
        let is_for_owner = request.is_for_owner;
        // Files may be on a slow disk, so they are not read on a runtime thread.
        let loaded = tokio::task::spawn_blocking(move || load(&request))
            .await
            .context("the workspace could not be read")??;
        let zone = match &loaded.unknown_zone {
            Some((name, source)) => {
                Some(Zone::Unknown { name: name.clone(), source: printable(source.name()).into_owned() })
            }
            None => TimeZone::get(&loaded.zone).ok().map(Zone::Known),
        };
        if let (true, Some(zone)) = (is_for_owner, zone) {
            *self.owner_zone.lock().unwrap_or_else(PoisonError::into_inner) = zone;
        }
        Ok(loaded)
    }

    /// The remote persona, which is cached; the contract is not.
    async fn persona(&self, settings: &Arc<Settings>) -> FetchedPersona {
        let mut cached = self.persona.lock().await;
        if let Some((known, since, fetched)) = &*cached
            && known.config.persona == settings.config.persona
        {
            let limit = if matches!(fetched, FetchedPersona::Failed(_)) { FAILURE_TTL } else { PERSONA_TTL };
            if since.elapsed() < limit {
                return fetched.clone();
            }
        }
        let fetched = persona::fetch(&settings.config).await;
        *cached = Some((Arc::clone(settings), Instant::now(), fetched.clone()));
        fetched
    }
}

impl LoadedPrompt {
    pub(crate) fn text(&self) -> String {
        render(&assemble(&self.workspace.input, &self.layout)).text
    }

    pub(crate) fn report(&self) -> PromptReport {
        let prompt = assemble(&self.workspace.input, &self.layout);
        // Without native tools the text explains them, and nothing is sent beside it.
        let tools = if self.workspace.input.native_tools { &*self.tools } else { &[] };
        PromptReport::new(&prompt, render(&prompt), tools)
    }

    /// The contract that hosts get, without what a remote mind adds.
    pub(crate) fn contract(&self, config: &Config) -> String {
        let mut workspace = self.workspace.clone();
        if let Some(body) = &mut workspace.input.body {
            body.parts.retain(|part| part.source != SERVERS);
        }
        let mind = config.mind.upstream.is_none().then(|| Contract::assemble(&workspace.input).text);
        contract_text(&rules(&workspace), &self.servers, mind.as_deref())
    }

    /// Logs which parts the prompt has, and why others are missing.
    pub(crate) fn log(&self) {
        let Self { workspace: loaded, layout, persona, started, .. } = self;
        let body = &loaded.body;
        let has_body = layout.body && body.loaded;
        let outcome = match (has_body, loaded.input.persona.is_some()) {
            (true, true) => "body and persona",
            (true, false) => "body alone",
            (false, true) => "persona alone",
            (false, false) if layout.name == "body" => "fallback",
            (false, false) => "layout alone",
        };
        let elapsed_us = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
        let absent = || (!body.loaded).then(|| format!("{} does not exist", body.name));
        let body_reason = body.reason.clone().or_else(absent);
        let reasons: Vec<String> = body_reason.into_iter().chain(persona.reason.clone()).collect();
        let reason = (!reasons.is_empty()).then(|| reasons.join("; "));
        let notes = notes(&loaded.input.notes);
        let has_problem = notes.is_some() || body.reason.is_some() || persona.reason.is_some();
        macro_rules! log {
            ($level:ident) => {
                tracing::$level!(
                    outcome,
                    layout = layout.name,
                    body = body.name,
                    body_found = body.loaded,
                    body_bytes = body.bytes,
                    included = body.included,
                    missing = body.missing,
                    persona = persona.state,
                    reason,
                    notes,
                    elapsed_us,
                    "prompt loaded"
                )
            };
        }
        if has_problem { log!(warn) } else { log!(info) }
    }
}

/// The body rules without the persona; empty if the workspace has none.
fn rules(workspace: &LoadedWorkspace) -> String {
    if !workspace.body.loaded {
        return String::new();
    }
    let input = PromptInput { persona: None, ..workspace.input.clone() };
    render(&assemble(&input, &Layout::BODY)).text
}

const SERVERS: Source = Source::fixed("bodies");

/// Adds the instructions of bodies: rules below the body rules, descriptions to the tools.
fn add_servers(input: &mut PromptInput, servers: &ServerInstructions) {
    let rules = servers.rules_text();
    if !rules.is_empty() {
        let parts = &mut input.body.get_or_insert_with(|| Body { parts: Vec::new() }).parts;
        let text = if parts.is_empty() { rules } else { format!("\n\n{rules}") };
        parts.push(BodyPart { text, source: SERVERS });
    }
    input.servers = servers
        .descriptions()
        .iter()
        .map(|Description { body, text, cut }| {
            let server = Server { name: body.clone(), description: text.clone(), cut: *cut };
            Value::new(server, SERVERS, Audience::Public)
        })
        .collect();
}

/// Without the reason: the server's words are for the person.
fn missing_server(missing: embody_broker::MissingServer) -> Value<MissingServer> {
    let is_starting = missing.reason.is_none();
    Value::new(MissingServer { name: missing.name, is_starting }, Source::fixed("broker"), Audience::Public)
}

fn layout(config: &Config, request: &PromptRequest, loaded: &LoadedWorkspace) -> Result<Layout, CliError> {
    // Only one layout explains tools to a model without native tools.
    let needs_explained_tools = !loaded.input.native_tools && !loaded.input.tools.is_empty();
    let name = loaded.layout.as_deref().unwrap_or(config.prompt.layout.as_str());
    let layout = match (request.layout, Layout::from_name(name)) {
        (Some(layout), _) => layout,
        (None, Some(_)) if needs_explained_tools => Layout::FULL,
        (None, Some(layout)) => layout,
        (None, None) => {
            return Err(CliError::usage(format!(
                "agent `{}` asks for the layout `{name}`, which does not exist",
                request.scope.agent()
            ))
            .hint("set `layout` in its agent.toml to body, full, tagged or channel"));
        }
    };
    let extra: Vec<Kind> = config.prompt.extra_sections.iter().map(|section| Kind::from(*section)).collect();
    let layout = layout.with_extra_sections(&extra);
    Ok(layout.with_body(!request.without_body).with_volatile_last(config.prompt.fresh_last))
}

fn model(config: &Config) -> ModelFacts {
    match &config.model.model {
        None => ModelFacts::default(),
        Some(model) => {
            ModelFacts { provider: Some(config.model.provider.name().into()), model: Some(model.clone()) }
        }
    }
}

/// The first few notes in one line.
fn notes(notes: &[Note]) -> Option<String> {
    const SHOWN: usize = 5;
    let mut shown: Vec<String> =
        notes.iter().take(SHOWN).map(|note| format!("{} {}", note.kind.name(), note.source)).collect();
    if notes.len() > SHOWN {
        shown.push(format!("and {} more", notes.len() - SHOWN));
    }
    (!shown.is_empty()).then(|| shown.join("; "))
}

fn create_working_directory(path: Option<&Path>) {
    let Some(path) = path.filter(|path| !path.exists()) else { return };
    if let Err(error) = std::fs::create_dir(path) {
        tracing::warn!(reason = %error, "cannot create the working directory of an agent");
    }
}
