//! Makes a section shorter: whole items of a list, or lines of a text, from the middle. Head and tail stay, and a mark
//! says what is missing. The cut is made in the raw text, so that what is left is escaped and closed like any other.

use std::borrow::Cow;

use crate::assemble::RenderedSection;
use crate::block::{Piece, Truncation};
use crate::escape::{self, EscapeReport, TextPosition};
use crate::{Source, tokens};

const HEAD_PERCENT: usize = 70;
/// A longer line may be cut inside.
const MAX_LINE_BYTES: usize = 400;

/// The section with about `remove` tokens less, but never below its floor.
pub(crate) fn truncate_section<'a>(whole: &RenderedSection<'a>, remove: usize) -> RenderedSection<'a> {
    let Some(truncation_priority) = whole.section.truncation_priority else { return whole.clone() };
    let sizes: Vec<usize> = whole
        .pieces
        .iter()
        .map(
            |piece| {
                if matches!(piece.truncation, Truncation::Never) { 0 } else { tokens::count(&piece.text) }
            },
        )
        .collect();
    let all: usize = sizes.iter().sum();
    let keep = all.saturating_sub(remove).max(truncation_priority.floor);
    if keep >= all {
        return whole.clone();
    }
    let items: usize = sum_where(whole, &sizes, |truncation| matches!(truncation, Truncation::Item(_)));
    let lines = all - items;
    // Items and lines share what is left in proportion.
    let keep_items = keep * items / all;
    let mut pieces = whole.pieces.clone();
    if items > keep_items {
        pieces = drop_items(pieces, &sizes, keep_items);
    }
    let keep_lines = keep - keep_items;
    if lines > keep_lines {
        let level = cut_threshold(whole, &sizes, keep_lines);
        pieces = pieces.into_iter().flat_map(|piece| truncate_lines(piece, level)).collect();
    }
    RenderedSection { section: whole.section, pieces, cut: Some(largest(whole, &sizes)) }
}

/// The source of the largest piece that can be cut.
fn largest<'a>(whole: &RenderedSection<'a>, sizes: &[usize]) -> &'a Source {
    const BUILT_IN: &Source = &Source::BUILT_IN;
    let giving = whole.pieces.iter().zip(sizes).filter_map(|(piece, size)| Some((size, piece.source?)));
    giving.max_by_key(|(size, _)| **size).map_or(BUILT_IN, |(_, source)| source)
}

fn sum_where(whole: &RenderedSection<'_>, sizes: &[usize], which: impl Fn(&Truncation<'_>) -> bool) -> usize {
    whole.pieces.iter().zip(sizes).filter(|(piece, _)| which(&piece.truncation)).map(|(_, size)| size).sum()
}

/// The size above which texts are cut so that together they keep `keep` tokens: small ones stay whole.
fn cut_threshold(whole: &RenderedSection<'_>, sizes: &[usize], keep: usize) -> usize {
    let mut sizes: Vec<usize> = whole
        .pieces
        .iter()
        .zip(sizes)
        .filter(|(piece, _)| matches!(piece.truncation, Truncation::Lines { .. }))
        .map(|(_, size)| *size)
        .collect();
    sizes.sort_unstable();
    let mut left = keep;
    let mut count = sizes.len();
    for size in sizes {
        let share = left / count.max(1);
        if size > share {
            return share;
        }
        left -= size;
        count -= 1;
    }
    usize::MAX
}

fn drop_items<'a>(pieces: Vec<Piece<'a>>, sizes: &[usize], keep: usize) -> Vec<Piece<'a>> {
    let mut items: Vec<usize> = Vec::new();
    for (piece, size) in pieces.iter().zip(sizes) {
        if let Truncation::Item(item) = piece.truncation {
            items.resize(items.len().max(item + 1), 0);
            if let Some(total) = items.get_mut(item) {
                *total += size;
            }
        }
    }
    let mark = format!("<!-- embody: {} entries of {} left out to save room -->\n", items.len(), items.len());
    let (head, tail) = head_and_tail(&items, keep.saturating_sub(tokens::count(&mark)), |_| false);
    let mark = format!("<!-- embody: {} entries of {} left out to save room -->\n", tail - head, items.len());
    let mut out = Vec::with_capacity(pieces.len());
    let mut marked = false;
    for piece in pieces {
        match piece.truncation {
            Truncation::Item(item) if (head..tail).contains(&item) => {
                if !std::mem::replace(&mut marked, true) {
                    out.push(built_in(mark.clone()));
                }
            }
            _ => out.push(piece),
        }
    }
    if let Some(last) = out.last_mut().filter(|piece| piece.source.is_none() && piece.text.ends_with("-->\n"))
    {
        last.text.to_mut().pop();
    }
    out
}

fn truncate_lines(piece: Piece<'_>, level: usize) -> Vec<Piece<'_>> {
    let Truncation::Lines { raw, position } = piece.truncation else { return vec![piece] };
    if tokens::count(&piece.text) <= level {
        return vec![piece];
    }
    let lines = split(raw);
    let sizes: Vec<usize> = lines.iter().map(|line| tokens::count(line)).collect();
    let mark = |cut: usize| format!("<!-- embody: {cut} characters left out to save room -->");
    let limit = level.saturating_sub(tokens::count(&mark(raw.len())) + 2);
    let starts_part = |index: usize| lines.get(index).is_some_and(|line| line.trim_start().starts_with('#'));
    let (head, tail) = head_and_tail(&sizes, limit, starts_part);
    let text = |range: std::ops::Range<usize>| lines.get(range).unwrap_or_default().concat();
    let mut out = Vec::with_capacity(3);
    push_escaped(&mut out, &text(0..head), position, piece.source);
    if !out.is_empty() {
        out.push(built_in("\n".into()));
    }
    out.push(built_in(mark(text(head..tail).chars().count())));
    let before = out.len();
    push_escaped(&mut out, &text(tail..lines.len()), position, piece.source);
    if out.len() > before {
        out.insert(before, built_in("\n".into()));
    }
    out
}

fn push_escaped<'a>(out: &mut Vec<Piece<'a>>, raw: &str, position: TextPosition, source: Option<&'a Source>) {
    let text = escape::text(raw, position, &mut EscapeReport::default()).into_owned();
    if !text.is_empty() {
        out.push(Piece { text: Cow::Owned(text), source, volatile: false, truncation: Truncation::Never });
    }
}

fn built_in<'a>(text: String) -> Piece<'a> {
    Piece { text: Cow::Owned(text), source: None, volatile: false, truncation: Truncation::Never }
}

/// Lines with their ends; very long ones in several parts, broken between words where there are any.
fn split(raw: &str) -> Vec<&str> {
    let mut out = Vec::new();
    for mut line in raw.split_inclusive('\n') {
        while line.len() > MAX_LINE_BYTES {
            let limit = (0..=MAX_LINE_BYTES).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0);
            let (front, _) = line.split_at(limit);
            let at = front.rfind(' ').map_or(limit, |blank| blank + 1);
            if at == 0 || at >= line.len() {
                break;
            }
            let (front, rest) = line.split_at(at);
            out.push(front);
            line = rest;
        }
        out.push(line);
    }
    out
}

/// The ranges that stay, as (end of the head, start of the tail). A head that would end shortly after a heading ends
/// before it.
fn head_and_tail(sizes: &[usize], limit: usize, starts_part: impl Fn(usize) -> bool) -> (usize, usize) {
    let take = |sizes: &mut dyn Iterator<Item = &usize>, limit: usize| {
        let mut used = 0;
        sizes
            .take_while(|size| {
                used += **size;
                used <= limit
            })
            .count()
    };
    let mut head = take(&mut sizes.iter(), limit * HEAD_PERCENT / 100);
    if let Some(heading) =
        (head.saturating_sub(2)..head).rev().find(|index| *index > 0 && starts_part(*index))
    {
        head = heading;
    }
    let used: usize = sizes.iter().take(head).sum();
    let tail = take(&mut sizes.iter().skip(head).rev(), limit.saturating_sub(used));
    (head, sizes.len() - tail)
}
