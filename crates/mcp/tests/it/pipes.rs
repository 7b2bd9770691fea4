//! A small offer on pipes in this process: what no peer shows.

use std::sync::Arc;
use std::time::Duration;

use embody_mcp::{
    AuthError, Capabilities, Change, ChangeNotifier, ClientRequest, Credentials, ElicitOutcome,
    RequestContext, RequestError, Server, ServerHandler, ServerInfo,
};
use embody_wire::Limits;
use embody_wire::server::{CancellationToken, lines};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};

/// Long enough for anything that happens at all.
const SOON: Duration = Duration::from_secs(20);

/// Its one tool asks the person behind the host.
struct Small;

impl ServerHandler for Small {
    type Principal = &'static str;

    fn server_info(&self) -> ServerInfo {
        let text = || "small".to_owned();
        ServerInfo { name: text(), title: text(), version: text(), instructions: text() }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { tools: true, resources: true, ..Capabilities::default() }
    }

    async fn authenticate(&self, _: Credentials) -> Result<Self::Principal, AuthError> {
        Ok("somebody")
    }

    async fn handle(
        &self,
        request: ClientRequest,
        context: &RequestContext<Self::Principal>,
    ) -> Result<Map<String, Value>, RequestError> {
        match request {
            ClientRequest::Tool(_) => {
                match context.ask("name", "elicitation/create", json!({"message": "?"})).await? {
                    ElicitOutcome::Answer(answer) => Ok(Map::from_iter([("answer".to_owned(), answer)])),
                    ElicitOutcome::InputRequired(result) => Ok(result),
                }
            }
            _ => Ok(Map::new()),
        }
    }
}

struct Pipe {
    input: WriteHalf<DuplexStream>,
    output: Lines<BufReader<ReadHalf<DuplexStream>>>,
    switch: CancellationToken,
}

type Shared = Arc<ChangeNotifier<&'static str>>;

fn pipe(principal: &'static str, changes: &Shared) -> Pipe {
    // Small, so that a host which does not read is noticed soon.
    let (ours, theirs) = tokio::io::duplex(1024);
    let ending = CancellationToken::new();
    let switch = ending.clone();
    let server = Arc::new(Server::new(Arc::new(Small), Arc::clone(changes)));
    tokio::spawn(lines::serve(server, principal, tokio::io::split(theirs), Limits::default(), ending));
    let (output, input) = tokio::io::split(ours);
    Pipe { input, output: BufReader::new(output).lines(), switch }
}

impl Pipe {
    async fn say(&mut self, message: &Value) {
        self.input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn receive(&mut self) -> Value {
        let line = tokio::time::timeout(SOON, self.output.next_line()).await.expect("silence").unwrap();
        serde_json::from_str(&line.expect("the end")).unwrap()
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.say(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})).await;
        self.receive().await
    }

    async fn initialize(&mut self, capabilities: Value) {
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities});
        assert_eq!(self.ask("initialize", hello).await["result"]["protocolVersion"], "2025-11-25");
        self.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        // Notifications are taken in their order, so after this answer it was.
        assert_eq!(self.ask("ping", json!({})).await["result"], json!({}));
    }
}

fn modern(capabilities: &Value, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    params
}

#[tokio::test]
async fn a_change_reaches_the_hosts_of_its_principal() {
    let changes = Shared::default();
    let (mut ann, mut also_ann, mut bob) =
        (pipe("ann", &changes), pipe("ann", &changes), pipe("bob", &changes));
    for pipe in [&mut ann, &mut also_ann, &mut bob] {
        pipe.initialize(json!({})).await;
    }
    changes.notify(&Change::Resources, Some(&"ann"));
    changes.notify(&Change::Tools, None);
    for pipe in [&mut ann, &mut also_ann] {
        assert_eq!(pipe.receive().await["method"], "notifications/resources/list_changed");
        assert_eq!(pipe.receive().await["method"], "notifications/tools/list_changed");
    }
    assert_eq!(bob.receive().await["method"], "notifications/tools/list_changed");
}

#[tokio::test]
async fn a_host_that_does_not_read_delays_no_one_and_is_notified_later() {
    let changes = Shared::default();
    let (mut reads, mut sleeps) = (pipe("ann", &changes), pipe("bob", &changes));
    reads.initialize(json!({})).await;
    sleeps.initialize(json!({})).await;
    for _ in 0..2000 {
        changes.notify(&Change::Tools, None);
        assert_eq!(reads.receive().await["method"], "notifications/tools/list_changed");
    }
    changes.notify(&Change::Resources, None);
    // Of what it slept through it hears less often than it happened, but of everything.
    let mut count = 1;
    while sleeps.receive().await["method"] == "notifications/tools/list_changed" {
        count += 1;
    }
    assert!(count < 2000, "{count}");
}

#[tokio::test]
async fn a_resource_is_watched_by_those_who_asked_even_before_they_say_that_they_are_ready() {
    let changes = Shared::default();
    let mut hasty = pipe("ann", &changes);
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
    hasty.ask("initialize", hello).await;
    assert_eq!(hasty.ask("resources/subscribe", json!({"uri": "a:1"})).await["result"], json!({}));
    hasty.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    hasty.ask("ping", json!({})).await;
    changes.notify(&Change::Resource("a:2".to_owned()), None);
    changes.notify(&Change::Resource("a:1".to_owned()), None);
    assert_eq!(hasty.receive().await["params"]["uri"], "a:1");
}

#[tokio::test]
async fn a_host_is_asked_only_what_it_can_be() {
    let changes = Shared::default();
    let call = || json!({"name": "any"});
    let mut unable = pipe("ann", &changes);
    unable.initialize(json!({"sampling": {}})).await;
    assert_eq!(unable.ask("tools/call", call()).await["error"]["code"], -32021);
    let answer = unable.ask("tools/call", modern(&json!({}), call())).await;
    assert_eq!(answer["error"]["data"]["requiredCapabilities"], json!({"elicitation": {}}));
    let mut able = pipe("ann", &changes);
    able.initialize(json!({"elicitation": {}})).await;
    assert_eq!(able.ask("tools/call", call()).await["method"], "elicitation/create");
}

#[tokio::test]
async fn an_answer_that_is_none_is_refused() {
    let mut pipe = pipe("ann", &Shared::default());
    let call = |answer: Value| {
        modern(&json!({"elicitation": {}}), json!({"name": "any", "inputResponses": {"name": answer}}))
    };
    assert_eq!(pipe.ask("tools/call", call(json!(7))).await["error"]["code"], -32602);
    let answer = json!({"action": "accept", "content": {}});
    assert_eq!(pipe.ask("tools/call", call(answer.clone())).await["result"]["answer"], answer);
}

#[tokio::test]
async fn what_a_server_does_not_have_is_not_agreed_to() {
    let mut pipe = pipe("ann", &Shared::default());
    let wanted =
        json!({"toolsListChanged": true, "promptsListChanged": true, "resourceSubscriptions": ["a:1"]});
    let listen = modern(&json!({}), json!({"notifications": wanted}));
    let agreed = pipe.ask("subscriptions/listen", listen).await;
    assert_eq!(agreed["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(
        agreed["params"]["notifications"],
        json!({"toolsListChanged": true, "resourceSubscriptions": ["a:1"]})
    );
    let mut other = self::pipe("ann", &Shared::default());
    let none = other.ask("prompts/list", modern(&json!({}), json!({}))).await;
    assert_eq!(none["error"]["code"], -32601);
}

#[tokio::test]
async fn a_listener_is_notified_when_the_server_shuts_down() {
    let changes = Shared::default();
    let mut pipe = pipe("ann", &changes);
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    pipe.ask("subscriptions/listen", modern(&json!({}), wanted)).await;
    changes.notify(&Change::Resources, None);
    changes.notify(&Change::Tools, Some(&"bob"));
    changes.notify(&Change::Tools, None);
    let id = json!({"io.modelcontextprotocol/subscriptionId": 1});
    let notification = pipe.receive().await;
    assert_eq!(notification["method"], "notifications/tools/list_changed");
    assert_eq!(notification["params"]["_meta"], id);
    pipe.switch.cancel();
    let last = pipe.receive().await;
    assert_eq!((&last["id"], &last["result"]["resultType"]), (&json!(1), &json!("complete")));
    assert_eq!(last["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 1);
}
