//! The names that frames use, and how look-alikes of them are recognised.

use embody_text::look_alike::{look_alike, plain_letter};

pub(super) const TAGS: &[&str] = &[
    "identity",
    "role",
    "instructions",
    "responsibilities",
    "responsibility",
    "directories",
    "storage",
    "formatting",
    "context",
    "memories",
    "task",
    "background",
];

/// Tags that the Markdown dialect uses inside its sections.
pub(super) const MARKDOWN_TAGS: &[&str] = &["available_skills", "skill"];

pub(super) const HEADINGS: &[&str] = &[
    "identity",
    "soul",
    "user",
    "project context",
    "runtime",
    "available skills",
    "workspace files",
    "agents.md",
    "tools.md",
    "memory",
    "available tools",
    "tool calls",
    "guidelines",
    "channel",
    "current time",
    "user instructions",
    "tools",
];

/// First words of comments that the builder itself writes.
pub(super) const COMMENTS: &[&str] = &["missing", "embody:"];

/// The plain small letter or sign that a character passes for.
pub(super) fn fold(c: char) -> char {
    if c.is_ascii() {
        return c.to_ascii_lowercase();
    }
    match c {
        c if is_angle(c) => '<',
        '∕' | '⁄' | '⧸' | '╱' => '/',
        '﹟' => '#',
        '│' | '∣' | 'ǀ' => '|',
        c => {
            let small = || c.to_lowercase().next().and_then(look_alike);
            plain_letter(c).or_else(small).unwrap_or(c).to_ascii_lowercase()
        }
    }
}

pub(super) fn is_angle(c: char) -> bool {
    matches!(c, '<' | '＜' | '﹤' | '‹' | '〈' | '⟨' | '˂' | 'ᐸ')
}

/// Whether `text` starts with `prefix` after folding, and what follows.
pub(super) fn strip_folded<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let mut chars = text.chars();
    prefix.chars().all(|expected| chars.next().map(fold) == Some(expected)).then_some(chars.as_str())
}

/// How much of `text` reads as `name` after folding, if it does and the name ends there.
pub(super) fn starts_with_name(text: &str, name: &str) -> bool {
    let mut chars = text.chars().map(fold);
    name.chars().all(|expected| chars.next() == Some(expected))
        && chars.next().is_none_or(|next| !(next.is_alphanumeric() || next == '_' || next == '-'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Frame, Layout};

    #[test]
    fn every_frame_of_every_layout_is_protected() {
        for layout in Layout::ALL {
            for section in layout.sections {
                match section.frame {
                    Frame::Bare => {}
                    Frame::Tag(tag) => assert!(TAGS.contains(&tag.to_lowercase().as_str()), "{tag}"),
                    Frame::Heading(heading) => {
                        assert!(HEADINGS.contains(&heading.to_lowercase().as_str()), "{heading}");
                    }
                }
            }
        }
    }

    #[test]
    fn look_alikes_fold_to_the_name() {
        for text in
            ["Identity>", "IDENTITY", "Іdеntіtу >", "Ｉｄｅｎｔｉｔｙ", "𝐈𝐝𝐞𝐧𝐭𝐢𝐭𝐲", "𝓘𝓭𝓮𝓷𝓽𝓲𝓽𝔂", "Ⓘⓓⓔⓝⓣⓘⓣⓨ"]
        {
            assert!(starts_with_name(text, "identity"), "{text}");
        }
        for text in ["Identity2", "Identities", "Ident", "identity-card"] {
            assert!(!starts_with_name(text, "identity"), "{text}");
        }
    }
}
