//! The token budget of a prompt, and which sections are cut to fit it. Bytes are compared first: a token is never shorter
//! than a byte, so a text that fits by bytes is never counted.

use crate::assemble::RenderedSection;
use crate::render::{length, separator_before};
use crate::{Kind, Note, NoteKind, Source, tokens, truncate};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    pub total: usize,
    pub sections: Vec<(Kind, usize)>,
}

impl Default for Budget {
    fn default() -> Self {
        Self { total: 12_000, sections: Vec::new() }
    }
}

/// How often a cut is repeated because the counted text is still too long.
const MAX_ROUNDS: usize = 6;

/// Volatile values count in steps of this many tokens, so that a cut stays where it was in the last turn.
const VOLATILE_STEP: usize = 64;

/// Cuts sections until the prompt fits. If the parts that are never cut are too long, that is noted.
pub(crate) fn fit(sections: &mut [RenderedSection<'_>], budget: &Budget, notes: &mut Vec<Note>) {
    let cap = |rendered: &RenderedSection<'_>| {
        let cap = budget.sections.iter().find(|(kind, _)| *kind == rendered.section.kind);
        cap.map(|(_, cap)| *cap).filter(|cap| rendered.length() > *cap)
    };
    let over = |sections: &[RenderedSection<'_>]| length(sections) + VOLATILE_STEP > budget.total;
    if !over(sections) && sections.iter().all(|rendered| cap(rendered).is_none()) {
        return;
    }
    let whole = sections.to_vec();
    let mut asked = vec![0; sections.len()];
    for (rendered, asked) in sections.iter_mut().zip(&mut asked) {
        if let Some(cap) = cap(rendered) {
            *asked = fit_section(rendered, cap, notes);
        }
    }
    if over(sections) {
        fit_total(sections, OriginalSections { whole, asked }, budget.total, notes);
    }
    for rendered in sections.iter() {
        if let Some(source) = rendered.cut {
            let message = format!("cut in `{}` to fit the token budget", rendered.section.kind.name());
            notes.push(Note::new(NoteKind::Cut, message, source.clone()));
        }
    }
}

/// The sections before any cut, and how many tokens their own limits took from each. Every cut is made from here: a
/// section that was cut once has nothing left to cut.
struct OriginalSections<'a> {
    whole: Vec<RenderedSection<'a>>,
    asked: Vec<usize>,
}

/// Cuts one section to its own limit; returns how many tokens were to be removed.
fn fit_section(rendered: &mut RenderedSection<'_>, cap: usize, notes: &mut Vec<Note>) -> usize {
    let whole = rendered.clone();
    let mut size = count(std::slice::from_ref(rendered));
    let mut remove = 0;
    for round in 0..MAX_ROUNDS {
        if size <= cap {
            return remove;
        }
        remove = next_removal(remove, size - cap, round);
        *rendered = truncate::truncate_section(&whole, remove);
        size = count(std::slice::from_ref(rendered));
    }
    if size > cap {
        let message = format!(
            "`{}` has {size} tokens, its limit is {cap}, and the rest of it is never cut",
            rendered.section.kind.name()
        );
        notes.push(Note::new(NoteKind::OverBudget, message, source(rendered)));
    }
    remove
}

fn fit_total<'a>(
    sections: &mut [RenderedSection<'a>],
    originals: OriginalSections<'a>,
    total: usize,
    notes: &mut Vec<Note>,
) {
    let mut size = cost(sections);
    let mut remove = 0;
    for round in 0..MAX_ROUNDS {
        if size <= total {
            return;
        }
        remove = next_removal(remove, size - total, round);
        truncate_by_priority(&originals, sections, remove);
        size = cost(sections);
    }
    let size = count(sections);
    if size > total {
        let message =
            format!("the prompt has {size} tokens, its budget is {total}, and the rest is never cut");
        notes.push(Note::new(NoteKind::OverBudget, message, Source::fixed("budget")));
    }
}

/// Removes `remove` tokens from the sections in order of priority, each down to its floor.
fn truncate_by_priority<'a>(
    originals: &OriginalSections<'a>,
    sections: &mut [RenderedSection<'a>],
    mut remove: usize,
) {
    let mut order: Vec<(u8, usize)> = originals
        .whole
        .iter()
        .enumerate()
        .filter_map(|(index, rendered)| Some((rendered.section.truncation_priority?.order, index)))
        .collect();
    order.sort_unstable();
    for (_, index) in order {
        let (Some(whole), Some(asked)) = (originals.whole.get(index), originals.asked.get(index)) else {
            continue;
        };
        let Some(slot) = sections.get_mut(index).filter(|_| remove > 0) else { return };
        let before = count(&[truncate::truncate_section(whole, *asked)]);
        *slot = truncate::truncate_section(whole, MAX_REMOVAL);
        let missing =
            |slot: &RenderedSection<'_>| (count(std::slice::from_ref(slot)) + remove).saturating_sub(before);
        let still_missing = missing(slot);
        if still_missing > 0 {
            remove = still_missing;
            continue;
        }
        let mut ask = asked + remove;
        for round in 0..MAX_ROUNDS {
            *slot = truncate::truncate_section(whole, ask);
            match missing(slot) {
                0 => return,
                missing => ask = next_removal(ask, missing, round),
            }
        }
        return;
    }
}

/// More than any text has, without overflow.
const MAX_REMOVAL: usize = usize::MAX >> 8;

/// How many tokens to remove when `missing` are still too many: each round removes more, the last one everything that can
/// be cut.
fn next_removal(asked: usize, missing: usize, round: usize) -> usize {
    if round + 2 >= MAX_ROUNDS { MAX_REMOVAL } else { (asked + (missing << round)).min(MAX_REMOVAL) }
}

/// The tokens of the text, but at least those of its stable part plus whole steps for the volatile one.
fn cost(sections: &[RenderedSection<'_>]) -> usize {
    let volatile: String = sections
        .iter()
        .flat_map(|rendered| &rendered.pieces)
        .filter(|piece| piece.volatile)
        .map(|piece| piece.text.as_ref())
        .collect();
    if volatile.is_empty() {
        return count(sections);
    }
    let mut stable = sections.to_vec();
    for rendered in &mut stable {
        rendered.pieces.retain(|piece| !piece.volatile);
    }
    count(sections).max(count(&stable) + tokens::count(&volatile).next_multiple_of(VOLATILE_STEP))
}

fn count(sections: &[RenderedSection<'_>]) -> usize {
    let mut text = String::with_capacity(length(sections));
    for (index, rendered) in sections.iter().enumerate() {
        text.push_str(separator_before(sections, index));
        rendered.push_to(&mut text);
    }
    tokens::count(&text)
}

fn source(rendered: &RenderedSection<'_>) -> Source {
    rendered.pieces.iter().find_map(|piece| piece.source).cloned().unwrap_or(Source::BUILT_IN)
}
