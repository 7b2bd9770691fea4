//! Tests for when `subscriptions/listen` is sent again, with the server scripted on a pipe.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::super::pipe::Pipe;
use super::super::stateless::SUBSCRIPTION_ID;
use super::*;
use crate::initialize::InitializeParams;
use crate::limits::Limits;

const LIMIT: Duration = Duration::from_secs(30);
const NEVER: Duration = Duration::from_secs(3600);
const GRACE: Duration = Duration::from_millis(20);
const PROMPTS: &str = "notifications/prompts/list_changed";

struct Server {
    input: Lines<BufReader<ReadHalf<DuplexStream>>>,
    output: WriteHalf<DuplexStream>,
    stateless: Arc<Stateless>,
    calls: Arc<Calls>,
    says: mpsc::Receiver<ServerMessage>,
    listening: JoinHandle<()>,
}

impl Server {
    fn new(pauses: ListenBackoff) -> Self {
        Self::with(pauses, Limits::default())
    }

    fn with(pauses: ListenBackoff, limits: Limits) -> Self {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let (messages, says) = mpsc::channel(16);
        let (calls, stateless) =
            (Arc::<Calls>::default(), Arc::new(Stateless::new(&InitializeParams::default())));
        let ends = (Arc::clone(&calls), messages.clone());
        let pipe = Pipe::open(tokio::io::split(ours), limits, ends, None);
        let (transport, watched) = (Arc::new(Transport::Pipe(Box::new(pipe))), Arc::clone(&stateless));
        let listener =
            Listener { transport, stateless: watched, calls: Arc::clone(&calls), messages, pauses };
        let listening = tokio::spawn(listener.run());
        let (input, output) = tokio::io::split(theirs);
        Self { input: BufReader::new(input).lines(), output, stateless, calls, says, listening }
    }

    async fn next(&mut self) -> Value {
        let line = timeout(LIMIT, self.input.next_line()).await.unwrap().unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// The id of the next listen request, and when it came.
    async fn asked(&mut self) -> (Value, Instant) {
        loop {
            let message = self.next().await;
            if message["method"] == "subscriptions/listen" {
                return (message["id"].clone(), Instant::now());
            }
        }
    }

    async fn say(&mut self, message: Value) {
        self.output.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn refuse(&mut self, id: Value, code: i64) {
        self.say(json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": "no"}})).await;
    }

    async fn agree(&mut self, id: &Value, agreed: Value) {
        let params = json!({"notifications": agreed, "_meta": {SUBSCRIPTION_ID: id}});
        self.say(json!({"jsonrpc": "2.0", "method": ACKNOWLEDGED, "params": params})).await;
    }

    /// The method of the next notification that the listener receives.
    async fn next_method(&mut self) -> String {
        match timeout(LIMIT, self.says.recv()).await.unwrap() {
            Some(ServerMessage::Notification(notification)) => notification.method,
            other => panic!("{other:?}"),
        }
    }

    fn watch(&self, task: &str) {
        self.stateless.watch_tasks([task.to_owned()].into());
    }
}

#[tokio::test]
async fn a_server_that_refuses_is_asked_ever_more_seldom() {
    let (first, most) = (Duration::from_millis(20), Duration::from_millis(80));
    let mut server = Server::new(ListenBackoff { first, growth: 2, most, grace: GRACE });
    let mut refused_at = None;
    for times in [0, 1, 2, 4, 4, 4] {
        let (id, at) = server.asked().await;
        let pause = refused_at.map(|refused_at| at - refused_at);
        assert!(pause.is_none_or(|pause| pause >= first * times), "{pause:?} instead of {times} * {first:?}");
        refused_at = Some(Instant::now());
        server.refuse(id, -32000).await;
    }
}

#[test]
fn pauses_are_bounded() {
    let pauses = ListenBackoff::default();
    let seconds: Vec<u64> = [1, 2, 3, 6, 7, 40, u32::MAX].map(|n| pauses.after(n).as_secs()).to_vec();
    assert_eq!(seconds, [5, 10, 20, 160, 300, 300, 300]);
    assert_eq!(pauses.after(0), pauses.first);
}

#[tokio::test]
async fn a_server_that_does_not_know_how_to_tell_is_not_asked_again() {
    let first = Duration::from_millis(1);
    let mut server = Server::new(ListenBackoff { first, growth: 1, most: first, grace: GRACE });
    let (id, _) = server.asked().await;
    server.refuse(id, -32601).await;
    // No `watch` sender is left that could change the set.
    timeout(LIMIT, &mut server.listening).await.unwrap().unwrap();
}

#[tokio::test]
async fn another_question_is_asked_soon() {
    let mut server = Server::new(ListenBackoff {
        first: Duration::from_millis(1),
        growth: u32::MAX,
        most: NEVER,
        grace: GRACE,
    });
    for _ in 0..2 {
        let (id, _) = server.asked().await;
        server.refuse(id.clone(), -32602).await;
        while server.calls.has(id.as_u64().unwrap()) {
            tokio::task::yield_now().await;
        }
    }
    // The listener runs before this task on the only thread, and then waits.
    tokio::task::yield_now().await;
    server.watch("t");
    server.asked().await;
}

#[tokio::test]
async fn a_request_that_was_open_for_a_while_was_not_refused() {
    let first = Duration::from_millis(20);
    let mut server = Server::new(ListenBackoff { first, growth: u32::MAX, most: NEVER, grace: GRACE });
    for round in 0..6 {
        let (id, _) = server.asked().await;
        server.agree(&id, json!({})).await;
        sleep(first).await;
        match round % 2 {
            0 => server.say(json!({"jsonrpc": "2.0", "id": id, "result": {}})).await,
            _ => server.refuse(id, -32000).await,
        }
    }
}

#[tokio::test]
async fn a_request_ends_when_the_server_has_agreed_to_the_next() {
    let mut server = Server::new(ListenBackoff { first: NEVER, growth: 1, most: NEVER, grace: GRACE });
    let (first, _) = server.asked().await;
    server.agree(&first, json!({"toolsListChanged": true})).await;
    assert_eq!(server.next_method().await, ACKNOWLEDGED);
    server.watch("a");
    let second = server.next().await;
    assert_eq!(second["params"]["notifications"]["taskIds"], json!(["a"]), "the first is not ended yet");
    // Changes in the meantime are combined into one further request, sent once the server has acknowledged this one.
    server.watch("b");
    server.watch("c");
    server.agree(&second["id"], json!({"toolsListChanged": true})).await;
    let ended = server.next().await;
    assert_eq!(
        (&ended["method"], &ended["params"]["requestId"]),
        (&json!("notifications/cancelled"), &first)
    );
    let third = server.next().await;
    assert_eq!(third["params"]["notifications"]["taskIds"], json!(["c"]));
    server.agree(&third["id"], json!({"toolsListChanged": true})).await;
    assert_eq!(server.next().await["params"]["requestId"], second["id"]);
    assert_eq!(
        (server.next_method().await, server.next_method().await),
        (ACKNOWLEDGED.into(), ACKNOWLEDGED.into())
    );
    assert!(server.says.try_recv().is_err(), "nothing was missed");
}

#[tokio::test]
async fn a_server_that_has_one_such_request_at_a_time_is_asked_for_one() {
    let mut server = Server::new(ListenBackoff { first: NEVER, growth: 1, most: NEVER, grace: GRACE });
    let (first, _) = server.asked().await;
    server.watch("a");
    let (second, _) = server.asked().await;
    server.refuse(second, -32000).await;
    assert_eq!(server.next().await["params"]["requestId"], first);
    let (third, _) = server.asked().await;
    server.agree(&third, json!({"promptsListChanged": true})).await;
    assert_eq!(
        (server.next_method().await, server.next_method().await),
        (ACKNOWLEDGED.into(), PROMPTS.into())
    );
}

#[tokio::test]
async fn a_server_that_does_not_say_that_it_agrees_is_not_listened_to_twice_for_ever() {
    let first = Duration::from_millis(20);
    let mut server = Server::new(ListenBackoff { first, growth: 1, most: NEVER, grace: GRACE });
    let (one, _) = server.asked().await;
    server.watch("a");
    let (two, _) = server.asked().await;
    assert_eq!(server.next().await["params"]["requestId"], one);
    // Since then no request was open.
    server.agree(&two, json!({"promptsListChanged": true})).await;
    assert_eq!(
        (server.next_method().await, server.next_method().await),
        (ACKNOWLEDGED.into(), PROMPTS.into())
    );
}

#[tokio::test]
async fn a_request_that_cannot_be_renewed_now_is_kept() {
    let limits = Limits { calls_max: 1, ..Limits::default() };
    let pauses = ListenBackoff { first: Duration::from_millis(1), growth: 1, most: NEVER, grace: GRACE };
    let mut server = Server::with(pauses, limits);
    let (id, _) = server.asked().await;
    server.agree(&id, json!({"promptsListChanged": true})).await;
    assert_eq!(server.next_method().await, ACKNOWLEDGED);
    // The server allows no second request.
    server.watch("a");
    tokio::task::yield_now().await;
    server
        .say(json!({"jsonrpc": "2.0", "method": PROMPTS, "params": {"_meta": {SUBSCRIPTION_ID: id}}}))
        .await;
    assert_eq!(server.next_method().await, PROMPTS);
    // The old request was not ended in the meantime: the next request is a new one, once the server allows it.
    server.say(json!({"jsonrpc": "2.0", "id": id, "result": {}})).await;
    let next = server.next().await;
    assert_eq!(
        (&next["method"], &next["params"]["notifications"]["taskIds"]),
        (&json!(LISTEN), &json!(["a"]))
    );
}

#[tokio::test]
async fn changes_missed_without_a_listener_are_reported() {
    let mut server =
        Server::new(ListenBackoff { first: Duration::from_millis(1), growth: 1, most: NEVER, grace: GRACE });
    for uri in ["a", "b"] {
        let params = serde_json::value::to_raw_value(&json!({ "uri": uri })).unwrap();
        server
            .stateless
            .answer_locally(OutgoingCall { method: "resources/subscribe", params: Some(&params) });
    }
    let agreed =
        json!({"toolsListChanged": true, "promptsListChanged": false, "resourceSubscriptions": ["b", "x"]});
    let (id, _) = server.asked().await;
    server.agree(&id, agreed.clone()).await;
    assert_eq!(server.next_method().await, ACKNOWLEDGED);
    server.say(json!({"jsonrpc": "2.0", "id": id, "result": {}})).await;
    let (id, _) = server.asked().await;
    assert!(server.says.try_recv().is_err(), "the server has not agreed to tell");
    server.agree(&id, agreed).await;
    let heard = [server.next_method().await, server.next_method().await, server.next_method().await];
    assert_eq!(heard, [ACKNOWLEDGED, "notifications/tools/list_changed", "notifications/resources/updated"]);
    assert!(server.says.try_recv().is_err());
}
