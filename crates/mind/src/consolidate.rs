//! Consolidates while no call is active: merges memories with the same text, expires commitments that are long overdue or
//! old and undated, prunes the log.
//!
//! A run continues where the last one stopped, reads a bounded number of memories, and gives the store a plan that is
//! executed in one transaction under a lease. Memories have no weight that decays: an old memory is as true as a new one.
//! Every run is recorded and can be undone with [`undo`]; what was undone is not consolidated again.

use std::collections::BTreeMap;
use std::time::Duration;

use embody_store::consolidations::{
    ApplyOutcome, ConsolidationClaim, ConsolidationPlan, ConsolidationRun, PruneLog, UndoResult,
};
use embody_store::memories::{Memory, MemoryStatus, Merge, NumberedMemory};
use embody_store::{Lease, Scope, Store};

use crate::ZonedNow;
use crate::error::{Error, Result};
use embody_text::fold::fold;

/// No run takes longer; a run whose process died blocks the next one for at most this time.
const LEASE: Duration = Duration::from_secs(300);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsolidationPolicy {
    pub owner: String,
    /// Consolidation starts after this time without activity.
    pub quiet: Duration,
    /// Memories with the same text are merged if they happened within this time.
    pub window: Duration,
    /// Memories read in one run; at most 1,000.
    pub memories: u32,
    pub lapse_after: Duration,
    /// Undated commitments lapse after this time without an update.
    pub lapse_undated_after: Duration,
    pub log_age: Duration,
    pub log_entries: u32,
    /// Pruned entries can be restored for this time.
    pub archive_age: Duration,
}

impl ConsolidationPolicy {
    pub fn standard(owner: &str) -> Self {
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        Self {
            owner: owner.to_owned(),
            quiet: Duration::from_secs(10 * 60),
            window: DAY,
            memories: 500,
            lapse_after: 30 * DAY,
            lapse_undated_after: 90 * DAY,
            log_age: 90 * DAY,
            log_entries: 2000,
            archive_age: 7 * DAY,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConsolidationOutcome {
    Done {
        /// Its id is the argument of [`undo`].
        run: ConsolidationRun,
        more: bool,
    },
    Nothing {
        more: bool,
    },
    NotQuiet,
    Busy,
}

/// Runs once, if there is no activity and no other process runs it.
pub async fn consolidate(
    store: &Store,
    scope: &Scope,
    now: &ZonedNow,
    policy: &ConsolidationPolicy,
) -> Result<ConsolidationOutcome> {
    if !(1..=1000).contains(&policy.memories) {
        let problem =
            format!("the policy covers `{}` memories in a run; 1 to 1000 are allowed", policy.memories);
        return Err(Error::Arguments { tool: "consolidate", problem });
    }
    let at = now.micros();
    if store.consolidations().last_activity_at(scope).await? > ago(at, policy.quiet) {
        return Ok(ConsolidationOutcome::NotQuiet);
    }
    let limits = limits(at, policy);
    if !store.consolidations().is_due(scope, &limits).await? {
        return Ok(ConsolidationOutcome::Nothing { more: false });
    }
    let lease = Lease { owner: policy.owner.clone(), duration: LEASE };
    let Some(claim) = store.consolidations().claim(scope, &lease).await? else {
        return Ok(ConsolidationOutcome::Busy);
    };
    let planned = plan(store, &claim, limits, policy).await;
    let (plan, more) = match planned {
        Ok(planned) => planned,
        Err(error) => {
            // The caller gets the first error; the lease expires by itself if this fails too.
            let _ = store.consolidations().release(&claim).await;
            return Err(error);
        }
    };
    Ok(match store.consolidations().apply(&claim, plan, at).await? {
        ApplyOutcome::Done(run) => ConsolidationOutcome::Done { run, more },
        ApplyOutcome::Nothing => ConsolidationOutcome::Nothing { more },
        ApplyOutcome::Lost => ConsolidationOutcome::Busy,
    })
}

/// Undoes a run. Entries that were changed since are skipped and counted.
pub async fn undo(store: &Store, scope: &Scope, run: &str, now: &ZonedNow) -> Result<UndoResult> {
    Ok(store.consolidations().undo(scope, run, now.micros()).await?)
}

async fn plan(
    store: &Store,
    claim: &ConsolidationClaim,
    limits: ConsolidationPlan,
    policy: &ConsolidationPolicy,
) -> Result<(ConsolidationPlan, bool)> {
    let (scope, looked_seq) = (&claim.scope, claim.looked_seq);
    let batch = store.memories().list_saved_after(scope, looked_seq, policy.memories).await?;
    let more = batch.len() >= policy.memories as usize;
    let looked_seq = batch.last().map_or(looked_seq, |last| last.seq);
    let active: Vec<_> =
        batch.into_iter().filter(|numbered| numbered.memory.status == MemoryStatus::Active).collect();
    let likenesses: Vec<(String, i64)> =
        active.iter().map(|numbered| (fingerprint(&numbered.memory), numbered.seq)).collect();
    let keys: Vec<String> = likenesses.iter().map(|(likeness, _)| likeness.clone()).collect();
    let before = store.memories().list_alike(scope, &keys).await?;
    let window_us = i64::try_from(policy.window.as_micros()).unwrap_or(i64::MAX);
    let merges = find_merges(before.into_iter().chain(active).collect(), window_us);
    Ok((ConsolidationPlan { looked_seq, likenesses, merges, ..limits }, more))
}

/// The part of the plan that depends on age and number only.
fn limits(at: i64, policy: &ConsolidationPolicy) -> ConsolidationPlan {
    ConsolidationPlan {
        lapse_before: Some(ago(at, policy.lapse_after)),
        lapse_undated_before: Some(ago(at, policy.lapse_undated_after)),
        prune: Some(PruneLog { before: ago(at, policy.log_age), keep: i64::from(policy.log_entries) }),
        expire_before: Some(ago(at, policy.archive_age)),
        ..ConsolidationPlan::default()
    }
}

fn ago(at: i64, duration: Duration) -> i64 {
    at.saturating_sub(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX))
}

/// Equal for memories that are alike.
fn fingerprint(memory: &Memory) -> String {
    let words = normalize(&memory.text);
    let tags = memory.tags.join("\u{1}");
    let parts = [
        words.as_str(),
        memory.kind.as_str(),
        memory.actor.as_deref().unwrap_or("\u{1}"),
        memory.source.as_deref().unwrap_or("\u{1}"),
        memory.writer.as_str(),
        memory.trust.as_str(),
        tags.as_str(),
    ];
    parts.join("\u{2}")
}

/// In each group of alike memories, the newest replaces those within the window before it.
fn find_merges(memories: Vec<NumberedMemory>, window_us: i64) -> Vec<Merge> {
    let mut groups: BTreeMap<String, BTreeMap<i64, Memory>> = BTreeMap::new();
    for NumberedMemory { seq, memory } in memories {
        groups.entry(fingerprint(&memory)).or_default().insert(seq, memory);
    }
    groups.into_values().flat_map(|group| merge_group(group, window_us)).collect()
}

fn merge_group(group: BTreeMap<i64, Memory>, window_us: i64) -> Vec<Merge> {
    let mut merges = Vec::new();
    let mut newest_first = group.into_values().rev();
    let Some(mut kept) = newest_first.next() else { return merges };
    for memory in newest_first {
        let is_near = kept.occurred_at.abs_diff(memory.occurred_at) <= window_us.unsigned_abs();
        let is_same_talk = memory.session.is_some() && memory.session == kept.session;
        if is_near && !is_same_talk {
            merges.push(Merge { kept: kept.id.clone(), forgotten: memory.id, version: memory.version });
        } else {
            kept = memory;
        }
    }
    merges
}

/// The folded words of a text without articles. An upper-case `A` or `LA` may be a name, and so may the last word.
fn normalize(text: &str) -> String {
    const ARTICLES: [&str; 17] = [
        "a", "an", "the", "der", "die", "das", "ein", "eine", "le", "la", "les", "un", "une", "el", "los",
        "las", "una",
    ];
    let words: Vec<&str> = text.split_whitespace().map(trim_word).filter(|word| !word.is_empty()).collect();
    let Some((last, before)) = words.split_last() else { return fold(text) };
    let before = before.iter().filter(|word| !ARTICLES.contains(word));
    before.chain([last]).map(|word| fold(word)).collect::<Vec<_>>().join(" ")
}

/// A word without surrounding punctuation and quotation marks. Other marks carry meaning: `C++`, `$500`, `called?`, `-5`.
fn trim_word(word: &str) -> &str {
    let end = word.trim_end_matches(is_stop_or_quote).len();
    // Marks at a number belong to it: .5 is not 5, and 5' is not 5".
    let is_measure = word.get(..end).is_some_and(|kept| kept.ends_with(|last: char| last.is_ascii_digit()))
        && word.get(end..).is_some_and(|marks| marks.starts_with(['\'', '"', '’']));
    let kept = word.get(..if is_measure { word.len() } else { end }).unwrap_or(word);
    let stripped = kept.trim_start_matches(is_stop_or_quote);
    let is_fraction = stripped.starts_with(|first: char| first.is_ascii_digit())
        && kept.strip_suffix(stripped).is_some_and(|marks| marks.ends_with(['.', ',']));
    if is_fraction { kept } else { stripped }
}

fn is_stop_or_quote(letter: char) -> bool {
    matches!(
        letter,
        '.' | ',' | ';' | ':' | '!' | '"' | '\'' | '`' | '‘' | '’' | '‚' | '“' | '”' | '„' | '«' | '»'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_differences_are_none() {
        assert_eq!(normalize("Ann likes the tea."), normalize("ann LIKES tea!"));
        assert_eq!(normalize("Café, please"), normalize("cafe please"));
        assert_eq!(normalize("He said: \"yes\"; then he left"), normalize("he said yes, then he left."));
    }

    #[test]
    fn what_could_matter_is_kept() {
        for (one, other) in [
            ("Ann pays Bob", "Bob pays Ann"),
            ("costs 1.5", "costs 15"),
            ("he is in", "he is not in"),
            ("the", "a"),
            ("!!", "??"),
            ("-5 degrees", "5 degrees"),
            (".5 degrees", "5 degrees"),
            ("5' long", "5\" long"),
            ("knows C++", "knows C"),
            ("knows C#", "knows C"),
            ("knows C++", "knows C#"),
            ("pays $500", "pays €500"),
            ("pays £500", "pays 500"),
            ("5% of it", "5 of it"),
            ("R&D", "R D"),
            ("ask @ann", "ask ann"),
            ("vitamin A", "vitamin"),
            ("vitamin A helps", "vitamin helps"),
            ("vitamin a", "vitamin"),
            ("moved to LA", "moved to"),
            ("moved to LA in May", "moved to in May"),
            ("Bob called?", "Bob called."),
        ] {
            assert_ne!(normalize(one), normalize(other), "{one} / {other}");
        }
    }
}
