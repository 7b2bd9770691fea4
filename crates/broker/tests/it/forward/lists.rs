//! Merged lists of several servers.

use crate::stage::{Host, Reply, Server, body, result};

const STATUS: &str = r#""uri":"embody://runtime/status""#;
const RESOURCES: &str = r#"{"resources":{}}"#;
const PROMPTS: &str = r#"{"prompts":{}}"#;

/// The raw items of a list, and its cursor.
fn read(result: &str, member: &str) -> (Vec<String>, Option<String>) {
    use serde_json::value::RawValue;
    let members: std::collections::HashMap<String, &RawValue> = serde_json::from_str(result).unwrap();
    let items: Vec<&RawValue> = serde_json::from_str(members[member].get()).unwrap();
    let next = members.get("nextCursor").map(|next| serde_json::from_str(next.get()).unwrap());
    (items.into_iter().map(|item| item.get().to_owned()).collect(), next)
}

/// Pages `1`, `2`, … of one item each.
fn paged(name: &'static str, pages: u32) -> Server {
    Server::new(name, RESOURCES, move |method, params| {
        let cursor: serde_json::Value = serde_json::from_str(params).unwrap_or_default();
        let page: u32 = match cursor["cursor"].as_str() {
            None => 1,
            Some(cursor) => match cursor.strip_prefix("p:").and_then(|page| page.parse().ok()) {
                Some(page) => page,
                None => return Some(Reply::Error(-32602, "not a cursor of mine")),
            },
        };
        let next = if page < pages { format!(r#","nextCursor":"p:{}""#, page + 1) } else { String::new() };
        match method {
            "resources/list" => {
                result(format!(r#"{{"resources":[{{"uri":"{name}://{page}" , "n":1.0}}]{next}}}"#))
            }
            _ => None,
        }
    })
}

// spec: N-05
#[tokio::test]
async fn items_are_those_of_all_in_the_order_of_servers_byte_for_byte() {
    let odd = r#"{ "size":12345678901234567890123, "uri":"a://1","name":"\u00e9", "x":{"y":[1.0,null]} }"#;
    let a = Server::new("a", RESOURCES, move |method, _| match method {
        "resources/list" => result(format!(r#"{{ "resources" : [ {odd} , {{"uri":"a://2"}} ] }}"#)),
        "resources/templates/list" => result(r#"{"resourceTemplates":[{"uriTemplate":"a://{x}","n":1e0}]}"#),
        _ => None,
    });
    // It declares no resources, so it is not asked.
    let b = Server::silent("b");
    let c = Server::new("c", RESOURCES, |method, _| match method {
        "resources/list" => result(r#"{"resources":[{"uri":"a://1","name":"the same"}],"nextCursor":null}"#),
        "resources/templates/list" => result(r#"{"resourceTemplates":[{"uriTemplate":"c://{x}"}]}"#),
        _ => None,
    });
    let host = Host::new(&[&a, &b, &c]).await;
    let (items, next) = read(&host.result("resources/list", "").await, "resources");
    assert!(items[0].contains(STATUS), "{items:?}");
    assert_eq!(items[1..], [odd, r#"{"uri":"a://2"}"#, r#"{"uri":"a://1","name":"the same"}"#]);
    assert_eq!(next, None);
    let templates = host.result("resources/templates/list", "{}").await;
    assert_eq!(
        templates,
        r#"{"resourceTemplates":[{"uriTemplate":"a://{x}","n":1e0},{"uriTemplate":"c://{x}"}]}"#
    );
    assert!(b.received("resources/list").is_empty());
    host.end().await;
}

#[tokio::test]
async fn every_page_of_everybody_is_there_once_and_in_order() {
    let (a, b, c) = (paged("a", 3), paged("b", 1), paged("c", 2));
    let host = Host::new(&[&a, &b, &c]).await;
    let (mut all, mut pages, mut cursor) = (Vec::new(), 0, None);
    loop {
        let params = match &cursor {
            None => r#"{"_meta":{"baggage":"k=1"}}"#.to_owned(),
            Some(cursor) => {
                format!(
                    r#"{{"cursor":{},"_meta":{{"baggage":"k=1"}}}}"#,
                    serde_json::Value::from(cursor as &str)
                )
            }
        };
        let (items, next) = read(&host.result("resources/list", &params).await, "resources");
        all.extend(items);
        pages += 1;
        cursor = next;
        if cursor.is_none() {
            break;
        }
    }
    let expected = ["a://1", "a://2", "a://3", "b://1", "c://1", "c://2"];
    let expected: Vec<String> =
        expected.iter().map(|uri| format!(r#"{{"uri":"{uri}" , "n":1.0}}"#)).collect();
    assert_eq!(all[1..], expected);
    assert_eq!(pages, 4);
    assert_eq!(
        a.received("resources/list"),
        [
            r#"{"_meta":{"baggage":"k=1"}}"#,
            r#"{"_meta":{"baggage":"k=1"},"cursor":"p:2"}"#,
            r#"{"_meta":{"baggage":"k=1"},"cursor":"p:3"}"#
        ]
    );
    host.end().await;
}

#[tokio::test]
async fn a_wrong_cursor_is_wrong_parameters() {
    let a = paged("a", 2);
    let host = Host::new(&[&a]).await;
    let (_, next) = read(&host.result("resources/list", "").await, "resources");
    let given = next.unwrap();
    let seen = a.received("resources/list").len();
    // A server receives only cursors that it returned itself.
    let forged = [given.replace("p:2", "p:3"), given.replacen('r', "t", 1), format!("{given}x")];
    let forged = forged.map(|cursor| serde_json::Value::from(cursor).to_string());
    let others =
        [r#""""#, r#""x""#, r#""r9:p:2""#, r#""t1:p:2""#, r#""r1:p:2""#, r#""r1:nothing""#, "7", "{}"];
    for cursor in others.into_iter().chain(forged.iter().map(String::as_str)) {
        let (code, words) = host.error("resources/list", &format!(r#"{{"cursor":{cursor}}}"#)).await;
        assert_eq!(code, -32602, "{cursor}: {words}");
    }
    assert_eq!(a.received("resources/list").len(), seen);
    let params = serde_json::json!({ "cursor": given }).to_string();
    assert!(host.result("resources/list", &params).await.contains("a://2"));
    assert_eq!(host.error("prompts/list", r#"{"cursor":"r1"}"#).await.0, -32602);
    host.end().await;
}

// spec: N-11
#[tokio::test]
async fn one_that_fails_or_is_away_spoils_nothing() {
    let failing = Server::new("failing", RESOURCES, |method, _| match method {
        "resources/list" => Some(Reply::Error(-32603, "no")),
        _ => None,
    });
    let odd = Server::new("odd", RESOURCES, |method, _| match method {
        "resources/list" => result(r#"{"resources":"none"}"#),
        _ => None,
    });
    let (away, fine) = (Server::silent("away").closed(), paged("fine", 1));
    let host = Host::new(&[&failing, &odd, &away, &fine]).await;
    let list = host.result("resources/list", "").await;
    let (items, next) = read(&list, "resources");
    assert_eq!(items[1..], [r#"{"uri":"fine://1" , "n":1.0}"#]);
    assert_eq!(next, None);
    assert!(list.contains(r#""embody/degraded":["body_unavailable: `away`"#), "{list}");
    host.end().await;
}

#[tokio::test]
async fn one_that_goes_round_in_circles_is_left() {
    let a = Server::new("a", r#"{"resources":{},"prompts":{}}"#, |method, _| match method {
        "resources/list" => result(r#"{"resources":[{"uri":"a://1"}],"nextCursor":"again"}"#),
        "prompts/list" => result(r#"{"prompts":[{"name":"p"}],"nextCursor":"again"}"#),
        _ => None,
    });
    let host = Host::new(&[&a]).await;
    let (_, next) = read(&host.result("resources/list", "").await, "resources");
    let (items, next) = read(
        &host.result("resources/list", &format!(r#"{{"cursor":"{}"}}"#, next.unwrap())).await,
        "resources",
    );
    assert_eq!((items.len(), next), (1, None));
    assert_eq!(host.result("prompts/list", "").await, r#"{"prompts":[{"name":"p"}]}"#);
    host.end().await;
}

#[tokio::test]
async fn the_status_is_a_resource() {
    let host = Host::new(&[&Server::silent("a")]).await;
    host.until("a", "connected").await;
    let read = host.result("resources/read", r#"{"uri":"embody://runtime/status"}"#).await;
    let read: serde_json::Value = serde_json::from_str(&read).unwrap();
    let contents = &read["contents"][0];
    assert_eq!(contents["uri"], "embody://runtime/status");
    assert_eq!(contents["mimeType"], "application/json");
    let status: serde_json::Value = serde_json::from_str(contents["text"].as_str().unwrap()).unwrap();
    let names: Vec<&str> =
        status["upstreams"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["mind", "a"]);
    host.end().await;
}

fn prompts(name: &'static str, list: &'static str) -> Server {
    Server::new(name, PROMPTS, move |method, params| match method {
        "prompts/list" => result(list),
        "prompts/get" => result(format!(r#"{{"description":"{name}","got":{params}}}"#)),
        _ => None,
    })
}

// spec: N-05
#[tokio::test]
async fn prompts_of_one_name_are_told_apart_and_nothing_else_changes() {
    let a = prompts("a", r#"{"prompts":[{ "title":"name", "name" : "greet" , "n":1.0},{"name":"only"}]}"#);
    let b = prompts("b", r#"{"prompts":[{"name":"gr\u0065et","arguments":[{"name":"greet"}]}]}"#);
    let host = Host::new(&[&a, &b]).await;
    // A host may know the name from an older list.
    let params = r#"{ "arguments":{"name":"b__greet","x":1.0}, "name" : "b__greet" }"#;
    let expected = params.replace(r#""name" : "b__greet""#, r#""name" : "greet""#);
    let got = host.result("prompts/get", params).await;
    assert_eq!(got, format!(r#"{{"description":"b","got":{expected}}}"#));
    assert_eq!(
        host.result("prompts/list", "").await,
        r#"{"prompts":[{ "title":"name", "name" : "a__greet" , "n":1.0},{"name":"only"},{"name":"b__greet","arguments":[{"name":"greet"}]}]}"#
    );
    let got = host.result("prompts/get", r#"{"name":"a__greet"}"#).await;
    assert_eq!(got, r#"{"description":"a","got":{"name":"greet"}}"#);
    let got = host.result("prompts/get", r#"{"name":"only"}"#).await;
    assert_eq!(got, r#"{"description":"a","got":{"name":"only"}}"#);
    // An older name without a collision still works while it is unambiguous.
    let got = host.result("prompts/get", r#"{"name":"a__only"}"#).await;
    assert_eq!(got, r#"{"description":"a","got":{"name":"only"}}"#);
    let (code, words) = host.error("prompts/get", r#"{"name":"greet"}"#).await;
    assert_eq!(code, -32602);
    assert!(words.contains("`a__greet`, `b__greet`"), "{words}");
    let (code, words) = host.error("prompts/get", r#"{"name":"nothing"}"#).await;
    assert_eq!((code, &*words), (-32602, "Unknown prompt: nothing"));
    for params in ["{}", "[]", r#"{"name":7}"#, r#"{"name":"only","name":"greet"}"#] {
        assert_eq!(host.error("prompts/get", params).await.0, -32602, "{params}");
    }
    host.end().await;
}

#[tokio::test]
async fn a_name_stays_when_another_holder_of_it_is_away() {
    let a = prompts("a", r#"{"prompts":[{"name":"greet"}]}"#);
    let b = prompts("b", r#"{"prompts":[{"name":"greet"}]}"#);
    let host = Host::with(&Server::silent("mind"), &[(&a, body()), (&b, body())]).await;
    let both = r#"{"prompts":[{"name":"a__greet"},{"name":"b__greet"}]}"#;
    assert_eq!(host.result("prompts/list", "").await, both);
    b.close();
    host.until("b", "unavailable").await;
    let list = host.result("prompts/list", "").await;
    assert_eq!(read(&list, "prompts").0, [r#"{"name":"a__greet"}"#]);
    let (code, words) = host.error("prompts/get", r#"{"name":"b__greet"}"#).await;
    assert_eq!(code, -32603);
    assert!(words.starts_with("`b` is unavailable: "), "{words}");
    b.open();
    assert_eq!(
        host.result("prompts/get", r#"{"name":"b__greet"}"#).await,
        r#"{"description":"b","got":{"name":"greet"}}"#
    );
    host.end().await;
}
