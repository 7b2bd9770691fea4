//! Commitments that people made, until they are done, dropped or lapsed. Nothing is deleted.

use crate::areas::Commitments;
use crate::audit::Action;
use crate::db::{Conn, args, audited, from_row, names};
use crate::error::{Error, ErrorKind, Result};
use crate::mind_log::NewLogEntry;
use crate::store::{Scope, check_name, check_text, new_id};

const TEXT_LIMIT: usize = 4 * 1024;
/// Most open commitments of a scope.
const MOST_OPEN: i64 = 2000;
const MOST_READ: u32 = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitmentStatus {
    /// Not done, overdue or not.
    Open,
    Done,
    Dropped,
    /// Overdue for so long that it is no longer expected.
    Lapsed,
}

impl CommitmentStatus {
    pub const ALL: [Self; 4] = [Self::Open, Self::Done, Self::Dropped, Self::Lapsed];
}

names! {
    pub CommitmentStatus { Open = "open", Done = "done", Dropped = "dropped", Lapsed = "lapsed" }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCommitment {
    pub who: String,
    pub text: String,
    /// For comparison: two open commitments of one person with the same words are one.
    pub words: String,
    pub due_at: Option<i64>,
    pub sentence: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commitment {
    pub id: String,
    pub status: CommitmentStatus,
    pub said: NewCommitment,
    pub session: Option<String>,
    pub writer: String,
    pub trust: String,
    pub created_at: i64,
    pub changed_at: i64,
}

from_row! {
    Commitment {
        id as String, status: |name: String| read_status(&id, &name), who, text, words, due_at, sentence, session,
        writer, trust, created_at, changed_at,
    } => {
        let said = NewCommitment { who, text, words, due_at, sentence };
        Ok(Self { id, status, said, session, writer, trust, created_at, changed_at })
    }
}

fn read_status(id: &str, name: &str) -> Result<CommitmentStatus> {
    CommitmentStatus::from_name(name).ok_or_else(|| {
        Error::new(ErrorKind::Corrupt, format!("the status `{name}` of commitment `{id}` cannot be read"))
    })
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, status, who, text, words, due_at, sentence, session, writer, trust, created_at, changed_at \
             FROM commitments WHERE user_id = $1 AND agent = $2 AND ",
            $rest
        )
    };
}
const LIST: &str =
    select!("status = $3 ORDER BY CASE WHEN due_at IS NULL THEN 1 ELSE 0 END, due_at, id DESC LIMIT +$4");
const ONE: &str = select!("id = $3");
const ALIKE: &str = select!("status = 'open' AND who = $3 AND words = $4 ORDER BY id LIMIT 50");

impl Commitments<'_> {
    /// Commitments of one status: those with a time first, the earliest before; then the newest.
    pub async fn list(self, scope: &Scope, status: CommitmentStatus, limit: u32) -> Result<Vec<Commitment>> {
        if limit > MOST_READ {
            return Err(Error::invalid(format!(
                "the limit is `{limit}`; at most {MOST_READ} commitments are read"
            )));
        }
        let values = args![scope.user(), scope.agent(), status.name(), limit];
        self.store.fetch_all(LIST, values).await
    }

    pub async fn count(self, scope: &Scope, status: CommitmentStatus) -> Result<i64> {
        count(&mut self.store.reader().await?, scope, status).await
    }

    /// Settles an open or lapsed commitment, or opens one again. Setting the status it has changes nothing. For
    /// operators.
    pub async fn set_status(
        self,
        scope: &Scope,
        id: &str,
        status: CommitmentStatus,
        at: i64,
    ) -> Result<Commitment> {
        let (scope, id) = (scope.clone(), id.to_owned());
        audited!(self.store, |tx| {
            let values = args![scope.user(), scope.agent(), &id, status.name(), at];
            let sql = "UPDATE commitments SET status = $4, changed_at = $5 \
                 WHERE user_id = $1 AND agent = $2 AND id = $3 AND status <> $4";
            if tx.conn.execute(sql, values).await? > 0 {
                tx.operation(scope.user(), Action::CommitmentSettled, &id, Some(status.name()))?;
            }
            fetch_commitment(&mut tx.conn, &scope, &id).await?.ok_or_else(|| {
                Error::new(ErrorKind::NotFound, format!("unknown commitment `{id}`"))
                    .hint("`embody memory commitments` lists them; `--user` and `--agent` select the user and the agent")
            })
        })
    }
}

pub(crate) fn check(new: &NewCommitment) -> Result<()> {
    check_name("person of the commitment", &new.who)?;
    if new.text.trim().is_empty() {
        return Err(Error::invalid("the commitment has no text"));
    }
    check_text("text of the commitment", &new.text, TEXT_LIMIT)?;
    check_text("words of the commitment", &new.words, TEXT_LIMIT)?;
    check_text("sentence of the commitment", &new.sentence, TEXT_LIMIT)
}

/// Adds a commitment, or finds the open one with the same words; `None` if too many are open. The caller holds the lock
/// of the scope's log.
pub(crate) async fn add(
    conn: &mut Conn,
    scope: &Scope,
    entry: &NewLogEntry,
    new: NewCommitment,
) -> Result<Option<Commitment>> {
    let alike: Vec<Commitment> =
        conn.fetch_all(ALIKE, args![scope.user(), scope.agent(), &new.who, &new.words]).await?;
    // The same words with different times are two commitments: the pill at nine and the pill at noon.
    let same = |there: &&Commitment| there.said.due_at == new.due_at;
    let vague = |there: &&Commitment| there.said.due_at.is_none() || new.due_at.is_none();
    if let Some(there) = alike.iter().find(same).or_else(|| alike.iter().find(vague)) {
        let due_at = there.said.due_at.or(new.due_at);
        if due_at == there.said.due_at {
            return Ok(Some(there.clone()));
        }
        let values = args![scope.user(), scope.agent(), &there.id, due_at, entry.at];
        let sql = "UPDATE commitments SET due_at = $4, changed_at = $5 WHERE user_id = $1 AND agent = $2 AND id = $3";
        conn.execute(sql, values).await?;
        return fetch_commitment(conn, scope, &there.id).await;
    }
    if count(conn, scope, CommitmentStatus::Open).await? >= MOST_OPEN {
        return Ok(None);
    }
    let added = Commitment {
        id: new_id(),
        status: CommitmentStatus::Open,
        said: new,
        session: entry.session.clone(),
        writer: entry.writer.clone(),
        trust: entry.trust.clone(),
        created_at: entry.at,
        changed_at: entry.at,
    };
    let said = &added.said;
    let sql = "INSERT INTO commitments (user_id, agent, id, status, who, text, words, due_at, sentence, session, writer, \
         trust, created_at, changed_at) VALUES ($1, $2, $3, 'open', $4, $5, $6, $7, $8, $9, $10, $11, $12, $12)";
    let values = args![
        scope.user(),
        scope.agent(),
        &added.id,
        &said.who,
        &said.text,
        &said.words,
        said.due_at,
        &said.sentence,
        added.session.as_deref(),
        &added.writer,
        &added.trust,
        added.created_at
    ];
    conn.execute(sql, values).await?;
    Ok(Some(added))
}

/// Settles an open commitment; `None` if it is not open any more.
pub(crate) async fn settle(
    conn: &mut Conn,
    scope: &Scope,
    id: &str,
    status: CommitmentStatus,
    at: i64,
) -> Result<Option<Commitment>> {
    let sql = "UPDATE commitments SET status = $4, changed_at = $5 \
         WHERE user_id = $1 AND agent = $2 AND id = $3 AND status = 'open'";
    let changed = conn.execute(sql, args![scope.user(), scope.agent(), id, status.name(), at]).await?;
    if changed == 0 { Ok(None) } else { fetch_commitment(conn, scope, id).await }
}

async fn fetch_commitment(conn: &mut Conn, scope: &Scope, id: &str) -> Result<Option<Commitment>> {
    conn.fetch_optional(ONE, args![scope.user(), scope.agent(), id]).await
}

async fn count(conn: &mut Conn, scope: &Scope, status: CommitmentStatus) -> Result<i64> {
    let sql = "SELECT COUNT(*) FROM commitments WHERE user_id = $1 AND agent = $2 AND status = $3";
    let (count,): (i64,) = conn.fetch_one(sql, args![scope.user(), scope.agent(), status.name()]).await?;
    Ok(count)
}
