//! Proposals for the standing instructions. They wait; only a person's word makes one the instructions, and only on the
//! version that it was made from.

mod decide;

use crate::areas::Proposals;
use crate::db::{Conn, args};
use crate::error::{Error, ErrorKind, Result};
use crate::instructions::{Instructions, TEXT_LIMIT};
use crate::mind_log::NewLogEntry;
use crate::store::{Scope, check_text, new_id};

const LINE_LIMIT: usize = 4 * 1024;
/// The most that can wait at once in a scope.
const MOST_OPEN: usize = 100;
const MOST_READ: u32 = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProposalStatus {
    Open,
    Accepted,
    Dismissed,
}

impl ProposalStatus {
    pub const ALL: [Self; 3] = [Self::Open, Self::Accepted, Self::Dismissed];

    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Accepted => "accepted",
            Self::Dismissed => "dismissed",
        }
    }
}

/// A change of the standing instructions to be proposed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewProposal {
    /// The new line.
    pub line: String,
    /// The whole resulting text.
    pub text: String,
    pub diff: String,
    /// The version that it is based on.
    pub base_version: i64,
    pub sentence: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    pub id: String,
    pub status: ProposalStatus,
    pub change: NewProposal,
    pub writer: String,
    pub trust: String,
    pub created_at: i64,
    pub decided_at: Option<i64>,
    pub decided_by: Option<String>,
}

#[derive(Clone, Debug)]
pub struct DecideProposal {
    pub id: String,
    /// Authenticated name.
    pub by: String,
    pub at: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProposalOutcome {
    Accepted(Instructions),
    /// The instructions have changed since; nothing is written.
    Stale(Instructions),
    /// Decided before.
    Decided(Proposal),
}

impl Proposals<'_> {
    pub async fn list(self, scope: &Scope, status: ProposalStatus, limit: u32) -> Result<Vec<Proposal>> {
        if limit > MOST_READ {
            return Err(Error::invalid(format!(
                "the limit is `{limit}`; at most {MOST_READ} proposals are read"
            )));
        }
        let values = args![scope.user(), scope.agent(), status.name(), limit];
        list(&mut self.store.reader().await?, values).await
    }

    pub async fn get(self, scope: &Scope, id: &str) -> Result<Option<Proposal>> {
        one(&mut self.store.reader().await?, scope, id).await
    }
}

pub(crate) fn check(new: &NewProposal) -> Result<()> {
    check_text("line of the proposal", &new.line, LINE_LIMIT)?;
    check_text("text of the instructions", &new.text, TEXT_LIMIT)?;
    check_text("difference of the proposal", &new.diff, 4 * TEXT_LIMIT)?;
    check_text("sentence of the proposal", &new.sentence, LINE_LIMIT)
}

/// Keeps a proposal, or finds the open one with the same line; nothing if too many wait. The caller holds the lock of the
/// scope's log.
pub(crate) async fn keep(
    conn: &mut Conn,
    scope: &Scope,
    entry: &NewLogEntry,
    new: NewProposal,
) -> Result<Option<Proposal>> {
    let limit = u32::try_from(MOST_OPEN).unwrap_or(u32::MAX);
    let open = list(conn, args![scope.user(), scope.agent(), ProposalStatus::Open.name(), limit]).await?;
    let same = |there: &&Proposal| there.change.line.to_lowercase() == new.line.to_lowercase();
    if let Some(there) = open.iter().find(same) {
        return Ok(Some(there.clone()));
    }
    if open.len() >= MOST_OPEN {
        return Ok(None);
    }
    let kept = Proposal {
        id: new_id(),
        status: ProposalStatus::Open,
        change: new,
        writer: entry.writer.clone(),
        trust: entry.trust.clone(),
        created_at: entry.at,
        decided_at: None,
        decided_by: None,
    };
    let change = &kept.change;
    conn.execute(
        "INSERT INTO instruction_proposals (user_id, agent, id, status, line, text, diff, base_version, sentence, \
         writer, trust, created_at) VALUES ($1, $2, $3, 'open', $4, $5, $6, $7, $8, $9, $10, $11)",
        args![
            scope.user(),
            scope.agent(),
            &kept.id,
            &change.line,
            &change.text,
            &change.diff,
            change.base_version,
            &change.sentence,
            &kept.writer,
            &kept.trust,
            kept.created_at
        ],
    )
    .await?;
    Ok(Some(kept))
}

fn missing(id: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no proposal `{id}`"))
        .hint("`embody instructions proposals` lists them; `--user` and `--agent` say whose")
}

type Row =
    (String, String, String, String, String, i64, String, String, String, i64, Option<i64>, Option<String>);

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, status, line, text, diff, base_version, sentence, writer, trust, created_at, decided_at, \
             decided_by FROM instruction_proposals WHERE user_id = $1 AND agent = $2 AND ",
            $rest
        )
    };
}

async fn list(conn: &mut Conn, values: Vec<crate::db::Value>) -> Result<Vec<Proposal>> {
    let rows: Vec<Row> = conn.fetch_all(select!("status = $3 ORDER BY id LIMIT +$4"), values).await?;
    rows.into_iter().map(proposal).collect()
}

async fn one(conn: &mut Conn, scope: &Scope, id: &str) -> Result<Option<Proposal>> {
    let row: Option<Row> =
        conn.fetch_optional(select!("id = $3"), args![scope.user(), scope.agent(), id]).await?;
    row.map(proposal).transpose()
}

fn proposal(row: Row) -> Result<Proposal> {
    let (
        id,
        status,
        line,
        text,
        diff,
        base_version,
        sentence,
        writer,
        trust,
        created_at,
        decided_at,
        decided_by,
    ) = row;
    let status = ProposalStatus::ALL.into_iter().find(|known| known.name() == status).ok_or_else(|| {
        Error::new(ErrorKind::Corrupt, format!("the status `{status}` of proposal `{id}` cannot be read"))
    })?;
    let change = NewProposal { line, text, diff, base_version, sentence };
    Ok(Proposal { id, status, change, writer, trust, created_at, decided_at, decided_by })
}
