//! The fake Telegram (`crates/agent/examples/telegram_api`): what people write there, and what they see.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::app::eventually;
use crate::support::served::begin;
use crate::support::world::World;

/// A Bot API with one bot.
pub(crate) struct Telegram {
    process: Child,
    host: String,
}

impl Telegram {
    /// A world whose bot has the token that the fake knows.
    pub(crate) fn world() -> World {
        World::new().env("TELEGRAM_BOT_TOKEN", "42:TEST")
    }

    pub(crate) fn start() -> Self {
        let tests = std::env::current_exe().unwrap();
        let program = tests.parent().unwrap().parent().unwrap().join("examples/telegram_api");
        assert!(
            program.exists(),
            "{} is missing: `cargo build -p embody-agent --example telegram_api`",
            program.display()
        );
        let mut process = Command::new(program).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { process, host: line.trim().strip_prefix("http://").unwrap().to_owned() }
    }

    /// Where it is.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Its section of `embody.toml`: these people may write.
    pub(crate) fn config(&self, people: &[i64]) -> String {
        format!("[telegram]\napi_url = \"http://{}\"\nallow_users = {people:?}\n", self.host)
    }

    /// Sends a private message. Two messages of a chat have two numbers.
    pub(crate) fn say(&self, person: i64, message: i64, text: &str) {
        self.updates(&[private(person, message, text)]);
    }

    pub(crate) fn updates(&self, updates: &[Value]) {
        self.control("updates", Some(&json!(updates)));
    }

    /// All requests, and the number of unconfirmed updates.
    pub(crate) fn state(&self) -> Value {
        self.control("state", None)
    }

    /// The messages that were sent, as a chat and what is seen there.
    pub(crate) fn sent(&self) -> Vec<(i64, String)> {
        let all = self.control("sent", None);
        let messages = all.as_array().unwrap().iter().filter(|sent| sent["method"] == "sendMessage");
        messages
            .map(|sent| (sent["chat_id"].as_i64().unwrap(), sent["visible"].as_str().unwrap().to_owned()))
            .collect()
    }

    /// What is seen in this chat.
    pub(crate) fn texts(&self, chat: i64) -> Vec<String> {
        self.sent().into_iter().filter_map(|(to, text)| (to == chat).then_some(text)).collect()
    }

    /// Waits for a message with buttons: what is seen, and what the first and the second of them say when they are pressed.
    pub(crate) fn question(&self) -> (String, [String; 2]) {
        eventually("a message with buttons", || {
            let all = self.control("sent", None);
            let asked = all.as_array()?.iter().find(|sent| sent["reply_markup"].is_object())?;
            let button =
                |at: usize| asked["reply_markup"]["inline_keyboard"][0][at]["callback_data"].as_str();
            Some((asked["visible"].as_str()?.to_owned(), [button(0)?.to_owned(), button(1)?.to_owned()]))
        })
    }

    /// A person presses a button under this text, in private.
    pub(crate) fn press(&self, person: i64, data: &str, text: &str) {
        self.updates(&[json!({"callback_query": {
            "id": "press", "from": {"id": person, "first_name": "Ann"}, "data": data,
            "message": {"message_id": 1, "chat": {"id": person}, "text": text}
        }})]);
    }

    /// Waits until so many messages are seen in this chat.
    pub(crate) fn seen(&self, chat: i64, count: usize) -> Vec<String> {
        eventually("messages on Telegram", || Some(self.texts(chat)).filter(|texts| texts.len() >= count))
    }

    fn control(&self, what: &str, body: Option<&Value>) -> Value {
        begin(&self.host, &format!("POST /control/{what}"), &[], body).whole().json()
    }
}

impl Drop for Telegram {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A message in a private chat.
pub(crate) fn private(person: i64, message: i64, text: &str) -> Value {
    json!({"message": {
        "message_id": message, "date": 1, "chat": {"id": person, "type": "private"},
        "from": {"id": person, "is_bot": false, "first_name": "Ann", "language_code": "de"}, "text": text
    }})
}
