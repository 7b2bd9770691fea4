//! The title of a conversation in a list: its first words, on any channel.

const MAX_CHARS: usize = 60;

/// The first non-empty line; `None` if there is none.
pub fn of(text: &str) -> Option<String> {
    let clean = |line: &str| -> String { line.chars().filter(|c| !c.is_control()).collect() };
    let line = text.lines().map(clean).find(|line| !line.trim().is_empty())?;
    let line = line.trim();
    Some(match line.char_indices().nth(MAX_CHARS) {
        None => line.to_owned(),
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or(line)),
    })
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn a_title_is_the_first_line_that_says_something() {
        assert_eq!(of("\n \u{7}\n  hello\u{0} there \nand more").as_deref(), Some("hello there"));
        assert_eq!(of(&"é".repeat(61)), Some(format!("{}…", "é".repeat(60))));
        assert_eq!(of(&"é".repeat(60)), Some("é".repeat(60)));
        assert_eq!((of(""), of(" \n\t\u{7}")), (None, None));
    }
}
