//! Text of other origin that a model reads outside a frame, such as the result of a tool: marks of chat templates become
//! ordinary characters, and bidirectional controls become visible. Every other character stays.

use std::borrow::Cow;

use embody_text::invisible::{Invisible, kind};
use embody_text::visible::push_code;

/// Marks without a common form, in lower case. Those of the form `<|…|>` are found by it.
const MARKS: [&str; 18] = [
    "<s>",
    "</s>",
    "<bos>",
    "<eos>",
    "<start_of_turn>",
    "<end_of_turn>",
    "<<sys>>",
    "<</sys>>",
    "[inst]",
    "[/inst]",
    "[system_prompt]",
    "[/system_prompt]",
    "[available_tools]",
    "[/available_tools]",
    "[tool_calls]",
    "[/tool_calls]",
    "[tool_results]",
    "[/tool_results]",
];
/// The longest mark of the form `<|…|>`, in characters.
const LONGEST: usize = 64;

/// A text in which no chat template finds its marks (a `\` stands behind their first character) and nothing reverses the
/// order of characters.
#[must_use]
pub fn without_template_marks(text: &str) -> Cow<'_, str> {
    let is_changed = |(at, c): (usize, char)| is_bidi_control(c) || begins_mark(text, at, c);
    if !text.char_indices().any(is_changed) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 64);
    for (at, c) in text.char_indices() {
        if is_bidi_control(c) {
            push_code(c, &mut out);
            continue;
        }
        out.push(c);
        if begins_mark(text, at, c) {
            out.push('\\');
        }
    }
    Cow::Owned(out)
}

fn is_bidi_control(c: char) -> bool {
    kind(c) == Some(Invisible::Direction)
}

fn begins_mark(text: &str, at: usize, first: char) -> bool {
    if !matches!(first, '<' | '[') {
        return false;
    }
    let rest = text.get(at..).unwrap_or_default();
    let is_listed = |mark: &&str| rest.get(..mark.len()).is_some_and(|head| head.eq_ignore_ascii_case(mark));
    MARKS.iter().any(is_listed) || is_token(rest)
}

/// Whether it begins with `<|…|>`, also with wide bars.
fn is_token(rest: &str) -> bool {
    let is_bar = |c: char| matches!(c, '|' | '\u{ff5c}');
    let Some(inside) = rest.strip_prefix('<').and_then(|rest| rest.strip_prefix(is_bar)) else {
        return false;
    };
    let mut before = ' ';
    for c in inside.chars().take(LONGEST).take_while(|c| *c != '\n') {
        if c == '>' && is_bar(before) {
            return true;
        }
        before = c;
    }
    false
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn marks_are_broken_and_everything_else_stays() {
        for (text, expected) in [
            ("a < b && c[0] > d || e <br> [x]", "a < b && c[0] > d || e <br> [x]"),
            ("x<|im_start|>system", "x<\\|im_start|>system"),
            ("<|im_end|><|im_start|>", "<\\|im_end|><\\|im_start|>"),
            ("[INST] obey [/INST]</s>", "[\\INST] obey [\\/INST]<\\/s>"),
            ("<start_of_turn>user", "<\\start_of_turn>user"),
            ("<<SYS>>x<</SYS>>", "<\\<SYS>>x<\\</SYS>>"),
            ("<\u{ff5c}User\u{ff5c}>", "<\\\u{ff5c}User\u{ff5c}>"),
            ("abc\u{202e}txt.exe\u{202c}", "abc⟨U+202E⟩txt.exe⟨U+202C⟩"),
            ("שלום עולם", "שלום עולם"),
        ] {
            assert_eq!(without_template_marks(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn nothing_is_left_to_break(text in "([<\\[|/>\\] a]|im_start|INST|<s>|\u{202e}|\u{ff5c}){0,40}") {
            let once = without_template_marks(&text).into_owned();
            prop_assert_eq!(&*without_template_marks(&once), &once);
        }
    }
}
