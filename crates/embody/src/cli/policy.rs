//! `embody policy test`: what the rules say about a call, without making it.

use std::fmt::Write;
use std::process::ExitCode;

use anstyle::Style;
use clap::{Args, Subcommand};
use embody_broker::arguments::Arguments;
use embody_broker::policy::{ClassFrom, Explained, Facts, Gate, Match, Via};
use serde_json::json;
use serde_json::value::RawValue;

use super::Context;
use super::policy_tool::{self, Known, Meant};
use super::who::Who;
use crate::config::resolved::Rule;
use crate::failure::Failure;
use crate::output::{self, printable};
use crate::{input, nerves, policy};

const EXAMPLES: &str = "Examples:
  embody policy test send_email --args '{\"to\": \"bob@example.com\"}'
  embody policy test delete_file --body files --channel telegram
  embody policy test embody/create_task
  embody policy test send_email --args - < call.json";

const HEAD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

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
    /// The body: one of yours, `embody` or `mind` [default: the only one that is known to have the tool,
    /// else the only one of yours]
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
    let Meant { tool, body, known } = policy_tool::meant(&args.tool, args.body.as_deref(), context)?;
    let rules = policy::of(&context.config)?;
    let facts = Facts {
        tool: &tool,
        body: &body,
        args: arguments.value(),
        channel: &args.channel,
        user: &args.who.user(),
        session: &args.session,
    };
    let said = rules.policy.explain(&facts, known.annotations, known.is_trusted);
    let tested = Tested { tool: &tool, body: &body, said, known, version: &rules.version };
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
        row("class", ruled.class.name(), self.class_from());
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
            let why = match self.body {
                nerves::BODY => "the embedded body has no such tool",
                _ => "this tool was never seen: what its server says of it is not known",
            };
            let _ = writeln!(out, "  {DIM}{why}{DIM:#}");
        }
        out
    }

    fn class_from(&self) -> &'static str {
        match (self.said.class_from, self.body) {
            (from @ (ClassFrom::Rule | ClassFrom::Name), _) => from.words(),
            (_, nerves::BODY) if self.known.is_seen => "the embedded body says so",
            (_, nerves::MIND) => ClassFrom::Name.words(),
            // A hint of who is trusted is more than a hint.
            (ClassFrom::Hint, _) if self.known.is_trusted => ClassFrom::Annotations.words(),
            (from, _) => from.words(),
        }
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
            "class_because": self.class_from(),
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
