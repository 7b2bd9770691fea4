//! One handle per area: a borrowed store with the methods of that area, which its module adds.

use crate::store::Store;

macro_rules! areas {
    ($($area:ident: $Handle:ident,)*) => {
        $(
            #[derive(Clone, Copy, Debug)]
            pub struct $Handle<'a> {
                pub(crate) store: &'a Store,
            }
        )*

        impl Store {
            $(
                pub fn $area(&self) -> $Handle<'_> {
                    $Handle { store: self }
                }
            )*
        }
    };
}

areas! {
    agents: Agents,
    approvals: Approvals,
    audit: Audit,
    calls_awaiting_approval: CallsAwaitingApproval,
    commitments: Commitments,
    consolidations: Consolidations,
    ids: Ids,
    incoming: IncomingQueue,
    instructions: InstructionVersions,
    leader_leases: LeaderLeases,
    memories: Memories,
    memory_rules: MemoryRuleScans,
    mind_log: MindLog,
    notices: Notices,
    outbox: Outbox,
    outgoing: OutgoingQueue,
    pins: Pins,
    proposals: Proposals,
    receipts: Receipts,
    replica_messages: ReplicaMessages,
    schedules: Schedules,
    server_health: ServerHealthRecords,
    session_servers: SessionServers,
    sessions: Sessions,
    sign_in: SignIn,
    signing_keys: SigningKeys,
    suspended_calls: SuspendedCalls,
    tasks: Tasks,
    threads: Threads,
    tokens: Tokens,
    untrusted_reads: UntrustedReads,
    usage: UsageRecords,
    usage_profiles: UsageProfiles,
    users: Users,
}
