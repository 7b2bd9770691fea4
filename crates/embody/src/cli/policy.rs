//! `embody policy test`: evaluates the rules for a call without making it.

use std::fmt::Write;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use clap::{Args, Subcommand};
use embody_broker::arguments::Arguments;
use embody_broker::policy::{
    Addresses, Annotations, Class, Condition, Explained, Facts, Gate, Match, RawTextTest, Via,
};
use embody_store::pins::ToolPin;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use super::args::read_text;
use super::{Context, ScopeArgs};
use crate::config::Config;
use crate::config::settings::Rule;
use crate::error::CliError;
use crate::output::{one_line, printable};
use crate::server_tools::{class_because, gate_because};
use crate::{broker_setup, store};

const EXAMPLES: &str = "Examples:
  embody policy test send_email --args '{\"to\": \"bob@example.com, ann@home.example\"}'
  embody policy test delete_file --body files --channel telegram
  embody policy test embody/create_task
  embody policy test send_email --args - < call.json";

const HEAD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const WARN: Style = AnsiColor::Yellow.on_default();

#[derive(Subcommand, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) enum PolicyCommand {
    /// Show what would happen to a call, and why, without making it
    Test(TestArgs),
}

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TestArgs {
    /// The tool, by its name in its body, or BODY/TOOL
    tool: String,
    /// The call's arguments, a JSON object; `-` reads stdin
    #[arg(long, value_name = "JSON", default_value = "{}")]
    args: String,
    /// The body: a configured one, `embody` or `mind` [default: the only body known to have the tool, else the only
    /// configured one]
    #[arg(long)]
    body: Option<String>,
    /// The channel of the call
    #[arg(long, default_value = "mcp")]
    channel: String,
    /// The session of the call
    #[arg(long, default_value = "test")]
    session: String,
    #[command(flatten)]
    scope: ScopeArgs,
}

pub(crate) fn run(command: &PolicyCommand, context: &Context) -> Result<ExitCode, CliError> {
    match command {
        PolicyCommand::Test(args) => test(args, context),
    }
}

fn test(args: &TestArgs, context: &Context) -> Result<ExitCode, CliError> {
    let arguments = arguments(&read_text(&args.args)?)?;
    let ResolvedTool { tool, body, facts: tool_facts } =
        resolve_tool(&args.tool, args.body.as_deref(), context)?;
    let rules = broker_setup::policy(&context.config)?;
    let facts = Facts {
        tool: &tool,
        body: &body,
        args: arguments.value(),
        has_extra: false,
        channel: &args.channel,
        user: &args.scope.user(),
        session: &args.session,
    };
    let explained = rules.policy.explain(&facts, tool_facts.annotations, tool_facts.is_trusted);
    let addresses = uses_addresses(&explained, context).then(|| Addresses::in_json(facts.args));
    let (tool, body, version) = (tool.as_str(), body.as_str(), rules.version.as_str());
    let result = TestResult { tool, body, explained, addresses, facts: tool_facts, version };
    context.print(&result.as_json(context), || result.as_text(context))
}

fn arguments(text: &str) -> Result<Arguments, CliError> {
    let wrong = |reason: &dyn std::error::Error| {
        CliError::usage("`--args` is not a JSON object")
            .caused_by(reason)
            .hint("write it like '{\"to\": \"bob\"}'")
    };
    let raw = RawValue::from_string(text.trim().to_owned()).map_err(|error| wrong(&error))?;
    Arguments::read(Some(&raw)).map_err(|error| wrong(&error))
}

struct TestResult<'a> {
    tool: &'a str,
    body: &'a str,
    explained: Explained,
    /// The mail addresses in the arguments, if a rule looks at them.
    addresses: Option<Addresses>,
    facts: ToolFacts,
    version: &'a str,
}

impl TestResult<'_> {
    fn as_text(&self, context: &Context) -> String {
        let ruled = &self.explained.ruled;
        let body = if self.body.is_empty() { "no body" } else { self.body };
        let mut out = format!("{HEAD}{}{HEAD:#} of {}\n", printable(self.tool), printable(body));
        let mut row = |label: &str, value: &str, why: &str| {
            let why = if why.is_empty() { String::new() } else { format!("  {DIM}{why}{DIM:#}") };
            let _ = writeln!(out, "  {label:6} {value}{why}");
        };
        row("class", ruled.class.name(), self.class_from());
        row("gate", ruled.gate.name(), gate_because(&self.explained));
        if ruled.gate == Gate::Ask {
            row("via", &self.ways().join(", "), "");
        }
        for reason in &ruled.reasons {
            row("reason", &printable(reason), "");
        }
        if let Some(Addresses { clear, unclear, .. }) = &self.addresses {
            let found: Vec<&str> = clear.iter().map(String::as_str).collect();
            let found = if found.is_empty() { "none".to_owned() } else { found.join(", ") };
            row("mail", &printable(&found), "");
            for text in unclear {
                row("mail", &one_line(text), "unclear, so it is in no domain");
            }
        }
        if self.explained.matches.is_empty() {
            out.push_str("  no rule matches this tool\n");
        }
        for found in &self.explained.matches {
            out.push_str(&rule_text(found, context));
        }
        if !self.facts.is_seen {
            let why = match self.body {
                broker_setup::BODY => "the embedded body has no such tool",
                _ => "embody has not listed this tool yet, so its annotations are unknown",
            };
            let _ = writeln!(out, "  {DIM}{why}{DIM:#}");
        }
        out
    }

    fn class_from(&self) -> &'static str {
        class_because(self.explained.class_from, self.body, self.facts.is_seen, self.facts.is_trusted)
    }

    fn ways(&self) -> Vec<&'static str> {
        self.explained.ruled.via.iter().copied().map(Via::name).collect()
    }

    fn as_json(&self, context: &Context) -> serde_json::Value {
        let ruled = &self.explained.ruled;
        json!({
            "tool": self.tool,
            "body": self.body,
            "class": ruled.class.name(),
            "class_because": self.class_from(),
            "gate": ruled.gate.name(),
            "gate_because": gate_because(&self.explained),
            "via": self.ways(),
            "reasons": ruled.reasons,
            "addresses": self.addresses.as_ref().map(|found| json!({ "clear": found.clear, "unclear": found.unclear })),
            "rules": self.explained.matches.iter().filter_map(|found| rule_json(found, context)).collect::<Vec<_>>(),
            "is_seen": self.facts.is_seen,
            "policy_version": self.version,
        })
    }
}

fn rule<'a>(found: &Match, context: &'a Context) -> Option<(&'a Rule, String, Option<String>)> {
    let rule = context.config.policy.rules.get(found.index)?;
    let key = format!("policy.rule[{}]", found.index);
    let source = context.config.origin(&format!("{key}.tools")).source();
    Some((rule, key, source))
}

fn holds(found: &Match) -> &'static str {
    match found.holds {
        Some(true) => "matches",
        Some(false) => "does not match: its condition is false",
        None => "cannot be evaluated: it may only make the decision stricter",
    }
}

fn rule_text(found: &Match, context: &Context) -> String {
    let Some((rule, key, source)) = rule(found, context) else { return String::new() };
    let mut out = format!("  {key} {DIM}{}{DIM:#} {}", source.unwrap_or_default(), holds(found));
    let counts = match (found.sets_class, found.sets_gate) {
        (true, true) => ", sets class and gate",
        (true, false) => ", sets the class",
        (false, true) => ", sets the gate",
        (false, false) => "",
    };
    let _ = writeln!(out, "{counts}");
    let _ = writeln!(out, "    tools {}", printable(&rule.tools.join(", ")));
    if let Some(when) = &rule.when {
        let _ = writeln!(out, "    when {}", printable(when));
    }
    let class = rule.class.map(|class| format!("class {}", class.name()));
    let gate = rule.gate.map(|gate| format!("gate {}", gate.name()));
    let via = rule.via.as_ref().map(|ways| {
        let ways: Vec<&str> = ways.iter().map(|way| way.name()).collect();
        format!("via {}", ways.join(", "))
    });
    for line in [class, gate, via].into_iter().flatten() {
        let _ = writeln!(out, "    {line}");
    }
    for test in raw_text_tests(rule) {
        let _ = writeln!(out, "    {WARN}warning:{WARN:#} this rule {}", printable(&test.problem()));
        let _ = writeln!(out, "    hint: {}", printable(&test.hint()));
    }
    out
}

fn uses_addresses(explained: &Explained, context: &Context) -> bool {
    let conditions = explained.matches.iter().filter_map(|found| rule(found, context)?.0.when.as_deref());
    conditions.filter_map(|when| Condition::new(when).ok()).any(|when| when.uses_addresses())
}

/// A rule that allows calls that were not meant.
#[derive(Serialize)]
pub(super) struct RuleWarning {
    pub(super) key: String,
    pub(super) source: Option<String>,
    pub(super) message: String,
    pub(super) hint: String,
}

impl RuleWarning {
    pub(super) fn text(&self) -> String {
        let source = self.source.as_ref().map(|source| format!("{source}: ")).unwrap_or_default();
        format!("{source}{}", self.message)
    }
}

pub(super) fn warnings(config: &Config) -> Vec<RuleWarning> {
    let of_rule = |(index, rule): (usize, &Rule)| {
        let key = format!("policy.rule[{index}].when");
        let source = config.origin(&key).source();
        let warning = move |test: RawTextTest| RuleWarning {
            message: format!("`{key}` {}", test.problem()),
            hint: test.hint(),
            source: source.clone(),
            key: key.clone(),
        };
        raw_text_tests(rule).into_iter().map(warning).collect::<Vec<_>>()
    };
    config.policy.rules.iter().enumerate().flat_map(of_rule).collect()
}

/// The tests of a part of an argument's text by which this rule allows calls. A class that is not asked about allows too.
fn raw_text_tests(rule: &Rule) -> Vec<RawTextTest> {
    let is_mild = |class| matches!(class, Class::Read | Class::Write);
    let allows = match rule.gate {
        Some(gate) => gate == Gate::Allow,
        None => rule.class.is_some_and(is_mild),
    };
    let condition = rule.when.as_deref().filter(|_| allows).and_then(|when| Condition::new(when).ok());
    condition.map(|condition| condition.raw_text_tests()).unwrap_or_default()
}

fn rule_json(found: &Match, context: &Context) -> Option<serde_json::Value> {
    let (rule, key, source) = rule(found, context)?;
    Some(json!({
        "key": key,
        "source": source,
        "holds": found.holds,
        "sets_class": found.sets_class,
        "sets_gate": found.sets_gate,
        "tools": rule.tools,
        "when": rule.when,
        "class": rule.class,
        "gate": rule.gate,
        "via": rule.via,
        "reason": rule.reason,
    }))
}

struct ResolvedTool {
    tool: String,
    /// Empty if unknown.
    body: String,
    facts: ToolFacts,
}

struct ToolFacts {
    annotations: Annotations,
    is_trusted: bool,
    /// Whether its server ever listed it.
    is_seen: bool,
}

/// Resolves `TOOL` or `BODY/TOOL` without starting anything.
fn resolve_tool(text: &str, body: Option<&str>, context: &Context) -> Result<ResolvedTool, CliError> {
    if let Some(body) = body.filter(|body| !is_body(body, context)) {
        return Err(no_body(body, context));
    }
    // The name of a tool may contain a slash too: if a body is given, or if a body has listed it.
    let split = text.split_once('/').filter(|_| body.is_none());
    let (named, tool) = match split {
        Some((prefix, rest)) if is_body(prefix, context) => (Some(prefix), rest),
        _ => (body, text),
    };
    let pins = store::with_existing(context, async |store| {
        store::pins(store, usize::MAX, |pin| pin.tool == tool).await
    })?;
    let mut pins = pins.unwrap_or_default();
    pins.retain(|pin| is_body(&pin.body, context));
    if let (Some((prefix, _)), None, true) = (split, named, pins.is_empty()) {
        return Err(no_body(prefix, context)
            .hint(format!("if the tool's name is `{tool}`, pass its body with `--body`")));
    }
    let body = named.or_else(|| owner(tool, &pins, context)).unwrap_or_default().to_owned();
    let facts = tool_facts(&body, tool, &pins, context);
    Ok(ResolvedTool { tool: tool.to_owned(), body, facts })
}

fn bodies(context: &Context) -> impl Iterator<Item = &str> {
    let configured = context.config.bodies.iter().map(|body| body.name.as_str());
    [broker_setup::BODY, broker_setup::MIND].into_iter().chain(configured)
}

fn is_body(name: &str, context: &Context) -> bool {
    bodies(context).any(|body| body == name)
}

fn no_body(name: &str, context: &Context) -> CliError {
    let names: Vec<String> = bodies(context).map(|body| format!("`{body}`")).collect();
    CliError::usage(format!("unknown body `{name}`")).hint(format!("known bodies: {}", names.join(", ")))
}

/// The body of a tool when none is given. As for hosts, other bodies win over the embedded ones.
fn owner<'a>(tool: &str, pins: &'a [ToolPin], context: &'a Context) -> Option<&'a str> {
    match (pins, context.config.bodies.as_slice()) {
        ([only], _) => Some(&only.body),
        ([], _) if embody_body::Tool::from_name(tool).is_some() => Some(broker_setup::BODY),
        ([], _) if is_listed(&embody_mind::server::tools(), tool) => Some(broker_setup::MIND),
        (_, [only]) => Some(&only.name),
        _ => None,
    }
}

fn is_listed(tools: &[embody_mcp::Tool], name: &str) -> bool {
    tools.iter().any(|tool| tool.name == name)
}

fn tool_facts(body: &str, tool: &str, pins: &[ToolPin], context: &Context) -> ToolFacts {
    let pin = pins.iter().find(|pin| pin.body == body);
    match body {
        broker_setup::MIND => ToolFacts {
            annotations: Annotations::of_mind(tool),
            is_trusted: true,
            is_seen: pin.is_some() || is_listed(&embody_mind::server::tools(), tool),
        },
        broker_setup::BODY => embedded(tool),
        _ => {
            let configured = context.config.bodies.iter().find(|configured| configured.name == body);
            ToolFacts {
                annotations: pin.map(hints).unwrap_or_default(),
                is_trusted: configured.is_some_and(|body| body.trust_annotations == Some(true)),
                is_seen: pin.is_some(),
            }
        }
    }
}

/// The annotations of the embedded body, which are trusted.
fn embedded(tool: &str) -> ToolFacts {
    // Rules may name a tool that is not offered without a channel.
    let listed = embody_body::Tool::from_name(tool).map(embody_body::server::definition);
    let annotations = listed.as_ref().and_then(|listed| listed.annotations.as_ref());
    let annotations = annotations.map(|hints| Annotations {
        read_only_hint: Some(hints.read_only_hint),
        destructive_hint: Some(hints.destructive_hint),
        open_world_hint: Some(hints.open_world_hint),
        is_new: false,
    });
    ToolFacts { annotations: annotations.unwrap_or_default(), is_trusted: true, is_seen: listed.is_some() }
}

fn hints(pin: &ToolPin) -> Annotations {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Hints {
        annotations: Annotations,
    }
    let hints = serde_json::from_str::<Hints>(&pin.pinned.text).unwrap_or_default().annotations;
    Annotations { is_new: pin.is_new, ..hints }
}
