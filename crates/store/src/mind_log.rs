//! The log of what a mind was told, and the commitments and proposals of each entry, written together.

use crate::areas::MindLog;
use crate::commitments::{self, Commitment, CommitmentStatus, NewCommitment};
use crate::db::{Conn, args, flag, from_row, transaction};
use crate::error::{Error, Result};
use crate::proposals::{self, NewProposal, Proposal};
use crate::store::{Scope, check_name, check_text};

const TEXT_LIMIT: usize = 64 * 1024;
/// Most entries of one scope.
const MOST_ENTRIES: i64 = 20_000;
const MOST_READ: u32 = 1000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewLogEntry {
    pub at: i64,
    pub session: Option<String>,
    pub kind: String,
    /// Authenticated name.
    pub writer: String,
    /// How far the writer is trusted, as the connection says.
    pub trust: String,
    /// Whether it reads like an order: then only the owner sees it.
    pub held: bool,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// Number in the scope, ascending with time.
    pub seq: i64,
    pub entry: NewLogEntry,
}

from_row! {
    LogEntry { seq, at, session, kind, writer, trust, held: flag, text } => {
        Ok(Self { seq, entry: NewLogEntry { at, session, kind, writer, trust, held, text } })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewReflection {
    pub entry: NewLogEntry,
    pub commitments: Vec<NewCommitment>,
    /// Open commitments that it settles, by id.
    pub settled: Vec<(String, CommitmentStatus)>,
    /// Changes of the standing instructions that it asks for.
    pub proposals: Vec<NewProposal>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReflectionResult {
    pub seq: i64,
    /// New ones, and existing ones that say the same.
    pub commitments: Vec<Commitment>,
    /// Without those that were settled concurrently.
    pub settled: Vec<Commitment>,
    /// New ones, and existing ones that say the same.
    pub proposals: Vec<Proposal>,
    /// Commitments and proposals rejected because too many are open.
    pub refused: usize,
}

impl MindLog<'_> {
    /// Appends an entry with its commitments and proposals. A repeated commitment or proposal is the existing one.
    pub async fn append(self, scope: &Scope, new: NewReflection) -> Result<ReflectionResult> {
        check(&new.entry)?;
        new.commitments.iter().try_for_each(commitments::check)?;
        new.proposals.iter().try_for_each(proposals::check)?;
        let scope = scope.clone();
        transaction!(self.store, |conn| add(conn, &scope, new).await)
    }

    /// Newest first, without held entries.
    pub async fn list(self, scope: &Scope, limit: u32) -> Result<Vec<LogEntry>> {
        self.log_entries(scope, false, limit).await
    }

    /// Held entries, newest first. For the owner only.
    pub async fn list_held(self, scope: &Scope, limit: u32) -> Result<Vec<LogEntry>> {
        self.log_entries(scope, true, limit).await
    }

    async fn log_entries(self, scope: &Scope, held: bool, limit: u32) -> Result<Vec<LogEntry>> {
        if limit > MOST_READ {
            return Err(Error::invalid(format!(
                "the limit is `{limit}`; at most {MOST_READ} entries are read"
            )));
        }
        let sql = "SELECT seq, at, session, kind, writer, trust, held, text FROM mind_log \
             WHERE user_id = $1 AND agent = $2 AND held = $3 ORDER BY seq DESC LIMIT +$4";
        self.store.fetch_all(sql, args![scope.user(), scope.agent(), held, limit]).await
    }
}

fn check(entry: &NewLogEntry) -> Result<()> {
    check_text("text of the reflection", &entry.text, TEXT_LIMIT)?;
    check_name("kind", &entry.kind)?;
    check_name("writer", &entry.writer)?;
    check_name("trust", &entry.trust)?;
    entry.session.as_deref().map_or(Ok(()), |session| check_name("session", session))
}

async fn add(conn: &mut Conn, scope: &Scope, new: NewReflection) -> Result<ReflectionResult> {
    let NewReflection { entry, commitments: said, settled: closed, proposals: wishes } = new;
    let seq = append(conn, scope, &entry).await?;
    let mut settled = Vec::new();
    for (id, status) in closed {
        settled.extend(commitments::settle(conn, scope, &id, status, entry.at).await?);
    }
    let (mut commitments, mut proposals, mut refused) = (Vec::new(), Vec::new(), 0);
    for new in said {
        match commitments::add(conn, scope, &entry, new).await? {
            Some(kept) => commitments.push(kept),
            None => refused += 1,
        }
    }
    for new in wishes {
        match proposals::add(conn, scope, &entry, new).await? {
            Some(kept) => proposals.push(kept),
            None => refused += 1,
        }
    }
    Ok(ReflectionResult { seq, commitments, settled, proposals, refused })
}

/// The number comes from the row of the scope, which stays locked until the transaction ends.
async fn append(conn: &mut Conn, scope: &Scope, entry: &NewLogEntry) -> Result<i64> {
    let sql = "INSERT INTO mind_log_scopes AS this (user_id, agent, last_seq, last_at) VALUES ($1, $2, 1, $3) \
         ON CONFLICT (user_id, agent) DO UPDATE SET last_seq = this.last_seq + 1, \
         last_at = CASE WHEN this.last_at > excluded.last_at THEN this.last_at ELSE excluded.last_at END \
         RETURNING last_seq";
    let (seq,): (i64,) = conn.fetch_one(sql, args![scope.user(), scope.agent(), entry.at]).await?;
    let sql = "INSERT INTO mind_log (user_id, agent, seq, at, session, kind, writer, trust, held, text) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
    let values = args![
        scope.user(),
        scope.agent(),
        seq,
        entry.at,
        entry.session.as_deref(),
        &entry.kind,
        &entry.writer,
        &entry.trust,
        i64::from(entry.held),
        &entry.text
    ];
    conn.execute(sql, values).await?;
    if seq > MOST_ENTRIES {
        // Each entry deletes one, so those before it are gone already, or were restored.
        let sql = "DELETE FROM mind_log WHERE user_id = $1 AND agent = $2 AND seq = $3 AND pinned = 0";
        conn.execute(sql, args![scope.user(), scope.agent(), seq - MOST_ENTRIES]).await?;
    }
    Ok(seq)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{DatabaseUrl, Store};

    #[tokio::test]
    async fn a_full_log_lets_the_oldest_go_but_not_what_was_brought_back() {
        let store = Store::open(DatabaseUrl::Memory).await.unwrap();
        let scope = Scope::new("ann", "assistant").unwrap();
        let append = async |text: &str| {
            let entry = NewLogEntry {
                at: 1,
                session: None,
                kind: "ambient".into(),
                writer: "host".into(),
                trust: "agent".into(),
                held: false,
                text: text.into(),
            };
            let new = NewReflection { entry, commitments: vec![], settled: vec![], proposals: vec![] };
            store.mind_log().append(&scope, new).await.unwrap();
        };
        for text in ["pinned", "old", "newer"] {
            append(text).await;
        }
        let fill = async |conn: &mut Conn| {
            conn.execute("UPDATE mind_log SET pinned = 1 WHERE seq = 1", args![]).await?;
            conn.execute("UPDATE mind_log_scopes SET last_seq = $1", args![MOST_ENTRIES]).await
        };
        store.db().write(move |conn| Box::pin(fill(conn))).await.unwrap();
        for text in ["full", "fuller"] {
            append(text).await;
        }
        let left = store.mind_log().list(&scope, 9).await.unwrap();
        let texts: Vec<&str> = left.iter().map(|entry| entry.entry.text.as_str()).collect();
        assert_eq!(texts, ["fuller", "full", "newer", "pinned"]);
    }
}
