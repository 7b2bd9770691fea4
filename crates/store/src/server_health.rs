//! The last contact with each server, of any process: whether it worked, and the last error. No user owns a row.

use std::time::Duration;

use crate::areas::ServerHealthRecords;
use crate::db::{args, from_row, transaction};
use crate::error::Result;
use crate::leases::earlier;
use crate::store::{check_name, now};

/// The most characters of an error that are kept.
const ERROR_CHARS: usize = 500;
/// A configuration has at most 64 bodies; rows of removed ones are deleted with them.
const LISTED_MAX: i64 = 1000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerHealth {
    pub body: String,
    /// Whether the last contact worked.
    pub is_ok: bool,
    pub checked_at: i64,
    /// The last error; kept after a recovery.
    pub error: Option<String>,
    pub error_at: Option<i64>,
}

from_row! {
    ServerHealth { body, is_ok as i64, checked_at, error, error_at } => {
        Ok(Self { body, is_ok: is_ok != 0, checked_at, error, error_at })
    }
}

impl ServerHealthRecords<'_> {
    /// Records a contact with this server; `error` says why it did not work.
    pub async fn record(self, body: &str, error: Option<&str>) -> Result<()> {
        check_name("body", body)?;
        let (body, at) = (body.to_owned(), now());
        let error = cut(error);
        let error_at = error.is_some().then_some(at);
        transaction!(self.store, |conn| {
            let sql = "INSERT INTO server_health (body, is_ok, checked_at, error, error_at) \
                 VALUES ($1, $2, $3, $4, $5) ON CONFLICT (body) DO UPDATE SET is_ok = excluded.is_ok, \
                 checked_at = excluded.checked_at, error = coalesce(excluded.error, server_health.error), \
                 error_at = coalesce(excluded.error_at, server_health.error_at)";
            conn.execute(sql, args![body, error.is_none(), at, error, error_at]).await.map(drop)
        })
    }

    /// The same, unless the last contact had the same result less than `refresh` ago.
    pub async fn record_news(self, body: &str, error: Option<&str>, refresh: Duration) -> Result<()> {
        let sql = "SELECT checked_at FROM server_health WHERE body = $1 AND is_ok = $2 AND checked_at > $3 \
             AND (is_ok = 1 OR error = $4)";
        let since = earlier(now(), refresh);
        let text = cut(error).unwrap_or_default();
        let known: Option<(i64,)> =
            self.store.fetch_optional(sql, args![body, error.is_none(), since, text]).await?;
        match known {
            Some(_) => Ok(()),
            None => self.record(body, error).await,
        }
    }

    pub async fn list(self) -> Result<Vec<ServerHealth>> {
        let sql =
            "SELECT body, is_ok, checked_at, error, error_at FROM server_health ORDER BY body LIMIT +$1";
        self.store.fetch_all(sql, args![LISTED_MAX]).await
    }

    /// Removes the record of a server that is no longer configured.
    pub async fn remove(self, body: &str) -> Result<()> {
        let body = body.to_owned();
        transaction!(self.store, |conn| {
            conn.execute("DELETE FROM server_health WHERE body = $1", args![body]).await.map(drop)
        })
    }
}

fn cut(error: Option<&str>) -> Option<String> {
    error.map(|error| error.chars().take(ERROR_CHARS).collect())
}
