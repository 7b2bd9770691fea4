//! The frames of a prompt, read by readers that share nothing with the builder: headings outside code, tags, comments,
//! chat-template marks.

use embody_prompt::{Dialect, Frame, Kind, RenderedPrompt, Source, Span};

use super::below_body;
use super::decode::Case;

pub(super) fn check(case: &Case, rendered: &RenderedPrompt) {
    for span in rendered.spans.iter().filter(|span| span.kind != Kind::Body) {
        check_span(case, span, &rendered.text[span.start..span.end]);
        check_marks(span, &rendered.text);
    }
    let below: String = below_body(rendered).chars().map(narrow).collect();
    check_template_marks(&below);
    match case.layout.dialect {
        Dialect::Tagged => check_tags(case, rendered, &below),
        Dialect::Markdown => check_skills(rendered, &below),
    }
}

fn frame_of(case: &Case, span: &Span) -> Frame {
    let section = case.layout.all_sections().find(|section| section.kind == span.kind);
    section.expect("a span comes from the layout").frame
}

/// One heading of the frame's level where there is a heading frame, at its start; and no code that never ends.
fn check_span(case: &Case, span: &Span, text: &str) {
    let frame = frame_of(case, span);
    let mut fence = None;
    for (index, line) in text.split('\n').enumerate() {
        let in_code = fence.is_some();
        fence = fence_after(fence, line);
        let Frame::Heading(name) = frame else { continue };
        if index == 0 {
            assert_eq!(line, format!("## {name}"), "a section starts with its heading");
        } else if let Some(heading) = frame_heading(line) {
            let imitates =
                |frame: Frame| matches!(frame, Frame::Heading(name) if name.eq_ignore_ascii_case(heading));
            let named = case.layout.all_sections().any(|section| imitates(section.frame));
            assert!(in_code && !named, "{line:?} imitates a frame in {text:?}");
        }
    }
    assert!(fence.is_none(), "code never ends in {text:?}");
    if let Frame::Tag(name) = frame {
        assert!(
            text.starts_with(&format!("<{name}>\n")) && text.ends_with(&format!("\n</{name}>")),
            "{text:?}"
        );
    }
}

/// What a heading says that is as high as a frame's.
fn frame_heading(line: &str) -> Option<&str> {
    let start = line.trim_start();
    let rest = start.trim_start_matches('#');
    let level = start.len() - rest.len();
    let ends = rest.is_empty() || rest.starts_with(char::is_whitespace);
    ((1..=2).contains(&level) && ends).then(|| rest.trim().trim_end_matches('#').trim_end())
}

/// The sign and length of the code fence that is open after a line.
fn fence_after(open: Option<(u8, usize)>, line: &str) -> Option<(u8, usize)> {
    let start = line.trim_start_matches(' ');
    let indent = line.len() - start.len();
    let sign = start.bytes().next().filter(|sign| matches!(sign, b'`' | b'~'));
    let length = sign.map_or(0, |sign| start.bytes().take_while(|byte| *byte == sign).count());
    let (Some(sign), 0..4, 3..) = (sign, indent, length) else { return open };
    let info = &start[length..];
    match open {
        None if sign == b'`' && info.contains('`') => None,
        None => Some((sign, length)),
        Some((open_sign, open_length))
            if sign == open_sign && length >= open_length && info.trim().is_empty() =>
        {
            None
        }
        Some(_) => open,
    }
}

/// Comments end in the section they start in, and only the builder writes its own.
fn check_marks(span: &Span, text: &str) {
    let section = &text[span.start..span.end];
    if let Some(last) = section.rfind("<!--") {
        assert!(section[last + 4..].contains("-->"), "a comment never ends in {section:?}");
    }
    assert!(!section.contains("<!-- missing"), "only the body has missing includes");
    for (at, _) in section.match_indices("<!-- embody:") {
        let at = span.start + at;
        let part = span.parts.iter().find(|part| (part.start..part.end).contains(&at)).expect("parts cover");
        assert_eq!(part.source, Source::BUILT_IN, "only the builder leaves its marks: {section:?}");
    }
}

fn check_template_marks(below: &str) {
    for (at, _) in below.match_indices("<|") {
        let word = &below[at + 2..];
        let end = word.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(word.len());
        let ends = word[end..].starts_with('|');
        assert!(!(ends && (1..=32).contains(&word[..end].chars().count())), "a template mark in {below:?}");
    }
}

fn check_tags(case: &Case, rendered: &RenderedPrompt, below: &str) {
    for section in case.layout.all_sections() {
        let Frame::Tag(name) = section.frame else { continue };
        let there = rendered.spans.iter().filter(|span| span.kind == section.kind).count();
        assert_eq!(tags(below, name), (there, there), "<{name}> in {below:?}");
    }
    let audience = case.input.audience;
    let duties = &case.input.agent.responsibilities;
    let seen = duties.iter().filter(|duty| duty.audience() >= audience).count();
    let whole = rendered.spans.iter().all(|span| !span.truncated);
    let (opened, closed) = tags(below, "Responsibility");
    assert_eq!(opened, closed, "every duty ends in {below:?}");
    assert!(if whole { opened == seen } else { opened <= seen }, "{opened} duties of {seen} in {below:?}");
}

fn check_skills(rendered: &RenderedPrompt, below: &str) {
    let there = rendered.spans.iter().filter(|span| span.kind == Kind::Skills).count();
    assert_eq!(tags(below, "available_skills"), (there, there), "{below:?}");
    let (opened, closed) = tags(below, "skill");
    assert_eq!(opened, closed, "every skill ends in {below:?}");
}

/// How many tags of that name open and how many close.
fn tags(text: &str, name: &str) -> (usize, usize) {
    let (mut opened, mut closed) = (0, 0);
    for (at, _) in text.match_indices('<') {
        let after = &text[at + 1..];
        let start = after.trim_start_matches(|c: char| c.is_whitespace() || c == '/');
        let Some(tail) = start
            .get(..name.len())
            .filter(|tag| tag.eq_ignore_ascii_case(name))
            .map(|_| &start[name.len()..])
        else {
            continue;
        };
        if tail.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-')) {
            continue;
        }
        // `a < task` is arithmetic; `< task >` is a frame.
        if after.starts_with(char::is_whitespace) && !tail.trim_start().starts_with('>') {
            continue;
        }
        let closes = after[..after.len() - start.len()].contains('/');
        *(if closes { &mut closed } else { &mut opened }) += 1;
    }
    (opened, closed)
}

/// The plain form of a full-width sign.
fn narrow(c: char) -> char {
    match c {
        '\u{FF01}'..='\u{FF5E}' => char::from_u32(c as u32 - 0xFEE0).unwrap_or(c),
        c => c,
    }
}
