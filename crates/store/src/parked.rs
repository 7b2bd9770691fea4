//! Calls that wait for what their host says next. The host may bring it to another process than the one that holds the call:
//! the row says which that is, and sees to it that an answer counts once, wherever it arrives.
//!
//! A row waits until its answer comes. Brought to its holder, it is taken at once. Brought to another process, it is answered
//! first; then either the holder takes it, or, if that is gone, the one that it was brought to. Only one of them can.

use std::time::Duration;

use crate::db::{Sql, args};
use crate::error::Result;
use crate::leases::{claim, clock, later};
use crate::store::{Store, check_name, check_text};

const ANEW_LIMIT: usize = 1024 * 1024;
/// Rows that are forgotten at a time.
const BATCH: u32 = 1000;

const FORGET: Sql = claim!(
    "WITH picked AS MATERIALIZED (SELECT user_id, ticket FROM parked_calls WHERE expires_at <= $1 ORDER BY expires_at \
     LIMIT +$2",
    ") DELETE FROM parked_calls WHERE (user_id, ticket) IN (SELECT * FROM picked)",
);

/// A call that is to wait.
#[derive(Clone, Debug)]
pub struct ParkCall {
    /// Whose.
    pub user: String,
    /// What it is known by; cannot be guessed.
    pub ticket: String,
    /// The process that holds it.
    pub holder: String,
    /// What another process needs to go on with it if the holder is gone, as JSON text; `None`: it cannot.
    pub anew: Option<String>,
    /// How long it waits.
    pub lasts: Duration,
}

/// A call whose answer has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParkedCall {
    /// The process that holds it.
    pub holder: String,
    /// What another process needs to go on with it.
    pub anew: Option<String>,
}

impl Store {
    /// Lets a call wait.
    pub async fn park_call(&self, call: ParkCall) -> Result<()> {
        check_name("ticket", &call.ticket)?;
        check_name("process", &call.holder)?;
        if let Some(anew) = &call.anew {
            check_text("state of the call", anew, ANEW_LIMIT)?;
        }
        self.db()
            .write(move |conn| {
                let ParkCall { user, ticket, holder, anew, lasts } = call;
                Box::pin(async move {
                    let now = clock(conn).await?;
                    conn.run(
                        "INSERT INTO parked_calls (user_id, ticket, holder, state, anew, expires_at) \
                         VALUES ($1, $2, $3, 'waiting', $4, $5)",
                        args![user, ticket, holder, anew, later(now, lasts)],
                    )
                    .await
                    .map(drop)
                })
            })
            .await
    }

    /// Forgets calls that have waited for too long.
    pub async fn forget_parked(&self) -> Result<()> {
        let mut conn = self.db().reader().await?;
        let now = clock(&mut conn).await?;
        let old: Option<(i64,)> = conn
            .maybe("SELECT expires_at FROM parked_calls WHERE expires_at <= $1 LIMIT 1", args![now])
            .await?;
        drop(conn);
        if old.is_none() {
            return Ok(());
        }
        let forgetting = self
            .db()
            .write(move |conn| Box::pin(async move { conn.run(FORGET, args![now, BATCH]).await.map(drop) }));
        forgetting.await
    }

    /// An answer has come to this process; `None` if one has come before, or too much time has passed. Brought to its
    /// holder, the call is taken with that.
    pub async fn answer_parked(&self, user: &str, ticket: &str, process: &str) -> Result<Option<ParkedCall>> {
        let (user, ticket, process) = (user.to_owned(), ticket.to_owned(), process.to_owned());
        self.db()
            .write(move |conn| {
                Box::pin(async move {
                    let now = clock(conn).await?;
                    let row: Option<(String, Option<String>)> = conn
                        .maybe(
                            "UPDATE parked_calls SET state = CASE WHEN holder = $3 THEN 'taken' ELSE 'answered' END \
                             WHERE user_id = $1 AND ticket = $2 AND state = 'waiting' AND expires_at > $4 \
                             RETURNING holder, anew",
                            args![user, ticket, process, now],
                        )
                        .await?;
                    Ok(row.map(|(holder, anew)| ParkedCall { holder, anew }))
                })
            })
            .await
    }

    /// Takes a call whose answer was brought elsewhere, or whose holder does not take it; whether it is ours now.
    pub async fn take_parked(&self, user: &str, ticket: &str) -> Result<bool> {
        let (user, ticket) = (user.to_owned(), ticket.to_owned());
        self.db()
            .write(move |conn| {
                Box::pin(async move {
                    let taken = conn
                        .run(
                            "UPDATE parked_calls SET state = 'taken' \
                             WHERE user_id = $1 AND ticket = $2 AND state = 'answered'",
                            args![user, ticket],
                        )
                        .await?;
                    Ok(taken > 0)
                })
            })
            .await
    }
}
