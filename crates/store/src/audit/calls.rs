//! The list of calls without an outcome. It follows the records and can be made again from them.

use std::collections::HashSet;

use super::entry::{Call, Entry};
use crate::db::{Conn, Value, args, dialect};
use crate::error::Result;

/// The list of calls without an outcome, as a batch changes it.
#[derive(Default)]
pub(super) struct Calls {
    opened: Vec<Vec<Value>>,
    closed: (Vec<String>, Vec<String>),
}

impl Calls {
    pub(super) fn note(&mut self, entry: &Entry, chain: &str, seq: i64) {
        match &entry.call {
            Call::Opens(call_id) => {
                self.opened.push(args![&entry.user, call_id, chain, seq, entry.at]);
            }
            Call::Closes(call_id) => {
                self.closed.0.push(entry.user.clone());
                self.closed.1.push(call_id.clone());
            }
            // Its call left the list when it was let through.
            Call::ClosesOpen(_) | Call::None => {}
        }
    }

    /// Writes the changes, inside the caller's transaction.
    pub(super) async fn write(self, conn: &mut Conn) -> Result<()> {
        if !self.opened.is_empty() {
            conn.insert_rows(
                "INSERT INTO audit_open (user_id, call_id, chain, seq, at)",
                self.opened,
                "ON CONFLICT DO NOTHING",
            )
            .await?;
        }
        if !self.closed.0.is_empty() {
            conn.execute(dialect!(AUDIT_CLOSE), args![self.closed.0, self.closed.1]).await?;
        }
        Ok(())
    }
}

/// Leaves out the entries that close a call only if it is open, where it is not, and takes the others off the list. It is
/// asked under the lock of the chain, as whatever else closes a call is written: nobody gets in between.
pub(super) async fn drop_settled(conn: &mut Conn, entries: &mut Vec<Entry>) -> Result<()> {
    if !entries.iter().any(|entry| matches!(entry.call, Call::ClosesOpen(_))) {
        return Ok(());
    }
    let closed: HashSet<(String, String)> = entries
        .iter()
        .filter_map(|entry| match &entry.call {
            Call::Closes(call_id) => Some((entry.user.clone(), call_id.clone())),
            _ => None,
        })
        .collect();
    let mut kept = Vec::with_capacity(entries.len());
    for entry in std::mem::take(entries) {
        if let Call::ClosesOpen(call_id) = &entry.call {
            let call = (entry.user.clone(), call_id.clone());
            let is_open = !closed.contains(&call)
                && conn
                    .execute(
                        "DELETE FROM audit_open WHERE user_id = $1 AND call_id = $2",
                        args![&call.0, &call.1],
                    )
                    .await?
                    > 0;
            if !is_open {
                continue;
            }
        }
        kept.push(entry);
    }
    *entries = kept;
    Ok(())
}
