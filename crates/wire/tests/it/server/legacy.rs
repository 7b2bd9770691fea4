//! Legacy HTTP+SSE, tested with our own client.

use embody_wire::upstream::Route;
use embody_wire::{Client, ClientOptions, Secret, Url};

use super::*;

#[tokio::test]
async fn our_own_client_speaks_with_it() {
    let mut served = served(Limits::default()).await;
    let terms = ClientOptions { bearer: Some(Secret::new("ann")), ..ClientOptions::default() };
    let route = Route::Sse { url: Url::parse(&format!("{}/sse", served.url)).unwrap() };
    let client = Client::open(route, &terms).await.unwrap();
    let answer = client.request("whoami", &raw(&json!({}))).await.unwrap();
    assert_eq!(answer.get(), r#"{"principal":"ann","session":true}"#);
    client.close().await;
    loop {
        if next(&mut served.seen).await == "ann is gone" {
            return;
        }
    }
}

#[tokio::test]
async fn one_cannot_post_to_anothers_stream() {
    let served = served(Limits::default()).await;
    let http = reqwest::Client::new();
    let mut stream =
        http.get(format!("{}/sse", served.url)).header("authorization", "Bearer ann").send().await.unwrap();
    let first = stream.chunk().await.unwrap().unwrap();
    let first = String::from_utf8(first.to_vec()).unwrap();
    let place = first.lines().find_map(|line| line.strip_prefix("data: ")).unwrap().to_owned();
    let post = |token: &'static str, place: String| {
        http.post(format!("{}{place}", served.url))
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", "application/json")
            .body(request(1, "initialize").to_string())
            .send()
    };
    assert_eq!(post("bob", place.clone()).await.unwrap().status(), 404);
    assert_eq!(post("ann", "/messages".into()).await.unwrap().status(), 404);
    assert_eq!(post("ann", place).await.unwrap().status(), 202);
    let answer = stream.chunk().await.unwrap().unwrap();
    assert!(answer.starts_with(b"event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\""));
}

#[tokio::test]
async fn when_the_server_ends_running_calls_finish() {
    let mut served = served(Limits::default()).await;
    let http = reqwest::Client::new();
    let mut stream =
        http.get(format!("{}/sse", served.url)).header("authorization", "Bearer ann").send().await.unwrap();
    let first = stream.chunk().await.unwrap().unwrap();
    let first = String::from_utf8(first.to_vec()).unwrap();
    let place = first.lines().find_map(|line| line.strip_prefix("data: ")).unwrap().to_owned();
    for (id, method) in [(1, "initialize"), (2, "wait")] {
        let post = http.post(format!("{}{place}", served.url)).header("authorization", "Bearer ann");
        let post = post.header("content-type", "application/json").body(request(id, method).to_string());
        assert_eq!(post.send().await.unwrap().status(), 202);
    }
    assert_eq!(next(&mut served.seen).await, "waiting");
    served.switch.cancel();
    let rest = tokio::time::timeout(SOON, stream.text()).await.expect("it never ended").unwrap();
    assert!(rest.contains(r#""id":2,"result":{"waited":true}"#), "{rest}");
}
