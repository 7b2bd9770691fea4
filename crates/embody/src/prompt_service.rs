//! Builds prompts from the workspace and the store: the contract of the mind for every session, the prompt of an agent for every
//! turn. Knows the time zone of the owner.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use embody_agent::model::ToolSpec;
use embody_agent::turn::{BuiltPrompt, Facts, PromptRequest, PromptSource};
use embody_mind::{Contract, ContractSource, ZonedNow};
use embody_prompt::{Audience, Layout, Source, Tool, Value, assemble, render};
use embody_store::{Scope, Store};
use embody_workspace::{LoadRequest, LoadedWorkspace, RequestFacts, load};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::cli::prompt::{PromptReport, new_receipt};
use crate::cli::{Context, ScopeArgs};
use crate::error::{CliError, ErrorContext};
use crate::output::printable;
use crate::persona::{self, FetchedPersona};
use crate::prompt_loading::{self, PromptArgs};
use crate::store;

/// How long a remote persona is cached, and how long a failure to fetch it.
const PERSONA_TTL: Duration = Duration::from_secs(300);
const FAILURE_TTL: Duration = Duration::from_secs(30);

pub(crate) struct PromptService {
    context: Context,
    store: Store,
    /// The owner of the workspace: `USER.md` and its time zone apply to no other user.
    owner: String,
    persona: tokio::sync::Mutex<Option<(Instant, FetchedPersona)>>,
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

impl PromptService {
    pub(crate) fn new(context: Context, store: Store, owner: String) -> Arc<Self> {
        Arc::new(Self {
            context,
            store,
            owner,
            persona: tokio::sync::Mutex::default(),
            owner_zone: Mutex::new(Zone::Known(TimeZone::system())),
        })
    }

    pub(crate) fn contract_source(self: &Arc<Self>) -> ContractSource {
        let service = Arc::clone(self);
        ContractSource::new(move |scope: Scope, now: ZonedNow| {
            let service = Arc::clone(&service);
            async move { service.contract(&scope, &now).await.map_err(|failure| failure.summary().0) }
        })
    }

    /// The current time in the zone of the owner; for other users, in the zone of the machine.
    pub(crate) fn now(&self, scope: &Scope) -> ZonedNow {
        let zone = match self.zone(scope) {
            Zone::Known(zone) => zone,
            Zone::Unknown { .. } => TimeZone::UTC,
        };
        ZonedNow::new(Timestamp::now(), zone)
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
        let scope = Scope::new(&self.owner, agent)?;
        self.load(&scope, &self.now(&scope)).await.map(drop)
    }

    pub(crate) async fn load_zone_or_warn(&self, agent: &str) {
        if let Err(error) = self.load_zone(agent).await {
            tracing::warn!(reason = error.summary().0, "the workspace cannot be read");
        }
    }

    pub(crate) fn owner(&self) -> &str {
        &self.owner
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// The body rules alone; empty if the workspace has none.
    pub(crate) async fn rules(&self, scope: &Scope) -> Result<String, CliError> {
        let mut loaded = self.load(scope, &self.now(scope)).await?;
        loaded.input.persona = None;
        if !loaded.body.loaded {
            return Ok(String::new());
        }
        Ok(render(&assemble(&loaded.input, &Layout::BODY)).text)
    }

    async fn contract(&self, scope: &Scope, now: &ZonedNow) -> Result<Contract, CliError> {
        let mut loaded = self.load(scope, now).await?;
        if Layout::CONTRACT.wants_persona(&loaded.input) {
            let persona = self.persona().await;
            prompt_loading::apply_persona(&mut loaded, &self.context.config, persona);
        }
        Ok(Contract::assemble(&loaded.input))
    }

    async fn load(&self, scope: &Scope, now: &ZonedNow) -> Result<LoadedWorkspace, CliError> {
        let request = self.request(scope, now, &PromptArgs::new(scope_args(scope)))?;
        self.read(scope, request, None).await
    }

    fn request(&self, scope: &Scope, now: &ZonedNow, args: &PromptArgs) -> Result<LoadRequest, CliError> {
        let is_owner = scope.user() == self.owner;
        let (workspace, config) = (self.context.workspace.clone(), &self.context.config);
        let mut request = prompt_loading::workspace_request(workspace, config, args, is_owner)?;
        request.now = Timestamp::from_microsecond(now.micros()).ok();
        if !is_owner {
            request.timezone = now.zone().iana_name().map(str::to_owned);
        }
        Ok(request)
    }

    async fn read(
        &self,
        scope: &Scope,
        mut request: LoadRequest,
        task: Option<&str>,
    ) -> Result<LoadedWorkspace, CliError> {
        let is_owner = scope.user() == self.owner;
        store::add_open_store_parts(&mut request, &self.store, scope, task).await?;
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
        if let (true, Some(zone)) = (is_owner, zone) {
            *self.owner_zone.lock().unwrap_or_else(PoisonError::into_inner) = zone;
        }
        Ok(loaded)
    }

    pub(crate) fn prompt_source(self: &Arc<Self>) -> PromptSource {
        let service = Arc::clone(self);
        PromptSource::new(move |request| {
            let service = Arc::clone(&service);
            async move { service.build(request).await.map_err(|failure| failure.summary().0) }
        })
    }

    async fn build(&self, request: PromptRequest) -> Result<BuiltPrompt, CliError> {
        let PromptRequest { scope, channel, audience, background, task, facts, tools, servers, minimal } =
            request;
        let args = PromptArgs {
            channel: Some(channel),
            task: task.clone(),
            background,
            minimal,
            audience: audience.name().to_owned(),
            ..PromptArgs::new(scope_args(&scope))
        };
        let mut request = self.request(&scope, &self.now(&scope), &args)?;
        let Facts { session, accept_language, remote_ip, location } = facts;
        request.facts = RequestFacts { session, accept_language, remote_ip, location };
        request.tools = tools.into_iter().map(tool).collect();
        let mut loaded = self.read(&scope, request, task.as_deref()).await?;
        create_working_directory(loaded.files.as_deref());
        prompt_loading::add_servers(&mut loaded.input, &servers);
        let config = &self.context.config;
        let layout = prompt_loading::layout(config, &args, &loaded)?;
        if layout.wants_persona(&loaded.input) {
            let persona = self.persona().await;
            prompt_loading::apply_persona(&mut loaded, config, persona);
        }
        let prompt = assemble(&loaded.input, &layout);
        let report = PromptReport::new(&prompt, render(&prompt));
        let receipt = new_receipt(&report)?;
        Ok(BuiltPrompt { text: report.text, stable_len: report.stable_len, receipt })
    }

    /// The remote persona, which is cached; the contract is not.
    async fn persona(&self) -> FetchedPersona {
        let mut cached = self.persona.lock().await;
        if let Some((since, fetched)) = &*cached {
            let limit = if matches!(fetched, FetchedPersona::Failed(_)) { FAILURE_TTL } else { PERSONA_TTL };
            if since.elapsed() < limit {
                return fetched.clone();
            }
        }
        let fetched = persona::fetch(&self.context.config).await;
        *cached = Some((Instant::now(), fetched.clone()));
        fetched
    }
}

fn create_working_directory(path: Option<&Path>) {
    let Some(path) = path.filter(|path| !path.exists()) else { return };
    if let Err(error) = std::fs::create_dir(path) {
        tracing::warn!(reason = %error, "cannot create the working directory of an agent");
    }
}

fn scope_args(scope: &Scope) -> ScopeArgs {
    ScopeArgs { user: Some(scope.user().to_owned()), agent: Some(scope.agent().to_owned()) }
}

fn tool(spec: ToolSpec) -> Value<Tool> {
    let ToolSpec { name, description, schema } = spec;
    let tool = Tool { name, description, schema: schema.get().to_owned() };
    Value::new(tool, Source::fixed("broker"), Audience::Public)
}
