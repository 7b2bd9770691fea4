//! A fake Bot API, a store in a file, and bots that can be stopped or killed.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use embody_agent::telegram::{Bot, BotSettings, BotTimes, TurnHandler, TurnReply, TurnStatus, run};
use embody_agent::turn::TurnInput;
use embody_store::{DatabaseUrl, Store};
use embody_wire::server::CancellationToken;
use embody_wire::{Proxies, Secret, Url};
use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// The people of these tests: the owner, a person on the allowlist, and one who is not.
pub(crate) const OWNER: i64 = 11;
pub(crate) const ANN: i64 = 22;
pub(crate) const STRANGER: i64 = 33;
pub(crate) const GROUP: i64 = -55;

/// Longer than any test takes, so that no work in progress is taken over.
pub(crate) const LEASE: Duration = Duration::from_secs(120);

pub(crate) struct World {
    pub(crate) store: Store,
    folder: tempfile::TempDir,
    _api: Child,
    url: String,
    http: reqwest::Client,
    /// The lease on the work of a bot that was killed.
    pub(crate) lease: Duration,
    pub(crate) allowed: Vec<i64>,
    /// Every turn that the agent was given.
    pub(crate) asked: Arc<Mutex<Vec<TurnInput>>>,
}

pub(crate) struct Running {
    task: JoinHandle<()>,
    switch: CancellationToken,
}

impl Running {
    /// Ends it like `kill -9`: work in progress stays as it is.
    pub(crate) async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }

    /// Ends it gracefully.
    pub(crate) async fn stop(self) {
        self.switch.cancel();
        self.task.await.unwrap();
    }
}

impl World {
    pub(crate) async fn new() -> Self {
        let mut api = Command::new(example("telegram_api"))
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("{error}: `cargo build -p embody-agent --examples`"));
        let mut lines = BufReader::new(api.stdout.take().unwrap()).lines();
        let url = lines.next_line().await.unwrap().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path()).await;
        let http = reqwest::Client::builder().tls_certs_only([]).no_proxy().build().unwrap();
        let allowed = vec![OWNER, ANN];
        Self { store, folder, _api: api, url, http, lease: LEASE, allowed, asked: Arc::default() }
    }

    /// Another handle on the same file, as another process would have.
    pub(crate) async fn another_store(&self) -> Store {
        open(self.folder.path()).await
    }

    /// Runs a statement that the store would not.
    pub(crate) async fn sql(&self, statement: &'static str) {
        let file = SqliteConnectOptions::new().filename(self.folder.path().join("embody.db"));
        let mut conn = file.connect().await.unwrap();
        sqlx::raw_sql(statement).execute(&mut conn).await.unwrap();
        conn.close().await.unwrap();
    }

    /// A bot whose agent repeats its input.
    pub(crate) fn echo(&self) -> Running {
        self.bot(|text| async move { Ok(Some(format!("You said: {text}"))) })
    }

    pub(crate) fn bot<F>(&self, reply: impl Fn(String) -> F + Send + Sync + 'static) -> Running
    where
        F: Future<Output = TurnReply> + Send + 'static,
    {
        self.bot_on(self.store.clone(), reply)
    }

    pub(crate) fn bot_on<F>(
        &self,
        store: Store,
        reply: impl Fn(String) -> F + Send + Sync + 'static,
    ) -> Running
    where
        F: Future<Output = TurnReply> + Send + 'static,
    {
        let asked = Arc::clone(&self.asked);
        let turns = TurnHandler::new(move |(input, _): (TurnInput, TurnStatus)| {
            let text = input.message().unwrap_or_default().to_owned();
            asked.lock().unwrap().push(input);
            reply(text)
        });
        run_bot(self.new_bot(), turns, store)
    }

    pub(crate) fn new_bot(&self) -> Bot {
        Bot::new(&self.settings()).unwrap()
    }

    /// This bot, whose agent says nothing.
    pub(crate) fn bot_with(&self, bot: Bot) -> Running {
        run_bot(bot, TurnHandler::new(|_| async { Ok(None) }), self.store.clone())
    }

    /// A bot whose agent reports these states of its turn, each once `next` is notified, and then answers.
    pub(crate) fn bot_that_waits(
        &self,
        states: &'static [Option<&'static str>],
        next: Arc<Notify>,
    ) -> Running {
        let turns = TurnHandler::new(move |(_, status): (TurnInput, TurnStatus)| {
            let next = Arc::clone(&next);
            async move {
                for state in states {
                    status.send_replace(state.map(str::to_owned));
                    next.notified().await;
                }
                Ok(Some("At last.".to_owned()))
            }
        });
        run_bot(self.new_bot(), turns, self.store.clone())
    }

    fn settings(&self) -> BotSettings {
        BotSettings {
            token: Secret::new("42:TEST"),
            api_url: Url::parse(&self.url).unwrap(),
            proxies: Proxies::default(),
            allow_users: self.allowed.clone(),
            users: BTreeMap::from([(OWNER, "owner".to_owned())]),
            owner: "owner".to_owned(),
            agent: "assistant".to_owned(),
            clock: || i64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_micros()).unwrap(),
            times: BotTimes {
                lease: self.lease,
                poll: Duration::from_secs(5),
                typing: Duration::from_secs(4),
                ending: Duration::from_millis(200),
                store_poll: Duration::from_millis(200),
            },
        }
    }

    /// Adds updates and returns their ids.
    pub(crate) async fn updates(&self, updates: Value) -> Vec<i64> {
        serde_json::from_value(self.control("updates", &updates).await).unwrap()
    }

    pub(crate) async fn faults(&self, faults: Value) {
        self.control("faults", &faults).await;
    }

    pub(crate) async fn state(&self) -> Value {
        self.control("state", &Value::Null).await
    }

    /// All calls of this method.
    pub(crate) async fn sent(&self, method: &str) -> Vec<Value> {
        let all: Vec<Value> = serde_json::from_value(self.control("sent", &Value::Null).await).unwrap();
        all.into_iter().filter(|sent| sent["method"] == method).collect()
    }

    /// The visible texts in this chat.
    pub(crate) async fn texts(&self, chat: i64) -> Vec<String> {
        let sent = self.sent("sendMessage").await;
        sent.iter()
            .filter(|sent| sent["chat_id"] == chat)
            .map(|sent| sent["visible"].as_str().unwrap().to_owned())
            .collect()
    }

    pub(crate) async fn control(&self, what: &str, body: &Value) -> Value {
        let url = format!("{}/control/{what}", self.url);
        let answer = self.http.post(url).body(body.to_string()).send().await.unwrap();
        serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap()
    }

    /// Waits until this chat has received this many messages.
    pub(crate) async fn seen(&self, chat: i64, count: usize) -> Vec<String> {
        let texts =
            eventually(async || Some(self.texts(chat).await).filter(|texts| texts.len() >= count)).await;
        assert_eq!(texts.len(), count, "{texts:?}");
        texts
    }

    /// Waits until all queues are empty. Checks them in the order of processing, because an item that moves on between
    /// two checks would be missed.
    pub(crate) async fn quiet(&self) {
        eventually(async || {
            if self.state().await["waiting"] != 0 {
                return None;
            }
            let users = ["owner", "telegram:22", "telegram:33"];
            for user in users {
                let incoming = self.store.incoming().list(user, 2000).await.unwrap();
                incoming.iter().all(|one| one.finished_at.is_some()).then_some(())?;
            }
            for user in users {
                let outgoing = self.store.outgoing().list(user, 2000).await.unwrap();
                outgoing.iter().all(|one| one.finished_at.is_some()).then_some(())?;
            }
            Some(())
        })
        .await;
    }
}

fn run_bot(bot: Bot, turns: TurnHandler, store: Store) -> Running {
    let ending = CancellationToken::new();
    let switch = ending.clone();
    Running { task: tokio::spawn(run(bot, turns, store, ending)), switch }
}

async fn open(folder: &Path) -> Store {
    Store::open(DatabaseUrl::File(folder.join("embody.db"))).await.unwrap()
}

fn example(name: &str) -> std::path::PathBuf {
    let tests = std::env::current_exe().unwrap();
    tests.parent().unwrap().parent().unwrap().join("examples").join(name)
}

/// Polls until there is a value, for at most a minute.
pub(crate) async fn eventually<T>(mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "it never happened");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A message in a private chat.
pub(crate) fn private(from: i64, message: i64, text: &str) -> Value {
    json!({"message": {
        "message_id": message, "date": 1, "chat": {"id": from, "type": "private"},
        "from": {"id": from, "is_bot": false, "first_name": "Ann", "language_code": "de"}, "text": text
    }})
}

/// A message in the group.
pub(crate) fn group(from: i64, message: i64, text: &str, extra: &Value) -> Value {
    let mut update = private(from, message, text);
    update["message"]["chat"] = json!({"id": GROUP, "type": "supergroup", "title": "Friends"});
    for (key, value) in extra.as_object().unwrap() {
        update["message"][key] = value.clone();
    }
    update
}
