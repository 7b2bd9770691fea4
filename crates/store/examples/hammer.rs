//! Writes to a store as fast as it can, and says on stdout what was acknowledged; then checks that all of it is there.
//! The crash tests and `cargo xtask soak` kill it, its database and its disk.
//!
//! `hammer write URL KEYS TASKS` never ends by itself; `hammer check URL KEYS` reads the acknowledgements from stdin.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "its output is its purpose")]

use std::error::Error;
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use embody_store::{
    ErrorKind, InstructionsChange, InstructionsOutcome, NewMessage, NewReceipt, NewThread, Place, Scope,
    Store, TaskContent,
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
        let text = format!("{task} {round} {}", std::process::id());
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
    Ok(Some(match round % 4 {
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
    let mut checked = 0;
    for line in std::io::stdin().lock().lines() {
        // The last line may have been cut.
        let Ok(ack) = serde_json::from_str::<Ack>(&line?) else { continue };
        if !is_there(&store, &ack).await? {
            return Err(format!("acknowledged and lost: {ack:?}").into());
        }
        checked += 1;
    }
    store.check().await?;
    store.close().await;
    println!("{checked}");
    Ok(())
}

async fn is_there(store: &Store, ack: &Ack) -> Outcome<bool> {
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
    })
}
