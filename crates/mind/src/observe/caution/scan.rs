//! Looks through memories for rules, once each, so that no call needs a search for them.

use embody_store::{MemoryRuleScan, Scope, Store, Unscanned};
use jiff::civil::DateTime;

use super::parse::rules;
use super::rule::Rule;
use super::words::sentences;
use crate::error::Result;

/// Memories that are looked at in one transaction.
const PAGE: u32 = 500;

/// How far the looking got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaughtUp {
    /// Memories that were looked at.
    pub scanned: u64,
    /// Those among them that restrict something.
    pub restricting: u64,
    /// Whether there may be more.
    pub more: bool,
}

/// Looks at memories that nobody looked at yet, or that were rewritten since; at most `limit` and what makes its last
/// page full. Meant for the background: at start, and after memories were saved.
pub async fn catch_up(store: &Store, scope: &Scope, limit: u64) -> Result<CaughtUp> {
    let mut done = CaughtUp::default();
    while done.scanned < limit {
        let Unscanned { memories: page, up_to } = store.unscanned_memories(scope, PAGE).await?;
        let mut scan = MemoryRuleScan { up_to, ..MemoryRuleScan::default() };
        for memory in &page {
            let judged = (memory.seq, memory.version);
            if is_restricting(&memory.text) { &mut scan.restricting } else { &mut scan.harmless }
                .push(judged);
        }
        if page.is_empty() {
            return Ok(done);
        }
        done.scanned += page.len() as u64;
        done.restricting += scan.restricting.len() as u64;
        store.store_memory_rules(scope, scan).await?;
        // Other tasks of this thread have their turn between two pages.
        tokio::task::yield_now().await;
    }
    Ok(CaughtUp { more: true, ..done })
}

/// Whether a text has a rule in it. When it was said changes dates only.
fn is_restricting(text: &str) -> bool {
    sentences(text).into_iter().any(|sentence| rules(sentence, DateTime::default()).iter().any(Rule::is_sure))
}
