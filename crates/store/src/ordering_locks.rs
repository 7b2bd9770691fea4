//! Locks that keep the messages of one conversation, or to one recipient, in order.
//!
//! A writer holds the lock until its commit, so that a number is visible before the next one is assigned and no message can be
//! inserted before one that was already claimed. Every caller locks in the same order.

use crate::db::{Conn, args};
use crate::error::Result;

/// The queue that the messages are in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Queue {
    In,
    Out,
}

/// Locks these (channel, and conversation or recipient) until the transaction ends. SQLite has a single writer.
pub(crate) async fn lock(
    conn: &mut Conn,
    way: Queue,
    lanes: impl Iterator<Item = (&str, &str)>,
) -> Result<()> {
    if !conn.is_postgres() {
        return Ok(());
    }
    let way = match way {
        Queue::In => "in",
        Queue::Out => "out",
    };
    // Names hold no control characters: two locks never share a key.
    let keys: Vec<String> =
        lanes.map(|(channel, name)| format!("{way}\u{1f}{channel}\u{1f}{name}")).collect();
    conn.execute(
        "SELECT pg_advisory_xact_lock(key) FROM (SELECT DISTINCT hashtextextended(name, 7717) AS key \
         FROM unnest($1::text[]) AS name ORDER BY key) AS lanes",
        args![keys],
    )
    .await
    .map(drop)
}
