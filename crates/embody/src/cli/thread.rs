//! `embody thread …`: the stored conversations of a user with an agent.

use std::fmt::Write;
use std::io::{IsTerminal, stdin};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use clap::{Args, Subcommand, ValueEnum};
use embody_agent::model::{ChatMessage, ToolRequest};
use embody_agent::turn::thread_title;
use embody_store::threads::{Message, Thread};
use embody_store::{IdSet, Scope, Store};
use embody_text::truncate;
use serde_json::{Value, json};

use super::{Context, ScopeArgs, ids, terminal};
use crate::conversation::{Content, ParsedMessage};
use crate::error::{CliError, ErrorContext};
use crate::output::{self, one_line, pluralize, printable};
use crate::{store, time};

const HEAD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const ROLE: Style = AnsiColor::Green.on_default();
/// Messages that are read at once.
const PAGE: u32 = 500;
/// Characters of a call's arguments or of its result.
const EXCERPT: usize = 100;
const TITLE: usize = 48;

const EXAMPLES: &str = "Examples:
  embody thread list
  embody thread show 8f21c0de
  embody thread rename 8f21c0de 'Trip to Rome'
  embody thread export 8f21c0de trip.md
  embody run --thread 8f21c0de 'And by when?'";

#[derive(Subcommand, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) enum ThreadCommand {
    /// List the conversations, the latest first
    #[command(
        after_help = "Examples:\n  embody thread list\n  embody thread list --agent coach --limit 5 --json"
    )]
    List(ListArgs),
    /// Show a conversation as text
    #[command(
        after_help = "Examples:\n  embody thread show 8f21c0de\n  embody thread show 8f21c0de --last 10"
    )]
    Show(ShowArgs),
    /// Give a conversation a title
    #[command(after_help = "Examples:\n  embody thread rename 8f21c0de 'Trip to Rome'")]
    Rename(RenameArgs),
    /// Delete a conversation with its messages
    #[command(after_help = DELETE_HELP)]
    Delete(DeleteArgs),
    /// Write a whole conversation to a file, or to stdout
    #[command(after_help = EXPORT_EXAMPLES)]
    Export(ExportArgs),
}

const DELETE_HELP: &str = "It cannot be undone. Receipts of its prompts stay for `[prompt] keep_receipts_days`, and so do memories that were saved in it.

Examples:
  embody thread delete 8f21c0de
  embody thread delete 8f21c0de --yes";

const EXPORT_EXAMPLES: &str = "Examples:
  embody thread export 8f21c0de trip.md
  embody thread export 8f21c0de --format json > trip.json";

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// The maximum number of conversations
    #[arg(long, short = 'n', default_value_t = 20)]
    limit: u32,
    #[command(flatten)]
    scope: ScopeArgs,
}

#[derive(Args, Debug)]
pub(crate) struct ShowArgs {
    /// The conversation's id, or its end
    id: String,
    /// Only the last messages
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    last: Option<u32>,
    #[command(flatten)]
    scope: ScopeArgs,
}

#[derive(Args, Debug)]
pub(crate) struct RenameArgs {
    /// The conversation's id, or its end
    id: String,
    /// The new title
    title: String,
    #[command(flatten)]
    scope: ScopeArgs,
}

#[derive(Args, Debug)]
pub(crate) struct DeleteArgs {
    /// The conversation's id, or its end
    id: String,
    /// Delete without asking
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    scope: ScopeArgs,
}

#[derive(Args, Debug)]
pub(crate) struct ExportArgs {
    /// The conversation's id, or its end
    id: String,
    /// The file; must not exist [default: stdout]
    file: Option<PathBuf>,
    /// The format
    #[arg(long, value_enum, default_value = "markdown")]
    format: Format,
    #[command(flatten)]
    scope: ScopeArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Markdown,
    Json,
}

pub(crate) fn run(command: &ThreadCommand, context: &Context) -> Result<ExitCode, CliError> {
    match command {
        ThreadCommand::List(args) => list(args, context),
        ThreadCommand::Show(args) => show(args, context),
        ThreadCommand::Rename(args) => rename(args, context),
        ThreadCommand::Delete(args) => delete(args, context),
        ThreadCommand::Export(args) => export(args, context),
    }
}

fn list(args: &ListArgs, context: &Context) -> Result<ExitCode, CliError> {
    let scope = args.scope.resolve()?;
    let found = store::with_existing(context, async |store| {
        let mut found = Vec::new();
        for thread in store.threads().list(&scope, args.limit).await? {
            let title = title(store, &scope, &thread).await?;
            found.push((thread, title));
        }
        let ids = found.iter().map(|(thread, _)| &thread.id);
        Ok((ids::shorten(context, store, IdSet::Threads(scope.user()), ids).await?, found))
    })?;
    let (short, found) = found.unwrap_or_default();
    let json = |(thread, title): &(Thread, Option<String>)| thread_json(thread, title.as_deref());
    context.print_list("threads", &found, json, |found| {
        if found.is_empty() {
            return "No conversations.\n".to_owned();
        }
        let mut out = format!(
            "{HEAD}{:13}  {:48}  {:9}  {:>8}  last message{HEAD:#}\n",
            "id", "title", "channel", "messages"
        );
        for (thread, title) in found {
            let title = one_line(&truncate(title.as_deref().unwrap_or("(no title)"), TITLE));
            let (id, channel) = (short.of(&thread.id), one_line(&thread.channel));
            let when = time::display(thread.changed_at);
            let _ = writeln!(out, "{id:13}  {title:48}  {channel:9}  {:>8}  {when}", thread.messages);
        }
        out
    })
}

/// Its title, or else the first words of it.
async fn title(store: &Store, scope: &Scope, thread: &Thread) -> Result<Option<String>, CliError> {
    if let Some(title) = &thread.title {
        return Ok(Some(title.clone()));
    }
    let first = store.threads().messages(scope.user(), &thread.id, 0, 1).await?;
    Ok(first.first().and_then(ParsedMessage::read).and_then(|first| match first.content {
        Content::Message {
            message: ChatMessage::User { text } | ChatMessage::Assistant { text, .. },
            ..
        } => thread_title(&text),
        Content::Message { .. } | Content::Failure(_) => None,
    }))
}

fn thread_json(thread: &Thread, title: Option<&str>) -> Value {
    json!({
        "id": thread.id,
        "agent": thread.agent,
        "title": title,
        "channel": thread.channel,
        "messages": thread.messages,
        "created_at": time::rfc3339(thread.created_at),
        "changed_at": time::rfc3339(thread.changed_at),
    })
}

/// The conversation that an id means, if it is one with this agent.
async fn find(store: &Store, scope: &Scope, given: &str) -> Result<Thread, CliError> {
    let id = ids::resolve(store, IdSet::Threads(scope.user()), given, not_found).await?;
    let thread = store.threads().get(scope.user(), &id).await?.ok_or_else(|| not_found(given))?;
    if thread.agent != scope.agent() {
        return Err(CliError::new(format!("thread `{id}` belongs to agent `{}`", thread.agent))
            .hint(format!("pass `--agent {}`", thread.agent)));
    }
    Ok(thread)
}

/// The error of the store for an unknown id, for when there is no store.
fn not_found(id: &str) -> CliError {
    CliError::new(format!("unknown thread `{id}`"))
        .hint("`embody thread list` shows the ids; `--user` and `--agent` select the user and the agent")
}

/// A conversation, or its last messages.
async fn read(store: &Store, scope: &Scope, id: &str, last: Option<u32>) -> Result<Conversation, CliError> {
    let thread = find(store, scope, id).await?;
    let title = title(store, scope, &thread).await?;
    let mut messages: Vec<Message> = Vec::new();
    let mut after = last.map_or(0, |last| (thread.messages - i64::from(last)).max(0));
    loop {
        let page = store.threads().messages(scope.user(), &thread.id, after, PAGE).await?;
        let Some(newest) = page.last() else { return Ok(Conversation { thread, title, messages }) };
        after = newest.seq;
        messages.extend(page);
    }
}

struct Conversation {
    thread: Thread,
    title: Option<String>,
    messages: Vec<Message>,
}

impl Conversation {
    fn json(&self) -> Value {
        let message = |message: &Message| {
            let content: Value = serde_json::from_str(&message.message.content)
                .unwrap_or_else(|_| Value::from(message.message.content.as_str()));
            json!({
                "seq": message.seq, "role": message.message.role, "at": time::rfc3339(message.created_at),
                "content": content,
            })
        };
        json!({
            "thread": thread_json(&self.thread, self.title.as_deref()),
            "messages": self.messages.iter().map(message).collect::<Vec<_>>(),
        })
    }

    fn heading(&self) -> &str {
        self.title.as_deref().unwrap_or("Conversation")
    }

    fn subtitle(&self) -> String {
        let Thread { id, agent, channel, messages, created_at, .. } = &self.thread;
        format!(
            "with {agent} on {channel}, {}, since {}, thread {id}",
            pluralize(u64::try_from(*messages).unwrap_or(0), "message"),
            time::display(*created_at)
        )
    }

    fn text(&self) -> String {
        let mut out = format!("{HEAD}{}{HEAD:#}\n", one_line(self.heading()));
        let _ = writeln!(out, "{DIM}{}{DIM:#}", one_line(&self.subtitle()));
        let mut speaker = None;
        for parsed in self.messages.iter().filter_map(ParsedMessage::read) {
            let by = Speaker::of(&parsed.content);
            // What an agent says between its calls is one contribution.
            if speaker != Some(by) || by == Speaker::User {
                let _ =
                    writeln!(out, "\n{ROLE}{}{ROLE:#}  {DIM}{}{DIM:#}", by.name(), time::display(parsed.at));
            }
            speaker = Some(by);
            for line in lines(&parsed.content) {
                let _ = writeln!(out, "  {}", printable(&line));
            }
        }
        out
    }

    fn markdown(&self) -> String {
        let mut out = format!("# {}\n\n{}\n", self.heading().replace(['\n', '\r'], " "), self.subtitle());
        let mut speaker = None;
        for parsed in self.messages.iter().filter_map(ParsedMessage::read) {
            let by = Speaker::of(&parsed.content);
            if speaker != Some(by) || by == Speaker::User {
                let _ = write!(out, "\n## {} · {}\n", by.name(), time::display(parsed.at));
            }
            speaker = Some(by);
            match &parsed.content {
                Content::Message { message: ChatMessage::User { text }, .. } => {
                    let _ = write!(out, "\n{}\n", text.trim_end());
                }
                Content::Message { message: ChatMessage::Assistant { text, calls }, .. } => {
                    if !text.trim().is_empty() {
                        let _ = write!(out, "\n{}\n", text.trim_end());
                    }
                    for call in calls {
                        let _ = write!(out, "\n> {}\n", call_line(call));
                    }
                }
                other => lines(other).iter().for_each(|line| {
                    let _ = write!(out, "\n> {line}\n");
                }),
            }
        }
        out
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Speaker {
    User,
    Agent,
}

impl Speaker {
    /// A result of a tool is a part of what the agent does.
    fn of(content: &Content) -> Self {
        match content {
            Content::Message { message: ChatMessage::User { .. }, .. } => Self::User,
            Content::Message { .. } | Content::Failure(_) => Self::Agent,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Agent => "assistant",
        }
    }
}

fn lines(content: &Content) -> Vec<String> {
    let (message, decided) = match content {
        Content::Message { message, decided } => (message, decided),
        Content::Failure(failure) => return vec![format!("✗ no reply: {}", one_line(&failure.message))],
    };
    match message {
        ChatMessage::User { text } => text.lines().map(str::to_owned).collect(),
        ChatMessage::Assistant { text, calls } => {
            text.lines().map(str::to_owned).chain(calls.iter().map(call_line)).collect()
        }
        ChatMessage::Tool { name, text, is_error, .. } => {
            let state = match &decided.decision {
                Some(decision) => format!(" ({decision})"),
                None if *is_error => " (failed)".to_owned(),
                None => String::new(),
            };
            vec![format!("← {name}{state}: {}", truncate(&one_line(text.trim()), EXCERPT))]
        }
    }
}

fn call_line(call: &ToolRequest) -> String {
    format!("→ {} {}", call.name, truncate(&one_line(&call.arguments), EXCERPT))
}

fn show(args: &ShowArgs, context: &Context) -> Result<ExitCode, CliError> {
    let scope = args.scope.resolve()?;
    let found = store::with_existing(context, async |store| read(store, &scope, &args.id, args.last).await)?;
    let found = found.ok_or_else(|| not_found(&args.id))?;
    context.print(&found.json(), || found.text())
}

fn rename(args: &RenameArgs, context: &Context) -> Result<ExitCode, CliError> {
    let scope = args.scope.resolve()?;
    let renamed = store::with_existing(context, async |store| {
        let thread = find(store, &scope, &args.id).await?;
        Ok(store.threads().rename(scope.user(), &thread.id, &args.title).await?)
    })?;
    let renamed = renamed.ok_or_else(|| not_found(&args.id))?;
    let title = renamed.title.clone().unwrap_or_default();
    context.print_plain(&thread_json(&renamed, Some(&title)), || format!("{}: {title}\n", renamed.id))
}

fn delete(args: &DeleteArgs, context: &Context) -> Result<ExitCode, CliError> {
    let scope = args.scope.resolve()?;
    let found = store::with_existing(context, async |store| {
        let thread = find(store, &scope, &args.id).await?;
        Ok((title(store, &scope, &thread).await?, thread))
    })?;
    let (title, thread) = found.ok_or_else(|| not_found(&args.id))?;
    if !args.yes {
        ask(&thread, title.as_deref())?;
    }
    let deleted =
        store::with(context, async |store| Ok(store.threads().delete(scope.user(), &thread.id).await?))?;
    let Thread { id, messages, .. } = &deleted;
    context.print_plain(&json!({ "id": id, "state": "deleted", "messages": messages }), || {
        format!("deleted {id} with {}\n", pluralize(u64::try_from(*messages).unwrap_or(0), "message"))
    })
}

fn ask(thread: &Thread, title: Option<&str>) -> Result<(), CliError> {
    if !stdin().is_terminal() {
        return Err(CliError::usage("`embody thread delete` asks first, and stdin is not a terminal")
            .hint("`--yes` deletes it without asking"));
    }
    let title = one_line(title.unwrap_or("(no title)"));
    let messages = pluralize(u64::try_from(thread.messages).unwrap_or(0), "message");
    match terminal::confirm(&format!("Delete `{title}` with {messages}? It cannot be undone. [y/N] "))? {
        true => Ok(()),
        false => Err(CliError::new("nothing was deleted")),
    }
}

fn export(args: &ExportArgs, context: &Context) -> Result<ExitCode, CliError> {
    let scope = args.scope.resolve()?;
    let found = store::with_existing(context, async |store| read(store, &scope, &args.id, None).await)?;
    let found = found.ok_or_else(|| not_found(&args.id))?;
    // `--json` asks for JSON wherever it stands.
    let is_json = args.format == Format::Json || context.json;
    let text = match is_json {
        true => serde_json::to_string_pretty(&found.json())
            .context("the conversation could not be written as JSON")
            .map(|text| text + "\n")?,
        false => found.markdown(),
    };
    match &args.file {
        None => output::plain(&text)?,
        Some(file) => write(file, &text)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A conversation is private, and no file is overwritten.
fn write(file: &Path, text: &str) -> Result<(), CliError> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt;
    let options = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
    let written = options.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| {
        let failed = CliError::new(format!("`{}` cannot be written", file.display())).caused_by(&error);
        match error.kind() {
            std::io::ErrorKind::AlreadyExists => failed.hint("choose another file, or remove this one first"),
            _ => failed,
        }
    })?;
    output::stderr_line(&format!("wrote {}", file.display()));
    Ok(())
}
