//! The parts of a message on their way. A part is written down before it is handed to the channel, and begun once.

use super::OutgoingClaim;
use crate::areas::OutgoingQueue;
use crate::db::{Conn, args, transaction};
use crate::error::{Error, ErrorKind, Result};
use crate::leases::{LeaseStatus, clock};

impl OutgoingQueue<'_> {
    /// Writes down, durably, that a part is about to be handed to the channel; send it only if this was `Kept`. Parts are
    /// counted from 0, and the first one to begin is the claim's `parts_sent`. Beginning a part says that the one before
    /// has left. After a crash a part that was begun is never begun again: the message ends `unknown`.
    pub async fn begin_part(self, claim: &OutgoingClaim, part: i64) -> Result<LeaseStatus> {
        let claim = claim.clone();
        transaction!(self.store, |conn| begin(conn, &claim, part).await)
    }

    /// Writes down that the channel has a part, so that a crash before the next one loses nothing. Needed only where some
    /// time passes between two parts. `Lost` too if it is not the part that was begun last.
    pub async fn finish_part(self, claim: &OutgoingClaim, part: i64) -> Result<LeaseStatus> {
        let claim = claim.clone();
        transaction!(self.store, |conn| {
            let finished = conn
                .execute(
                    "UPDATE outgoing SET parts_sent = parts_begun WHERE user_id = $1 AND id = $2 \
                             AND fence = $3 AND state = 'sending' AND parts_begun = $4 + 1",
                    args![claim.outgoing.user, claim.outgoing.id, claim.fence, part],
                )
                .await?;
            Ok(LeaseStatus::by(finished))
        })
    }
}

async fn begin(conn: &mut Conn, claim: &OutgoingClaim, part: i64) -> Result<LeaseStatus> {
    let now = clock(conn).await?;
    let (user, id) = (&claim.outgoing.user, &claim.outgoing.id);
    // Locks the message: nobody can settle it before the part is written down.
    let ours: Option<(i64,)> = conn
        .fetch_optional(
            "UPDATE outgoing SET fence = fence WHERE user_id = $1 AND id = $2 AND fence = $3 AND state = 'sending' \
             AND lease_until > $4 RETURNING parts_begun",
            args![user, id, claim.fence, now],
        )
        .await?;
    match ours {
        None => Ok(LeaseStatus::Lost),
        Some((begun,)) if begun == part => {
            conn.execute(
                "UPDATE outgoing SET parts_sent = $3, parts_begun = $3 + 1 WHERE user_id = $1 AND id = $2",
                args![user, id, part],
            )
            .await?;
            Ok(LeaseStatus::Kept)
        }
        Some((begun,)) => Err(Error::new(
            ErrorKind::Conflict,
            format!("the part `{part}` of the message `{id}` cannot begin: the next one is `{begun}`"),
        )),
    }
}
