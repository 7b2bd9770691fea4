//! Asking: the same call asks once, however often it comes, and picks the answer up when it comes again. A user has only
//! so many questions open.

use std::time::Duration;

use super::{Approval, columns};
use crate::areas::Approvals;
use crate::audit::Arguments;
use crate::changes::Topic;
use crate::db::{Conn, args, transaction};
use crate::error::{Error, ErrorKind, Result};
use crate::leases::{clock, later};
use crate::store::{Scope, check_name, check_text, new_id};

const ARGS_LIMIT: usize = 1024 * 1024;
const REASON_LIMIT: usize = 16 * 1024;
const FLAGS_LIMIT: usize = 64 * 1024;
/// More than a person answers; an agent that asks in a loop is stopped here. Those who ask at the same moment do not see
/// each other on PostgreSQL, so that a few more may get in.
const PENDING_LIMIT: i64 = 100;

#[derive(Clone, Debug)]
pub struct AskApproval {
    pub scope: Scope,
    pub session: String,
    pub channel: String,
    pub body: String,
    pub tool: String,
    pub class: String,
    /// Canonical arguments as JSON text, at most 1 MiB. The approval is bound to exactly this text.
    pub args: String,
    /// Hash of the tool's pinned definition.
    pub pin: String,
    /// Name and version of the policy rule that asks.
    pub policy: String,
    pub reason: String,
    pub flags: Vec<String>,
    /// Time to decide and to use the approval.
    pub timeout: Duration,
}

/// What became of asking, and what was noticed on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskResult {
    pub asked: AskOutcome,
    /// An earlier approval of the same call that this request found expired; `expire` does not return it
    /// again.
    pub expired: Option<Approval>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskOutcome {
    New(Approval),
    /// The same call asked before: its approval is pending, or approved and unused.
    Same(Approval),
    /// The same call was denied, and the denial has not expired.
    Denied(Approval),
    /// The user has as many pending approvals as allowed.
    Full,
}

const ASK: &str = concat!(
    "INSERT INTO approvals AS this (user_id, id, agent, session, channel, body, tool, class, args, digest, pin, policy, \
     reason, flags, status, created_at, expires_at) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 'pending', $15, $16) \
     ON CONFLICT (user_id, agent, body, tool, digest, pin, policy) WHERE status IN ('pending', 'approved') \
     DO UPDATE SET status = this.status RETURNING ",
    columns!()
);
const DENIED: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM approvals WHERE user_id = $1 AND agent = $2 AND digest = $3 AND body = $4 AND tool = $5 AND pin = $6 \
     AND policy = $7 AND status = 'denied' AND expires_at > $8 ORDER BY id DESC LIMIT 1"
);

const LAPSE: &str = concat!(
    "UPDATE approvals SET status = 'expired', told_at = $8 WHERE user_id = $1 AND agent = $2 AND digest = $3 \
     AND body = $4 AND tool = $5 AND pin = $6 AND policy = $7 AND told_at IS NULL \
     AND status IN ('pending', 'approved', 'expired') AND expires_at <= $8 RETURNING ",
    columns!()
);
const EXPIRE: &str = concat!(
    "UPDATE approvals SET status = 'expired', told_at = $3 WHERE user_id = $1 AND id = $2 RETURNING ",
    columns!()
);
const WITHDRAW: &str = "UPDATE approvals SET status = 'expired', told_at = $3 \
     WHERE user_id = $1 AND id = $2 AND status IN ('pending', 'approved')";

impl Approvals<'_> {
    /// Asks for an approval, or finds the one that the same call of the same agent asked for before, in whichever session.
    pub async fn ask(self, ask: AskApproval) -> Result<AskResult> {
        check(&ask)?;
        let digest = Arguments::of(&ask.args).digest().to_owned();
        transaction!(self.store, |conn| {
            let asked = put(conn, &ask, &digest).await?;
            let changed = matches!(asked.asked, AskOutcome::New(_)) || asked.expired.is_some();
            if changed {
                conn.notify(Topic::Approvals).await?;
            }
            Ok(asked)
        })
    }

    /// The approval that the same call of the same agent asked for before, in whichever session, if its time is over;
    /// ends it if nobody has. It is returned once, whoever ended it, unless asking anew has handed it out. Nothing new is
    /// asked for. If it was decided it was given, and nobody used it.
    pub async fn take_expired(self, ask: AskApproval) -> Result<Option<Approval>> {
        check(&ask)?;
        let digest = Arguments::of(&ask.args).digest().to_owned();
        transaction!(self.store, |conn| {
            let now = clock(conn).await?;
            let AskApproval { scope, body, tool, pin, policy, .. } = &ask;
            let key = args![scope.user(), scope.agent(), &digest, body, tool, pin, policy, now];
            // Of several, told together, the last one counts.
            let lapsed: Vec<Approval> = conn.fetch_all(LAPSE, key).await?;
            let lapsed = lapsed.into_iter().max_by(|one, other| one.id.cmp(&other.id));
            if lapsed.is_some() {
                conn.notify(Topic::Approvals).await?;
            }
            Ok(lapsed)
        })
    }

    /// Ends the user's approval of this id, given or not, before its time, because what was shown is not what is to be
    /// decided any more; whether it was open. The same call can ask anew.
    pub async fn withdraw(self, user: &str, id: &str) -> Result<bool> {
        let (user, id) = (user.to_owned(), id.to_owned());
        transaction!(self.store, |conn| {
            let now = clock(conn).await?;
            let ended = conn.execute(WITHDRAW, args![user, id, now]).await?;
            if ended > 0 {
                conn.notify(Topic::Approvals).await?;
            }
            Ok(ended > 0)
        })
    }
}

fn check(ask: &AskApproval) -> Result<()> {
    for (what, name) in [
        ("session", &ask.session),
        ("channel", &ask.channel),
        ("body", &ask.body),
        ("tool", &ask.tool),
        ("class", &ask.class),
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

async fn put(conn: &mut Conn, ask: &AskApproval, digest: &str) -> Result<AskResult> {
    let now = clock(conn).await?;
    let mut expired = None;
    // The second round is for an open one that is over: it leaves its place to the new one.
    for _ in 0..2 {
        let id = new_id();
        let found: Approval = conn.fetch_one(ASK, values(ask, digest, &id, now)).await?;
        if found.id == id {
            return Ok(AskResult { asked: settled(conn, found, now).await?, expired });
        }
        if found.expires_at > now {
            return Ok(AskResult { asked: AskOutcome::Same(found), expired });
        }
        expired = Some(conn.fetch_one(EXPIRE, args![&found.user, &found.id, now]).await?);
    }
    Err(Error::new(ErrorKind::Busy, "the approval was asked for by too many at once").hint("try again"))
}

fn values(ask: &AskApproval, digest: &str, id: &str, now: i64) -> Vec<crate::db::Value> {
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
        digest,
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
async fn settled(conn: &mut Conn, new: Approval, now: i64) -> Result<AskOutcome> {
    let Approval { user, agent, digest, body, tool, pin, policy, .. } = &new;
    let denied: Option<Approval> =
        conn.fetch_optional(DENIED, args![user, agent, digest, body, tool, pin, policy, now]).await?;
    let refused = match denied {
        Some(denied) => AskOutcome::Denied(denied),
        None if pending(conn, user, now).await? > PENDING_LIMIT => AskOutcome::Full,
        None => return Ok(AskOutcome::New(new)),
    };
    conn.execute("DELETE FROM approvals WHERE user_id = $1 AND id = $2", args![user, &new.id]).await?;
    Ok(refused)
}

/// How many of the user's wait for an answer.
async fn pending(conn: &mut Conn, user: &str, now: i64) -> Result<i64> {
    let (count,): (i64,) = conn
        .fetch_one(
            "SELECT count(*) FROM approvals WHERE user_id = $1 AND status = 'pending' AND expires_at > $2",
            args![user, now],
        )
        .await?;
    Ok(count)
}
