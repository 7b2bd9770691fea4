//! Patterns over `tool` or `body/tool`: `*` matches any run of characters, `?` one. A pattern without a slash applies to all
//! bodies. Items other than tools are named `resource:URI`, `prompt:NAME` and `method:NAME`.
//!
//! A pattern is compared with a URI as sent and with each of its readings: a stricter rule holds if the pattern matches any
//! of them, a milder one only if it matches all.

use super::uri::Readings;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob {
    bodies: Option<Pattern>,
    name: Pattern,
    /// The same for the readings of URIs, if the pattern matches resources.
    canonical: Option<Pattern>,
    kind: Option<Kind>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fit {
    No,
    /// As sent or in some readings, but not in all.
    Partly,
    Whole,
}

/// A name that patterns are compared with: of a tool, or of another item of a body.
pub(crate) struct Name<'a> {
    raw: &'a str,
    uri: Option<Uri>,
}

/// The readings of a resource's URI.
struct Uri {
    whole: Vec<String>,
    shortened: Vec<String>,
}

impl<'a> Name<'a> {
    pub(crate) fn new(name: &'a str) -> Self {
        let uri = name.strip_prefix(Kind::Resource.prefix());
        let uri = uri.map(Readings::of).map(|readings| Uri {
            whole: readings.whole().map(|form| Kind::Resource.name(&form)).collect(),
            shortened: readings.shortened().map(|form| Kind::Resource.name(&form)).collect(),
        });
        Self { raw: name, uri }
    }
}

impl Glob {
    pub fn new(pattern: &str) -> Self {
        let (bodies, name) = match pattern.split_once('/') {
            // A slash inside a URI does not separate a body from its item.
            Some((bodies, name)) if Kind::of(bodies).is_none() => (Some(bodies), name),
            _ => (None, pattern),
        };
        let uri = name.strip_prefix(Kind::Resource.prefix());
        Self {
            bodies: bodies.map(Pattern::new),
            name: Pattern::new(name),
            canonical: uri.and_then(Pattern::canonical),
            kind: Kind::of(name),
        }
    }

    /// Whether it matches this tool or item of this body in any reading.
    pub fn matches(&self, body: &str, tool: &str) -> bool {
        self.fit(body, &Name::new(tool)) > Fit::No
    }

    pub(crate) fn fit(&self, body: &str, name: &Name<'_>) -> Fit {
        if self.bodies.as_ref().is_some_and(|bodies| !bodies.matches(body)) {
            return Fit::No;
        }
        let matches_raw = self.name.matches(name.raw);
        let Some(uri) = &name.uri else {
            return if matches_raw { Fit::Whole } else { Fit::No };
        };
        let matches = |form: &String| {
            self.name.matches(form) || self.canonical.as_ref().is_some_and(|one| one.matches(form))
        };
        match () {
            () if matches_raw && uri.whole.iter().all(matches) => Fit::Whole,
            () if matches_raw || uri.whole.iter().chain(&uri.shortened).any(matches) => Fit::Partly,
            () => Fit::No,
        }
    }

    /// The kind of items that it matches, if it names one.
    pub(crate) fn kind(&self) -> Option<Kind> {
        self.kind
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Pattern(Vec<Piece>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece {
    Run,
    One,
    Char(char),
}

impl Pattern {
    fn new(text: &str) -> Self {
        let piece = |c| match c {
            '*' => Piece::Run,
            '?' => Piece::One,
            c => Piece::Char(c),
        };
        Self(text.chars().map(piece).collect())
    }

    /// The equivalent pattern over canonical forms. `None` if it has dot segments, which could remove anything.
    fn canonical(uri: &str) -> Option<Self> {
        if uri.split(['/', '\\']).any(|segment| matches!(segment, "." | "..")) {
            return None;
        }
        // Placeholder words for the wildcards where only letters and digits are allowed. None begins where another ends.
        let is_free = |mark: &String| !uri.to_lowercase().contains(mark);
        let mark = |word: &str| (0_u32..).map(|number| format!("q{number}{word}z")).find(is_free);
        let (run, one) = (mark("run")?, mark("one")?);
        let marked = uri.replace('*', &run).replace('?', &one);
        let whole = Readings::of(&marked).canonical();
        let (mut pieces, mut rest) = (Vec::new(), whole.as_str());
        while let Some(c) = rest.chars().next() {
            let (piece, length) = match () {
                () if rest.starts_with(&run) => (Piece::Run, run.len()),
                () if rest.starts_with(&one) => (Piece::One, one.len()),
                () => (Piece::Char(c), c.len_utf8()),
            };
            pieces.push(piece);
            rest = rest.get(length..)?;
        }
        if uri.ends_with('*') {
            // A URL without a path gets a slash.
            let end = pieces.iter().rposition(|piece| *piece == Piece::Run)?;
            pieces.truncate(end + 1);
        }
        let prefix = Kind::Resource.prefix().chars().map(Piece::Char);
        Some(Self(prefix.chain(pieces).collect()))
    }

    /// Backtracking only to the last star is sufficient.
    fn matches(&self, text: &str) -> bool {
        let (pattern, text): (_, Vec<char>) = (&self.0, text.chars().collect());
        let (mut at, mut position) = (0, 0);
        let mut star: Option<(usize, usize)> = None;
        while let Some(c) = text.get(position) {
            match pattern.get(at) {
                Some(Piece::Run) => {
                    star = Some((at, position));
                    at += 1;
                }
                Some(wanted) if *wanted == Piece::One || *wanted == Piece::Char(*c) => {
                    at += 1;
                    position += 1;
                }
                _ => match star {
                    Some((star_at, from)) => {
                        star = Some((star_at, from + 1));
                        at = star_at + 1;
                        position = from + 1;
                    }
                    None => return false,
                },
            }
        }
        pattern.iter().skip(at).all(|rest| *rest == Piece::Run)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Resource,
    Prompt,
    /// A request method that concerns neither a tool nor another kind.
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

    /// The kind of an item with this name; `None` for a tool. No tool is offered under such a name.
    pub(crate) fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| name.starts_with(kind.prefix()))
    }

    pub(crate) fn name(self, which: &str) -> String {
        format!("{}{which}", self.prefix())
    }
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
    fn a_uri_is_compared_as_it_is_written_and_as_it_is_read() {
        for (pattern, uri, expected) in [
            ("resource:file:///secret*", "file:///secret/x", Fit::Whole),
            ("resource:file:///secret*", "FILE:///secret/x", Fit::Partly),
            ("resource:file:///secret*", "file:///%73ecret", Fit::Partly),
            ("resource:file:///secret*", "file:///a/../secret", Fit::Partly),
            ("resource:file:///secret*", "file:///a/%252e%252e/secret", Fit::Partly),
            ("resource:file:///secret*", "file:///a%2f..%2fsecret", Fit::Partly),
            ("resource:file:///secret*", "file:///public", Fit::No),
            ("desk/resource:file:///secret*", "file:////secret", Fit::Partly),
            // A pattern is normalized like a URI.
            ("resource:FILE:///secret*", "file:///secret", Fit::Partly),
            ("resource:file://localhost/secr%65t*", "file:///secret", Fit::Partly),
            ("resource:HTTPS://Example.COM*", "https://example.com/a", Fit::Partly),
            ("resource:https://*.Example.com/*", "https://a.example.com/b", Fit::Partly),
            ("resource:https://Example.com/*", "https://Example.com/b", Fit::Whole),
            ("resource:file:///My Docs/*", "file:///My Docs/a", Fit::Whole),
            ("resource:file:///caf%C3%A9/?", "file:///caf%C3%A9/a", Fit::Whole),
            // An allowed folder does not lead out of itself.
            ("resource:file:///pub/*", "file:///pub/../secret", Fit::Partly),
            ("resource:file:///pub/*", "file:///pub/%2e%2e/secret", Fit::Partly),
            ("resource:file:///pub%2A/*", "file:///pub%2A/../public/secret", Fit::Partly),
            ("resource:*", "file:///a/../b", Fit::Whole),
            ("*", "FILE:///secret", Fit::Whole),
            ("*secret*", "file:///%73ecret", Fit::Partly),
            ("resource:*/../*", "file:///a", Fit::No),
            ("resource:*/../*", "file:///a/../b", Fit::Partly),
            // Many servers ignore the query of a resource.
            ("resource:file:///secret", "file:///secret?x", Fit::Partly),
            ("resource:file:///secret", "file:///secret#x", Fit::Partly),
            ("resource:file:///secret", "file:///secret/", Fit::Partly),
            ("resource:https://x/a?id=1", "https://x/a?id=1", Fit::Whole),
            ("resource:https://x/a?id=1", "https://x/a", Fit::No),
            ("resource:https://x/a?id=1", "https://x/a/?id=1#f", Fit::Partly),
            // Servers read these as the secret.
            ("resource:file:///secret*", "file:///tmp//../secret/x", Fit::Partly),
            ("resource:file:///secret*", "file:///C:/../secret", Fit::Partly),
            ("resource:file:///secret*", "file://h/secret", Fit::Partly),
            ("resource:file:///secret*", "file:///x?/../secret", Fit::Partly),
            ("resource:file:///secret*", "file:///x#/../secret", Fit::Partly),
            ("resource:file:///pub/*", "file:///pub/x//../../secret", Fit::Partly),
            ("resource:file:///pub/*", "file:///pub//../other", Fit::Partly),
            ("resource:file:///pub/*", "file:///pub/a?/../../other", Fit::Partly),
            ("resource:file:///pub/*", "file:///pub/a?b=../c#d", Fit::Whole),
            ("resource:https://example.com/*", "https://u:p@example.com./a", Fit::Partly),
            ("resource:https://good.example*", "https://good.example@evil.example/", Fit::Partly),
            ("resource:notes:///secret*", "notes:/secret", Fit::Partly),
        ] {
            let name = Kind::Resource.name(uri);
            assert_eq!(Glob::new(pattern).fit("desk", &Name::new(&name)), expected, "{pattern} {uri}");
        }
    }

    #[test]
    fn many_stars_take_no_time() {
        let pattern = "a*".repeat(2000);
        assert!(!Glob::new(&pattern).matches("x", &"a".repeat(1999)));
    }
}
