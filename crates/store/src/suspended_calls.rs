//! Calls that wait for the next request of their host, which may arrive at another process than the one that holds
//! the call: the row names the holder and ensures that an answer counts once, wherever it arrives.
//!
//! If the answer arrives at the holder, the call is claimed at once. If it arrives at another process, the row is
//! answered first; then one process claims it: the holder or, if that has ended, the process that got the answer.

use std::time::Duration;

use crate::areas::SuspendedCalls;
use crate::db::{Sql, args, from_row, transaction};
use crate::error::Result;
use crate::leases::{claim_sql, clock, later};
use crate::store::{check_name, check_text};

const RESUME_DATA_LIMIT: usize = 1024 * 1024;
const BATCH: u32 = 1000;

const FORGET: Sql = claim_sql!(
    "WITH picked AS MATERIALIZED (SELECT user_id, ticket FROM parked_calls WHERE expires_at <= $1 ORDER BY expires_at \
     LIMIT +$2",
    ") DELETE FROM parked_calls WHERE (user_id, ticket) IN (SELECT * FROM picked)",
);

#[derive(Clone, Debug)]
pub struct NewSuspendedCall {
    pub user: String,
    /// Unguessable id.
    pub ticket: String,
    /// The process that holds it.
    pub holder: String,
    /// What another process needs to resume it if the holder has ended, as JSON text; `None`: it cannot.
    pub resume_data: Option<String>,
    pub lasts: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuspendedCall {
    /// The process that holds it.
    pub holder: String,
    /// What another process needs to resume it.
    pub resume_data: Option<String>,
}

from_row! { SuspendedCall { holder, resume_data } }

impl SuspendedCalls<'_> {
    pub async fn insert(self, call: NewSuspendedCall) -> Result<()> {
        check_name("ticket", &call.ticket)?;
        check_name("process", &call.holder)?;
        if let Some(resume_data) = &call.resume_data {
            check_text("state of the call", resume_data, RESUME_DATA_LIMIT)?;
        }
        transaction!(self.store, |conn| {
            let NewSuspendedCall { user, ticket, holder, resume_data, lasts } = call;
            let now = clock(conn).await?;
            let sql = "INSERT INTO parked_calls (user_id, ticket, holder, state, anew, expires_at) \
                 VALUES ($1, $2, $3, 'waiting', $4, $5)";
            conn.execute(sql, args![user, ticket, holder, resume_data, later(now, lasts)]).await.map(drop)
        })
    }

    pub async fn delete_old(self) -> Result<()> {
        let mut conn = self.store.reader().await?;
        let now = clock(&mut conn).await?;
        let old: Option<(i64,)> = conn
            .fetch_optional("SELECT expires_at FROM parked_calls WHERE expires_at <= $1 LIMIT 1", args![now])
            .await?;
        drop(conn);
        if old.is_none() {
            return Ok(());
        }
        transaction!(self.store, |conn| conn.execute(FORGET, args![now, BATCH]).await.map(drop))
    }

    /// Records that an answer arrived at this process; `None` if one arrived before, or the call has expired. At the
    /// holder this claims the call.
    pub async fn answer(self, user: &str, ticket: &str, process: &str) -> Result<Option<SuspendedCall>> {
        let (user, ticket, process) = (user.to_owned(), ticket.to_owned(), process.to_owned());
        transaction!(self.store, |conn| {
            let now = clock(conn).await?;
            let sql = "UPDATE parked_calls SET state = CASE WHEN holder = $3 THEN 'taken' ELSE 'answered' END \
                 WHERE user_id = $1 AND ticket = $2 AND state = 'waiting' AND expires_at > $4 \
                 RETURNING holder, anew";
            conn.fetch_optional(sql, args![user, ticket, process, now]).await
        })
    }

    /// Claims a call whose answer arrived at another process, or whose holder does not claim it; returns whether it
    /// is ours.
    pub async fn claim(self, user: &str, ticket: &str) -> Result<bool> {
        let (user, ticket) = (user.to_owned(), ticket.to_owned());
        transaction!(self.store, |conn| {
            let sql = "UPDATE parked_calls SET state = 'taken' \
                 WHERE user_id = $1 AND ticket = $2 AND state = 'answered'";
            let taken = conn.execute(sql, args![user, ticket]).await?;
            Ok(taken > 0)
        })
    }
}
