//! Output: whole lines in order, and requests that wait for their response.

use std::collections::HashMap;
use std::io::Write;
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};

/// How long it waits for the response to its own request.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Default)]
pub(super) struct Outlet {
    turn: Mutex<()>,
    asked: Mutex<HashMap<String, Sender<String>>>,
}

impl Outlet {
    pub(super) fn result(&self, id: &RawValue, result: &str) {
        self.line(&answer(id.get(), result));
    }

    pub(super) fn error(&self, id: &RawValue, code: i32, message: &str) {
        let error = json!({"code": code, "message": message});
        self.line(&format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, id.get()));
    }

    pub(super) fn notify(&self, method: &str, params: &Value) {
        self.line(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
    }

    /// Sends a request and returns the whole response as text; `null` if none arrives.
    pub(super) fn ask(&self, method: &str, params: &Value) -> String {
        let (sender, answer) = channel();
        let id = {
            let mut asked = self.asked.lock().unwrap();
            let id = format!("question {}", asked.len() + 1);
            // Kept afterwards too: an id is never reused.
            asked.insert(Value::from(id.as_str()).to_string(), sender);
            id
        };
        self.line(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
        answer.recv_timeout(PATIENCE).unwrap_or_else(|_| "null".to_owned())
    }

    pub(super) fn resolve(&self, id: &str, answer: Option<Box<RawValue>>) {
        if let Some(sender) = self.asked.lock().unwrap().get(id) {
            let _ = sender.send(answer.map_or_else(|| "null".to_owned(), |answer| answer.get().to_owned()));
        }
    }

    pub(super) fn line(&self, line: &str) {
        self.bytes(format!("{line}\n").as_bytes());
    }

    /// Writes exactly these bytes. Continues when the peer is gone.
    pub(super) fn bytes(&self, bytes: &[u8]) {
        let _turn = self.turn.lock().unwrap();
        let mut output = std::io::stdout().lock();
        let _ = output.write_all(bytes).and_then(|()| output.flush());
    }

    /// Writes these bytes one by one over that time, with nothing in between.
    pub(super) fn drip(&self, bytes: &[u8], over: Duration) {
        let _turn = self.turn.lock().unwrap();
        let mut output = std::io::stdout().lock();
        let pause = over / u32::try_from(bytes.len().max(1)).unwrap();
        for byte in bytes {
            let _ = output.write_all(&[*byte]).and_then(|()| output.flush());
            std::thread::sleep(pause);
        }
    }
}

pub(super) fn answer(id: &str, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}
