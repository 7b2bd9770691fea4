//! Broker sessions: who is connected through what, kept so that a restart or another replica goes on where one stopped.

mod bootstrap;
mod contract;

use std::time::Duration;

pub use self::bootstrap::{Bootstrap, BootstrapClaim, Packet};
pub use self::contract::ContractState;
use crate::areas::Sessions;
use crate::db::{Conn, Sql, args, transaction};
use crate::error::{Error, ErrorKind, Result};
use crate::leases::{claim_sql, earlier};
use crate::store::{Scope, check_name, check_text, now};

const HOST_LIMIT: usize = 16 * 1024;
const HELLO_LIMIT: usize = 256 * 1024;
const REASONS_LIMIT: usize = 64 * 1024;

/// A session to open, or to go on with.
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
    /// A session idle for longer is forgotten and starts anew; `None`: never.
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

type Row = (
    String,
    String,
    String,
    String,
    Option<String>,
    Option<String>,
    Option<String>,
    String,
    i64,
    Option<String>,
    Option<i64>,
    Option<String>,
    Option<i64>,
    i64,
    i64,
);

const ONE: &str = "SELECT user_id, id, agent, channel, host, hello, packet, reasons, conversation, contract, \
     written_in, bounced, delivered_in, created_at, seen_at FROM broker_sessions WHERE user_id = $1 AND id = $2";
const LIST: &str = "SELECT user_id, id, agent, channel, host, hello, packet, reasons, conversation, contract, \
     written_in, bounced, delivered_in, created_at, seen_at FROM broker_sessions WHERE user_id = $1 ORDER BY seen_at DESC, id LIMIT +$2";
const EXPIRE: Sql = claim_sql!(
    "WITH picked AS MATERIALIZED (SELECT user_id, id FROM broker_sessions WHERE seen_at < $1 ORDER BY seen_at LIMIT +$2",
    ") DELETE FROM broker_sessions WHERE (user_id, id) IN (SELECT * FROM picked)",
);

impl Sessions<'_> {
    /// Opens a session, or goes on with the one of this id.
    pub async fn open(self, open: OpenSession) -> Result<OpenSessionOutcome> {
        check_name("session", &open.id)?;
        check_name("channel", &open.channel)?;
        if let Some(host) = &open.host {
            check_text("description of the host", host, HOST_LIMIT)?;
        }
        if let Some(hello) = &open.hello {
            check_text("greeting of the host", hello, HELLO_LIMIT)?;
        }
        transaction!(self.store, |conn| enter(conn, open).await)
    }

    pub async fn get(self, user: &str, id: &str) -> Result<Option<BrokerSession>> {
        one(&mut self.store.reader().await?, user, id).await
    }

    /// The user's sessions, the last heard of first.
    pub async fn list(self, user: &str, limit: u32) -> Result<Vec<BrokerSession>> {
        let rows: Vec<Row> = self.store.reader().await?.fetch_all(LIST, args![user, limit]).await?;
        rows.into_iter().map(session).collect()
    }

    /// The session was heard of. Once a minute is enough: only idle sessions are forgotten.
    pub async fn touch(self, user: &str, id: &str) -> Result<()> {
        let (user, id) = (user.to_owned(), id.to_owned());
        transaction!(self.store, |conn| {
            conn.execute(
                "UPDATE broker_sessions SET seen_at = $3 \
                         WHERE user_id = $1 AND id = $2 AND seen_at < $3",
                args![user, id, now()],
            )
            .await
            .map(drop)
        })
    }

    /// The host has ended its session: no process goes on with it.
    pub async fn close(self, user: &str, id: &str) -> Result<()> {
        let (user, id) = (user.to_owned(), id.to_owned());
        transaction!(self.store, |conn| {
            conn.execute(
                "UPDATE broker_sessions SET hello = NULL WHERE user_id = $1 AND id = $2",
                args![user, id],
            )
            .await
            .map(drop)
        })
    }

    /// Replaces the reasons why the session is degraded; none: it is not.
    pub async fn set_reasons(self, user: &str, id: &str, reasons: &[String]) -> Result<()> {
        let (user, id, reasons) = (user.to_owned(), id.to_owned(), reasons_text(reasons)?);
        transaction!(self.store, |conn| {
            conn.execute(
                "UPDATE broker_sessions SET reasons = $3 WHERE user_id = $1 AND id = $2",
                args![user, id, reasons],
            )
            .await
            .map(drop)
        })
    }

    /// Forgets up to `limit` sessions that were not heard of for so long, of all users; how many there were.
    pub async fn expire(self, idle: Duration, limit: u32) -> Result<u64> {
        let before = earlier(now(), idle);
        transaction!(self.store, |conn| conn.execute(EXPIRE, args![before, limit]).await)
    }
}

async fn enter(conn: &mut Conn, open: OpenSession) -> Result<OpenSessionOutcome> {
    let (user, agent, at) = (open.scope.user(), open.scope.agent(), now());
    if let Some(idle) = open.idle {
        conn.execute(
            "DELETE FROM broker_sessions WHERE user_id = $1 AND id = $2 AND agent = $3 AND seen_at < $4",
            args![user, &open.id, agent, earlier(at, idle)],
        )
        .await?;
    }
    let made = conn
        .execute(
            "INSERT INTO broker_sessions (user_id, id, agent, channel, host, hello, reasons, created_at, seen_at) \
             VALUES ($1, $2, $3, $4, $5, $6, '[]', $7, $7) ON CONFLICT (user_id, id) DO NOTHING",
            args![user, &open.id, agent, &open.channel, open.host.clone(), open.hello.clone(), at],
        )
        .await?;
    if made == 0 {
        let resumed = conn
            .execute(
                "UPDATE broker_sessions SET channel = $4, host = coalesce($5, host), \
                 hello = coalesce($6, hello), seen_at = $7 WHERE user_id = $1 AND id = $2 AND agent = $3",
                args![user, &open.id, agent, &open.channel, open.host, open.hello, at],
            )
            .await?;
        if resumed == 0 {
            return Ok(OpenSessionOutcome::OfAnotherAgent);
        }
    }
    let session = one(conn, user, &open.id)
        .await?
        .ok_or_else(|| Error::new(ErrorKind::Other, "the session vanished while it was opened"))?;
    Ok(if made == 0 { OpenSessionOutcome::Resumed(session) } else { OpenSessionOutcome::New(session) })
}

async fn one(conn: &mut Conn, user: &str, id: &str) -> Result<Option<BrokerSession>> {
    let row: Option<Row> = conn.fetch_optional(ONE, args![user, id]).await?;
    row.map(session).transpose()
}

fn session(row: Row) -> Result<BrokerSession> {
    let (
        user,
        id,
        agent,
        channel,
        host,
        hello,
        packet,
        reasons,
        conversation,
        contract,
        written,
        bounced,
        delivered,
        created_at,
        seen_at,
    ) = row;
    let contract = match contract {
        Some(hash) if delivered == Some(conversation) => ContractState::Delivered { hash },
        Some(hash) if written == Some(conversation) => ContractState::Written { hash, bounced },
        _ => ContractState::Unwritten,
    };
    let reasons = reasons_of(&id, &reasons)?;
    Ok(BrokerSession {
        user,
        id,
        agent,
        channel,
        host,
        hello,
        packet,
        reasons,
        conversation,
        contract,
        created_at,
        seen_at,
    })
}

fn reasons_text(reasons: &[String]) -> Result<String> {
    let text = serde_json::Value::from(reasons).to_string();
    check_text("list of reasons", &text, REASONS_LIMIT)?;
    Ok(text)
}

fn reasons_of(session: &str, text: &str) -> Result<Vec<String>> {
    serde_json::from_str(text).map_err(|error| {
        Error::new(ErrorKind::Corrupt, format!("the reasons of the session `{session}` cannot be read"))
            .because(error)
    })
}
