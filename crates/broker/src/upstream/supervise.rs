//! Connects, tends the connection, and connects again. One task for each upstream; whatever a server does, only its own
//! task waits for it.

use std::sync::Arc;
use std::time::Duration;

use embody_wire::server::code;
use embody_wire::upstream::{ClientInfo, ConnectOptions, Link, OutgoingCall, ServerMessage};
use embody_wire::{Implementation, Limits, Response};
use tokio::sync::mpsc::error::SendError;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{Instant, sleep, timeout};

use super::asking::ask;
use super::greeting::Greeting;
use super::hold::Uses;
use super::listing;
use super::now::{Health, Now, told};
use super::rest::{Known, Rest, start_timeout};
use super::{Heard, Hello, Pace, Questions, RawTool, Spec, Start};
use crate::server_requests::too_many_requests;

/// What a server says before somebody has heard it.
const UNHEARD: usize = 256;

/// One upstream's supervisor.
pub(super) struct Supervisor {
    pub(super) upstream: Arc<str>,
    opening: ConnectOptions,
    tools: Option<Arc<[RawTool]>>,
    pace: Pace,
    pub(super) start: Start,
    pub(super) idle_stop: Option<Duration>,
    pub(super) now: Arc<watch::Sender<Now>>,
    wanted: Arc<Notify>,
    pub(super) questions: Questions,
    pub(super) uses: Arc<Uses>,
    pub(super) changed: Arc<Notify>,
    heard: mpsc::Sender<Heard>,
}

/// What a supervisor has in common with its upstream.
pub(super) struct Shared {
    pub(super) now: Arc<watch::Sender<Now>>,
    pub(super) wanted: Arc<Notify>,
    pub(super) questions: Questions,
    pub(super) uses: Arc<Uses>,
}

/// How a connection ended, or why there was none.
enum Gone {
    /// It is tried again.
    Lost(String),
    /// It is not.
    ForGood(String),
    /// Nobody needed it. It is opened again when somebody does.
    Idle,
}

impl Gone {
    fn reason(&self) -> &str {
        match self {
            Self::Lost(reason) | Self::ForGood(reason) => reason,
            Self::Idle => "nobody needs it",
        }
    }
}

impl Supervisor {
    pub(super) fn new(
        spec: &Spec,
        hello: Hello,
        heard: mpsc::Sender<Heard>,
        pace: Pace,
        Shared { now, wanted, questions, uses }: Shared,
    ) -> Self {
        let attempt_timeout = start_timeout(spec, pace.start_factor);
        let limits = Limits { attempt_timeout, ..spec.limits.clone() };
        // By this name a broker knows another one, or itself, at its own door.
        let identity = Implementation {
            name: crate::broker::NAME.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let client_info = ClientInfo {
            capabilities: hello.capabilities,
            implementation: identity,
            log_level: hello.log_level,
        };
        let (tokens, proxies, era) = (spec.tokens.clone(), spec.proxies.clone(), spec.era.clone());
        let opening = ConnectOptions { route: spec.route.clone(), client_info, tokens, proxies, limits, era };
        let upstream = Arc::from(spec.name.as_str());
        let (tools, Rest { start, idle_stop }, changed) = (spec.tools.clone(), spec.rest, Arc::default());
        Self {
            upstream,
            opening,
            tools,
            pace,
            start,
            idle_stop,
            now,
            wanted,
            questions,
            uses,
            changed,
            heard,
        }
    }

    /// Runs until it is told to stop, or nobody is left who could tell it.
    pub(super) async fn run(self, known: Option<Known>, mut stop: watch::Receiver<bool>) {
        tokio::select! {
            () = self.keep(known) => {}
            () = self.tell_changes() => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
        let link = self.now.borrow().link.clone();
        self.now.send_modify(|now| {
            now.set(Health::Unavailable, Some("it was ended".to_owned()));
            (now.is_over, now.is_settled) = (true, true);
        });
        if let Some(link) = link {
            link.close().await;
        }
        self.now.send_modify(|now| (now.link, now.said) = (None, None));
    }

    /// Says that something has changed, once for all changes since it was said last: whoever listens may be slow.
    async fn tell_changes(&self) {
        loop {
            self.changed.notified().await;
            // Nobody listens any more; the connection may still be used.
            if self.heard.send(Heard::Changed { upstream: Arc::clone(&self.upstream) }).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Connects again and again; returns never.
    async fn keep(&self, known: Option<Known>) {
        self.remember(known).await;
        let mut failures = 0_u32;
        loop {
            self.now.send_modify(|now| now.is_trying = true);
            let (said, says) = mpsc::channel(UNHEARD);
            // Opening takes much room for a short time; this task has what it is given for as long as the session lives.
            let gone = match Box::pin(Link::open(&self.opening, said.clone())).await {
                Ok(link) => {
                    let opened_at = Instant::now();
                    let gone = self.serve(Arc::new(link), said, says).await;
                    if opened_at.elapsed() >= self.pace.stable {
                        failures = 0;
                    }
                    gone
                }
                Err(error) => {
                    self.now.send_modify(|now| now.tried += 1);
                    Gone::Lost(told(&error))
                }
            };
            if let Gone::Idle = gone {
                failures = 0;
                self.until_wanted().await;
                continue;
            }
            failures = failures.saturating_add(1);
            self.lose(&gone, failures);
            if let Gone::ForGood(_) = gone {
                std::future::pending::<()>().await;
            }
            tokio::select! {
                () = sleep(self.pace.wait(failures)) => {}
                () = self.wanted.notified() => {}
            }
        }
    }

    /// Says that it cannot be used. What was said before is not said again with every attempt.
    fn unavailable(&self, reason: &str) {
        let mut is_news = false;
        self.now.send_modify(|now| {
            is_news = now.health != Health::Unavailable || now.reason.as_deref() != Some(reason);
            now.set(Health::Unavailable, Some(reason.to_owned()));
            now.is_settled = true;
        });
        if is_news {
            tracing::warn!(upstream = &*self.upstream, reason, "the server is unavailable");
            self.changed.notify_one();
        }
    }

    fn lose(&self, gone: &Gone, failures: u32) {
        self.unavailable(gone.reason());
        self.now.send_modify(|now| {
            (now.link, now.said) = (None, None);
            (now.failures, now.failed_at) = (failures, Some(Instant::now()));
            (now.is_trying, now.is_over) = (false, matches!(gone, Gone::ForGood(_)));
        });
    }

    /// Uses a connection until it is over.
    async fn serve(
        &self,
        link: Arc<Link>,
        said: mpsc::Sender<ServerMessage>,
        says: mpsc::Receiver<ServerMessage>,
    ) -> Gone {
        let greeting = Greeting::read(link.initialize_result());
        if greeting.is_broker() {
            link.close().await;
            return Gone::ForGood(
                "it is this broker itself, or one like it: that would never end".to_owned(),
            );
        }
        let has_tools = greeting.has_tools();
        self.connected(&link, &said, greeting);
        let relist = Notify::new();
        let gone = tokio::select! {
            error = link.until_closed() => Gone::Lost(told(&error)),
            gone = self.tend(&link, &said, &relist, has_tools) => gone,
            () = self.hear(&link, says, &relist) => Gone::Lost("nobody hears what it says".to_owned()),
            () = self.until_idle() => Gone::Idle,
        };
        if !matches!(gone, Gone::Idle) {
            self.unavailable(gone.reason());
        }
        // What it started must be gone before it is started again.
        link.close().await;
        self.now.send_modify(|now| now.stderr = link.stderr());
        gone
    }

    fn connected(&self, link: &Arc<Link>, said: &mpsc::Sender<ServerMessage>, greeting: Greeting) {
        tracing::info!(upstream = &*self.upstream, transport = link.transport(), "the server is connected");
        self.uses.touch();
        self.now.send_modify(|now| {
            (now.link, now.said) = (Some(Arc::clone(link)), Some(said.clone()));
            now.instructions = greeting.instructions();
            now.capabilities = Some(greeting.into_capabilities());
            now.opened = now.opened.saturating_add(1);
            now.checked_at = None;
            (now.is_trying, now.is_wanted) = (false, false);
            now.set(Health::Connected, None);
        });
        self.changed.notify_one();
    }

    /// Lists the tools, again when they have changed, and asks an idle server whether it lives. Returns when it does not.
    async fn tend(
        &self,
        link: &Link,
        said: &mpsc::Sender<ServerMessage>,
        relist: &Notify,
        has_tools: bool,
    ) -> Gone {
        let known = self.tools.clone().or_else(|| (!has_tools).then(Arc::default));
        let (mut misses, can_list) = (0, known.is_none());
        let mut must_list = can_list;
        if let Some(known) = known {
            self.listed(Ok((known, None)));
        }
        loop {
            if must_list {
                let limit = self.opening.limits.request_timeout;
                // Like opening, this is over soon.
                let listing = Box::pin(listing::read(link, said, limit)).await;
                let listing = listing.map(listing::Listing::into_parts);
                for tool in listing.iter().flat_map(|(tools, _)| tools.iter()) {
                    link.register_tool(&tool.name, &tool.definition);
                }
                must_list = !self.listed(listing);
            }
            tokio::select! {
                () = relist.notified(), if can_list => {
                    sleep(self.pace.listing_gap).await;
                    must_list = true;
                }
                () = sleep(self.pace.ping_interval) => {
                    // A server that works on something need not answer anything else meanwhile.
                    if link.waiting() > 0 {
                        continue;
                    }
                    let method = if link.is_stateless() { "server/discover" } else { "ping" };
                    let ping = OutgoingCall { method, params: None };
                    match Box::pin(ask(link, said, ping, self.pace.ping_timeout)).await {
                        // A refusal is an answer.
                        Ok(_) => {
                            misses = 0;
                            self.now.send_modify(|now| now.checked_at = Some(Instant::now()));
                        }
                        Err(_) => misses += 1,
                    }
                    if misses >= self.pace.misses_max {
                        return Gone::Lost(format!("it did not answer {misses} times when it was asked whether it lives"));
                    }
                }
            }
        }
    }

    /// Keeps a listing, which may be without something; whether there was one.
    fn listed(&self, listed: Result<(Arc<[RawTool]>, Option<String>), String>) -> bool {
        let is_listed = listed.is_ok();
        let (tools, reason) = match listed {
            Ok((tools, left_out)) => (Some(tools), left_out),
            Err(reason) => (None, Some(format!("its tools cannot be listed: {reason}"))),
        };
        let mut is_news = false;
        self.now.send_modify(|now| {
            is_news = !now.is_settled || now.reason != reason;
            now.set(Health::Connected, reason);
            now.is_settled = true;
            if is_listed {
                now.listed = now.opened;
            }
            if let Some(tools) = tools.filter(|tools| !listing::is_same(tools, &now.tools)) {
                (now.tools, is_news) = (tools, true);
            }
        });
        if is_news {
            self.changed.notify_one();
        }
        is_listed
    }

    /// Passes on what the server says; that its tools have changed is noted.
    async fn hear(&self, link: &Arc<Link>, mut says: mpsc::Receiver<ServerMessage>, relist: &Notify) {
        while let Some(said) = says.recv().await {
            let upstream = Arc::clone(&self.upstream);
            let heard = match said {
                ServerMessage::Notification(notification)
                    if notification.method == "notifications/tools/list_changed" =>
                {
                    relist.notify_one();
                    continue;
                }
                ServerMessage::Notification(notification) => Heard::Said { upstream, notification },
                ServerMessage::Request(request) => match self.questions.take() {
                    Some(place) => Heard::Asked { upstream, request, link: Arc::downgrade(link), place },
                    None => {
                        self.refuse(link, too_many_requests(request)).await;
                        continue;
                    }
                },
            };
            // Nobody listens any more: what is said is read on, so that the server is not held up.
            if let Err(SendError(Heard::Asked { request, .. })) = self.heard.send(heard).await {
                let nobody = Response::failure(request.id, code::INTERNAL_ERROR, "nobody can be asked");
                self.refuse(link, nobody).await;
            }
        }
    }

    /// Answers a question that is not put to anybody. A server that does not read its answers gets none.
    async fn refuse(&self, link: &Link, refusal: Response) {
        let _ = timeout(self.opening.limits.courtesy_timeout, link.answer(refusal)).await;
    }
}
