//! The class of a tool, and the operator's rules about a call of it. Pure.
//!
//! Class: the strictest among the matching rules; else the built-in names; else the server's annotations if trusted; else a
//! human-visible write. An annotation may make a class stricter, never milder. Gate: the strictest among the matching rules;
//! else the default of the class.

mod addresses;
mod condition;
mod glob;
mod raw_text;
mod rules;
mod uri;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::addresses::Addresses;
pub use self::condition::{Condition, Facts, WrongCondition};
pub use self::glob::Glob;
pub(crate) use self::glob::{Fit, Kind, Name};
pub use self::raw_text::RawTextTest;
pub use self::rules::{ClassFrom, Explained, Match, Policy, Rule, Ruling, Via};

/// The effect of a tool. The comments of variants are not `///`, which would put them into the schema of `embody.toml`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    // Changes nothing.
    Read,
    // Changes something that only the owner sees.
    Write,
    // Other people see the change.
    HumanVisibleWrite,
    // Deletes or overwrites something.
    Destructive,
}

impl Class {
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::HumanVisibleWrite, Self::Destructive];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::HumanVisibleWrite => "human_visible_write",
            Self::Destructive => "destructive",
        }
    }

    pub(crate) const fn default_gate(self) -> Gate {
        match self {
            Self::Read | Self::Write => Gate::Allow,
            Self::HumanVisibleWrite | Self::Destructive => Gate::Ask,
        }
    }

    pub(crate) const fn why_asked(self) -> &'static str {
        match self {
            Self::Read => "a rule asks for approval",
            Self::Write => "it changes data",
            Self::HumanVisibleWrite => "other people will see it",
            Self::Destructive => "it cannot be undone",
        }
    }

    /// Whether the mind is asked before such a call is sent.
    pub(crate) const fn is_observed_first(self) -> bool {
        matches!(self, Self::HumanVisibleWrite | Self::Destructive)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    Allow,
    // Only with the owner's approval.
    Ask,
    Deny,
}

impl Gate {
    pub const ALL: [Self; 3] = [Self::Allow, Self::Ask, Self::Deny];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// A server's annotations of its tool. A missing annotation has no effect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Annotations {
    pub read_only_hint: Option<bool>,
    pub destructive_hint: Option<bool>,
    pub open_world_hint: Option<bool>,
    /// Not from the server: the tool is new on a known server, and the operator has not accepted it.
    #[serde(skip)]
    pub is_new: bool,
}

impl Annotations {
    pub fn of_mind(tool: &str) -> Self {
        let writes = matches!(tool, "save_memory" | "forget_memory" | "update_instructions" | "reflect");
        Self {
            read_only_hint: Some(!writes),
            destructive_hint: Some(false),
            open_world_hint: Some(false),
            is_new: false,
        }
    }

    pub(super) fn class(self) -> Option<Class> {
        match (self.read_only_hint, self.destructive_hint, self.open_world_hint) {
            (Some(true), _, _) => Some(Class::Read),
            (_, Some(true), _) => Some(Class::Destructive),
            // It declares that it writes, destroys nothing, and has a closed world.
            (Some(false), Some(false), Some(false)) => Some(Class::Write),
            _ => None,
        }
    }

    /// The stricter class that an explicit hint requires, even from an untrusted server. A new tool is at least a
    /// human-visible write, whatever its hints.
    fn tightened(self) -> Option<Class> {
        let hinted = match (self.read_only_hint, self.destructive_hint) {
            (Some(true), _) => None,
            (_, Some(true)) => Some(Class::Destructive),
            (Some(false), _) => Some(Class::Write),
            _ => None,
        };
        hinted.max(self.is_new.then_some(Class::HumanVisibleWrite))
    }
}

fn without_rules(tool: &str, annotations: Annotations, is_trusted: bool) -> Class {
    let class = known_class(tool)
        .or_else(|| annotations.class().filter(|_| is_trusted))
        .unwrap_or(Class::HumanVisibleWrite);
    class.max(annotations.tightened().unwrap_or(Class::Read))
}

pub(super) fn known_class(tool: &str) -> Option<Class> {
    match tool {
        "send_teams_message"
        | "send_email"
        | "send_card"
        | "add_teams_member"
        | "create_chat"
        | "delete_teams_message" => Some(Class::HumanVisibleWrite),
        "read_teams_messages" | "whoami" => Some(Class::Read),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hints(read_only: Option<bool>, destructive: Option<bool>, open_world: Option<bool>) -> Annotations {
        Annotations {
            read_only_hint: read_only,
            destructive_hint: destructive,
            open_world_hint: open_world,
            is_new: false,
        }
    }

    #[test]
    fn a_new_tool_is_at_least_a_human_visible_write() {
        let new = |hints: Annotations| Annotations { is_new: true, ..hints };
        for tool in ["x", "whoami"] {
            let read_only = new(hints(Some(true), Some(false), Some(false)));
            assert_eq!(without_rules(tool, read_only, true), Class::HumanVisibleWrite, "{tool}");
        }
        assert_eq!(without_rules("x", new(hints(None, Some(true), None)), true), Class::Destructive);
        let said: Annotations = serde_json::from_str(r#"{"isNew":true,"is_new":true}"#).unwrap();
        assert!(!said.is_new, "no server says so");
    }

    // spec: N-09
    #[test]
    fn known_names_have_their_class_whatever_the_server_says() {
        for tool in [
            "send_teams_message",
            "send_email",
            "send_card",
            "add_teams_member",
            "create_chat",
            "delete_teams_message",
        ] {
            assert_eq!(
                without_rules(tool, hints(Some(true), None, None), true),
                Class::HumanVisibleWrite,
                "{tool}"
            );
        }
        for tool in ["read_teams_messages", "whoami"] {
            assert_eq!(without_rules(tool, Annotations::default(), false), Class::Read, "{tool}");
        }
    }

    // spec: N-09
    #[test]
    fn an_unknown_tool_is_strict_unless_a_trusted_server_says_otherwise() {
        let silent = Annotations::default();
        assert_eq!(without_rules("x", silent, true), Class::HumanVisibleWrite);
        assert_eq!(without_rules("x", hints(Some(true), None, None), true), Class::Read);
        assert_eq!(without_rules("x", hints(Some(true), None, None), false), Class::HumanVisibleWrite);
        assert_eq!(without_rules("x", hints(Some(false), Some(false), Some(false)), true), Class::Write);
        assert_eq!(without_rules("x", hints(Some(false), Some(false), None), true), Class::HumanVisibleWrite);
        assert_eq!(without_rules("x", hints(None, Some(true), None), false), Class::Destructive);
    }

    #[test]
    fn a_minds_tools_are_known_by_their_names() {
        for (tool, class) in [
            ("recall", Class::Read),
            ("bootstrap_session", Class::Read),
            ("save_memory", Class::Write),
            ("forget_memory", Class::Write),
            ("update_instructions", Class::Write),
            ("reflect", Class::Write),
        ] {
            assert_eq!(without_rules(tool, Annotations::of_mind(tool), true), class, "{tool}");
        }
    }

    #[test]
    fn a_hint_tightens_a_known_name_and_never_relaxes_it() {
        assert_eq!(without_rules("whoami", hints(Some(false), None, None), false), Class::Write);
        assert_eq!(without_rules("whoami", hints(None, Some(true), None), false), Class::Destructive);
        assert_eq!(
            without_rules("send_email", hints(Some(false), Some(false), Some(false)), true),
            Class::HumanVisibleWrite
        );
    }
}
