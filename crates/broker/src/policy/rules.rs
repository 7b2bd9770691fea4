//! The operator's rules, their evaluation for one call, and its explanation for the person who writes them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::condition::{Condition, Facts, Scene};
use super::glob::{Fit, Glob, Name};
use super::{Annotations, Class, Gate, known_class, without_rules};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Via {
    Elicitation,
    Console,
    Cli,
    Telegram,
}

impl Via {
    pub const ALL: [Self; 4] = [Self::Elicitation, Self::Console, Self::Cli, Self::Telegram];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Elicitation => "elicitation",
            Self::Console => "console",
            Self::Cli => "cli",
            Self::Telegram => "telegram",
        }
    }
}

#[derive(Debug)]
pub struct Rule {
    pub tools: Vec<Glob>,
    pub class: Option<Class>,
    pub gate: Option<Gate>,
    /// The channels that may approve; `None` allows all.
    pub via: Option<Vec<Via>>,
    /// `None` always matches.
    pub when: Option<Condition>,
    pub reason: Option<String>,
}

#[derive(Debug, Default)]
pub struct Policy {
    pub(super) rules: Vec<Rule>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruling {
    pub class: Class,
    pub gate: Gate,
    /// The approval channels that every matching rule allows.
    pub via: Vec<Via>,
    /// The reasons of the rules that set the gate.
    pub reasons: Vec<String>,
}

impl Ruling {
    pub(crate) fn denied(self, reason: &str) -> Self {
        Self { gate: Gate::Deny, reasons: vec![reason.to_owned()], ..self }
    }

    /// Requires approval; puts this reason first.
    pub(crate) fn asked(mut self, reason: &str) -> Self {
        self.gate = self.gate.max(Gate::Ask);
        self.reasons.insert(0, reason.to_owned());
        self
    }
}

impl Policy {
    pub fn new(rules: Vec<Rule>) -> Self {
        Self { rules }
    }

    /// Evaluates a call. The order of the rules does not matter.
    pub fn rule(&self, facts: &Facts<'_>, annotations: Annotations, is_trusted: bool) -> Ruling {
        Self::evaluate(&self.matching(facts), facts, annotations, is_trusted)
    }

    /// The rules about the tool of this call. Evaluates each condition once, all in the same context.
    pub(super) fn matching(&self, facts: &Facts<'_>) -> Vec<Matching<'_>> {
        let scene = Scene::new(facts);
        let name = Name::new(facts.tool);
        let fit = |rule: &Rule| rule.tools.iter().map(|glob| glob.fit(facts.body, &name)).max();
        let matching = |(index, rule)| {
            let fit = fit(rule).filter(|fit| *fit > Fit::No)?;
            let holds = rule.when.as_ref().map_or(Some(true), |when| when.holds_in(&scene));
            // A rule that matches only some readings of a URI may hold, which makes it undecided.
            let holds = if fit == Fit::Whole { holds } else { holds.filter(|holds| !holds) };
            Some(Matching { index, rule, holds })
        };
        self.rules.iter().enumerate().filter_map(matching).collect()
    }

    fn evaluate(
        matching: &[Matching<'_>],
        facts: &Facts<'_>,
        annotations: Annotations,
        is_trusted: bool,
    ) -> Ruling {
        let classes = |verdict: Option<bool>| {
            let such = matching.iter().filter(|matching| matching.holds == verdict);
            such.filter_map(|matching| matching.rule.class).max()
        };
        let class = match classes(Some(true)) {
            // Annotations may make the class stricter than the operator's rule, never milder.
            Some(class) => class.max(annotations.tightened().unwrap_or(class)),
            None => without_rules(facts.tool, annotations, is_trusted),
        };
        // An undecided rule may only make the class stricter.
        let class = class.max(classes(None).unwrap_or(Class::Read));
        let gates = || {
            matching.iter().filter_map(|Matching { rule, holds, .. }| {
                let gate = rule.gate?;
                holds.unwrap_or(gate != Gate::Allow).then_some((gate, *rule))
            })
        };
        let gate = gates().map(|(gate, _)| gate).max();
        let deciding = || gates().filter(|(one, _)| Some(*one) == gate).map(|(_, rule)| rule);
        let limiting = || matching.iter().filter(|matching| matching.holds != Some(false));
        // The host alone never approves a destructive call: the person or program that controls it could answer for the
        // owner.
        let is_open = |via: &Via| !(class == Class::Destructive && *via == Via::Elicitation);
        let allows =
            |via: &Via| limiting().all(|one| one.rule.via.as_ref().is_none_or(|ways| ways.contains(via)));
        let via: Vec<Via> = Via::ALL.into_iter().filter(is_open).filter(allows).collect();
        let mut gate = gate.unwrap_or(class.default_gate());
        let mut reasons: Vec<String> = deciding().filter_map(|rule| rule.reason.clone()).collect();
        if gate == Gate::Ask && via.is_empty() {
            gate = Gate::Deny;
            reasons.push("the rules leave no place to ask for approval".to_owned());
        }
        Ruling { class, gate, via, reasons }
    }
}

pub(super) struct Matching<'a> {
    pub(super) index: usize,
    pub(super) rule: &'a Rule,
    /// Whether it holds; `None` if undecided, which may only make things stricter.
    pub(super) holds: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    pub ruled: Ruling,
    pub class_from: ClassFrom,
    /// The rules about this tool, in the order written, without rules about other tools.
    pub matches: Vec<Match>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Match {
    pub index: usize,
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
    pub const fn words(self) -> &'static str {
        match self {
            Self::Rule => "set by a rule",
            Self::Name => "by the tool's name",
            Self::Hint => "the server's annotation makes it stricter",
            Self::Annotations => "by the annotation of a trusted server",
            Self::Nothing => "default: no rule, known name or trusted annotation",
        }
    }
}

impl Policy {
    pub fn explain(&self, facts: &Facts<'_>, annotations: Annotations, is_trusted: bool) -> Explained {
        let matching = self.matching(facts);
        let ruled = Self::evaluate(&matching, facts, annotations, is_trusted);
        let matches: Vec<Match> = matching
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
            class if known_class(facts.tool) == Some(class) => ClassFrom::Name,
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
            reason: Some(format!("{tools} {}", when.unwrap_or(""))),
        }
    }

    fn ruled(rules: Vec<Rule>, tool: &str, to: &str) -> Ruling {
        let args = json!({"to": to});
        let facts = Facts {
            tool,
            body: "mail",
            args: &args,
            has_extra: false,
            channel: "web",
            user: "ann",
            session: "s",
        };
        Policy::new(rules).rule(&facts, Annotations::default(), true)
    }

    #[test]
    fn members_beside_the_arguments_make_a_condition_undecided() {
        let args = json!({"to": "bob@example.com"});
        let gate = |gate, when, has_extra| {
            let facts = Facts {
                tool: "send_it",
                body: "m",
                args: &args,
                has_extra,
                channel: "",
                user: "",
                session: "",
            };
            let rules = vec![rule("*", None, Some(gate), when)];
            Policy::new(rules).rule(&facts, Annotations::default(), true).gate
        };
        let inside = Some(r#"all_in_domain(args, "example.com")"#);
        assert_eq!([false, true].map(|extra| gate(Gate::Allow, inside, extra)), [Gate::Allow, Gate::Ask]);
        assert_eq!([false, true].map(|extra| gate(Gate::Deny, inside, extra)), [Gate::Deny; 2]);
        let outside = Some(r#"!all_in_domain(args, "example.com")"#);
        assert_eq!([false, true].map(|extra| gate(Gate::Deny, outside, extra)), [Gate::Ask, Gate::Deny]);
        let by_user = Some(r#"user == """#);
        assert_eq!(gate(Gate::Allow, by_user, true), Gate::Allow, "it does not look at the arguments");
        assert_eq!(
            gate(Gate::Allow, None, true),
            Gate::Allow,
            "a rule without a condition allows every call"
        );
    }

    // spec: N-10
    #[test]
    fn the_strictest_rule_that_holds_decides_in_any_order() {
        let inside = r#"all_in_domain(args, "example.com")"#;
        let rules = |turned: bool| {
            let mut rules = vec![
                rule("send_*", None, Some(Gate::Allow), Some(inside)),
                rule("*", None, Some(Gate::Deny), Some(r#"args.to == "eve@example.com""#)),
                rule("mail/send_email", None, Some(Gate::Ask), Some(r#"args.to == "boss@example.com""#)),
            ];
            if turned {
                rules.reverse();
            }
            rules
        };
        for turned in [false, true] {
            assert_eq!(ruled(rules(turned), "send_email", "bob@example.com").gate, Gate::Allow);
            assert_eq!(ruled(rules(turned), "send_email", "boss@example.com").gate, Gate::Ask);
            assert_eq!(ruled(rules(turned), "send_email", "eve@example.com").gate, Gate::Deny);
            // No rule holds: the class decides.
            assert_eq!(ruled(rules(turned), "send_email", "x@elsewhere.org").gate, Gate::Ask);
        }
    }

    #[test]
    fn a_second_recipient_does_not_pass_with_the_first() {
        let gate = |condition: &str| {
            let rules = vec![rule("send_*", None, Some(Gate::Allow), Some(condition))];
            ruled(rules, "send_email", "evil@other.example,carol@example.com").gate
        };
        assert_eq!(gate(r#"all_in_domain(args, "example.com")"#), Gate::Ask);
        // Why there is `all_in_domain`.
        assert_eq!(gate(r#"args.to.endsWith("@example.com")"#), Gate::Allow);
    }

    #[test]
    fn the_arguments_are_copied_once_whatever_the_number_of_rules() {
        let many: Vec<u32> = (0..90_000).collect();
        let args = json!({"to": "x", "many": many});
        let facts = Facts {
            tool: "send",
            body: "mail",
            args: &args,
            has_extra: false,
            channel: "",
            user: "",
            session: "",
        };
        let timed = |count: usize| {
            let one = || rule("*", None, Some(Gate::Deny), Some(r#"args.to == "eve""#));
            let policy = Policy::new((0..count).map(|_| one()).collect());
            let began = std::time::Instant::now();
            assert_eq!(policy.rule(&facts, Annotations::default(), true).gate, Gate::Ask);
            began.elapsed()
        };
        timed(1);
        let (one, forty) = (timed(1), timed(40));
        assert!(forty < one * 10, "{forty:?} for forty rules, {one:?} for one");
    }

    #[test]
    fn a_condition_that_fails_asks_and_denies_but_never_allows() {
        let broken = Some("args.missing == 1");
        for gate in [Gate::Ask, Gate::Deny] {
            assert_eq!(ruled(vec![rule("*", None, Some(gate), broken)], "whoami", "x").gate, gate);
        }
        let allowed = ruled(vec![rule("*", None, Some(Gate::Allow), broken)], "send_email", "x");
        assert_eq!(allowed.gate, Gate::Ask);
    }

    #[test]
    fn a_rule_about_a_uri_is_not_passed_by_another_way_of_writing_it() {
        let gate = |rules: Vec<Rule>, uri: &str| ruled(rules, &format!("resource:{uri}"), "x").gate;
        let ways = ["FILE:///secret/a", "file:///%73ecret/a", "file:///pub/../secret/a", "file:///secret/a"];
        for uri in ways {
            for stricter in [Gate::Ask, Gate::Deny] {
                let rules = || vec![rule("mail/resource:file:///secret*", None, Some(stricter), None)];
                assert_eq!(gate(rules(), uri), stricter, "{uri}");
                let open = rule("resource:*", None, Some(Gate::Allow), None);
                assert_eq!(gate(rules().into_iter().chain([open]).collect(), uri), stricter, "{uri}");
            }
        }
        // Without a rule this needs approval; no other spelling of the URI opens it.
        let open = || vec![rule("resource:file:///pub/*", None, Some(Gate::Allow), None)];
        assert_eq!(gate(open(), "file:///pub/a"), Gate::Allow);
        for uri in ["FILE:///pub/a", "file:///pub/../secret", "file:///pub/%2e%2e/secret", "file:///p%75b/a"]
        {
            assert_eq!(gate(open(), uri), Gate::Ask, "{uri}");
        }
        let mild = vec![rule("resource:file:///pub/*", Some(Class::Read), None, None)];
        assert_eq!(ruled(mild, "resource:file:///pub/../x", "x").class, Class::HumanVisibleWrite);
    }

    #[test]
    fn a_condition_that_fails_never_makes_the_class_milder() {
        let mild = rule("send_*", Some(Class::Read), None, Some("args.draft == true"));
        assert_eq!(ruled(vec![mild], "send_email", "x").class, Class::HumanVisibleWrite);
        let strict = rule("send_*", Some(Class::Destructive), None, Some("args.draft == true"));
        assert_eq!(ruled(vec![strict], "send_email", "x").class, Class::Destructive);
    }

    #[test]
    fn ways_to_ask_are_those_that_every_rule_leaves() {
        let via = |ways: &[Via], gate| Rule { via: Some(ways.to_vec()), ..rule("*", None, gate, None) };
        let only_cli = ruled(vec![via(&[Via::Cli], None)], "send_email", "x");
        assert_eq!((only_cli.gate, only_cli.via), (Gate::Ask, vec![Via::Cli]));
        let apart = vec![via(&[Via::Cli], Some(Gate::Ask)), via(&[Via::Console], Some(Gate::Ask))];
        let nobody = ruled(apart, "send_email", "x");
        assert_eq!(nobody.gate, Gate::Deny);
        assert!(nobody.reasons.iter().any(|reason| reason.contains("no place to ask")));
    }

    #[test]
    fn a_rule_names_the_class_and_a_hint_tightens_it() {
        let rules = || vec![rule("get_*", Some(Class::Read), None, None)];
        assert_eq!(ruled(rules(), "get_all", "x").class, Class::Read);
        let args = json!({});
        let facts = Facts {
            tool: "get_all",
            body: "m",
            args: &args,
            has_extra: false,
            channel: "",
            user: "",
            session: "",
        };
        let hints = Annotations { destructive_hint: Some(true), ..Annotations::default() };
        assert_eq!(Policy::new(rules()).rule(&facts, hints, false).class, Class::Destructive);
        let mild = Annotations { read_only_hint: Some(true), ..Annotations::default() };
        let strict = vec![rule("get_*", Some(Class::Destructive), None, None)];
        assert_eq!(Policy::new(strict).rule(&facts, mild, true).class, Class::Destructive);
    }

    #[test]
    fn what_destroys_is_never_approved_by_the_host_alone() {
        let mut only = rule("*", Some(Class::Destructive), Some(Gate::Ask), None);
        only.via = Some(vec![Via::Elicitation]);
        let ruled_out = ruled(vec![only], "wipe", "x");
        assert_eq!((ruled_out.gate, ruled_out.via.len()), (Gate::Deny, 0));
        let open = ruled(vec![rule("*", Some(Class::Destructive), None, None)], "wipe", "x");
        assert_eq!((open.gate, open.via), (Gate::Ask, vec![Via::Console, Via::Cli, Via::Telegram]));
        let mut cli = rule("*", None, Some(Gate::Ask), None);
        cli.via = Some(vec![Via::Cli]);
        assert_eq!(ruled(vec![cli], "send_email", "x").via, [Via::Cli]);
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
        let facts = Facts {
            tool: "send_it",
            body: "mail",
            args: &args,
            has_extra: false,
            channel: "mcp",
            user: "ann",
            session: "s",
        };
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
            let facts = Facts {
                tool,
                body: "b",
                args: &json!({}),
                has_extra: false,
                channel: "",
                user: "",
                session: "",
            };
            let said = Policy::default().explain(&facts, annotations, is_trusted);
            assert_eq!(said.class_from, expected, "{tool} {annotations:?}");
        }
    }
}
