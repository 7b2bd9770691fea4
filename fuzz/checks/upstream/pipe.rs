//! A server on a pipe.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Mutex;

use embody_wire::upstream::{
    EraCache, InProcessServer, Link, OutgoingCall, PendingCall, Route, ServerMessage,
};
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::runtime::Runtime;
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;

use super::frames::{Bounds, Message};
use super::{Ended, Heard, SOON, answer_to, frames, hear, json, opening, rest, script};

const BOUNDS: Bounds = Bounds { bytes: 4096, depth: 32, messages: 8 };
/// Answers that surely find room.
const MOST_ANSWERS: usize = 200;
/// What the server asks last: when that is answered, so is everything else.
const LAST: &str = "\n{\"jsonrpc\":\"2.0\",\"id\":\"the last\",\"method\":\"ping\"}\n";
const LAST_ID: &str = "\"the last";
const GREETING: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}}}\n";

thread_local! {
    static RUNTIME: RefCell<Option<Runtime>> = const { RefCell::new(None) };
}

pub(super) fn check(choices: [u8; 4], data: &[u8]) {
    RUNTIME.with_borrow_mut(|runtime| {
        let runtime = runtime.get_or_insert_with(|| {
            tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
        });
        let talk = Talk::new(choices, data);
        runtime.block_on(async {
            let checked = timeout(SOON, talk.check()).await;
            checked.unwrap_or_else(|_| panic!("it does not end"));
            rest(0).await;
        });
    });
}

struct Talk {
    /// The calls by their numbers, and whether they are given up.
    calls: Vec<(u64, bool)>,
    said: Vec<u8>,
    /// Whether the calls have been made.
    is_called: Notify,
    /// What the server was told, once that was answered which it said last.
    told: RefCell<Vec<Message>>,
    is_over: Cell<bool>,
}

impl Talk {
    fn new(choices: [u8; 4], data: &[u8]) -> Self {
        // The greeting was the first.
        let numbers = (2..).take(1 + usize::from(choices[1] % 4));
        let calls: Vec<(u64, bool)> =
            numbers.enumerate().map(|(at, number)| (number, choices[2] >> at & 1 == 1)).collect();
        let numbers: Vec<u64> = calls.iter().map(|(number, _)| *number).collect();
        let said = [script::said(data, &numbers).as_slice(), LAST.as_bytes()].concat();
        Self { calls, said, is_called: Notify::new(), told: RefCell::default(), is_over: Cell::new(false) }
    }

    async fn check(&self) {
        let (ours, theirs) = tokio::io::duplex(1 << 17);
        let (_, (hears, heard)) = tokio::join!(self.speak(theirs), self.call(ours));
        self.check_questions(&hears, &heard);
        self.check_progress(&heard);
    }

    /// The server.
    async fn speak(&self, stream: DuplexStream) {
        let (input, mut output) = tokio::io::split(stream);
        let mut input = BufReader::new(input);
        output.write_all(GREETING.as_bytes()).await.unwrap();
        self.is_called.notified().await;
        output.write_all(&self.said).await.unwrap();
        loop {
            let mut line = Vec::new();
            if input.read_until(b'\n', &mut line).await.unwrap() == 0 {
                return;
            }
            let message = frames::check_written(&line);
            let is_last = matches!(&message, Message::Response { id: Some(id), .. } if id == LAST_ID);
            self.told.borrow_mut().push(message);
            if is_last || self.answers() > MOST_ANSWERS {
                self.is_over.set(true);
                return;
            }
        }
    }

    /// Its caller.
    async fn call(&self, stream: DuplexStream) -> (Vec<ServerMessage>, Vec<Heard>) {
        let stream = Mutex::new(Some(stream));
        let connect = InProcessServer::on_streams(move || {
            let stream = stream.lock().unwrap().take();
            tokio::io::split(stream.expect("it connects once"))
        });
        let (said, mut says) = mpsc::channel(4);
        let opening = opening(Route::InProcess(connect), BOUNDS, EraCache::sessions());
        let link = Link::open(&opening, said).await.expect("the greeting is a good one");
        let mut running: Vec<PendingCall> = Vec::new();
        for (number, is_given_up) in &self.calls {
            let params = format!(r#"{{"name":"x","_meta":{{"progressToken":"{}"}}}}"#, token(*number));
            let params = RawValue::from_string(params).unwrap();
            let call =
                link.begin(OutgoingCall { method: "tools/call", params: Some(&params) }).await.unwrap();
            assert_eq!(call.number(), *number);
            if !is_given_up {
                running.push(call);
            }
        }
        self.is_called.notify_one();
        let mut heard = Vec::new();
        for mut call in running {
            let number = call.number();
            let (ended, _, what) = hear(&mut call).await;
            self.check_end(number, &ended);
            heard.push(what);
        }
        link.until_closed().await;
        assert!(self.is_over.get(), "the server is still there");
        assert_eq!(link.waiting(), 0, "nobody waits any more");
        drop(link);
        let mut hears = Vec::new();
        while let Ok(one) = says.try_recv() {
            hears.push(one);
        }
        (hears, heard)
    }

    /// Every message of the server, as somebody else reads it, and whether a line before it was too long.
    fn messages(&self) -> Vec<(Message, bool)> {
        let (mut messages, mut is_after_long) = (Vec::new(), false);
        for line in frames::lines(&self.said, BOUNDS) {
            is_after_long |= line.len() > BOUNDS.bytes;
            let read = frames::messages(line, BOUNDS).unwrap_or_default();
            messages.extend(read.into_iter().map(|message| (message, is_after_long)));
        }
        messages
    }

    fn check_end(&self, number: u64, ended: &Ended) {
        let messages = self.messages();
        let answer = messages
            .iter()
            .find_map(|(message, is_after_long)| Some((answer_to(message, number)?, *is_after_long)));
        match (answer, ended) {
            (Some((answer, _)), Ended::Done(given)) => assert_eq!(answer, *given, "as it was written"),
            // What was too long may have been its answer.
            (Some((_, true)), Ended::Lost) | (None, Ended::Lost) => {}
            (answer, ended) => panic!("{number} was answered with {answer:?}: {ended:?}"),
        }
    }

    /// Answers that the server has got.
    fn answers(&self) -> usize {
        self.told.borrow().iter().filter(|message| matches!(message, Message::Response { .. })).count()
    }

    /// Whatever the server asks is answered, or put to somebody.
    fn check_questions(&self, hears: &[ServerMessage], heard: &[Heard]) {
        let messages = self.messages();
        let asked: HashMap<&String, &String> = messages
            .iter()
            .filter_map(|(message, _)| match message {
                Message::Request { id, raw_id } => Some((id, raw_id)),
                _ => None,
            })
            .collect();
        for message in &*self.told.borrow() {
            let Message::Response { id, .. } = message else { continue };
            assert!(
                id.as_ref().is_some_and(|id| asked.contains_key(id)),
                "{message:?} answers none of {asked:?}"
            );
        }
        let asked = messages.iter().filter(|(message, _)| matches!(message, Message::Request { .. })).count();
        if asked > MOST_ANSWERS {
            return;
        }
        let put = hears.iter().filter(|said| matches!(said, ServerMessage::Request(_))).count()
            + heard.iter().map(|heard| heard.questions).sum::<usize>();
        assert_eq!(put + self.answers(), asked, "each question once: {:?}", self.told);
    }

    /// Progress of a call bears its caller's own token, and nothing else has changed.
    fn check_progress(&self, heard: &[Heard]) {
        let alive = self.calls.iter().filter(|(_, is_given_up)| !is_given_up);
        for ((number, _), heard) in alive.zip(heard) {
            let mut meant = Vec::new();
            for (message, is_after_long) in self.messages() {
                if answer_to(&message, *number).is_some() || is_after_long {
                    break;
                }
                let Message::Notification { method, params: Some(params) } = message else { continue };
                if method == "notifications/progress" {
                    meant.extend(exchanged(&params, *number));
                }
            }
            let is_same = heard.progress.starts_with(&meant);
            assert!(is_same, "{number}: {:?} in place of {meant:?}", heard.progress);
        }
    }
}

fn token(number: u64) -> String {
    format!("the caller's own {number}")
}

/// The parameters with the caller's token, if they have ours.
fn exchanged(params: &str, number: u64) -> Option<String> {
    let read = json::read(params)?;
    let json::Node::Object(members) = &read.node else { return None };
    let mut tokens = members.iter().filter(|(name, _)| name.as_deref() == Some("progressToken"));
    let (Some((_, ours)), None) = (tokens.next(), tokens.next()) else { return None };
    (ours.raw == number.to_string()).then_some(())?;
    let at = ours.raw.as_ptr() as usize - params.as_ptr() as usize;
    Some(format!("{}\"{}\"{}", &params[..at], token(number), &params[at + ours.raw.len()..]))
}
