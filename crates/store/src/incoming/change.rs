//! Changing what somebody said while nobody has begun with it.

use super::{Incoming, Row, columns, incoming};
use crate::areas::IncomingQueue;
use crate::db::{args, transaction};
use crate::error::Result;
use crate::store::check_text;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IncomingChange {
    Changed,
    /// Work on it has started or ended; nothing is changed.
    TooLate(Box<Incoming>),
    Missing,
}

const CHANGE: &str =
    "UPDATE incoming SET content = $3 WHERE channel = $1 AND external = $2 AND state = 'waiting'";
const ONE: &str =
    concat!("SELECT ", columns!("state"), " FROM incoming WHERE channel = $1 AND external = $2");

impl IncomingQueue<'_> {
    /// Puts this in the place of what was said, as long as nobody has begun with it. At most 1 MiB of JSON text.
    pub async fn replace(self, channel: &str, external: &str, content: &str) -> Result<IncomingChange> {
        check_text("incoming message", content, super::take::CONTENT_LIMIT)?;
        let (channel, external, content) = (channel.to_owned(), external.to_owned(), content.to_owned());
        transaction!(self.store, |conn| {
            if conn.execute(CHANGE, args![&channel, &external, content]).await? > 0 {
                return Ok(IncomingChange::Changed);
            }
            let row: Option<Row> = conn.fetch_optional(ONE, args![channel, external]).await?;
            Ok(match row {
                Some(row) => IncomingChange::TooLate(Box::new(incoming(row)?)),
                None => IncomingChange::Missing,
            })
        })
    }
}
