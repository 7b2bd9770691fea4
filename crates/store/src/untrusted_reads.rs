//! Who has read text that the owner did not write, and where it came from. A mark is kept for its writer, not for a
//! connection: coming back does not clear it. It counts for a day.

use serde::{Deserialize, Serialize};

use crate::db::args;
use crate::error::Result;
use crate::store::{Scope, Store, check_name};

/// How long a mark counts, in microseconds.
const COUNTS_MICROS: i64 = 24 * 60 * 60 * 1_000_000;
/// Origins that are kept for one writer: the latest.
const ORIGINS_LIMIT: i64 = 8;
/// The longest name of an origin, in characters.
const NAME_MAX_CHARS: usize = 120;

/// The trust of what a writer wrote after it had read text that the owner did not write.
pub const EXPOSED: &str = "exposed";

/// Where text that the owner did not write came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadOrigin {
    /// `BODY/TOOL`, `BODY/resource:URI`, `telegram:forward`, `memory` …
    pub origin: String,
    /// When it was read last, in microseconds since 1970.
    pub at: i64,
}

const MARK: &str = "INSERT INTO mind_exposures AS this (user_id, agent, writer, at) VALUES ($1, $2, $3, $4) \
     ON CONFLICT (user_id, agent, writer) DO UPDATE SET at = excluded.at WHERE this.at < excluded.at";
const ADD_ORIGIN: &str = "INSERT INTO mind_exposure_origins AS this (user_id, agent, writer, origin, at) \
     VALUES ($1, $2, $3, $4, $5) \
     ON CONFLICT (user_id, agent, writer, origin) DO UPDATE SET at = excluded.at WHERE this.at < excluded.at";
const PRUNE_ORIGINS: &str = "DELETE FROM mind_exposure_origins WHERE user_id = $1 AND agent = $2 AND writer = $3 \
     AND origin NOT IN (SELECT kept.origin FROM mind_exposure_origins AS kept WHERE kept.user_id = $1 \
     AND kept.agent = $2 AND kept.writer = $3 ORDER BY kept.at DESC, kept.origin LIMIT +$4)";
const ORIGINS: &str = "SELECT origin, at FROM mind_exposure_origins \
     WHERE user_id = $1 AND agent = $2 AND writer = $3 AND at > $4 ORDER BY at DESC, origin LIMIT +$5";

impl Store {
    /// Notes that this writer reads text of these origins at this time, in microseconds since 1970. A later mark stays.
    pub async fn record_untrusted_read(
        &self,
        scope: &Scope,
        writer: &str,
        origins: &[&str],
        at: i64,
    ) -> Result<()> {
        check_name("writer", writer)?;
        let (scope, writer) = (scope.clone(), writer.to_owned());
        let origins: Vec<String> = origins.iter().map(|origin| origin_name(origin)).collect();
        self.db()
            .write(move |conn| {
                Box::pin(async move {
                    let (user, agent) = (scope.user(), scope.agent());
                    // Those that mark the same writer at once wait for each other here.
                    conn.execute(MARK, args![user, agent, &writer, at]).await?;
                    for origin in &origins {
                        conn.execute(ADD_ORIGIN, args![user, agent, &writer, origin, at]).await?;
                    }
                    conn.execute(PRUNE_ORIGINS, args![user, agent, &writer, ORIGINS_LIMIT]).await.map(drop)
                })
            })
            .await
    }

    /// When this writer has last read it, if ever.
    pub async fn last_untrusted_read_at(&self, scope: &Scope, writer: &str) -> Result<Option<i64>> {
        let row: Option<(i64,)> = self
            .db()
            .reader()
            .await?
            .fetch_optional(
                "SELECT at FROM mind_exposures WHERE user_id = $1 AND agent = $2 AND writer = $3",
                args![scope.user(), scope.agent(), writer],
            )
            .await?;
        Ok(row.map(|(at,)| at))
    }

    /// Whether this writer has read it within a day before this time, in microseconds since 1970.
    pub async fn has_untrusted_read(&self, scope: &Scope, writer: &str, now: i64) -> Result<bool> {
        let marked = self.last_untrusted_read_at(scope, writer).await?;
        Ok(marked.is_some_and(|at| at > counts_after(now)))
    }

    /// Where what this writer has read within a day before this time came from, the latest first. Empty also if it is
    /// exposed and the origins are not known.
    pub async fn read_origins(&self, scope: &Scope, writer: &str, now: i64) -> Result<Vec<ReadOrigin>> {
        let known = args![scope.user(), scope.agent(), writer, counts_after(now), ORIGINS_LIMIT];
        let rows: Vec<(String, i64)> = self.db().reader().await?.fetch_all(ORIGINS, known).await?;
        Ok(rows.into_iter().map(|(origin, at)| ReadOrigin { origin, at }).collect())
    }
}

/// The name of an origin as it is kept and shown: one word, cut. Others have a part in it, and it must not read as a sentence.
pub fn origin_name(text: &str) -> String {
    let word = |c: char| if c.is_whitespace() || c.is_control() { '_' } else { c };
    let mut name: String = text.chars().map(word).take(NAME_MAX_CHARS).collect();
    if text.chars().nth(NAME_MAX_CHARS).is_some() {
        name.push('…');
    }
    name
}

fn counts_after(now: i64) -> i64 {
    now.saturating_sub(COUNTS_MICROS)
}
