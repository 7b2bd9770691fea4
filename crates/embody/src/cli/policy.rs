//! `embody policy test`: what the rules say about a call, without making it.

use std::fmt::Write;
use std::process::ExitCode;

use anstyle::Style;
use clap::{Args, Subcommand};
use embody_broker::arguments::Arguments;
use embody_broker::policy::{Annotations, Explained, Facts, Gate, Match, Via};
use embody_store::ToolPin;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::Context;
use super::who::Who;
use crate::config::resolved::Rule;
use crate::failure::Failure;
use crate::output::{self, printable};
use crate::{input, policy, store};

const EXAMPLES: &str = "Examples:
  embody policy test send_email --args '{\"to\": \"bob@example.com\"}'
  embody policy test delete_file --body files --channel telegram
  embody policy test send_email --args - < call.json";

const HEAD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
/// The mind's place among the bodies.
const MIND: &str = "mind";

/// What to do with it.
#[derive(Subcommand, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) enum PolicyCommand {
    /// Says what would happen to a call, and why; nothing is called
    Test(TestArgs),
}

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TestArgs {
    /// The tool, by the name that its body gives it, or BODY/TOOL
    tool: String,
    /// The call's arguments, a JSON object; `-` reads stdin
    #[arg(long, value_name = "JSON", default_value = "{}")]
    args: String,
    /// The body [default: the only one that was seen to have the tool, else the only one there is]
    #[arg(long)]
    body: Option<String>,
    /// The channel that the call comes through
    #[arg(long, default_value = "mcp")]
    channel: String,
    /// The session that it is made in
    #[arg(long, default_value = "test")]
    session: String,
    #[command(flatten)]
    who: Who,
}

pub(crate) fn run(command: &PolicyCommand, context: &Context) -> Result<ExitCode, Failure> {
    match command {
        PolicyCommand::Test(args) => test(args, context),
    }
}

fn test(args: &TestArgs, context: &Context) -> Result<ExitCode, Failure> {
    let arguments = arguments(&input::text(&args.args)?)?;
    let (named, tool) = split(args, context);
    let pins = store::read(context, async |store| Ok(seen(store, tool).await?))?.unwrap_or_default();
    let body = body(named, &pins, context);
    let known = known(&body, tool, &pins, context);
    let rules = policy::of(&context.config)?;
    let facts = Facts {
        tool,
        body: &body,
        args: arguments.value(),
        channel: &args.channel,
        user: &args.who.user(),
        session: &args.session,
    };
    let said = rules.policy.explain(&facts, known.annotations, known.is_trusted);
    let tested = Tested { tool, body: &body, said, known, version: &rules.version };
    if context.json {
        output::json(&tested.as_json(context))?;
    } else {
        output::styled(&tested.as_text(context))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn arguments(text: &str) -> Result<Arguments, Failure> {
    let wrong = |reason: &dyn std::error::Error| {
        Failure::usage("`--args` is no JSON object").because(reason).hint("write it like '{\"to\": \"bob\"}'")
    };
    let raw = RawValue::from_string(text.trim().to_owned()).map_err(|error| wrong(&error))?;
    Arguments::read(Some(&raw)).map_err(|error| wrong(&error))
}

/// The pins of every tool of this name.
async fn seen(store: &embody_store::Store, tool: &str) -> embody_store::Result<Vec<ToolPin>> {
    let mut found = Vec::new();
    let mut last = (String::new(), String::new());
    loop {
        let page = store.pins((&last.0, &last.1), 500).await?;
        let Some(end) = page.last() else { return Ok(found) };
        last = (end.body.clone(), end.tool.clone());
        found.extend(page.into_iter().filter(|pin| pin.tool == tool));
    }
}

/// The body that was named, if any, and the tool. A tool's own name may have a slash too.
fn split<'a>(args: &'a TestArgs, context: &Context) -> (Option<&'a str>, &'a str) {
    let is_body = |name: &str| name == MIND || context.config.bodies.iter().any(|body| body.name == name);
    match (&args.body, args.tool.split_once('/')) {
        (Some(body), _) => (Some(body), &args.tool),
        (None, Some((body, tool))) if is_body(body) => (Some(body), tool),
        (None, _) => (None, &args.tool),
    }
}

fn body(named: Option<&str>, pins: &[ToolPin], context: &Context) -> String {
    let seen = match pins {
        [only] => Some(only.body.as_str()),
        _ => None,
    };
    let configured = match context.config.bodies.as_slice() {
        [only] => Some(only.name.as_str()),
        _ => None,
    };
    named.or(seen).or(configured).unwrap_or_default().to_owned()
}

/// What is known of a tool besides its name.
struct Known {
    annotations: Annotations,
    is_trusted: bool,
    /// Whether its server was ever seen to have it.
    is_seen: bool,
}

fn known(body: &str, tool: &str, pins: &[ToolPin], context: &Context) -> Known {
    if body == MIND {
        return Known { annotations: Annotations::of_mind(tool), is_trusted: true, is_seen: true };
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Hints {
        annotations: Annotations,
    }
    let pin = pins.iter().find(|pin| pin.body == body);
    let hints = pin.and_then(|pin| serde_json::from_str::<Hints>(&pin.pinned.text).ok()).unwrap_or_default();
    let configured = context.config.bodies.iter().find(|configured| configured.name == body);
    Known {
        annotations: hints.annotations,
        is_trusted: configured.is_some_and(|body| body.trust_annotations),
        is_seen: pin.is_some(),
    }
}

/// What came of it.
struct Tested<'a> {
    tool: &'a str,
    body: &'a str,
    said: Explained,
    known: Known,
    version: &'a str,
}

impl Tested<'_> {
    fn as_text(&self, context: &Context) -> String {
        let ruled = &self.said.ruled;
        let body = if self.body.is_empty() { "no body" } else { self.body };
        let mut out = format!("{HEAD}{}{HEAD:#} of {}\n", printable(self.tool), printable(body));
        let mut row = |label: &str, value: &str, why: &str| {
            let _ = writeln!(out, "  {label:6} {value}  {DIM}{why}{DIM:#}");
        };
        row("class", ruled.class.name(), self.said.class_from.words());
        row("gate", ruled.gate.name(), self.gate_from());
        if ruled.gate == Gate::Ask {
            row("via", &self.ways().join(", "), "");
        }
        for reason in &ruled.reasons {
            row("reason", &printable(reason), "");
        }
        if self.said.matches.is_empty() {
            out.push_str("  no rule is about this tool\n");
        }
        for found in &self.said.matches {
            out.push_str(&rule_text(found, context));
        }
        if !self.known.is_seen {
            let _ = writeln!(
                out,
                "  {DIM}this tool was never seen: what its server says of it is not known{DIM:#}"
            );
        }
        out
    }

    fn gate_from(&self) -> &'static str {
        match self.said.matches.iter().any(|found| found.sets_gate) {
            true => "a rule sets it",
            false if self.said.ruled.via.is_empty() => "a rule asks, and the rules leave no way to ask",
            false => "the default of the class",
        }
    }

    fn ways(&self) -> Vec<&'static str> {
        self.said.ruled.via.iter().copied().map(Via::name).collect()
    }

    fn as_json(&self, context: &Context) -> serde_json::Value {
        let ruled = &self.said.ruled;
        json!({
            "tool": self.tool,
            "body": self.body,
            "class": ruled.class.name(),
            "class_because": self.said.class_from.words(),
            "gate": ruled.gate.name(),
            "gate_because": self.gate_from(),
            "via": self.ways(),
            "reasons": ruled.reasons,
            "rules": self.said.matches.iter().filter_map(|found| rule_json(found, context)).collect::<Vec<_>>(),
            "is_seen": self.known.is_seen,
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
        Some(true) => "holds",
        Some(false) => "does not hold",
        None => "cannot be told: it may only make things stricter",
    }
}

fn rule_text(found: &Match, context: &Context) -> String {
    let Some((rule, key, source)) = rule(found, context) else { return String::new() };
    let mut out = format!("  {key} {DIM}{}{DIM:#} {}", source.unwrap_or_default(), holds(found));
    let counts = match (found.sets_class, found.sets_gate) {
        (true, true) => ", and gives class and gate",
        (true, false) => ", and gives the class",
        (false, true) => ", and sets the gate",
        (false, false) => "",
    };
    let _ = writeln!(out, "{counts}");
    let _ = writeln!(out, "    tools {}", printable(&rule.tools.join(", ")));
    if let Some(when) = &rule.when {
        let _ = writeln!(out, "    when {}", printable(when));
    }
    let class = rule.class.map(|class| format!("class {class}"));
    let gate = rule.gate.map(|gate| format!("gate {gate}"));
    let via = rule.via.as_ref().map(|ways| {
        let ways: Vec<&str> = ways.iter().map(|way| way.as_str()).collect();
        format!("via {}", ways.join(", "))
    });
    for said in [class, gate, via].into_iter().flatten() {
        let _ = writeln!(out, "    {said}");
    }
    out
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
