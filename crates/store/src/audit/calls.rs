//! The list of calls without an outcome. It follows the records and can be made again from them.

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
    /// Takes notice of a record.
    pub(super) fn note(&mut self, entry: &Entry, chain: &str, seq: i64) {
        match &entry.call {
            Call::Opens(call_id) => {
                self.opened.push(args![&entry.user, call_id, chain, seq, entry.at]);
            }
            Call::Closes(call_id) => {
                self.closed.0.push(entry.user.clone());
                self.closed.1.push(call_id.clone());
            }
            Call::None => {}
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
            conn.run(dialect!(AUDIT_CLOSE), args![self.closed.0, self.closed.1]).await?;
        }
        Ok(())
    }
}
