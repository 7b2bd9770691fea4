//! Everything that must outlive a process, on SQLite or PostgreSQL with the same behaviour.

mod agents;
mod approvals;
mod audit;
mod cautions;
mod changes;
mod commitments;
mod consolidations;
mod db;
mod error;
mod exposures;
mod habits;
mod heard;
mod held;
mod incoming;
mod instructions;
mod lanes;
mod leases;
mod legacy;
mod letters;
mod memory;
mod mind_log;
mod outbox;
mod outgoing;
mod parked;
mod pins;
mod posts;
mod proposals;
mod receipts;
mod schedules;
mod seals;
mod session_servers;
mod sessions;
mod status;
mod store;
mod tasks;
mod threads;
mod tokens;
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
pub use self::cautions::{CautionLimits, CautionScan, Cautions, ScanCandidate, Unscanned};
pub use self::changes::{Changes, Topic};
pub use self::commitments::{Commitment, CommitmentStatus, NewCommitment};
pub use self::consolidations::{
    Consolidated, ConsolidationClaim, ConsolidationItem, ConsolidationPlan, ConsolidationRun, PruneLog,
    Undone,
};
pub use self::error::{Error, ErrorKind, Result};
pub use self::exposures::{EXPOSED, ReadOrigin, origin_name};
pub use self::habits::Habit;
pub use self::heard::Heard;
pub use self::held::HeldCall;
pub use self::incoming::{
    Cursor, FinishIncoming, Incoming, IncomingChange, IncomingClaim, IncomingState, NewIncoming,
};
pub use self::instructions::{Instructions, InstructionsChange, InstructionsOutcome, PastInstructions};
pub use self::leases::{Fenced, Lease};
pub use self::legacy::{
    LegacyAgent, LegacyInstructions, LegacyReport, LegacyState, migrate_legacy, preview_legacy,
};
pub use self::letters::{Letter, NewLetter};
pub use self::memory::{
    ForgetOutcome, FoundMemory, KindCount, Memory, MemoryImport, MemoryList, MemoryRevision, MemorySearch,
    MemoryStatus, Merge, NewMemory, NumberedMemory, RevisionOutcome, Saved, TextTerm, text_terms,
};
pub use self::mind_log::{LogEntry, NewLogEntry, NewReflection, Reflected};
pub use self::outbox::{Enqueued, NewObservation, Observation, PendingObservations};
pub use self::outgoing::{NewOutgoing, Outgoing, OutgoingClaim, OutgoingEnd, OutgoingState};
pub use self::parked::{ParkCall, ParkedCall};
pub use self::pins::{
    AcceptPin, Definition, INSTRUCTIONS_PIN, PinAccepted, PinState, PinsMark, SeenTool, ToolPin,
};
pub use self::posts::Post;
pub use self::proposals::{DecideProposal, NewProposal, Proposal, ProposalOutcome, ProposalStatus};
pub use self::receipts::{NewReceipt, Receipt};
pub use self::schedules::{
    ClaimNow, FinishRun, NewSchedule, RunOutcome, RunStart, Schedule, ScheduleAdded, ScheduleClaim,
    ScheduleOrigin, ScheduleRun,
};
pub use self::seals::SealKey;
pub use self::sessions::{
    Bootstrap, BootstrapClaim, BrokerSession, ContractState, OpenSession, Packet, SessionOpened,
};
pub use self::status::{StoreStatus, StoredRows};
pub use self::store::{OPERATOR, Place, Scope, Store};
pub use self::tasks::{Step, StepState, Task, TaskContent, TaskOutcome};
pub use self::threads::{Message, NewMessage, NewThread, Thread};
pub use self::tokens::{NewToken, Principal, Token, TokenScope, TokenSecret};
pub use self::users::{User, check_user_name};
