//! How far the contract of a session has come, for other processes that serve the same session.
//!
//! A session without a connection of its own may hold one conversation after the other. They are numbered, so that what a
//! process says late about an earlier conversation does not count for the one that runs.

use crate::areas::Sessions;
use crate::db::{Value, args, audited};
use crate::error::Result;
use crate::store::{Scope, check_name};

/// How far the contract of a session has come, in its running conversation.
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

const WRITTEN: &str = "UPDATE broker_sessions SET contract = $4, written_in = $3, bounced = $5, delivered_in = NULL \
     WHERE user_id = $1 AND id = $2 AND conversation = $3 \
     AND (contract IS NULL OR contract <> $4 OR written_in IS NULL OR written_in <> $3)";
const READ: &str = "UPDATE broker_sessions SET delivered_in = $3 \
     WHERE user_id = $1 AND id = $2 AND conversation = $3 AND contract = $4 AND written_in = $3";
const BEGIN: &str = "UPDATE broker_sessions SET conversation = conversation + 1 \
     WHERE user_id = $1 AND agent = $2 AND substr(id, 1, length($3)) = $3";

impl Sessions<'_> {
    /// The whole contract was written to the host in this conversation, in place of the call with the digest `bounced` if there
    /// was one. Writing the same contract again changes nothing; another one begins anew.
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
        self.update_contract(READ, args![user, session, conversation, hash]).await
    }

    /// A new conversation begins in every session of this user and agent whose id begins with `prefix`: it has read nothing.
    /// The protocol does not say in which of them.
    pub async fn begin_conversation(self, scope: &Scope, prefix: &str) -> Result<()> {
        self.update_contract(BEGIN, args![scope.user(), scope.agent(), prefix]).await
    }

    async fn update_contract(self, sql: &'static str, args: Vec<Value>) -> Result<()> {
        audited!(self.store, |tx| tx.conn.execute(sql, args).await.map(drop))
    }
}
