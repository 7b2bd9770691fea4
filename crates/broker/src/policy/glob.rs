//! Patterns over `tool` or `body/tool`: `*` stands for any run of characters, `?` for one. A pattern without a slash is
//! about the tool of any body.

/// A pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob(String);

impl Glob {
    /// A pattern as it is written.
    #[must_use]
    pub fn new(pattern: &str) -> Self {
        Self(pattern.to_owned())
    }

    /// Whether it is about this tool of this body.
    #[must_use]
    pub fn matches(&self, body: &str, tool: &str) -> bool {
        match self.0.split_once('/') {
            Some((bodies, tools)) => is_like(bodies, body) && is_like(tools, tool),
            None => is_like(&self.0, tool),
        }
    }
}

/// Two places to go back to are enough: after a star only the last one matters.
fn is_like(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut place) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while place < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, place));
                at += 1;
            }
            Some(wanted) if *wanted == '?' || text.get(place) == Some(wanted) => {
                at += 1;
                place += 1;
            }
            _ => match star {
                Some((star_at, from)) => {
                    star = Some((star_at, from + 1));
                    at = star_at + 1;
                    place = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern.iter().skip(at).all(|rest| *rest == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks() {
        for (pattern, body, tool, expected) in [
            ("*", "teams", "send", true),
            ("send_*", "teams", "send_mail", true),
            ("send_*", "teams", "resend_mail", false),
            ("*_mail", "teams", "send_mail", true),
            ("s?nd", "teams", "send", true),
            ("s?nd", "teams", "snd", false),
            ("teams/*", "teams", "send", true),
            ("teams/*", "mail", "send", false),
            ("t*s/s*d", "teams", "send", true),
            ("a*b*c", "x", "aXbYbZc", true),
            ("a*b*c", "x", "aXcYb", false),
            ("", "x", "", true),
            ("", "x", "a", false),
            ("sénd", "x", "sénd", true),
        ] {
            assert_eq!(Glob::new(pattern).matches(body, tool), expected, "{pattern} {body}/{tool}");
        }
    }

    #[test]
    fn many_stars_take_no_time() {
        let pattern = "a*".repeat(2000);
        assert!(!Glob::new(&pattern).matches("x", &"a".repeat(1999)));
    }
}
