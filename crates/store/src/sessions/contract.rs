//! How far the contract of a session has come, for other processes that serve the same session.
//!
//! A session without a connection of its own may hold one conversation after the other. They are numbered, so that what a
//! process says late about an earlier conversation does not count for the one that runs.

use crate::db::{Value, args};
use crate::error::Result;
use crate::store::{Store, check_name};

/// How far the contract of a session has come, in its running conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContractState {
    /// None was written.
    Unwritten,
    /// It was written to the host.
    Written {
        /// Which contract.
        hash: String,
    },
    /// It was written, and a call came that its model made after reading it.
    Delivered {
        /// Which contract.
        hash: String,
    },
}

const WRITTEN: &str = "UPDATE broker_sessions SET contract = $4, written_in = $3, delivered_in = NULL \
     WHERE user_id = $1 AND id = $2 AND conversation = $3 \
     AND (contract IS NULL OR contract <> $4 OR written_in IS NULL OR written_in <> $3)";
const READ: &str = "UPDATE broker_sessions SET delivered_in = $3 \
     WHERE user_id = $1 AND id = $2 AND conversation = $3 AND contract = $4 AND written_in = $3";
const BEGIN: &str = "UPDATE broker_sessions SET conversation = conversation + 1 \
     WHERE user_id = $1 AND id = $2 RETURNING conversation";

impl Store {
    /// The whole contract was written to the host in this conversation. Writing the same one again changes nothing; another
    /// one begins anew.
    pub async fn contract_written(
        &self,
        user: &str,
        session: &str,
        conversation: i64,
        hash: &str,
    ) -> Result<()> {
        check_name("hash of the contract", hash)?;
        self.update_contract(WRITTEN, args![user, session, conversation, hash]).await
    }

    /// The model of this conversation has read this contract, if it is the one that was written.
    pub async fn contract_read(
        &self,
        user: &str,
        session: &str,
        conversation: i64,
        hash: &str,
    ) -> Result<()> {
        self.update_contract(READ, args![user, session, conversation, hash]).await
    }

    async fn update_contract(&self, sql: &'static str, args: Vec<Value>) -> Result<()> {
        self.db()
            .chained()
            .write(move |unit| Box::pin(async move { unit.conn.run(sql, args).await.map(drop) }))
            .await
    }

    /// A new conversation begins: it has read nothing. Its number; nothing, if there is no such session.
    pub async fn begin_conversation(&self, user: &str, session: &str) -> Result<Option<i64>> {
        let args = args![user, session];
        self.db()
            .chained()
            .write(move |unit| {
                Box::pin(async move {
                    let row: Option<(i64,)> = unit.conn.maybe(BEGIN, args).await?;
                    Ok(row.map(|(conversation,)| conversation))
                })
            })
            .await
    }
}
