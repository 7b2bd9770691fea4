//! What is known of a server at this moment.

use std::error::Error as _;
use std::sync::Arc;

use embody_wire::upstream::{Link, ServerMessage};
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::greeting::SentInstructions;
use super::{Away, RawTool};

/// Characters of a reason.
const REASON_MAX_CHARS: usize = 500;

/// Whether a server can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// It is being connected for the first time.
    Connecting,
    /// It can.
    Connected,
    /// It cannot; it is tried again and again.
    Unavailable,
    /// It does not run because nobody needs it, and is started when somebody does.
    Idle,
}

impl Health {
    /// Whether nothing is wrong with it.
    #[must_use]
    pub const fn is_fine(self) -> bool {
        matches!(self, Self::Connected | Self::Idle)
    }
}

/// How a server is.
#[derive(Debug, Clone)]
pub struct State {
    /// Whether it can be used.
    pub health: Health,
    /// Why it cannot, or what does not work although it can.
    pub reason: Option<String>,
    /// For how many milliseconds it has been so.
    pub since_ms: i64,
    /// How it is reached, while it is.
    pub transport: Option<&'static str>,
    /// The protocol revision that both sides speak.
    pub version: Option<&'static str>,
    /// Whether the connection is of the stateless era.
    pub is_stateless: Option<bool>,
    /// How often it was connected again, but for the starts after it was stopped for being idle.
    pub restarts: u32,
    /// How often it was stopped because nobody needed it.
    pub idle_stops: u32,
    /// How many tools it has.
    pub tool_count: usize,
    /// The last lines of its stderr, also of the process before.
    pub stderr: Vec<String>,
    /// The id of its process, while it runs.
    pub pid: Option<u32>,
    /// How many milliseconds ago it last answered when it was asked whether it lives.
    pub checked_ms: Option<i64>,
}

/// The same, as the supervisor keeps it.
#[derive(Debug)]
pub(super) struct Now {
    pub(super) health: Health,
    pub(super) reason: Option<String>,
    pub(super) since: Instant,
    pub(super) link: Option<Arc<Link>>,
    /// Where what is said on that connection is heard.
    pub(super) said: Option<mpsc::Sender<ServerMessage>>,
    pub(super) tools: Arc<[RawTool]>,
    pub(super) capabilities: Option<Arc<Map<String, Value>>>,
    pub(super) instructions: SentInstructions,
    pub(super) stderr: Vec<String>,
    pub(super) checked_at: Option<Instant>,
    /// Connections so far, and the last of them whose tools were listed.
    pub(super) opened: u32,
    pub(super) listed: u32,
    /// Connections that were ended because nobody needed them.
    pub(super) idle_stops: u32,
    /// Attempts that have failed so far.
    pub(super) tried: u64,
    /// Failures in a row, and the last of them.
    pub(super) failures: u32,
    pub(super) failed_at: Option<Instant>,
    /// An attempt runs.
    pub(super) is_trying: bool,
    /// Somebody has wanted the connection since there was one.
    pub(super) is_wanted: bool,
    pub(super) is_settled: bool,
    /// The tools are those that it listed before this session, or it is part of this program.
    pub(super) is_remembered: bool,
    /// Nothing will be tried any more.
    pub(super) is_over: bool,
}

impl Now {
    /// Before the first attempt; `tools` are those of a server that is part of this program.
    pub(super) fn new(tools: Option<Arc<[RawTool]>>) -> Self {
        Self {
            health: Health::Connecting,
            reason: None,
            since: Instant::now(),
            link: None,
            said: None,
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

    /// Whether its tools are known, or it is known that they are not: its first start has failed.
    pub(super) fn knows_tools(&self) -> bool {
        self.is_remembered || self.is_settled || self.is_over
    }

    /// Where what is said on this connection is heard, while it is the one in use.
    pub(super) fn said_on(&self, link: &Arc<Link>) -> Option<mpsc::Sender<ServerMessage>> {
        let is_it = |now: &&Arc<Link>| Arc::ptr_eq(now, link);
        self.link.as_ref().filter(is_it).and_then(|_| self.said.clone())
    }

    /// The connection, if it is open.
    pub(super) fn open_link(&self) -> Option<Arc<Link>> {
        self.link.as_ref().filter(|link| link.closed().is_none()).map(Arc::clone)
    }

    /// Why there is none.
    pub(super) fn away(&self) -> Away {
        let lost = self.link.as_ref().and_then(|link| link.closed()).map(|error| told(&error));
        let reason = lost.or_else(|| self.reason.clone());
        Away(reason.unwrap_or_else(|| "it is not connected yet".to_owned()))
    }

    /// The end of a connection is known here before the supervisor has seen it.
    pub(super) fn health_now(&self) -> Health {
        let is_lost = self.health == Health::Connected && self.open_link().is_none();
        if is_lost { Health::Unavailable } else { self.health }
    }

    pub(super) fn state(&self) -> State {
        let link = self.open_link();
        let elapsed_ms = |at: Instant| i64::try_from(at.elapsed().as_millis()).unwrap_or(i64::MAX);
        let stderr = link.as_ref().map(|link| link.stderr()).filter(|lines| !lines.is_empty());
        let health = self.health_now();
        let is_lost = health != self.health;
        State {
            health,
            reason: if is_lost { Some(self.away().0) } else { self.reason.clone() },
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

    /// Sets whether it can be used, and why not.
    pub(super) fn set(&mut self, health: Health, reason: Option<String>) {
        if self.health != health {
            self.since = Instant::now();
        }
        (self.health, self.reason) = (health, reason);
    }
}

/// An error with its causes, in one line.
pub(super) fn told(error: &embody_wire::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        words.push_str(": ");
        words.push_str(&error.to_string());
        cause = error.source();
    }
    words.chars().map(|c| if c.is_control() { ' ' } else { c }).take(REASON_MAX_CHARS).collect()
}
