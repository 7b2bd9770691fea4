//! Tool names that every provider accepts: at most 64 of `A-Z a-z 0-9 _ -`. A name that does not fit is replaced on the
//! wire and restored in the response.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use super::chat::ToolSpec;

const LONGEST: usize = 64;

/// The wire names of the tools in one request.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Only the names that do not fit.
    wire: HashMap<String, String>,
    back: HashMap<String, String>,
}

impl Names {
    pub(super) fn new(tools: &[ToolSpec]) -> Self {
        let mut taken: HashSet<String> =
            tools.iter().filter(|tool| fits(&tool.name)).map(|tool| tool.name.clone()).collect();
        let mut names = Self::default();
        for tool in tools.iter().filter(|tool| !fits(&tool.name)) {
            let plain = plain(&tool.name);
            let mut wire = plain.clone();
            let mut number = 1;
            while !taken.insert(wire.clone()) {
                number += 1;
                let end = format!("_{number}");
                wire = plain.chars().take(LONGEST - end.len()).collect::<String>() + &end;
            }
            names.wire.insert(tool.name.clone(), wire.clone());
            names.back.insert(wire, tool.name.clone());
        }
        names
    }

    /// The wire name, also of a tool that an old message calls and that is no longer available.
    pub(super) fn wire<'a>(&'a self, name: &'a str) -> Cow<'a, str> {
        match self.wire.get(name) {
            Some(wire) => Cow::Borrowed(wire),
            None if fits(name) => Cow::Borrowed(name),
            None => Cow::Owned(plain(name)),
        }
    }

    pub(super) fn back<'a>(&'a self, wire: &'a str) -> &'a str {
        self.back.get(wire).map_or(wire, String::as_str)
    }
}

fn fits(name: &str) -> bool {
    (1..=LONGEST).contains(&name.len()) && name.bytes().all(is_plain)
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn plain(name: &str) -> String {
    let is_plain = |c: char| u8::try_from(c).is_ok_and(is_plain);
    let plain: String = name.chars().take(LONGEST).map(|c| if is_plain(c) { c } else { '_' }).collect();
    if plain.is_empty() { "_".to_owned() } else { plain }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;

    #[test]
    fn a_name_that_does_not_fit_travels_under_another_and_comes_back() {
        let long = "l".repeat(70);
        let tools: Vec<ToolSpec> = ["a.b", "a_b", "a/b", "fine", &long, "é"]
            .iter()
            .map(|name| ToolSpec {
                name: (*name).to_owned(),
                description: String::new(),
                schema: RawValue::from_string("{}".to_owned()).unwrap(),
            })
            .collect();
        let names = Names::new(&tools);
        let wire: Vec<Cow<'_, str>> = tools.iter().map(|tool| names.wire(&tool.name)).collect();
        assert_eq!(wire, ["a_b_2", "a_b", "a_b_3", "fine", &"l".repeat(64), "_"]);
        for (tool, wire) in tools.iter().zip(&wire) {
            assert_eq!(names.back(wire), tool.name);
        }
        assert_eq!(names.wire("gone.by"), "gone_by");
        assert_eq!(names.back("invented"), "invented");
    }
}
