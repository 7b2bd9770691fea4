//! Names stay with their tools for the life of a session. The names of a catalogue follow from the configuration, the pins
//! and the listings; when a server lists something that was never seen before they can differ from those that a host was
//! given earlier. A host keeps calling what it was given: here each such name still leads to the tool that had it, and a tool
//! that would take the name over is listed under another one.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::names::{Wanting, other_name};
use super::{Catalogue, Offered, Tools, definition};

/// Names of tools that no longer exist that one session remembers.
const GONE_MAX: usize = 10_000;

/// What differs in one session from the names that the tools of a catalogue have.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// Names that the host was given, and that are not those of the catalogue.
    names: BTreeMap<String, Owner>,
    /// By their place: tools whose name belongs to another tool in this session, as they are listed instead.
    renamed: HashMap<usize, Offered>,
}

/// The tool that a name was given to.
#[derive(Debug, Clone)]
struct Owner {
    upstream: Arc<str>,
    tool: String,
    /// `None` while its server does not have it.
    place: Option<usize>,
}

impl Kept {
    pub(super) fn renamed(&self, place: usize) -> Option<&Offered> {
        self.renamed.get(&place)
    }

    /// The place of the tool that this name was given to; `None` if it is not one of the names kept here.
    pub(super) fn place(&self, name: &str) -> Option<Option<usize>> {
        self.names.get(name).map(|owner| owner.place)
    }
}

impl Catalogue {
    /// These tools for a host that was given the names of `given`.
    pub(crate) fn keeping(&self, given: &Self) -> Self {
        let tools = &self.tools;
        if Arc::ptr_eq(tools, &given.tools) {
            return given.clone();
        }
        let mut places = None;
        let (mut names, mut taken_over, mut gone) = (BTreeMap::new(), BTreeSet::new(), 0);
        for (name, upstream, tool) in given.given_names() {
            let holder = tools.places.get(name).copied();
            if holder.is_some_and(|at| tools.is_at(at, upstream, tool)) {
                continue;
            }
            let places = places.get_or_insert_with(|| tools.by_owner());
            let place = places.get(&(&**upstream, tool)).copied();
            gone += usize::from(place.is_none());
            if place.is_none() && gone > GONE_MAX {
                continue;
            }
            taken_over.extend(holder);
            names.insert(
                name.to_owned(),
                Owner { upstream: Arc::clone(upstream), tool: tool.to_owned(), place },
            );
        }
        if names.is_empty() {
            return Self { tools: Arc::clone(tools), kept: None };
        }
        let mut kept = Kept { names, renamed: HashMap::new() };
        for place in taken_over {
            kept.rename(tools, place);
        }
        Self { tools: Arc::clone(tools), kept: Some(Arc::new(kept)) }
    }

    /// Every name that leads to a tool, with the tool's server and its name there.
    fn given_names(&self) -> impl Iterator<Item = (&str, &Arc<str>, &str)> {
        let kept = self.kept.as_deref();
        let is_kept = move |name: &str| kept.is_some_and(|kept| kept.names.contains_key(name));
        let own = self.tools.places.iter().filter(move |(name, _)| !is_kept(name));
        let own = own.filter_map(|(name, at)| {
            let offered = self.tools.offered.get(*at)?;
            Some((name.as_str(), &offered.upstream, offered.tool.as_str()))
        });
        let names = kept.into_iter().flat_map(|kept| &kept.names);
        own.chain(names.map(|(name, owner)| (name.as_str(), &owner.upstream, owner.tool.as_str())))
    }
}

impl Kept {
    /// Lists the tool at this place under another name than its own one, which was given to another tool.
    fn rename(&mut self, tools: &Tools, place: usize) {
        let Some(offered) = tools.offered.get(place) else { return };
        let is_free = |name: &str| match self.names.get(name) {
            Some(owner) => owner.place == Some(place),
            None => tools.places.get(name).is_none_or(|at| *at == place),
        };
        let name = other_name(Wanting { upstream: &offered.upstream, tool: &offered.tool }, is_free);
        let Some(definition) = definition::renamed(&offered.definition, &name) else { return };
        let (upstream, tool) = (Arc::clone(&offered.upstream), offered.tool.clone());
        self.names.insert(name.clone(), Owner { upstream, tool, place: Some(place) });
        self.renamed.insert(place, Offered { name, definition, ..offered.clone() });
    }
}

impl Tools {
    fn is_at(&self, place: usize, upstream: &str, tool: &str) -> bool {
        self.offered.get(place).is_some_and(|offered| *offered.upstream == *upstream && offered.tool == tool)
    }

    fn by_owner(&self) -> HashMap<(&str, &str), usize> {
        let places = self.offered.iter().enumerate();
        places.map(|(place, offered)| ((&*offered.upstream, &*offered.tool), place)).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::super::{Listed, Source};
    use super::*;
    use crate::policy::Glob;
    use crate::upstream::{BodySpec, RawTool, Role};

    fn catalogue(bodies: &[(&str, &[&str])], embedded: &[&str]) -> Catalogue {
        let role = Role::Body(BodySpec { allow: vec![Glob::new("*")], ..BodySpec::default() });
        let listed = |tools: &[&str]| -> Arc<[RawTool]> {
            let tool = |name: &&str| RawTool {
                name: (*name).to_owned(),
                definition: RawValue::from_string(format!(r#"{{"name":"{name}"}}"#)).unwrap(),
            };
            tools.iter().map(tool).collect()
        };
        let source = |name: &str, tools: &[&str], is_embedded| Source {
            upstream: name.into(),
            role: &role,
            is_embedded,
            tools: listed(tools),
            is_live: true,
            listed: Listed::Before,
        };
        let mut sources = vec![source("own", embedded, true)];
        sources.extend(bodies.iter().map(|(name, tools)| source(name, tools, false)));
        Catalogue::known(&sources)
    }

    fn owner<'a>(catalogue: &'a Catalogue, name: &str) -> Option<&'a str> {
        catalogue.get(name).map(|offered| &*offered.upstream)
    }

    fn listed(catalogue: &Catalogue) -> Vec<&str> {
        catalogue.listed().map(|offered| offered.name.as_str()).collect()
    }

    #[test]
    fn a_name_leads_to_its_tool_after_another_server_has_listed_the_same() {
        let given = catalogue(&[("a", &["x", "y"])], &[]);
        let later = catalogue(&[("a", &["x", "y"]), ("b", &["x"])], &[]);
        assert_eq!(owner(&later, "x"), None);
        let kept = later.keeping(&given);
        assert_eq!(
            (owner(&kept, "x"), owner(&kept, "a__x"), owner(&kept, "b__x")),
            (Some("a"), Some("a"), Some("b"))
        );
        assert_eq!(listed(&kept), ["a__x", "y", "b__x"]);
        // Also when it was given in a list before the last one.
        let again = catalogue(&[("a", &["x", "z"]), ("b", &["x"])], &[]).keeping(&kept);
        assert_eq!((owner(&again, "x"), owner(&again, "z")), (Some("a"), Some("a")));
    }

    #[test]
    fn a_name_is_never_another_servers_later() {
        let given = catalogue(&[("a", &["x"])], &["whoami"]);
        // A configured server takes the names of an embedded one; not those that this host was given.
        let later = catalogue(&[("a", &["x"]), ("b", &["whoami"])], &["whoami"]);
        assert_eq!((owner(&later, "whoami"), owner(&later, "own__whoami")), (Some("b"), Some("own")));
        let kept = later.keeping(&given);
        for (name, whose) in [("whoami", "own"), ("own__whoami", "own"), ("b__whoami", "b")] {
            assert_eq!(owner(&kept, name), Some(whose), "{name}");
        }
        let names = listed(&kept);
        assert_eq!(names, ["own__whoami", "x", "b__whoami"]);
        assert!(kept.get("b__whoami").unwrap().definition.get().contains("\"b__whoami\""));
        // It stays so with every further change.
        let more = catalogue(&[("a", &["x", "y"]), ("b", &["whoami"])], &["whoami"]).keeping(&kept);
        assert_eq!(listed(&more), ["own__whoami", "x", "y", "b__whoami"]);
        assert_eq!((owner(&more, "whoami"), owner(&more, "b__whoami")), (Some("own"), Some("b")));
    }

    #[test]
    fn the_name_of_a_tool_that_is_gone_stays_its_own() {
        let given = catalogue(&[("a", &["x"]), ("b", &["y"])], &[]);
        let kept = catalogue(&[("a", &[]), ("b", &["y", "x"])], &[]).keeping(&given);
        assert_eq!((owner(&kept, "x"), owner(&kept, "b__x")), (None, Some("b")));
        assert!(kept.is_kept("x"), "it is not looked for elsewhere");
        let back = catalogue(&[("a", &["x"]), ("b", &["y", "x"])], &[]).keeping(&kept);
        assert_eq!((owner(&back, "x"), owner(&back, "b__x")), (Some("a"), Some("b")));
    }

    #[test]
    fn nothing_is_kept_where_nothing_differs() {
        let given = catalogue(&[("a", &["x"])], &["whoami"]);
        let more = catalogue(&[("a", &["x"]), ("b", &["y"])], &["whoami"]);
        let kept = more.keeping(&given);
        assert!(kept.is(&more) && kept.kept.is_none());
    }
}
