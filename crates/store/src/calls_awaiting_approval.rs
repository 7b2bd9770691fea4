//! Calls of our own agents that still waited for an approval when their turn ended. The process that claims one makes the call; no
//! other can.

use crate::areas::CallsAwaitingApproval;
use crate::db::{args, from_row, transaction};
use crate::error::Result;
use crate::leases::clock;
use crate::store::{Scope, check_name, check_text, now};

const TEXT_LIMIT: usize = 1024 * 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallAwaitingApproval {
    pub scope: Scope,
    pub approval: String,
    pub thread: String,
    /// The name that the model used.
    pub tool: String,
    /// As the model wrote them; at most 1 MiB.
    pub arguments: String,
    /// Everything else that the call needs, as JSON text.
    pub content: String,
}

from_row! {
    CallAwaitingApproval {
        user as String, approval, agent as String, thread, tool, arguments, content,
    } => Ok(Self { scope: Scope::new(&user, &agent)?, approval, thread, tool, arguments, content })
}

macro_rules! held_where {
    ($rest:literal) => {
        concat!(
            "SELECT held.user_id, held.approval, held.agent, held.thread, held.tool, held.arguments, held.content \
             FROM held_calls AS held ",
            $rest
        )
    };
}

impl CallsAwaitingApproval<'_> {
    /// Stores a call until its approval is decided. One approval has one call, the last.
    pub async fn insert(self, call: CallAwaitingApproval) -> Result<()> {
        check_name("approval", &call.approval)?;
        check_name("thread", &call.thread)?;
        check_text("name of the tool", &call.tool, TEXT_LIMIT)?;
        check_text("arguments of the call", &call.arguments, TEXT_LIMIT)?;
        check_text("content of the call", &call.content, TEXT_LIMIT)?;
        transaction!(self.store, |conn| {
            let CallAwaitingApproval { scope, approval, thread, tool, arguments, content } = call;
            let (user, agent) = (scope.user(), scope.agent());
            let sql = "INSERT INTO held_calls \
                 (user_id, approval, agent, thread, tool, arguments, content, created_at) \
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8) \
                 ON CONFLICT (user_id, approval) DO UPDATE SET agent = excluded.agent, \
                 thread = excluded.thread, tool = excluded.tool, arguments = excluded.arguments, content = excluded.content";
            conn.execute(sql, args![user, approval, agent, thread, tool, arguments, content, now()])
                .await
                .map(drop)
        })
    }

    /// The calls whose approval was decided or has expired, oldest first. Of all users; for the process that makes them.
    pub async fn list_decided(self, limit: u32) -> Result<Vec<CallAwaitingApproval>> {
        let sql = held_where!(
            "LEFT JOIN approvals AS asked ON asked.user_id = held.user_id AND asked.id = held.approval \
             WHERE asked.id IS NULL OR asked.status <> 'pending' OR asked.expires_at <= $2 \
             ORDER BY held.created_at, held.approval LIMIT +$1"
        );
        let mut conn = self.store.reader().await?;
        let now = clock(&mut conn).await?;
        conn.fetch_all(sql, args![limit, now]).await
    }

    pub async fn list_in_thread(self, user: &str, thread: &str) -> Result<Vec<CallAwaitingApproval>> {
        let sql = held_where!("WHERE held.user_id = $1 AND held.thread = $2 ORDER BY held.approval");
        self.store.fetch_all(sql, args![user, thread]).await
    }

    /// Claims a call; returns whether it was still there. Only the process that claimed it makes the call.
    pub async fn claim(self, user: &str, approval: &str) -> Result<bool> {
        let (user, approval) = (user.to_owned(), approval.to_owned());
        transaction!(self.store, |conn| {
            let sql = "DELETE FROM held_calls WHERE user_id = $1 AND approval = $2";
            Ok(conn.execute(sql, args![user, approval]).await? > 0)
        })
    }
}
