//! Whether a rule applies to a call, and why; and what a tool does, by the words of its name.

use std::collections::HashSet;
use std::sync::LazyLock;

use embody_text::fold::words;
use embody_text::lists::Lists;
use jiff::civil::DateTime;

use super::rule::{Group, Kind, Object, Rule};
use super::words::Actions;
use crate::observe::features::{CallFeatures, Leaf, Role, address};

/// Said where a rule may be broken by something that was not looked at.
const NOT_FULLY_SCANNED: &str = "the arguments are too large to be compared completely";

pub(super) struct PreparedCall<'a> {
    features: &'a CallFeatures,
    action: ToolAction,
    leaves: Vec<PreparedValue<'a>>,
    /// Lists of recipients, for names that a comma parts.
    recipient_lists: Vec<PreparedValue<'a>>,
    addressed: bool,
    now: DateTime,
}

struct PreparedValue<'a> {
    leaf: &'a Leaf,
    words: HashSet<String>,
    address: Option<String>,
}

impl<'a> PreparedCall<'a> {
    pub(super) fn new(features: &'a CallFeatures, action: ToolAction, now: DateTime) -> Self {
        let prepare = |leaf: &'a Leaf| PreparedValue {
            leaf,
            words: words(&leaf.text).iter().map(|word| stem(word).to_owned()).collect(),
            address: address(&leaf.text),
        };
        let leaves = features.leaves.iter().map(prepare).collect();
        let recipient_lists = features.recipient_lists.iter().map(prepare).collect();
        Self { features, action, leaves, recipient_lists, addressed: features.is_addressed(), now }
    }

    /// Why the rule speaks against the call, if it does.
    pub(super) fn violation(&self, rule: &Rule) -> Option<String> {
        let acts = self.acts(rule)?;
        if !rule.when.applies(self.now) {
            return None;
        }
        let named = rule.groups.iter().map(|group| self.group(group)).collect::<Option<Vec<String>>>()?;
        if rule.to_owner && self.addressed && rule.groups.is_empty() {
            return None;
        }
        let above = rule.over.is_none_or(|over| self.exceeds(f64::from(over)));
        if !above && !self.features.gaps.values {
            return None;
        }
        let excluded_recipients = self.excluded_recipients(rule)?;
        let mut parts = vec![acts];
        parts.extend(named);
        parts.extend(excluded_recipients);
        parts.extend((!above).then(|| NOT_FULLY_SCANNED.to_owned()));
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

    fn exceeds(&self, over: f64) -> bool {
        self.features.leaves.iter().any(|leaf| leaf.number.is_some_and(|number| number > over))
    }

    fn acts(&self, rule: &Rule) -> Option<String> {
        let tool = &self.features.tool;
        if let Some(verb) = &rule.verb {
            let verb = stem(verb);
            let does = self.features.words.iter().any(|word| stem(word) == verb);
            return does.then(|| format!("`{tool}` has `{verb}` in its name"));
        }
        let strange = rule.actions == Actions::ANY && !self.action.reads;
        (strange || rule.actions.meets(self.action.actions)).then(|| match rule.kind {
            Kind::Away => format!("`{tool}` reaches people"),
            _ => format!("`{tool}` does what the rule is about"),
        })
    }

    fn group(&self, group: &Group) -> Option<String> {
        let found = group.any.iter().find_map(|object| self.find(object, group.who));
        found.or_else(|| {
            let in_name = |object: &&Object| match object {
                Object::Words(list) => list.iter().all(|word| self.is_in_name(word)),
                _ => false,
            };
            let object = group.any.iter().find(|object| !group.who && in_name(object));
            let named = object.map(|object| format!("`{}` is in the tool's name", show(object)));
            named.or_else(|| self.may_hide(group.who).then(|| NOT_FULLY_SCANNED.to_owned()))
        })
    }

    /// Whether somebody, or something, may stand where nobody looked.
    fn may_hide(&self, who: bool) -> bool {
        let gaps = self.features.gaps;
        gaps.values || gaps.content && !(who && self.addressed)
    }

    fn is_in_name(&self, word: &str) -> bool {
        self.features.words.iter().any(|part| stem(part) == stem(word))
    }

    fn find(&self, object: &Object, who: bool) -> Option<String> {
        let searched =
            |leaf: &&PreparedValue<'_>| !who || !self.addressed || leaf.leaf.role == Role::Addressing;
        // Of a list only its words are new: each address in it is a value of its own.
        let recipient_lists = self.recipient_lists.iter().filter(|_| matches!(object, Object::Words(_)));
        let mut searched = self.leaves.iter().filter(searched).chain(recipient_lists);
        let found = searched.find(|leaf| leaf.has(object, who))?;
        Some(format!(
            "`{}` is {} in `{}`",
            show(object),
            if who { "addressed" } else { "named" },
            found.leaf.path
        ))
    }

    /// For a rule with exceptions: those who are addressed and are none. `None` when everybody is one.
    fn excluded_recipients(&self, rule: &Rule) -> Option<Vec<String>> {
        if rule.except.is_empty() {
            return Some(Vec::new());
        }
        let people: Vec<&PreparedValue<'_>> =
            self.leaves.iter().filter(|leaf| leaf.leaf.role == Role::Addressing).collect();
        let spared = |leaf: &PreparedValue<'_>| rule.except.iter().any(|object| leaf.has(object, true));
        // Only addresses can be told to be elsewhere than a domain.
        let placed = rule.except.iter().all(|object| matches!(object, Object::Domain(_)));
        let strange = people.iter().filter(|leaf| !spared(leaf) && (!placed || leaf.address.is_some()));
        let strange: Vec<String> =
            strange.map(|leaf| format!("{} is another person", leaf.shown())).take(3).collect();
        if !strange.is_empty() {
            return Some(strange);
        }
        if self.may_hide(true) {
            return Some(vec![NOT_FULLY_SCANNED.to_owned()]);
        }
        // Exceptions that are not people may stand anywhere.
        let anywhere = self.leaves.iter().any(spared);
        (people.is_empty() && !anywhere && rule.kind != Kind::Only).then(Vec::new)
    }
}

impl PreparedValue<'_> {
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

    fn shown(&self) -> String {
        if self.leaf.secret {
            "a hidden value".to_owned()
        } else {
            format!("`{}`", truncate(&self.leaf.text))
        }
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

fn truncate(text: &str) -> String {
    text.chars().take(80).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ToolAction {
    pub(super) actions: Actions,
    pub(super) reads: bool,
}

static TOOLS: LazyLock<Lists> = LazyLock::new(|| Lists::parse(include_str!("tools.txt")));

pub(super) fn classify(words: &[String]) -> ToolAction {
    let verbs = actions(&VERBS, words);
    let reads = words.iter().take(2).any(|word| TOOLS.has("reads", word)) && verbs == Actions::NONE;
    if reads {
        return ToolAction { actions: Actions::READ, reads };
    }
    // What is deleted is not sent.
    let handles = verbs.meets(Actions::DELETE);
    let means = actions(&MEDIA, words);
    let sends = words.iter().any(|word| TOOLS.has("sends", word));
    let everywhere = Actions::MAIL.and(Actions::MESSAGE).and(Actions::POST);
    let actions = match () {
        () if handles => verbs,
        () if sends && means == Actions::NONE => verbs.and(everywhere),
        () => verbs.and(means),
    };
    ToolAction { actions, reads }
}

/// The lists of verbs in `tools.txt`.
const VERBS: [(&str, Actions); 9] = [
    ("does delete", Actions::DELETE),
    ("does change", Actions::CHANGE),
    ("does create", Actions::CREATE),
    ("does invite", Actions::INVITE),
    ("does pay", Actions::PAY),
    ("does run", Actions::RUN),
    ("does share", Actions::SHARE),
    ("does call", Actions::CALL),
    ("does post", Actions::POST),
];

const MEDIA: [(&str, Actions); 4] = [
    ("by mail", Actions::MAIL),
    ("by message", Actions::MESSAGE),
    ("by post", Actions::POST),
    ("by invite", Actions::INVITE),
];

fn actions(lists: &[(&str, Actions)], words: &[String]) -> Actions {
    let found = lists.iter().filter(|(list, _)| words.iter().any(|word| TOOLS.has(list, word)));
    found.fold(Actions::NONE, |all, (_, actions)| all.and(*actions))
}

/// The singular of a word.
fn stem(word: &str) -> &str {
    let singular = word.strip_suffix('s').filter(|one| one.chars().count() >= 3 && !one.ends_with('s'));
    singular.unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_known_by_their_words() {
        let does = |name: &str| classify(&name.split('_').map(str::to_owned).collect::<Vec<_>>());
        assert!(does("read_messages").reads && does("whoami").reads && does("mail_search").reads);
        assert!(!does("get_or_create_chat").reads && !does("frobnicate").reads);
        assert!(
            does("send_email").actions.meets(Actions::MAIL)
                && !does("send_email").actions.meets(Actions::MESSAGE)
        );
        assert!(
            does("send_card").actions.meets(Actions::MESSAGE)
                && does("send_card").actions.meets(Actions::MAIL)
        );
        assert_eq!(does("delete_message").actions, Actions::DELETE);
        assert!(does("create_event").actions.meets(Actions::INVITE));
    }
}
