//! Keeps announced names stable for the life of a session: a name that a host received still resolves to the tool that had
//! it, and another tool that would take the name is listed under a different one.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::names::{NameRequest, alternative_name};
use super::{CatalogTool, Catalogue, Tools, definition};

const REMOVED_NAMES_MAX: usize = 10_000;

/// How a session's names differ from the catalogue's.
#[derive(Debug, Default)]
pub(super) struct SessionNames {
    /// Names that the host received and that are not in the catalogue.
    names: BTreeMap<String, Owner>,
    /// By position: tools whose name belongs to another tool in this session, with their replacement entries.
    renamed: HashMap<usize, CatalogTool>,
}

#[derive(Debug, Clone)]
struct Owner {
    upstream: Arc<str>,
    tool: String,
    /// `None` while the server does not have the tool.
    position: Option<usize>,
}

impl SessionNames {
    pub(super) fn renamed(&self, position: usize) -> Option<&CatalogTool> {
        self.renamed.get(&position)
    }

    /// The position of the tool that this name was assigned to; `None` if the name is not stored here.
    pub(super) fn position(&self, name: &str) -> Option<Option<usize>> {
        self.names.get(name).map(|owner| owner.position)
    }
}

impl Catalogue {
    /// These tools for a host that received the names of `given`.
    pub(crate) fn with_names_of(&self, given: &Self) -> Self {
        let tools = &self.tools;
        if Arc::ptr_eq(tools, &given.tools) {
            return given.clone();
        }
        let mut positions = None;
        let (mut names, mut taken_over, mut gone) = (BTreeMap::new(), BTreeSet::new(), 0);
        for (name, upstream, tool) in given.given_names() {
            let holder = tools.positions.get(name).copied();
            if holder.is_some_and(|at| tools.is_at(at, upstream, tool)) {
                continue;
            }
            let positions = positions.get_or_insert_with(|| tools.by_owner());
            let position = positions.get(&(&**upstream, tool)).copied();
            gone += usize::from(position.is_none());
            if position.is_none() && gone > REMOVED_NAMES_MAX {
                continue;
            }
            taken_over.extend(holder);
            names.insert(
                name.to_owned(),
                Owner { upstream: Arc::clone(upstream), tool: tool.to_owned(), position },
            );
        }
        if names.is_empty() {
            return Self { tools: Arc::clone(tools), session_names: None };
        }
        let mut session_names = SessionNames { names, renamed: HashMap::new() };
        for position in taken_over {
            session_names.rename(tools, position);
        }
        Self { tools: Arc::clone(tools), session_names: Some(Arc::new(session_names)) }
    }

    fn given_names(&self) -> impl Iterator<Item = (&str, &Arc<str>, &str)> {
        let session_names = self.session_names.as_deref();
        let is_session_name = move |name: &str| {
            session_names.is_some_and(|session_names| session_names.names.contains_key(name))
        };
        let own = self.tools.positions.iter().filter(move |(name, _)| !is_session_name(name));
        let own = own.filter_map(|(name, at)| {
            let entry = self.tools.entries.get(*at)?;
            Some((name.as_str(), &entry.upstream, entry.tool.as_str()))
        });
        let names = session_names.into_iter().flat_map(|session_names| &session_names.names);
        own.chain(names.map(|(name, owner)| (name.as_str(), &owner.upstream, owner.tool.as_str())))
    }
}

impl SessionNames {
    /// Lists the tool at this position under another name, because its own was assigned to another tool.
    fn rename(&mut self, tools: &Tools, position: usize) {
        let Some(entry) = tools.entries.get(position) else { return };
        let is_free = |name: &str| match self.names.get(name) {
            Some(owner) => owner.position == Some(position),
            None => tools.positions.get(name).is_none_or(|at| *at == position),
        };
        let name = alternative_name(NameRequest { upstream: &entry.upstream, tool: &entry.tool }, is_free);
        let Some(definition) = definition::renamed(&entry.definition, &name) else { return };
        let (upstream, tool) = (Arc::clone(&entry.upstream), entry.tool.clone());
        self.names.insert(name.clone(), Owner { upstream, tool, position: Some(position) });
        self.renamed.insert(position, CatalogTool { name, definition, ..entry.clone() });
    }
}

impl Tools {
    fn is_at(&self, position: usize, upstream: &str, tool: &str) -> bool {
        self.entries.get(position).is_some_and(|entry| *entry.upstream == *upstream && entry.tool == tool)
    }

    fn by_owner(&self) -> HashMap<(&str, &str), usize> {
        let positions = self.entries.iter().enumerate();
        positions.map(|(position, entry)| ((&*entry.upstream, &*entry.tool), position)).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::super::{FirstListing, Source};
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
            first_listing: FirstListing::BeforeSession,
        };
        let mut sources = vec![source("own", embedded, true)];
        sources.extend(bodies.iter().map(|(name, tools)| source(name, tools, false)));
        Catalogue::without_pins(&sources)
    }

    fn owner<'a>(catalogue: &'a Catalogue, name: &str) -> Option<&'a str> {
        catalogue.get(name).map(|entry| &*entry.upstream)
    }

    fn listed(catalogue: &Catalogue) -> Vec<&str> {
        catalogue.listed().map(|entry| entry.name.as_str()).collect()
    }

    #[test]
    fn a_name_leads_to_its_tool_after_another_server_has_listed_the_same() {
        let given = catalogue(&[("a", &["x", "y"])], &[]);
        let later = catalogue(&[("a", &["x", "y"]), ("b", &["x"])], &[]);
        assert_eq!(owner(&later, "x"), None);
        let session_names = later.with_names_of(&given);
        assert_eq!(
            (owner(&session_names, "x"), owner(&session_names, "a__x"), owner(&session_names, "b__x")),
            (Some("a"), Some("a"), Some("b"))
        );
        assert_eq!(listed(&session_names), ["a__x", "y", "b__x"]);
        // Also when it was announced in an older list.
        let again = catalogue(&[("a", &["x", "z"]), ("b", &["x"])], &[]).with_names_of(&session_names);
        assert_eq!((owner(&again, "x"), owner(&again, "z")), (Some("a"), Some("a")));
    }

    #[test]
    fn a_name_is_never_another_servers_later() {
        let given = catalogue(&[("a", &["x"])], &["whoami"]);
        // A configured server takes the names of an embedded one, except those that this host received.
        let later = catalogue(&[("a", &["x"]), ("b", &["whoami"])], &["whoami"]);
        assert_eq!((owner(&later, "whoami"), owner(&later, "own__whoami")), (Some("b"), Some("own")));
        let session_names = later.with_names_of(&given);
        for (name, whose) in [("whoami", "own"), ("own__whoami", "own"), ("b__whoami", "b")] {
            assert_eq!(owner(&session_names, name), Some(whose), "{name}");
        }
        let names = listed(&session_names);
        assert_eq!(names, ["own__whoami", "x", "b__whoami"]);
        assert!(session_names.get("b__whoami").unwrap().definition.get().contains("\"b__whoami\""));
        // This holds after every further change.
        let more =
            catalogue(&[("a", &["x", "y"]), ("b", &["whoami"])], &["whoami"]).with_names_of(&session_names);
        assert_eq!(listed(&more), ["own__whoami", "x", "y", "b__whoami"]);
        assert_eq!((owner(&more, "whoami"), owner(&more, "b__whoami")), (Some("own"), Some("b")));
    }

    #[test]
    fn the_name_of_a_tool_that_is_gone_stays_its_own() {
        let given = catalogue(&[("a", &["x"]), ("b", &["y"])], &[]);
        let session_names = catalogue(&[("a", &[]), ("b", &["y", "x"])], &[]).with_names_of(&given);
        assert_eq!((owner(&session_names, "x"), owner(&session_names, "b__x")), (None, Some("b")));
        assert!(session_names.is_session_name("x"), "it is not looked for elsewhere");
        let back = catalogue(&[("a", &["x"]), ("b", &["y", "x"])], &[]).with_names_of(&session_names);
        assert_eq!((owner(&back, "x"), owner(&back, "b__x")), (Some("a"), Some("b")));
    }

    #[test]
    fn nothing_is_kept_where_nothing_differs() {
        let given = catalogue(&[("a", &["x"])], &["whoami"]);
        let more = catalogue(&[("a", &["x"]), ("b", &["y"])], &["whoami"]);
        let session_names = more.with_names_of(&given);
        assert!(session_names.is(&more) && session_names.session_names.is_none());
    }
}
