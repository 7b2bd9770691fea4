//! Dialing: which transports are tried, in which order, and when it stops.

use embody_wire::{Attempt, Error, Kind, Limits, dial};
use tokio::net::TcpListener;

use crate::fake::*;
use crate::raw::{serve_legacy, serve_raw};

fn attempts(error: &Error) -> &[Attempt] {
    let Error::Dial { attempts, .. } = error else { panic!("not a failed dial: {error:?}") };
    attempts
}

// spec: B-07
#[tokio::test]
async fn streamable_http_at_the_url_itself_comes_first() {
    let (base, log) = serve(session_with("{}")).await;
    let client = dial(&format!("{base}/any"), &terms()).await.unwrap();
    assert_eq!(client.transport(), "http");
    assert_eq!(log.lines(), ["POST /any initialize", "POST /any notifications/initialized"]);
}

// spec: B-07
#[tokio::test]
async fn a_url_that_says_not_here_is_tried_below_mcp() {
    for code in [400, 404, 405, 406, 415, 501] {
        let (base, log) = serve(move |seen| match seen.path.as_str() {
            "/mcp" => session_with("{}")(seen),
            _ => status(code),
        })
        .await;
        dial(&base, &terms()).await.unwrap();
        assert_eq!(log.lines()[..2], ["POST / initialize", "POST /mcp initialize"]);
    }
}

#[tokio::test]
async fn an_answer_that_is_not_mcp_says_not_here_too() {
    for kind in ["html", "accepted", "json", "rpc", "redirect"] {
        let (base, _) = serve(move |seen| match (seen.path.as_str(), kind) {
            ("/mcp", _) => session_with("{}")(seen),
            (_, "html") => typed("text/html", "<html>welcome</html>"),
            (_, "json") => json(r#"{"status":"ok"}"#),
            (_, "rpc") => json(&result_of(seen, r#"{"no":"version"}"#)),
            (_, "redirect") => {
                let mut reply = status(302);
                reply.headers_mut().insert("location", "/docs".parse().unwrap());
                reply
            }
            _ => status(202),
        })
        .await;
        dial(&base, &terms()).await.unwrap_or_else(|error| panic!("{kind}: {error}"));
    }
}

// spec: B-07
#[tokio::test]
async fn legacy_sse_below_the_url_comes_last() {
    let (base, log) = legacy_only().await;
    let client = dial(&base, &terms()).await.unwrap();
    assert_eq!(client.transport(), "sse");
    assert_eq!(client.request("tools/call", &no_params()).await.unwrap().get(), "{}");
    assert_eq!(log.lines()[..3], ["POST / initialize", "POST /mcp initialize", "GET /sse "]);
}

// spec: B-07
#[tokio::test]
async fn a_url_that_ends_in_sse_is_legacy_at_once() {
    let (base, log) = legacy_only().await;
    dial(&format!("{base}/sse"), &terms()).await.unwrap();
    assert_eq!(log.lines()[0], "GET /sse ");
}

async fn legacy_only() -> (String, Log) {
    serve_legacy("/messages", |seen| match seen.rpc_method().as_str() {
        "initialize" => vec![initialize_result(seen)],
        "tools/call" => vec![result_of(seen, "{}")],
        _ => vec![],
    })
    .await
}

// spec: B-07
#[tokio::test]
async fn a_failure_lists_every_attempt_with_its_reason() {
    let (base, _) = serve(|seen| match (seen.path.as_str(), seen.method.as_str()) {
        ("/a?key=abcdefgh", _) => status(404),
        ("/a/mcp?key=abcdefgh", _) => json("{"),
        _ => typed("text/html", "hello"),
    })
    .await;
    let error = dial(&format!("{base}/a?key=abcdefgh"), &terms()).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Protocol);
    let unreadable = "the server sent an unreadable message: EOF while parsing an object at line 1 column 1";
    let html = "the response has content type `text/html`, which is neither JSON nor an event stream";
    assert_eq!(
        error.to_string(),
        format!(
            "no MCP session at `{base}/a`: streamable HTTP at `{base}/a`: the server refused with HTTP status 404; \
             streamable HTTP at `{base}/a/mcp`: {unreadable}; \
             legacy SSE at `{base}/a`: the server refused with HTTP status 404; \
             legacy SSE at `{base}/a/sse`: {html}"
        )
    );
}

#[tokio::test]
async fn refused_credentials_end_it_at_once() {
    for code in [401, 403] {
        let (base, log) = serve(move |_| status(code)).await;
        let error = dial(&base, &terms()).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Unauthorized);
        assert_eq!((attempts(&error).len(), log.lines().len()), (1, 1));
    }
}

#[tokio::test]
async fn an_mcp_server_that_refuses_ends_it_at_once() {
    let (base, log) = serve(|seen| match seen.path.as_str() {
        "/era" => json(&initialize_result_of(seen, "2026-07-28")),
        "/broken" => status(503),
        _ => json(&format!(
            r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":-1,"message":"no"}}}}"#,
            seen.rpc_id()
        )),
    })
    .await;
    for (path, kind) in [("/era", Kind::Protocol), ("/broken", Kind::Refused), ("/rpc", Kind::Rpc)] {
        let error = dial(&format!("{base}{path}"), &terms()).await.unwrap_err();
        assert_eq!((error.kind(), attempts(&error).len()), (kind, 1), "{path}");
    }
    assert_eq!(log.lines().len(), 3);
}

#[tokio::test]
async fn a_server_that_is_not_there_ends_it_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    for url in [url.as_str(), "http://no-such-host.invalid"] {
        let error = dial(url, &terms()).await.unwrap_err();
        assert_eq!((error.kind(), attempts(&error).len()), (Kind::Unreachable, 1));
    }
}

// spec: B-07
#[tokio::test]
async fn a_silent_server_holds_up_for_one_attempt() {
    let (base, _) =
        serve_raw(|_, mut connection| Box::pin(async move { connection.wait_for_hang_up().await })).await;
    let limits = Limits { attempt_timeout: SHORT, ..Limits::default() };
    let error = dial(&base, &terms_with(limits)).await.unwrap_err();
    assert_eq!((error.kind(), attempts(&error).len()), (Kind::Timeout, 1));
    assert!(error.to_string().ends_with("opening the session took longer than 30 ms"));
}

// spec: B-07
#[tokio::test]
async fn all_attempts_together_have_a_limit_too() {
    let (base, _) = serve_raw(|seen, mut connection| {
        Box::pin(async move {
            match seen.path.as_str() {
                "/" => connection.status("404 Not Found").await,
                _ => connection.wait_for_hang_up().await,
            }
        })
    })
    .await;
    let limits = Limits { dial_timeout: SHORT, ..Limits::default() };
    let error = dial(&base, &terms_with(limits)).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Timeout);
    assert!(error.to_string().ends_with("finding the server took longer than 30 ms"));
}

#[tokio::test]
async fn what_is_no_web_address_is_named_and_not_tried() {
    for (url, shown) in [
        ("ftp://me:pass@h/x?k=v", "ftp://h/x"),
        ("not a url", "not a url"),
        ("h:80/x?token=v", "h:80/x"),
        ("", ""),
        ("http://", "http://"),
    ] {
        let error = dial(url, &terms()).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Invalid);
        assert_eq!(error.to_string(), format!("`{shown}` is not an http or https URL"));
    }
}
