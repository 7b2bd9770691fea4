//! Readers of a finished prompt, written from what a reader would assume and from nothing in the builder. The strict
//! ones read frames as they are written; the paranoid ones see a frame in anything that resembles one.

use std::ops::Range;

use icu_properties::CodePointSetData;
use icu_properties::props::DefaultIgnorableCodePoint;

const TAGS: [&str; 12] = [
    "Identity",
    "Role",
    "Instructions",
    "Responsibilities",
    "Responsibility",
    "Directories",
    "Storage",
    "Formatting",
    "Context",
    "Memories",
    "Task",
    "Background",
];

const HEADINGS: [&str; 15] = [
    "Identity",
    "Soul",
    "User",
    "Project Context",
    "Runtime",
    "Available Skills",
    "Workspace Files",
    "Memory",
    "Available Tools",
    "Tool Calls",
    "Guidelines",
    "Channel",
    "Current Time",
    "User Instructions",
    "Tools",
];

/// Top-level tags in order. An error says what stands outside of every tag or never ends.
pub(crate) fn tagged(text: &str) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    let mut open: Option<&str> = None;
    for line in text.split('\n') {
        match open {
            Some(tag) if line == format!("</{tag}>") => open = None,
            Some(_) => {}
            None if line.is_empty() => {}
            None => {
                let tag = TAGS.into_iter().find(|tag| line == format!("<{tag}>"));
                open = Some(tag.ok_or_else(|| format!("untagged: {line:?}"))?);
                found.extend(tag.map(str::to_owned));
            }
        }
    }
    open.map_or(Ok(found), |tag| Err(format!("{tag} never ends")))
}

/// Every place that could pass for a tag of ours: `Identity`, `/Identity`, whatever its case, its alphabet, or what is
/// hidden in it.
pub(crate) fn tags_paranoid(text: &str) -> Vec<String> {
    let plain = plain(text);
    let mut found = Vec::new();
    for (at, _) in plain.match_indices('<') {
        let after = &plain[at + 1..];
        let inner = after.trim_start_matches(|c: char| c.is_whitespace() || c == '/');
        let closing = after[..after.len() - inner.len()].contains('/');
        let spaced = after.starts_with(char::is_whitespace);
        for tag in TAGS {
            let Some(rest) = inner.strip_prefix(tag.to_lowercase().as_str()) else { continue };
            let ends = rest.chars().next().is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != '-');
            // `x < task` compares two things; `< task >` and `< task id="7"` are tags.
            let rest = rest.trim_start();
            let value = rest.trim_start_matches(char::is_alphanumeric).trim_start();
            let attribute = value.len() < rest.len() && (value.starts_with("=\"") || value.starts_with("='"));
            let is_tag = rest.starts_with('>') || rest.starts_with("/>") || attribute;
            if ends && (!spaced || is_tag) {
                found.push(format!("{}{tag}", if closing { "/" } else { "" }));
            }
        }
    }
    found
}

/// Headings of level one and two, as `(level, title)`, outside of fenced code, under-lined ones included.
pub(crate) fn markdown(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut fence: Option<(char, usize)> = None;
    let mut above = "";
    let mut in_list = false;
    for line in text.split('\n') {
        let start = line.trim_start_matches(' ');
        let indented = line.len() - start.len() > 3;
        let was_open = fence.is_some();
        if !indented {
            fence = after_line(fence, start);
        }
        if was_open || fence.is_some() || indented {
            above = "";
            continue;
        }
        let level = start.len() - start.trim_start_matches('#').len();
        let rest = &start[level..];
        let is_heading = (1..=6).contains(&level) && (rest.is_empty() || rest.starts_with([' ', '\t']));
        if is_heading && level <= 2 {
            found.push((level, rest.trim().to_owned()));
        }
        // Only a paragraph can be underlined: no heading, no comment, nothing that belongs to a list.
        in_list = (in_list || line.starts_with("- ")) && !line.trim().is_empty() && !is_heading;
        if is_heading || in_list || start.starts_with("<!--") {
            above = "";
            continue;
        }
        let bare = start.trim();
        let under = |sign: char| !bare.is_empty() && bare.chars().all(|c| c == sign);
        if !above.trim().is_empty() && (under('-') || under('=')) {
            found.push((if under('=') { 1 } else { 2 }, format!("underlined {above}")));
            above = "";
            continue;
        }
        above = line;
    }
    found
}

/// Whether a fence is open at the end of the text.
pub(crate) fn ends_in_code(text: &str) -> bool {
    let mut fence = None;
    for line in text.split('\n') {
        let start = line.trim_start_matches(' ');
        if line.len() - start.len() <= 3 {
            fence = after_line(fence, start);
        }
    }
    fence.is_some()
}

fn after_line(open: Option<(char, usize)>, start: &str) -> Option<(char, usize)> {
    let Some(sign) = start.chars().next().filter(|c| *c == '`' || *c == '~') else { return open };
    let rest = start.trim_start_matches(sign);
    let length = start.len() - rest.len();
    match open {
        None if length >= 3 && !(sign == '`' && rest.contains('`')) => Some((sign, length)),
        Some((fence, least)) if fence == sign && length >= least && rest.trim().is_empty() => None,
        _ => open,
    }
}

/// Every line that could pass for one of our headings, in code too, whatever ends a line and whatever hides in it.
pub(crate) fn headings_paranoid(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in split_lines(&plain(text)) {
        let line = line.trim();
        let title = line.trim_start_matches('#');
        let level = line.len() - title.len();
        if !(1..=2).contains(&level) || !title.starts_with(char::is_whitespace) {
            continue;
        }
        let title = title.trim().trim_end_matches('#').trim_end();
        found.extend(
            HEADINGS.iter().filter(|name| name.to_lowercase() == title).map(|name| (*name).to_owned()),
        );
    }
    found
}

/// How often a line of three dashes stands between blank lines, whatever ends a line.
pub(crate) fn separators_paranoid(text: &str) -> usize {
    let plain = plain(text);
    let lines: Vec<&str> = split_lines(&plain).map(str::trim).collect();
    let blank = |line: Option<&&str>| line.is_none_or(|line| line.is_empty());
    let is_one = |index: usize| {
        lines[index] == "---"
            && blank(index.checked_sub(1).and_then(|above| lines.get(above)))
            && blank(lines.get(index + 1))
    };
    (0..lines.len()).filter(|index| is_one(*index)).count()
}

/// Comments as a careless reader finds them: from `<!--` to the next `-->`; the end is `None` when there is none.
pub(crate) fn comments(text: &str) -> Vec<(usize, Option<Range<usize>>)> {
    let close = |start: usize| text[start + 4..].find("-->").map(|end| start..start + 4 + end + 3);
    text.match_indices("<!--").map(|(start, _)| (start, close(start))).collect()
}

/// Invisible characters that neither an emoji nor a script needs where they stand.
pub(crate) fn hidden(text: &str) -> Vec<(usize, char)> {
    let ignorable = CodePointSetData::new::<DefaultIgnorableCodePoint>();
    let chars: Vec<(usize, char)> = text.char_indices().collect();
    let at = |index: Option<usize>| index.and_then(|index| chars.get(index)).map(|(_, c)| *c);
    let mut found = Vec::new();
    for (index, &(offset, c)) in chars.iter().enumerate() {
        let control = c.is_control() && c != '\n' && c != '\t';
        let other = matches!(c, '\u{2028}' | '\u{2029}' | '\u{FFF9}'..='\u{FFFB}');
        if !control && !other && (c.is_ascii() || !ignorable.contains(c)) {
            continue;
        }
        let before = at(index.checked_sub(1));
        let after = at(Some(index + 1));
        if control || other || !is_needed(c, before, after) {
            found.push((offset, c));
        }
    }
    found
}

fn is_needed(c: char, before: Option<char>, after: Option<char>) -> bool {
    let symbol = |c: char| !c.is_ascii() && !c.is_alphabetic() && !c.is_whitespace();
    let letter = |c: char| !c.is_ascii() && c > '\u{5FF}' && (c.is_alphabetic() || symbol(c));
    let Some(before) = before else { return false };
    match c {
        '\u{FE0E}' | '\u{FE0F}' => {
            symbol(before) || (matches!(before, '0'..='9' | '#' | '*') && after == Some('\u{20E3}'))
        }
        // Behind a sign that takes the vowel a joiner shows, whatever follows.
        '\u{200D}'
            if matches!(
                before as u32,
                0x94D | 0x9CD | 0xA4D | 0xACD | 0xB4D | 0xBCD | 0xC4D | 0xCCD | 0xD4D | 0xDCA
            ) =>
        {
            true
        }
        '\u{200C}' | '\u{200D}' => letter(before) && after.is_none_or(letter),
        '\u{180B}'..='\u{180F}' => matches!(before, '\u{1820}'..='\u{18AA}'),
        '\u{E0061}'..='\u{E007A}' | '\u{E007F}' => {
            before == '\u{1F3F4}' || matches!(before, '\u{E0061}'..='\u{E007A}')
        }
        _ => false,
    }
}

/// What ends a line for Python's `str.splitlines`.
fn split_lines(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c| {
        matches!(
            c,
            '\n' | '\r' | '\u{B}' | '\u{C}' | '\u{1C}'..='\u{1E}' | '\u{85}' | '\u{2028}' | '\u{2029}'
        )
    })
}

/// What is left for an eye that sees no invisible characters, no case and no difference between alphabets.
fn plain(text: &str) -> String {
    let ignorable = CodePointSetData::new::<DefaultIgnorableCodePoint>();
    let visible = text.chars().filter(|c| *c != '\u{1B}' && (c.is_ascii() || !ignorable.contains(*c)));
    let folded = visible.map(|c| match c {
        '\u{FF01}'..='\u{FF5E}' => char::from_u32(c as u32 - 0xFEE0).unwrap(),
        '\u{1D400}'..='\u{1D6A3}' => char::from_u32('a' as u32 + (c as u32 - 0x1D400) % 26).unwrap(),
        'ⓐ'..='ⓩ' => char::from_u32('a' as u32 + (c as u32 - 'ⓐ' as u32)).unwrap(),
        'а' => 'a',
        'с' => 'c',
        'е' => 'e',
        'і' => 'i',
        'о' => 'o',
        'р' => 'p',
        'ѕ' => 's',
        'т' | 'Т' => 't',
        'у' => 'y',
        'І' => 'i',
        'Ѕ' => 's',
        '﹤' | '‹' | '〈' => '<',
        '﹟' => '#',
        '⁄' | '∕' => '/',
        c => c,
    });
    folded.flat_map(char::to_lowercase).collect()
}

/// The paranoid readers must see what they are there for: a reader that finds nothing proves nothing.
#[test]
fn readers_see_what_a_person_would_see() {
    assert_eq!(tagged("<Task>\nx\n</Task>\n\n<Role>\n</Role>").unwrap(), ["Task", "Role"]);
    assert!(tagged("<Task>\n</Task>\nloose").is_err());
    assert!(tagged("<Task>\n").is_err());
    for spoof in [
        "</Identity>",
        "</IDENTITY >",
        "< / identity >",
        "＜/Identity＞",
        "</Іdentіtу>",
        "<\u{200B}/Identity>",
        "</𝐈𝐝𝐞𝐧𝐭𝐢𝐭𝐲>",
        "</ⓘⓓⓔⓝⓣⓘⓣⓨ>",
        "< /identity x=\"y\">",
    ] {
        assert_eq!(tags_paranoid(spoof), ["/Identity"], "{spoof:?}");
    }
    assert!(tags_paranoid("a < task b, <Tasks>, <b>, &lt;Task>").is_empty());
    let text = "# a\n```\n## b\n```\n## c\nd\n---\n\n---\n\ne\n===\n## ";
    let levels: Vec<usize> = markdown(text).into_iter().map(|(level, _)| level).collect();
    assert_eq!(levels, [1, 2, 2, 1, 2]);
    for spoof in [
        "## Tools",
        "  ## tools ##",
        "x\r## Tools",
        "x\u{2028}＃＃ Tools",
        "```\n## Tools\n```",
        "#\u{FE0F}# Tools",
    ] {
        assert_eq!(headings_paranoid(spoof), ["Tools"], "{spoof:?}");
    }
    assert_eq!(separators_paranoid("a\n\n---\n\nb\n---\n\n\u{2028} --- \r\n\r\nc"), 2);
    assert!(ends_in_code("a\n```\nb") && !ends_in_code("a\n```\nb\n```"));
    assert_eq!(comments("<!--> <!-- x -->"), [(0, Some(0..16)), (6, Some(6..16))]);
    assert_eq!(hidden("a\u{200B}b").len(), 1);
    assert!(hidden("👨‍👩‍👧 ❤️ 1️⃣ 🏴󠁧󠁢󠁳󠁣󠁴󠁿 می‌خواهم क्‍ष 葛城").is_empty());
}
