//! Writes to a store as fast as it can, and says on stdout what was acknowledged; then checks that all of it is there.
//! The crash tests and `cargo xtask soak` kill it, its database and its disk.
//!
//! `hammer write URL KEYS TASKS` never ends by itself; `hammer check URL KEYS` reads the acknowledgements from stdin.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "its output is its purpose")]

use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use embody_store::audit::{Actor, AuditOutcome, AuditedCall, ChainState, Intent, RedactedArguments};
use embody_store::incoming::{FinishIncoming, IncomingState, NewIncoming};
use embody_store::instructions::{InstructionsChange, InstructionsOutcome};
use embody_store::memories::{MemorySearch, NewMemory};
use embody_store::outgoing::{NewOutgoing, OutgoingEnd, OutgoingState};
use embody_store::receipts::NewReceipt;
use embody_store::tasks::TaskContent;
use embody_store::threads::{NewMessage, NewThread};
use embody_store::{DatabaseUrl, ErrorKind, Lease, LeaseStatus, Scope, Store};
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
    Arrived { user: String, external: String },
    Answered { user: String, external: String },
    Sent { user: String, id: String },
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

fn place(url: &str, keys: &str) -> DatabaseUrl {
    if url.starts_with("postgres") {
        return DatabaseUrl::Postgres { url: url.to_owned(), direct_url: None, keys: PathBuf::from(keys) };
    }
    DatabaseUrl::File(PathBuf::from(url))
}

async fn write(place: DatabaseUrl, tasks: usize) -> Outcome<()> {
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
        match store.threads().open(&scope, new.clone()).await {
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
    Ok(Some(match round % 9 {
        0 => {
            let task = store.tasks().add(&user, content(text)).await?;
            Ack::Task { user, number: task.number, title: text.to_owned() }
        }
        1 => {
            let new = NewMessage { role: "user".into(), content: text.to_owned() };
            let seq = store
                .threads()
                .append(&user, thread, vec![new])
                .await?
                .first()
                .map_or(0, |message| message.seq);
            Ack::Message { user, thread: thread.to_owned(), seq, content: text.to_owned() }
        }
        2 => {
            let change =
                InstructionsChange { text: text.to_owned(), writer: "hammer".into(), expected_version: None };
            match store.instructions().set(scope, change).await? {
                InstructionsOutcome::Written(now) => {
                    Ack::Instructions { user, version: now.version, text: text.to_owned() }
                }
                InstructionsOutcome::Stale(_) => return Ok(None),
            }
        }
        3 => {
            let memory =
                NewMemory { session: Some("hammer".into()), ..NewMemory::note(text, "hammer", "owner") };
            Ack::Memory { user, id: store.memories().save(scope, memory).await?.id, text: text.to_owned() }
        }
        4 => {
            let call = AuditedCall {
                call_id: text.to_owned(),
                body: "mail".into(),
                tool: "send".into(),
                class: "human_visible_write".into(),
                args: RedactedArguments::of("{}"),
            };
            let actor = Actor { user: user.clone(), agent: None, session: None, channel: None };
            let begun = store.audit().begin(&actor, Intent { call, approval: None }).await?;
            store.audit().finish(begun, AuditOutcome::Done, None).await?;
            Ack::Intent { user, call: text.to_owned() }
        }
        5 => {
            let text = format!("the same rules for all, and {text}");
            let parts = vec![
                "the same rules for all, and ".to_owned(),
                text.get(28..).unwrap_or_default().to_owned(),
            ];
            let hash = blake3::hash(text.as_bytes()).to_hex().to_string();
            let new = NewReceipt {
                layout: "channel".into(),
                hash,
                parts,
                detail: "{}".into(),
                ..NewReceipt::default()
            };
            Ack::Receipt { user, id: store.receipts().insert(scope, new).await?, text }
        }
        6 => {
            store.incoming().insert(vec![arriving(scope, text)], None).await?;
            Ack::Arrived { user, external: text.to_owned() }
        }
        7 => return answer(store, scope).await,
        _ => return send(store, scope).await,
    }))
}

/// Each user has a channel of their own, and each message a conversation: one that a kill left behind holds up no other.
fn arriving(scope: &Scope, text: &str) -> NewIncoming {
    NewIncoming {
        scope: scope.clone(),
        channel: scope.user().to_owned(),
        conversation: text.to_owned(),
        external: text.to_owned(),
        content: "{}".into(),
    }
}

fn lease() -> Lease {
    Lease { owner: "hammer".into(), duration: Duration::from_secs(3600) }
}

async fn answer(store: &Store, scope: &Scope) -> embody_store::Result<Option<Ack>> {
    let user = scope.user().to_owned();
    let Some(claim) = store.incoming().claim(&user, &lease(), 1).await?.into_iter().next() else {
        return Ok(None);
    };
    let external = claim.incoming.external.clone();
    let reply = NewOutgoing {
        scope: scope.clone(),
        channel: user.clone(),
        to: external.clone(),
        text: "yes".into(),
        kind: "reply".into(),
        urgency: "normal".into(),
        about: Some(external.clone()),
    };
    let finish = FinishIncoming { state: IncomingState::Done, reason: None, replies: vec![reply] };
    let kept = store.incoming().finish(&claim, finish).await?;
    Ok((kept == LeaseStatus::Kept).then_some(Ack::Answered { user, external }))
}

async fn send(store: &Store, scope: &Scope) -> embody_store::Result<Option<Ack>> {
    let user = scope.user().to_owned();
    let Some(claim) = store.outgoing().claim(&user, &lease(), 1).await?.into_iter().next() else {
        return Ok(None);
    };
    store.outgoing().begin_part(&claim, 0).await?;
    let kept = store.outgoing().finish(&claim, OutgoingEnd::Sent).await?;
    Ok((kept == LeaseStatus::Kept).then_some(Ack::Sent { user, id: claim.outgoing.id }))
}

fn content(title: &str) -> TaskContent {
    TaskContent {
        agent: "assistant".into(),
        title: title.to_owned(),
        description: String::new(),
        status: "open".into(),
        steps: Vec::new(),
        trust: "agent".into(),
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

async fn check(place: DatabaseUrl) -> Outcome<()> {
    let store = Store::open(place).await?;
    let intents = intents(&store).await?;
    let mut channels = HashMap::new();
    let mut checked = 0;
    for line in std::io::stdin().lock().lines() {
        // The last line may have been cut.
        let Ok(ack) = serde_json::from_str::<Ack>(&line?) else { continue };
        let there = match &ack {
            Ack::Arrived { user, .. } | Ack::Answered { user, .. } | Ack::Sent { user, .. } => {
                if !channels.contains_key(user) {
                    channels.insert(user.clone(), Channel::of(&store, user).await?);
                }
                channels.get(user).is_some_and(|channel| channel.has(&ack))
            }
            _ => is_there(&store, &intents, &ack).await?,
        };
        if !there {
            return Err(format!("acknowledged and lost: {ack:?}").into());
        }
        checked += 1;
    }
    store.check().await?;
    let report = store.audit().verify().await?;
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

/// What arrived and left on the channel of one user.
struct Channel {
    arrived: HashMap<String, IncomingState>,
    replies: HashSet<String>,
    sent: HashSet<String>,
}

impl Channel {
    /// Reads it; a message that was answered has its reply and no other has one.
    async fn of(store: &Store, user: &str) -> Outcome<Self> {
        let arrived: HashMap<_, _> = store
            .incoming()
            .list(user, u32::MAX)
            .await?
            .into_iter()
            .map(|incoming| (incoming.external, incoming.state))
            .collect();
        let (mut replies, mut sent) = (HashSet::new(), HashSet::new());
        for outgoing in store.outgoing().list(user, u32::MAX).await? {
            if outgoing.state == OutgoingState::Sent {
                sent.insert(outgoing.id);
            }
            let about = outgoing.about.unwrap_or_default();
            if arrived.get(&about) != Some(&IncomingState::Done) || !replies.insert(about.clone()) {
                return Err(format!("a reply to `{about}` that is not done, or a second one").into());
            }
        }
        let done = arrived.values().filter(|state| **state == IncomingState::Done).count();
        if done != replies.len() {
            return Err(format!("{done} messages of {user} are done with {} replies", replies.len()).into());
        }
        let scope = Scope::new(user, "assistant")?;
        for external in arrived.keys().take(10) {
            if !store.incoming().insert(vec![arriving(&scope, external)], None).await?.is_empty() {
                return Err(format!("`{external}` was taken twice").into());
            }
        }
        Ok(Self { arrived, replies, sent })
    }

    fn has(&self, ack: &Ack) -> bool {
        match ack {
            Ack::Arrived { external, .. } => self.arrived.contains_key(external),
            Ack::Answered { external, .. } => self.replies.contains(external),
            Ack::Sent { id, .. } => self.sent.contains(id),
            _ => false,
        }
    }
}

/// The user and the call of every intent on record.
async fn intents(store: &Store) -> Outcome<HashSet<(String, String)>> {
    let mut found = HashSet::new();
    let mut pages = store.audit().pages().await?;
    while let Some(page) = pages.next().await? {
        let intents = page.into_iter().filter(|record| record.event == "intent");
        found.extend(intents.filter_map(|record| Some((record.user.clone(), record.text("call_id")?))));
    }
    Ok(found)
}

async fn is_there(store: &Store, intents: &HashSet<(String, String)>, ack: &Ack) -> Outcome<bool> {
    Ok(match ack {
        Ack::Task { user, number, title } => {
            store.tasks().get(user, *number).await?.is_some_and(|task| task.content.title == *title)
        }
        Ack::Message { user, thread, seq, content } => {
            let messages = store.threads().messages(user, thread, seq - 1, 1).await?;
            messages.first().is_some_and(|message| message.message.content == *content)
        }
        Ack::Instructions { user, version, text } => {
            let scope = Scope::new(user, "assistant")?;
            let past = store.instructions().version(&scope, *version).await?;
            past.is_some_and(|past| past.instructions.text == *text)
        }
        Ack::Receipt { user, id, text } => match store.receipts().list(user, id, 1).await?.first() {
            Some(receipt) => store.receipts().replay(receipt).await?.text == *text,
            None => false,
        },
        Ack::Memory { user, id, text } => {
            let scope = Scope::new(user, "assistant")?;
            let search = MemorySearch { query: text.clone(), limit: 100, kind: None, since: None };
            // Kept, and found: its index was written with it.
            store.memories().get(&scope, id).await?.is_some_and(|memory| memory.text == *text)
                && store.memories().search(&scope, &search).await?.iter().any(|found| found.memory.id == *id)
        }
        Ack::Intent { user, call } => intents.contains(&(user.clone(), call.clone())),
        Ack::Arrived { .. } | Ack::Answered { .. } | Ack::Sent { .. } => false,
    })
}
