//! Approvals: a person's answer to one call, bound to what was shown, used once. One that is not given in time is denied.
//!
//! The same call asks once, however often it comes. Using an approval and recording the intent of the call are one
//! commit: a call cannot run without a record, and an approval cannot be used twice.

use std::time::Duration;

use serde::Serialize;

use crate::areas::Approvals;
use crate::audit::{Action, Actor, Intent, RecordedIntent, RedactedArguments};
use crate::changes::Topic;
use crate::db::{Conn, Sql, Value, args, audited, from_row, names, transaction};
use crate::error::{Error, ErrorKind, Result};
use crate::leases::{claim_sql, clock, later};
use crate::store::{Scope, check_name, check_text, new_id};

const ARGS_LIMIT: usize = 1024 * 1024;
const REASON_LIMIT: usize = 16 * 1024;
const FLAGS_LIMIT: usize = 64 * 1024;
/// More than a person answers; this stops an agent that asks in a loop. Transactions that ask at the same moment do not
/// see each other on PostgreSQL, so that a few more may be added.
const PENDING_LIMIT: i64 = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalStatus {
    Pending,
    /// Approved and unused.
    Approved,
    Denied,
    /// Not decided, or not used, in time. Counts as denied.
    Expired,
    Used,
}

names! {
    pub ApprovalStatus {
        Pending = "pending", Approved = "approved", Denied = "denied", Expired = "expired", Used = "used",
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Approval {
    pub user: String,
    pub id: String,
    pub agent: String,
    pub session: String,
    pub channel: String,
    pub body: String,
    pub tool: String,
    pub class: String,
    /// Canonical arguments as JSON text.
    pub args: String,
    /// Digest of exactly `args`.
    pub digest: String,
    /// Hash of the tool's pinned definition.
    pub pin: String,
    pub policy: String,
    pub reason: String,
    pub flags: Vec<String>,
    pub status: ApprovalStatus,
    pub created_at: i64,
    pub expires_at: i64,
    pub decided_at: Option<i64>,
    pub decided_by: Option<String>,
    pub used_at: Option<i64>,
}

from_row! {
    Approval {
        user, id, agent, session, channel, body, tool, class, args, digest, pin, policy, reason, flags: read_flags,
        status: read_status, created_at, expires_at, decided_at, decided_by, used_at,
    }
}

fn read_flags(flags: String) -> sqlx::Result<Vec<String>> {
    serde_json::from_str(&flags).map_err(|error| sqlx::Error::Decode(error.into()))
}

fn read_status(name: String) -> sqlx::Result<ApprovalStatus> {
    ApprovalStatus::from_name(&name)
        .ok_or_else(|| sqlx::Error::Decode(format!("unknown status `{name}`").into()))
}

impl Approval {
    /// An open one whose time is over is shown as expired before that is stored.
    fn shown_at(self, now: i64) -> Self {
        let open = matches!(self.status, ApprovalStatus::Pending | ApprovalStatus::Approved);
        let status = if open && self.expires_at <= now { ApprovalStatus::Expired } else { self.status };
        Self { status, ..self }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalFilter {
    Pending,
    /// Denied, and the denial stands: the same call is refused without a question.
    Denied,
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApprovalCounts {
    pub asked: i64,
    /// Expired without an answer.
    pub expired: i64,
    /// Approved, but not used before they expired.
    pub unused: i64,
}

#[derive(Clone, Debug)]
pub struct ApprovalRequest {
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

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskResult {
    pub asked: AskOutcome,
    /// An earlier approval of the same call that this request found expired; `expire` does not return it again.
    pub expired: Option<Approval>,
    /// The policies of other questions about the same call that are open, or answered and not used: they are for other calls
    /// than this one. Only with a new approval.
    pub other_policies: Vec<String>,
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Approve,
    Deny,
}

#[derive(Clone, Debug)]
pub struct DecideApproval {
    pub user: String,
    pub id: String,
    pub answer: Answer,
    pub by: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecideOutcome {
    Decided(Approval),
    /// Already decided, used or expired.
    NotPending(Approval),
    Missing,
}

#[derive(Clone, Debug)]
pub struct UseApproval {
    pub id: String,
    pub actor: Actor,
    /// Body, tool and arguments digest must be those that were approved.
    pub intent: Intent,
    pub pin: String,
    pub policy: String,
}

#[derive(Debug, PartialEq, Eq)]
pub enum ApprovalUse {
    /// The approval is used up and the intent is durable.
    Used(RecordedIntent),
    /// Nothing is written.
    Refused(UnusableApproval),
}

/// Why an approval does not cover a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnusableApproval {
    Missing,
    Pending,
    Denied,
    Expired,
    Used,
    /// Approved for another body, tool, arguments, definition or policy.
    OtherCall,
}

/// All columns, for `SELECT` and `RETURNING`.
macro_rules! columns {
    () => {
        "user_id, id, agent, session, channel, body, tool, class, args, digest, pin, policy, reason, flags, status, \
         created_at, expires_at, decided_at, decided_by, used_at"
    };
}

const ONE: &str = concat!("SELECT ", columns!(), " FROM approvals WHERE user_id = $1 AND id = $2");
const ANYONES: &str = concat!("SELECT ", columns!(), " FROM approvals WHERE id = $1");
/// `$1` limits the number.
macro_rules! listed {
    ($which:literal) => {
        concat!("SELECT ", columns!(), " FROM approvals WHERE ", $which, " ORDER BY id DESC LIMIT +$1")
    };
}
const LIST: &str = listed!("user_id = $2");
const LIST_PENDING: &str = listed!("user_id = $2 AND status = 'pending' AND expires_at > $3");
const LIST_DENIED: &str = listed!("user_id = $2 AND status = 'denied' AND expires_at > $3");
const LIST_ALL: &str = listed!("true");
const LIST_ALL_PENDING: &str = listed!("status = 'pending' AND expires_at > $2");
const LIST_ALL_DENIED: &str = listed!("status = 'denied' AND expires_at > $2");
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
const OTHER_POLICIES: &str = "SELECT policy FROM approvals WHERE user_id = $1 AND agent = $2 AND digest = $3 \
     AND body = $4 AND tool = $5 AND policy <> $6 AND status IN ('pending', 'approved') AND expires_at > $7 \
     ORDER BY id DESC LIMIT 8";
const TAKE_EXPIRED: &str = concat!(
    "UPDATE approvals SET status = 'expired', told_at = $8 WHERE user_id = $1 AND agent = $2 AND digest = $3 \
     AND body = $4 AND tool = $5 AND pin = $6 AND policy = $7 AND told_at IS NULL \
     AND status IN ('pending', 'approved', 'expired') AND expires_at <= $8 RETURNING ",
    columns!()
);
const EXPIRE_ONE: &str = concat!(
    "UPDATE approvals SET status = 'expired', told_at = $3 WHERE user_id = $1 AND id = $2 RETURNING ",
    columns!()
);
const WITHDRAW: &str = "UPDATE approvals SET status = 'expired', told_at = $3 \
     WHERE user_id = $1 AND id = $2 AND status IN ('pending', 'approved')";
const DECIDE: &str = concat!(
    "UPDATE approvals SET status = $3, decided_at = $4, decided_by = $5 \
     WHERE user_id = $1 AND id = $2 AND status = 'pending' AND expires_at > $4 RETURNING ",
    columns!()
);
const ASK_AGAIN: &str = concat!(
    "UPDATE approvals SET expires_at = $3 WHERE user_id = $1 AND id = $2 AND status = 'denied' AND expires_at > $3 RETURNING ",
    columns!()
);
const USE: &str = "UPDATE approvals SET status = 'used', used_at = $8 \
     WHERE user_id = $1 AND id = $2 AND body = $3 AND tool = $4 AND digest = $5 AND pin = $6 AND policy = $7 \
     AND status = 'approved' AND expires_at > $8";
const COUNTS: &str = "SELECT count(CASE WHEN created_at >= $2 AND created_at < $3 THEN 1 END), \
     count(CASE WHEN expires_at >= $2 AND expires_at < $3 AND expires_at <= $4 \
     AND status IN ('pending', 'approved', 'expired') AND decided_at IS NULL THEN 1 END), \
     count(CASE WHEN expires_at >= $2 AND expires_at < $3 AND expires_at <= $4 \
     AND status IN ('approved', 'expired') AND decided_at IS NOT NULL THEN 1 END) FROM approvals WHERE user_id = $1";
const EXPIRE: Sql = claim_sql!(
    "WITH picked AS MATERIALIZED (SELECT user_id AS picked_user, id AS picked_id FROM approvals \
     WHERE status IN ('pending', 'approved') AND expires_at <= $1 ORDER BY expires_at LIMIT +$2",
    concat!(
        ") UPDATE approvals SET status = 'expired' FROM picked WHERE user_id = picked_user AND id = picked_id RETURNING ",
        columns!()
    ),
);
const PRUNE: Sql = claim_sql!(
    "WITH picked AS MATERIALIZED (SELECT user_id, id FROM approvals \
     WHERE status IN ('denied', 'used', 'expired') AND expires_at < $1 LIMIT +$2",
    ") DELETE FROM approvals WHERE (user_id, id) IN (SELECT * FROM picked)",
);

impl Approvals<'_> {
    pub async fn get(self, user: &str, id: &str) -> Result<Option<Approval>> {
        fetch_approval(&mut self.store.reader().await?, user, id).await
    }

    pub async fn list(self, user: &str, filter: ApprovalFilter, limit: u32) -> Result<Vec<Approval>> {
        let mut conn = self.store.reader().await?;
        let now = clock(&mut conn).await?;
        let found: Vec<Approval> = match filter {
            ApprovalFilter::Pending => conn.fetch_all(LIST_PENDING, args![limit, user, now]).await?,
            ApprovalFilter::Denied => conn.fetch_all(LIST_DENIED, args![limit, user, now]).await?,
            ApprovalFilter::All => conn.fetch_all(LIST, args![limit, user]).await?,
        };
        Ok(found.into_iter().map(|approval| approval.shown_at(now)).collect())
    }

    /// How many approvals of the user were asked for, and how many expired, in a time; `until` is not part of it. Those that
    /// were pruned do not count.
    pub async fn count_between(self, user: &str, since: i64, until: i64) -> Result<ApprovalCounts> {
        let mut conn = self.store.reader().await?;
        let now = clock(&mut conn).await?;
        let (asked, expired, unused) = conn.fetch_one(COUNTS, args![user, since, until, now]).await?;
        Ok(ApprovalCounts { asked, expired, unused })
    }

    /// The approval of this id, of any user. For the operator.
    pub async fn find(self, id: &str) -> Result<Option<Approval>> {
        let mut conn = self.store.reader().await?;
        let now = clock(&mut conn).await?;
        let found: Option<Approval> = conn.fetch_optional(ANYONES, args![id]).await?;
        Ok(found.map(|approval| approval.shown_at(now)))
    }

    /// The approvals of all users, newest first. For the operator.
    pub async fn list_all(self, filter: ApprovalFilter, limit: u32) -> Result<Vec<Approval>> {
        let mut conn = self.store.reader().await?;
        let now = clock(&mut conn).await?;
        let found: Vec<Approval> = match filter {
            ApprovalFilter::Pending => conn.fetch_all(LIST_ALL_PENDING, args![limit, now]).await?,
            ApprovalFilter::Denied => conn.fetch_all(LIST_ALL_DENIED, args![limit, now]).await?,
            ApprovalFilter::All => conn.fetch_all(LIST_ALL, args![limit]).await?,
        };
        Ok(found.into_iter().map(|approval| approval.shown_at(now)).collect())
    }

    /// Asks for an approval, or finds the one that the same call of the same agent asked for before, in any session.
    pub async fn ask(self, ask: ApprovalRequest) -> Result<AskResult> {
        check(&ask)?;
        let digest = RedactedArguments::digest_of(&ask.args);
        transaction!(self.store, |conn| {
            let asked = self::ask(conn, &ask, &digest).await?;
            let changed = matches!(asked.asked, AskOutcome::New(_)) || asked.expired.is_some();
            if changed {
                conn.notify(Topic::Approvals).await?;
            }
            Ok(asked)
        })
    }

    /// The approval that the same call of the same agent asked for before, in any session, if its time is over; expires it
    /// if that is not done. It is returned once, unless `ask` has returned it. If it was decided, it was given and unused.
    pub async fn take_expired(self, ask: ApprovalRequest) -> Result<Option<Approval>> {
        check(&ask)?;
        let digest = RedactedArguments::digest_of(&ask.args);
        transaction!(self.store, |conn| {
            let now = clock(conn).await?;
            let ApprovalRequest { scope, body, tool, pin, policy, .. } = &ask;
            let key = args![scope.user(), scope.agent(), &digest, body, tool, pin, policy, now];
            // Of several that are taken together, the last one counts.
            let expired: Vec<Approval> = conn.fetch_all(TAKE_EXPIRED, key).await?;
            let expired = expired.into_iter().max_by(|one, other| one.id.cmp(&other.id));
            if expired.is_some() {
                conn.notify(Topic::Approvals).await?;
            }
            Ok(expired)
        })
    }

    /// Expires an open approval of the user before its time, because what was shown is no longer what is to be decided;
    /// returns whether it was open. The same call can ask again.
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

    /// Decides a pending approval, with an audit record in the same commit. The caller checks who may decide.
    pub async fn decide(self, decide: DecideApproval) -> Result<DecideOutcome> {
        check_name("person who decides", &decide.by)?;
        let action = match decide.answer {
            Answer::Approve => Action::ApprovalGranted,
            Answer::Deny => Action::ApprovalDenied,
        };
        audited!(self.store, |tx| {
            let decided = self::decide(&mut tx.conn, decide).await?;
            if let DecideOutcome::Decided(approval) = &decided {
                tx.operation(&approval.user, action, &approval.id, approval.decided_by.as_deref())?;
            }
            Ok(decided)
        })
    }

    /// Takes a denial back, with an audit record in the same commit: the same call then asks again. `None` if no denial with
    /// this id stands. The caller checks who may decide.
    pub async fn ask_again(self, user: &str, id: &str, by: &str) -> Result<Option<Approval>> {
        check_name("person who decides", by)?;
        let (user, id, by) = (user.to_owned(), id.to_owned(), by.to_owned());
        audited!(self.store, |tx| {
            let now = clock(&mut tx.conn).await?;
            let ended: Option<Approval> = tx.conn.fetch_optional(ASK_AGAIN, args![&user, &id, now]).await?;
            if ended.is_some() {
                tx.conn.notify(Topic::Approvals).await?;
                tx.operation(&user, Action::DenialWithdrawn, &id, Some(&by))?;
            }
            Ok(ended)
        })
    }

    /// Uses an approval for a call. When this returns `Used`, one commit has recorded the intent and used the approval.
    pub async fn consume(self, wanted: UseApproval) -> Result<ApprovalUse> {
        audited!(self.store, |tx| {
            if let Some(refusal) = consume(&mut tx.conn, &wanted).await? {
                return Ok(ApprovalUse::Refused(refusal));
            }
            let intent = Intent { approval: Some(wanted.id), ..wanted.intent };
            Ok(ApprovalUse::Used(tx.begin_write(&wanted.actor, intent)?))
        })
    }

    /// Expires up to `limit` approvals whose time is over, of all users, and returns them: each is returned once, to one
    /// caller.
    pub async fn expire(self, limit: u32) -> Result<Vec<Approval>> {
        transaction!(self.store, |conn| {
            let now = clock(conn).await?;
            let expired: Vec<Approval> = conn.fetch_all(EXPIRE, args![now, limit]).await?;
            if !expired.is_empty() {
                conn.notify(Topic::Approvals).await?;
            }
            Ok(expired)
        })
    }

    /// Deletes up to `limit` approvals that were denied, used or expired and whose time was over before `before`, of all
    /// users; returns how many. A denial that still stands stays, and so does what `expire` has not returned. For operators.
    pub async fn prune(self, before: i64, limit: u32) -> Result<u64> {
        transaction!(self.store, |conn| {
            let before = before.min(clock(conn).await?);
            conn.execute(PRUNE, args![before, limit]).await
        })
    }
}

async fn fetch_approval(conn: &mut Conn, user: &str, id: &str) -> Result<Option<Approval>> {
    let now = clock(conn).await?;
    let found: Option<Approval> = conn.fetch_optional(ONE, args![user, id]).await?;
    Ok(found.map(|approval| approval.shown_at(now)))
}

fn check(ask: &ApprovalRequest) -> Result<()> {
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

fn flags_text(ask: &ApprovalRequest) -> String {
    serde_json::Value::from(ask.flags.as_slice()).to_string()
}

async fn ask(conn: &mut Conn, ask: &ApprovalRequest, digest: &str) -> Result<AskResult> {
    let now = clock(conn).await?;
    let mut expired = None;
    // The second round is for an open one whose time is over: it makes way for the new one.
    for _ in 0..2 {
        let id = new_id();
        let found: Approval = conn.fetch_one(ASK, row(ask, digest, &id, now)).await?;
        if found.id == id {
            let asked = unless_denied(conn, found, now).await?;
            let other_policies = match &asked {
                AskOutcome::New(new) => other_policies(conn, new, now).await?,
                _ => Vec::new(),
            };
            return Ok(AskResult { asked, expired, other_policies });
        }
        if found.expires_at > now {
            return Ok(AskResult { asked: AskOutcome::Same(found), expired, other_policies: Vec::new() });
        }
        expired = Some(conn.fetch_one(EXPIRE_ONE, args![&found.user, &found.id, now]).await?);
    }
    Err(Error::new(ErrorKind::Busy, "too many callers requested this approval at the same time")
        .hint("try again"))
}

fn row(ask: &ApprovalRequest, digest: &str, id: &str, now: i64) -> Vec<Value> {
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

/// A denial stands until its time is over. It is looked for after the insert of the new row, so that a concurrent one is
/// seen.
async fn unless_denied(conn: &mut Conn, new: Approval, now: i64) -> Result<AskOutcome> {
    let Approval { user, agent, digest, body, tool, pin, policy, .. } = &new;
    let denied: Option<Approval> =
        conn.fetch_optional(DENIED, args![user, agent, digest, body, tool, pin, policy, now]).await?;
    let outcome = match denied {
        Some(denied) => AskOutcome::Denied(denied),
        None if count_pending(conn, user, now).await? > PENDING_LIMIT => AskOutcome::Full,
        None => return Ok(AskOutcome::New(new)),
    };
    conn.execute("DELETE FROM approvals WHERE user_id = $1 AND id = $2", args![user, &new.id]).await?;
    Ok(outcome)
}

async fn other_policies(conn: &mut Conn, new: &Approval, now: i64) -> Result<Vec<String>> {
    let Approval { user, agent, digest, body, tool, policy, .. } = new;
    let found: Vec<(String,)> =
        conn.fetch_all(OTHER_POLICIES, args![user, agent, digest, body, tool, policy, now]).await?;
    Ok(found.into_iter().map(|(policy,)| policy).collect())
}

async fn count_pending(conn: &mut Conn, user: &str, now: i64) -> Result<i64> {
    let sql = "SELECT count(*) FROM approvals WHERE user_id = $1 AND status = 'pending' AND expires_at > $2";
    let (count,): (i64,) = conn.fetch_one(sql, args![user, now]).await?;
    Ok(count)
}

async fn decide(conn: &mut Conn, decide: DecideApproval) -> Result<DecideOutcome> {
    let status = match decide.answer {
        Answer::Approve => ApprovalStatus::Approved,
        Answer::Deny => ApprovalStatus::Denied,
    };
    let now = clock(conn).await?;
    let decided: Option<Approval> =
        conn.fetch_optional(DECIDE, args![&decide.user, &decide.id, status.name(), now, decide.by]).await?;
    if let Some(approval) = decided {
        conn.notify(Topic::Approvals).await?;
        return Ok(DecideOutcome::Decided(approval));
    }
    Ok(fetch_approval(conn, &decide.user, &decide.id)
        .await?
        .map_or(DecideOutcome::Missing, DecideOutcome::NotPending))
}

/// Uses the approval; if it cannot be used, why.
async fn consume(conn: &mut Conn, wanted: &UseApproval) -> Result<Option<UnusableApproval>> {
    let UseApproval { id, actor: Actor { user, .. }, intent: Intent { call, .. }, pin, policy } = wanted;
    let (body, tool, digest) = (call.body.as_str(), call.tool.as_str(), call.args.digest());
    let now = clock(conn).await?;
    let used = conn.execute(USE, args![user, id, body, tool, digest, pin, policy, now]).await?;
    if used > 0 {
        conn.notify(Topic::Approvals).await?;
        return Ok(None);
    }
    let Some(found) = fetch_approval(conn, user, id).await? else {
        return Ok(Some(UnusableApproval::Missing));
    };
    let bound = (found.body.as_str(), found.tool.as_str(), found.digest.as_str(), &found.pin, &found.policy);
    Ok(Some(match found.status {
        _ if bound != (body, tool, digest, pin, policy) => UnusableApproval::OtherCall,
        ApprovalStatus::Pending => UnusableApproval::Pending,
        ApprovalStatus::Denied => UnusableApproval::Denied,
        ApprovalStatus::Used => UnusableApproval::Used,
        ApprovalStatus::Expired => UnusableApproval::Expired,
        // It expired between the two statements.
        ApprovalStatus::Approved => UnusableApproval::Expired,
    }))
}
