//! `embody server list` and `embody server tools`: what is known without starting anything.

use std::fmt::Write;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use clap::Args;
use embody_text::truncate;
use serde_json::json;

use super::test::class_words;
use super::{Context, unknown};
use crate::cli::ScopeArgs;
use crate::error::CliError;
use crate::output::{one_line, printable};
use crate::server_tools::{self, Server, ServerTool, class_counts, quarantined};
use crate::time::display;
use crate::{broker_setup, store};

const HEAD: Style = Style::new().bold();
const OK: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const WARN: Style = AnsiColor::Yellow.on_default();
const DIM: Style = Style::new().dimmed();
const ERROR_CHARS: usize = 300;

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  embody server tools\n  embody server tools files --json")]
pub(crate) struct ToolsArgs {
    /// The server's name; `embody` and `mind` are the embedded ones [default: all configured ones]
    name: Option<String>,
}

pub(super) fn list(context: &Context) -> Result<ExitCode, CliError> {
    let owner = ScopeArgs::owner();
    let config = &context.config;
    let stored = store::with_existing(context, async |store| {
        server_tools::servers(config, Some(store), &owner, &owner).await
    })?;
    let servers = match stored {
        Some(servers) => servers,
        None => store::block_on(server_tools::servers(config, None, &owner, &owner))?,
    };
    context.print_list("servers", &servers, Server::json, |servers| match servers {
        [] => "No server is configured. Add one: embody server add NAME -- COMMAND\n".to_owned(),
        servers => servers.iter().map(server_text).collect(),
    })
}

pub(crate) fn server_text(server: &Server) -> String {
    let Server { name, target, health, tools } = server;
    let state = match server.state() {
        "ok" => format!("{OK}ok{OK:#}     "),
        "failed" => format!("{BAD}failed{BAD:#} "),
        _ => format!("{DIM}unknown{DIM:#}"),
    };
    let at = health.as_ref().map(|health| format!(", checked {}", display(health.checked_at)));
    let tools = tools.as_deref().map_or_else(|| "no tools known".to_owned(), counts);
    let mut out = format!("{HEAD}{name:12}{HEAD:#} {state} {tools}{}\n", at.unwrap_or_default());
    let _ = writeln!(out, "             {DIM}{}{DIM:#}", printable(target));
    match health {
        None => {
            let _ = writeln!(out, "             never contacted: embody server test {name}");
        }
        Some(health) => {
            if let Some((error, at)) = health.error.as_ref().zip(health.error_at) {
                let (error, at) = (one_line(&truncate(error, ERROR_CHARS)), display(at));
                let style = if health.is_ok { DIM } else { BAD };
                let _ = writeln!(out, "             {style}last error{style:#} {at}: {error}");
            }
        }
    }
    out
}

fn counts(tools: &[ServerTool]) -> String {
    let classes: Vec<String> =
        class_counts(tools).iter().map(|(class, count)| format!("{count} {}", class_words(*class))).collect();
    let classes = if classes.is_empty() { String::new() } else { format!(" ({})", classes.join(", ")) };
    let waiting = match quarantined(tools) {
        0 => String::new(),
        count => format!(", {WARN}{count} quarantined{WARN:#}"),
    };
    format!("{}{classes}{waiting}", crate::output::pluralize(tools.len() as u64, "tool"))
}

pub(super) fn tools(args: &ToolsArgs, context: &Context) -> Result<ExitCode, CliError> {
    let (config, owner) = (&context.config, ScopeArgs::owner());
    let is_configured = |name: &str| config.bodies.iter().any(|body| body.name == name);
    let is_embedded = |name: &str| [broker_setup::BODY, broker_setup::MIND].contains(&name);
    if let Some(name) = args.name.as_deref().filter(|name| !is_configured(name) && !is_embedded(name)) {
        return Err(unknown(config, name));
    }
    let stored = store::with_existing(context, async |store| {
        server_tools::known_tools(config, Some(store), &owner, &owner).await
    })?;
    let mut tools = match stored {
        Some(tools) => tools,
        None => store::block_on(server_tools::known_tools(config, None, &owner, &owner))?,
    };
    tools.retain(|tool| match &args.name {
        Some(name) => tool.body == *name,
        None => is_configured(&tool.body),
    });
    context.print(&json!({ "tools": tools }), || match (tools.is_empty(), &args.name) {
        (true, None) if config.bodies.is_empty() => {
            "No server is configured. Add one: embody server add NAME -- COMMAND\n".to_owned()
        }
        (true, name) => {
            let name = name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
            format!("No tools are known. List them: embody server test{name}\n")
        }
        (false, _) => tools_text(&tools),
    })
}

fn tools_text(tools: &[ServerTool]) -> String {
    let mut out = String::new();
    let width = tools.iter().map(|tool| tool.tool.chars().count()).max().unwrap_or_default().min(40);
    let mut last = None;
    for tool in tools {
        if last != Some(&tool.body) {
            let _ = writeln!(out, "{HEAD}{}{HEAD:#}", printable(&tool.body));
            last = Some(&tool.body);
        }
        let (name, class) = (one_line(&tool.tool), class_words(tool.class));
        let _ =
            writeln!(out, "  {name:width$}  {class:19}  {:5}  {DIM}{}{DIM:#}", tool.gate.name(), why(tool));
        if tool.name != tool.tool {
            let _ = writeln!(out, "  {:width$}  hosts see it as {}", "", one_line(&tool.name));
        }
        if let Some(reason) = &tool.quarantined {
            let _ = writeln!(out, "  {:width$}  {WARN}quarantined:{WARN:#} {}", "", one_line(reason));
        }
    }
    if tools.iter().any(|tool| tool.depends_on_arguments) {
        out.push_str("Rules with `when` depend on the arguments: embody policy test TOOL --args JSON\n");
    }
    out
}

fn why(tool: &ServerTool) -> String {
    let rules = match tool.rules.is_empty() {
        true => String::new(),
        false => format!(": {}", tool.rules.join(", ")),
    };
    format!("{}; {}{rules}", tool.class_because, tool.gate_because)
}
