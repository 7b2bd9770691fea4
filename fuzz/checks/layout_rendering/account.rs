//! The account of a prompt: spans, parts, border, hashes, budget, and who may see what.

use embody_prompt::{Kind, Note, NoteKind, RenderedPrompt, SEPARATOR, Span, hidden_characters, tokens};

/// What some readers take for the end of a line.
const LINE_ENDS: [char; 9] =
    ['\r', '\u{B}', '\u{C}', '\u{1C}', '\u{1D}', '\u{1E}', '\u{85}', '\u{2028}', '\u{2029}'];

use super::decode::{Case, WITHHELD};
use super::{below_body, body_end};

pub(super) fn check(case: &Case, notes: &[Note], rendered: &RenderedPrompt) {
    let text = rendered.text.as_str();
    assert!(!text.is_empty(), "a prompt is never empty");
    check_spans(rendered);
    for span in &rendered.spans {
        check_parts(text, span);
    }
    check_separator(rendered);
    assert_eq!(rendered.hash, blake3::hash(text.as_bytes()), "the hash is the text's");

    assert!(rendered.stable_len <= text.len(), "the border is inside");
    assert!(text.is_char_boundary(rendered.stable_len), "the border is between characters");

    let below = below_body(rendered);
    assert_eq!(hidden_characters(below), 0, "nothing hides below the body: {below:?}");
    assert!(!below.contains(LINE_ENDS), "line ends are plain below the body");
    assert!(!below.contains(WITHHELD), "what is withheld is not there: {below:?}");

    let over = notes.iter().any(|note| note.kind == NoteKind::OverBudget);
    let total = case.input.budget.total;
    assert!(over || text.len() <= total || tokens::count(text) <= total, "in the budget, or noted");
}

fn check_spans(rendered: &RenderedPrompt) {
    let text = rendered.text.as_str();
    let mut end = 0;
    let mut above = None;
    for span in &rendered.spans {
        let between = match above {
            None => "",
            Some(Kind::Body) => SEPARATOR,
            Some(_) => "\n\n",
        };
        assert!(span.start >= end && span.end > span.start, "spans are ordered and not empty");
        assert_eq!(&text[end..span.start], between, "only separators stand between spans");
        let hash = blake3::hash(&text.as_bytes()[span.start..span.end]);
        assert_eq!(span.hash(text), hash, "a span's hash is its text's");
        (end, above) = (span.end, Some(span.kind));
    }
    assert_eq!(end, text.len(), "spans reach the end");
}

fn check_parts(text: &str, span: &Span) {
    let mut end = span.start;
    for part in &span.parts {
        assert_eq!(part.start, end, "parts have no gaps");
        assert!(part.end > part.start, "parts are not empty");
        assert!(text.is_char_boundary(part.end), "parts end between characters");
        end = part.end;
    }
    assert_eq!(end, span.end, "parts cover their span");
}

fn check_separator(rendered: &RenderedPrompt) {
    let below = below_body(rendered);
    let has_body = body_end(rendered) > 0;
    let expected = usize::from(has_body && rendered.spans.len() > 1);
    let found =
        (0..below.len()).filter(|at| below.as_bytes()[*at..].starts_with(SEPARATOR.as_bytes())).count();
    assert_eq!(found, expected, "the separator stands once, below the body: {below:?}");
}
