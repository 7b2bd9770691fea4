//! Short ids: which ids of a user begin or end with a text, and how much of the end of an id names it alone. The end of an id is
//! random; its beginning is the time, which ids made at about the same time share.

use std::collections::HashMap;

use crate::areas::Ids;
use crate::db::{Sql, args};
use crate::error::Result;
use crate::store::Scope;

/// The least that is shown of an id.
const SHOWN: usize = 8;
/// The shortest beginning that counts.
const PREFIX_MIN: usize = 4;

/// The ids among which a text is looked up.
#[derive(Clone, Copy, Debug)]
pub enum IdSet<'a> {
    /// Of all users: their list is the operator's.
    Approvals,
    Commitments(&'a Scope),
    Consolidations(&'a Scope),
    Memories(&'a Scope),
    /// Of a user.
    Notices(&'a str),
    Proposals(&'a Scope),
    /// Of a user.
    Receipts(&'a str),
    /// Of a user, also of removed schedules that have runs.
    ScheduleRuns(&'a str),
    /// Of a user.
    Schedules(&'a str),
    /// Of a user.
    Threads(&'a str),
    /// Of all users: their list is the operator's.
    Tokens,
}

/// How much of each id names it alone.
#[derive(Debug, Default)]
pub struct ShortIds(HashMap<String, usize>);

impl ShortIds {
    /// The end of the id that no other id has; the whole id if it was not looked up.
    pub fn of<'a>(&self, id: &'a str) -> &'a str {
        self.0.get(id).and_then(|length| id.get(id.len().checked_sub(*length)?..)).unwrap_or(id)
    }
}

struct Statements {
    matching: &'static str,
    newest: &'static str,
    similar: Sql,
}

/// `$1` is the user and `$2` the agent: each condition has both, because PostgreSQL rejects a parameter without a type.
macro_rules! statements {
    ($table:literal, $owner:literal) => {
        Statements {
            matching: concat!(
                "SELECT id FROM ", $table, " WHERE ", $owner, " AND (id = $3 \
                 OR substr(id, length(id) - length($3) + 1) = $3 OR (id >= $4 AND id < $5)) \
                 ORDER BY CASE WHEN id = $3 THEN 0 ELSE 1 END, id LIMIT +$6"
            ),
            newest: concat!("SELECT id FROM ", $table, " WHERE ", $owner, " ORDER BY id DESC LIMIT +$3"),
            similar: Sql {
                sqlite: statements!(@ $table, $owner, "IN (SELECT value FROM json_each($3))"),
                pg: statements!(@ $table, $owner, "= ANY($3::text[])"),
            },
        }
    };
    (@ $table:literal, $owner:literal, $wanted:literal) => {
        concat!("SELECT id FROM ", $table, " WHERE ", $owner, " AND substr(id, length(id) - 7) ", $wanted)
    };
}

const APPROVALS: Statements = statements!("approvals", "$1 = '' AND $2 = ''");
const COMMITMENTS: Statements = statements!("commitments", "user_id = $1 AND agent = $2");
const CONSOLIDATIONS: Statements = statements!("consolidations", "user_id = $1 AND agent = $2");
const MEMORIES: Statements = statements!("agent_long_term_memory", "user_id = $1 AND agent = $2");
const NOTICES: Statements = statements!("notices", "user_id = $1 AND $2 = ''");
const PROPOSALS: Statements = statements!("instruction_proposals", "user_id = $1 AND agent = $2");
const RECEIPTS: Statements = statements!("prompt_receipts", "user_id = $1 AND $2 = ''");
const SCHEDULE_RUNS: Statements = statements!(
    "(SELECT user_id, id FROM schedules UNION SELECT user_id, schedule_id FROM schedule_runs) AS known",
    "user_id = $1 AND $2 = ''"
);
const SCHEDULES: Statements = statements!("schedules", "user_id = $1 AND $2 = ''");
const THREADS: Statements = statements!("threads", "user_id = $1 AND $2 = ''");
const TOKENS: Statements = statements!("tokens", "$1 = '' AND $2 = ''");

impl<'a> IdSet<'a> {
    /// Its statements, user and agent.
    fn parts(self) -> (Statements, &'a str, &'a str) {
        match self {
            Self::Approvals => (APPROVALS, "", ""),
            Self::Commitments(scope) => (COMMITMENTS, scope.user(), scope.agent()),
            Self::Consolidations(scope) => (CONSOLIDATIONS, scope.user(), scope.agent()),
            Self::Memories(scope) => (MEMORIES, scope.user(), scope.agent()),
            Self::Notices(user) => (NOTICES, user, ""),
            Self::Proposals(scope) => (PROPOSALS, scope.user(), scope.agent()),
            Self::Receipts(user) => (RECEIPTS, user, ""),
            Self::ScheduleRuns(user) => (SCHEDULE_RUNS, user, ""),
            Self::Schedules(user) => (SCHEDULES, user, ""),
            Self::Threads(user) => (THREADS, user, ""),
            Self::Tokens => (TOKENS, "", ""),
        }
    }
}

impl Ids<'_> {
    /// The ids that end with a text, or begin with one of at least four characters: the id itself, then oldest first.
    pub async fn matching(self, set: IdSet<'_>, text: &str, limit: u32) -> Result<Vec<String>> {
        let (statements, user, agent) = set.parts();
        // Nothing is before the empty text.
        let (from, to) = match text.len() >= PREFIX_MIN {
            true => (text, format!("{text}~")),
            false => ("", String::new()),
        };
        let found: Vec<(String,)> =
            self.store.fetch_all(statements.matching, args![user, agent, text, from, to, limit]).await?;
        Ok(found.into_iter().map(|(id,)| id).collect())
    }

    pub async fn newest(self, set: IdSet<'_>, limit: u32) -> Result<Vec<String>> {
        let (statements, user, agent) = set.parts();
        let found: Vec<(String,)> =
            self.store.fetch_all(statements.newest, args![user, agent, limit]).await?;
        Ok(found.into_iter().map(|(id,)| id).collect())
    }

    /// The short forms of these ids, at least eight characters each.
    pub async fn shorten(self, set: IdSet<'_>, ids: Vec<String>) -> Result<ShortIds> {
        if ids.is_empty() {
            return Ok(ShortIds::default());
        }
        let (statements, user, agent) = set.parts();
        let mut ends: Vec<String> = ids.iter().map(|id| last(id, SHOWN).to_owned()).collect();
        ends.sort_unstable();
        ends.dedup();
        let found: Vec<(String,)> =
            self.store.fetch_all(statements.similar, args![user, agent, ends]).await?;
        let lengths = ids.into_iter().map(|id| {
            let others = found.iter().map(|(other,)| other).filter(|other| **other != id);
            let common = others.map(|other| common_length(&id, other)).max();
            let length = common.map_or(SHOWN, |common| SHOWN.max(common + 1));
            // It does not begin with a dash.
            let length = if last(&id, length).starts_with('-') { length + 1 } else { length };
            (id, length)
        });
        Ok(ShortIds(lengths.collect()))
    }
}

/// The last characters of an id; the whole id if it is shorter.
fn last(id: &str, length: usize) -> &str {
    id.len().checked_sub(length).and_then(|start| id.get(start..)).unwrap_or(id)
}

/// How many bytes at their ends are the same.
fn common_length(one: &str, other: &str) -> usize {
    one.bytes().rev().zip(other.bytes().rev()).take_while(|(one, other)| one == other).count()
}
