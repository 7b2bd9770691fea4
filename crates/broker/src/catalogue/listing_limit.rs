//! Selects the tools that are listed. Up to a limit all tools are listed; beyond it, only tools that are always listed and
//! those that the host found by search. Unlisted tools can still be called under the same rules.

use std::collections::HashSet;

use serde_json::value::RawValue;

use super::{CatalogTool, Catalogue};
use crate::builtin_tools;
use crate::policy::Glob;

/// The default limit. Model providers accept 128 tools, and a host has some of its own.
pub const MAX_LISTED: usize = 100;

#[derive(Debug, Clone)]
pub struct ListingLimit {
    /// Up to this many tools, including the broker's own, all are listed.
    pub max_listed: usize,
    pub always: Vec<Glob>,
}

impl Default for ListingLimit {
    fn default() -> Self {
        Self { max_listed: MAX_LISTED, always: Vec::new() }
    }
}

#[derive(Debug)]
pub struct ToolListing<'a> {
    pub own: Vec<Box<RawValue>>,
    pub tools: Vec<&'a CatalogTool>,
    pub unlisted: usize,
}

impl ToolListing<'_> {
    pub fn definitions(&self) -> impl Iterator<Item = &str> {
        let tools = self.tools.iter().map(|entry| entry.definition.get());
        self.own.iter().map(|own| own.get()).chain(tools)
    }
}

impl ListingLimit {
    pub fn apply<'a>(&self, catalogue: &'a Catalogue, found: &[String]) -> ToolListing<'a> {
        let mut tools: Vec<&CatalogTool> = catalogue.listed().collect();
        let all = tools.len();
        if builtin_tools::NAMES.len() + all > self.max_listed {
            let found: HashSet<&str> = found.iter().map(String::as_str).collect();
            tools.retain(|entry| self.is_always_listed(entry) || found.contains(&*entry.name));
        }
        let unlisted = all - tools.len();
        let mut own = builtin_tools::definitions();
        own.push(builtin_tools::find_definition(unlisted));
        ToolListing { own, tools, unlisted }
    }

    /// Whether it is always listed: tools of this program and of the mind, and those that the operator names.
    fn is_always_listed(&self, entry: &CatalogTool) -> bool {
        let is_named = || self.always.iter().any(|glob| glob.matches(&entry.upstream, &entry.tool));
        entry.is_mind || entry.is_embedded || is_named()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::{FirstListing, Source};
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
        Catalogue::without_pins(&[
            Source {
                upstream: "mind".into(),
                role: &mind,
                is_embedded: false,
                is_live: true,
                first_listing: FirstListing::BeforeSession,
                tools: minds,
            },
            Source {
                upstream: "desk".into(),
                role: &role,
                is_embedded: false,
                is_live: true,
                first_listing: FirstListing::BeforeSession,
                tools: many,
            },
        ])
    }

    fn names(shown: &ToolListing<'_>) -> Vec<String> {
        let name = |text: &str| {
            serde_json::from_str::<serde_json::Value>(text).unwrap()["name"].as_str().unwrap().to_owned()
        };
        shown.definitions().map(name).collect()
    }

    #[test]
    fn everything_is_listed_up_to_the_bound_and_a_search_beyond_it() {
        let listing_limit =
            ListingLimit { max_listed: 26, always: vec![Glob::new("desk/tool_3"), Glob::new("tool_1?")] };
        let (whole, found) = (catalogue(20), ["tool_7".to_owned(), "gone".to_owned()]);
        let shown = listing_limit.apply(&whole, &found);
        assert_eq!((shown.unlisted, shown.own.len(), shown.tools.len()), (0, builtin_tools::NAMES.len(), 21));
        let search = shown.own.last().unwrap().get();
        assert!(search.contains("find_tools") && !search.contains("more tools"), "{search}");
        let more = catalogue(21);
        let shown = listing_limit.apply(&more, &found);
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
        let definition = shown.own.last().unwrap().get();
        assert!(definition.contains("9 more tools"), "{definition}");
    }

    #[test]
    fn what_the_operator_names_is_listed_even_if_that_is_too_much() {
        let listing_limit = ListingLimit { max_listed: 1, always: vec![Glob::new("*")] };
        let all = catalogue(40);
        let shown = listing_limit.apply(&all, &[]);
        assert_eq!((shown.unlisted, shown.tools.len(), shown.own.len()), (0, 41, builtin_tools::NAMES.len()));
    }
}
