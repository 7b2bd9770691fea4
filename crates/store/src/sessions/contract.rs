//! Delivery of the contract: it counts as delivered to a call that arrived after the whole of it had been written to the
//! host. Calls are numbered in the order of their arrival, and the writing is marked with the last number.

use crate::db::args;
use crate::error::Result;
use crate::store::{Store, check_name, now};

/// How far the contract of a session has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContractState {
    /// None was written.
    Unwritten,
    /// It was written, and no call has arrived since.
    Written {
        /// Which contract.
        hash: String,
        /// The last call that had arrived before.
        call: i64,
    },
    /// It was written, and a call arrived later.
    Delivered {
        /// Which contract.
        hash: String,
        /// The first call that came after it.
        call: i64,
    },
}

/// How a call stands to the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The contract was written before this call arrived.
    AfterContract {
        /// The number of the call in its session.
        call: i64,
    },
    /// It was not, or it was another contract.
    BeforeContract {
        /// The number of the call in its session.
        call: i64,
    },
    /// There is no such session.
    Missing,
}

impl Store {
    /// Numbers a call of the session, and says whether this contract was delivered to it. Until it was, call this for
    /// each call in the order in which they are read from the host. Arrivals and writings that one process hands over
    /// take effect in that order.
    pub async fn arrive(&self, user: &str, session: &str, contract: &str) -> Result<Arrival> {
        check_name("hash of the contract", contract)?;
        let (user, session, contract) = (user.to_owned(), session.to_owned(), contract.to_owned());
        // The queue of chained writes keeps the order on both databases.
        self.db()
            .chained()
            .write(move |unit| {
                Box::pin(async move {
                    let row: Option<(i64, Option<String>)> = unit
                        .conn
                        .maybe(
                            "UPDATE broker_sessions SET calls = calls + 1, seen_at = $4, delivered_call = \
                             CASE WHEN contract = $3 THEN coalesce(delivered_call, calls + 1) ELSE delivered_call END \
                             WHERE user_id = $1 AND id = $2 RETURNING calls, contract",
                            args![user, session, &contract, now()],
                        )
                        .await?;
                    Ok(match row {
                        None => Arrival::Missing,
                        Some((call, Some(written))) if written == contract => Arrival::AfterContract { call },
                        Some((call, _)) => Arrival::BeforeContract { call },
                    })
                })
            })
            .await
    }

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
}
