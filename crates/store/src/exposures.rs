//! Who has read text that the owner did not write. A mark is kept for its writer, not for a connection: coming back does not
//! clear it. It counts for a day.

use crate::db::args;
use crate::error::Result;
use crate::store::{Scope, Store, check_name};

/// How long a mark counts, in microseconds.
const COUNTS_MICROS: i64 = 24 * 60 * 60 * 1_000_000;

impl Store {
    /// Notes that this writer has read it at this time, in microseconds since 1970. A later mark stays.
    pub async fn mark_exposed(&self, scope: &Scope, writer: &str, at: i64) -> Result<()> {
        check_name("writer", writer)?;
        let (scope, writer) = (scope.clone(), writer.to_owned());
        self.db()
            .write(move |conn| {
                Box::pin(async move {
                    conn.run(
                        "INSERT INTO mind_exposures AS this (user_id, agent, writer, at) VALUES ($1, $2, $3, $4) \
                         ON CONFLICT (user_id, agent, writer) DO UPDATE SET at = excluded.at \
                         WHERE this.at < excluded.at",
                        args![scope.user(), scope.agent(), &writer, at],
                    )
                    .await
                    .map(drop)
                })
            })
            .await
    }

    /// When this writer has last read it, if ever.
    pub async fn exposed_at(&self, scope: &Scope, writer: &str) -> Result<Option<i64>> {
        let row: Option<(i64,)> = self
            .db()
            .reader()
            .await?
            .maybe(
                "SELECT at FROM mind_exposures WHERE user_id = $1 AND agent = $2 AND writer = $3",
                args![scope.user(), scope.agent(), writer],
            )
            .await?;
        Ok(row.map(|(at,)| at))
    }

    /// Whether this writer has read it within a day before this time, in microseconds since 1970.
    pub async fn is_exposed(&self, scope: &Scope, writer: &str, now: i64) -> Result<bool> {
        let marked = self.exposed_at(scope, writer).await?;
        Ok(marked.is_some_and(|at| at > now.saturating_sub(COUNTS_MICROS)))
    }
}
