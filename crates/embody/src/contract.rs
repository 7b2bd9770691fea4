//! What the workspace and the store say: the mind's contract, fresh for every session; an agent's prompt, fresh for every
//! turn; and the time where the owner is.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use embody_agent::model::ToolSpec;
use embody_agent::turn::{Composed, Composer, Facts, Wanted};
use embody_mind::{Contract, ContractSource, Moment};
use embody_prompt::{Audience, Layout, Source, Tool, Value, assemble, render};
use embody_store::{Scope, Store};
use embody_workspace::{Loaded, Request, RequestFacts, load};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::cli::prompt::{PromptReport, receipt};
use crate::cli::{Context, Who};
use crate::compose::{self, PromptArgs};
use crate::failure::Failure;
use crate::output::printable;
use crate::persona::{self, Fetched};
use crate::stored;

/// How long a remote persona is believed, and how long its absence.
const PERSONA_KEPT: Duration = Duration::from_secs(300);
const ABSENCE_KEPT: Duration = Duration::from_secs(30);

/// Where contracts come from.
pub(crate) struct Voice {
    context: Context,
    store: Store,
    /// Whose workspace it is: `USER.md` and its time zone are this user's, and nobody else's.
    owner: String,
    persona: tokio::sync::Mutex<Option<(Instant, Fetched)>>,
    owners_zone: Mutex<Zone>,
}

/// A time zone, as far as it is one.
#[derive(Clone)]
enum Zone {
    Known(TimeZone),
    /// There is none of this name, which stands there.
    Unknown {
        name: String,
        place: String,
    },
}

impl Voice {
    pub(crate) fn new(context: Context, store: Store, owner: String) -> Arc<Self> {
        Arc::new(Self {
            context,
            store,
            owner,
            persona: tokio::sync::Mutex::default(),
            owners_zone: Mutex::new(Zone::Known(TimeZone::system())),
        })
    }

    /// What the mind asks for its contract.
    pub(crate) fn source(self: &Arc<Self>) -> ContractSource {
        let voice = Arc::clone(self);
        ContractSource::new(move |scope: Scope, now: Moment| {
            let voice = Arc::clone(&voice);
            async move { voice.contract(&scope, &now).await.map_err(|failure| failure.in_short().0) }
        })
    }

    /// Now, where the user is as far as it is known: for others than the owner, where the machine is.
    pub(crate) fn now(&self, scope: &Scope) -> Moment {
        let zone = match self.zone(scope) {
            Zone::Known(zone) => zone,
            Zone::Unknown { .. } => TimeZone::UTC,
        };
        Moment::new(Timestamp::now(), zone)
    }

    fn zone(&self, scope: &Scope) -> Zone {
        if scope.user() == self.owner {
            self.owners_zone.lock().unwrap_or_else(PoisonError::into_inner).clone()
        } else {
            Zone::Known(TimeZone::system())
        }
    }

    /// The name of the zone to plan in.
    ///
    /// # Errors
    /// When the workspace names a zone that there is not: in words, which and where. Nothing is planned by a guess.
    pub(crate) fn zone_to_plan_in(&self, scope: &Scope) -> Result<String, String> {
        match self.zone(scope) {
            Zone::Known(zone) => Ok(zone.iana_name().unwrap_or("UTC").to_owned()),
            Zone::Unknown { name, place } => {
                Err(format!("there is no time zone `{name}`, which {place} names"))
            }
        }
    }

    /// Reads the workspace once, so that the owner's time zone is known before anybody asks for a contract.
    pub(crate) async fn find_zone(&self, agent: &str) -> Result<(), Failure> {
        let scope = Scope::new(&self.owner, agent)?;
        self.load(&scope, &self.now(&scope)).await.map(drop)
    }

    /// Whose workspace it is.
    pub(crate) fn owner(&self) -> &str {
        &self.owner
    }

    /// What it reads from.
    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// The body's rules alone; empty if the workspace has none.
    pub(crate) async fn rules(&self, scope: &Scope) -> Result<String, Failure> {
        let mut loaded = self.load(scope, &self.now(scope)).await?;
        loaded.input.persona = None;
        if !loaded.body.loaded {
            return Ok(String::new());
        }
        Ok(render(&assemble(&loaded.input, &Layout::BODY)).text)
    }

    async fn contract(&self, scope: &Scope, now: &Moment) -> Result<Contract, Failure> {
        let mut loaded = self.load(scope, now).await?;
        if Layout::CONTRACT.wants_persona(&loaded.input) {
            let persona = self.persona().await;
            compose::take_persona(&mut loaded, &self.context.config, persona);
        }
        Ok(Contract::assemble(&loaded.input))
    }

    async fn load(&self, scope: &Scope, now: &Moment) -> Result<Loaded, Failure> {
        let request = self.request(scope, now, &PromptArgs::plain(who(scope)))?;
        self.read(scope, request, None).await
    }

    /// What is to be read for a prompt at this moment.
    fn request(&self, scope: &Scope, now: &Moment, args: &PromptArgs) -> Result<Request, Failure> {
        let is_owner = scope.user() == self.owner;
        let (workspace, config) = (self.context.workspace.clone(), &self.context.config);
        let mut request = compose::request(workspace, config, args, is_owner)?;
        request.now = Timestamp::from_microsecond(now.micros()).ok();
        if !is_owner {
            request.timezone = now.zone().iana_name().map(str::to_owned);
        }
        Ok(request)
    }

    async fn read(&self, scope: &Scope, mut request: Request, task: Option<&str>) -> Result<Loaded, Failure> {
        let is_owner = scope.user() == self.owner;
        stored::fill_from(&mut request, &self.store, scope, task).await?;
        // Files may be on a slow disk: other calls go on meanwhile.
        let loaded = tokio::task::spawn_blocking(move || load(&request))
            .await
            .map_err(|error| Failure::new("the workspace could not be read").because(&error))??;
        let zone = match &loaded.unknown_zone {
            Some((name, source)) => {
                Some(Zone::Unknown { name: name.clone(), place: printable(source.name()).into_owned() })
            }
            None => TimeZone::get(&loaded.zone).ok().map(Zone::Known),
        };
        if let (true, Some(zone)) = (is_owner, zone) {
            *self.owners_zone.lock().unwrap_or_else(PoisonError::into_inner) = zone;
        }
        Ok(loaded)
    }

    /// Where an agent's prompts come from.
    pub(crate) fn composer(self: &Arc<Self>) -> Composer {
        let voice = Arc::clone(self);
        Composer::new(move |wanted| {
            let voice = Arc::clone(&voice);
            async move { voice.compose(wanted).await.map_err(|failure| failure.in_short().0) }
        })
    }

    /// The prompt of one turn, built anew, with the account that is kept of it.
    async fn compose(&self, wanted: Wanted) -> Result<Composed, Failure> {
        let Wanted { scope, channel, audience, background, task, facts, tools, servers, minimal } = wanted;
        let args = PromptArgs {
            channel: Some(channel),
            task: task.clone(),
            background,
            minimal,
            audience: audience.name().to_owned(),
            ..PromptArgs::plain(who(&scope))
        };
        let mut request = self.request(&scope, &self.now(&scope), &args)?;
        let Facts { session, accept_language, remote_ip, location } = facts;
        request.facts = RequestFacts { session, accept_language, remote_ip, location };
        request.tools = tools.into_iter().map(tool).collect();
        let mut loaded = self.read(&scope, request, task.as_deref()).await?;
        make_folder(loaded.files.as_deref());
        compose::add_servers(&mut loaded.input, &servers);
        let config = &self.context.config;
        let layout = compose::layout(config, &args, &loaded)?;
        if layout.wants_persona(&loaded.input) {
            let persona = self.persona().await;
            compose::take_persona(&mut loaded, config, persona);
        }
        let prompt = assemble(&loaded.input, &layout);
        let report = PromptReport::of(&prompt, render(&prompt));
        let receipt = receipt::of(&report)?;
        Ok(Composed { text: report.text, stable_len: report.stable_len, receipt })
    }

    /// The remote persona. It is data, so it may be kept for a while; the contract is not.
    async fn persona(&self) -> Fetched {
        let mut kept = self.persona.lock().await;
        if let Some((since, fetched)) = &*kept {
            let limit = if matches!(fetched, Fetched::Failed(_)) { ABSENCE_KEPT } else { PERSONA_KEPT };
            if since.elapsed() < limit {
                return fetched.clone();
            }
        }
        let fetched = persona::fetch(&self.context.config).await;
        *kept = Some((Instant::now(), fetched.clone()));
        fetched
    }
}

/// Makes the working directory of an agent that has a folder of its own.
fn make_folder(path: Option<&Path>) {
    let Some(path) = path.filter(|path| !path.exists()) else { return };
    if let Err(error) = std::fs::create_dir(path) {
        tracing::warn!(reason = %error, "cannot create the working directory of an agent");
    }
}

fn who(scope: &Scope) -> Who {
    Who { user: Some(scope.user().to_owned()), agent: Some(scope.agent().to_owned()) }
}

fn tool(spec: ToolSpec) -> Value<Tool> {
    let ToolSpec { name, description, schema } = spec;
    let tool = Tool { name, description, schema: schema.get().to_owned() };
    Value::new(tool, Source::fixed("broker"), Audience::Public)
}
