//! Explains the rules' result for a call to the person who writes them. Decides nothing; [`Policy::rule`] does.

use super::class::{Annotations, Gate, known};
use super::condition::Facts;
use super::rules::{Matching, Policy, Ruling};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    pub ruled: Ruling,
    pub class_from: ClassFrom,
    /// The rules about this tool, in the order written, without rules about other tools.
    pub matches: Vec<Match>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Match {
    /// Its index among all rules.
    pub index: usize,
    /// Whether its condition holds; `None` if undecided.
    pub holds: Option<bool>,
    /// Whether the resulting class is the one that it sets.
    pub sets_class: bool,
    /// Whether the resulting gate is the one that it sets.
    pub sets_gate: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClassFrom {
    Rule,
    Name,
    /// The server's annotations make it stricter.
    Hint,
    /// From the server's annotations, which are trusted.
    Annotations,
    Nothing,
}

impl ClassFrom {
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Rule => "a rule says so",
            Self::Name => "the tool is known by its name",
            Self::Hint => "the server's own hint makes it stricter",
            Self::Annotations => "the server says so, and is trusted",
            Self::Nothing => "nothing else is known about it",
        }
    }
}

impl Policy {
    #[must_use]
    pub fn explain(&self, facts: &Facts<'_>, annotations: Annotations, is_trusted: bool) -> Explained {
        let about = self.about(facts);
        let ruled = Self::ruled(&about, facts, annotations, is_trusted);
        let matches: Vec<Match> = about
            .iter()
            .map(|&Matching { index, rule, holds }| Match {
                index,
                holds,
                sets_class: holds != Some(false) && rule.class == Some(ruled.class),
                // An undecided rule does not open a gate.
                sets_gate: holds.unwrap_or(rule.gate != Some(Gate::Allow)) && rule.gate == Some(ruled.gate),
            })
            .collect();
        let class_from = match ruled.class {
            _ if matches.iter().any(|rule| rule.sets_class) => ClassFrom::Rule,
            class if known(facts.tool) == Some(class) => ClassFrom::Name,
            class if annotations.tightened() == Some(class) => ClassFrom::Hint,
            class if is_trusted && annotations.class() == Some(class) => ClassFrom::Annotations,
            _ => ClassFrom::Nothing,
        };
        Explained { ruled, class_from, matches }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Class, Condition, Glob, Rule};
    use super::*;

    fn rule(tools: &str, class: Option<Class>, gate: Option<Gate>, when: Option<&str>) -> Rule {
        Rule {
            tools: vec![Glob::new(tools)],
            class,
            gate,
            via: None,
            when: when.map(|text| Condition::new(text).unwrap()),
            reason: None,
        }
    }

    #[test]
    fn says_which_rules_counted() {
        let rules = vec![
            rule("get_*", None, Some(Gate::Deny), None),
            rule("send_*", None, Some(Gate::Ask), Some("args.to == 'bob'")),
            rule("*", None, Some(Gate::Deny), Some("args.to == 'eve'")),
            rule("mail/*", None, Some(Gate::Allow), Some("args.missing == 1")),
            rule("mail/send_*", Some(Class::Destructive), Some(Gate::Allow), None),
        ];
        let args = json!({"to": "bob"});
        let facts =
            Facts { tool: "send_it", body: "mail", args: &args, channel: "mcp", user: "ann", session: "s" };
        let said = Policy::new(rules).explain(&facts, Annotations::default(), true);
        assert_eq!((said.ruled.class, said.ruled.gate), (Class::Destructive, Gate::Ask));
        assert_eq!(said.class_from, ClassFrom::Rule);
        let counted = |index, holds, sets_class, sets_gate| Match { index, holds, sets_class, sets_gate };
        assert_eq!(
            said.matches,
            [
                counted(1, Some(true), false, true),
                counted(2, Some(false), false, false),
                counted(3, None, false, false),
                counted(4, Some(true), true, false),
            ]
        );
    }

    #[test]
    fn says_where_the_class_comes_from() {
        let hints = |read_only, destructive| Annotations {
            read_only_hint: read_only,
            destructive_hint: destructive,
            open_world_hint: None,
            is_new: false,
        };
        for (tool, annotations, is_trusted, expected) in [
            ("whoami", hints(None, None), false, ClassFrom::Name),
            ("whoami", hints(None, Some(true)), false, ClassFrom::Hint),
            ("x", hints(Some(true), None), true, ClassFrom::Annotations),
            ("x", hints(Some(true), None), false, ClassFrom::Nothing),
            ("x", hints(None, None), true, ClassFrom::Nothing),
        ] {
            let facts = Facts { tool, body: "b", args: &json!({}), channel: "", user: "", session: "" };
            let said = Policy::default().explain(&facts, annotations, is_trusted);
            assert_eq!(said.class_from, expected, "{tool} {annotations:?}");
        }
    }
}
