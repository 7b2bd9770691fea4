//! Finds the few characters of a text that a rule has to look at, many bytes at a time. Knows no rule.

const BLOCK: usize = 32;

/// Every character that is not ASCII, and those ASCII ones that `wanted` picks, each with its offset.
pub(super) fn marks(text: &str, wanted: impl Fn(u8) -> bool) -> impl Iterator<Item = (usize, char)> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        // In most scripts the next character is as little ASCII as this one: no search then.
        if bytes.get(at)?.is_ascii() {
            at += find(bytes.get(at..)?, |byte| !byte.is_ascii() || wanted(byte))?;
        }
        let found = (at, text.get(at..)?.chars().next()?);
        at += found.1.len_utf8();
        Some(found)
    })
}

/// What stands between line ends, like `split('\n')`.
pub(super) fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest.take()?;
        let Some(end) = find(text.as_bytes(), |byte| byte == b'\n') else { return Some(text) };
        rest = text.get(end + 1..);
        text.get(..end)
    })
}

fn find(bytes: &[u8], wanted: impl Fn(u8) -> bool) -> Option<usize> {
    let (blocks, rest) = bytes.as_chunks::<BLOCK>();
    // Without an early exit inside a block the compiler compares all of it at once.
    let any = |block: &[u8; BLOCK]| block.iter().fold(false, |found, byte| found | wanted(*byte));
    let (start, last) = match blocks.iter().position(any) {
        Some(index) => (index * BLOCK, blocks.get(index)?.as_slice()),
        None => (blocks.len() * BLOCK, rest),
    };
    last.iter().position(|byte| wanted(*byte)).map(|at| start + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_a_plain_loop_finds() {
        let plain = "0123456789".repeat(7);
        for length in 0..plain.len() {
            for mark in ["<", "é", "日本", "<é<", "🦊 <"] {
                let text = format!("{}{mark}{plain}{mark}", &plain[..length]);
                let expected: Vec<_> =
                    text.char_indices().filter(|(_, c)| *c == '<' || !c.is_ascii()).collect();
                assert_eq!(marks(&text, |byte| byte == b'<').collect::<Vec<_>>(), expected, "{text}");
            }
        }
    }

    #[test]
    fn lines_are_those_of_split() {
        let long = "x".repeat(70);
        for text in
            ["", "\n", "a", "a\n", "\n\na\n\n", "日本\n🦊", &format!("{long}\n\n{long}{long}\n{long}")]
        {
            assert!(lines(text).eq(text.split('\n')), "{text:?}");
        }
    }
}
