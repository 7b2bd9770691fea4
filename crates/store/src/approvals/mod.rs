//! Approvals: a person's answer to one call, bound to what was shown, used once. One that nobody gave in time is denied.

mod ask;
mod decide;

use serde::Serialize;
use sqlx::{ColumnIndex, Database, Decode, FromRow, Type};

pub use self::ask::{AskApproval, AskOutcome, AskResult};
pub use self::decide::{Answer, ApprovalUse, DecideApproval, DecideOutcome, Refusal, UseApproval};
use crate::areas::Approvals;
use crate::db::{Conn, args};
use crate::error::Result;
use crate::leases::clock;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalStatus {
    Pending,
    /// Approved and unused.
    Approved,
    Denied,
    /// Not decided, or not used, in time. Counts as denied.
    Expired,
    Used,
}

impl ApprovalStatus {
    fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::Expired => "expired",
            Self::Used => "used",
        }
    }

    fn named(name: &str) -> Option<Self> {
        [Self::Pending, Self::Approved, Self::Denied, Self::Expired, Self::Used]
            .into_iter()
            .find(|status| status.name() == name)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Approval {
    pub user: String,
    pub id: String,
    pub agent: String,
    pub session: String,
    pub channel: String,
    pub body: String,
    pub tool: String,
    pub class: String,
    /// Canonical arguments as JSON text.
    pub args: String,
    /// Digest of exactly `args`.
    pub digest: String,
    /// Hash of the tool's pinned definition.
    pub pin: String,
    pub policy: String,
    pub reason: String,
    pub flags: Vec<String>,
    pub status: ApprovalStatus,
    pub created_at: i64,
    pub expires_at: i64,
    pub decided_at: Option<i64>,
    pub decided_by: Option<String>,
    pub used_at: Option<i64>,
}

impl Approval {
    /// One that is over is shown as such before anybody has written it down.
    fn judged_at(self, now: i64) -> Self {
        let open = matches!(self.status, ApprovalStatus::Pending | ApprovalStatus::Approved);
        let status = if open && self.expires_at <= now { ApprovalStatus::Expired } else { self.status };
        Self { status, ..self }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalFilter {
    Pending,
    All,
}

/// All columns, for `SELECT` and `RETURNING`.
macro_rules! columns {
    () => {
        "user_id, id, agent, session, channel, body, tool, class, args, digest, pin, policy, reason, flags, status, \
         created_at, expires_at, decided_at, decided_by, used_at"
    };
}
use columns;

const ONE: &str = concat!("SELECT ", columns!(), " FROM approvals WHERE user_id = $1 AND id = $2");
const ANYONES: &str = concat!("SELECT ", columns!(), " FROM approvals WHERE id = $1");
const LIST: &str =
    concat!("SELECT ", columns!(), " FROM approvals WHERE user_id = $1 ORDER BY id DESC LIMIT +$2");
const LIST_PENDING: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM approvals WHERE user_id = $1 AND status = 'pending' AND expires_at > $3 ORDER BY id DESC LIMIT +$2"
);
const LIST_ALL: &str = concat!("SELECT ", columns!(), " FROM approvals ORDER BY id DESC LIMIT +$1");
const LIST_ALL_PENDING: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM approvals WHERE status = 'pending' AND expires_at > $2 ORDER BY id DESC LIMIT +$1"
);

impl Approvals<'_> {
    pub async fn get(self, user: &str, id: &str) -> Result<Option<Approval>> {
        one(&mut self.store.reader().await?, user, id).await
    }

    pub async fn list(self, user: &str, filter: ApprovalFilter, limit: u32) -> Result<Vec<Approval>> {
        let mut conn = self.store.reader().await?;
        let now = clock(&mut conn).await?;
        let found: Vec<Approval> = match filter {
            ApprovalFilter::Pending => conn.fetch_all(LIST_PENDING, args![user, limit, now]).await?,
            ApprovalFilter::All => conn.fetch_all(LIST, args![user, limit]).await?,
        };
        Ok(found.into_iter().map(|approval| approval.judged_at(now)).collect())
    }

    /// The approval of this id, whoever it belongs to. For the operator.
    pub async fn find(self, id: &str) -> Result<Option<Approval>> {
        let mut conn = self.store.reader().await?;
        let now = clock(&mut conn).await?;
        let found: Option<Approval> = conn.fetch_optional(ANYONES, args![id]).await?;
        Ok(found.map(|approval| approval.judged_at(now)))
    }

    /// The approvals of all users, newest first. For the operator.
    pub async fn list_all(self, filter: ApprovalFilter, limit: u32) -> Result<Vec<Approval>> {
        let mut conn = self.store.reader().await?;
        let now = clock(&mut conn).await?;
        let found: Vec<Approval> = match filter {
            ApprovalFilter::Pending => conn.fetch_all(LIST_ALL_PENDING, args![limit, now]).await?,
            ApprovalFilter::All => conn.fetch_all(LIST_ALL, args![limit]).await?,
        };
        Ok(found.into_iter().map(|approval| approval.judged_at(now)).collect())
    }
}

async fn one(conn: &mut Conn, user: &str, id: &str) -> Result<Option<Approval>> {
    let now = clock(conn).await?;
    let found: Option<Approval> = conn.fetch_optional(ONE, args![user, id]).await?;
    Ok(found.map(|approval| approval.judged_at(now)))
}

/// By hand, since tuples end at sixteen columns.
impl<'r, R> FromRow<'r, R> for Approval
where
    R: sqlx::Row,
    usize: ColumnIndex<R>,
    String: Decode<'r, R::Database> + Type<R::Database>,
    Option<String>: Decode<'r, R::Database> + Type<R::Database>,
    i64: Decode<'r, R::Database> + Type<R::Database>,
    Option<i64>: Decode<'r, R::Database> + Type<R::Database>,
    R::Database: Database,
{
    fn from_row(row: &'r R) -> sqlx::Result<Self> {
        let status: String = row.try_get(14)?;
        let flags: String = row.try_get(13)?;
        Ok(Self {
            user: row.try_get(0)?,
            id: row.try_get(1)?,
            agent: row.try_get(2)?,
            session: row.try_get(3)?,
            channel: row.try_get(4)?,
            body: row.try_get(5)?,
            tool: row.try_get(6)?,
            class: row.try_get(7)?,
            args: row.try_get(8)?,
            digest: row.try_get(9)?,
            pin: row.try_get(10)?,
            policy: row.try_get(11)?,
            reason: row.try_get(12)?,
            flags: serde_json::from_str(&flags).map_err(|error| sqlx::Error::Decode(error.into()))?,
            status: ApprovalStatus::named(&status)
                .ok_or_else(|| sqlx::Error::Decode(format!("`{status}` is no status").into()))?,
            created_at: row.try_get(15)?,
            expires_at: row.try_get(16)?,
            decided_at: row.try_get(17)?,
            decided_by: row.try_get(18)?,
            used_at: row.try_get(19)?,
        })
    }
}
