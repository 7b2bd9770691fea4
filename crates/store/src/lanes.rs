//! Lanes: what arrives in one conversation, or leaves to one recipient, stays in order.
//!
//! Whoever adds to a lane holds it until the commit: a number is visible before the next one is given out, so that
//! nothing can slip in before what somebody has taken already. Every caller locks in the same order.

use crate::db::{Conn, args};
use crate::error::Result;

/// Which way the messages of a lane go.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    In,
    Out,
}

/// Holds these lanes (channel, and conversation or recipient) until the transaction ends. On SQLite a writer is alone.
pub(crate) async fn hold(conn: &mut Conn, way: Way, lanes: impl Iterator<Item = (&str, &str)>) -> Result<()> {
    if !conn.is_postgres() {
        return Ok(());
    }
    let way = match way {
        Way::In => "in",
        Way::Out => "out",
    };
    // Names hold no control characters: two lanes never share a key.
    let keys: Vec<String> =
        lanes.map(|(channel, name)| format!("{way}\u{1f}{channel}\u{1f}{name}")).collect();
    conn.run(
        "SELECT pg_advisory_xact_lock(key) FROM (SELECT DISTINCT hashtextextended(name, 7717) AS key \
         FROM unnest($1::text[]) AS name ORDER BY key) AS lanes",
        args![keys],
    )
    .await
    .map(drop)
}
