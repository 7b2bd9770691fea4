//! The current state of one upstream, as the supervisor maintains it and as callers read it.

use std::error::Error as _;
use std::sync::Arc;

use embody_wire::upstream::{Link, ServerMessage};
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::initialize::SentInstructions;
use super::{RawTool, Unavailable};

const REASON_MAX_CHARS: usize = 500;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// The first attempt is in progress.
    Connecting,
    Connected,
    /// Not connected; the supervisor retries.
    Unavailable,
    /// Stopped because it is unused; started on demand.
    Idle,
}

impl Health {
    /// Whether this is a normal state.
    #[must_use]
    pub const fn is_fine(self) -> bool {
        matches!(self, Self::Connected | Self::Idle)
    }
}

#[derive(Debug, Clone)]
pub struct UpstreamStatus {
    pub health: Health,
    /// Why it is unavailable, or what does not work although it is connected.
    pub reason: Option<String>,
    /// How long it has been in this state, in milliseconds.
    pub since_ms: i64,
    /// The transport, while connected.
    pub transport: Option<&'static str>,
    pub version: Option<&'static str>,
    /// Whether the connection is of the stateless era.
    pub is_stateless: Option<bool>,
    /// Reconnects, without the starts after an idle shutdown.
    pub restarts: u32,
    /// How often it was stopped because it was unused.
    pub idle_stops: u32,
    pub tool_count: usize,
    /// The last lines of its stderr, including those of the previous process.
    pub stderr: Vec<String>,
    /// The process id, while it runs.
    pub pid: Option<u32>,
    /// How many milliseconds ago it last answered a ping.
    pub checked_ms: Option<i64>,
}

#[derive(Debug)]
pub(super) struct UpstreamState {
    pub(super) health: Health,
    pub(super) reason: Option<String>,
    pub(super) since: Instant,
    pub(super) link: Option<Arc<Link>>,
    pub(super) messages: Option<mpsc::Sender<ServerMessage>>,
    pub(super) tools: Arc<[RawTool]>,
    pub(super) capabilities: Option<Arc<Map<String, Value>>>,
    pub(super) instructions: SentInstructions,
    pub(super) stderr: Vec<String>,
    pub(super) checked_at: Option<Instant>,
    /// Connections so far, and the last of them whose tools were listed.
    pub(super) opened: u32,
    pub(super) listed: u32,
    /// Connections that were closed because they were unused.
    pub(super) idle_stops: u32,
    /// Failed attempts so far.
    pub(super) tried: u64,
    pub(super) failures: u32,
    pub(super) failed_at: Option<Instant>,
    pub(super) is_trying: bool,
    /// A caller has requested the connection since it was last open.
    pub(super) is_wanted: bool,
    pub(super) is_settled: bool,
    /// The tools are from a listing before this session, or the server is part of this program.
    pub(super) is_remembered: bool,
    pub(super) is_over: bool,
}

impl UpstreamState {
    /// The state before the first attempt; `tools` is set for a server that is part of this program.
    pub(super) fn new(tools: Option<Arc<[RawTool]>>) -> Self {
        Self {
            health: Health::Connecting,
            reason: None,
            since: Instant::now(),
            link: None,
            messages: None,
            capabilities: None,
            instructions: SentInstructions::Unknown,
            stderr: Vec::new(),
            checked_at: None,
            opened: 0,
            listed: 0,
            idle_stops: 0,
            tried: 0,
            failures: 0,
            failed_at: None,
            is_trying: true,
            is_wanted: false,
            is_settled: false,
            is_remembered: tools.is_some(),
            is_over: false,
            tools: tools.unwrap_or_default(),
        }
    }

    /// Whether its tools are known, or its first start has failed.
    pub(super) fn knows_tools(&self) -> bool {
        self.is_remembered || self.is_settled || self.is_over
    }

    /// The channel for the messages of this connection, while it is the current one.
    pub(super) fn messages_on(&self, link: &Arc<Link>) -> Option<mpsc::Sender<ServerMessage>> {
        let is_it = |state: &&Arc<Link>| Arc::ptr_eq(state, link);
        self.link.as_ref().filter(is_it).and_then(|_| self.messages.clone())
    }

    /// The connection, if it is open.
    pub(super) fn open_link(&self) -> Option<Arc<Link>> {
        self.link.as_ref().filter(|link| link.closed().is_none()).map(Arc::clone)
    }

    pub(super) fn unavailable(&self) -> Unavailable {
        let lost = self.link.as_ref().and_then(|link| link.closed()).map(|error| error_text(&error));
        let reason = lost.or_else(|| self.reason.clone());
        Unavailable(reason.unwrap_or_else(|| "it is not connected yet".to_owned()))
    }

    /// Reports the end of a connection before the supervisor has noticed it.
    pub(super) fn current_health(&self) -> Health {
        let is_lost = self.health == Health::Connected && self.open_link().is_none();
        if is_lost { Health::Unavailable } else { self.health }
    }

    pub(super) fn status(&self) -> UpstreamStatus {
        let link = self.open_link();
        let elapsed_ms = |at: Instant| i64::try_from(at.elapsed().as_millis()).unwrap_or(i64::MAX);
        let stderr = link.as_ref().map(|link| link.stderr()).filter(|lines| !lines.is_empty());
        let health = self.current_health();
        let is_lost = health != self.health;
        UpstreamStatus {
            health,
            reason: if is_lost { Some(self.unavailable().0) } else { self.reason.clone() },
            since_ms: elapsed_ms(self.since),
            transport: link.as_ref().map(|link| link.transport()),
            version: link.as_ref().map(|link| link.protocol_version()),
            is_stateless: link.as_ref().map(|link| link.is_stateless()),
            restarts: self.opened.saturating_sub(self.idle_stops.saturating_add(1)),
            idle_stops: self.idle_stops,
            tool_count: self.tools.len(),
            stderr: stderr.unwrap_or_else(|| self.stderr.clone()),
            pid: link.as_ref().and_then(|link| link.pid()),
            checked_ms: self.checked_at.map(elapsed_ms),
        }
    }

    pub(super) fn set(&mut self, health: Health, reason: Option<String>) {
        if self.health != health {
            self.since = Instant::now();
        }
        (self.health, self.reason) = (health, reason);
    }
}

pub(super) fn error_text(error: &embody_wire::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(REASON_MAX_CHARS).collect()
}
