//! Broker sessions: who is connected through what, stored so that another process or replica can resume them.
//!
//! The mind is asked for its packet once per session: the process that holds the lease asks, the others retry. A session
//! without a connection of its own may have one conversation after the other. They are numbered, so that a late write
//! about an earlier conversation does not count for the current one.

use std::time::Duration;

use crate::areas::Sessions;
use crate::db::{Conn, Sql, Value, args, audited, from_row, transaction};
use crate::error::{Error, ErrorKind, Result};
use crate::leases::{self, Lease, LeaseStatus, LeasedRow, clock, earlier, finish_sql, prune_sql};
use crate::store::{Scope, check_name, check_text, now};

const HOST_LIMIT: usize = 16 * 1024;
const HELLO_LIMIT: usize = 256 * 1024;
const REASONS_LIMIT: usize = 64 * 1024;
const PACKET_LIMIT: usize = 4 * 1024 * 1024;

#[derive(Clone, Debug)]
pub struct OpenSession {
    pub scope: Scope,
    /// Unique per user, so that no user can resume a session of another.
    pub id: String,
    pub channel: String,
    /// The host's description of itself as JSON text; `None` keeps the stored one.
    pub host: Option<String>,
    /// What another replica needs to resume the session, as JSON text; `None`: it cannot.
    pub hello: Option<String>,
    /// A session idle for longer is replaced by a new one; `None`: never.
    pub idle: Option<Duration>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerSession {
    pub user: String,
    pub id: String,
    pub agent: String,
    pub channel: String,
    /// The host's description of itself as JSON text.
    pub host: Option<String>,
    /// What another replica needs to resume it, as JSON text.
    pub hello: Option<String>,
    /// The mind's packet as JSON text, once it was asked.
    pub packet: Option<String>,
    /// Why the session is degraded; empty if it is not.
    pub reasons: Vec<String>,
    /// Number of the current conversation.
    pub conversation: i64,
    pub contract: ContractState,
    pub created_at: i64,
    pub seen_at: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenSessionOutcome {
    New(BrokerSession),
    Resumed(BrokerSession),
    /// The id belongs to a session with another agent, which stays unchanged.
    OfAnotherAgent,
}

/// The contract of a session in its current conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContractState {
    Unwritten,
    Written {
        hash: String,
        /// Digest of the call that it was returned for.
        bounced: Option<String>,
    },
    /// Written, and a call made after reading it has arrived.
    Delivered {
        hash: String,
    },
}

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

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bootstrap {
    /// Ask the mind, then set the packet or return the claim.
    Claimed(BootstrapClaim),
    Done(Packet),
    /// Another process is asking the mind; retry soon.
    Busy,
    Missing,
}

impl LeasedRow for BootstrapClaim {
    fn key(&self) -> Vec<Value> {
        args![&self.user, &self.session, self.fence]
    }
}

from_row! {
    BrokerSession {
        user, id as String, agent, channel, host, hello, packet, reasons as String, conversation as i64,
        contract as Option<String>, written as Option<i64>, bounced, delivered as Option<i64>, created_at, seen_at,
    } => {
        let contract = match contract {
            Some(hash) if delivered == Some(conversation) => ContractState::Delivered { hash },
            Some(hash) if written == Some(conversation) => ContractState::Written { hash, bounced },
            _ => ContractState::Unwritten,
        };
        let reasons = read_reasons(&id, &reasons)?;
        Ok(Self {
            user, id, agent, channel, host, hello, packet, reasons, conversation, contract, created_at, seen_at,
        })
    }
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT user_id, id, agent, channel, host, hello, packet, reasons, conversation, contract, written_in, \
             bounced, delivered_in, created_at, seen_at FROM broker_sessions WHERE user_id = $1 ",
            $rest
        )
    };
}

const ONE: &str = select!("AND id = $2");
const LIST: &str = select!("ORDER BY seen_at DESC, id LIMIT +$2");
const TOUCH: &str = "UPDATE broker_sessions SET seen_at = $3 WHERE user_id = $1 AND id = $2 AND seen_at < $3";
const CLOSE: &str = "UPDATE broker_sessions SET hello = NULL WHERE user_id = $1 AND id = $2";
const SET_REASONS: &str = "UPDATE broker_sessions SET reasons = $3 WHERE user_id = $1 AND id = $2";
const EXPIRE: Sql = prune_sql!("broker_sessions", "seen_at < $1 ORDER BY seen_at");
const CLAIM_BOOTSTRAP: &str = "UPDATE broker_sessions SET lease_owner = $3, lease_until = $4, fence = fence + 1 \
     WHERE user_id = $1 AND id = $2 AND packet IS NULL AND lease_until <= $5 RETURNING fence";
const SET_PACKET: &str = finish_sql!("broker_sessions", "packet = $4, reasons = $5", "packet IS NULL");
const RELEASE_BOOTSTRAP: &str = "UPDATE broker_sessions SET lease_owner = NULL, lease_until = 0 \
     WHERE user_id = $1 AND id = $2 AND fence = $3 AND packet IS NULL";
const WRITTEN: &str = "UPDATE broker_sessions SET contract = $4, written_in = $3, bounced = $5, delivered_in = NULL \
     WHERE user_id = $1 AND id = $2 AND conversation = $3 \
     AND (contract IS NULL OR contract <> $4 OR written_in IS NULL OR written_in <> $3)";
const DELIVERED: &str = "UPDATE broker_sessions SET delivered_in = $3 \
     WHERE user_id = $1 AND id = $2 AND conversation = $3 AND contract = $4 AND written_in = $3";
const BEGIN_CONVERSATION: &str = "UPDATE broker_sessions SET conversation = conversation + 1 \
     WHERE user_id = $1 AND agent = $2 AND substr(id, 1, length($3)) = $3";

impl Sessions<'_> {
    /// Opens a session, or resumes the one of this id.
    pub async fn open(self, open: OpenSession) -> Result<OpenSessionOutcome> {
        check_name("session", &open.id)?;
        check_name("channel", &open.channel)?;
        if let Some(host) = &open.host {
            check_text("description of the host", host, HOST_LIMIT)?;
        }
        if let Some(hello) = &open.hello {
            check_text("greeting of the host", hello, HELLO_LIMIT)?;
        }
        transaction!(self.store, |conn| self::open(conn, open).await)
    }

    pub async fn get(self, user: &str, id: &str) -> Result<Option<BrokerSession>> {
        self.store.fetch_optional(ONE, args![user, id]).await
    }

    /// The user's sessions, the last active one first.
    pub async fn list(self, user: &str, limit: u32) -> Result<Vec<BrokerSession>> {
        self.store.fetch_all(LIST, args![user, limit]).await
    }

    /// Records activity. Once a minute is enough: only idle sessions are deleted.
    pub async fn touch(self, user: &str, id: &str) -> Result<()> {
        let (user, id) = (user.to_owned(), id.to_owned());
        transaction!(self.store, |conn| conn.execute(TOUCH, args![user, id, now()]).await.map(drop))
    }

    /// The host has ended its session: no process resumes it.
    pub async fn close(self, user: &str, id: &str) -> Result<()> {
        let (user, id) = (user.to_owned(), id.to_owned());
        transaction!(self.store, |conn| conn.execute(CLOSE, args![user, id]).await.map(drop))
    }

    /// Replaces the reasons why the session is degraded; empty: it is not.
    pub async fn set_reasons(self, user: &str, id: &str, reasons: &[String]) -> Result<()> {
        let (user, id, reasons) = (user.to_owned(), id.to_owned(), reasons_text(reasons)?);
        transaction!(self.store, |conn| conn.execute(SET_REASONS, args![user, id, reasons]).await.map(drop))
    }

    /// Deletes up to `limit` sessions that were idle for this long, of all users; returns how many.
    pub async fn expire(self, idle: Duration, limit: u32) -> Result<u64> {
        let before = earlier(now(), idle);
        transaction!(self.store, |conn| conn.execute(EXPIRE, args![before, limit]).await)
    }

    /// The packet of a session, or the claim to fetch it. Once it is stored this only reads.
    pub async fn bootstrap(self, user: &str, session: &str, lease: &Lease) -> Result<Bootstrap> {
        lease.check()?;
        let found = read_bootstrap(&mut self.store.reader().await?, user, session).await?;
        if !matches!(found, Bootstrap::Busy) {
            return Ok(found);
        }
        let (user, session, lease) = (user.to_owned(), session.to_owned(), lease.clone());
        transaction!(self.store, |conn| {
            let now = clock(conn).await?;
            let values = args![&user, &session, &lease.owner, lease.until(now), now];
            let claimed: Option<(i64,)> = conn.fetch_optional(CLAIM_BOOTSTRAP, values).await?;
            match claimed {
                Some((fence,)) => Ok(Bootstrap::Claimed(BootstrapClaim { user, session, fence })),
                None => read_bootstrap(conn, &user, &session).await,
            }
        })
    }

    /// Stores the mind's answer; from now on the session is bootstrapped, degraded or not.
    pub async fn set_packet(self, claim: &BootstrapClaim, packet: Packet) -> Result<LeaseStatus> {
        check_text("packet of the mind", &packet.text, PACKET_LIMIT)?;
        let (reasons, claim) = (reasons_text(&packet.reasons)?, claim.clone());
        transaction!(self.store, |conn| {
            leases::update(conn, SET_PACKET, &claim, args![packet.text, reasons]).await
        })
    }

    /// The mind did not answer: another process can try at once.
    pub async fn release_bootstrap(self, claim: &BootstrapClaim) -> Result<LeaseStatus> {
        let claim = claim.clone();
        transaction!(self.store, |conn| leases::update(conn, RELEASE_BOOTSTRAP, &claim, Vec::new()).await)
    }

    /// The whole contract was written to the host in this conversation, in place of the call with the digest `bounced` if
    /// any. Writing the same contract again changes nothing; another contract replaces it.
    pub async fn set_contract_written(
        self,
        user: &str,
        session: &str,
        conversation: i64,
        hash: &str,
        bounced: Option<&str>,
    ) -> Result<()> {
        check_name("hash of the contract", hash)?;
        let bounced = bounced.map(str::to_owned);
        self.update_contract(WRITTEN, args![user, session, conversation, hash, bounced]).await
    }

    /// The model of this conversation has read this contract, if it is the one that was written.
    pub async fn set_contract_read(
        self,
        user: &str,
        session: &str,
        conversation: i64,
        hash: &str,
    ) -> Result<()> {
        self.update_contract(DELIVERED, args![user, session, conversation, hash]).await
    }

    /// A new conversation, which has read nothing, begins in every session of this user and agent whose id begins with
    /// `prefix`: the protocol does not say in which of them.
    pub async fn begin_conversation(self, scope: &Scope, prefix: &str) -> Result<()> {
        self.update_contract(BEGIN_CONVERSATION, args![scope.user(), scope.agent(), prefix]).await
    }

    async fn update_contract(self, sql: &'static str, args: Vec<Value>) -> Result<()> {
        audited!(self.store, |tx| tx.conn.execute(sql, args).await.map(drop))
    }
}

async fn open(conn: &mut Conn, open: OpenSession) -> Result<OpenSessionOutcome> {
    let (user, agent, at) = (open.scope.user(), open.scope.agent(), now());
    if let Some(idle) = open.idle {
        let sql =
            "DELETE FROM broker_sessions WHERE user_id = $1 AND id = $2 AND agent = $3 AND seen_at < $4";
        conn.execute(sql, args![user, &open.id, agent, earlier(at, idle)]).await?;
    }
    let sql = "INSERT INTO broker_sessions (user_id, id, agent, channel, host, hello, reasons, created_at, seen_at) \
         VALUES ($1, $2, $3, $4, $5, $6, '[]', $7, $7) ON CONFLICT (user_id, id) DO NOTHING";
    let made = conn
        .execute(sql, args![user, &open.id, agent, &open.channel, open.host.clone(), open.hello.clone(), at])
        .await?;
    if made == 0 {
        let sql = "UPDATE broker_sessions SET channel = $4, host = coalesce($5, host), \
             hello = coalesce($6, hello), seen_at = $7 WHERE user_id = $1 AND id = $2 AND agent = $3";
        let resumed =
            conn.execute(sql, args![user, &open.id, agent, &open.channel, open.host, open.hello, at]).await?;
        if resumed == 0 {
            return Ok(OpenSessionOutcome::OfAnotherAgent);
        }
    }
    let session: Option<BrokerSession> = conn.fetch_optional(ONE, args![user, &open.id]).await?;
    let session =
        session.ok_or_else(|| Error::new(ErrorKind::Other, "the session was deleted while it was opened"))?;
    Ok(if made == 0 { OpenSessionOutcome::Resumed(session) } else { OpenSessionOutcome::New(session) })
}

/// `Busy` for every session without a packet: a write decides which process may ask.
async fn read_bootstrap(conn: &mut Conn, user: &str, session: &str) -> Result<Bootstrap> {
    let sql = "SELECT packet, reasons FROM broker_sessions WHERE user_id = $1 AND id = $2";
    let row: Option<(Option<String>, String)> = conn.fetch_optional(sql, args![user, session]).await?;
    Ok(match row {
        None => Bootstrap::Missing,
        Some((None, _)) => Bootstrap::Busy,
        Some((Some(text), reasons)) => {
            Bootstrap::Done(Packet { text, reasons: read_reasons(session, &reasons)? })
        }
    })
}

fn reasons_text(reasons: &[String]) -> Result<String> {
    let text = serde_json::Value::from(reasons).to_string();
    check_text("list of reasons", &text, REASONS_LIMIT)?;
    Ok(text)
}

fn read_reasons(session: &str, text: &str) -> Result<Vec<String>> {
    serde_json::from_str(text).map_err(|error| {
        Error::new(ErrorKind::Corrupt, format!("the reasons of the session `{session}` cannot be read"))
            .because(error)
    })
}
