//! Whatever a server does, no error contains the token or the secret parts of the URL.

use std::error::Error as _;
use std::fmt::Write as _;

use embody_wire::{ClientOptions, Error, Secret, dial};

use crate::fake::*;
use crate::raw::serve_legacy;

const PASSWORD: &str = "hunter2hunter2";
const KEY: &str = "k-abcdefgh";

/// All texts that an error can produce.
fn everything(error: &Error) -> String {
    let mut text = format!("{error} {error:?} {error:#?}");
    let mut cause = error.source();
    while let Some(error) = cause {
        write!(text, " {error} {error:?}").unwrap();
        cause = error.source();
    }
    text
}

fn assert_clean(error: &Error) {
    // HTTP lowers some parts of a message; a lowered token must not appear either.
    let text = everything(error).to_lowercase();
    for secret in [TOKEN, PASSWORD, KEY] {
        assert!(!text.contains(&secret.to_lowercase()), "{secret} in {text}");
    }
}

fn with_secrets(base: &str) -> String {
    format!("{}/mcp?key={KEY}", base.replace("http://", &format!("http://me:{PASSWORD}@")))
}

/// A server that repeats everything it received, in the way that `manner` names.
fn parrot(manner: &'static str) -> impl Fn(&Seen) -> HttpResponse + Clone + Send + Sync + 'static {
    move |seen| {
        let text = format!("{} {TOKEN} {PASSWORD} {KEY}", seen.path);
        match manner {
            "plain" | "teapot" => {
                let mut reply = typed("text/plain", &text);
                *reply.status_mut() = if manner == "plain" { 404 } else { 418 }.try_into().unwrap();
                reply
            }
            "rpc" => {
                let object = format!(r#"{{"code":1,"message":"{text}","data":"{text}"}}"#);
                json(&format!(r#"{{"jsonrpc":"2.0","id":{},"error":{object}}}"#, seen.rpc_id()))
            }
            "redirect" => {
                let mut reply = status(302);
                let location =
                    format!("http://{TOKEN}:{PASSWORD}@{TOKEN}.invalid/{TOKEN}/{PASSWORD}?key={KEY}");
                reply.headers_mut().insert("location", location.parse().unwrap());
                reply
            }
            "type" => typed(&format!("x/{TOKEN}{PASSWORD}{KEY}"), ""),
            "version" => json(&initialize_result_of(seen, &text)),
            "text" => json(&format!("\"{text}\"")),
            "member" => json(&format!(r#"{{"jsonrpc":"{text}","method":["{text}"],"id":"{text}"}}"#)),
            "broken" => json(&format!(r#"{{"{text}":"{text}" "{text}"}}"#)),
            "events" => typed("text/event-stream", &format!("data: {text}\n\n")),
            _ => status(401),
        }
    }
}

// spec: B-07
#[tokio::test]
async fn no_error_repeats_a_secret_the_server_repeats() {
    let manners = [
        "plain", "teapot", "rpc", "redirect", "type", "version", "text", "member", "broken", "events", "401",
    ];
    for manner in manners {
        let (base, log) = serve(parrot(manner)).await;
        assert_clean(&connect_http(&with_secrets(&base), terms()).await.unwrap_err());
        assert_clean(&dial(&with_secrets(&base), &terms()).await.unwrap_err());
        assert!(log.all()[0].path.contains(KEY), "the server was told");
    }
}

// spec: B-07
#[tokio::test]
async fn no_error_of_a_call_repeats_a_secret() {
    for manner in ["plain", "rpc", "text", "events"] {
        let (base, _) = serve(move |seen| match seen.rpc_method().as_str() {
            "initialize" => json(&initialize_result(seen)),
            "tools/call" => parrot(manner)(seen),
            _ => status(202),
        })
        .await;
        let client = connect_http(&with_secrets(&base), terms()).await.unwrap();
        assert_clean(&client.request("tools/call", &no_params()).await.unwrap_err());
        assert!(!format!("{client:?}").contains(KEY));
    }
}

// spec: B-07
#[tokio::test]
async fn a_foreign_endpoint_is_named_without_secrets() {
    let endpoint = format!("http://{TOKEN}:{PASSWORD}@{TOKEN}.invalid/{TOKEN}?key={KEY}");
    let (base, _) = serve_legacy(&endpoint, |_| vec![]).await;
    let error = connect_sse(&with_secrets(&base), terms()).await.unwrap_err();
    assert!(matches!(error, Error::ForeignEndpoint { .. }));
    assert_clean(&error);
}

// spec: B-07
#[tokio::test]
async fn a_server_that_is_not_there_is_named_without_secrets() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    assert_clean(&connect_http(&with_secrets(&base), terms()).await.unwrap_err());
    assert_clean(&dial(&with_secrets(&base), &terms()).await.unwrap_err());
    assert_clean(&dial(&with_secrets("http://no host"), &terms()).await.unwrap_err());
}

// spec: B-07
#[tokio::test]
async fn a_token_no_header_can_carry_is_refused_unseen() {
    let token = format!("{TOKEN}\nX-Other: 1");
    let terms = ClientOptions { bearer: Some(Secret::new(token)), ..ClientOptions::default() };
    let error = dial("http://127.0.0.1:9", &terms).await.unwrap_err();
    assert!(matches!(error, Error::Token));
    assert_clean(&error);
    assert!(!format!("{terms:?}").contains(TOKEN));
}
