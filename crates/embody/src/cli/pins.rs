//! `embody pins …`: the pinned definitions of tools, those that are quarantined and why, and the operator's decision.
//!
//! Accepts exactly the definition that was shown: if the server shows another one in the meantime, it stays quarantined.

use std::fmt::Write;
use std::io::{IsTerminal, stdin};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use clap::{Args, Subcommand};
use embody_broker::approval::visible_json;
use embody_broker::catalogue::quarantine_reason;
use embody_broker::policy::{Glob, Via};
use embody_broker::visible;
use embody_mind::full_diff;
use embody_store::pins::{AcceptPin, AcceptPinOutcome, ToolPin};
use serde_json::json;

use super::Context;
use crate::error::{CliError, ErrorContext};
use crate::output::{self, pluralize, printable};
use crate::status::{is_waiting, pin_state};
use crate::{store, time};

const EXAMPLES: &str = "Examples:
  embody pins list                           definitions that need your decision, and why
  embody pins list --all                     every known tool
  embody pins accept mail/send_email         show the change and accept it
  embody pins accept 'mail/*'                the same for all tools of a body
  embody pins accept mail/send_email --hash 5f0c2a91
                                             only if it is the one that you have looked at";

const GONE: Style = AnsiColor::Red.on_default();
const NEW: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Yellow.on_default();
const DIM: Style = Style::new().dimmed();
const SHORT_HASH_CHARS: usize = 8;
/// The least that a person must write of a hash.
const SHORTEST_HASH: usize = 4;

#[derive(Subcommand, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) enum PinsCommand {
    /// List quarantined and changed definitions, and why
    #[command(after_help = "Examples:\n  embody pins list\n  embody pins list --all --json")]
    List(ListArgs),
    /// Show the current definition of a tool and accept it
    #[command(
        after_help = "Examples:\n  embody pins accept mail/send_email\n  embody pins accept 'mail/*'\n  embody pins accept mail/send_email --hash 5f0c2a91"
    )]
    Accept(AcceptArgs),
}

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// List every known tool, not only quarantined and changed ones
    #[arg(long)]
    all: bool,
}

#[derive(Args, Debug)]
pub(crate) struct AcceptArgs {
    /// BODY/TOOL, or BODY and TOOL, or TOOL if only one body has it; BODY/* for all tools of a body that need a decision,
    /// with `*` and `?` as in rules
    #[arg(required = true, num_args = 1..=2, value_name = "TOOL")]
    tool: Vec<String>,
    /// The hash of the definition that you reviewed; the first 4 characters are enough
    #[arg(long)]
    hash: Option<String>,
}

pub(crate) fn run(command: &PinsCommand, context: &Context) -> Result<ExitCode, CliError> {
    match command {
        PinsCommand::List(args) => list(args, context),
        PinsCommand::Accept(args) => accept(args, context),
    }
}

fn list(args: &ListArgs, context: &Context) -> Result<ExitCode, CliError> {
    let mut pins = all_pins(context)?;
    let seen = pins.len();
    pins.retain(|pin| args.all || is_waiting(pin));
    context.print_list("pins", &pins, as_json, |pins| match (pins, seen) {
        ([], 0) => "No tool is known yet.\n".to_owned(),
        ([], _) => {
            let seen = pluralize(seen, "definition");
            format!("No definition needs your decision. Known: {seen}; `--all` lists them.\n")
        }
        (pins, _) => pins.iter().map(as_text).collect(),
    })
}

fn all_pins(context: &Context) -> Result<Vec<ToolPin>, CliError> {
    let pins = store::with_existing(context, async |store| store::pins(store, usize::MAX, |_| true).await)?;
    Ok(pins.unwrap_or_default())
}

fn accept(args: &AcceptArgs, context: &Context) -> Result<ExitCode, CliError> {
    let pins = all_pins(context)?;
    if let Some(glob) = glob(&args.tool) {
        return accept_all(args, &glob, pins, context);
    }
    let pin = find(&args.tool, pins)?;
    let hash = shown_hash(&pin);
    if !is_waiting(&pin) {
        output::stderr_line(&format!("{} has not changed; there is nothing to accept", name(&pin)));
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(wanted) = args.hash.as_deref().filter(|wanted| !is_same(wanted, hash)) {
        return Err(stale(&pin, wanted));
    }
    if !context.json {
        output::styled(&as_text(&pin))?;
    }
    if args.hash.is_none() && stdin().is_terminal() && !confirmed("Accept it?")? {
        return Err(CliError::new("nothing was accepted"));
    }
    let accepted = accept_one(&pin, context)?;
    context.print_plain(&as_json(&accepted), || format!("accepted {}\n", name(&accepted)))
}

/// Accepts every matching quarantined definition, each only if it is still the one that was shown.
fn accept_all(
    args: &AcceptArgs,
    glob: &Glob,
    mut pins: Vec<ToolPin>,
    context: &Context,
) -> Result<ExitCode, CliError> {
    if args.hash.is_some() {
        return Err(CliError::usage("`--hash` is for one tool").hint("leave it out, or name the tool"));
    }
    pins.retain(|pin| glob.matches(&pin.body, &pin.tool));
    if pins.is_empty() {
        return Err(not_found(&args.tool.join("/")));
    }
    pins.retain(is_waiting);
    if pins.is_empty() && !context.json {
        output::stderr_line("no definition needs your decision; there is nothing to accept");
        return Ok(ExitCode::SUCCESS);
    }
    if !context.json {
        output::styled(&pins.iter().map(as_text).collect::<String>())?;
    }
    let question = format!("Accept {}?", pluralize(pins.len(), "definition"));
    if !pins.is_empty() && stdin().is_terminal() && !confirmed(&question)? {
        return Err(CliError::new("nothing was accepted"));
    }
    let mut accepted = Vec::with_capacity(pins.len());
    for pin in &pins {
        let pin = accept_one(pin, context)?;
        if !context.json {
            output::plain(&format!("accepted {}\n", name(&pin)))?;
        }
        accepted.push(as_json(&pin));
    }
    if context.json {
        output::json(&json!({ "pins": accepted }))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn accept_one(pin: &ToolPin, context: &Context) -> Result<ToolPin, CliError> {
    let (body, tool, hash) = (pin.body.clone(), pin.tool.clone(), shown_hash(pin).to_owned());
    let accept = AcceptPin { body, tool, hash, by: Via::Cli.name().to_owned() };
    match store::with_existing(context, async |store| Ok(store.pins().accept(accept).await?))? {
        Some(AcceptPinOutcome::Accepted(accepted)) => Ok(accepted),
        Some(AcceptPinOutcome::Stale(now)) => Err(stale(&now, shown_hash(pin))),
        Some(AcceptPinOutcome::Missing) | None => Err(not_found(&pin.tool)),
    }
}

fn glob(arguments: &[String]) -> Option<Glob> {
    let pattern = arguments.join("/");
    pattern.contains(['*', '?']).then(|| Glob::new(&pattern))
}

/// The pin of a tool that is given as `TOOL`, `BODY/TOOL` or `BODY TOOL`.
fn find(names: &[String], pins: Vec<ToolPin>) -> Result<ToolPin, CliError> {
    let is_it = |pin: &ToolPin| match names {
        [body, tool] => pin.body == *body && pin.tool == *tool,
        [name] => pin.tool == *name || format!("{}/{}", pin.body, pin.tool) == *name,
        _ => false,
    };
    let mut found: Vec<ToolPin> = pins.into_iter().filter(is_it).collect();
    match (found.pop(), found.is_empty()) {
        (Some(pin), true) => Ok(pin),
        (Some(last), false) => {
            let bodies: Vec<&str> = found.iter().chain([&last]).map(|pin| pin.body.as_str()).collect();
            let message = format!("more than one body has `{}`: {}", last.tool, bodies.join(", "));
            Err(CliError::usage(message).hint("write BODY/TOOL"))
        }
        (None, _) => Err(not_found(&names.join("/"))),
    }
}

fn not_found(name: &str) -> CliError {
    CliError::new(format!("unknown tool `{name}`")).hint("`embody pins list --all` lists the known tools")
}

fn stale(now: &ToolPin, wanted: &str) -> CliError {
    let (name, hash) = (name(now), short(shown_hash(now)));
    let message = format!("the definition of `{name}` is now `{hash}`, not `{}`", short(wanted));
    CliError::new(message).hint("it was not accepted: read `embody pins list` again")
}

fn confirmed(question: &str) -> Result<bool, CliError> {
    output::plain(&format!("{question} [y/N] "))?;
    let mut line = String::new();
    stdin().read_line(&mut line).context("the answer cannot be read")?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}

fn is_same(wanted: &str, hash: &str) -> bool {
    wanted.len() >= SHORTEST_HASH && hash.starts_with(wanted)
}

fn short(hash: &str) -> &str {
    hash.get(..SHORT_HASH_CHARS).unwrap_or(hash)
}

fn name(pin: &ToolPin) -> String {
    printable(&visible::line(&format!("{}/{}", pin.body, pin.tool))).into_owned()
}

fn shown_hash(pin: &ToolPin) -> &str {
    &pin.seen.as_ref().unwrap_or(&pin.pinned).hash
}

/// The part that the operator accepts: a whole new definition, or the changes of an existing one.
fn diff(pin: &ToolPin) -> Option<String> {
    match (&pin.seen, pin.accepted) {
        (None, true) if !pin.is_new => None,
        (None, _) => Some(full_diff("", &visible_json(&pin.pinned.text))),
        (Some(seen), true) => Some(full_diff(&visible_json(&pin.pinned.text), &visible_json(&seen.text))),
        (Some(seen), false) => Some(full_diff("", &visible_json(&seen.text))),
    }
}

fn as_text(pin: &ToolPin) -> String {
    let state = if pin.accepted { pin_state(pin) } else { "quarantined" };
    let (name, hash, at) = (name(pin), short(shown_hash(pin)), time::display(pin.changed_at));
    let mut out = format!("{state:11} {name}  {DIM}{hash}  {at}{DIM:#}\n");
    if let Some(reason) = quarantine_reason(pin) {
        let _ = writeln!(out, "  {BAD}{reason}{BAD:#}");
    }
    for line in diff(pin).unwrap_or_default().lines() {
        let style = match line.as_bytes().first() {
            Some(b'+') => NEW,
            Some(b'-') => GONE,
            _ => DIM,
        };
        let _ = writeln!(out, "  {style}{line}{style:#}");
    }
    out
}

fn as_json(pin: &ToolPin) -> serde_json::Value {
    json!({
        "body": pin.body,
        "tool": pin.tool,
        "state": pin_state(pin),
        "hash": shown_hash(pin),
        "pinned_hash": pin.accepted.then_some(&pin.pinned.hash),
        "pinned": pin.accepted.then_some(&pin.pinned.text),
        "shown": pin.seen.as_ref().or_else(|| (!pin.accepted).then_some(&pin.pinned)).map(|shown| &shown.text),
        "reason": quarantine_reason(pin).map(|reason| reason.to_string()),
        "diff": diff(pin),
        "first_seen_at": time::rfc3339(pin.first_seen_at),
        "changed_at": time::rfc3339(pin.changed_at),
        "accepted_by": pin.accepted_by,
    })
}
