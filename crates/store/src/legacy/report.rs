//! What an upgrade from the old shape did, or would do. Names and sizes only, no texts.

use std::path::PathBuf;

use serde::Serialize;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LegacyReport {
    pub state: LegacyState,
    /// The file with every old row.
    pub export: Option<PathBuf>,
    pub agents: Vec<LegacyAgent>,
    pub instructions: Vec<LegacyInstructions>,
    pub notes: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LegacyState {
    /// Already in the current shape; nothing was touched.
    #[default]
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
