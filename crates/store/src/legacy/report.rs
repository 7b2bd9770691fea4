//! What an upgrade from the old shape did, or would do, row by row. Names and sizes only: no text of anybody is in it.

use std::path::PathBuf;

use serde::Serialize;

/// What became of a database in the old shape.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LegacyReport {
    pub state: LegacyState,
    /// The file with every old row.
    pub export: Option<PathBuf>,
    pub agents: Vec<LegacyAgent>,
    pub instructions: Vec<LegacyInstructions>,
    pub notes: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LegacyState {
    /// Already in the current shape; nothing was touched.
    NothingToDo,
    /// Possible; nothing was touched.
    Planned,
    Upgraded,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LegacyAgent {
    pub agent: String,
    pub characters: usize,
    pub notes: Vec<String>,
}

/// The instructions of one user and agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LegacyInstructions {
    pub user: String,
    pub agent: String,
    pub rows: usize,
    /// Number of rows with a part in the text.
    pub joined: usize,
    pub characters: usize,
    pub notes: Vec<String>,
}

pub(super) fn rows(count: usize) -> String {
    if count == 1 { "1 row".to_owned() } else { format!("{count} rows") }
}
