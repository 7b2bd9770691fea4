//! Classifies a message that was too long to keep: its kind from its first bytes, its id from its last bytes. Pure.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;

use serde::Deserializer as _;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::message::{self, Id};

/// The members that may follow the payload.
const SHORT: [&str; 3] = ["id", "jsonrpc", "method"];

/// Whether a message that starts with `head` is a response.
pub(super) fn is_answer(head: &[u8]) -> bool {
    let (is_answer, is_request) = (Cell::new(false), Cell::new(false));
    let mut reader = serde_json::Deserializer::from_slice(head);
    // This usually fails; the members seen until then count.
    let _ = reader.deserialize_map(Members(&is_answer, &is_request));
    is_answer.get() && !is_request.get()
}

/// The id of a message that ends with `tail`.
pub(super) fn id_at_end(tail: &[u8]) -> Option<Id> {
    let commas = tail.iter().enumerate().rev().filter(|(_, byte)| **byte == b',').map(|(at, _)| at);
    // If the text after a comma parses as an object once it is given a brace, the comma is in the outermost object.
    commas.take(SHORT.len()).find_map(|comma| {
        let object = [b"{", tail.get(comma + 1..)?].concat();
        let members: BTreeMap<String, &RawValue> = serde_json::from_slice(&object).ok()?;
        members.keys().all(|name| SHORT.contains(&name.as_str())).then(|| message::find_id(&object))?
    })
}

struct Members<'a>(&'a Cell<bool>, &'a Cell<bool>);

impl<'de> Visitor<'de> for Members<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON-RPC object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            match name.as_str() {
                "result" | "error" => self.0.set(true),
                "method" => self.1.set(true),
                _ => {}
            }
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_known_by_its_beginning() {
        for text in [r#"{"result":{"a":[1,"#, r#"{"jsonrpc":"2.0","id":5,"error":{"m":"x"#] {
            assert!(is_answer(text.as_bytes()), "{text}");
        }
        for text in [
            r#"{"method":"notifications/message","params":{"result":"x"#,
            r#"{"jsonrpc":"2.0","id":5,"method":"x","params":{"#,
            r#"{"result":{},"method":"x"#,
            r#"{"x":{"result":1"#,
            "result",
            "[1,2",
            "",
        ] {
            assert!(!is_answer(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn the_id_is_found_where_it_is_written_last() {
        for (text, expected) in [
            (r#"xx"}]},"jsonrpc":"2.0","id":5}"#, Some("5")),
            ("1]}, \"id\" : \"a,b\" , \"jsonrpc\":\"2.0\"}\r\n", Some(r#""a,b""#)),
            (r#"1}},"id":7}"#, Some("7")),
            (r#"1,"id":7}}"#, None),
            (r#"1,"a":{"x":1,"id":7},"jsonrpc":"2.0"}"#, None),
            (r#"x,\"id\":7}"}"#, None),
            (r#"{"x":1,"id":7}]"#, None),
            ("", None),
        ] {
            let found = id_at_end(text.as_bytes());
            assert_eq!(found.as_ref().map(Id::as_json), expected, "{text}");
        }
    }
}
