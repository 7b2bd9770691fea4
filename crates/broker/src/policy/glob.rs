//! Patterns over `tool` or `body/tool`: `*` stands for any run of characters, `?` for one. A pattern without a slash is
//! about the tool of any body. What a body has besides tools is named `resource:URI`, `prompt:NAME` and `method:NAME`.

/// A pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob(String);

impl Glob {
    /// A pattern as it is written.
    #[must_use]
    pub fn new(pattern: &str) -> Self {
        Self(pattern.to_owned())
    }

    /// Whether it is about this tool of this body, or about something else that the body has.
    #[must_use]
    pub fn matches(&self, body: &str, tool: &str) -> bool {
        let (bodies, tools) = self.parts();
        bodies.is_none_or(|bodies| is_like(bodies, body)) && is_like(tools, tool)
    }

    /// What it is about if it names one kind of things that are not tools.
    pub(crate) fn kind(&self) -> Option<Kind> {
        Kind::of(self.parts().1)
    }

    fn parts(&self) -> (Option<&str>, &str) {
        match self.0.split_once('/') {
            // The slashes of a URI do not part a body from what it has.
            Some((bodies, tools)) if Kind::of(bodies).is_none() => (Some(bodies), tools),
            _ => (None, &self.0),
        }
    }
}

/// What a body has besides tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Resource,
    Prompt,
    /// A request method that is neither about a tool nor about one of the others.
    Method,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Resource, Self::Prompt, Self::Method];

    const fn prefix(self) -> &'static str {
        match self {
            Self::Resource => "resource:",
            Self::Prompt => "prompt:",
            Self::Method => "method:",
        }
    }

    /// The kind of a thing of this name; `None` for a tool. No tool is offered under such a name.
    pub(crate) fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| name.starts_with(kind.prefix()))
    }

    /// The name by which rules and records know this one.
    pub(crate) fn name(self, which: &str) -> String {
        format!("{}{which}", self.prefix())
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
            ("*", "desk", "resource:file:///a", true),
            ("send_*", "desk", "resource:send_x", false),
            ("resource:file:///a/*", "desk", "resource:file:///a/b/c", true),
            ("resource:file:///a/*", "desk", "resource:file:///b", false),
            ("desk/resource:file:///a/*", "desk", "resource:file:///a/b", true),
            ("desk/resource:file:///a/*", "lamp", "resource:file:///a/b", false),
            ("method:tasks/*", "desk", "method:tasks/get", true),
            ("*/prompt:*", "desk", "prompt:greet", true),
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
