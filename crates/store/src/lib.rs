//! Everything that must outlive a process, on SQLite or PostgreSQL with the same behaviour.

mod agents;
mod approvals;
mod audit;
mod calls_awaiting_approval;
mod changes;
mod commitments;
mod consolidations;
mod db;
mod error;
mod incoming;
mod instructions;
mod last_seen_channel;
mod leader_leases;
mod leases;
mod legacy;
mod memory;
mod memory_rules;
mod mind_log;
mod ordering_locks;
mod outbox;
mod outgoing;
mod pins;
mod proposals;
mod receipts;
mod replica_messages;
mod schedules;
mod session_servers;
mod sessions;
mod signing_keys;
mod status;
mod store;
mod suspended_calls;
mod tasks;
mod threads;
mod tokens;
mod untrusted_reads;
mod usage_profiles;
mod users;

pub use self::agents::Agent;
pub use self::approvals::{
    Answer, Approval, ApprovalFilter, ApprovalStatus, ApprovalUse, AskApproval, Asked, AskedApproval,
    DecideApproval, Decided, Refusal, UseApproval,
};
pub use self::audit::{
    Action, Actor, Arguments, AuditPages, AuditRecord, AuditReport, Begun, Break, CallEnd, ChainReport,
    ChainState, Decision, Event, Fault, Intent, Operation, Outcome, Read, Record, TaskWord, ToTask, ToolCall,
    Verdict,
};
pub use self::calls_awaiting_approval::CallAwaitingApproval;
pub use self::changes::{Changes, Topic};
pub use self::commitments::{Commitment, CommitmentStatus, NewCommitment};
pub use self::consolidations::{
    Consolidated, ConsolidationClaim, ConsolidationItem, ConsolidationPlan, ConsolidationRun, PruneLog,
    Undone,
};
pub use self::error::{Error, ErrorKind, Result};
pub use self::incoming::{
    Cursor, FinishIncoming, Incoming, IncomingChange, IncomingClaim, IncomingState, NewIncoming,
};
pub use self::instructions::{Instructions, InstructionsChange, InstructionsOutcome, PastInstructions};
pub use self::last_seen_channel::LastSeenChannel;
pub use self::leader_leases::LeaderLease;
pub use self::leases::{Fenced, Lease};
pub use self::legacy::{
    LegacyAgent, LegacyInstructions, LegacyReport, LegacyState, migrate_legacy, preview_legacy,
};
pub use self::memory::{
    ForgetOutcome, FoundMemory, KindCount, Memory, MemoryImport, MemoryList, MemoryRevision, MemorySearch,
    MemoryStatus, Merge, NewMemory, NumberedMemory, RevisionOutcome, Saved, TextTerm, text_terms,
};
pub use self::memory_rules::{MemoryRuleLimits, MemoryRuleScan, MemoryRules, ScanCandidate, Unscanned};
pub use self::mind_log::{LogEntry, NewLogEntry, NewReflection, Reflected};
pub use self::outbox::{Enqueued, NewObservation, Observation, PendingObservations};
pub use self::outgoing::{NewOutgoing, Outgoing, OutgoingClaim, OutgoingEnd, OutgoingState};
pub use self::pins::{
    AcceptPin, Definition, INSTRUCTIONS_PIN, PinAccepted, PinState, PinsMark, SeenTool, ToolPin,
};
pub use self::proposals::{DecideProposal, NewProposal, Proposal, ProposalOutcome, ProposalStatus};
pub use self::receipts::{NewReceipt, Receipt};
pub use self::replica_messages::{NewReplicaMessage, ReplicaMessage};
pub use self::schedules::{
    ClaimNow, FinishRun, NewSchedule, RunOutcome, RunStart, Schedule, ScheduleAdded, ScheduleClaim,
    ScheduleOrigin, ScheduleRun,
};
pub use self::sessions::{
    Bootstrap, BootstrapClaim, BrokerSession, ContractState, OpenSession, Packet, SessionOpened,
};
pub use self::signing_keys::SigningKey;
pub use self::status::{StoreStatus, StoredRows};
pub use self::store::{DatabaseUrl, OPERATOR, Scope, Store};
pub use self::suspended_calls::{NewSuspendedCall, SuspendedCall};
pub use self::tasks::{Step, StepState, Task, TaskContent, TaskOutcome};
pub use self::threads::{Message, NewMessage, NewThread, Thread};
pub use self::tokens::{NewToken, Principal, Token, TokenScope, TokenSecret};
pub use self::untrusted_reads::{EXPOSED, ORIGINS_LIMIT, ReadOrigin};
pub use self::usage_profiles::UsageProfile;
pub use self::users::{User, check_user_name};
