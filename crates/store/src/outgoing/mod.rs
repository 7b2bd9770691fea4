//! Messages that are to leave on a channel, durable before anybody tries. What may have left is never sent again: a
//! message whose sender was gone while a part of it was on its way is `unknown`.

mod add;
mod claims;
mod lost;
mod parts;

pub use self::add::NewOutgoing;
pub(crate) use self::add::{add_replies, check};
pub use self::claims::{OutgoingClaim, OutgoingEnd};
use crate::areas::OutgoingQueue;
use crate::db::args;
use crate::error::{Error, ErrorKind, Result};
use crate::leases::clock;

/// Of a reason so much is kept.
const REASON_LIMIT: usize = 4 * 1024;

/// How far an outgoing message has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutgoingState {
    Waiting,
    Sending,
    Sent,
    Failed,
    Unknown,
}

impl OutgoingState {
    fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Sending => "sending",
            Self::Sent => "sent",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }

    fn named(name: &str) -> Result<Self> {
        match name {
            "waiting" => Ok(Self::Waiting),
            "sending" => Ok(Self::Sending),
            "sent" => Ok(Self::Sent),
            "failed" => Ok(Self::Failed),
            "unknown" => Ok(Self::Unknown),
            _ => Err(Error::new(
                ErrorKind::Corrupt,
                format!("an outgoing message is `{name}`, which is no state"),
            )),
        }
    }
}

/// A message that is to leave, or has left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    pub user: String,
    pub id: String,
    pub agent: String,
    pub channel: String,
    /// The channel's id of the recipient; messages to one recipient are sent in order, one at a time.
    pub to: String,
    pub text: String,
    /// `reply`, `message`, `notice` …
    pub kind: String,
    /// `low`, `normal`, `high` …
    pub urgency: String,
    /// External id of the message that it answers.
    pub about: Option<String>,
    pub state: OutgoingState,
    /// Number of parts that were certainly sent, and index of the next part.
    pub parts_sent: i64,
    pub attempts: i64,
    pub reason: Option<String>,
    pub created_at: i64,
    /// Of a lost message: when the loss was noticed.
    pub finished_at: Option<i64>,
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
    Option<String>,
    String,
    i64,
    i64,
    Option<String>,
    i64,
    Option<i64>,
    i64,
);

/// The columns of a `Row`, with the state as it is or as it is to be shown.
macro_rules! columns {
    ($state:literal) => {
        concat!(
            "user_id, id, agent, channel, recipient, text, kind, urgency, about, ",
            $state,
            ", parts_sent, attempts, reason, created_at, finished_at, fence",
        )
    };
}
/// The same of one whose lease may have run out by the time `$1`.
macro_rules! shown {
    () => {
        columns!(
            "CASE WHEN state = 'sending' AND lease_until <= $1 AND parts_begun > parts_sent THEN 'unknown' \
             WHEN state = 'sending' AND lease_until <= $1 THEN 'waiting' ELSE state END"
        )
    };
}
use {columns, shown};

const LIST: &str =
    concat!("SELECT ", shown!(), " FROM outgoing WHERE user_id = $2 ORDER BY id DESC LIMIT +$3");

impl OutgoingQueue<'_> {
    /// The user's messages, newest first. One whose lease ran out is shown as what it will be settled as.
    pub async fn list(self, user: &str, limit: u32) -> Result<Vec<Outgoing>> {
        let mut conn = self.store.reader().await?;
        let now = clock(&mut conn).await?;
        let rows: Vec<Row> = conn.fetch_all(LIST, args![now, user, limit]).await?;
        rows.into_iter().map(outgoing).collect()
    }
}

fn outgoing(row: Row) -> Result<Outgoing> {
    claimed(row).map(|claim| claim.outgoing)
}

fn claimed(row: Row) -> Result<OutgoingClaim> {
    let (
        user,
        id,
        agent,
        channel,
        to,
        text,
        kind,
        urgency,
        about,
        state,
        parts_sent,
        attempts,
        reason,
        created_at,
        finished_at,
        fence,
    ) = row;
    let state = OutgoingState::named(&state)?;
    let outgoing = Outgoing {
        user,
        id,
        agent,
        channel,
        to,
        text,
        kind,
        urgency,
        about,
        state,
        parts_sent,
        attempts,
        reason,
        created_at,
        finished_at,
    };
    Ok(OutgoingClaim { outgoing, fence })
}

/// A reason as it is kept: what ended must not stay open because somebody else's words are long or odd.
pub(crate) fn told(reason: &str) -> String {
    let end = reason.floor_char_boundary(REASON_LIMIT);
    reason.get(..end).unwrap_or_default().replace('\0', "\u{fffd}")
}
