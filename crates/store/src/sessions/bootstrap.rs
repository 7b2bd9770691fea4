//! The mind is asked for its packet once per session: whoever holds the lease asks, the others look again.

use super::{reasons_of, reasons_text};
use crate::areas::Sessions;
use crate::db::{Conn, args, transaction};
use crate::error::Result;
use crate::leases::{Lease, LeaseStatus, clock};
use crate::store::check_text;

const PACKET_LIMIT: usize = 4 * 1024 * 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// JSON text as received, at most 4 MiB.
    pub text: String,
    /// Why the mind is degraded.
    pub reasons: Vec<String>,
}

/// The right to ask the mind for this session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootstrapClaim {
    pub user: String,
    pub session: String,
    pub fence: i64,
}

/// How far the bootstrap of a session is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bootstrap {
    /// Ask the mind, then set the packet or return the claim.
    Claimed(BootstrapClaim),
    Done(Packet),
    /// Another process is asking the mind; retry soon.
    Busy,
    Missing,
}

impl Sessions<'_> {
    /// The packet of a session, or the right to fetch it. Once it is there this only reads.
    pub async fn bootstrap(self, user: &str, session: &str, lease: &Lease) -> Result<Bootstrap> {
        lease.check()?;
        let found = look(&mut self.store.reader().await?, user, session).await?;
        if !matches!(found, Bootstrap::Busy) {
            return Ok(found);
        }
        let (user, session, lease) = (user.to_owned(), session.to_owned(), lease.clone());
        transaction!(self.store, |conn| take(conn, user, session, &lease).await)
    }

    /// Keeps the mind's answer; from now on the session is bootstrapped, degraded or not.
    pub async fn set_packet(self, claim: &BootstrapClaim, packet: Packet) -> Result<LeaseStatus> {
        check_text("packet of the mind", &packet.text, PACKET_LIMIT)?;
        let reasons = reasons_text(&packet.reasons)?;
        let BootstrapClaim { user, session, fence } = claim.clone();
        transaction!(self.store, |conn| {
            let kept = conn
                        .execute(
                            "UPDATE broker_sessions SET packet = $4, reasons = $5, lease_owner = NULL, lease_until = 0 \
                             WHERE user_id = $1 AND id = $2 AND fence = $3 AND packet IS NULL",
                            args![user, session, fence, packet.text, reasons],
                        )
                        .await?;
            Ok(LeaseStatus::by(kept))
        })
    }

    /// The mind did not answer: the next one may try at once.
    pub async fn release_bootstrap(self, claim: &BootstrapClaim) -> Result<LeaseStatus> {
        let BootstrapClaim { user, session, fence } = claim.clone();
        transaction!(self.store, |conn| {
            let returned = conn
                .execute(
                    "UPDATE broker_sessions SET lease_owner = NULL, lease_until = 0 \
                             WHERE user_id = $1 AND id = $2 AND fence = $3 AND packet IS NULL",
                    args![user, session, fence],
                )
                .await?;
            Ok(LeaseStatus::by(returned))
        })
    }
}

/// `Busy` for every session without a packet: who may ask is decided by a write.
async fn look(conn: &mut Conn, user: &str, session: &str) -> Result<Bootstrap> {
    let row: Option<(Option<String>, String)> = conn
        .fetch_optional(
            "SELECT packet, reasons FROM broker_sessions WHERE user_id = $1 AND id = $2",
            args![user, session],
        )
        .await?;
    Ok(match row {
        None => Bootstrap::Missing,
        Some((None, _)) => Bootstrap::Busy,
        Some((Some(text), reasons)) => {
            Bootstrap::Done(Packet { text, reasons: reasons_of(session, &reasons)? })
        }
    })
}

async fn take(conn: &mut Conn, user: String, session: String, lease: &Lease) -> Result<Bootstrap> {
    let now = clock(conn).await?;
    let claimed: Option<(i64,)> = conn
        .fetch_optional(
            "UPDATE broker_sessions SET lease_owner = $3, lease_until = $4, fence = fence + 1 \
             WHERE user_id = $1 AND id = $2 AND packet IS NULL AND lease_until <= $5 RETURNING fence",
            args![&user, &session, &lease.owner, lease.until(now), now],
        )
        .await?;
    match claimed {
        Some((fence,)) => Ok(Bootstrap::Claimed(BootstrapClaim { user, session, fence })),
        None => look(conn, &user, &session).await,
    }
}
