//! Takes back what a consolidation did. What somebody changed since is theirs and is left alone.

use super::UndoResult;
use crate::areas::Consolidations;
use crate::db::{Conn, args, transaction};
use crate::error::{Error, ErrorKind, Result};
use crate::memories::alike;
use crate::store::Scope;

pub(super) const ITEMS: &str = "SELECT subject, what, version FROM consolidation_items \
     WHERE user_id = $1 AND agent = $2 AND run_id = $3 ORDER BY subject";
pub(super) const RESTORE: &str = "INSERT INTO mind_log (user_id, agent, seq, at, session, kind, writer, trust, pinned, held, text) \
     SELECT user_id, agent, seq, at, session, kind, writer, trust, 1, held, text FROM mind_log_archive \
     WHERE user_id = $1 AND agent = $2 AND run_id = $3";

impl Consolidations<'_> {
    /// Brings back what a run merged, lapsed and pruned. A run that was taken back before is left as it is.
    pub async fn undo(self, scope: &Scope, run: &str, at: i64) -> Result<UndoResult> {
        let (scope, run) = (scope.clone(), run.to_owned());
        transaction!(self.store, |conn| undo(conn, &scope, &run, at).await)
    }
}

async fn undo(conn: &mut Conn, scope: &Scope, run: &str, at: i64) -> Result<UndoResult> {
    let marked: Option<(i64,)> = conn
        .fetch_optional(
            "UPDATE consolidations SET undone_at = $4 \
             WHERE user_id = $1 AND agent = $2 AND id = $3 AND undone_at IS NULL RETURNING pruned",
            args![scope.user(), scope.agent(), run, at],
        )
        .await?;
    let Some((pruned,)) = marked else {
        return if exists(conn, scope, run).await? { Ok(UndoResult::default()) } else { Err(missing(run)) };
    };
    let mut undone = UndoResult::default();
    let items: Vec<(String, String, i64)> =
        conn.fetch_all(ITEMS, args![scope.user(), scope.agent(), run]).await?;
    for (subject, what, version) in items {
        if what == "memory" {
            match alike::revive(conn, scope, &subject, version).await? {
                true => undone.memories += 1,
                false => undone.left += 1,
            }
        } else {
            // It gets its whole time again: lapsing looks at the last change as well.
            let opened = conn
                .execute(
                    "UPDATE commitments SET status = 'open', changed_at = $5 WHERE user_id = $1 AND agent = $2 \
                     AND id = $3 AND status = 'lapsed' AND changed_at = $4",
                    args![scope.user(), scope.agent(), &subject, version, at],
                )
                .await?;
            undone.commitments += opened;
            undone.left += 1 - opened.min(1);
        }
    }
    undone.entries = restore(conn, scope, run).await?;
    undone.left += u64::try_from(pruned).unwrap_or(0).saturating_sub(undone.entries);
    Ok(undone)
}

/// Brings entries back into the log, where the next run passes them over.
async fn restore(conn: &mut Conn, scope: &Scope, run: &str) -> Result<u64> {
    let restored = conn.execute(RESTORE, args![scope.user(), scope.agent(), run]).await?;
    conn.execute(
        "DELETE FROM mind_log_archive WHERE user_id = $1 AND agent = $2 AND run_id = $3",
        args![scope.user(), scope.agent(), run],
    )
    .await?;
    Ok(restored)
}

async fn exists(conn: &mut Conn, scope: &Scope, run: &str) -> Result<bool> {
    let row: Option<(String,)> = conn
        .fetch_optional(
            "SELECT id FROM consolidations WHERE user_id = $1 AND agent = $2 AND id = $3",
            args![scope.user(), scope.agent(), run],
        )
        .await?;
    Ok(row.is_some())
}

fn missing(run: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no consolidation `{run}`"))
        .hint("`embody memory consolidations` lists them; `--user` and `--agent` say whose")
}
