//! Asking: the same call asks once, however often it comes, and picks the answer up when it comes again.

use std::time::Duration;

use super::{Approval, ApprovalStatus, columns};
use crate::changes::{Topic, tell};
use crate::db::{Conn, args};
use crate::error::{Error, ErrorKind, Result};
use crate::leases::{clock, later};
use crate::store::{Scope, Store, check_name, check_text, new_id};

const ARGS_LIMIT: usize = 1024 * 1024;
const REASON_LIMIT: usize = 16 * 1024;
const FLAGS_LIMIT: usize = 64 * 1024;

/// What somebody is asked to approve.
#[derive(Clone, Debug)]
pub struct AskApproval {
    /// Whose call, and by which agent.
    pub scope: Scope,
    /// The session that calls.
    pub session: String,
    /// The channel of that session.
    pub channel: String,
    /// The body that is called.
    pub body: String,
    /// The tool of that body.
    pub tool: String,
    /// The class of the call.
    pub class: String,
    /// The arguments as they came, as JSON text; at most 1 MiB.
    pub args: String,
    /// The digest of the canonical arguments.
    pub digest: String,
    /// The hash of the tool's pinned definition.
    pub pin: String,
    /// The version of the policy that asks.
    pub policy: String,
    /// Why somebody is asked.
    pub reason: String,
    /// What the mind flagged.
    pub flags: Vec<String>,
    /// How long there is to answer and to use the answer.
    pub timeout: Duration,
}

/// What became of asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// It is asked for now.
    New(Approval),
    /// The same call was asked about before: it is pending, or approved and not used.
    Same(Approval),
    /// The same call was denied, and its time is not over: nobody is asked again.
    Denied(Approval),
}

const ASK: &str = concat!(
    "INSERT INTO approvals AS this (user_id, id, agent, session, channel, body, tool, class, args, digest, pin, policy, \
     reason, flags, status, created_at, expires_at) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 'pending', $15, $16) \
     ON CONFLICT (user_id, session, body, tool, digest, pin, policy) WHERE status IN ('pending', 'approved') \
     DO UPDATE SET status = this.status RETURNING ",
    columns!()
);
const DENIED: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM approvals WHERE user_id = $1 AND session = $2 AND digest = $3 AND body = $4 AND tool = $5 AND pin = $6 \
     AND policy = $7 AND status = 'denied' AND expires_at > $8 ORDER BY id DESC LIMIT 1"
);

impl Store {
    /// Asks for an approval, or finds the one that the same call of the same session asked for before.
    pub async fn ask_approval(&self, ask: AskApproval) -> Result<Asked> {
        check(&ask)?;
        let asked = self.db().write(move |conn| Box::pin(async move { put(conn, &ask).await })).await?;
        if matches!(asked, Asked::New(_)) {
            self.wake(Topic::Approvals);
        }
        Ok(asked)
    }
}

fn check(ask: &AskApproval) -> Result<()> {
    for (what, name) in [
        ("session", &ask.session),
        ("channel", &ask.channel),
        ("body", &ask.body),
        ("tool", &ask.tool),
        ("class", &ask.class),
        ("digest", &ask.digest),
        ("pin", &ask.pin),
        ("policy", &ask.policy),
    ] {
        check_name(what, name)?;
    }
    check_text("text of the arguments", &ask.args, ARGS_LIMIT)?;
    check_text("reason", &ask.reason, REASON_LIMIT)?;
    check_text("list of flags", &flags_text(ask), FLAGS_LIMIT)
}

fn flags_text(ask: &AskApproval) -> String {
    serde_json::Value::from(ask.flags.as_slice()).to_string()
}

async fn put(conn: &mut Conn, ask: &AskApproval) -> Result<Asked> {
    let now = clock(conn).await?;
    // The second round is for an open one that is over: it leaves its place to the new one.
    for _ in 0..2 {
        let id = new_id();
        let found: Approval = conn.one(ASK, values(ask, &id, now)).await?;
        if found.id == id {
            return settled(conn, ask, found, now).await;
        }
        if found.expires_at > now {
            return Ok(Asked::Same(found));
        }
        conn.run(
            "UPDATE approvals SET status = $3 WHERE user_id = $1 AND id = $2",
            args![&found.user, &found.id, ApprovalStatus::Expired.name()],
        )
        .await?;
    }
    Err(Error::new(ErrorKind::Busy, "the approval was asked for by too many at once").hint("try again"))
}

fn values(ask: &AskApproval, id: &str, now: i64) -> Vec<crate::db::Value> {
    args![
        ask.scope.user(),
        id,
        ask.scope.agent(),
        &ask.session,
        &ask.channel,
        &ask.body,
        &ask.tool,
        &ask.class,
        &ask.args,
        &ask.digest,
        &ask.pin,
        &ask.policy,
        &ask.reason,
        flags_text(ask),
        now,
        later(now, ask.timeout)
    ]
}

/// A denial stands until its time is over. It is looked for after the new row holds the place, so that one that was
/// given at this moment is seen.
async fn settled(conn: &mut Conn, ask: &AskApproval, new: Approval, now: i64) -> Result<Asked> {
    let denied: Option<Approval> = conn
        .maybe(
            DENIED,
            args![
                ask.scope.user(),
                &ask.session,
                &ask.digest,
                &ask.body,
                &ask.tool,
                &ask.pin,
                &ask.policy,
                now
            ],
        )
        .await?;
    if let Some(denied) = denied {
        conn.run("DELETE FROM approvals WHERE user_id = $1 AND id = $2", args![&new.user, &new.id]).await?;
        return Ok(Asked::Denied(denied));
    }
    tell(conn, Topic::Approvals).await?;
    Ok(Asked::New(new))
}
