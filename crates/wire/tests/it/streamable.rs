//! Streamable HTTP: responses as a body, valid and malformed.

use embody_wire::{Error, Kind, Limits, Outcome};

use crate::fake::*;

// spec: B-07
#[tokio::test]
async fn a_tool_call_is_answered_as_json() {
    let (base, log) = serve(session_with(r#"{"content":[]}"#)).await;
    let client = connect_http(&base, terms()).await.unwrap();
    let result = client.request("tools/call", &raw_json(r#"{"name":"get_system_prompt"}"#)).await.unwrap();
    assert_eq!(result.get(), r#"{"content":[]}"#);
    assert_eq!(client.version().as_str(), "2025-11-25");
    assert!(client.initialize_result().get().contains(r#""name":"fake""#));
    client.close().await;
    assert_eq!(
        log.lines(),
        ["POST / initialize", "POST / notifications/initialized", "POST / tools/call", "DELETE / "]
    );
}

// spec: B-07
#[tokio::test]
async fn a_tool_call_is_answered_as_an_event_stream() {
    let (base, _) = serve(|seen| match seen.rpc_method().as_str() {
        "initialize" => {
            typed("text/event-stream; charset=utf-8", &format!("data: {}\n\n", initialize_result(seen)))
        }
        "tools/call" => {
            let answer = result_of(seen, r#"{"content":[]}"#);
            typed(
                "text/event-stream",
                &format!("id: 0\ndata:\n\nevent: other\ndata: x\n\ndata: {answer}\n\n"),
            )
        }
        _ => status(202),
    })
    .await;
    let client = connect_http(&base, terms()).await.unwrap();
    assert_eq!(client.request("tools/call", &no_params()).await.unwrap().get(), r#"{"content":[]}"#);
}

#[tokio::test]
async fn the_handshake_says_who_asks_and_what_it_speaks() {
    let (base, log) = serve(session_with("{}")).await;
    connect_http(&base, terms()).await.unwrap();
    let hello = &log.all()[0];
    assert_eq!(
        hello.body,
        concat!(
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","#,
            r#""capabilities":{},"clientInfo":{"name":"embody","version":""#,
            env!("CARGO_PKG_VERSION"),
            r#""}}}"#
        )
    );
    assert_eq!(hello.header("accept"), Some("application/json, text/event-stream"));
    assert_eq!(hello.header("content-type"), Some("application/json"));
    assert_eq!(hello.header("authorization"), Some(format!("Bearer {TOKEN}").as_str()));
    assert_eq!(log.all()[1].body, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
}

#[tokio::test]
async fn payload_bytes_are_the_same_both_ways() {
    const PAYLOAD: &str = r#"{"z":123456789012345678901234567890,"a":1e400,"z":-0.0,"s":"\u00e9\/\ud83e\udd80é","x":[ 1.10 , null]}"#;
    let (base, log) = serve(session_with(PAYLOAD)).await;
    let client = connect_http(&base, terms()).await.unwrap();
    let result = client.request("tools/call", &raw_json(PAYLOAD)).await.unwrap();
    assert_eq!(result.get(), PAYLOAD);
    let sent = format!(r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{PAYLOAD}}}"#);
    assert_eq!(log.all()[2].body, sent);
}

#[tokio::test]
async fn a_json_rpc_error_is_told_and_kept_raw_for_those_who_forward() {
    const ERROR: &str = r#"{"code":-32602,"data":{"b":1e400},"message":"no such tool"}"#;
    let (base, _) = serve(|seen| match seen.rpc_method().as_str() {
        "initialize" => json(&initialize_result(seen)),
        "tools/call" => json(&format!(r#"{{"jsonrpc":"2.0","id":{},"error":{ERROR}}}"#, seen.rpc_id())),
        "unread" => json(&format!(r#"{{"jsonrpc":"2.0","id":null,"error":{ERROR}}}"#)),
        _ => status(202),
    })
    .await;
    let client = connect_http(&base, terms()).await.unwrap();
    for method in ["tools/call", "unread"] {
        let error = client.request(method, &no_params()).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Rpc);
        assert_eq!(error.to_string(), "the server answered with error -32602: no such tool");
    }
    let Outcome::Error(raw) = client.call("tools/call", None).await.unwrap() else { panic!("not an error") };
    assert_eq!(raw.get(), ERROR);
}

#[tokio::test]
async fn a_batch_of_the_answer_and_others_is_sifted() {
    let (base, _) = serve(|seen| match seen.rpc_method().as_str() {
        "initialize" => json(&initialize_result_of(seen, "2025-03-26")),
        "tools/call" => {
            let other = r#"{"jsonrpc":"2.0","id":"other","result":1}"#;
            json(&format!("[{other},{},{other}]", result_of(seen, "2")))
        }
        _ => status(202),
    })
    .await;
    let client = connect_http(&base, terms()).await.unwrap();
    assert_eq!(client.request("tools/call", &no_params()).await.unwrap().get(), "2");
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_refused() {
    let (base, _) = serve(|seen| match seen.rpc_method().as_str() {
        "initialize" => json(&initialize_result(seen)),
        "body" => json(&result_of(seen, &format!("\"{}\"", "x".repeat(2000)))),
        "event" => typed("text/event-stream", &format!("data: {}", "x".repeat(2000))),
        "depth" => json(&result_of(seen, &format!("{}{}", "[".repeat(200), "]".repeat(200)))),
        _ => status(202),
    })
    .await;
    let limits = Limits { message_max_bytes: 1000, ..Limits::default() };
    let client = connect_http(&base, terms_with(limits)).await.unwrap();
    for method in ["body", "event", "depth"] {
        assert_eq!(
            client.request(method, &no_params()).await.unwrap_err().kind(),
            Kind::TooLarge,
            "{method}"
        );
    }
    let params = raw_json(&format!("\"{}\"", "x".repeat(2000)));
    let error = client.request("tools/call", &params).await.unwrap_err();
    assert_eq!(error.to_string(), "the message to send is larger than 1000 bytes");
}

#[tokio::test]
async fn an_answer_that_is_no_answer_is_refused() {
    let (base, _) = serve(|seen| match seen.rpc_method().as_str() {
        "initialize" => json(&initialize_result(seen)),
        "html" => typed("text/html", "<html>"),
        "text" => json("hello"),
        "half" => json("{"),
        "other" => json(r#"{"jsonrpc":"2.0","id":99,"result":1}"#),
        _ => status(202),
    })
    .await;
    let client = connect_http(&base, terms()).await.unwrap();
    let cases = [
        ("html", "the response has content type `text/html`, which is neither JSON nor an event stream"),
        ("text", "the server sent an unreadable message"),
        ("half", "the server sent an unreadable message"),
        ("other", "the stream ended without a response"),
        ("accepted", "the stream ended without a response"),
    ];
    for (method, expected) in cases {
        let error = client.request(method, &no_params()).await.unwrap_err();
        assert_eq!((error.kind(), error.to_string().as_str()), (Kind::Protocol, expected), "{method}");
    }
}

#[tokio::test]
async fn a_refusal_says_status_and_reason() {
    let (base, _) = serve(|seen| match seen.rpc_method().as_str() {
        "initialize" => json(&initialize_result(seen)),
        "plain" => {
            let mut reply = typed("text/plain", "try\nlater");
            *reply.status_mut() = 503.try_into().unwrap();
            reply
        }
        "rpc" => {
            let mut reply =
                json(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"bad header"}}"#);
            *reply.status_mut() = 400.try_into().unwrap();
            reply
        }
        "bare" => status(500),
        _ => status(202),
    })
    .await;
    let client = connect_http(&base, terms()).await.unwrap();
    let cases = [("plain", "503: try later"), ("rpc", "400: bad header"), ("bare", "500")];
    for (method, expected) in cases {
        let error = client.request(method, &no_params()).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Refused);
        assert_eq!(error.to_string(), format!("the server refused with HTTP status {expected}"));
    }
}

#[tokio::test]
async fn a_redirect_is_refused_and_not_followed() {
    let (elsewhere, seen_elsewhere) = serve(session_with("{}")).await;
    let target = format!("{elsewhere}/mcp?key=abcdefgh");
    let (base, log) = serve(move |_| {
        let mut reply = status(307);
        reply.headers_mut().insert("location", target.parse().unwrap());
        reply
    })
    .await;
    let error = connect_http(&base, terms()).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Refused);
    let expected =
        format!("the server redirects with HTTP status 307 to `{elsewhere}/mcp`, which is not followed");
    assert_eq!(error.to_string(), expected);
    assert_eq!((log.lines().len(), seen_elsewhere.lines().len()), (1, 0));
}

#[tokio::test]
async fn refused_credentials_are_told_apart() {
    for code in [401, 403] {
        let (base, _) = serve(move |_| status(code)).await;
        let error = connect_http(&base, terms()).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Unauthorized);
        assert_eq!(error.to_string(), format!("the server refused the credentials with HTTP status {code}"));
    }
}

#[tokio::test]
async fn a_user_in_the_url_never_stands_beside_the_token() {
    let (base, log) = serve(session_with("{}")).await;
    let with_user = base.replace("http://", "http://me:pass@");
    connect_http(&with_user, terms()).await.unwrap();
    connect_http(&with_user, embody_wire::ClientOptions::default()).await.unwrap();
    let headers: Vec<Vec<_>> = log
        .all()
        .iter()
        .map(|seen| seen.headers.get_all("authorization").iter().cloned().collect())
        .collect();
    assert_eq!(headers[0], [format!("Bearer {TOKEN}").as_str()]);
    assert_eq!(headers[2], ["Basic bWU6cGFzcw=="]);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unreachable() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let error = connect_http(&url, terms()).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Unreachable);
    assert!(matches!(error, Error::Unreachable(_)));
}
