//! Proposals for the standing instructions. They wait; only a person's word makes one the instructions, and only on the
//! version that it was made from.

mod decide;

use crate::db::{Conn, args};
use crate::error::{Error, ErrorKind, Result};
use crate::instructions::{Instructions, TEXT_LIMIT};
use crate::mind_log::NewLogEntry;
use crate::store::{Scope, Store, check_text, new_id};

const LINE_LIMIT: usize = 4 * 1024;
/// The most that can wait at once in a scope.
const MOST_OPEN: usize = 100;
const MOST_READ: u32 = 1000;

/// How far a proposal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProposalStatus {
    /// It waits.
    Open,
    /// It became the instructions.
    Accepted,
    /// Nobody wants it.
    Dismissed,
}

impl ProposalStatus {
    /// Every status.
    pub const ALL: [Self; 3] = [Self::Open, Self::Accepted, Self::Dismissed];

    /// Its name.
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
    /// The line that is new.
    pub line: String,
    /// The whole text that the instructions would have.
    pub text: String,
    /// What would change, for people.
    pub diff: String,
    /// The version that it was made from.
    pub base_version: i64,
    /// The sentence that it comes from.
    pub sentence: String,
}

/// A proposal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// Sorts by age.
    pub id: String,
    /// How far it is.
    pub status: ProposalStatus,
    /// What it asks for.
    pub change: NewProposal,
    /// Who told it.
    pub writer: String,
    /// How far they were trusted.
    pub trust: String,
    /// When, in microseconds since 1970.
    pub created_at: i64,
    /// When it was accepted or dismissed.
    pub decided_at: Option<i64>,
    /// By whom.
    pub decided_by: Option<String>,
}

/// Who decides on a proposal.
#[derive(Clone, Debug)]
pub struct DecideProposal {
    /// Which one.
    pub id: String,
    /// Who decides, by their authenticated name.
    pub by: String,
    /// When, in microseconds since 1970.
    pub at: i64,
}

/// What became of an acceptance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProposalOutcome {
    /// It is written; these are the instructions now.
    Accepted(Instructions),
    /// The instructions have changed since it was made; nothing is written.
    Stale(Instructions),
    /// It was decided before; this is how.
    Decided(Proposal),
}

impl Store {
    /// Proposals of one status, oldest first.
    pub async fn proposals(
        &self,
        scope: &Scope,
        status: ProposalStatus,
        limit: u32,
    ) -> Result<Vec<Proposal>> {
        if limit > MOST_READ {
            return Err(Error::invalid(format!(
                "the limit is `{limit}`; at most {MOST_READ} proposals are read"
            )));
        }
        let values = args![scope.user(), scope.agent(), status.name(), limit];
        list(&mut self.db().reader().await?, values).await
    }

    /// The proposal of this id.
    pub async fn proposal(&self, scope: &Scope, id: &str) -> Result<Option<Proposal>> {
        one(&mut self.db().reader().await?, scope, id).await
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
