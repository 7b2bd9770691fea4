//! Well-known servers, directly and behind the broker: every tool, resource, template and prompt returns the same bytes.
//! What comes besides answers (notifications, questions) is compared too, but for what [`NOT_COMPARED`] names.

mod steps;

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use self::steps::{TASK, steps};
use super::host::{Answer, Host, ReceivedMessages};
use super::servers::{Server, Servers};
use super::setup::{ALLOW_ALL, host, world};
use crate::support::world::World;

/// What may differ, and why.
const NOT_COMPARED: [(&str, &str); 4] = [
    ("notifications/tools/list_changed", "the broker joins several into one, and has tools of its own"),
    ("notifications/resources/list_changed", "the broker joins several into one"),
    ("notifications/prompts/list_changed", "the broker joins several into one"),
    (
        "elicitation/create",
        "the broker writes the body's name into the message, so that it cannot pose as another's",
    ),
];

/// Kinds of things that are listed: the method, the key of the result, and what tells one from another.
pub(super) const LISTS: [(&str, &str, &str); 4] = [
    ("tools/list", "tools", "name"),
    ("resources/list", "resources", "uri"),
    ("resources/templates/list", "resourceTemplates", "uriTemplate"),
    ("prompts/list", "prompts", "name"),
];

/// Everything that a host got to see, as text.
#[derive(Debug, Default, PartialEq, Eq)]
struct Observed {
    /// Kind of list → what tells an item from another → the item.
    listed: BTreeMap<&'static str, BTreeMap<String, String>>,
    answers: Vec<(String, Answer)>,
    /// By method, in order.
    notices: BTreeMap<String, Vec<String>>,
    questions: BTreeMap<String, Vec<String>>,
}

impl Observed {
    /// Asks for every list, and takes the pages apart into items.
    fn list(&mut self, host: &mut Host) {
        for (method, key, identity) in LISTS {
            let items = self.listed.entry(method).or_default();
            let found = list(host, &json!({}), method, key, identity);
            for (name, item) in found.into_iter().filter(|(name, _)| !is_the_minds(name)) {
                assert_eq!(items.insert(name.clone(), item), None, "two times `{name}`");
            }
        }
    }

    fn follow(&mut self, host: &mut Host, steps: &[(&'static str, String)]) {
        let mut task = String::new();
        for (method, params) in steps {
            let params = params.replace(TASK, &task);
            let answer = host.ask(method, &params);
            if let Answer::Result(text) = &answer
                && let Some(id) = serde_json::from_str::<Value>(text).unwrap()["task"]["taskId"].as_str()
            {
                id.clone_into(&mut task);
            }
            self.answers.push((format!("{method} {params}"), answer));
        }
    }

    fn receive(&mut self, host: &mut Host) {
        let is_compared = |method: &str| NOT_COMPARED.iter().all(|(name, _)| *name != method);
        let is_the_minds = |params: &str| params.contains("\"memory://");
        let is_heard =
            |notice: &ReceivedMessages| is_compared(&notice.method) && !is_the_minds(&notice.params);
        for notice in host.notices.drain(..).filter(is_heard) {
            let received = self.notices.entry(notice.method.clone()).or_default();
            // One change notification may stand for several changes.
            let is_repeated =
                notice.method == "notifications/resources/updated" && received.contains(&notice.params);
            if !is_repeated {
                received.push(notice.params);
            }
            if notice.method == "notifications/resources/updated" {
                // Of several servers, whichever comes first.
                received.sort();
            }
        }
        for question in host.questions.drain(..) {
            let params = if is_compared(&question.method) { question.params } else { String::new() };
            self.questions.entry(question.method).or_default().push(params);
        }
    }
}

/// Every item of a list with what tells it from another, as text. Each request has these params, and its cursor.
pub(super) fn list(
    host: &mut Host,
    params: &Value,
    method: &str,
    key: &str,
    identity: &str,
) -> Vec<(String, String)> {
    #[derive(Deserialize)]
    struct Page {
        #[serde(rename = "nextCursor")]
        next: Option<String>,
        #[serde(flatten)]
        rest: BTreeMap<String, Value>,
    }
    let mut found = Vec::new();
    let mut params = params.clone();
    loop {
        // A server without that kind of thing says so.
        let Answer::Result(text) = host.ask(method, &params.to_string()) else { return found };
        let page: Page = serde_json::from_str(&text).unwrap();
        let raw: BTreeMap<&str, &RawValue> = serde_json::from_str(&text).unwrap();
        let items: Vec<&RawValue> = serde_json::from_str(raw[key].get()).unwrap();
        for (item, data) in items.iter().zip(page.rest[key].as_array().unwrap()) {
            found.push((data[identity].as_str().unwrap().to_owned(), item.get().to_owned()));
        }
        match page.next {
            Some(cursor) => params["cursor"] = cursor.into(),
            None => return found,
        }
    }
}

/// Waits for what a server does by itself after the handshake.
fn settle(host: &mut Host, servers: &[Server]) {
    if servers.contains(&Server::Everything) {
        host.until("the roots that the server asks for by itself", |host| {
            host.notices.iter().any(|notice| notice.params.contains("Roots updated"))
        });
    }
    let asking = servers.iter().filter(|server| **server != Server::Memory).count();
    host.until("everybody's question for roots", |host| {
        host.questions.iter().filter(|question| question.method == "roots/list").count() >= asking
    });
}

fn directly(servers: &Servers<'_>) -> Observed {
    servers.reset();
    let mut seen = Observed::default();
    for server in Server::ALL {
        let mut host = Host::start(servers.command(server)).answering(servers.script());
        host.initialize(&Servers::capabilities());
        settle(&mut host, &[server]);
        seen.list(&mut host);
        seen.follow(&mut host, &steps(server, servers));
        seen.receive(&mut host);
        // One of them does not end by itself when its host is gone.
        host.kill();
    }
    seen
}

fn through_the_broker(world: &World, servers: &Servers<'_>, expected: &Observed) -> Observed {
    servers.reset();
    let mut seen = Observed::default();
    let mut host = host(world, &Servers::capabilities(), servers.script());
    settle(&mut host, &Server::ALL);
    seen.list(&mut host);
    // The broker and the mind have things of their own.
    for (method, items) in &mut seen.listed {
        items.retain(|name, _| expected.listed[method].contains_key(name));
    }
    for server in Server::ALL {
        seen.follow(&mut host, &steps(server, servers));
    }
    // What belongs to no call comes on a way of its own, perhaps after the answer that it preceded.
    host.until("everything that the servers announce", |host| {
        let is_there = |method: &str, params: &str| {
            host.notices.iter().any(|notice| notice.method == method && notice.params == params)
        };
        expected.notices.iter().all(|(method, all)| all.iter().all(|params| is_there(method, params)))
    });
    seen.receive(&mut host);
    assert!(host.close().success());
    seen
}

/// The scheme belongs to the mind: through the broker no body has such a resource.
fn is_the_minds(name: &str) -> bool {
    name.starts_with("memory://")
}

/// Says what differs first, instead of everything.
fn assert_same(expected: &Observed, got: &Observed) {
    for (method, items) in &expected.listed {
        for (name, item) in items {
            assert_eq!(Some(item), got.listed[method].get(name), "{method}: `{name}`");
        }
    }
    for (expected, got) in expected.answers.iter().zip(&got.answers) {
        assert_eq!(expected, got);
    }
    assert_eq!(expected, got);
}

/// A step that succeeds for everything that is listed, and none for what is not.
fn assert_complete(seen: &Observed) {
    let names = |method: &str| seen.listed[method].keys().cloned().collect::<BTreeSet<String>>();
    let asked = |method: &str, key: &str| -> BTreeSet<String> {
        let prefix = format!("{method} ");
        let succeeds =
            |answer: &Answer| matches!(answer, Answer::Result(text) if !text.contains(r#""isError":true"#));
        let steps = seen.answers.iter().filter(|(_, answer)| succeeds(answer));
        steps
            .filter_map(|(step, _)| {
                let params = step.strip_prefix(&prefix)?;
                let params: Value = serde_json::from_str(params).unwrap();
                Some(params[key].as_str()?.to_owned())
            })
            .collect()
    };
    assert_eq!(names("tools/list"), asked("tools/call", "name"));
    assert_eq!(names("prompts/list"), asked("prompts/get", "name"));
    let read = asked("resources/read", "uri");
    assert!(names("resources/list").is_subset(&read), "{read:?}");
    for template in names("resources/templates/list") {
        let (prefix, _) = template.split_once('{').unwrap();
        assert!(read.iter().any(|uri| uri.starts_with(prefix)), "nobody reads `{template}`");
    }
}

#[test]
fn the_servers_answer_the_same_two_times() {
    let world = World::new();
    let servers = Servers::prepare(&world);
    let first = directly(&servers);
    assert_complete(&first);
    assert_same(&first, &directly(&servers));
}

// spec: N-05
#[test]
fn every_answer_through_the_broker_is_the_servers_own_to_the_byte() {
    let world = world(&[]);
    let servers = Servers::prepare(&world);
    let bodies = Server::ALL.map(|server| servers.body(server)).concat();
    world.file("embody.toml", bodies + ALLOW_ALL);
    let expected = directly(&servers);
    assert_same(&expected, &through_the_broker(&world, &servers, &expected));
}
