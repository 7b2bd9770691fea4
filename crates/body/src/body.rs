//! The body itself: its state, and what it needs of the world.

use std::fmt;
use std::sync::Arc;

use embody_store::{Scope, Store};
use jiff::Timestamp;

use crate::{Error, Tool};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    pub scope: Scope,
    pub channel: String,
    /// The conversation that it is in, if others read what is said there.
    pub shared_conversation: Option<String>,
    pub is_approved: bool,
}

impl Caller {
    /// Whoever reads along is not shown what is the user's alone.
    pub(crate) fn require_private(&self, tool: Tool) -> crate::Result<()> {
        if self.shared_conversation.is_some() {
            Err(Error::SharedConversation { tool: tool.name() })
        } else {
            Ok(())
        }
    }
}

type Zone = dyn Fn(&Scope) -> Result<String, String> + Send + Sync;
type Due = dyn Fn(&str, &str, i64) -> Result<Option<i64>, String> + Send + Sync;

pub struct BodyConfig {
    /// When something is due next: the timetable, its time zone, and the time that it is now, in microseconds since 1970.
    /// In words, why it is no timetable.
    pub due: Box<Due>,
    /// The time zone that a user means who names none; in words, why there is none.
    pub zone: Box<Zone>,
    /// The time, in microseconds since 1970.
    pub clock: Box<dyn Fn() -> i64 + Send + Sync>,
    pub gives_orders: Arc<dyn Fn(&str) -> bool + Send + Sync>,
    pub channels: Vec<String>,
}

impl fmt::Debug for BodyConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BodyConfig").field("channels", &self.channels).finish_non_exhaustive()
    }
}

/// The embedded body. It has a method for each tool.
#[derive(Debug)]
pub struct Body {
    pub(crate) store: Store,
    pub(crate) config: BodyConfig,
}

impl Body {
    #[must_use]
    pub fn new(store: Store, config: BodyConfig) -> Self {
        Self { store, config }
    }
}

/// RFC 3339, to the second.
pub(crate) fn format_timestamp(micros: i64) -> String {
    Timestamp::from_microsecond(micros).map_or_else(|_| micros.to_string(), |at| format!("{at:.0}"))
}
