//! Scans memories for rules, once each, so that no call needs a search for them.

use embody_store::memory_rules::{MemoryRuleScan, UnscannedMemories};
use embody_store::{Scope, Store};
use jiff::civil::DateTime;

use super::parse::parse_rules;
use super::rule::Rule;
use super::tokenizer::sentences;
use crate::error::Result;

const PAGE: u32 = 500;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayProgress {
    pub scanned: u64,
    pub restricting: u64,
    pub more: bool,
}

/// Scans memories that are new or were rewritten since the last scan; at most `limit`, rounded up to a page. Runs in the
/// background: at start, and after memories were saved.
pub async fn replay(store: &Store, scope: &Scope, limit: u64) -> Result<ReplayProgress> {
    let mut done = ReplayProgress::default();
    while done.scanned < limit {
        let UnscannedMemories { memories: page, up_to } =
            store.memory_rules().list_unscanned(scope, PAGE).await?;
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
        store.memory_rules().record_scan(scope, scan).await?;
        // Other tasks of this thread have their turn between two pages.
        tokio::task::yield_now().await;
    }
    Ok(ReplayProgress { more: true, ..done })
}

/// Whether a text has a rule in it. When it was said changes dates only.
fn is_restricting(text: &str) -> bool {
    sentences(text)
        .into_iter()
        .any(|sentence| parse_rules(sentence, DateTime::default()).iter().any(Rule::is_sure))
}
