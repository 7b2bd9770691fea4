//! What somebody said on a channel, durable until it is answered. Each is worked on once: one whose worker was gone
//! before it ended is `unknown` and stays so.

mod change;
mod claims;
mod lost;
mod take;

pub use self::change::IncomingChange;
pub use self::claims::{FinishIncoming, IncomingClaim};
pub use self::take::{Cursor, NewIncoming};
use crate::areas::IncomingQueue;
use crate::db::args;
use crate::error::{Error, ErrorKind, Result};
pub use crate::last_seen_channel::LastSeenChannel;
use crate::leases::clock;

/// How far an incoming message has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncomingState {
    Waiting,
    Working,
    Done,
    Failed,
    /// The worker was gone before the end.
    Unknown,
}

impl IncomingState {
    fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Working => "working",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }

    fn named(name: &str) -> Result<Self> {
        match name {
            "waiting" => Ok(Self::Waiting),
            "working" => Ok(Self::Working),
            "done" => Ok(Self::Done),
            "failed" => Ok(Self::Failed),
            "unknown" => Ok(Self::Unknown),
            _ => Err(Error::new(
                ErrorKind::Corrupt,
                format!("an incoming message is `{name}`, which is no state"),
            )),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incoming {
    pub user: String,
    pub id: String,
    pub agent: String,
    pub channel: String,
    /// Messages of one conversation are processed in order, one at a time.
    pub conversation: String,
    /// The channel's own id.
    pub external: String,
    /// JSON text.
    pub content: String,
    pub state: IncomingState,
    pub created_at: i64,
    pub started_at: Option<i64>,
    /// Of a lost message: when the loss was noticed.
    pub finished_at: Option<i64>,
    pub reason: Option<String>,
}

type Row = (
    String,
    String,
    String,
    String,
    String,
    String,
    String,
    String,
    i64,
    Option<i64>,
    Option<i64>,
    Option<String>,
    i64,
);

/// The columns of a `Row`, with the state as it is or as it is to be shown.
macro_rules! columns {
    ($state:literal) => {
        concat!(
            "user_id, id, agent, channel, conversation, external, content, ",
            $state,
            ", created_at, started_at, finished_at, reason, fence",
        )
    };
}
/// The same of one whose lease may have run out by the time `$1`.
macro_rules! shown {
    () => {
        columns!("CASE WHEN state = 'working' AND lease_until <= $1 THEN 'unknown' ELSE state END")
    };
}
use {columns, shown};

const LIST: &str =
    concat!("SELECT ", shown!(), " FROM incoming WHERE user_id = $2 ORDER BY id DESC LIMIT +$3");

impl IncomingQueue<'_> {
    /// What this user said, newest first. One whose lease ran out is shown as `unknown`.
    pub async fn list(self, user: &str, limit: u32) -> Result<Vec<Incoming>> {
        let mut conn = self.store.reader().await?;
        let now = clock(&mut conn).await?;
        let rows: Vec<Row> = conn.fetch_all(LIST, args![now, user, limit]).await?;
        rows.into_iter().map(incoming).collect()
    }
}

fn incoming(row: Row) -> Result<Incoming> {
    claimed(row).map(|claim| claim.incoming)
}

fn claimed(row: Row) -> Result<IncomingClaim> {
    let (
        user,
        id,
        agent,
        channel,
        conversation,
        external,
        content,
        state,
        created,
        started,
        ended,
        why,
        fence,
    ) = row;
    let incoming = Incoming {
        user,
        id,
        agent,
        channel,
        conversation,
        external,
        content,
        state: IncomingState::named(&state)?,
        created_at: created,
        started_at: started,
        finished_at: ended,
        reason: why,
    };
    Ok(IncomingClaim { incoming, fence })
}
