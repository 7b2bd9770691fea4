//! `embody up` that is ready, ended politely or killed, with a model and a Telegram around it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::model::{Model, WireFormat};
use super::telegram::Telegram;
use crate::support::served::{Event, Served, token};
use crate::support::world::World;

/// The Telegram user who is the owner.
pub(crate) const OWNER: i64 = 11;
/// For ever.
const PATIENCE: Duration = Duration::from_secs(60);

/// An agent on its three channels.
pub(crate) struct App {
    pub(crate) telegram: Telegram,
    pub(crate) model: Model,
    pub(crate) up: Served,
    pub(crate) world: World,
    chat: String,
}

impl App {
    /// Whose model answers by these rules; this is added to `embody.toml`.
    pub(crate) fn open(rules: &Value, config: &str) -> Self {
        Self::open_for(&[(OWNER, "owner")], rules, |_| config.to_owned())
    }

    /// The same for these users of Telegram.
    pub(crate) fn open_for(
        people: &[(i64, &str)],
        rules: &Value,
        config: impl FnOnce(&World) -> String,
    ) -> Self {
        let (world, telegram) = (Telegram::world(), Telegram::start());
        world.file("USER.md", "---\nname: Ann\ntimezone: Europe/Berlin\n---\n");
        let model = Model::alone(&world, rules);
        let channel = telegram.config(&people.iter().map(|(id, _)| *id).collect::<Vec<_>>());
        let users: String = people.iter().map(|(id, user)| format!("{id} = \"{user}\"\n")).collect();
        let users = format!("[telegram.users]\n{users}");
        let config = config(&world);
        world.file("embody.toml", model.config(WireFormat::OpenAi) + &channel + &users + &config);
        let chat = token(&world, "owner", "chat");
        let up = ready(&world);
        Self { telegram, model, up, world, chat }
    }

    /// Says something on the web, in a new conversation, and waits for the end of the turn.
    pub(crate) fn web(&self, text: &str) -> Vec<Event> {
        self.web_with(&self.chat, text)
    }

    /// The same as the user with this token.
    pub(crate) fn web_with(&self, token: &str, text: &str) -> Vec<Event> {
        let auth = format!("Bearer {token}");
        let headers = [("authorization", auth.as_str()), ("accept-language", "fr-FR")];
        self.up.begin("POST /api/chat", &headers, Some(&json!({ "text": text }))).events()
    }

    /// Says something on the web in this conversation, and waits for the end of the turn.
    pub(crate) fn web_in(&self, thread: &str, text: &str) -> Vec<Event> {
        self.up.begin_post("/api/chat", &self.chat, &json!({ "text": text, "thread": thread })).events()
    }

    /// The messages of a conversation on the web.
    pub(crate) fn thread(&self, id: &str) -> String {
        self.up.get(&format!("/api/threads/{id}"), &self.chat).json()["messages"].to_string()
    }

    /// Plans a run in a second; the schedule's id.
    pub(crate) fn schedule(&self, text: &str) -> String {
        let added = self.world.run(&["schedule", "add", "--json", "--in", "1s", text]).ok().json();
        added["id"].as_str().unwrap().to_owned()
    }

    /// Waits for a call that the owner has to decide about.
    pub(crate) fn approval(&self) -> Value {
        eventually("an approval", || {
            let listed = self.world.run(&["approvals", "list", "--json"]).ok().json();
            listed["approvals"].as_array().unwrap().first().cloned()
        })
    }

    pub(crate) fn approve(&self, approval: &Value) {
        self.world.run(&["approvals", "approve", approval["id"].as_str().unwrap()]).ok();
    }

    /// The outcomes of all calls of a tool, each of which has an intent.
    pub(crate) fn outcomes(&self, tool: &str) -> Vec<String> {
        let exported = self.world.run(&["audit", "export"]).ok().stdout;
        let records: Vec<Value> = exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let of = |event: &'static str| records.iter().filter(move |record| record["event"] == event);
        let outcome = |intent: &Value| {
            let found = of("outcome").find(|one| one["detail"]["call_id"] == intent["detail"]["call_id"]);
            found.map_or("none", |one| one["detail"]["outcome"].as_str().unwrap()).to_owned()
        };
        of("intent").filter(|intent| intent["detail"]["tool"] == tool).map(outcome).collect()
    }

    /// Ends it with a signal, so that queued messages are sent.
    pub(crate) fn close(&mut self) {
        end(&mut self.up);
    }
}

/// Starts `embody up` and waits until it is ready.
pub(crate) fn ready(world: &World) -> Served {
    let served = Served::start(world);
    eventually("readiness", || (served.ask("GET /readyz", &[], None).status == 200).then_some(()));
    served
}

/// As `kill -9` ends it.
pub(crate) fn kill(mut served: Served) {
    served.process.kill().unwrap();
    served.process.wait().unwrap();
}

/// As a service manager ends it.
pub(crate) fn end(served: &mut Served) {
    served.signal("-TERM");
    assert_eq!(served.process.wait().unwrap().code(), Some(0));
}

/// Looks again and again until there is something.
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "there is no {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
