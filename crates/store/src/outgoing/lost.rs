//! Outgoing messages whose sender was gone before the end, and forgetting those that ended long ago.

use std::time::Duration;

use super::{Outgoing, Row, columns, outgoing, shown};
use crate::areas::OutgoingQueue;
use crate::changes::Topic;
use crate::db::{Sql, args, transaction};
use crate::error::Result;
use crate::leases::{claim, clock, earlier};

const SETTLE: Sql = claim!(
    "WITH picked AS MATERIALIZED (SELECT user_id AS picked_user, id AS picked_id FROM outgoing \
     WHERE channel = $3 AND state = 'sending' AND lease_until <= $1 ORDER BY lease_until LIMIT +$2",
    concat!(
        ") UPDATE outgoing SET state = CASE WHEN parts_begun > parts_sent THEN 'unknown' ELSE 'waiting' END, \
         finished_at = CASE WHEN parts_begun > parts_sent THEN $1 ELSE NULL END, \
         reason = 'whoever sent it was gone before it ended', lease_owner = NULL, lease_until = 0 FROM picked \
         WHERE user_id = picked_user AND id = picked_id RETURNING ",
        columns!("state")
    ),
);
const LOST: &str = concat!(
    "SELECT ",
    shown!(),
    " FROM outgoing WHERE state = 'unknown' \
     OR (state = 'sending' AND lease_until <= $1 AND parts_begun > parts_sent) ORDER BY id DESC LIMIT +$2"
);
const PRUNE: Sql = claim!(
    "WITH picked AS MATERIALIZED (SELECT user_id, id FROM outgoing WHERE finished_at < $1 ORDER BY finished_at LIMIT +$2",
    ") DELETE FROM outgoing WHERE (user_id, id) IN (SELECT * FROM picked)",
);

impl OutgoingQueue<'_> {
    /// Settles up to `limit` of this channel whose lease ran out, and returns them, each once, whoever asks. One of which
    /// a part was on its way ends as `unknown`; one of which none was waits again. Of all users; for the sender.
    pub async fn expire(self, channel: &str, limit: u32) -> Result<Vec<Outgoing>> {
        let channel = channel.to_owned();
        transaction!(self.store, |conn| {
            let now = clock(conn).await?;
            let rows: Vec<Row> = conn.fetch_all(SETTLE, args![now, limit, channel]).await?;
            if !rows.is_empty() {
                conn.notify(Topic::Outgoing).await?;
            }
            rows.into_iter().map(outgoing).collect()
        })
    }

    /// Those of which nobody knows whether they have left, newest first. Of all users; for the operator.
    pub async fn list_unknown(self, limit: u32) -> Result<Vec<Outgoing>> {
        let mut conn = self.store.reader().await?;
        let now = clock(&mut conn).await?;
        let rows: Vec<Row> = conn.fetch_all(LOST, args![now, limit]).await?;
        rows.into_iter().map(outgoing).collect()
    }

    /// Forgets up to `limit` that ended longer ago than `age`, of all users; how many there were.
    pub async fn prune(self, age: Duration, limit: u32) -> Result<u64> {
        transaction!(self.store, |conn| {
            let before = earlier(clock(conn).await?, age);
            conn.execute(PRUNE, args![before, limit]).await
        })
    }
}
