//! Removes reasoning that some servers send before the response, between `<think>` and `</think>`. Only a tag at the
//! very start counts: later tags are ordinary text. Pure.

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// Separates reasoning from text as it streams, in chunks of any size.
#[derive(Debug)]
pub(super) enum ReasoningFilter {
    /// Only input that may still become the opening tag.
    Before(String),
    /// The end of the reasoning so far, which may contain part of the closing tag.
    Thinking(String),
    /// The reasoning has ended, and the text has not started.
    Between,
    /// All further input is text.
    Over,
}

impl Default for ReasoningFilter {
    fn default() -> Self {
        Self::Before(String::new())
    }
}

impl ReasoningFilter {
    /// Returns the part of the input that is text.
    pub(super) fn push(&mut self, text: &str) -> String {
        match self {
            Self::Before(held) => {
                held.push_str(text);
                let trimmed = held.trim_start();
                if let Some(thought) = trimmed.strip_prefix(OPEN) {
                    let thought = thought.to_owned();
                    *self = Self::Thinking(String::new());
                    return self.push(&thought);
                }
                if OPEN.starts_with(trimmed) {
                    return String::new();
                }
                self.finish()
            }
            Self::Thinking(last) => {
                last.push_str(text);
                if let Some((_, visible)) = last.split_once(CLOSE) {
                    let visible = visible.to_owned();
                    *self = Self::Between;
                    return self.push(&visible);
                }
                let cut = last.ceil_char_boundary(last.len().saturating_sub(CLOSE.len()));
                last.drain(..cut);
                String::new()
            }
            Self::Between => {
                let visible = text.trim_start().to_owned();
                if !visible.is_empty() {
                    *self = Self::Over;
                }
                visible
            }
            Self::Over => text.to_owned(),
        }
    }

    /// Returns the held-back text at the end of the stream.
    pub(super) fn finish(&mut self) -> String {
        match std::mem::replace(self, Self::Over) {
            Self::Before(held) => held,
            Self::Thinking(_) | Self::Between | Self::Over => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of an input that comes in chunks of `size` characters.
    fn visible(text: &str, size: usize) -> String {
        let mut reasoning = ReasoningFilter::default();
        let letters: Vec<char> = text.chars().collect();
        let mut visible: String =
            letters.chunks(size).map(|piece| reasoning.push(&piece.iter().collect::<String>())).collect();
        visible.push_str(&reasoning.finish());
        visible
    }

    #[test]
    fn thoughts_at_the_beginning_are_not_said_however_they_come() {
        for (text, expected) in [
            (
                "<think>\nhm, «é» </thin\n</think>\n\nHello <think>there</think>.",
                "Hello <think>there</think>.",
            ),
            ("\n <think></think>Hello", "Hello"),
            ("<think>never ends </thin", ""),
            ("<think>only thoughts</think>\n", ""),
            ("Hello <think>a</think> b", "Hello <think>a</think> b"),
            ("<thinking>no</thinking>", "<thinking>no</thinking>"),
            ("</think>", "</think>"),
            ("<thi", "<thi"),
            ("  \n", "  \n"),
            ("", ""),
        ] {
            for size in [1, 2, 3, 7, 1000] {
                assert_eq!(visible(text, size), expected, "{text:?} in pieces of {size}");
            }
        }
    }

    #[test]
    fn long_thoughts_are_not_kept() {
        let mut reasoning = ReasoningFilter::default();
        reasoning.push("<think>");
        for _ in 0..1000 {
            assert_eq!(reasoning.push("é".repeat(1000).as_str()), "");
        }
        assert!(matches!(&reasoning, ReasoningFilter::Thinking(last) if last.len() <= CLOSE.len()));
    }
}
