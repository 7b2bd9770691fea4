//! What a prompt may cost, and who gives way when it costs more. Bytes are compared first: a token is never shorter
//! than a byte, so a text that fits by bytes is never counted.

use crate::assemble::Written;
use crate::render::{length, separator_before};
use crate::{Kind, Note, NoteKind, Source, cut, tokens};

/// Limits in tokens, for the whole prompt and for single sections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    /// For the whole prompt.
    pub total: usize,
    /// For single sections, content and frame together.
    pub sections: Vec<(Kind, usize)>,
}

impl Default for Budget {
    fn default() -> Self {
        Self { total: 12_000, sections: Vec::new() }
    }
}

/// How often a cut is made again because counting the text shows that it was too small.
const ROUNDS: usize = 6;

/// Fresh values count in steps of so many tokens, so that a cut stays where it was in the last turn.
const FRESH_STEP: usize = 64;

/// Cuts what may be cut until the prompt fits. What may never be cut stays, and is noted when it alone is too much.
pub(crate) fn fit(sections: &mut [Written<'_>], budget: &Budget, notes: &mut Vec<Note>) {
    let cap = |written: &Written<'_>| {
        let cap = budget.sections.iter().find(|(kind, _)| *kind == written.section.kind);
        cap.map(|(_, cap)| *cap).filter(|cap| written.length() > *cap)
    };
    let over = |sections: &[Written<'_>]| length(sections) + FRESH_STEP > budget.total;
    if !over(sections) && sections.iter().all(|written| cap(written).is_none()) {
        return;
    }
    let whole = sections.to_vec();
    let mut asked = vec![0; sections.len()];
    for (written, asked) in sections.iter_mut().zip(&mut asked) {
        if let Some(cap) = cap(written) {
            *asked = fit_section(written, cap, notes);
        }
    }
    if over(sections) {
        fit_total(sections, Uncut { whole, asked }, budget.total, notes);
    }
    for written in sections.iter() {
        if let Some(source) = written.cut {
            let message = format!("cut in `{}` to fit the token budget", written.section.kind.name());
            notes.push(Note::new(NoteKind::Cut, message, source.clone()));
        }
    }
}

/// The sections before any cut, and how many tokens their own limits took from each. Every cut is made from here: a
/// section that was cut once has nothing left to cut.
struct Uncut<'a> {
    whole: Vec<Written<'a>>,
    asked: Vec<usize>,
}

/// Cuts one section to its own limit; gives back how many tokens it was asked for.
fn fit_section(written: &mut Written<'_>, cap: usize, notes: &mut Vec<Note>) -> usize {
    let whole = written.clone();
    let mut size = count(std::slice::from_ref(written));
    let mut remove = 0;
    for round in 0..ROUNDS {
        if size <= cap {
            return remove;
        }
        remove = ask_more(remove, size - cap, round);
        *written = cut::shorten(&whole, remove);
        size = count(std::slice::from_ref(written));
    }
    if size > cap {
        let message = format!(
            "`{}` has {size} tokens, its limit is {cap}, and the rest of it is never cut",
            written.section.kind.name()
        );
        notes.push(Note::new(NoteKind::OverBudget, message, source(written)));
    }
    remove
}

fn fit_total<'a>(sections: &mut [Written<'a>], uncut: Uncut<'a>, total: usize, notes: &mut Vec<Note>) {
    let mut size = cost(sections);
    let mut remove = 0;
    for round in 0..ROUNDS {
        if size <= total {
            return;
        }
        remove = ask_more(remove, size - total, round);
        give_way(&uncut, sections, remove);
        size = cost(sections);
    }
    let size = count(sections);
    if size > total {
        let message =
            format!("the prompt has {size} tokens, its budget is {total}, and the rest is never cut");
        notes.push(Note::new(NoteKind::OverBudget, message, Source::fixed("budget")));
    }
}

/// Takes `remove` tokens from the sections that give way, in their order, each down to its floor.
fn give_way<'a>(uncut: &Uncut<'a>, sections: &mut [Written<'a>], mut remove: usize) {
    let mut order: Vec<(u8, usize)> = uncut
        .whole
        .iter()
        .enumerate()
        .filter_map(|(index, written)| Some((written.section.give?.order, index)))
        .collect();
    order.sort_unstable();
    for (_, index) in order {
        let (Some(whole), Some(asked)) = (uncut.whole.get(index), uncut.asked.get(index)) else { continue };
        let Some(slot) = sections.get_mut(index).filter(|_| remove > 0) else { return };
        let before = count(&[cut::shorten(whole, *asked)]);
        *slot = cut::shorten(whole, EVERYTHING);
        let missing =
            |slot: &Written<'_>| (count(std::slice::from_ref(slot)) + remove).saturating_sub(before);
        let still_missing = missing(slot);
        if still_missing > 0 {
            remove = still_missing;
            continue;
        }
        let mut ask = asked + remove;
        for round in 0..ROUNDS {
            *slot = cut::shorten(whole, ask);
            match missing(slot) {
                0 => return,
                missing => ask = ask_more(ask, missing, round),
            }
        }
        return;
    }
}

/// More than any text has, and still far from an overflow.
const EVERYTHING: usize = usize::MAX >> 8;

/// How many tokens to ask for when `missing` are still too many: each round asks more boldly, the last for everything,
/// so that what is over in the end cannot be cut.
fn ask_more(asked: usize, missing: usize, round: usize) -> usize {
    if round + 2 >= ROUNDS { EVERYTHING } else { (asked + (missing << round)).min(EVERYTHING) }
}

/// What the text counts for: its tokens, but at least those of its stable part and whole steps for the fresh one.
fn cost(sections: &[Written<'_>]) -> usize {
    let fresh: String = sections
        .iter()
        .flat_map(|written| &written.pieces)
        .filter(|piece| piece.fresh)
        .map(|piece| piece.text.as_ref())
        .collect();
    if fresh.is_empty() {
        return count(sections);
    }
    let mut stable = sections.to_vec();
    for written in &mut stable {
        written.pieces.retain(|piece| !piece.fresh);
    }
    count(sections).max(count(&stable) + tokens::count(&fresh).next_multiple_of(FRESH_STEP))
}

fn count(sections: &[Written<'_>]) -> usize {
    let mut text = String::with_capacity(length(sections));
    for (index, written) in sections.iter().enumerate() {
        text.push_str(separator_before(sections, index));
        written.push_to(&mut text);
    }
    tokens::count(&text)
}

fn source(written: &Written<'_>) -> Source {
    written.pieces.iter().find_map(|piece| piece.source).cloned().unwrap_or(Source::BUILT_IN)
}
