//! YAML front matter: split off and parsed leniently. Unknown keys are ignored; values may be numbers.

use serde::Deserialize;
use serde_saphyr::{alias_limits, budget, options};

/// The maximum number of YAML events.
const EVENT_LIMIT: usize = 20_000;
/// How many of them aliases may add: a few short lines can expand to millions.
const ALIAS_EVENT_LIMIT: usize = 1_000;

/// The fields that any of the persona files may have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct FrontMatter {
    pub name: Option<String>,
    pub emoji: Option<String>,
    pub creature: Option<String>,
    pub vibe: Option<String>,
    pub theme: Option<String>,
    pub description: Option<String>,
    #[serde(alias = "time_zone", alias = "tz")]
    pub timezone: Option<String>,
    pub location: Option<String>,
}

impl FrontMatter {
    pub fn parse(yaml: &str) -> Result<Self, YamlError> {
        if yaml.trim().is_empty() {
            return Ok(Self::default());
        }
        let options = options! {
            budget: budget! { max_events: EVENT_LIMIT },
            alias_limits: alias_limits! { max_total_replayed_events: ALIAS_EVENT_LIMIT },
        };
        let matter = serde_saphyr::from_str_with_options::<Option<Self>>(yaml, options);
        matter.map(|matter| matter.unwrap_or_default().trimmed()).map_err(|error| {
            let line = error.location().and_then(|location| u32::try_from(location.line()).ok());
            YamlError { line: line.unwrap_or(1).max(1), message: bare(&error.to_string()) }
        })
    }

    /// Trims all texts; a blank text becomes `None`.
    fn trimmed(self) -> Self {
        let trim = |text: Option<String>| {
            text.and_then(|text| Some(text.trim().to_owned()).filter(|text| !text.is_empty()))
        };
        let Self { name, emoji, creature, vibe, theme, description, timezone, location } = self;
        Self {
            name: trim(name),
            emoji: trim(emoji),
            creature: trim(creature),
            vibe: trim(vibe),
            theme: trim(theme),
            description: trim(description),
            timezone: trim(timezone),
            location: trim(location),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct YamlError {
    /// The line, counted from 1 below the first `---`.
    pub line: u32,
    /// One line, without the position.
    pub message: String,
}

/// The first non-empty line, without its position, which does not count the line `---`.
fn bare(message: &str) -> String {
    let line = message.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("unreadable");
    let line = line.strip_prefix("error: ").unwrap_or(line);
    match line.split_once(": ") {
        Some((position, rest)) if position.starts_with("line ") && position.contains(" column ") => {
            rest.to_owned()
        }
        _ => line.to_owned(),
    }
}

/// The front matter and the rest. A text has front matter if it starts with a line `---` that another one closes.
pub fn split(text: &str) -> (Option<&str>, &str) {
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let mut offset = 0;
    let mut start = None;
    for line in text.split_inclusive('\n') {
        let end = offset + line.len();
        let is_mark = line.trim_end() == "---";
        match start {
            None if is_mark => start = Some(end),
            None => return (None, text),
            Some(from) if is_mark || line.trim_end() == "..." => {
                return (text.get(from..offset), text.get(end..).unwrap_or(""));
            }
            Some(_) => {}
        }
        offset = end;
    }
    (None, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Option<String> {
        FrontMatter::parse(split(text).0?).unwrap().name
    }

    // spec: P-03
    #[test]
    fn names_are_read_however_they_are_written() {
        for (text, expected) in [
            ("---\nname: Nova\n---\n", Some("Nova")),
            ("---\r\nname: Nova\r\n---\r\nrest", Some("Nova")),
            ("\u{FEFF}---\nname: 'No''va'\n---", Some("No'va")),
            ("---\nname: \"No\\u0076a\"\n---", Some("Nova")),
            ("---\nname: >-\n  No\n  va\n---", Some("No va")),
            ("---\nname: |\n  No\n  va\n---", Some("No\nva")),
            ("---\nname: 42\n---", Some("42")),
            ("---\nname: true\n---", Some("true")),
            ("---\nname: No\n---", Some("No")),
            ("---\nname: 007\n---", Some("007")),
            ("---\nname: 1.10\n---", Some("1.10")),
            ("---\nname: 99999999999999999999\n---", Some("99999999999999999999")),
            ("---\nname:\n---", None),
            ("---\nother: x\n---", None),
            ("---\n# only a comment\n---", None),
            ("---\n---\n", None),
            ("name: Nova", None),
            ("---\nname: Nova\n", None),
        ] {
            assert_eq!(name(text).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn broken_yaml_is_an_error_of_one_line_that_knows_its_place() {
        let YamlError { line, message } = FrontMatter::parse("name: ok\nvibe: [unclosed\n").unwrap_err();
        assert_eq!(line, 2);
        assert!(!message.contains('\n') && !message.contains("line") && !message.is_empty(), "{message}");
    }

    #[test]
    fn aliases_do_not_multiply() {
        let mut yaml = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..6 {
            let below = level - 1;
            yaml.push_str(&format!("a{level}: &a{level} [*a{below}, *a{below}, *a{below}, *a{below}]\n"));
        }
        let error = FrontMatter::parse(&format!("{yaml}name: *a5\n")).unwrap_err();
        assert!(error.message.contains("alias"), "{error:?}");
        assert!(FrontMatter::parse("name: &n Nova\nvibe: *n\n").is_ok());
    }

    #[test]
    fn the_rest_follows_the_second_mark() {
        assert_eq!(split("---\na: 1\n---\nrest\n"), (Some("a: 1\n"), "rest\n"));
        assert_eq!(split("no\n---\n"), (None, "no\n---\n"));
    }
}
