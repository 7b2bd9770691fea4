//! A record of the audit in one line for people: the tool and its arguments first, then what became of it, ids and digests
//! last. `--json` and `export` have all of it.

use serde_json::{Map, Value};

use crate::output::one_line;
use crate::time::clipped;

/// So many characters of arguments, which say to whom and what.
const ARGUMENTS: usize = 200;
/// So many of any other text.
const WORDS: usize = 100;
/// So many of a digest: enough to tell two apart.
const DIGEST: usize = 12;

/// What an event's JSON says, in one line.
pub(super) fn told(detail: &str) -> String {
    let Ok(Value::Object(mut detail)) = serde_json::from_str(detail) else {
        return one_line(&clipped(detail, ARGUMENTS));
    };
    let mut parts: Vec<String> = Vec::new();
    parts.extend(tool(&mut detail));
    parts.extend(detail.remove("args_excerpt").map(|args| clipped(&args.to_string(), ARGUMENTS)));
    for key in ["action", "subject", "said", "decision", "outcome", "reason", "detail", "note"] {
        parts.extend(detail.remove(key).map(|value| clipped(&words(&value), WORDS)));
    }
    let call = detail.remove("call_id").map(|id| format!("call {}", words(&id)));
    let digest =
        detail.remove("args_digest").map(|digest| format!("digest {}", clipped(&words(&digest), DIGEST)));
    parts.extend(detail.iter().map(|(key, value)| format!("{key} {}", clipped(&words(value), WORDS))));
    parts.extend([call, digest].into_iter().flatten());
    one_line(&parts.join("  "))
}

/// `BODY/TOOL`, as rules write it.
fn tool(detail: &mut Map<String, Value>) -> Option<String> {
    let (body, tool) = (detail.remove("body"), detail.remove("tool"));
    let parts: Vec<String> = [body, tool].iter().flatten().map(words).collect();
    (!parts.is_empty()).then(|| parts.join("/"))
}

fn words(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_arguments_come_first_and_the_digest_is_short_and_last() {
        let digest = "0123456789abcdef".repeat(4);
        let call = json!({
            "call_id": "0199-1", "body": "embody", "tool": "send_message", "class": "human_visible_write",
            "args_digest": digest, "args_excerpt": {"to": "123", "text": "Good morning"},
            "decision": "deny", "reason": "not from here",
        });
        assert_eq!(
            told(&call.to_string()),
            r#"embody/send_message  {"text":"Good morning","to":"123"}  deny  not from here  class human_visible_write  call 0199-1  digest 0123456789ab…"#
        );
        let end = json!({"call_id": "0199-1", "outcome": "done"});
        assert_eq!(told(&end.to_string()), "done  call 0199-1");
        let operation = json!({"action": "token_made", "subject": "7", "note": "for ann"});
        assert_eq!(told(&operation.to_string()), "token_made  7  for ann");
    }

    #[test]
    fn a_line_stays_a_line_whatever_it_holds() {
        let long = json!({"args_excerpt": {"text": "x".repeat(9000)}, "odd": {"a": ["y".repeat(9000)]}});
        assert!(told(&long.to_string()).chars().count() < 400);
        assert_eq!(told("no JSON"), "no JSON");
        assert_eq!(told("no\nJSON"), "no\\nJSON");
        // Whoever is quoted adds no record of their own.
        let quoted = json!({"outcome": "failed", "detail": "{\n\t\"code\": 1\n}\n     9  forged", "odd": "a\u{1b}[1mb"});
        assert_eq!(
            told(&quoted.to_string()),
            r#"failed  {\n\t"code": 1\n}\n     9  forged  odd a⟨U+001B⟩[1mb"#
        );
        assert_eq!(told(&"z".repeat(9000)).chars().count(), ARGUMENTS + 1);
    }
}
