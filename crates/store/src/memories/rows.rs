//! Memories as rows, and the statements that only read them.

use crate::areas::Memories;
use crate::db::{Conn, Sql, Statement, Value, args, from_row, listed};
use crate::error::{Error, ErrorKind, Result};
use crate::memories::{KindCount, Memory, MemoryList, MemoryStatus, check_time};
use crate::store::{Scope, check_name};

/// A memory, its number in the scope, and the number of its session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MemoryRow {
    pub(super) seq: u32,
    pub(super) session: u32,
    pub(super) memory: Memory,
}

macro_rules! columns {
    () => {
        "SELECT seq, session_ordinal, id, version, status, text, kind, tags, actor, session, writer, source, trust, \
         occurred_at, created_at, changed_at FROM agent_long_term_memory"
    };
}
pub(super) use columns;

/// Memories of a scope, by a condition that begins with `$3`.
macro_rules! select {
    ($rest:literal) => {
        concat!($crate::memories::rows::columns!(), " WHERE user_id = $1 AND agent = $2 AND ", $rest)
    };
}
pub(super) use select;

/// Memories of a scope by a list. SQLite gets the index: without statistics it assumes that a scope has ten rows, and
/// would read all of it.
macro_rules! select_listed {
    ($index:literal, $column:literal) => {
        $crate::db::Sql {
            sqlite: concat!(
                $crate::memories::rows::columns!(),
                " INDEXED BY ",
                $index,
                " WHERE user_id = $1 AND agent = $2 AND ",
                $column,
                " IN (SELECT value FROM json_each($3))"
            ),
            pg: concat!($crate::memories::rows::select!($column), " = ANY($3)"),
        }
    };
}
pub(super) use select_listed;

pub(super) const BY_ID: &str = select!("id = $3");
pub(super) const BY_IDS: Sql = select_listed!("memory_by_id", "id");
pub(super) const BY_SEQS: Sql = listed!(select!("seq"), "$3", "");
pub(super) const SAVED_AFTER: &str = select!("seq > $3 ORDER BY seq LIMIT +$4");

from_row! {
    MemoryRow {
        seq: number, session_number: number, id as String, version, status as String, text, kind, tags as String, actor,
        session, writer, source, trust, occurred_at, created_at, changed_at,
    } => {
        let unreadable =
            |what: &str| Error::new(ErrorKind::Corrupt, format!("the {what} of memory `{id}` cannot be read"));
        let status = MemoryStatus::from_name(&status).ok_or_else(|| unreadable("status"))?;
        let tags = serde_json::from_str(&tags).map_err(|error| unreadable("list of tags").because(error))?;
        let memory = Memory {
            id, version, status, text, kind, tags, actor, session, writer, source, trust, occurred_at, created_at,
            changed_at,
        };
        Ok(Self { seq, session: session_number, memory })
    }
}

pub(super) async fn fetch_all(
    conn: &mut Conn,
    sql: impl Statement,
    values: Vec<Value>,
) -> Result<Vec<MemoryRow>> {
    conn.fetch_all(sql, values).await
}

pub(super) async fn by_id(conn: &mut Conn, scope: &Scope, id: &str) -> Result<Option<MemoryRow>> {
    check_name("memory", id)?;
    Ok(fetch_all(conn, BY_ID, args![scope.user(), scope.agent(), id]).await?.pop())
}

pub(super) async fn expect(conn: &mut Conn, scope: &Scope, id: &str) -> Result<MemoryRow> {
    by_id(conn, scope, id).await?.ok_or_else(|| missing(id))
}

pub(super) async fn by_seqs(conn: &mut Conn, scope: &Scope, seqs: &[u32]) -> Result<Vec<MemoryRow>> {
    let seqs: Vec<i64> = seqs.iter().map(|seq| i64::from(*seq)).collect();
    fetch_all(conn, BY_SEQS, args![scope.user(), scope.agent(), seqs]).await
}

pub(super) async fn by_ids(conn: &mut Conn, scope: &Scope, ids: Vec<String>) -> Result<Vec<MemoryRow>> {
    fetch_all(conn, BY_IDS, args![scope.user(), scope.agent(), ids]).await
}

pub(super) fn missing(id: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("unknown memory `{id}`"))
        .hint("`embody memory list` shows the ids; `--user` and `--agent` select the user and the agent")
}

/// A number of the scope, which the table stores as a wider type.
pub(super) fn number(value: i64) -> Result<u32> {
    u32::try_from(value)
        .map_err(|_| Error::new(ErrorKind::Corrupt, format!("invalid memory number `{value}`")))
}

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
    /// Of any status.
    pub async fn get(self, scope: &Scope, id: &str) -> Result<Option<Memory>> {
        let kept = by_id(&mut self.store.reader().await?, scope, id).await?;
        Ok(kept.map(|kept| kept.memory))
    }

    /// By the time when they happened, newest first; of the same time the one saved last.
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
                let last = expect(&mut conn, scope, id).await?;
                (last.memory.occurred_at, i64::from(last.seq))
            }
        };
        let since = list.since.unwrap_or(i64::MIN);
        let mut values =
            args![scope.user(), scope.agent(), list.status.name(), since, before, before_seq, list.limit];
        let sql = if list.kind.is_some() { NEWEST_OF_KIND } else { NEWEST };
        values.extend(list.kind.as_ref().map(|kind| kind.into()));
        let kept = fetch_all(&mut conn, sql, values).await?;
        Ok(kept.into_iter().map(|kept| kept.memory).collect())
    }

    /// The number of active memories of each kind.
    pub async fn count_by_kind(self, scope: &Scope) -> Result<Vec<KindCount>> {
        let rows: Vec<(String, i64)> =
            self.store.fetch_all(COUNT, args![scope.user(), scope.agent()]).await?;
        let count = |(kind, memories)| KindCount { kind, memories: u64::try_from(memories).unwrap_or(0) };
        Ok(rows.into_iter().map(count).collect())
    }
}
