//! What of a catalogue is listed. Up to a number of tools it is all of them; beyond that a host gets what it always needs and
//! what it has found. The tool that searches the others is always listed: tools can appear after the list. Owns nothing but that choice: what is not listed can be called all the
//! same, and the same rules hold for it.

use std::collections::HashSet;

use serde_json::value::RawValue;

use super::{Catalogue, Offered};
use crate::builtin_tools;
use crate::policy::Glob;

/// Tools that are listed unless the operator says otherwise. Model providers take 128 of them, and a host has some of its
/// own.
pub const MAX_LISTED: usize = 100;

/// How much is listed.
#[derive(Debug, Clone)]
pub struct Shelf {
    /// The most tools that are listed whole, the broker's own among them.
    pub max_listed: usize,
    /// Tools that are listed however many there are.
    pub always: Vec<Glob>,
}

impl Default for Shelf {
    fn default() -> Self {
        Self { max_listed: MAX_LISTED, always: Vec::new() }
    }
}

/// What a host is shown.
#[derive(Debug)]
pub struct Shown<'a> {
    /// The broker's own tools.
    pub own: Vec<Box<RawValue>>,
    /// Those of others.
    pub tools: Vec<&'a Offered>,
    /// How many more there are, behind the search.
    pub unlisted: usize,
}

impl Shown<'_> {
    /// Their definitions, as they are listed.
    pub fn definitions(&self) -> impl Iterator<Item = &str> {
        let tools = self.tools.iter().map(|offered| offered.definition.get());
        self.own.iter().map(|own| own.get()).chain(tools)
    }
}

impl Shelf {
    /// What is listed of a catalogue for somebody who has found these.
    #[must_use]
    pub fn show<'a>(&self, catalogue: &'a Catalogue, found: &[String]) -> Shown<'a> {
        let mut tools: Vec<&Offered> = catalogue.listed().collect();
        let all = tools.len();
        if builtin_tools::NAMES.len() + all > self.max_listed {
            let found: HashSet<&str> = found.iter().map(String::as_str).collect();
            tools.retain(|offered| self.keeps(offered) || found.contains(&*offered.name));
        }
        let unlisted = all - tools.len();
        let mut own = builtin_tools::definitions();
        own.push(builtin_tools::find_definition(unlisted));
        Shown { own, tools, unlisted }
    }

    /// Whether it is listed however many there are: what belongs to this program, the mind, and what the operator names.
    fn keeps(&self, offered: &Offered) -> bool {
        let is_named = || self.always.iter().any(|glob| glob.matches(&offered.upstream, &offered.tool));
        offered.is_mind || offered.is_embedded || is_named()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::{Listed, Source};
    use super::*;
    use crate::upstream::{BodySpec, RawTool, Role};

    fn catalogue(count: usize) -> Catalogue {
        let tool = |name: String| {
            let text = format!(r#"{{"name":"{name}","inputSchema":{{}}}}"#);
            RawTool { name, definition: RawValue::from_string(text).unwrap() }
        };
        let many: Arc<[RawTool]> = (0..count).map(|number| tool(format!("tool_{number}"))).collect();
        let (role, mind) =
            (Role::Body(BodySpec { allow: vec![Glob::new("*")], ..BodySpec::default() }), Role::Mind);
        let minds = Arc::from(["recall", "observe"].map(|name| tool(name.to_owned())));
        Catalogue::known(&[
            Source {
                upstream: "mind".into(),
                role: &mind,
                is_embedded: false,
                is_live: true,
                listed: Listed::Before,
                tools: minds,
            },
            Source {
                upstream: "desk".into(),
                role: &role,
                is_embedded: false,
                is_live: true,
                listed: Listed::Before,
                tools: many,
            },
        ])
    }

    fn names(shown: &Shown<'_>) -> Vec<String> {
        let name = |text: &str| {
            serde_json::from_str::<serde_json::Value>(text).unwrap()["name"].as_str().unwrap().to_owned()
        };
        shown.definitions().map(name).collect()
    }

    #[test]
    fn everything_is_listed_up_to_the_bound_and_a_search_beyond_it() {
        let shelf = Shelf { max_listed: 26, always: vec![Glob::new("desk/tool_3"), Glob::new("tool_1?")] };
        let (whole, found) = (catalogue(20), ["tool_7".to_owned(), "gone".to_owned()]);
        let shown = shelf.show(&whole, &found);
        assert_eq!((shown.unlisted, shown.own.len(), shown.tools.len()), (0, builtin_tools::NAMES.len(), 21));
        let search = shown.own.last().unwrap().get();
        assert!(search.contains("find_tools") && !search.contains("more tools"), "{search}");
        let more = catalogue(21);
        let shown = shelf.show(&more, &found);
        assert_eq!(shown.unlisted, 9);
        let expected: Vec<String> = ["recall", "tool_3", "tool_7"]
            .into_iter()
            .map(str::to_owned)
            .chain((10..20).map(|number| format!("tool_{number}")))
            .collect();
        let mut listed = names(&shown).split_off(builtin_tools::NAMES.len());
        listed.sort();
        let mut wanted = expected;
        wanted.sort();
        assert_eq!(listed, wanted);
        assert_eq!(names(&shown)[builtin_tools::NAMES.len() - 1], "find_tools");
        let told = shown.own.last().unwrap().get();
        assert!(told.contains("9 more tools"), "{told}");
    }

    #[test]
    fn what_the_operator_names_is_listed_even_if_that_is_too_much() {
        let shelf = Shelf { max_listed: 1, always: vec![Glob::new("*")] };
        let all = catalogue(40);
        let shown = shelf.show(&all, &[]);
        assert_eq!((shown.unlisted, shown.tools.len(), shown.own.len()), (0, 41, builtin_tools::NAMES.len()));
    }
}
