//! The embedded mind and body: created once, and called by every session as functions.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use embody_agent::AsyncCallback;
use embody_agent::schedule::first_due;
use embody_body::server::{BodyHandler, BodyServer};
use embody_body::{Body, BodyConfig, Caller, NotifyUser, Urgency};
use embody_broker::UpstreamFactory;
use embody_broker::upstream::{CallCheck, RawTool, Spec};
use embody_mcp::{CallToolParams, ServerHandler};
use embody_mind::server::{MindHandler, MindServer};
use embody_prompt::Audience;
use embody_store::{Principal, Scope, Store};
use embody_wire::server::CancellationToken;
use embody_wire::upstream::{InProcessServer, Route};
use embody_workspace::AgentName;

use crate::config::Config;
use crate::config::env::non_empty;
use crate::prompt_service::PromptService;

pub(crate) fn mind(
    store: &Store,
    prompts: &Arc<PromptService>,
    agent: &str,
) -> Arc<embody_mcp::Server<MindHandler>> {
    let clock = {
        let prompts = Arc::clone(prompts);
        move |scope: &Scope| prompts.now(scope)
    };
    MindServer::new(store.clone(), prompts.contract_source(), agent.to_owned(), clock).service()
}

/// The body with these channels to other people.
pub(crate) fn body(
    store: &Store,
    prompts: &Arc<PromptService>,
    agent: &str,
    channels: Vec<String>,
) -> Arc<embody_mcp::Server<BodyHandler>> {
    BodyServer::new(store.clone(), agent.to_owned(), body_config(prompts, channels)).service()
}

/// The origin of a notice about a budget, which no agent writes.
const BUDGET: &str = "budget";

/// Sends a notice about a budget to the owner, as the tool `notify_user` does.
pub(crate) fn budget_notice(
    store: &Store,
    prompts: &Arc<PromptService>,
    owner: &str,
    agent: &str,
) -> AsyncCallback<String, Result<(), String>> {
    let body = Body::new(store.clone(), body_config(prompts, channels(&prompts.settings().config)));
    let (body, owner, agent) = (Arc::new(body), owner.to_owned(), agent.to_owned());
    AsyncCallback::new(move |text: String| {
        let (body, scope) = (Arc::clone(&body), Scope::new(&owner, &agent));
        async move {
            let scope = scope.map_err(|error| error.to_string())?;
            let caller = Caller {
                scope,
                channel: BUDGET.to_owned(),
                thread: None,
                shared_conversation: None,
                is_approved: false,
            };
            let notice = NotifyUser { text, urgency: Some(Urgency::High) };
            body.notify_user(&caller, notice).await.map(drop).map_err(|error| error.to_string())
        }
    })
}

fn body_config(prompts: &Arc<PromptService>, channels: Vec<String>) -> BodyConfig {
    let zone = {
        let prompts = Arc::clone(prompts);
        move |scope: &Scope| prompts.scheduling_zone(scope)
    };
    let skill = {
        let prompts = Arc::clone(prompts);
        move |caller: &Caller, name: &str| read_skill(&prompts, caller, name)
    };
    BodyConfig {
        due: Box::new(first_due),
        zone: Box::new(zone),
        skill: Arc::new(skill),
        clock: Box::new(|| jiff::Timestamp::now().as_microsecond()),
        gives_orders: Arc::new(embody_mind::quarantine::gives_orders),
        channels,
    }
}

/// Reads a skill for those who may see skills in a prompt.
fn read_skill(prompts: &PromptService, caller: &Caller, name: &str) -> Result<String, String> {
    let audience = match &caller.shared_conversation {
        Some(_) => Audience::Group,
        None if caller.scope.user() == prompts.owner() => Audience::Owner,
        None => Audience::User,
    };
    let settings = prompts.settings();
    if settings.config.audience.skills < audience {
        return Err("skills are not shown in this conversation".to_owned());
    }
    let agent = AgentName::new(caller.scope.agent()).map_err(|error| error.to_string())?;
    embody_workspace::read_skill(&settings.workspace, &agent, name).map_err(|error| error.to_string())
}

/// The configured channels to other people.
pub(crate) fn channels(config: &Config) -> Vec<String> {
    let has_telegram = non_empty(&config.telegram.token_env).is_some();
    has_telegram.then(|| "telegram".to_owned()).into_iter().collect()
}

/// The tools of an embedded server; `None`, if they cannot be serialized, lists them over the connection.
pub(crate) fn tools(definitions: Vec<embody_mcp::Tool>) -> Option<Arc<[RawTool]>> {
    definitions.iter().map(|tool| RawTool::new(&tool.name, tool).ok()).collect()
}

/// Whether an embedded server accepts connections; the demo switches it off and on.
#[derive(Clone)]
pub(crate) struct Availability(Arc<Mutex<CancellationToken>>);

impl Availability {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(CancellationToken::new())))
    }

    /// Ends every connection and refuses new ones.
    pub(crate) fn disconnect(&self) {
        self.lock().cancel();
    }

    /// Accepts connections again.
    pub(crate) fn restore(&self) {
        *self.lock() = CancellationToken::new();
    }

    /// The shutdown signal for a connection that is opened now.
    fn ending(&self) -> CancellationToken {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, CancellationToken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An embedded server as an upstream. `admit` maps the caller.
pub(crate) fn upstream<H: ServerHandler<Principal = Principal>>(
    service: Arc<embody_mcp::Server<H>>,
    availability: Availability,
    admit: impl Fn(&Principal) -> Principal + Send + Sync + 'static,
    spec: impl Fn(Route) -> Spec + Send + Sync + 'static,
) -> UpstreamFactory {
    UpstreamFactory::new(move |principal: &Principal| {
        let (principal, availability) = (admit(principal), availability.clone());
        let check = {
            let (service, principal) = (Arc::clone(&service), principal.clone());
            CallCheck::new(move |name, arguments| {
                let (service, principal) = (Arc::clone(&service), principal.clone());
                async move { service.check(&principal, CallToolParams { name, arguments }).await }
            })
        };
        let server =
            InProcessServer::new(Arc::clone(&service), move || (principal.clone(), availability.ending()));
        Arc::new(Spec { check: Some(check), ..spec(Route::InProcess(server)) })
    })
}
