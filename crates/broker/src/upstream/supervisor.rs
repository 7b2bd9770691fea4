//! Connects, maintains the connection and reconnects. One task per upstream, so that a slow server delays only itself.

use std::sync::Arc;
use std::time::Duration;

use embody_wire::server::code;
use embody_wire::upstream::{CallEvent, ConnectOptions, Link, OutgoingCall, ServerMessage};
use embody_wire::{InitializeParams, Limits, Outcome, Response};
use serde_json::value::RawValue;
use tokio::sync::mpsc::error::SendError;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{Instant, sleep, timeout};

use super::connection_lease::ConnectionUses;
use super::idle_shutdown::{IdleShutdown, LastKnownTools, start_timeout};
use super::initialize::InitializeResult;
use super::listing;
use super::state::{Health, UpstreamState, error_text};
use super::{Backoff, RawTool, RequestSlots, Spec, Start, UpstreamEvent};
use crate::server_requests::too_many_requests;

/// Messages of a server that are not processed yet.
const MESSAGE_QUEUE: usize = 256;

pub(super) struct Supervisor {
    pub(super) upstream: Arc<str>,
    opening: ConnectOptions,
    tools: Option<Arc<[RawTool]>>,
    backoff: Backoff,
    pub(super) start: Start,
    pub(super) idle_stop: Option<Duration>,
    pub(super) state: Arc<watch::Sender<UpstreamState>>,
    wanted: Arc<Notify>,
    pub(super) request_slots: RequestSlots,
    pub(super) uses: Arc<ConnectionUses>,
    pub(super) changed: Arc<Notify>,
    events: mpsc::Sender<UpstreamEvent>,
}

pub(super) struct Shared {
    pub(super) state: Arc<watch::Sender<UpstreamState>>,
    pub(super) wanted: Arc<Notify>,
    pub(super) request_slots: RequestSlots,
    pub(super) uses: Arc<ConnectionUses>,
}

/// How a connection ended, or why none was made.
enum Disconnect {
    Lost(String),
    /// A retry cannot help.
    Permanent(String),
    Idle,
}

impl Disconnect {
    fn reason(&self) -> &str {
        match self {
            Self::Lost(reason) | Self::Permanent(reason) => reason,
            Self::Idle => "it is idle",
        }
    }
}

impl Supervisor {
    pub(super) fn new(
        spec: &Spec,
        params: InitializeParams,
        events: mpsc::Sender<UpstreamEvent>,
        backoff: Backoff,
        Shared { state, wanted, request_slots, uses }: Shared,
    ) -> Self {
        let attempt_timeout = start_timeout(spec, backoff.start_factor);
        let limits = Limits { attempt_timeout, ..spec.limits.clone() };
        // The broker is the client of its servers. A broker recognizes another broker, or itself, by this name.
        let client_info = InitializeParams::named(crate::broker::NAME).client_info;
        let params = InitializeParams { client_info, ..params };
        let (tokens, proxies, era) = (spec.tokens.clone(), spec.proxies.clone(), spec.era.clone());
        let opening = ConnectOptions { route: spec.route.clone(), params, tokens, proxies, limits, era };
        let upstream = Arc::from(spec.name.as_str());
        let (tools, IdleShutdown { start, idle_stop }, changed) =
            (spec.tools.clone(), spec.idle_shutdown, Arc::default());
        Self {
            upstream,
            opening,
            tools,
            backoff,
            start,
            idle_stop,
            state,
            wanted,
            request_slots,
            uses,
            changed,
            events,
        }
    }

    /// Runs until stopped, or until the stop channel is closed.
    pub(super) async fn run(self, known: Option<LastKnownTools>, mut stop: watch::Receiver<bool>) {
        tokio::select! {
            () = self.connect_loop(known) => {}
            () = self.notify_changes() => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
        let link = self.state.borrow().link.clone();
        self.state.send_modify(|state| {
            state.set(Health::Unavailable, Some("it was stopped".to_owned()));
            (state.is_over, state.is_settled) = (true, true);
        });
        if let Some(link) = link {
            link.close().await;
        }
        self.state.send_modify(|state| (state.link, state.messages) = (None, None));
    }

    /// Reports changes, several at once if the receiver is slow.
    async fn notify_changes(&self) {
        loop {
            self.changed.notified().await;
            // The receiver is gone; the connection may still be used.
            if self
                .events
                .send(UpstreamEvent::Changed { upstream: Arc::clone(&self.upstream) })
                .await
                .is_err()
            {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Connects and reconnects; never returns.
    async fn connect_loop(&self, known: Option<LastKnownTools>) {
        self.load_known_tools(known).await;
        let mut failures = 0_u32;
        loop {
            self.state.send_modify(|state| state.is_trying = true);
            let (messages, inbox) = mpsc::channel(MESSAGE_QUEUE);
            // Boxed: opening needs much memory for a short time, and this task lives as long as the session.
            let disconnect = match Box::pin(Link::open(&self.opening, messages.clone())).await {
                Ok(link) => {
                    let opened_at = Instant::now();
                    let disconnect = self.serve(Arc::new(link), messages, inbox).await;
                    if opened_at.elapsed() >= self.backoff.stable {
                        failures = 0;
                    }
                    disconnect
                }
                Err(error) => {
                    self.state.send_modify(|state| state.tried += 1);
                    Disconnect::Lost(error_text(&error))
                }
            };
            if let Disconnect::Idle = disconnect {
                failures = 0;
                self.wait_until_wanted().await;
                continue;
            }
            failures = failures.saturating_add(1);
            self.lose(&disconnect, failures);
            if let Disconnect::Permanent(_) = disconnect {
                std::future::pending::<()>().await;
            }
            tokio::select! {
                () = sleep(self.backoff.wait(failures)) => {}
                () = self.wanted.notified() => {}
            }
        }
    }

    /// Marks the server as unavailable. Logs the reason only when it changes.
    fn unavailable(&self, reason: &str) {
        let mut is_news = false;
        self.state.send_modify(|state| {
            is_news = state.health != Health::Unavailable || state.reason.as_deref() != Some(reason);
            state.set(Health::Unavailable, Some(reason.to_owned()));
            state.is_settled = true;
        });
        if is_news {
            tracing::warn!(upstream = &*self.upstream, reason, "the server is unavailable");
            self.changed.notify_one();
        }
    }

    fn lose(&self, disconnect: &Disconnect, failures: u32) {
        self.unavailable(disconnect.reason());
        self.state.send_modify(|state| {
            (state.link, state.messages) = (None, None);
            (state.failures, state.failed_at) = (failures, Some(Instant::now()));
            (state.is_trying, state.is_over) = (false, matches!(disconnect, Disconnect::Permanent(_)));
        });
    }

    /// Uses a connection until it ends.
    async fn serve(
        &self,
        link: Arc<Link>,
        messages: mpsc::Sender<ServerMessage>,
        inbox: mpsc::Receiver<ServerMessage>,
    ) -> Disconnect {
        let initialized = InitializeResult::read(link.initialize_result());
        if initialized.is_broker() {
            link.close().await;
            return Disconnect::Permanent("it is an embody broker, and calls would loop".to_owned());
        }
        let has_tools = initialized.has_tools();
        self.connected(&link, &messages, initialized);
        let relist = Notify::new();
        let disconnect = tokio::select! {
            error = link.until_closed() => Disconnect::Lost(error_text(&error)),
            disconnect = self.maintain(&link, &messages, &relist, has_tools) => disconnect,
            () = self.forward_messages(&link, inbox, &relist) => Disconnect::Lost("its messages are no longer read".to_owned()),
            () = self.wait_until_idle() => Disconnect::Idle,
        };
        if !matches!(disconnect, Disconnect::Idle) {
            self.unavailable(disconnect.reason());
        }
        // The old process must be gone before a new one starts.
        link.close().await;
        self.state.send_modify(|state| state.stderr = link.stderr());
        disconnect
    }

    fn connected(
        &self,
        link: &Arc<Link>,
        messages: &mpsc::Sender<ServerMessage>,
        initialized: InitializeResult,
    ) {
        tracing::info!(upstream = &*self.upstream, transport = link.transport(), "the server is connected");
        self.uses.touch();
        self.state.send_modify(|state| {
            (state.link, state.messages) = (Some(Arc::clone(link)), Some(messages.clone()));
            state.instructions = initialized.instructions();
            state.capabilities = Some(initialized.into_capabilities());
            state.opened = state.opened.saturating_add(1);
            state.checked_at = None;
            (state.is_trying, state.is_wanted) = (false, false);
            state.set(Health::Connected, None);
        });
        self.changed.notify_one();
    }

    /// Lists the tools, again after changes, and pings an idle server. Returns when it does not respond.
    async fn maintain(
        &self,
        link: &Link,
        messages: &mpsc::Sender<ServerMessage>,
        relist: &Notify,
        has_tools: bool,
    ) -> Disconnect {
        let known = self.tools.clone().or_else(|| (!has_tools).then(Arc::default));
        let (mut misses, can_list) = (0, known.is_none());
        let mut must_list = can_list;
        if let Some(known) = known {
            self.listed(Ok((known, None)));
        }
        loop {
            if must_list {
                let limit = self.opening.limits.request_timeout;
                // Boxed for the same reason as opening.
                let listing = Box::pin(listing::read(link, messages, limit)).await;
                let listing = listing.map(listing::Listing::into_parts);
                for tool in listing.iter().flat_map(|(tools, _)| tools.iter()) {
                    link.register_tool(&tool.name, &tool.definition);
                }
                must_list = !self.listed(listing);
            }
            tokio::select! {
                () = relist.notified(), if can_list => {
                    sleep(self.backoff.listing_gap).await;
                    must_list = true;
                }
                () = sleep(self.backoff.ping_interval) => {
                    // A busy server need not respond to a ping.
                    if link.waiting() > 0 {
                        continue;
                    }
                    let method = if link.is_stateless() { "server/discover" } else { "ping" };
                    let ping = OutgoingCall { method, params: None };
                    match Box::pin(request(link, messages, ping, self.backoff.ping_timeout)).await {
                        // An error response is a response too.
                        Ok(_) => {
                            misses = 0;
                            self.state.send_modify(|state| state.checked_at = Some(Instant::now()));
                        }
                        Err(_) => misses += 1,
                    }
                    if misses >= self.backoff.misses_max {
                        return Disconnect::Lost(format!("it did not answer {misses} health checks in a row"));
                    }
                }
            }
        }
    }

    /// Stores a listing, which may be incomplete; returns whether there was one.
    fn listed(&self, listed: Result<(Arc<[RawTool]>, Option<String>), String>) -> bool {
        let is_listed = listed.is_ok();
        let (tools, reason) = match listed {
            Ok((tools, left_out)) => (Some(tools), left_out),
            Err(reason) => (None, Some(format!("its tools cannot be listed: {reason}"))),
        };
        let mut is_news = false;
        self.state.send_modify(|state| {
            is_news = !state.is_settled || state.reason != reason;
            state.set(Health::Connected, reason);
            state.is_settled = true;
            if is_listed {
                state.listed = state.opened;
            }
            if let Some(tools) = tools.filter(|tools| !listing::is_same(tools, &state.tools)) {
                (state.tools, is_news) = (tools, true);
            }
        });
        if is_news {
            self.changed.notify_one();
        }
        is_listed
    }

    /// Forwards the server's messages, and notes when its tools have changed.
    async fn forward_messages(
        &self,
        link: &Arc<Link>,
        mut inbox: mpsc::Receiver<ServerMessage>,
        relist: &Notify,
    ) {
        while let Some(messages) = inbox.recv().await {
            let upstream = Arc::clone(&self.upstream);
            let events = match messages {
                ServerMessage::Notification(notification)
                    if notification.method == "notifications/tools/list_changed" =>
                {
                    relist.notify_one();
                    continue;
                }
                ServerMessage::Notification(notification) => {
                    UpstreamEvent::Notification { upstream, notification }
                }
                ServerMessage::Request(request) => match self.request_slots.take() {
                    Some(permit) => {
                        UpstreamEvent::Request { upstream, request, link: Arc::downgrade(link), permit }
                    }
                    None => {
                        self.refuse(link, too_many_requests(request)).await;
                        continue;
                    }
                },
            };
            // The receiver is gone: keep reading, so that the server is not blocked.
            if let Err(SendError(UpstreamEvent::Request { request, .. })) = self.events.send(events).await {
                let no_receiver =
                    Response::failure(request.id, code::INTERNAL_ERROR, "no host can receive this request");
                self.refuse(link, no_receiver).await;
            }
        }
    }

    /// Rejects a request that is not forwarded. Drops the response if the server does not read.
    async fn refuse(&self, link: &Link, refusal: Response) {
        let _ = timeout(self.opening.limits.courtesy_timeout, link.answer(refusal)).await;
    }
}

/// Sends a request to a server; the error is the reason as text.
pub(super) async fn request(
    link: &Link,
    messages: &mpsc::Sender<ServerMessage>,
    calling: OutgoingCall<'_>,
    limit: Duration,
) -> Result<Outcome, String> {
    let mut number = None;
    let asked = async {
        let mut running = link.begin(calling).await.map_err(|error| error_text(&error))?;
        number = Some(running.number());
        loop {
            let message = match running.next().await {
                CallEvent::Done(outcome) => return Ok(outcome),
                CallEvent::Lost(error) => return Err(error_text(&error)),
                CallEvent::Notification(notification) => ServerMessage::Notification(notification),
                CallEvent::Request(request) => ServerMessage::Request(request),
            };
            forward_message(link, messages, message).await;
        }
    };
    if let Ok(answer) = timeout(limit, asked).await {
        return answer;
    }
    if let Some(number) = number {
        // A server that does not read must not block the supervisor a second time.
        let _ = timeout(limit, link.cancel(number, "no answer in time")).await;
    }
    Err(format!("`{}` took longer than {} ms", calling.method, limit.as_millis()))
}

pub(super) fn into_result(outcome: Outcome) -> Result<Box<RawValue>, String> {
    match outcome {
        Outcome::Result(result) => Ok(result),
        Outcome::Error(error) => {
            let error: String = error.get().chars().filter(|c| !c.is_control()).take(200).collect();
            Err(format!("the server answers with an error: {error}"))
        }
    }
}

async fn forward_message(link: &Link, messages: &mpsc::Sender<ServerMessage>, message: ServerMessage) {
    let Err(refused) = messages.try_send(message) else { return };
    // Reject a request that does not fit into the queue, so that the server does not wait for ever.
    if let ServerMessage::Request(request) = refused.into_inner() {
        let _ = link
            .answer(Response::failure(request.id, code::INTERNAL_ERROR, "no host can receive this request"))
            .await;
    }
}
