//! Tests for the envelope: what is preserved, tolerated and rejected.

use proptest::prelude::*;

use super::*;

fn parse(text: &str) -> Result<Message, MessageError> {
    Message::parse(text.as_bytes(), &Limits::default())
}

fn complaint(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

fn id(json: &str) -> Id {
    Id::from_json(json).unwrap()
}

#[test]
fn payload_bytes_survive_parse_and_print() {
    let payloads = [
        r#"{"b":1,"a":2,"b":3}"#,
        "123456789012345678901234567890",
        "1e400",
        "-0.0",
        "1.10",
        r#""\u00e9\/\ud800 é""#,
        "{ \"spaced\" :\t[ 1 ,\n2 ] }",
        "null",
        "[]",
    ];
    for payload in payloads {
        let request = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"m","params":{payload}}}"#);
        assert_eq!(parse(&request).unwrap().print(), request);
        let notification = format!(r#"{{"jsonrpc":"2.0","method":"notifications/m","params":{payload}}}"#);
        assert_eq!(parse(&notification).unwrap().print(), notification);
        let result = format!(r#"{{"jsonrpc":"2.0","id":"x","result":{payload}}}"#);
        assert_eq!(parse(&result).unwrap().print(), result);
        let error = format!(r#"{{"jsonrpc":"2.0","id":null,"error":{payload}}}"#);
        assert_eq!(parse(&error).unwrap().print(), error);
    }
}

#[test]
fn a_request_without_params_is_printed_without() {
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"tools\"list"}"#;
    assert_eq!(parse(text).unwrap().print(), text);
}

#[test]
fn ids_are_kept_as_given() {
    for given in ["0", "-1", "1.0", "18446744073709551616", r#""a""#, r#""\u00e9""#, r#""""#] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{given},"method":"m"}}"#);
        assert_eq!(parse(&text).unwrap().print(), text);
    }
}

#[test]
fn ids_are_equal_by_meaning_of_strings_and_text_of_numbers() {
    assert_eq!(id(r#""\u00e9""#), id("\"é\""));
    assert_eq!(id(r#""a""#), Id::from("a"));
    assert_eq!(id(r#""a\"b""#), Id::from("a\"b"));
    assert_eq!(id("7"), Id::from(7));
    assert_ne!(id("7"), id(r#""7""#));
    assert_ne!(id("1"), id("1.0"));
    let held = std::collections::HashMap::from([(id(r#""\u00e9""#), ())]);
    assert!(held.contains_key(&id("\"é\"")));
}

#[test]
fn unknown_members_are_ignored_and_the_last_of_a_repeated_one_counts() {
    let text =
        r#"{"x":[1e999],"jsonrpc":"1.0","id":1,"method":"old","jsonrpc":"2.0","id":2,"method":"new","y":{}}"#;
    assert_eq!(parse(text).unwrap().print(), r#"{"jsonrpc":"2.0","id":2,"method":"new"}"#);
}

#[test]
fn the_unused_member_of_a_response_may_be_null() {
    let result = parse(r#"{"jsonrpc":"2.0","id":1,"result":{},"error":null}"#).unwrap();
    assert_eq!(result.print(), r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    let error = parse(r#"{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":1}}"#).unwrap();
    assert_eq!(error.print(), r#"{"jsonrpc":"2.0","id":1,"error":{"code":1}}"#);
    let null = parse(r#"{"jsonrpc":"2.0","id":1,"result":null}"#).unwrap();
    assert_eq!(null.print(), r#"{"jsonrpc":"2.0","id":1,"result":null}"#);
}

#[test]
fn what_is_no_message_is_refused_with_its_reason() {
    let cases = [
        ("", "not a JSON-RPC 2.0 message: it is not an object"),
        ("\"text\"", "not a JSON-RPC 2.0 message: it is not an object"),
        ("{", "a message is not JSON"),
        ("{} {}", "a message is not JSON"),
        ("[]", "expected one message, not a batch"),
        ("{}", "not a JSON-RPC 2.0 message: `jsonrpc` is not \"2.0\""),
        (r#"{"jsonrpc":2.0,"method":"m"}"#, "not a JSON-RPC 2.0 message: `jsonrpc` is not \"2.0\""),
        (r#"{"jsonrpc":"2.0","method":7}"#, "not a JSON-RPC 2.0 message: `method` is not a string"),
        (
            r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#,
            "not a JSON-RPC 2.0 message: `id` is neither a number nor a string",
        ),
        (
            r#"{"jsonrpc":"2.0","id":true,"result":1}"#,
            "not a JSON-RPC 2.0 message: `id` is neither a number nor a string",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","result":1}"#,
            "not a JSON-RPC 2.0 message: it has both a method and a result or error",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":1,"error":2}"#,
            "not a JSON-RPC 2.0 message: it has both a result and an error",
        ),
        (r#"{"jsonrpc":"2.0","result":1}"#, "not a JSON-RPC 2.0 message: a result has no id"),
        (r#"{"jsonrpc":"2.0","id":1}"#, "not a JSON-RPC 2.0 message: it has no method, result or error"),
    ];
    for (text, expected) in cases {
        assert_eq!(complaint(text), expected, "{text}");
    }
}

#[test]
fn a_request_without_an_id_is_refused_alone_and_in_a_batch() {
    let reason =
        "not a JSON-RPC 2.0 message: it has no id, and its method does not start with `notifications/`";
    for method in [
        "tools/call",
        "resources/read",
        "ping",
        "x",
        "",
        "notifications",
        "Notifications/x",
        " notifications/x",
    ] {
        let text = format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"name":"send_email"}}}}"#);
        assert_eq!(complaint(&text), reason, "{method}");
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        assert!(parse_frame(format!("[{ping},{text}]").as_bytes(), &Limits::default()).is_err(), "{method}");
    }
    for method in ["notifications/cancelled", "notifications/x", r"not\u0069fications/x"] {
        let text = format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#);
        assert!(matches!(parse(&text), Ok(Message::Notification(_))), "{method}");
    }
    assert!(parse(r#"{"jsonrpc":"2.0","method":"notifications/x","method":"tools/call"}"#).is_err());
}

#[test]
fn text_that_is_not_utf8_is_refused() {
    let bytes = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\xFF\"}";
    assert!(matches!(Message::parse(bytes, &Limits::default()), Err(MessageError::NotJson(_))));
}

#[test]
fn length_depth_and_batches_are_bounded() {
    let limits = Limits { message_max_bytes: 60, depth_max: 3, batch_max: 2, ..Limits::default() };
    let at = |payload: &str| {
        Message::parse(format!(r#"{{"jsonrpc":"2.0","id":1,"result":{payload}}}"#).as_bytes(), &limits)
    };
    assert!(at(r#"[["]]]]]][[[[[\"[[["]]"#).is_ok());
    assert!(matches!(at("[[[]]]"), Err(MessageError::TooDeep { max_depth: 3 })));
    assert!(matches!(at(&"1".repeat(60)), Err(MessageError::TooLong { max_bytes: 60 })));
    let note = r#"{"jsonrpc":"2.0","method":"notifications/m"}"#;
    let limits = Limits { message_max_bytes: 1000, ..limits };
    let batch = |count: usize| parse_frame(format!("[{}]", vec![note; count].join(",")).as_bytes(), &limits);
    assert_eq!(batch(2).unwrap().len(), 2);
    assert!(matches!(batch(3), Err(MessageError::BatchTooLong { max_messages: 2 })));
    assert!(matches!(batch(0), Err(MessageError::Malformed("the batch is empty"))));
    assert!(matches!(parse_frame(format!("[[{note}]]").as_bytes(), &limits), Err(MessageError::Batch)));
}

proptest! {
    #[test]
    fn depth_is_counted_outside_of_strings_only(text in r#"[\{\[\]}"\\a]{0,40}"#, max in 0..6usize) {
        let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
        for byte in text.bytes() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if in_string => escaped = true,
                b'"' => in_string = !in_string,
                _ if in_string => {}
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            deepest = deepest.max(depth);
        }
        prop_assert_eq!(is_deeper_than(text.as_bytes(), max), deepest > max);
    }
}

#[test]
fn a_deep_bomb_does_not_exhaust_the_stack() {
    let bomb = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{}"#, "[".repeat(1_000_000));
    assert!(matches!(parse(&bomb), Err(MessageError::TooDeep { .. })));
}

#[test]
fn a_refusal_is_written_as_json() {
    let refusal = Response::failure("a\"b".into(), -32601, "no \"such\" method");
    let text = r#"{"jsonrpc":"2.0","id":"a\"b","error":{"code":-32601,"message":"no \"such\" method"}}"#;
    assert_eq!(refusal.print(), text);
}

proptest! {
    #[test]
    fn no_input_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse_frame(&bytes, &Limits::default());
    }

    #[test]
    fn print_then_parse_is_the_same(text in any::<String>(), method in any::<String>(), number in any::<u64>()) {
        let payload = serde_json::value::to_raw_value(&text).unwrap();
        for id in [Id::from(number), Id::from(text.as_str())] {
            let request = Request { id: id.clone(), method: method.clone(), params: Some(payload.clone()) };
            let Message::Request(again) = parse(&request.print()).unwrap() else { panic!("not a request") };
            prop_assert_eq!(&again.id, &id);
            prop_assert_eq!(&again.method, &method);
            prop_assert_eq!(again.params.as_deref().map(RawValue::get), Some(payload.get()));
        }
    }
}
