//! `embody run`: one turn of an agent, its reply on stdout.

use std::io::{IsTerminal, Write, stderr, stdout};
use std::process::ExitCode;

use clap::Args;
use embody_agent::event::TurnEvent;
use embody_agent::model::FailureLog;
use embody_agent::turn::{PromptRequest, TurnBody, TurnError, TurnInput, TurnResult, thread_title};
use embody_broker::MissingServer;
use embody_store::threads::NewThread;
use embody_store::{IdSet, Scope, Store};
use rustix::termios::tcgetwinsize;
use serde_json::json;

use super::args::{SCHEDULED, read_text};
use super::{Context, ScopeArgs, ids};
use crate::app::{self, App};
use crate::error::CliError;
use crate::output::{one_line, printable};
use crate::{output, serve, store};

const EXAMPLES: &str = "Examples:
  embody run 'What did I promise Ann?'          one turn in a new thread
  embody run --thread ID 'And by when?'         continue that thread
  embody run --thread ID --retry                try its last turn again, which failed
  embody run --channel scheduled 'Write the digest.'
  git log -5 | embody run -                     the text from stdin";

/// Of a terminal that does not say how many it has.
const DEFAULT_COLUMNS: u16 = 80;

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RunArgs {
    /// The message to the agent; `-` reads it from stdin
    #[arg(required_unless_present = "retry")]
    text: Option<String>,
    /// Try the last turn of the thread again, which failed; it continues where that failed
    #[arg(long, requires = "thread", conflicts_with = "text")]
    retry: bool,
    /// The channel that the turn is treated as
    #[arg(long, value_parser = ["web", "telegram", "scheduled"], default_value = "web")]
    channel: String,
    /// Continue the conversation with this id, or its end
    #[arg(long, value_name = "ID")]
    thread: Option<String>,
    /// The number of the task that the message is about
    #[arg(long, value_name = "ID")]
    task: Option<String>,
    #[command(flatten)]
    scope: ScopeArgs,
}

pub(crate) fn run(args: &RunArgs, context: Context) -> Result<ExitCode, CliError> {
    let text = args.text.as_deref().map(read_text).transpose()?.unwrap_or_default();
    if text.trim().is_empty() && !args.retry {
        return Err(CliError::usage("the message is empty").hint("embody run 'What did I promise Ann?'"));
    }
    let scope = args.scope.resolve()?;
    let json = context.json;
    store::block_on_multi_thread(async move {
        let ending = serve::shutdown_signal()?;
        let (times, failures) = (app::terminal_timeouts(), FailureLog::Debug);
        let app = App::open(context.settings, &ScopeArgs::owner(), scope.agent(), times, failures).await?;
        let mut view = TerminalView::new(json);
        let turned = tokio::select! {
            turned = turn(&app, args, &scope, text, &mut view) => turned,
            () = ending.cancelled() => Err(CliError::new("interrupted")),
        };
        // Servers may take a while to end; the reply does not wait for them.
        let printed = match turned {
            Ok((thread, turned)) if json => print_json(&thread, &turned),
            Ok((thread, turned)) => print(&thread, &turned, &mut view),
            Err(error) => view.end_line().and(Err(error)),
        };
        app.close().await;
        printed.map(|()| ExitCode::SUCCESS)
    })
}

fn print_json(thread: &str, turned: &TurnResult) -> Result<(), CliError> {
    output::json(&json!({
        "thread": thread,
        "reply": turned.reply,
        "usage": turned.usage,
        "receipt": turned.receipt,
        "rounds": turned.rounds,
    }))
}

fn print(thread: &str, turned: &TurnResult, view: &mut TerminalView) -> Result<(), CliError> {
    match &turned.reply {
        Some(_) if view.has_reply => view.end_line()?,
        Some(reply) => output::plain(&format!("{}\n", reply.trim_end()))?,
        None => output::stderr_line("the agent did not reply"),
    }
    if turned.is_cut {
        output::stderr_line("the reply is cut: the model reached its output limit");
    }
    output::stderr_line(&format!("thread {thread}"));
    Ok(())
}

/// Shows a turn while it runs: text on a terminal that is stdout, calls and retries on one that is stderr.
struct TerminalView {
    shows_text: bool,
    shows_calls: bool,
    is_in_line: bool,
    /// Whether the line that counts retries is shown, which the next one replaces.
    is_retrying: bool,
    /// Whether text was shown since the last call: the reply, if the turn ends here.
    has_reply: bool,
}

impl TerminalView {
    fn new(json: bool) -> Self {
        let shows_text = stdout().is_terminal() && !json;
        Self {
            shows_text,
            shows_calls: stderr().is_terminal(),
            is_in_line: false,
            is_retrying: false,
            has_reply: false,
        }
    }

    fn show(&mut self, event: &TurnEvent) -> Result<(), CliError> {
        if let (Some(line), true) = (event.retry_line(), self.shows_calls) {
            return self.show_retry(&line, event);
        }
        self.clear_retry();
        match event {
            TurnEvent::Text(text) if self.shows_text && !text.is_empty() => {
                (self.is_in_line, self.has_reply) = (!text.ends_with('\n'), true);
                return output::plain(text);
            }
            TurnEvent::Tool { .. } => self.has_reply = false,
            _ => {}
        }
        // A turn without a server is not what was asked for, wherever stderr goes.
        let shows = self.shows_calls || matches!(event, TurnEvent::Missing { .. });
        if let (true, Some(line)) = (shows, line(event)) {
            self.end_line()?;
            let _ = writeln!(stderr(), "{line}");
        }
        Ok(())
    }

    /// One line, so that it must not wrap.
    fn show_retry(&mut self, line: &str, event: &TurnEvent) -> Result<(), CliError> {
        let TurnEvent::Waiting { after, reason, .. } = event else { return Ok(()) };
        if !self.is_retrying {
            self.end_line()?;
        }
        let line = format!("· {line} in {} s: {}", after.as_secs_f64().ceil(), one_line(reason));
        let columns = tcgetwinsize(stderr()).map_or(0, |size| size.ws_col);
        let columns = if columns == 0 { DEFAULT_COLUMNS } else { columns };
        let line: String = printable(&line).chars().take(usize::from(columns).saturating_sub(1)).collect();
        let _ = write!(stderr(), "\r\x1b[2K{line}");
        self.is_retrying = true;
        Ok(())
    }

    fn clear_retry(&mut self) {
        if std::mem::take(&mut self.is_retrying) {
            let _ = write!(stderr(), "\r\x1b[2K");
        }
    }

    fn end_line(&mut self) -> Result<(), CliError> {
        self.clear_retry();
        if std::mem::take(&mut self.is_in_line) { output::plain("\n") } else { Ok(()) }
    }
}

async fn turn(
    app: &App,
    args: &RunArgs,
    scope: &Scope,
    text: String,
    view: &mut TerminalView,
) -> Result<(String, TurnResult), CliError> {
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
    let body = if args.retry { TurnBody::Retry } else { TurnBody::Message(text) };
    let input = TurnInput { prompt, thread: thread.clone(), body };
    // The turn continues without a reader; its messages are stored.
    let mut on = |event: TurnEvent| drop(view.show(&event));
    let turned = app.agent.run_turn(input, &mut on).await;
    if turned.as_ref().is_err_and(TurnError::is_kept) {
        view.end_line()?;
        output::stderr_line(&format!("`embody run --thread {thread} --retry` tries this turn again"));
    }
    Ok((thread, turned?))
}

async fn thread(store: &Store, args: &RunArgs, scope: &Scope, text: &str) -> Result<String, CliError> {
    let Some(id) = &args.thread else {
        let new = NewThread { channel: args.channel.clone(), external: None, title: thread_title(text) };
        return Ok(store.threads().open(scope, new).await?.id);
    };
    let missing = |id: &str| {
        CliError::new(format!("user `{}` has no thread `{id}`", scope.user()))
            .hint("leave `--thread` out to start a new thread")
    };
    let id = &ids::resolve(store, IdSet::Threads(scope.user()), id, missing).await?;
    let known = store.threads().get(scope.user(), id).await?;
    match known {
        Some(thread) if thread.agent == scope.agent() => Ok(thread.id),
        Some(thread) => Err(CliError::new(format!("thread `{id}` belongs to agent `{}`", thread.agent))
            .hint(format!("pass `--agent {}`", thread.agent))),
        None => Err(missing(id)),
    }
}

fn line(event: &TurnEvent) -> Option<String> {
    match event {
        TurnEvent::Tool { name, .. } => Some(format!("· {}", printable(name))),
        TurnEvent::ToolDone { name, decision: Some(decision), approval, .. } => {
            let id = approval.as_ref().map(|id| format!(" ({id})")).unwrap_or_default();
            let decision = match (&**decision, approval) {
                ("deny", Some(_)) => "denied by the owner",
                ("deny", None) => "denied by the rules",
                ("timeout", Some(_)) => "the approval expired",
                (decision, _) => decision,
            };
            Some(format!("· {}: {decision}{id}", printable(name)))
        }
        TurnEvent::Starting { servers } => {
            Some(format!("· waiting for {} to start", printable(&servers.join(", "))))
        }
        TurnEvent::Missing { servers } => Some(missing_line(servers)),
        // The retries have a line of their own.
        TurnEvent::Waiting { .. }
        | TurnEvent::Started { .. }
        | TurnEvent::Text(_)
        | TurnEvent::ToolDone { .. } => None,
    }
}

fn missing_line(servers: &[MissingServer]) -> String {
    let server = |one: &MissingServer| match &one.reason {
        Some(reason) => format!("{} ({})", one.name, one_line(reason)),
        None => format!("{} (still starting)", one.name),
    };
    let servers: Vec<String> = servers.iter().map(server).collect();
    format!("warning: this turn is without the tools of {}; see `embody server test`", servers.join(", "))
}
