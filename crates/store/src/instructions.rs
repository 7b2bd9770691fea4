//! Standing instructions: one text for each user and agent, with versions, history and compare-and-set.

use crate::areas::InstructionVersions;
use crate::audit::Action;
use crate::changes::Topic;
use crate::db::{Conn, args, audited};
use crate::error::{Error, ErrorKind, Result};
use crate::store::{Scope, check_controls, check_name, check_text, now};

/// The prompt shows the first 2,000 characters.
pub(crate) const TEXT_LIMIT: usize = 64 * 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instructions {
    /// Empty when cleared or never set.
    pub text: String,
    /// Counts the changes; 0 when never set.
    pub version: i64,
    /// 0 when never set.
    pub changed_at: i64,
}

/// A past or the current version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastInstructions {
    pub instructions: Instructions,
    pub writer: String,
}

#[derive(Clone, Debug)]
pub struct InstructionsChange {
    /// Replaces the whole text; empty clears it.
    pub text: String,
    pub writer: String,
    /// `None` overwrites any version.
    pub expected_version: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstructionsOutcome {
    Written(Instructions),
    /// Another version is current; nothing is written.
    Stale(Instructions),
}

impl InstructionVersions<'_> {
    /// Empty with version 0 if never set.
    pub async fn get(self, scope: &Scope) -> Result<Instructions> {
        let sql = "SELECT instructions, version, changed_at FROM user_agent_prompt_customizations \
             WHERE user_id = $1 AND agent_name = $2";
        let row: Option<(String, i64, i64)> =
            self.store.fetch_optional(sql, args![scope.user(), scope.agent()]).await?;
        let (text, version, changed_at) = row.unwrap_or_default();
        Ok(Instructions { text, version, changed_at })
    }

    /// Replaces the standing instructions of this user and agent, with an audit record in the same commit.
    pub async fn set(self, scope: &Scope, change: InstructionsChange) -> Result<InstructionsOutcome> {
        check_text("text of the instructions", &change.text, TEXT_LIMIT)?;
        check_controls("text of the instructions", &change.text)?;
        check_name("writer", &change.writer)?;
        let scope = scope.clone();
        audited!(self.store, |tx| {
            let writer = change.writer.clone();
            let outcome = write(&mut tx.conn, &scope, change).await?;
            if let InstructionsOutcome::Written(now) = &outcome {
                let note = format!("version {} by {writer}", now.version);
                tx.operation(scope.user(), Action::InstructionsSet, scope.agent(), Some(&note))?;
            }
            Ok(outcome)
        })
    }

    pub async fn history(self, scope: &Scope, limit: u32) -> Result<Vec<PastInstructions>> {
        let sql = "SELECT instructions, version, changed_at, writer FROM instruction_history \
             WHERE user_id = $1 AND agent_name = $2 ORDER BY version DESC LIMIT +$3";
        let rows: Vec<(String, i64, i64, String)> =
            self.store.fetch_all(sql, args![scope.user(), scope.agent(), limit]).await?;
        Ok(rows
            .into_iter()
            .map(|(text, version, changed_at, writer)| PastInstructions {
                instructions: Instructions { text, version, changed_at },
                writer,
            })
            .collect())
    }

    pub async fn version(self, scope: &Scope, version: i64) -> Result<Option<PastInstructions>> {
        let row = past(&mut self.store.reader().await?, scope, version).await?;
        Ok(row.map(|(text, changed_at, writer)| PastInstructions {
            instructions: Instructions { text, version, changed_at },
            writer,
        }))
    }

    /// Writes the text of an old version as a new version.
    pub async fn revert(self, scope: &Scope, version: i64, writer: &str) -> Result<Instructions> {
        check_name("writer", writer)?;
        let (scope, writer) = (scope.clone(), writer.to_owned());
        audited!(self.store, |tx| {
            let conn = &mut tx.conn;
            let (text, ..) = past(conn, &scope, version).await?.ok_or_else(|| {
                Error::new(ErrorKind::NotFound, format!("the instructions have no version `{version}`"))
                    .hint("`embody instructions history` lists the versions")
            })?;
            let change = InstructionsChange { text, writer, expected_version: None };
            let (InstructionsOutcome::Written(now) | InstructionsOutcome::Stale(now)) =
                write(conn, &scope, change).await?;
            let note = format!("to the text of version {version}");
            tx.operation(scope.user(), Action::InstructionsReverted, scope.agent(), Some(&note))?;
            Ok(now)
        })
    }
}

async fn past(conn: &mut Conn, scope: &Scope, version: i64) -> Result<Option<(String, i64, String)>> {
    let sql = "SELECT instructions, changed_at, writer FROM instruction_history \
         WHERE user_id = $1 AND agent_name = $2 AND version = $3";
    conn.fetch_optional(sql, args![scope.user(), scope.agent(), version]).await
}

pub(crate) async fn write(
    conn: &mut Conn,
    scope: &Scope,
    change: InstructionsChange,
) -> Result<InstructionsOutcome> {
    check_controls("text of the instructions", &change.text)?;
    // Creates and locks the row: of two first writers one waits, and then sees what the other wrote.
    let sql = "INSERT INTO user_agent_prompt_customizations AS this (user_id, agent_name, instructions, version, changed_at) \
         VALUES ($1, $2, '', 0, 0) ON CONFLICT (user_id, agent_name) DO UPDATE SET version = this.version \
         RETURNING instructions, version, changed_at";
    let (text, version, changed_at): (String, i64, i64) =
        conn.fetch_one(sql, args![scope.user(), scope.agent()]).await?;
    let before = Instructions { text, version, changed_at };
    if change.expected_version.is_some_and(|expected| expected != before.version) {
        return Ok(InstructionsOutcome::Stale(before));
    }
    let after = Instructions { text: change.text, version: before.version + 1, changed_at: now() };
    let sql = "UPDATE user_agent_prompt_customizations SET instructions = $3, version = $4, changed_at = $5 \
         WHERE user_id = $1 AND agent_name = $2";
    conn.execute(sql, args![scope.user(), scope.agent(), &after.text, after.version, after.changed_at])
        .await?;
    let sql = "INSERT INTO instruction_history (user_id, agent_name, version, instructions, writer, changed_at) \
         VALUES ($1, $2, $3, $4, $5, $6)";
    let values =
        args![scope.user(), scope.agent(), after.version, &after.text, change.writer, after.changed_at];
    conn.execute(sql, values).await?;
    conn.notify(Topic::Instructions).await?;
    Ok(InstructionsOutcome::Written(after))
}
