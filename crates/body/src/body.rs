//! The body itself: its state, and what it needs of the world.

use std::fmt;
use std::sync::Arc;

use embody_store::{Scope, Store};

use crate::{Error, Tool};

/// Who calls a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// For whom, and as which agent.
    pub scope: Scope,
    /// Where the agent is heard now.
    pub channel: String,
    /// The conversation that it is in, if others read what is said there.
    pub room: Option<String>,
    /// Whether the owner has approved this very call.
    pub is_approved: bool,
}

impl Caller {
    /// Whoever reads along is not shown what is the user's alone.
    pub(crate) fn alone(&self, tool: Tool) -> crate::Result<()> {
        if self.room.is_some() { Err(Error::Room { tool: tool.name() }) } else { Ok(()) }
    }
}

type Zone = dyn Fn(&Scope) -> Result<String, String> + Send + Sync;
type Due = dyn Fn(&str, &str, i64) -> Result<Option<i64>, String> + Send + Sync;

/// What a body needs of the world.
pub struct Setting {
    /// When something is due next: the timetable, its time zone, and the time that it is now, in microseconds since 1970.
    /// In words, why it is no timetable.
    pub due: Box<Due>,
    /// The time zone that a user means who names none; in words, why there is none.
    pub zone: Box<Zone>,
    /// The time, in microseconds since 1970.
    pub clock: Box<dyn Fn() -> i64 + Send + Sync>,
    /// Whether a text gives orders to the agent.
    pub gives_orders: Arc<dyn Fn(&str) -> bool + Send + Sync>,
    /// The channels over which other people are reached.
    pub channels: Vec<String>,
}

impl fmt::Debug for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setting").field("channels", &self.channels).finish_non_exhaustive()
    }
}

/// The embedded body. It has a method for each tool.
#[derive(Debug)]
pub struct Body {
    pub(crate) store: Store,
    pub(crate) setting: Setting,
}

impl Body {
    /// A body with its state in this store.
    #[must_use]
    pub fn new(store: Store, setting: Setting) -> Self {
        Self { store, setting }
    }
}
