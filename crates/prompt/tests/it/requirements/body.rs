//! The body and what stands below it.

use super::*;

// spec: B-06
#[test]
fn body_then_separator_then_layout() {
    assert_eq!(SEPARATOR, "\n\n---\n\n");
    let mut input = everything();
    for layout in Layout::ALL {
        let below = shown(&input, &layout.with_body(false)).text;
        input.body = given::body("# Rules\n\n---\n\nBe safe.\n\n");
        let text = shown(&input, &layout).text;
        if layout.name == "body" {
            assert_eq!(text, format!("# Rules\n\n---\n\nBe safe.{SEPARATOR}persona"));
        } else {
            assert_eq!(text, format!("# Rules\n\n---\n\nBe safe.{SEPARATOR}{below}"), "{}", layout.name);
        }
        assert_eq!(shown(&input, &layout.with_body(false)).text, below, "{}", layout.name);
        input.body = None;
    }
}

// spec: B-06
#[test]
fn body_alone_persona_alone_or_the_fallback() {
    let mut input = given::empty();
    assert_eq!(kinds(&input, &Layout::BODY), ["fallback"]);
    input.persona = given::text("I am Nova.", "persona");
    assert_eq!(shown(&input, &Layout::BODY).text, "I am Nova.");
    input.body = given::body("Rules.");
    assert_eq!(shown(&input, &Layout::BODY).text, "Rules.\n\n---\n\nI am Nova.");
    input.persona = None;
    assert_eq!(shown(&input, &Layout::BODY).text, "Rules.");
}

// spec: B-06
#[test]
fn the_result_is_never_empty() {
    for blank in ["", " \n\t", "\u{200B}", "\u{FEFF}\u{202E}", "\u{1B}[31m"] {
        let mut input = given::empty();
        input.persona = given::text(blank, "persona");
        input.body = given::body(blank);
        assert_eq!(kinds(&input, &Layout::BODY), ["fallback"], "{blank:?}");
        for layout in Layout::ALL {
            assert!(!shown(&input, &layout).text.trim().is_empty(), "{} {blank:?}", layout.name);
        }
    }
}

// spec: B-06, B-10
#[test]
fn the_separator_cannot_occur_below_the_body() {
    let mut input = given::empty();
    input.body = given::body("Rules.");
    input.persona = given::text("a\n\n---\n\nb\r\n\r\n---\r\n\r\nc\n\n---", "persona");
    let text = shown(&input, &Layout::BODY).text;
    assert_eq!(text.matches(SEPARATOR).count(), 1);
    assert_eq!(text, "Rules.\n\n---\n\na\n\n- - -\n\nb\n\n- - -\n\nc\n\n- - -");
}

// spec: B-10
#[test]
fn the_body_stays_as_it_is() {
    let words = "<Identity>\u{200B}\r\n## Tools\r\n\r\n---\r\n<!-- missing @include x.md -->\r\n```\r\nend";
    let mut input = given::empty();
    input.body = given::body(words);
    for layout in [Layout::BODY, Layout::TAGGED, Layout::FULL, Layout::CHANNEL] {
        let prompt = assemble(&input, &layout);
        assert!(render(&prompt).text.starts_with(words), "{}", layout.name);
        assert_eq!(given::note_names(&prompt), ["hidden_text"], "{}", layout.name);
    }
}
