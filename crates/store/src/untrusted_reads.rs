//! Which writers have read text that the owner did not write, and where it came from. A mark belongs to the writer,
//! not to a connection: reconnecting does not clear it. It counts for a day.

use std::borrow::Cow;
use std::sync::Arc;

use embody_text::visible::is_hidden;
use serde::{Deserialize, Serialize};

use crate::areas::UntrustedReads;
use crate::db::{Conn, RetriableWrite, args, from_row, transaction};
use crate::error::Result;
use crate::store::{Scope, check_name};

/// How long a mark counts, in microseconds.
const COUNTS_MICROS: i64 = 24 * 60 * 60 * 1_000_000;
/// Most origins of one writer: the latest.
pub const ORIGINS_LIMIT: usize = 8;
/// An equal mark is not written again within this time, in microseconds.
const FRESH_MICROS: i64 = 60 * 1_000_000;
/// Separates a body and the URI of its resource in the name of an origin.
const RESOURCE: &str = "/resource:";
const NAME_MAX_CHARS: usize = 120;

/// The trust of text that a writer wrote after it had read untrusted text.
pub const EXPOSED: &str = "exposed";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadOrigin {
    /// `BODY/TOOL`, `BODY/resource:URI`, `telegram:forward`, `memory` …
    pub origin: String,
    /// Last time it was read.
    pub at: i64,
}

from_row! { ReadOrigin { origin, at } }

impl ReadOrigin {
    pub fn new(origin: &str, at: i64) -> Self {
        Self { origin: origin_name(origin), at }
    }

    /// Whether it still counts at this time, in microseconds since 1970.
    pub fn counts(&self, now: i64) -> bool {
        self.at > counts_after(now)
    }
}

const MARK: &str = "INSERT INTO mind_exposures AS this (user_id, agent, writer, at) VALUES ($1, $2, $3, $4) \
     ON CONFLICT (user_id, agent, writer) DO UPDATE SET at = excluded.at WHERE this.at < excluded.at";
const ADD_ORIGIN: &str = "INSERT INTO untrusted_read_origins AS this (user_id, agent, writer, origin, at) \
     VALUES ($1, $2, $3, $4, $5) \
     ON CONFLICT (user_id, agent, writer, origin) DO UPDATE SET at = excluded.at WHERE this.at < excluded.at";
const PRUNE_ORIGINS: &str = "DELETE FROM untrusted_read_origins WHERE user_id = $1 AND agent = $2 AND writer = $3 \
     AND origin NOT IN (SELECT kept.origin FROM untrusted_read_origins AS kept WHERE kept.user_id = $1 \
     AND kept.agent = $2 AND kept.writer = $3 ORDER BY kept.at DESC, kept.origin LIMIT +$4)";
const ORIGINS: &str = "SELECT origin, at FROM untrusted_read_origins \
     WHERE user_id = $1 AND agent = $2 AND writer = $3 AND at > $4 ORDER BY at DESC, origin LIMIT +$5";

impl UntrustedReads<'_> {
    /// Records that this writer reads text of these origins at this time, in microseconds since 1970. A later mark
    /// stays. An equal mark that is not older than a minute is not written again.
    pub async fn record(self, scope: &Scope, writer: &str, origins: &[&str], at: i64) -> Result<()> {
        check_name("writer", writer)?;
        let reads = reads(origins, at);
        if self.is_recorded(scope, writer, &reads, at).await? {
            return Ok(());
        }
        let (scope, writer) = (scope.clone(), writer.to_owned());
        transaction!(self.store, |conn| record(conn, &scope, &writer, &reads, at).await)
    }

    /// The same for origins with the times at which they were read, without comparing them with the stored ones.
    pub async fn record_origins(self, scope: &Scope, writer: &str, reads: Vec<ReadOrigin>) -> Result<()> {
        check_name("writer", writer)?;
        let Some(at) = reads.iter().map(|read| read.at).max() else { return Ok(()) };
        let (scope, writer) = (scope.clone(), writer.to_owned());
        transaction!(self.store, |conn| record(conn, &scope, &writer, &reads, at).await)
    }

    /// Records an origin with the next commit, without waiting for it, for a writer that is marked already; the next
    /// mark prunes. Waits only while too many other writes are not durable.
    pub async fn record_origin_deferred(self, scope: &Scope, writer: &str, read: ReadOrigin) -> Result<()> {
        check_name("writer", writer)?;
        let bytes = read.origin.len();
        let known = Arc::new((scope.clone(), writer.to_owned(), read));
        let work: RetriableWrite = Box::new(move |conn| {
            let known = Arc::clone(&known);
            Box::pin(async move {
                // It shares a transaction with other writes, so it does not lock the mark.
                let (scope, writer, read) = &*known;
                conn.execute(ADD_ORIGIN, args![scope.user(), scope.agent(), writer, &read.origin, read.at])
                    .await
                    .map(drop)
            })
        });
        self.store.db().chained().write_deferred(Vec::new(), work, bytes).await
    }

    /// Whether an equal recent mark exists. An origin with many later ones does not count: it would be pruned next.
    async fn is_recorded(self, scope: &Scope, writer: &str, reads: &[ReadOrigin], at: i64) -> Result<bool> {
        let fresh = at.saturating_sub(FRESH_MICROS);
        if self.last_at(scope, writer).await?.is_none_or(|marked| marked < fresh) {
            return Ok(false);
        }
        let known = self.origins(scope, writer, at).await?;
        Ok(reads.iter().all(|read| {
            let stored = known.iter().find(|known| known.origin == read.origin);
            stored.is_some_and(|stored| {
                let later = known.iter().filter(|known| known.at > stored.at).count();
                stored.at >= fresh && later < ORIGINS_LIMIT / 2
            })
        }))
    }

    /// When this writer last read untrusted text.
    pub async fn last_at(self, scope: &Scope, writer: &str) -> Result<Option<i64>> {
        let sql = "SELECT at FROM mind_exposures WHERE user_id = $1 AND agent = $2 AND writer = $3";
        let row: Option<(i64,)> =
            self.store.fetch_optional(sql, args![scope.user(), scope.agent(), writer]).await?;
        Ok(row.map(|(at,)| at))
    }

    /// Whether this writer read untrusted text within a day before this time, in microseconds since 1970.
    pub async fn has_recent(self, scope: &Scope, writer: &str, now: i64) -> Result<bool> {
        let marked = self.last_at(scope, writer).await?;
        Ok(marked.is_some_and(|at| at > counts_after(now)))
    }

    /// The origins that this writer read within a day before this time, the latest first. Empty too if the writer is
    /// marked and the origins are not known.
    pub async fn origins(self, scope: &Scope, writer: &str, now: i64) -> Result<Vec<ReadOrigin>> {
        let known = args![scope.user(), scope.agent(), writer, counts_after(now), ORIGINS_LIMIT as i64];
        self.store.fetch_all(ORIGINS, known).await
    }
}

/// Each once, up to the limit.
fn reads(origins: &[&str], at: i64) -> Vec<ReadOrigin> {
    let mut reads: Vec<ReadOrigin> = Vec::new();
    for origin in origins {
        let read = ReadOrigin::new(origin, at);
        if reads.len() < ORIGINS_LIMIT && !reads.contains(&read) {
            reads.push(read);
        }
    }
    reads
}

async fn record(conn: &mut Conn, scope: &Scope, writer: &str, reads: &[ReadOrigin], at: i64) -> Result<()> {
    let (user, agent) = (scope.user(), scope.agent());
    // Transactions that mark the same writer wait for each other here.
    conn.execute(MARK, args![user, agent, writer, at]).await?;
    for read in reads {
        conn.execute(ADD_ORIGIN, args![user, agent, writer, &read.origin, read.at]).await?;
    }
    conn.execute(PRUNE_ORIGINS, args![user, agent, writer, ORIGINS_LIMIT as i64]).await.map(drop)
}

/// The stored name of an origin: one visible word, truncated, without the parts of a URI that may contain secrets. It
/// is partly controlled by others, and must not read as a sentence.
fn origin_name(text: &str) -> String {
    let text = without_secrets(text);
    let word = |c: char| if c.is_whitespace() || c.is_control() || is_hidden(c) { '_' } else { c };
    let mut name: String = text.chars().map(word).take(NAME_MAX_CHARS).collect();
    if text.chars().nth(NAME_MAX_CHARS).is_some() {
        name.push('…');
    }
    name
}

/// `BODY/resource:URI` without the user information, the query and the fragment of the URI; anything else as it is.
fn without_secrets(text: &str) -> Cow<'_, str> {
    let Some((body, uri)) = text.split_once(RESOURCE) else { return Cow::Borrowed(text) };
    let uri = uri.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = uri.split_once("//") else {
        return Cow::Owned(format!("{body}{RESOURCE}{uri}"));
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit('@').next().unwrap_or_default();
    Cow::Owned(format!("{body}{RESOURCE}{scheme}//{host}{path}"))
}

fn counts_after(now: i64) -> i64 {
    now.saturating_sub(COUNTS_MICROS)
}
