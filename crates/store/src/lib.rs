//! Everything that must outlive a process, on SQLite or PostgreSQL with the same behaviour.
//!
//! [`Store`] opens and closes the database; each area has a handle with its methods (`store.approvals().ask(..)`) and a
//! module with its types.

pub mod approvals;
pub mod audit;
pub mod commitments;
pub mod consolidations;
pub mod incoming;
pub mod instructions;
pub mod legacy;
pub mod memories;
pub mod memory_rules;
pub mod mind_log;
pub mod notices;
pub mod outbox;
pub mod outgoing;
pub mod pins;
pub mod proposals;
pub mod receipts;
pub mod replica_messages;
pub mod schedules;
pub mod server_health;
pub mod sessions;
pub mod sign_in;
pub mod suspended_calls;
pub mod tasks;
pub mod threads;
pub mod tokens;
pub mod transfer;
pub mod untrusted_reads;
pub mod upgrade;
pub mod usage;
pub mod users;

mod agents;
mod areas;
mod calls_awaiting_approval;
mod changes;
mod db;
mod erase;
mod error;
mod ids;
mod leases;
mod principal;
mod session_servers;
mod signing_keys;
mod status;
mod store;
mod usage_profiles;

pub use self::agents::Agent;
pub use self::calls_awaiting_approval::CallAwaitingApproval;
pub use self::changes::{Changes, Topic};
pub use self::error::{Error, ErrorKind, Result};
pub use self::ids::{IdSet, ShortIds};
pub use self::leases::{LeaderLease, Lease, LeaseStatus};
pub use self::principal::Principal;
pub use self::signing_keys::SigningKey;
pub use self::status::StoreStatus;
pub use self::store::{DatabaseUrl, OPERATOR, Scope, Store};
pub use self::usage_profiles::UsageProfile;
