//! `embody mind --listen` on a port, spoken to by our own client.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use embody_wire::upstream::Route;
use embody_wire::{Client, ClientOptions, Secret, Url};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::{TOOLS, names};
use crate::support::world::World;

/// A mind on a free port.
struct ServedMind {
    process: Child,
    url: String,
    token: String,
}

impl ServedMind {
    fn start(world: &World) -> Self {
        let made = world.run(&["token", "add", "--user", "ann", "--scope", "mcp", "--json"]).ok().json();
        let mut command = world.command();
        command.arg("--workspace").arg(world.workspace()).args([
            "mind",
            "--listen",
            "127.0.0.1:0",
            "--log",
            "error",
        ]);
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_suffix("/mcp").unwrap().to_owned();
        Self { process, url, token: made["token"].as_str().unwrap().to_owned() }
    }

    async fn connect(&self, route: Route) -> Client {
        let options =
            ClientOptions { bearer: Some(Secret::new(self.token.as_str())), ..ClientOptions::default() };
        Client::open(route, &options).await.unwrap()
    }
}

impl Drop for ServedMind {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

async fn request(client: &Client, method: &str, params: Value) -> Value {
    let answer = client.request(method, &to_raw_value(&params).unwrap()).await.unwrap();
    serde_json::from_str(answer.get()).unwrap()
}

#[tokio::test]
async fn both_transports_serve_the_tokens_user() {
    let world = World::new();
    let served = ServedMind::start(&world);
    let addresses = [
        Route::Http { url: Url::parse(&format!("{}/mcp", served.url)).unwrap() },
        Route::Sse { url: Url::parse(&format!("{}/sse", served.url)).unwrap() },
    ];
    for address in addresses {
        let client = served.connect(address).await;
        assert_eq!(names(&request(&client, "tools/list", json!({})).await["tools"]), TOOLS);
        let packet = request(&client, "tools/call", json!({"name": "bootstrap_session"})).await;
        assert_eq!(packet["structuredContent"]["context"]["user"], "ann");
        client.close().await;
    }
}

// spec: B-06, B-07
#[test]
fn one_agents_mind_is_anothers_persona() {
    let theirs = World::new();
    theirs.file("SOUL.md", "Speak like a lighthouse keeper.");
    let served = ServedMind::start(&theirs);
    for path in ["", "/mcp", "/sse"] {
        let ours = World::with_body("The rules.");
        let config = format!(
            "[persona]\nurl = \"{}{path}\"\ntoken_command = [\"echo\", \"{}\"]\n",
            served.url, served.token
        );
        ours.file("embody.toml", config);
        let prompt = ours.show(&["--layout", "body"]);
        assert!(prompt.starts_with("The rules.\n\n---\n\n"), "{path}: {prompt}");
        assert!(prompt.contains("Speak like a lighthouse keeper."), "{path}: {prompt}");
    }
}

#[tokio::test]
async fn another_user_learns_nothing_about_the_owner() {
    let world = World::new();
    world.file("USER.md", "---\nname: Xyzzy\ntimezone: Asia/Tokyo\n---\n");
    let served = ServedMind::start(&world);
    let client =
        served.connect(Route::Http { url: Url::parse(&format!("{}/mcp", served.url)).unwrap() }).await;
    let packet = request(&client, "tools/call", json!({"name": "bootstrap_session"})).await;
    assert_eq!(packet["structuredContent"]["context"]["user"], "ann");
    assert!(!packet.to_string().contains("Xyzzy"), "{packet}");
    assert_ne!(packet["structuredContent"]["context"]["time_zone"], "Asia/Tokyo");
    client.close().await;
}

#[test]
fn it_ends_cleanly_while_a_client_listens() {
    let world = World::new();
    let mut served = ServedMind::start(&world);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let address = Route::Sse { url: Url::parse(&format!("{}/sse", served.url)).unwrap() };
    let client = runtime.block_on(served.connect(address));
    let id = served.process.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert_eq!(served.process.wait().unwrap().code(), Some(0));
    drop(client);
}

#[test]
fn an_address_that_others_reach_is_refused() {
    let world = World::new();
    world
        .run(&["mind", "--listen", "0.0.0.0:0"])
        .ended(2)
        .says(&["reachable from other machines", "--allow-remote"]);
    world.run(&["mind", "--listen", "nowhere"]).ended(2).says(&["invalid address `nowhere`"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thirty_two_clients_at_once_find_their_own_and_nothing_else() {
    let world = World::new();
    let served = ServedMind::start(&world);
    let tokens: Vec<String> = (0..8)
        .map(|user| {
            let user = format!("user {user}");
            let made = world.run(&["token", "add", "--user", &user, "--scope", "mcp", "--json"]).ok().json();
            made["token"].as_str().unwrap().to_owned()
        })
        .collect();
    let mut clients = tokio::task::JoinSet::new();
    for number in 0..32 {
        let (token, url) = (tokens[number % 8].clone(), served.url.clone());
        clients.spawn(async move {
            let route = if number % 2 == 0 {
                Route::Http { url: Url::parse(&format!("{url}/mcp")).unwrap() }
            } else {
                Route::Sse { url: Url::parse(&format!("{url}/sse")).unwrap() }
            };
            let options =
                ClientOptions { bearer: Some(Secret::new(token.as_str())), ..ClientOptions::default() };
            let client = Client::open(route, &options).await.unwrap();
            for round in 0..10 {
                let text = format!(
                    "the word of user {} is heron, said client {number} in round {round}",
                    number % 8
                );
                let call = |tool: &str, arguments: Value| json!({"name": tool, "arguments": arguments});
                let saved = request(&client, "tools/call", call("save_memory", json!({"text": text}))).await;
                assert_eq!(saved["isError"], false, "{saved}");
                let asked = json!({"query": "whose word is heron?", "limit": 50});
                let found = request(&client, "tools/call", call("read_memory", asked)).await;
                let found = found["structuredContent"]["memories"].as_array().unwrap().clone();
                let own = format!("the word of user {} is", number % 8);
                assert!(found.iter().any(|memory| memory["id"] == saved["structuredContent"]["id"]));
                assert!(
                    found.iter().all(|memory| memory["text"].as_str().unwrap().starts_with(&own)),
                    "{found:?}"
                );
            }
            client.close().await;
        });
    }
    clients.join_all().await;
    let counted = world.run(&["memory", "list", "--user", "user 3", "--limit", "200", "--json"]).ok().json();
    assert_eq!(counted["memories"].as_array().unwrap().len(), 40);
}
