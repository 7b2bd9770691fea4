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

/// How often a cut is made again because counting the whole text shows that it was too small.
const ROUNDS: usize = 6;

/// Cuts what may be cut until the prompt fits. What may never be cut stays, and is noted when it alone is too much.
pub(crate) fn fit(sections: &mut [Written<'_>], budget: &Budget, notes: &mut Vec<Note>) {
    for written in sections.iter_mut() {
        let cap = budget.sections.iter().find(|(kind, _)| *kind == written.section.kind);
        if let Some(&(_, cap)) = cap
            && written.length() > cap
        {
            fit_section(written, cap, notes);
        }
    }
    if length(sections) > budget.total {
        fit_total(sections, budget.total, notes);
    }
    for written in sections.iter().filter(|written| written.truncated) {
        let message = format!("cut to fit the token budget: {}", written.section.kind.name());
        notes.push(Note::new(NoteKind::Cut, message, source(written)));
    }
}

fn fit_section(written: &mut Written<'_>, cap: usize, notes: &mut Vec<Note>) {
    let whole = written.clone();
    let mut size = count(std::slice::from_ref(written));
    let mut remove = 0;
    for _ in 0..ROUNDS {
        if size <= cap {
            return;
        }
        remove += size - cap;
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
}

fn fit_total(sections: &mut [Written<'_>], total: usize, notes: &mut Vec<Note>) {
    let whole = sections.to_vec();
    let mut size = count(sections);
    let mut remove = 0;
    for _ in 0..ROUNDS {
        if size <= total {
            return;
        }
        remove += size - total;
        give_way(&whole, sections, remove);
        size = count(sections);
    }
    if size > total {
        let message =
            format!("the prompt has {size} tokens, its budget is {total}, and the rest is never cut");
        notes.push(Note::new(NoteKind::OverBudget, message, Source::fixed("budget")));
    }
}

/// Takes `remove` tokens from the sections that give way, in their order, each down to its floor.
fn give_way<'a>(whole: &[Written<'a>], sections: &mut [Written<'a>], mut remove: usize) {
    let mut order: Vec<(u8, usize)> = whole
        .iter()
        .enumerate()
        .filter_map(|(index, written)| Some((written.section.give?.order, index)))
        .collect();
    order.sort_unstable();
    for (_, index) in order {
        let (Some(before), Some(slot)) = (whole.get(index), sections.get_mut(index)) else { continue };
        if remove == 0 {
            return;
        }
        let shorter = cut::shorten(before, remove);
        let one = std::slice::from_ref;
        remove = remove.saturating_sub(count(one(before)).saturating_sub(count(one(&shorter))));
        *slot = shorter;
    }
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
