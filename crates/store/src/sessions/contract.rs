//! How far the contract of a session has come, for other processes that serve the same session.

use crate::db::args;
use crate::error::Result;
use crate::store::{Store, check_name};

/// How far the contract of a session has come.
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

impl Store {
    /// The whole contract was written to the host. Writing the same one again changes nothing; another one begins anew.
    pub async fn contract_written(&self, user: &str, session: &str, contract: &str) -> Result<()> {
        check_name("hash of the contract", contract)?;
        let (user, session, contract) = (user.to_owned(), session.to_owned(), contract.to_owned());
        self.db()
            .chained()
            .write(move |unit| {
                Box::pin(async move {
                    unit.conn
                        .run(
                            "UPDATE broker_sessions SET contract = $3, written_call = calls, delivered_call = NULL \
                             WHERE user_id = $1 AND id = $2 AND (contract IS NULL OR contract <> $3)",
                            args![user, session, contract],
                        )
                        .await
                        .map(drop)
                })
            })
            .await
    }

    /// The model has read this contract, if it is the one that was written.
    pub async fn contract_read(&self, user: &str, session: &str, contract: &str) -> Result<()> {
        let (user, session, contract) = (user.to_owned(), session.to_owned(), contract.to_owned());
        self.db()
            .chained()
            .write(move |unit| {
                Box::pin(async move {
                    unit.conn
                        .run(
                            "UPDATE broker_sessions SET delivered_call = calls \
                             WHERE user_id = $1 AND id = $2 AND contract = $3 AND delivered_call IS NULL",
                            args![user, session, contract],
                        )
                        .await
                        .map(drop)
                })
            })
            .await
    }

    /// Whatever was delivered was delivered to an earlier conversation. A session that is not there is left alone.
    pub async fn contract_withdrawn(&self, user: &str, session: &str) -> Result<()> {
        let (user, session) = (user.to_owned(), session.to_owned());
        self.db()
            .chained()
            .write(move |unit| {
                Box::pin(async move {
                    unit.conn
                        .run(
                            "UPDATE broker_sessions SET contract = NULL, written_call = NULL, delivered_call = NULL \
                             WHERE user_id = $1 AND id = $2 AND contract IS NOT NULL",
                            args![user, session],
                        )
                        .await
                        .map(drop)
                })
            })
            .await
    }
}
