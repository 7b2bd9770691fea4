//! Messages to Telegram are valid whatever a model writes, checked by an independent parser of Telegram's HTML.

#[path = "../../../examples/telegram_api/html.rs"]
#[allow(unreachable_pub, clippy::string_slice, reason = "it is the fake API's file")]
mod html;

use embody_agent::telegram::format::{PART_UNITS, Part, parts, verbatim};
use proptest::prelude::*;

/// The visible text of the parts; fails if Telegram would reject one.
fn seen(parts: &[Part]) -> String {
    let mut seen = String::new();
    for part in parts {
        let parsed = html::parse(&part.html).unwrap_or_else(|why| panic!("{why}: {}", part.html));
        assert_eq!(parsed.text, part.plain);
        assert!(html::units(&parsed.text) <= PART_UNITS, "{} units", html::units(&parsed.text));
        assert!(!parsed.text.trim().is_empty(), "a message that shows nothing: {parts:?}");
        seen.push_str(&parsed.text);
    }
    seen
}

/// Fragments that are significant for Markdown, for HTML or for splitting.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-zA-Z0-9 ,.!?äß日本👨‍👩‍👧e\u{301}&<>\"]{1,60}",
        2 => prop::sample::select(vec![
            "**", "*", "_", "__", "~~", "`", "``", "\n", "\n\n", "\n```rust\n", "\n```\n", "\n> ", "\n- ", "\n  - ", "\n1. ",
            "# ", "[", "](https://x.example/?a=1&b=\"2\")", "](javascript:x)", "![", "\n| a | b |\n|---|:-:|\n| c | d |\n",
            "<b>", "</b>", "<br>", "&amp;", "&#60;", "\\", "\u{200b}", "\u{0}", "\r\n", "\n---\n", "[1]: https://x.example\n",
            "- [ ] ", "    ", "\t", "<!-- ", "<https://x.example>", "\u{202e}", "🇩🇪",
        ]).prop_map(str::to_owned),
        1 => (1..2500_usize, prop::sample::select(vec!["a", "a ", "& ", "\n", " ", "👍🏽", "**a** ", "`b` ", "\u{301}", "\u{200d}", "x\n"]))
            .prop_map(|(times, text)| text.repeat(times)),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn every_part_is_valid_and_no_letter_is_lost(text in pieces()) {
        let seen = seen(&parts(&text));
        let letters = |text: &str| text.chars().filter(|c| matches!(c, 'ä' | 'ß' | '日' | '本')).count();
        if !text.contains("](") && !text.contains("[1]:") && !text.contains("```") {
            prop_assert_eq!(letters(&seen), letters(&text));
        }
    }

    #[test]
    fn text_that_is_shown_as_it_is_stays_as_it_is(text in pieces()) {
        let seen = seen(&verbatim(&text));
        let shown = |c: &char| !c.is_whitespace() && !c.is_control() && !matches!(c, '\u{200b}' | '\u{200d}' | '\u{202e}');
        prop_assert_eq!(seen.chars().filter(shown).collect::<String>(), text.chars().filter(shown).collect::<String>());
    }

    #[test]
    fn anything_at_all(text in any::<String>()) {
        seen(&parts(&text));
        seen(&verbatim(&text));
    }
}
