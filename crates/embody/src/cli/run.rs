//! `embody run`: one turn of an agent, its reply on stdout.

use std::io::{IsTerminal, Write, stderr};
use std::process::ExitCode;

use clap::Args;
use embody_agent::event::TurnEvent;
use embody_agent::turn::{PromptRequest, TurnInput, thread_title};
use embody_store::threads::NewThread;
use embody_store::{Scope, Store};
use serde_json::json;

use super::args::{SCHEDULED, read_text};
use super::{Context, ScopeArgs};
use crate::app::{self, App};
use crate::error::CliError;
use crate::output::printable;
use crate::{output, serve, store};

const EXAMPLES: &str = "Examples:
  embody run 'What did I promise Ann?'          one turn in a new thread
  embody run --thread ID 'And by when?'         continue that thread
  embody run --channel scheduled 'Write the digest.'
  git log -5 | embody run -                     the text from stdin";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RunArgs {
    /// The message to the agent; `-` reads it from stdin
    text: String,
    /// The channel that the turn is treated as
    #[arg(long, value_parser = ["web", "telegram", "scheduled"], default_value = "web")]
    channel: String,
    /// Continue this thread
    #[arg(long, value_name = "ID")]
    thread: Option<String>,
    /// The id of the task that the message is about
    #[arg(long, value_name = "ID")]
    task: Option<String>,
    #[command(flatten)]
    scope: ScopeArgs,
}

pub(crate) fn run(args: &RunArgs, context: Context) -> Result<ExitCode, CliError> {
    let text = read_text(&args.text)?;
    if text.trim().is_empty() {
        return Err(CliError::usage("the message is empty").hint("embody run 'What did I promise Ann?'"));
    }
    let scope = args.scope.resolve()?;
    let json = context.json;
    store::block_on_multi_thread(async move {
        let ending = serve::shutdown_signal()?;
        let times = app::terminal_timeouts();
        let app = App::open(context.settings, &ScopeArgs::owner(), scope.agent(), times).await?;
        let turned = tokio::select! {
            turned = turn(&app, args, &scope, text) => turned,
            () = ending.cancelled() => Err(CliError::new("interrupted")),
        };
        app.close().await;
        let (thread, turned) = turned?;
        if json {
            output::json(&json!({
                "thread": thread,
                "reply": turned.reply,
                "usage": turned.usage,
                "receipt": turned.receipt,
                "rounds": turned.rounds,
            }))?;
        } else {
            match &turned.reply {
                Some(reply) => output::plain(&format!("{}\n", reply.trim_end()))?,
                None => output::stderr_line("the agent did not reply"),
            }
            if turned.is_cut {
                output::stderr_line("the reply is cut: the model reached its output limit");
            }
            output::stderr_line(&format!("thread {thread}"));
        }
        Ok(ExitCode::SUCCESS)
    })
}

async fn turn(
    app: &App,
    args: &RunArgs,
    scope: &Scope,
    text: String,
) -> Result<(String, embody_agent::turn::TurnResult), CliError> {
    // Without a model no thread is created.
    if !app.agent.has_model() {
        return Err(app::no_model_error(&app.prompts.settings().config));
    }
    let thread = thread(&app.store, args, scope, &text).await?;
    let prompt = PromptRequest {
        channel: Some(args.channel.clone()),
        background: args.channel == SCHEDULED,
        task: args.task.clone(),
        ..PromptRequest::new(scope.clone())
    };
    let input = TurnInput { prompt, thread: thread.clone(), text };
    let shows = stderr().is_terminal();
    let mut on = |event: TurnEvent| {
        if let (true, Some(line)) = (shows, line(&event)) {
            let _ = writeln!(stderr(), "{line}");
        }
    };
    let turned = app.agent.run_turn(input, &mut on).await?;
    Ok((thread, turned))
}

async fn thread(store: &Store, args: &RunArgs, scope: &Scope, text: &str) -> Result<String, CliError> {
    let Some(id) = &args.thread else {
        let new = NewThread { channel: args.channel.clone(), external: None, title: thread_title(text) };
        return Ok(store.threads().open(scope, new).await?.id);
    };
    let known = store.threads().get(scope.user(), id).await?;
    match known {
        Some(thread) if thread.agent == scope.agent() => Ok(thread.id),
        Some(thread) => Err(CliError::new(format!("thread `{id}` belongs to agent `{}`", thread.agent))
            .hint(format!("pass `--agent {}`", thread.agent))),
        None => Err(CliError::new(format!("user `{}` has no thread `{id}`", scope.user()))
            .hint("leave `--thread` out to start a new thread")),
    }
}

fn line(event: &TurnEvent) -> Option<String> {
    match event {
        TurnEvent::Tool { name, .. } => Some(format!("· {}", printable(name))),
        TurnEvent::ToolDone { name, decision: Some(decision), approval, .. } => {
            let id = approval.as_ref().map(|id| format!(" ({id})")).unwrap_or_default();
            Some(format!("· {}: {decision}{id}", printable(name)))
        }
        TurnEvent::Waiting { after, reason } => {
            Some(format!("· retry in {} s: {}", after.as_secs(), printable(reason)))
        }
        TurnEvent::Started { .. } | TurnEvent::Text(_) | TurnEvent::ToolDone { .. } => None,
    }
}
