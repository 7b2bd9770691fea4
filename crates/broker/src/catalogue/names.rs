//! The names under which tools are listed: unique, stable, at most 64 characters. Pure.
//!
//! A tool keeps its own name. If two upstreams share a name, or the broker or the mind has it, each holder becomes
//! `BODY__TOOL`; if that is taken too, a part of a hash is added. A tool whose own name begins with another upstream's prefix
//! is never listed under it, because that upstream may get such a tool later. The order of upstreams does not matter.

use std::collections::{BTreeMap, BTreeSet, HashSet};

/// The longest listed name, in characters; hosts reject longer ones.
pub(super) const LONGEST: usize = 64;
const DIGITS: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NameRequest<'a> {
    pub(crate) upstream: &'a str,
    pub(crate) tool: &'a str,
}

impl NameRequest<'_> {
    /// Whether its own name begins with another upstream's prefix.
    fn poses(&self, upstreams: &BTreeSet<&str>) -> bool {
        let is_of = |other: &&str| self.tool.strip_prefix(*other).is_some_and(|rest| rest.starts_with("__"));
        upstreams.iter().any(|other| *other != self.upstream && is_of(other))
    }
}

/// The form of a name. The next form is used if the previous one is not free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Form {
    Own,
    Prefixed,
    Hashed,
}

/// Assigns a name to each, in order; `None` if none is free. Skips names that are taken. `upstreams` may include some without
/// tools.
pub(crate) fn assign_names(
    upstreams: &BTreeSet<&str>,
    requests: &[NameRequest<'_>],
    taken: &HashSet<String>,
) -> Vec<Option<String>> {
    let first = |want: &NameRequest<'_>| if want.poses(upstreams) { Form::Prefixed } else { Form::Own };
    let mut forms: Vec<Form> = requests.iter().map(first).collect();
    loop {
        let names: Vec<String> = requests.iter().zip(&forms).map(|(want, form)| name(*want, *form)).collect();
        let mut holders: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (at, name) in names.iter().enumerate() {
            holders.entry(name).or_default().push(at);
        }
        let mut changed = false;
        for (name, at) in holders {
            let is_taken = taken.contains(name);
            // The tool that imitates another's prefix is renamed, not the other one.
            let lowest = at.iter().filter_map(|at| forms.get(*at)).min().copied();
            let Some(next) = lowest.and_then(Form::next).filter(|_| is_taken || at.len() > 1) else {
                continue;
            };
            changed |= raise(&mut forms, &at, next);
        }
        if !changed {
            return unique(names, taken);
        }
    }
}

/// A name for a tool whose own name was assigned to another tool.
pub(super) fn alternative_name(want: NameRequest<'_>, is_free: impl Fn(&str) -> bool) -> String {
    let NameRequest { upstream, tool } = want;
    let numbered =
        |number: u32| with_hash(&format!("{upstream}__{tool}"), &format!("{upstream}\0{tool}\0{number}"));
    let plain = [Form::Prefixed, Form::Hashed].map(|form| name(want, form));
    let mut names = plain.into_iter().chain((0..u32::MAX).map(numbered));
    names.find(|name| is_free(name)).unwrap_or_default()
}

fn raise(forms: &mut [Form], at: &[usize], next: Form) -> bool {
    let mut raised = false;
    for position in at {
        if let Some(form) = forms.get_mut(*position).filter(|form| **form < next) {
            *form = next;
            raised = true;
        }
    }
    raised
}

/// The first of two remaining duplicates keeps the name; this takes a crafted hash collision.
fn unique(names: Vec<String>, taken: &HashSet<String>) -> Vec<Option<String>> {
    let mut given = taken.clone();
    names.into_iter().map(|name| given.insert(name.clone()).then_some(name)).collect()
}

impl Form {
    fn next(self) -> Option<Self> {
        match self {
            Self::Own => Some(Self::Prefixed),
            Self::Prefixed => Some(Self::Hashed),
            Self::Hashed => None,
        }
    }
}

fn name(want: NameRequest<'_>, form: Form) -> String {
    let NameRequest { upstream, tool } = want;
    match form {
        Form::Own => bounded(tool.to_owned()),
        Form::Prefixed => bounded(format!("{upstream}__{tool}")),
        Form::Hashed => with_hash(&format!("{upstream}__{tool}"), &format!("{upstream}\0{tool}")),
    }
}

fn bounded(name: String) -> String {
    if name.chars().count() <= LONGEST { name } else { with_hash(&name, &name) }
}

fn with_hash(name: &str, hashed: &str) -> String {
    let head: String = name.chars().take(LONGEST - DIGITS - 1).collect();
    let hash: String = blake3::hash(hashed.as_bytes()).to_hex().chars().take(DIGITS).collect();
    format!("{head}_{hash}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assign(requests: &[NameRequest<'_>], taken: &HashSet<String>) -> Vec<Option<String>> {
        let upstreams: BTreeSet<&str> = requests.iter().map(|want| want.upstream).collect();
        assign_names(&upstreams, requests, taken)
    }

    fn names(tools: &[(&str, &str)], taken: &[&str]) -> Vec<String> {
        let requests: Vec<_> = tools.iter().map(|(upstream, tool)| NameRequest { upstream, tool }).collect();
        let taken = taken.iter().map(|name| (*name).to_owned()).collect();
        assign(&requests, &taken).into_iter().map(Option::unwrap).collect()
    }

    // spec: N-05
    #[test]
    fn own_names_and_prefixes_where_they_collide() {
        for (tools, expected) in [
            (&[("a", "x"), ("b", "y")][..], &["x", "y"][..]),
            (&[("a", "x"), ("b", "x")], &["a__x", "b__x"]),
            (&[("a", "x"), ("b", "x"), ("c", "x"), ("c", "y")], &["a__x", "b__x", "c__x", "y"]),
            (&[("a", "runtime_status"), ("b", "y")], &["a__runtime_status", "y"]),
            (&[("a", "X"), ("b", "x")], &["X", "x"]),
            // A tool that imitates another body's prefix is renamed.
            (&[("a", "x"), ("b", "x"), ("evil", "a__x")], &["a__x", "b__x", "evil__a__x"]),
            (
                &[("evil", "a__runtime_status"), ("a", "runtime_status")],
                &["evil__a__runtime_status", "a__runtime_status"],
            ),
            (&[("a", "x.y"), ("b", "日本")], &["x.y", "日本"]),
            // Also while the other body does not use the name; a body may use its own prefix.
            (&[("a", "x"), ("evil", "a__y")], &["x", "evil__a__y"]),
            (&[("a", "a__x"), ("b", "c__y")], &["a__x", "c__y"]),
            (&[("a_", "x"), ("evil", "a___y")], &["x", "evil__a___y"]),
        ] {
            assert_eq!(names(tools, &["runtime_status"]), expected, "{tools:?}");
        }
    }

    #[test]
    fn the_prefix_of_one_that_is_away_is_its_own_too() {
        let upstreams = BTreeSet::from(["away", "evil"]);
        let requests = [NameRequest { upstream: "evil", tool: "away__x" }];
        let given = assign_names(&upstreams, &requests, &HashSet::new());
        assert_eq!(given, [Some("evil__away__x".to_owned())]);
    }

    #[test]
    fn prefixes_that_collide_are_told_apart() {
        let tools = [("a", "b__c"), ("z", "b__c"), ("a__b", "c"), ("y", "c")];
        let given = names(&tools, &[]);
        assert_eq!((given[1].as_str(), given[3].as_str()), ("z__b__c", "y__c"));
        assert!(given[0].starts_with("a__b__c_") && given[2].starts_with("a__b__c_") && given[0] != given[2]);
    }

    #[test]
    fn long_names_are_cut_and_stay_apart_and_the_same() {
        let (long, other) = ("t".repeat(70), format!("{}u", "t".repeat(69)));
        let given =
            names(&[("a", &long), ("a", &other), ("b", &"s".repeat(64)), ("c", &"é".repeat(65))], &[]);
        assert!(given.iter().all(|name| name.chars().count() == LONGEST), "{given:?}");
        assert_eq!(given.iter().collect::<HashSet<_>>().len(), 4);
        assert_eq!(given[2], "s".repeat(64), "64 are not too many");
        assert_eq!(given[0], names(&[("b", "x"), ("a", &long)], &[])[1]);
        let both = names(&[("a", &long), ("b", &long)], &[]);
        assert!(both[0].starts_with("a__t") && both[1].starts_with("b__t"));
        let far = names(&[(&"a".repeat(80), "x"), (&"a".repeat(81), "x")], &[]);
        assert!(far[0] != far[1] && far.iter().all(|name| name.len() == LONGEST));
    }

    #[test]
    fn a_name_made_to_collide_gets_none_or_another() {
        let hashed = names(&[("a", &"t".repeat(70))], &[]).remove(0);
        let given = names(&[("a", &"t".repeat(70)), ("evil", &hashed)], &[]);
        assert_ne!(given[0], given[1]);
        let taken = HashSet::from([
            "x".to_owned(),
            "a__x".to_owned(),
            name(NameRequest { upstream: "a", tool: "x" }, Form::Hashed),
        ]);
        assert_eq!(assign(&[NameRequest { upstream: "a", tool: "x" }], &taken), [None]);
    }

    proptest::proptest! {
        #[test]
        fn names_are_unique_short_and_do_not_depend_on_order(
            tools in proptest::collection::hash_set(("[ab_]{1,3}", "[ab_]{1,4}|[a]{60,70}"), 0..12),
        ) {
            let taken = HashSet::from(["a".to_owned(), "a__b".to_owned()]);
            let mut requests: Vec<_> = tools.iter().map(|(upstream, tool)| NameRequest { upstream, tool }).collect();
            let given = assign(&requests, &taken);
            let one: BTreeMap<_, _> = requests.iter().copied().zip(given.clone()).collect();
            requests.reverse();
            let other: BTreeMap<_, _> = requests.iter().copied().zip(assign(&requests, &taken)).collect();
            proptest::prop_assert_eq!(one, other);
            let names: Vec<_> = given.into_iter().flatten().collect();
            proptest::prop_assert_eq!(names.len(), tools.len());
            proptest::prop_assert!(names.iter().all(|name| name.chars().count() <= LONGEST && !taken.contains(name)));
            proptest::prop_assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
        }
    }
}
