//! What an upgrade from the old shape did, or would do, row by row. Names and sizes only: no text of anybody is in it.

use std::path::PathBuf;

use serde::Serialize;

/// What became of a database in the old shape.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LegacyReport {
    /// How it ended.
    pub state: LegacyState,
    /// The file that holds every old row.
    pub export: Option<PathBuf>,
    /// Each agent that was carried over.
    pub agents: Vec<LegacyAgent>,
    /// The instructions of each user and agent.
    pub instructions: Vec<LegacyInstructions>,
    /// What else somebody should know.
    pub notes: Vec<String>,
}

/// How an upgrade ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LegacyState {
    /// The database has our shape already; nothing was touched.
    NothingToDo,
    /// It would work; nothing was touched.
    Planned,
    /// It is done.
    Upgraded,
}

/// One agent that was carried over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LegacyAgent {
    /// Its name.
    pub agent: String,
    /// How long its soul is, in characters.
    pub characters: usize,
    /// What was special about it.
    pub notes: Vec<String>,
}

/// The instructions of one user and agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LegacyInstructions {
    /// The user.
    pub user: String,
    /// The agent.
    pub agent: String,
    /// How many rows there were.
    pub rows: usize,
    /// How many of them have a part in the text.
    pub joined: usize,
    /// How long the text is, in characters.
    pub characters: usize,
    /// What was special about it.
    pub notes: Vec<String>,
}

/// `1 row`, `2 rows`.
pub(super) fn rows(count: usize) -> String {
    if count == 1 { "1 row".to_owned() } else { format!("{count} rows") }
}
