//! The guided tour of the console: the demo in a temporary folder, with the person at the page as its owner. One at a time in a process,
//! on threads of its own, so that neither its log lines nor its tasks mix with those of `embody up`. Touches neither the workspace
//! nor the store.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::response::sse::{Event, KeepAlive, Sse};
use embody_wire::server::CancellationToken;
use futures_util::{StreamExt, stream};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::subscriber::{NoSubscriber, set_default};

use super::WebState;
use super::auth::{self, ApiCaller};
use super::chat::{KEEP_ALIVE, as_events};
use super::error::ApiError;
use crate::demo::{self, Answer, Approver, DemoEvent, Destination, Folder, Transcript};
use crate::error::{CliError, ErrorContext};

/// A tour takes seconds; the rest is for the person.
const LIMIT: Duration = Duration::from_secs(300);
/// How long what a tour left behind may take to end.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// The tour of this process, if one runs.
pub(crate) struct Tour {
    /// One permit: the tour has it until its files are removed.
    free: Arc<Semaphore>,
    /// The id of the newest tour, and where its answers go.
    newest: Mutex<Option<(String, UnboundedSender<Answer>)>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerRequest {
    tour: String,
    approve: bool,
}

/// What the page is told, in order.
enum TourEvent {
    Started { id: String },
    Demo(DemoEvent),
    Done { approved: bool, took: Duration },
    Failed { message: String, hint: String },
}

pub(super) async fn begin(State(web): State<Arc<WebState>>, caller: ApiCaller) -> Result<Response, ApiError> {
    require_owner(&caller)?;
    let permit = Arc::clone(&web.tour.free).try_acquire_owned().map_err(|_| {
        ApiError::conflict("a guided tour is running")
            .hint("close the page that shows it, or wait five minutes")
    })?;
    let id = random_id()?;
    let (answers, answered) = unbounded_channel();
    let (events, told) = unbounded_channel();
    *web.tour.newest.lock().unwrap_or_else(PoisonError::into_inner) = Some((id.clone(), answers));
    let _ = events.send(TourEvent::Started { id });
    let ending = web.ending.clone();
    std::thread::Builder::new()
        .name("tour".to_owned())
        .spawn(move || run(permit, &events, Approver::Page(answered), &ending))
        .map_err(|error| ApiError::unavailable(format!("the guided tour cannot start: {error}")))?;
    let told = stream::unfold(told, async |mut told| {
        let event: TourEvent = told.recv().await?;
        Some((Ok::<Event, Infallible>(event.to_sse()), told))
    });
    let told = told.take_until(Box::pin(caller.wait_until_ended(web.store.clone())));
    Ok(as_events(Sse::new(told).keep_alive(KeepAlive::new().interval(KEEP_ALIVE))))
}

pub(super) async fn answer(
    State(web): State<Arc<WebState>>,
    caller: ApiCaller,
    request: Request,
) -> Result<StatusCode, ApiError> {
    require_owner(&caller)?;
    let AnswerRequest { tour, approve } = auth::json(request).await?;
    let answer = if approve { Answer::Yes } else { Answer::No };
    let newest = web.tour.newest.lock().unwrap_or_else(PoisonError::into_inner);
    match &*newest {
        Some((id, answers)) if *id == tour && answers.send(answer).is_ok() => Ok(StatusCode::ACCEPTED),
        _ => Err(ApiError::not_found("this guided tour has ended").hint("start another")),
    }
}

fn require_owner(caller: &ApiCaller) -> Result<(), ApiError> {
    if caller.is_owner {
        return Ok(());
    }
    Err(ApiError::forbidden("the guided tour is for the owner")
        .hint("`embody open` prints a link to sign in"))
}

fn random_id() -> Result<String, ApiError> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|_| ApiError::unavailable("the system returned no random bytes"))?;
    Ok(format!("{:016x}", u64::from_ne_bytes(bytes)))
}

impl Tour {
    pub(crate) fn new() -> Self {
        Self { free: Arc::new(Semaphore::new(1)), newest: Mutex::new(None) }
    }

    /// Waits until the tour has removed its files, once the shutdown has begun.
    pub(crate) async fn shutdown(&self, grace: Duration) {
        if tokio::time::timeout(grace, self.free.acquire()).await.is_err() {
            tracing::warn!("the guided tour did not end in time");
        }
    }
}

/// Runs a tour to its end, on this thread and those of its own runtime.
fn run(
    permit: OwnedSemaphorePermit,
    events: &UnboundedSender<TourEvent>,
    approver: Approver,
    ending: &CancellationToken,
) {
    let _quiet = set_default(NoSubscriber::default());
    let started = Instant::now();
    let last = match run_demo(events, approver, ending) {
        Ok(approved) => TourEvent::Done { approved, took: started.elapsed() },
        Err(error) => {
            let (message, hint) = error.summary();
            TourEvent::Failed { message, hint }
        }
    };
    // The page may start another at once.
    drop(permit);
    let _ = events.send(last);
}

/// Returns whether the person approved.
fn run_demo(
    events: &UnboundedSender<TourEvent>,
    approver: Approver,
    ending: &CancellationToken,
) -> Result<bool, CliError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("tour")
        // An unavailable mind is part of the tour, and not a problem of this process.
        .on_thread_start(|| std::mem::forget(set_default(NoSubscriber::default())))
        .enable_all()
        .build()
        .context("the guided tour cannot start")?;
    let folder = Folder::new()?;
    let (steps, mut shown) = unbounded_channel();
    let mut transcript = Transcript::new(Destination::Page(steps));
    let page = events.clone();
    let forwarding = runtime.spawn(async move {
        while let Some(event) = shown.recv().await {
            let _ = page.send(TourEvent::Demo(event));
        }
    });
    let interruption = async {
        tokio::select! {
            () = events.closed() => CliError::new("the page was closed"),
            () = ending.cancelled() => CliError::new("embody is stopping"),
            () = tokio::time::sleep(LIMIT) => {
                CliError::new("the guided tour ended after five minutes").hint("start it again")
            }
        }
    };
    let outcome = runtime.block_on(demo::run(folder.path(), &mut transcript, approver, interruption));
    // The last steps reach the page before the end does.
    drop(transcript);
    let _ = runtime.block_on(forwarding);
    runtime.shutdown_timeout(END_TIMEOUT);
    folder.remove()?;
    Ok(outcome?.answer == Answer::Yes)
}

impl TourEvent {
    fn to_sse(&self) -> Event {
        let (name, data): (&str, Value) = match self {
            Self::Started { id } => ("tour", json!({ "tour": id })),
            Self::Demo(DemoEvent::Step { number, title }) => {
                ("step", json!({"number": number, "title": title}))
            }
            Self::Demo(DemoEvent::Line { kind, text }) => ("line", json!({"kind": kind, "text": text})),
            Self::Demo(DemoEvent::Ask) => ("ask", json!({})),
            Self::Done { approved, took } => {
                let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
                ("done", json!({"approved": approved, "took_ms": took_ms}))
            }
            Self::Failed { message, hint } => ("failed", json!({"message": message, "hint": hint})),
        };
        Event::default().event(name).data(data.to_string())
    }
}
