//! Memories that forbid or restrict something: which they are is the mind's judgement, kept here so that no call needs a
//! search for them. Whether they still count is read from the memories themselves, every time.

use crate::db::{Conn, Sql, Value, args};
use crate::error::{Error, ErrorKind, Result};
use crate::store::{Scope, Store};

/// More than this is several calls.
const MOST: u32 = 1000;

/// The beginnings of memories that are in a list: a sentence that restricts something stands early in a text, or nobody
/// would find it either. SQLite is told by the join which table to begin with.
macro_rules! memories {
    ($list:literal, $rest:literal) => {
        concat!(
            "SELECT m.seq, m.id, m.version, m.occurred_at, m.trust, substr(m.text, 1, 4096) AS beginning FROM ",
            $list,
            " c CROSS JOIN agent_long_term_memory m WHERE c.user_id = $1 AND c.agent = $2 \
             AND m.user_id = $1 AND m.agent = $2 AND m.seq = c.seq",
            $rest
        )
    };
}

/// The newest ones, and the newest of those that nobody has looked at. They come in one row, as JSON: hundreds of rows on
/// their own cost more than all that is done with them.
macro_rules! newest {
    ($list:literal, $array:literal) => {
        concat!(
            "SELECT CAST(",
            $list,
            "(",
            $array,
            "(seq, id, version, occurred_at, trust, beginning)) AS TEXT) FROM (SELECT * FROM (",
            memories!("mind_cautions", " AND m.status = 'active' ORDER BY c.seq DESC LIMIT $3"),
            ") known UNION SELECT * FROM (SELECT seq, id, version, occurred_at, trust, substr(text, 1, 4096) AS beginning \
             FROM agent_long_term_memory WHERE user_id = $1 AND agent = $2 AND seq > $5 AND status = 'active' \
             ORDER BY seq DESC LIMIT $4) fresh) found"
        )
    };
}

pub(crate) const NEWEST: Sql =
    Sql { lite: newest!("json_group_array", "json_array"), pg: newest!("json_agg", "json_build_array") };
pub(crate) const AFTER: &str = "SELECT seq, id, version, occurred_at, trust, substr(text, 1, 4096) FROM agent_long_term_memory \
     WHERE user_id = $1 AND agent = $2 AND seq > $3 ORDER BY seq LIMIT $4";
pub(crate) const AGAIN: &str = memories!("mind_cautions", " AND c.version = 0 ORDER BY c.seq LIMIT $3");
/// Only if it is still the text that was looked at.
const REMOVE: &str = "DELETE FROM mind_cautions WHERE user_id = $1 AND agent = $2 AND seq = $3 AND EXISTS \
     (SELECT 1 FROM agent_long_term_memory m WHERE m.user_id = $1 AND m.agent = $2 AND m.seq = $3 AND m.version = $4)";
const FAR: &str = "SELECT COALESCE((SELECT seq FROM mind_caution_marks WHERE user_id = $1 AND agent = $2), 0), \
     COALESCE((SELECT last_seq FROM memory_scopes WHERE user_id = $1 AND agent = $2), 0)";

/// A memory that may restrict something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanCandidate {
    /// Its number in the scope.
    pub seq: i64,
    /// Its id.
    pub id: String,
    /// Its version.
    pub version: i64,
    /// When it happened, in microseconds since 1970.
    pub occurred_at: i64,
    /// How far its writer was trusted.
    pub trust: String,
    /// The beginning of its text.
    pub text: String,
}

/// What restricts a scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cautions {
    /// Active memories that restrict something, and the newest ones that were not looked at yet; newest first.
    pub memories: Vec<ScanCandidate>,
    /// How many memories were never looked at, those above included.
    pub unscanned: u64,
    /// How many memories were ever saved.
    pub saved: u64,
}

/// Memories that were looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CautionScan {
    /// Every memory up to this number has been looked at.
    pub up_to: i64,
    /// Those among them that restrict something, with the version that does.
    pub restricting: Vec<(i64, i64)>,
    /// Those that do not, with the version that does not.
    pub harmless: Vec<(i64, i64)>,
}

impl Store {
    /// The newest active memories that restrict something, at most `limit`, and up to `fresh` that nobody looked at yet.
    pub async fn cautions(&self, scope: &Scope, limit: u32, fresh: u32) -> Result<Cautions> {
        let mut conn = self.db().reader().await?;
        let (seen, last): (i64, i64) = conn.one(FAR, args![scope.user(), scope.agent()]).await?;
        let values = args![scope.user(), scope.agent(), limit.min(MOST), fresh.min(MOST), seen];
        let (rows,): (Option<String>,) = conn.one(NEWEST, values).await?;
        let unreadable = |error| Error::new(ErrorKind::Other, "the cautions cannot be read").because(error);
        let rows: Vec<Row> = match rows.as_deref() {
            None | Some("") => Vec::new(),
            Some(rows) => serde_json::from_str(rows).map_err(unreadable)?,
        };
        let mut memories: Vec<ScanCandidate> = rows.into_iter().map(candidate).collect();
        memories.sort_by_key(|memory| std::cmp::Reverse(memory.seq));
        let positive = |count: i64| u64::try_from(count).unwrap_or(0);
        Ok(Cautions { memories, unscanned: positive(last - seen), saved: positive(last) })
    }

    /// Memories that nobody looked at yet, whatever their status, in the order in which they were saved; after them
    /// those that were rewritten since.
    pub async fn unscanned_memories(&self, scope: &Scope, limit: u32) -> Result<Vec<ScanCandidate>> {
        let limit = limit.min(MOST);
        let mut conn = self.db().reader().await?;
        let (seen, _): (i64, i64) = conn.one(FAR, args![scope.user(), scope.agent()]).await?;
        let values = args![scope.user(), scope.agent(), seen, limit];
        let mut found = candidates(&mut conn, AFTER, values).await?;
        let values = args![scope.user(), scope.agent(), limit];
        found.extend(candidates(&mut conn, AGAIN, values).await?);
        Ok(found)
    }

    /// Notes which memories restrict something. Scans of two processes may overlap: the mark never goes back.
    pub async fn note_cautions(&self, scope: &Scope, scan: CautionScan) -> Result<()> {
        if scan.restricting.len() + scan.harmless.len() > 2 * MOST as usize {
            return Err(Error::invalid(format!(
                "{} cautions are too many at once; {} are allowed",
                scan.restricting.len() + scan.harmless.len(),
                2 * MOST
            )));
        }
        let scope = scope.clone();
        self.db().write(move |conn| Box::pin(async move { note(conn, &scope, scan).await })).await
    }
}

/// A memory was rewritten: what was known of it counts no more.
pub(crate) async fn look_again(conn: &mut Conn, scope: &Scope, seq: i64) -> Result<()> {
    conn.run(
        "INSERT INTO mind_cautions (user_id, agent, seq, version) VALUES ($1, $2, $3, 0) \
         ON CONFLICT (user_id, agent, seq) DO UPDATE SET version = 0",
        args![scope.user(), scope.agent(), seq],
    )
    .await
    .map(drop)
}

async fn note(conn: &mut Conn, scope: &Scope, scan: CautionScan) -> Result<()> {
    conn.run(
        "INSERT INTO mind_caution_marks AS this (user_id, agent, seq) VALUES ($1, $2, $3) \
         ON CONFLICT (user_id, agent) DO UPDATE \
         SET seq = CASE WHEN this.seq > excluded.seq THEN this.seq ELSE excluded.seq END",
        args![scope.user(), scope.agent(), scan.up_to],
    )
    .await?;
    for (seq, version) in scan.harmless {
        conn.run(REMOVE, args![scope.user(), scope.agent(), seq, version]).await?;
    }
    if scan.restricting.is_empty() {
        return Ok(());
    }
    let rows = scan.restricting.into_iter();
    let rows = rows.map(|(seq, version)| args![scope.user(), scope.agent(), seq, version]);
    conn.insert_rows(
        "INSERT INTO mind_cautions (user_id, agent, seq, version)",
        rows.collect(),
        "ON CONFLICT (user_id, agent, seq) DO UPDATE SET version = excluded.version",
    )
    .await
}

async fn candidates(conn: &mut Conn, sql: &'static str, values: Vec<Value>) -> Result<Vec<ScanCandidate>> {
    let rows: Vec<Row> = conn.all(sql, values).await?;
    Ok(rows.into_iter().map(candidate).collect())
}

type Row = (i64, String, i64, i64, String, String);

fn candidate((seq, id, version, occurred_at, trust, text): Row) -> ScanCandidate {
    ScanCandidate { seq, id, version, occurred_at, trust, text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Place;

    /// SQLite plans without statistics: it must not read a whole scope for a few rows of it.
    #[tokio::test]
    async fn no_statement_walks_through_a_whole_scope() {
        let store = Store::open(Place::Memory).await.unwrap();
        let mut conn = store.db().reader().await.unwrap();
        for sql in [NEWEST.lite, AFTER, AGAIN, REMOVE, FAR] {
            let explained: &'static str = format!("EXPLAIN QUERY PLAN {sql}").leak();
            let plan: Vec<(i64, i64, i64, String)> = conn.all(explained, args![]).await.unwrap();
            let walks = |step: &str| {
                step.starts_with("SCAN agent_long_term_memory")
                    || step.contains("SEARCH m ") && !step.contains("seq=?")
                    || step.contains("SEARCH agent_long_term_memory") && !step.contains("seq>?")
            };
            assert!(!plan.iter().any(|(.., step)| walks(step)), "{sql}\n{plan:#?}");
        }
    }
}
