//! Writes to a store as fast as it can, and says on stdout what was acknowledged; then checks that all of it is there.
//! The crash tests and `cargo xtask soak` kill it, its database and its disk.
//!
//! `hammer write URL KEYS TASKS` never ends by itself; `hammer check URL KEYS` reads the acknowledgements from stdin.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "its output is its purpose")]

use std::collections::HashSet;
use std::error::Error;
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use embody_store::{
    Actor, Arguments, ChainState, ErrorKind, InstructionsChange, InstructionsOutcome, Intent, MemorySearch,
    NewMemory, NewMessage, NewReceipt, NewThread, Outcome as CallOutcome, Place, Scope, Store, TaskContent,
    ToolCall,
};
use serde::{Deserialize, Serialize};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Something that was acknowledged and must never be lost.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Ack {
    Task { user: String, number: i64, title: String },
    Message { user: String, thread: String, seq: i64, content: String },
    Instructions { user: String, version: i64, text: String },
    Receipt { user: String, id: String, text: String },
    Memory { user: String, id: String, text: String },
    Intent { user: String, call: String },
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args.as_slice() {
        ["write", url, keys, tasks] => write(place(url, keys), tasks.parse().unwrap_or(8)).await,
        ["check", url, keys] => check(place(url, keys)).await,
        _ => Err("usage: hammer write URL KEYS TASKS | hammer check URL KEYS".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let mut text = error.to_string();
            let mut cause = error.source();
            while let Some(error) = cause {
                text += &format!(": {error}");
                cause = error.source();
            }
            eprintln!("failed: {text}");
            ExitCode::FAILURE
        }
    }
}

fn place(url: &str, keys: &str) -> Place {
    if url.starts_with("postgres") {
        return Place::Postgres { url: url.to_owned(), direct_url: None, keys: PathBuf::from(keys) };
    }
    Place::File(PathBuf::from(url))
}

async fn write(place: Place, tasks: usize) -> Outcome<()> {
    let store = Store::open(place).await?;
    let mut writers = tokio::task::JoinSet::new();
    for task in 0..tasks {
        writers.spawn(write_for_ever(store.clone(), task));
    }
    match writers.join_next().await {
        Some(ended) => ended?,
        None => Ok(()),
    }
}

async fn write_for_ever(store: Store, task: usize) -> Outcome<()> {
    let user = format!("user {task}");
    let scope = Scope::new(&user, "assistant")?;
    let new = NewThread { channel: "web".into(), external: Some("hammer".into()), title: None };
    let thread = loop {
        match store.open_thread(&scope, new.clone()).await {
            Err(error) if is_away(&error) => {}
            opened => break opened?.id,
        }
    };
    for round in 0u64.. {
        let text = format!("call{task}x{round}x{}", std::process::id());
        match one(&store, &scope, &thread, round, &text).await {
            Ok(Some(ack)) => say(&ack)?,
            Ok(None) => {}
            // It may have happened or not: nothing was promised.
            Err(error) if is_away(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn is_away(error: &embody_store::Error) -> bool {
    matches!(error.kind(), ErrorKind::Unreachable | ErrorKind::Uncertain)
}

async fn one(
    store: &Store,
    scope: &Scope,
    thread: &str,
    round: u64,
    text: &str,
) -> embody_store::Result<Option<Ack>> {
    let user = scope.user().to_owned();
    Ok(Some(match round % 6 {
        0 => {
            let task = store.add_task(&user, content(text)).await?;
            Ack::Task { user, number: task.number, title: text.to_owned() }
        }
        1 => {
            let new = NewMessage { role: "user".into(), content: text.to_owned() };
            let seq = store
                .append_messages(&user, thread, vec![new])
                .await?
                .first()
                .map_or(0, |message| message.seq);
            Ack::Message { user, thread: thread.to_owned(), seq, content: text.to_owned() }
        }
        2 => {
            let change =
                InstructionsChange { text: text.to_owned(), writer: "hammer".into(), expected_version: None };
            match store.set_instructions(scope, change).await? {
                InstructionsOutcome::Written(now) => {
                    Ack::Instructions { user, version: now.version, text: text.to_owned() }
                }
                InstructionsOutcome::Stale(_) => return Ok(None),
            }
        }
        3 => {
            let memory =
                NewMemory { session: Some("hammer".into()), ..NewMemory::note(text, "hammer", "owner") };
            Ack::Memory { user, id: store.save_memory(scope, memory).await?.id, text: text.to_owned() }
        }
        4 => {
            let call = ToolCall {
                call_id: text.to_owned(),
                body: "mail".into(),
                tool: "send".into(),
                class: "human_visible_write".into(),
                args: Arguments::of("{}"),
            };
            let actor = Actor { user: user.clone(), agent: None, session: None, channel: None };
            let begun = store.begin_write(&actor, Intent { call, approval: None }).await?;
            store.finish_write(begun, CallOutcome::Done, None).await?;
            Ack::Intent { user, call: text.to_owned() }
        }
        _ => {
            let text = format!("the same rules for all, and {text}");
            let parts = vec![
                "the same rules for all, and ".to_owned(),
                text.get(28..).unwrap_or_default().to_owned(),
            ];
            let hash = blake3::hash(text.as_bytes()).to_hex().to_string();
            let new = NewReceipt { layout: "channel".into(), hash, parts, detail: "{}".into() };
            Ack::Receipt { user, id: store.keep_receipt(scope, new).await?, text }
        }
    }))
}

fn content(title: &str) -> TaskContent {
    TaskContent {
        agent: "assistant".into(),
        title: title.to_owned(),
        description: String::new(),
        status: "open".into(),
        steps: Vec::new(),
    }
}

/// One line, whole: a line that was cut by a kill was never said.
fn say(ack: &Ack) -> Outcome<()> {
    let mut line = serde_json::to_string(ack)?;
    line.push('\n');
    let mut out = std::io::stdout().lock();
    out.write_all(line.as_bytes())?;
    Ok(out.flush()?)
}

async fn check(place: Place) -> Outcome<()> {
    let store = Store::open(place).await?;
    let intents = intents(&store).await?;
    let mut checked = 0;
    for line in std::io::stdin().lock().lines() {
        // The last line may have been cut.
        let Ok(ack) = serde_json::from_str::<Ack>(&line?) else { continue };
        if !is_there(&store, &intents, &ack).await? {
            return Err(format!("acknowledged and lost: {ack:?}").into());
        }
        checked += 1;
    }
    store.check().await?;
    let report = store.verify_audit().await?;
    if let Some((chain, found)) = report.broken() {
        return Err(format!("the audit chain {} is broken at {found}", chain.chain).into());
    }
    if !report.chains.iter().any(|chain| chain.state == ChainState::Intact) {
        return Err("no audit chain could be verified".into());
    }
    store.close().await;
    println!("{checked}");
    Ok(())
}

/// The user and the call of every intent on record.
async fn intents(store: &Store) -> Outcome<HashSet<(String, String)>> {
    let mut found = HashSet::new();
    let mut pages = store.audit_pages().await?;
    while let Some(page) = pages.next().await? {
        let intents = page.into_iter().filter(|record| record.event == "intent");
        found.extend(intents.filter_map(|record| Some((record.user.clone(), record.text("call_id")?))));
    }
    Ok(found)
}

async fn is_there(store: &Store, intents: &HashSet<(String, String)>, ack: &Ack) -> Outcome<bool> {
    Ok(match ack {
        Ack::Task { user, number, title } => {
            store.task(user, *number).await?.is_some_and(|task| task.content.title == *title)
        }
        Ack::Message { user, thread, seq, content } => {
            let messages = store.messages(user, thread, seq - 1, 1).await?;
            messages.first().is_some_and(|message| message.message.content == *content)
        }
        Ack::Instructions { user, version, text } => {
            let scope = Scope::new(user, "assistant")?;
            let past = store.instructions_version(&scope, *version).await?;
            past.is_some_and(|past| past.instructions.text == *text)
        }
        Ack::Receipt { user, id, text } => match store.receipts(user, id, 1).await?.first() {
            Some(receipt) => store.replay(receipt).await? == *text,
            None => false,
        },
        Ack::Memory { user, id, text } => {
            let scope = Scope::new(user, "assistant")?;
            let search = MemorySearch { query: text.clone(), limit: 100, kind: None, since: None };
            // Kept, and found: its index was written with it.
            store.memory(&scope, id).await?.is_some_and(|memory| memory.text == *text)
                && store.search_memories(&scope, &search).await?.iter().any(|found| found.memory.id == *id)
        }
        Ack::Intent { user, call } => intents.contains(&(user.clone(), call.clone())),
    })
}
