//! Looking without searching: one memory, the newest, how many of each kind.

use crate::areas::Memories;
use crate::db::args;
use crate::error::{Error, Result};
use crate::memories::fields::{KindCount, Memory, MemoryList, check_time};
use crate::memories::rows::{self, select};
use crate::store::{Scope, check_name};

const MOST: u32 = 1000;

pub(super) const NEWEST: &str = select!(
    "status = $3 AND occurred_at >= $4 AND (occurred_at, seq) < ($5, $6) ORDER BY occurred_at DESC, seq DESC LIMIT +$7"
);
pub(super) const NEWEST_OF_KIND: &str = select!(
    "status = $3 AND occurred_at >= $4 AND (occurred_at, seq) < ($5, $6) AND kind = $8 \
     ORDER BY occurred_at DESC, seq DESC LIMIT +$7"
);
pub(super) const COUNT: &str = "SELECT kind, count(*) FROM agent_long_term_memory \
     WHERE user_id = $1 AND agent = $2 AND status = 'active' GROUP BY kind ORDER BY kind";

impl Memories<'_> {
    /// The memory of this id, whatever its status.
    pub async fn get(self, scope: &Scope, id: &str) -> Result<Option<Memory>> {
        let kept = rows::by_id(&mut self.store.reader().await?, scope, id).await?;
        Ok(kept.map(|kept| kept.memory))
    }

    /// Memories by when they happened, newest first; of the same moment the one saved last.
    pub async fn list(self, scope: &Scope, list: &MemoryList) -> Result<Vec<Memory>> {
        list.since.map_or(Ok(()), |since| check_time("since", since))?;
        list.kind.as_deref().map_or(Ok(()), |kind| check_name("kind", kind))?;
        if list.limit > MOST {
            return Err(Error::invalid(format!(
                "the limit is `{}`; at most {MOST} memories are listed",
                list.limit
            )));
        }
        let mut conn = self.store.reader().await?;
        let (before, before_seq) = match &list.after {
            None => (i64::MAX, i64::MAX),
            Some(id) => {
                let last = rows::expect(&mut conn, scope, id).await?;
                (last.memory.occurred_at, i64::from(last.seq))
            }
        };
        let since = list.since.unwrap_or(i64::MIN);
        let mut values =
            args![scope.user(), scope.agent(), list.status.name(), since, before, before_seq, list.limit];
        let sql = if list.kind.is_some() { NEWEST_OF_KIND } else { NEWEST };
        values.extend(list.kind.as_ref().map(|kind| kind.into()));
        let kept = rows::all(&mut conn, sql, values).await?;
        Ok(kept.into_iter().map(|kept| kept.memory).collect())
    }

    /// How many active memories there are of each kind, by kind.
    pub async fn count_by_kind(self, scope: &Scope) -> Result<Vec<KindCount>> {
        let rows: Vec<(String, i64)> =
            self.store.reader().await?.fetch_all(COUNT, args![scope.user(), scope.agent()]).await?;
        let count = |(kind, memories)| KindCount { kind, memories: u64::try_from(memories).unwrap_or(0) };
        Ok(rows.into_iter().map(count).collect())
    }
}
