//! Proposals for the standing instructions. Only a person's decision makes one the instructions, and only on the version
//! that it was made from.

use crate::areas::Proposals;
use crate::audit::Action;
use crate::db::{Conn, Value, WriteTx, args, audited, from_row, names, transaction};
use crate::error::{Error, ErrorKind, Result};
use crate::instructions::{self, Instructions, InstructionsChange, InstructionsOutcome, TEXT_LIMIT};
use crate::mind_log::NewLogEntry;
use crate::store::{Scope, check_name, check_text, new_id};

const LINE_LIMIT: usize = 4 * 1024;
/// Most open proposals of a scope.
const MOST_OPEN: usize = 100;
const MOST_READ: u32 = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProposalStatus {
    Open,
    Accepted,
    Dismissed,
}

names! { pub ProposalStatus { Open = "open", Accepted = "accepted", Dismissed = "dismissed" } }

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

from_row! {
    Proposal {
        id as String, status: |name: String| read_status(&id, &name), line, text, diff, base_version, sentence, writer,
        trust, created_at, decided_at, decided_by,
    } => {
        let change = NewProposal { line, text, diff, base_version, sentence };
        Ok(Self { id, status, change, writer, trust, created_at, decided_at, decided_by })
    }
}

fn read_status(id: &str, name: &str) -> Result<ProposalStatus> {
    ProposalStatus::from_name(name).ok_or_else(|| {
        Error::new(ErrorKind::Corrupt, format!("the status `{name}` of proposal `{id}` cannot be read"))
    })
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

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, status, line, text, diff, base_version, sentence, writer, trust, created_at, decided_at, \
             decided_by FROM instruction_proposals WHERE user_id = $1 AND agent = $2 AND ",
            $rest
        )
    };
}

const LIST: &str = select!("status = $3 ORDER BY id LIMIT +$4");
const ONE: &str = select!("id = $3");
const RENEW: &str = "UPDATE instruction_proposals SET line = $4, text = $5, diff = $6, base_version = $7 \
     WHERE user_id = $1 AND agent = $2 AND id = $3 AND status = 'open'";
const DECIDE: &str = "UPDATE instruction_proposals SET status = $4, decided_at = $5, decided_by = $6 \
     WHERE user_id = $1 AND agent = $2 AND id = $3 AND status = 'open'";
const REOPEN: &str = "UPDATE instruction_proposals SET status = 'open', decided_at = NULL, decided_by = NULL \
     WHERE user_id = $1 AND agent = $2 AND id = $3";

impl Proposals<'_> {
    pub async fn list(self, scope: &Scope, status: ProposalStatus, limit: u32) -> Result<Vec<Proposal>> {
        if limit > MOST_READ {
            return Err(Error::invalid(format!(
                "the limit is `{limit}`; at most {MOST_READ} proposals are read"
            )));
        }
        let values = args![scope.user(), scope.agent(), status.name(), limit];
        self.store.fetch_all(LIST, values).await
    }

    pub async fn get(self, scope: &Scope, id: &str) -> Result<Option<Proposal>> {
        self.store.fetch_optional(ONE, key(scope, id)).await
    }

    /// Makes an open proposal the standing instructions, if they still are what it was made from, with an audit record in
    /// the same commit.
    pub async fn accept(self, scope: &Scope, decide: DecideProposal) -> Result<ProposalOutcome> {
        check_name("writer", &decide.by)?;
        let scope = scope.clone();
        audited!(self.store, |tx| accept(tx, &scope, decide).await)
    }

    /// Dismisses an open proposal; one that was decided before stays as it is.
    pub async fn dismiss(self, scope: &Scope, decide: DecideProposal) -> Result<Proposal> {
        check_name("writer", &decide.by)?;
        let scope = scope.clone();
        audited!(self.store, |tx| {
            if set_status(&mut tx.conn, &scope, &decide, ProposalStatus::Dismissed).await? {
                tx.operation(scope.user(), Action::ProposalDismissed, &decide.id, Some(&decide.by))?;
            }
            expect(&mut tx.conn, &scope, &decide.id).await
        })
    }

    /// Bases an open proposal on other instructions.
    pub async fn renew(self, scope: &Scope, id: &str, change: NewProposal) -> Result<Proposal> {
        check(&change)?;
        let (scope, id) = (scope.clone(), id.to_owned());
        transaction!(self.store, |conn| {
            let NewProposal { line, text, diff, base_version, .. } = change;
            let values = args![scope.user(), scope.agent(), &id, line, text, diff, base_version];
            conn.execute(RENEW, values).await?;
            expect(conn, &scope, &id).await
        })
    }
}

async fn accept(tx: &mut WriteTx, scope: &Scope, decide: DecideProposal) -> Result<ProposalOutcome> {
    let conn = &mut tx.conn;
    // Deciding first locks the row: of two that accept at once, the second finds it decided.
    let is_open = set_status(conn, scope, &decide, ProposalStatus::Accepted).await?;
    let proposal = expect(conn, scope, &decide.id).await?;
    if !is_open {
        return Ok(ProposalOutcome::Decided(proposal));
    }
    let by = decide.by.clone();
    let change = InstructionsChange {
        text: proposal.change.text,
        writer: decide.by,
        expected_version: Some(proposal.change.base_version),
    };
    match instructions::write(conn, scope, change).await? {
        InstructionsOutcome::Written(now) => {
            let note = format!("version {} by {by}", now.version);
            tx.operation(scope.user(), Action::InstructionsSet, scope.agent(), Some(&note))?;
            Ok(ProposalOutcome::Accepted(now))
        }
        InstructionsOutcome::Stale(now) => {
            conn.execute(REOPEN, key(scope, &decide.id)).await?;
            Ok(ProposalOutcome::Stale(now))
        }
    }
}

/// Decides an open proposal; returns whether it was open.
async fn set_status(
    conn: &mut Conn,
    scope: &Scope,
    decide: &DecideProposal,
    status: ProposalStatus,
) -> Result<bool> {
    let values = args![scope.user(), scope.agent(), &decide.id, status.name(), decide.at, &decide.by];
    Ok(conn.execute(DECIDE, values).await? > 0)
}

pub(crate) fn check(new: &NewProposal) -> Result<()> {
    check_text("line of the proposal", &new.line, LINE_LIMIT)?;
    check_text("text of the instructions", &new.text, TEXT_LIMIT)?;
    check_text("difference of the proposal", &new.diff, 4 * TEXT_LIMIT)?;
    check_text("sentence of the proposal", &new.sentence, LINE_LIMIT)
}

/// Adds a proposal, or finds the open one with the same line; `None` if too many are open. The caller holds the lock of
/// the scope's log.
pub(crate) async fn add(
    conn: &mut Conn,
    scope: &Scope,
    entry: &NewLogEntry,
    new: NewProposal,
) -> Result<Option<Proposal>> {
    let limit = u32::try_from(MOST_OPEN).unwrap_or(u32::MAX);
    let values = args![scope.user(), scope.agent(), ProposalStatus::Open.name(), limit];
    let open: Vec<Proposal> = conn.fetch_all(LIST, values).await?;
    let same = |there: &&Proposal| there.change.line.to_lowercase() == new.line.to_lowercase();
    if let Some(there) = open.iter().find(same) {
        return Ok(Some(there.clone()));
    }
    if open.len() >= MOST_OPEN {
        return Ok(None);
    }
    let proposal = Proposal {
        id: new_id(),
        status: ProposalStatus::Open,
        change: new,
        writer: entry.writer.clone(),
        trust: entry.trust.clone(),
        created_at: entry.at,
        decided_at: None,
        decided_by: None,
    };
    let change = &proposal.change;
    let sql = "INSERT INTO instruction_proposals (user_id, agent, id, status, line, text, diff, base_version, sentence, \
         writer, trust, created_at) VALUES ($1, $2, $3, 'open', $4, $5, $6, $7, $8, $9, $10, $11)";
    let values = args![
        scope.user(),
        scope.agent(),
        &proposal.id,
        &change.line,
        &change.text,
        &change.diff,
        change.base_version,
        &change.sentence,
        &proposal.writer,
        &proposal.trust,
        proposal.created_at
    ];
    conn.execute(sql, values).await?;
    Ok(Some(proposal))
}

async fn expect(conn: &mut Conn, scope: &Scope, id: &str) -> Result<Proposal> {
    conn.fetch_optional(ONE, key(scope, id)).await?.ok_or_else(|| {
        Error::new(ErrorKind::NotFound, format!("unknown proposal `{id}`"))
            .hint("`embody instructions proposals` lists them; `--user` and `--agent` select the user and the agent")
    })
}

fn key(scope: &Scope, id: &str) -> Vec<Value> {
    args![scope.user(), scope.agent(), id]
}
