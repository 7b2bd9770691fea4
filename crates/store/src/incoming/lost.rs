//! Incoming messages whose worker was gone before the end, and forgetting those that ended long ago.

use std::time::Duration;

use super::{Incoming, Row, columns, incoming, shown};
use crate::areas::IncomingQueue;
use crate::changes::Topic;
use crate::db::{Sql, args, transaction};
use crate::error::Result;
use crate::leases::{claim, clock, earlier};
use crate::outgoing::{NewOutgoing, add_replies, check};

const SETTLE: Sql = claim!(
    "WITH picked AS MATERIALIZED (SELECT user_id AS picked_user, id AS picked_id FROM incoming \
     WHERE channel = $3 AND state = 'working' AND lease_until <= $1 ORDER BY lease_until LIMIT +$2",
    concat!(
        ") UPDATE incoming SET state = 'unknown', finished_at = $1, lease_owner = NULL, \
         reason = 'whoever worked on it was gone before it ended' FROM picked \
         WHERE user_id = picked_user AND id = picked_id RETURNING ",
        columns!("state")
    ),
);
const LOST: &str = concat!(
    "SELECT ",
    shown!(),
    " FROM incoming WHERE state = 'unknown' OR (state = 'working' AND lease_until <= $1) \
     ORDER BY id DESC LIMIT +$2"
);
const PRUNE: Sql = claim!(
    "WITH picked AS MATERIALIZED (SELECT user_id, id FROM incoming WHERE finished_at < $1 ORDER BY finished_at LIMIT +$2",
    ") DELETE FROM incoming WHERE (user_id, id) IN (SELECT * FROM picked)",
);

impl IncomingQueue<'_> {
    /// Ends up to `limit` of this channel whose lease ran out as `unknown`, and returns them: each is returned once,
    /// whoever asks, and is never worked on again. What its sender is told leaves with the same write. Of all users; for
    /// the worker of the channel.
    pub async fn expire(
        self,
        channel: &str,
        limit: u32,
        told: impl Fn(&Incoming) -> Option<NewOutgoing> + Send + 'static,
    ) -> Result<Vec<Incoming>> {
        let channel = channel.to_owned();
        transaction!(self.store, |conn| {
            let now = clock(conn).await?;
            let rows: Vec<Row> = conn.fetch_all(SETTLE, args![now, limit, channel]).await?;
            if !rows.is_empty() {
                conn.notify(Topic::Incoming).await?;
            }
            let lost: Vec<Incoming> = rows.into_iter().map(incoming).collect::<Result<_>>()?;
            let notices: Vec<NewOutgoing> = lost.iter().filter_map(told).collect();
            notices.iter().try_for_each(check)?;
            add_replies(conn, notices).await?;
            Ok(lost)
        })
    }

    /// Those of which nobody knows how they ended, newest first. Of all users; for the operator.
    pub async fn list_unknown(self, limit: u32) -> Result<Vec<Incoming>> {
        let mut conn = self.store.reader().await?;
        let now = clock(&mut conn).await?;
        let rows: Vec<Row> = conn.fetch_all(LOST, args![now, limit]).await?;
        rows.into_iter().map(incoming).collect()
    }

    /// Forgets up to `limit` that ended longer ago than `age`, of all users; how many there were. One that is forgotten
    /// would be taken again: forget no sooner than the channel may send it twice.
    pub async fn prune(self, age: Duration, limit: u32) -> Result<u64> {
        transaction!(self.store, |conn| {
            let before = earlier(clock(conn).await?, age);
            conn.execute(PRUNE, args![before, limit]).await
        })
    }
}
