//! Whether a rule applies to a call, and why.

use std::collections::HashSet;

use jiff::civil::DateTime;

use super::deed::Deed;
use super::lexicon::Actions;
use super::rule::{Group, Kind, Object, Rule};
use super::words::{stem, words};
use crate::observe::address::address;
use crate::observe::call::{Leaf, Reading};
use crate::observe::role::Role;

/// Said where a rule may be broken by something that was not looked at.
const TOO_MUCH: &str = "there is too much to look at all of it";

/// A call, prepared for many rules.
pub(super) struct Subject<'a> {
    reading: &'a Reading,
    deed: Deed,
    leaves: Vec<Prepared<'a>>,
    /// Lists of recipients, for names that a comma parts.
    wholes: Vec<Prepared<'a>>,
    addressed: bool,
    now: DateTime,
}

struct Prepared<'a> {
    leaf: &'a Leaf,
    words: HashSet<String>,
    address: Option<String>,
}

impl<'a> Subject<'a> {
    pub(super) fn new(reading: &'a Reading, deed: Deed, now: DateTime) -> Self {
        let prepare = |leaf: &'a Leaf| Prepared {
            leaf,
            words: words(&leaf.text).iter().map(|word| stem(word).to_owned()).collect(),
            address: address(&leaf.text),
        };
        let leaves = reading.leaves.iter().map(prepare).collect();
        let wholes = reading.wholes.iter().map(prepare).collect();
        Self { reading, deed, leaves, wholes, addressed: reading.is_addressed(), now }
    }

    /// Why the rule speaks against the call, if it does.
    pub(super) fn breaks(&self, rule: &Rule) -> Option<String> {
        let acts = self.acts(rule)?;
        if !rule.when.applies(self.now) {
            return None;
        }
        let named = rule.groups.iter().map(|group| self.group(group)).collect::<Option<Vec<String>>>()?;
        if rule.to_owner && self.addressed && rule.groups.is_empty() {
            return None;
        }
        let above = rule.over.is_none_or(|over| self.exceeds(f64::from(over)));
        if !above && !self.reading.unread.values {
            return None;
        }
        let strangers = self.strangers(rule)?;
        let mut parts = vec![acts];
        parts.extend(named);
        parts.extend(strangers);
        parts.extend((!above).then(|| TOO_MUCH.to_owned()));
        parts.dedup();
        if rule.when.has_hours() {
            parts.push(format!(
                "it is {:02}:{:02}, {}",
                self.now.hour(),
                self.now.minute(),
                rule.when.describe()
            ));
        } else if rule.when.until.is_some() {
            parts.push(format!("the rule holds {}", rule.when.describe()));
        }
        Some(parts.join("; "))
    }

    /// Whether some amount is larger.
    fn exceeds(&self, over: f64) -> bool {
        self.reading.leaves.iter().any(|leaf| leaf.number.is_some_and(|number| number > over))
    }

    /// Whether the tool does what the rule is about.
    fn acts(&self, rule: &Rule) -> Option<String> {
        let tool = &self.reading.tool;
        if let Some(verb) = &rule.verb {
            let verb = stem(verb);
            let does = self.reading.words.iter().any(|word| stem(word) == verb);
            return does.then(|| format!("`{tool}` has `{verb}` in its name"));
        }
        let strange = rule.actions == Actions::ANY && !self.deed.reads;
        (strange || rule.actions.meets(self.deed.actions)).then(|| match rule.kind {
            Kind::Away => format!("`{tool}` reaches people"),
            _ => format!("`{tool}` does what it is about"),
        })
    }

    /// Where one of the group is found.
    fn group(&self, group: &Group) -> Option<String> {
        let found = group.any.iter().find_map(|object| self.find(object, group.who));
        found.or_else(|| {
            let in_name = |object: &&Object| match object {
                Object::Words(list) => list.iter().all(|word| self.is_in_name(word)),
                _ => false,
            };
            let object = group.any.iter().find(|object| !group.who && in_name(object));
            let named = object.map(|object| format!("`{}` is in the tool's name", show(object)));
            named.or_else(|| self.may_hide(group.who).then(|| TOO_MUCH.to_owned()))
        })
    }

    /// Whether somebody, or something, may stand where nobody looked.
    fn may_hide(&self, who: bool) -> bool {
        let unread = self.reading.unread;
        unread.values || unread.content && !(who && self.addressed)
    }

    fn is_in_name(&self, word: &str) -> bool {
        self.reading.words.iter().any(|part| stem(part) == stem(word))
    }

    /// The value that an object is in.
    fn find(&self, object: &Object, who: bool) -> Option<String> {
        let searched = |leaf: &&Prepared<'_>| !who || !self.addressed || leaf.leaf.role == Role::Addressing;
        // Of a list only its words are new: each address in it is a value of its own.
        let wholes = self.wholes.iter().filter(|_| matches!(object, Object::Words(_)));
        let mut searched = self.leaves.iter().filter(searched).chain(wholes);
        let found = searched.find(|leaf| leaf.has(object, who))?;
        Some(format!(
            "`{}` is {} in `{}`",
            show(object),
            if who { "addressed" } else { "named" },
            found.leaf.path
        ))
    }

    /// For a rule with exceptions: those who are addressed and are none. `None` when everybody is one.
    fn strangers(&self, rule: &Rule) -> Option<Vec<String>> {
        if rule.except.is_empty() {
            return Some(Vec::new());
        }
        let people: Vec<&Prepared<'_>> =
            self.leaves.iter().filter(|leaf| leaf.leaf.role == Role::Addressing).collect();
        let spared = |leaf: &Prepared<'_>| rule.except.iter().any(|object| leaf.has(object, true));
        // Only addresses can be told to be elsewhere than a domain.
        let placed = rule.except.iter().all(|object| matches!(object, Object::Domain(_)));
        let strange = people.iter().filter(|leaf| !spared(leaf) && (!placed || leaf.address.is_some()));
        let strange: Vec<String> =
            strange.map(|leaf| format!("{} is somebody else", leaf.shown())).take(3).collect();
        if !strange.is_empty() {
            return Some(strange);
        }
        if self.may_hide(true) {
            return Some(vec![TOO_MUCH.to_owned()]);
        }
        // Exceptions that are not people may stand anywhere.
        let anywhere = self.leaves.iter().any(spared);
        (people.is_empty() && !anywhere && rule.kind != Kind::Only).then(Vec::new)
    }
}

impl Prepared<'_> {
    fn has(&self, object: &Object, who: bool) -> bool {
        let text = || self.leaf.text.to_lowercase();
        match object {
            Object::Address(wanted) => {
                self.address.as_ref() == Some(wanted) || text().contains(wanted.as_str())
            }
            Object::Domain(domain) => match &self.address {
                Some(address) => {
                    let of = |place: &str| place == domain || place.ends_with(&format!(".{domain}"));
                    address.split_once('@').is_some_and(|(_, place)| of(place))
                }
                None => !who && text().contains(domain.as_str()),
            },
            Object::Words(wanted) => {
                let has = |word: &String| self.words.contains(stem(word));
                wanted.iter().all(has)
                    || who && self.is_called(wanted)
                    || wanted.len() > 2 && wanted.iter().filter(|word| has(word)).count() > 1
            }
        }
    }

    /// What a reason says of it.
    fn shown(&self) -> String {
        if self.leaf.secret { "a hidden value".to_owned() } else { format!("`{}`", cut(&self.leaf.text)) }
    }

    /// An address that has only one of somebody's names: `bob@`, `miller@`, `bmiller@`.
    fn is_called(&self, names: &[String]) -> bool {
        let local = self.address.as_ref().and_then(|address| address.split_once('@')).map(|(local, _)| local);
        let (Some(local), [first, last]) = (local, names) else { return false };
        let initial: String = first.chars().take(1).collect();
        [first.clone(), last.clone(), format!("{initial}{last}"), format!("{initial}.{last}")]
            .iter()
            .any(|name| name == local)
    }
}

fn show(object: &Object) -> String {
    match object {
        Object::Words(words) => words.join(" "),
        Object::Address(text) | Object::Domain(text) => text.clone(),
    }
}

fn cut(text: &str) -> String {
    text.chars().take(80).collect()
}
