//! Orders messages so that every provider accepts them: results directly after their calls, no two messages of one role
//! in a row, nothing empty. A call without a result (an interrupted turn) gets one that says so; a result without its
//! call is dropped, because as user text it would read as an instruction.

use super::chat::{ChatMessage, ToolRequest};

const INTERRUPTED: &str = "(no result: the call was interrupted, and it is not known whether it took effect)";

/// Consecutive messages of one role.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step<'a> {
    User(Vec<&'a str>),
    Assistant {
        texts: Vec<&'a str>,
        calls: Vec<&'a ToolRequest>,
    },
    /// The results of the preceding calls, in their order.
    Results(Vec<CallResult<'a>>),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct CallResult<'a> {
    pub(super) call_id: &'a str,
    pub(super) text: &'a str,
    pub(super) is_error: bool,
}

pub(super) fn steps(messages: &[ChatMessage]) -> Vec<Step<'_>> {
    let mut steps = Vec::new();
    let mut rest = messages;
    while let Some((message, after)) = rest.split_first() {
        rest = after;
        match message {
            ChatMessage::User { text } => push_user(&mut steps, text),
            ChatMessage::Assistant { text, calls } => {
                push_assistant(&mut steps, text, calls);
                if !calls.is_empty() {
                    steps.push(Step::Results(results(calls, after)));
                }
            }
            ChatMessage::Tool { .. } => {}
        }
    }
    steps
}

fn push_user<'a>(steps: &mut Vec<Step<'a>>, text: &'a str) {
    if text.trim().is_empty() {
        return;
    }
    match steps.last_mut() {
        Some(Step::User(texts)) => texts.push(text),
        _ => steps.push(Step::User(vec![text])),
    }
}

fn push_assistant<'a>(steps: &mut Vec<Step<'a>>, text: &'a str, new: &'a [ToolRequest]) {
    let text = Some(text).filter(|text| !text.trim().is_empty());
    match steps.last_mut() {
        // A step with calls is followed by its results, so this one has no calls yet.
        Some(Step::Assistant { texts, calls }) => {
            texts.extend(text);
            calls.extend(new);
        }
        _ if text.is_none() && new.is_empty() => {}
        _ => steps.push(Step::Assistant { texts: text.into_iter().collect(), calls: new.iter().collect() }),
    }
}

/// Searches up to the next assistant message: a user message may come in between.
fn results<'a>(calls: &'a [ToolRequest], after: &'a [ChatMessage]) -> Vec<CallResult<'a>> {
    let mut found: Vec<Option<CallResult<'a>>> = calls.iter().map(|_| None).collect();
    for message in after.iter().take_while(|message| !matches!(message, ChatMessage::Assistant { .. })) {
        let ChatMessage::Tool { call_id, text, is_error, .. } = message else { continue };
        let slot = found.iter_mut().zip(calls).find(|(slot, call)| slot.is_none() && call.id == *call_id);
        if let Some((slot, _)) = slot {
            *slot = Some(CallResult { call_id, text, is_error: *is_error });
        }
    }
    let missing = |call: &'a ToolRequest| CallResult { call_id: &call.id, text: INTERRUPTED, is_error: true };
    found.into_iter().zip(calls).map(|(found, call)| found.unwrap_or_else(|| missing(call))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(text: &str) -> ChatMessage {
        ChatMessage::User { text: text.to_owned() }
    }

    fn assistant(text: &str, calls: &[&str]) -> ChatMessage {
        let call = |id: &&str| ToolRequest {
            id: (*id).to_owned(),
            name: "look".to_owned(),
            arguments: "{}".to_owned(),
        };
        ChatMessage::Assistant { text: text.to_owned(), calls: calls.iter().map(call).collect() }
    }

    fn tool(id: &str, text: &str) -> ChatMessage {
        let (call_id, name) = (id.to_owned(), "look".to_owned());
        ChatMessage::Tool { call_id, name, text: text.to_owned(), is_error: false }
    }

    fn shape(messages: &[ChatMessage]) -> Vec<String> {
        let show = |step: Step<'_>| match step {
            Step::User(texts) => format!("user {}", texts.join("+")),
            Step::Assistant { texts, calls } => {
                let calls: Vec<&str> = calls.iter().map(|call| call.id.as_str()).collect();
                format!("assistant {} [{}]", texts.join("+"), calls.join(" "))
            }
            Step::Results(results) => {
                let each = results.iter().map(|result| {
                    format!("{}={}", result.call_id, if result.is_error { "!" } else { result.text })
                });
                format!("results {}", each.collect::<Vec<_>>().join(" "))
            }
        };
        steps(messages).into_iter().map(show).collect()
    }

    #[test]
    fn results_stand_in_the_order_of_their_calls_and_before_what_the_user_said_meanwhile() {
        let messages =
            [user("a"), assistant("", &["1", "2"]), tool("2", "two"), user("b"), tool("1", "one"), user("c")];
        assert_eq!(shape(&messages), ["user a", "assistant  [1 2]", "results 1=one 2=two", "user b+c"]);
    }

    #[test]
    fn a_call_that_was_cut_off_has_a_result_that_says_so() {
        let messages = [user("a"), assistant("x", &["1", "2"]), tool("1", "one"), assistant("y", &[])];
        assert_eq!(shape(&messages), ["user a", "assistant x [1 2]", "results 1=one 2=!", "assistant y []"]);
    }

    #[test]
    fn nothing_empty_and_no_result_without_its_call_is_sent() {
        let messages = [tool("0", "old"), user(" \n"), assistant("", &[]), user("a"), tool("9", "stray")];
        assert_eq!(shape(&messages), ["user a"]);
    }

    #[test]
    fn one_role_speaks_once_in_a_row() {
        let messages =
            [user("a"), user("b"), assistant("x", &[]), assistant("y", &["1"]), tool("1", "one"), user("c")];
        assert_eq!(shape(&messages), ["user a+b", "assistant x+y [1]", "results 1=one", "user c"]);
    }
}
