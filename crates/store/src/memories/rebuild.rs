//! Making the index anew from the memories, when it was damaged or the analyzer has changed.

use crate::areas::Memories;
use crate::db::{args, transaction};
use crate::error::Result;
use crate::memories::fields::MemoryStatus;
use crate::memories::index::{self, Placed};
use crate::memories::insert::Entry;
use crate::memories::ledger::Ledger;
use crate::memories::rows::{self, SAVED_AFTER};
use crate::store::Scope;

const PAGE: u32 = 1000;

impl Memories<'_> {
    /// Builds the search index of a scope anew; how many memories are in it. For operators.
    pub async fn rebuild_index(self, scope: &Scope) -> Result<u64> {
        let scope = scope.clone();
        transaction!(self.store, |conn| {
            let mut ledger = Ledger::lock(conn, &scope).await?;
            ledger.clear_statistics();
            index::clear(conn, &scope).await?;
            let mut last = 0;
            loop {
                let page =
                    rows::all(conn, SAVED_AFTER, args![scope.user(), scope.agent(), last, PAGE]).await?;
                let Some(newest) = page.last() else { break };
                last = i64::from(newest.seq);
                let active = page.into_iter().filter(|kept| kept.memory.status == MemoryStatus::Active);
                let read: Vec<(u32, u32, Entry)> = active
                    .map(|kept| (kept.seq, kept.session, Entry::new(kept.memory, Vec::new())))
                    .collect();
                let placed: Vec<Placed<'_>> = read
                    .iter()
                    .map(|(seq, session, entry)| Placed {
                        seq: *seq,
                        session: *session,
                        document: &entry.document,
                    })
                    .collect();
                placed.iter().for_each(|placed| ledger.add(placed.document));
                index::append(conn, &scope, &placed).await?;
            }
            ledger.write(conn, &scope).await?;
            Ok(ledger.statistics().memories)
        })
    }
}
