//! What must hold when front matter is split off and read, whatever the bytes. The bytes are the file.

use embody_workspace::{FrontMatter, split_front_matter};

/// Panics when something does not hold.
pub(crate) fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (yaml, rest) = split_front_matter(&text);
    let plain = text.strip_prefix('\u{FEFF}').unwrap_or(&text);
    match yaml {
        None => assert_eq!(rest, plain, "without front matter the text stays whole"),
        Some(yaml) => {
            check_split(plain, yaml, rest);
            check_parsed(yaml);
        }
    }
    check_parsed(&text);
}

fn check_split(plain: &str, yaml: &str, rest: &str) {
    let opening = plain.split_inclusive('\n').next().unwrap_or("");
    assert_eq!(opening.trim_end(), "---", "front matter starts with its mark");
    let below = &plain[opening.len()..];
    assert!(below.starts_with(yaml), "the yaml follows the mark");
    let closing = &below[yaml.len()..below.len() - rest.len()];
    assert!(below.ends_with(rest), "the rest is the end of the text");
    assert!(matches!(closing.trim_end(), "---" | "..."), "one mark between yaml and rest: {closing:?}");
    assert_eq!(closing.split_inclusive('\n').count(), 1, "the mark is one line: {closing:?}");
    let marks = yaml.lines().filter(|line| matches!(line.trim_end(), "---" | "...")).count();
    assert_eq!(marks, 0, "the first mark closes");
}

fn check_parsed(yaml: &str) {
    let parsed = FrontMatter::parse(yaml);
    let again = FrontMatter::parse(yaml);
    match (parsed, again) {
        (Ok(front), Ok(again)) => {
            let texts = texts(front);
            assert_eq!(texts, self::texts(again), "read twice, the same twice");
            for text in texts.iter().flatten() {
                assert!(
                    !text.is_empty() && text == text.trim(),
                    "texts are trimmed and never blank: {text:?}"
                );
            }
        }
        (Err(error), Err(again)) => {
            assert_eq!(error, again, "read twice, the same twice");
            assert!(!error.message.trim().is_empty() && error.line > 0, "an error says something and where");
            assert!(!error.message.contains('\n'), "an error is one line: {error:?}");
        }
        (first, second) => panic!("read twice: {first:?} and {second:?}"),
    }
}

fn texts(front: FrontMatter) -> [Option<String>; 8] {
    let FrontMatter { name, emoji, creature, vibe, theme, description, timezone, location } = front;
    [name, emoji, creature, vibe, theme, description, timezone, location]
}
