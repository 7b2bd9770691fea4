//! Tests with lines of many lengths, read in chunks of many sizes.

use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

use super::*;
use crate::message::Message;

const MOST: usize = 3 * AT_ONCE;
/// Around the buffer size, and around the limit.
const LENGTHS: [usize; 12] =
    [60, 100, AT_ONCE - 2, AT_ONCE - 1, AT_ONCE, AT_ONCE + 1, 61, MOST - 1, MOST, MOST + 1, 3 * MOST, 62];

/// A message of `length` bytes.
fn message(length: usize) -> String {
    let (head, tail) = (r#"{"jsonrpc":"2.0","id":7,"method":"x","params":{"p":""#, r#""}}"#);
    format!("{head}{}{tail}", "a".repeat(length - head.len() - tail.len()))
}

#[tokio::test]
async fn lines_are_the_same_however_they_come() {
    let text: String = LENGTHS.iter().map(|length| message(*length) + "\n").collect();
    for at_once in [1, 63, AT_ONCE - 1, AT_ONCE, AT_ONCE + 1, text.len()] {
        let (mut theirs, ours) = duplex(at_once);
        let text = text.clone();
        let sending = tokio::spawn(async move { theirs.write_all(text.as_bytes()).await });
        let limits = Limits { message_max_bytes: MOST, ..Limits::default() };
        let mut lines = Lines::new(ours, limits);
        for length in LENGTHS {
            let line = lines.next().await.unwrap().unwrap();
            // The newline makes the line one byte longer than its message.
            if length >= MOST {
                assert_eq!(line.unwrap_err().answer.id.unwrap().as_json(), "7", "{length} by {at_once}");
                continue;
            }
            let [Message::Request(request)] = &*line.unwrap() else { panic!("{length} by {at_once}") };
            let params = request.params.as_ref().unwrap().get();
            assert_eq!(params.len(), length - r#"{"jsonrpc":"2.0","id":7,"method":"x","params":}"#.len());
        }
        assert!(lines.next().await.unwrap().is_none(), "{at_once}");
        assert_eq!((lines.ahead.capacity(), lines.at), (0, 0), "{at_once}");
        sending.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn what_is_said_arrives_in_its_order_and_whole() {
    for at_once in [1, AT_ONCE, 10 * MOST] {
        let (mut theirs, ours) = duplex(at_once);
        let (queue, letters) = mpsc::channel(LENGTHS.len());
        for length in LENGTHS {
            queue.send(message(length).into()).await.unwrap();
        }
        drop(queue);
        let writing = tokio::spawn(write(ours, letters));
        let mut text = String::new();
        theirs.read_to_string(&mut text).await.unwrap();
        let lengths: Vec<usize> = text.lines().map(str::len).collect();
        assert_eq!(lengths, LENGTHS, "{at_once}");
        assert!(text.ends_with('\n') && text.lines().all(|line| *line == message(line.len())));
        writing.await.unwrap().unwrap();
    }
}
