//! One of our own agents as a host, in this process: the same face, the same pipeline and the same gates as for every
//! host, over a pipe that never leaves it. Owns the pipe and the reading of results; what a turn does with them is not
//! known here. Nobody sits at this host: it shows no forms, and refuses every question.
//!
//! - `called`: a result as a model reads it

mod called;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use embody_wire::message::Response;
use embody_wire::serve::{Ending, code, lines};
use embody_wire::upstream::{CallEvent, Calling, Connect, EraCache, Hello, Link, Opening, Route};
use embody_wire::{Identity, Limits, Outcome, Proxies};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

pub use self::called::Called;
use crate::principal::Inside;
use crate::results::raw;
use crate::session::Session;
use crate::{Broker, Principal, ServerInstructions};

const PIPE_BYTES: usize = 256 * 1024;
/// How long the end may take: running calls get a moment, and then processes do.
const END: Duration = Duration::from_secs(60);

type Serving = Arc<Mutex<Option<JoinHandle<()>>>>;

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
#[error("the broker does not open a session")]
pub struct LocalError(#[source] embody_wire::Error);

/// A tool as it is listed.
#[derive(Debug, Clone)]
pub struct LocalTool {
    /// The name to call it by.
    pub name: String,
    /// What it says about itself.
    pub description: String,
    /// The schema of its arguments, as it came.
    pub schema: Box<RawValue>,
}

/// A session of one of our own agents. [`Local::end`] leaves no process; dropping it does the same a little later.
#[derive(Debug)]
pub struct Local {
    link: Link,
    inside: Inside,
    serving: Serving,
}

impl Broker {
    /// Opens a session for one of our own agents.
    ///
    /// # Errors
    /// When the broker does not let it in: a name that is none, or a broker that is ending.
    pub async fn local(self: &Arc<Self>, principal: Principal) -> Result<Local, LocalError> {
        let inside = Inside::new();
        let principal = principal.inside(inside.clone());
        let (broker, serving) = (Arc::clone(self), Serving::default());
        let connect = {
            let serving = Arc::clone(&serving);
            Connect::new(move || {
                let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
                let (broker, principal) = (Arc::clone(&broker), principal.clone());
                let task = tokio::spawn(async move {
                    let (_switch, ending) = Ending::new();
                    let streams = tokio::io::split(theirs);
                    // A pipe in memory breaks only when its other end is gone, which is how a session ends.
                    let _ = lines::serve(broker, principal, streams, Limits::default(), ending).await;
                });
                *serving.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
                tokio::io::split(ours)
            })
        };
        let identity =
            Identity { name: "embody-agent".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
        let opening = Opening {
            route: Route::Streams(connect),
            // Nobody is there to fill in a form: whoever is to say yes is asked elsewhere.
            hello: Hello { identity, ..Hello::default() },
            tokens: None,
            proxies: Proxies::default(),
            limits: Limits::default(),
            era: EraCache::sessions(),
        };
        // What has changed is seen with the next list, and nothing else is of use here.
        let (said, _) = mpsc::channel(1);
        let link = Link::open(&opening, said).await.map_err(LocalError)?;
        Ok(Local { link, inside, serving })
    }

    /// What the bodies of this session say about themselves, for the agent's prompt: without the rules in it the prompt
    /// does not deliver the contract.
    pub async fn server_instructions(&self, local: &Local) -> ServerInstructions {
        let is_it = |session: &Arc<Session>| session.host.principal.is_inside(&local.inside);
        let Some(session) = self.sessions.all().into_iter().find(is_it) else {
            return ServerInstructions::default();
        };
        session.server_instructions(&self.setup).await.unwrap_or_else(|reason| {
            tracing::warn!(
                session = session.id,
                reason,
                "the prompt lacks what the bodies say about themselves"
            );
            ServerInstructions::default()
        })
    }
}

impl Local {
    /// What is offered now, as any host sees it. Waits a little for servers that are slow to start.
    pub async fn tools(&self) -> Vec<LocalTool> {
        #[derive(Deserialize)]
        struct List {
            tools: Vec<Listed>,
        }
        #[derive(Deserialize)]
        struct Listed {
            name: String,
            #[serde(default)]
            description: Option<String>,
            #[serde(rename = "inputSchema")]
            schema: Box<RawValue>,
        }
        let listed = match self.answer(Calling { method: "tools/list", params: None }).await {
            Ok(Outcome::Result(result)) => {
                serde_json::from_str::<List>(result.get()).map_err(|e| e.to_string())
            }
            Ok(Outcome::Error(error)) => Err(error.get().to_owned()),
            Err(error) => Err(error.to_string()),
        };
        let tool = |Listed { name, description, schema }| LocalTool {
            name,
            description: description.unwrap_or_default(),
            schema,
        };
        match listed {
            Ok(list) => list.tools.into_iter().map(tool).collect(),
            Err(reason) => {
                tracing::error!(reason, "the tools cannot be listed");
                Vec::new()
            }
        }
    }

    /// The model is about to see this as its system prompt. It delivers the contract if the body's rules stand at its very
    /// start, and the mind is the embedded one or its contract is inside. Said again for every prompt.
    pub fn prompted(&self, prompt: &str) {
        self.inside.set_prompt(prompt);
    }

    /// Calls a tool with arguments as a model wrote them. However it ends, the answer is one that a model can read. Dropping
    /// the future cancels the call.
    pub async fn call(&self, name: &str, arguments: &str) -> Called {
        #[derive(Serialize)]
        struct Params<'a> {
            name: &'a str,
            arguments: &'a RawValue,
        }
        let arguments = if arguments.trim().is_empty() { "{}" } else { arguments };
        let arguments: &RawValue = match serde_json::from_str(arguments) {
            Ok(arguments) => arguments,
            Err(error) => return Called::failed(format!("the arguments are no JSON: {error}")),
        };
        let params = raw(&Params { name, arguments });
        match self.answer(Calling { method: "tools/call", params: Some(&params) }).await {
            Ok(Outcome::Result(result)) => Called::read(&result, self.inside.mark()),
            Ok(Outcome::Error(error)) => Called::of_error(&error),
            Err(error) => Called::failed(format!("the call was not answered: {error}")),
        }
    }

    /// Ends the session: what runs gets a moment, and no process is left.
    pub async fn end(self) {
        self.link.close().await;
        let serving = self.serving.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(serving) = serving
            && timeout(END, serving).await.is_err()
        {
            tracing::warn!("a session does not end");
        }
    }

    /// The broker bounds every call in time.
    async fn answer(&self, calling: Calling<'_>) -> Result<Outcome, embody_wire::Error> {
        let mut running = self.link.begin(calling).await?;
        loop {
            match running.next().await {
                CallEvent::Done(outcome) => return Ok(outcome),
                CallEvent::Lost(error) => return Err(error),
                CallEvent::Notification(_) => {}
                CallEvent::Request(request) => {
                    let refusal =
                        Response::failure(request.id, code::METHOD_NOT_FOUND, "nobody can be asked");
                    self.link.answer(refusal).await?;
                }
            }
        }
    }
}
