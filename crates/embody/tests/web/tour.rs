//! The guided tour over HTTP: for the owner, one at a time, and without a trace.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::app::eventually;
use crate::support::served::{Event, Reading, Served, token};
use crate::support::world::World;

/// A world whose temporary folder is its own.
fn world() -> (World, PathBuf) {
    let world = World::new();
    let folder = world.outside("tmp");
    fs::create_dir(&folder).unwrap();
    let world = world.env("TMPDIR", folder.to_str().unwrap());
    (world, folder)
}

fn demos(folder: &PathBuf) -> usize {
    fs::read_dir(folder).unwrap().count()
}

struct Owner<'a> {
    served: &'a Served,
    cookie: String,
    origin: String,
}

impl<'a> Owner<'a> {
    fn of(served: &'a Served) -> Self {
        Self { served, cookie: served.sign_in(&served.code), origin: format!("http://{}", served.host) }
    }

    fn post(&self, path: &str, body: &Value) -> Reading {
        let headers = [("cookie", self.cookie.as_str()), ("origin", self.origin.as_str())];
        self.served.begin(&format!("POST {path}"), &headers, Some(body))
    }

    fn begin(&self) -> Reading {
        let stream = self.post("/api/tour", &json!({}));
        assert_eq!(stream.status, 200);
        stream
    }

    fn answer(&self, tour: &Value, approve: bool) -> u16 {
        self.post("/api/tour/answer", &json!({"tour": tour, "approve": approve})).whole().status
    }

    /// Plays a tour with this answer; its events.
    fn play(&self, approve: bool) -> Vec<Event> {
        let mut stream = self.begin();
        let first = stream.event().unwrap();
        assert_eq!(first.name, "tour");
        let tour = first.data["tour"].clone();
        // It was not asked yet.
        assert_eq!(self.answer(&tour, !approve), 202);
        let mut events = Vec::new();
        while let Some(event) = stream.event() {
            if event.name == "ask" {
                assert_eq!(self.answer(&json!("0000000000000000"), !approve), 404);
                assert_eq!(self.answer(&tour, approve), 202);
            }
            events.push(event);
        }
        assert_eq!(self.answer(&tour, approve), 404, "it is over");
        events
    }
}

fn titles(events: &[Event]) -> Vec<String> {
    let steps = events.iter().filter(|event| event.name == "step");
    steps.map(|step| format!("{} {}", step.data["number"], step.data["title"].as_str().unwrap())).collect()
}

/// The texts of the lines of a kind.
fn lines(events: &[Event], kind: &str) -> String {
    let of_kind = events.iter().filter(|event| event.name == "line" && event.data["kind"] == kind);
    of_kind.map(|line| format!("{}\n", line.data["text"].as_str().unwrap())).collect()
}

// spec: N-10, N-16
#[test]
fn the_tour_runs_to_its_end_with_either_answer_and_leaves_nothing() {
    let (world, folder) = world();
    let served = Served::start(&world);
    let owner = Owner::of(&served);
    let before = world.run(&["audit", "export"]).ok().stdout;
    for approve in [true, false] {
        let events = owner.play(approve);
        assert_eq!(demos(&folder), 0, "the folder is removed before the end is told");
        let last = events.last().unwrap();
        assert_eq!((&*last.name, &last.data["approved"]), ("done", &json!(approve)), "{last:?}");
        let titles = titles(&events);
        assert_eq!(titles.len(), 8, "{titles:?}");
        let [fifth, sent] = match approve {
            true => [
                "5 The message is sent once and recorded",
                "to ann@example.com: The workshop is on Thursday.",
            ],
            false => ["5 The message is not sent, and that is recorded", "decision  deny"],
        };
        assert_eq!(titles[4], fifth);
        assert!(lines(&events, "sent").starts_with("runtime_bootstrap {}\n"));
        assert!(lines(&events, "quote").contains(sent), "{}", lines(&events, "quote"));
        assert!(lines(&events, "received").contains("blocked: the mind does not answer"));
        assert!(lines(&events, "narration").contains("The tour continues with either answer."));
    }
    // Of the tours there is nothing in the workspace: neither records, messages, memories nor log lines.
    assert_eq!(world.run(&["audit", "export"]).ok().stdout, before);
    assert_eq!(world.run(&["memory", "list", "--json"]).ok().json()["memories"], json!([]));
    let log = world.log();
    let about = |line: &&Value| line.to_string().contains("mind") || line.to_string().contains("embody-demo");
    assert_eq!(log.iter().find(about), None);
}

#[test]
fn one_tour_runs_at_a_time_and_ends_with_its_page_or_the_process() {
    let (world, folder) = world();
    let mut served = Served::start(&world);
    let owner = Owner::of(&served);
    let mut first = owner.begin();
    first.until("ask");
    assert_eq!(demos(&folder), 1);
    owner.post("/api/tour", &json!({})).whole().refused(409, "a guided tour is running");
    drop(first);
    let mut second = eventually("the end of a tour whose page is gone", || {
        let stream = owner.post("/api/tour", &json!({}));
        (stream.status == 200).then_some(stream)
    });
    second.until("ask");
    assert_eq!(demos(&folder), 1, "what the first had is removed");
    served.signal("-TERM");
    let last = second.events().pop();
    assert_eq!(last.map(|event| event.name), Some("failed".to_owned()));
    assert_eq!(served.process.wait().unwrap().code(), Some(0));
    assert_eq!(demos(&folder), 0);
}

#[test]
fn the_tour_is_for_the_owner_at_the_page() {
    let (world, folder) = world();
    let tokens = [("owner", "owner"), ("owner", "chat"), ("ann", "chat")]
        .map(|(user, scope)| token(&world, user, scope));
    let served = Served::start(&world);
    for token in &tokens {
        served.post("/api/tour", token, &json!({})).refused(403, "for the owner");
        let answer = json!({"tour": "x", "approve": true});
        served.post("/api/tour/answer", token, &answer).refused(403, "for the owner");
    }
    served.ask("POST /api/tour", &[], Some(&json!({}))).refused(401, "a token or a signed-in browser");
    assert_eq!(demos(&folder), 0);
}
