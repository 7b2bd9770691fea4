//! Sessions over streamable HTTP: headers, versions, termination.

use std::time::Duration;

use embody_wire::{Kind, Limits, Version};

use crate::fake::*;
use crate::raw::serve_raw;

#[tokio::test]
async fn session_and_version_are_named_after_initialize_and_the_session_is_ended() {
    let (base, log) = serve(session_with("{}")).await;
    let client = connect_http(&base, terms()).await.unwrap();
    client.request("tools/call", &no_params()).await.unwrap();
    client.notify("notifications/x", Some(&raw_json("[1]"))).await.unwrap();
    client.close().await;
    let headers: Vec<_> = log
        .all()
        .iter()
        .map(|seen| {
            let named = |name| seen.header(name).unwrap_or("-").to_owned();
            format!("{} {} {}", seen.method, named("mcp-session-id"), named("mcp-protocol-version"))
        })
        .collect();
    let later = "POST s-1 2025-11-25";
    assert_eq!(headers, ["POST - -", later, later, later, "DELETE s-1 2025-11-25"]);
    assert_eq!(log.all()[3].body, r#"{"jsonrpc":"2.0","method":"notifications/x","params":[1]}"#);
    assert_eq!(log.all()[4].header("authorization"), Some(format!("Bearer {TOKEN}").as_str()));
}

#[tokio::test]
async fn without_a_session_there_is_nothing_to_end() {
    let (base, log) = serve(|seen| match seen.rpc_method().as_str() {
        "initialize" => json(&initialize_result(seen)),
        _ => status(202),
    })
    .await;
    connect_http(&base, terms()).await.unwrap().close().await;
    assert_eq!(log.lines(), ["POST / initialize", "POST / notifications/initialized"]);
    assert_eq!(log.all()[1].header("mcp-session-id"), None);
}

#[tokio::test]
async fn every_version_of_the_session_era_is_taken_and_named() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let (base, log) = serve(move |seen| match seen.rpc_method().as_str() {
            "initialize" => json(&initialize_result_of(seen, version)),
            _ => status(202),
        })
        .await;
        let client = connect_http(&base, terms()).await.unwrap();
        assert_eq!(client.version(), Version::parse(version).unwrap());
        assert_eq!(log.all()[1].header("mcp-protocol-version"), Some(version));
    }
}

#[tokio::test]
async fn another_version_is_refused_by_name_and_its_session_ended() {
    let (base, log) = serve(|seen| match seen.rpc_method().as_str() {
        "initialize" => {
            let mut reply = json(&initialize_result_of(seen, "2026-07-28"));
            reply.headers_mut().insert("mcp-session-id", "s-1".parse().unwrap());
            reply
        }
        _ => status(202),
    })
    .await;
    let error = connect_http(&base, terms()).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Protocol);
    assert_eq!(
        error.to_string(),
        "the server chose protocol version `2026-07-28`, which does not use sessions"
    );
    assert_eq!(log.lines(), ["POST / initialize", "DELETE / "]);
}

#[tokio::test]
async fn a_greeting_without_a_version_is_refused() {
    let (base, _) = serve(|seen| json(&result_of(seen, "{}"))).await;
    let error = connect_http(&base, terms()).await.unwrap_err();
    assert_eq!(error.to_string(), "the response to `initialize` names no protocol version");
}

#[tokio::test]
async fn a_session_the_server_forgot_is_told_apart_from_a_wrong_path() {
    let (base, _) = serve(|seen| match seen.rpc_method().as_str() {
        "tools/call" => status(404),
        _ => session_with("{}")(seen),
    })
    .await;
    let client = connect_http(&base, terms()).await.unwrap();
    let error = client.request("tools/call", &no_params()).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (Kind::Refused, "the server no longer knows the session")
    );
}

#[tokio::test]
async fn a_session_id_that_is_not_visible_ascii_is_refused() {
    let (base, _) = serve(|seen| {
        let mut reply = json(&initialize_result(seen));
        reply.headers_mut().insert("mcp-session-id", "two words".parse().unwrap());
        reply
    })
    .await;
    let error = connect_http(&base, terms()).await.unwrap_err();
    assert_eq!(error.to_string(), "the server's session id is empty, too long or not visible ASCII");
}

#[tokio::test]
async fn calls_at_the_same_time_get_their_own_answers() {
    let (base, _) = serve(|seen| match seen.rpc_method().as_str() {
        "initialize" => json(&initialize_result(seen)),
        "echo" => {
            let body: serde_json::Value = serde_json::from_str(&seen.body).unwrap();
            json(&result_of(seen, &body["params"].to_string()))
        }
        _ => status(202),
    })
    .await;
    let client = connect_http(&base, terms()).await.unwrap();
    let (one, two) = (raw_json("[1]"), raw_json("[2]"));
    let (first, second) = tokio::join!(client.request("echo", &one), client.request("echo", &two));
    assert_eq!((first.unwrap().get(), second.unwrap().get()), ("[1]", "[2]"));
}

#[tokio::test]
async fn an_unanswered_delete_does_not_delay_close() {
    let (base, _) = serve_raw(|seen, mut connection| {
        Box::pin(async move {
            match (seen.method.as_str(), seen.rpc_method().as_str()) {
                ("DELETE", _) => connection.wait_for_hang_up().await,
                (_, "initialize") => {
                    let body = initialize_result(&seen);
                    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nmcp-session-id: s-1";
                    let length = body.len();
                    connection
                        .write(&format!(
                            "{head}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
                        ))
                        .await;
                }
                _ => connection.status("202 Accepted").await,
            }
        })
    })
    .await;
    let limits = Limits { courtesy_timeout: SHORT, ..Limits::default() };
    let client = connect_http(&base, terms_with(limits)).await.unwrap();
    let limit = Duration::from_secs(30);
    assert!(tokio::time::timeout(limit, client.close()).await.is_ok());
}
