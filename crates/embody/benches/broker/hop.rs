//! A broker that does nothing: it reads a message, exchanges its id, and passes it on; on the runtime that the real one uses.

use std::collections::HashMap;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt};

use crate::server::{Message, standard};

/// Stands between stdio and a server of its own until the input ends.
pub(crate) fn stand() {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(async {
        let mut child = tokio::process::Command::new(std::env::current_exe().unwrap())
            .arg("--echo")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = standard();
        let known = Arc::default();
        let there =
            pass(input, child.stdin.take().unwrap(), Ids { known: Arc::clone(&known), is_back: false });
        let back = pass(child.stdout.take().unwrap(), output, Ids { known, is_back: true });
        let (there, back) = (tokio::spawn(there), tokio::spawn(back));
        there.await.unwrap();
        back.await.unwrap();
    });
}

async fn pass(from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, ids: Ids) {
    let mut lines = tokio::io::BufReader::new(from);
    let mut line = String::new();
    while lines.read_line(&mut line).await.unwrap() > 0 {
        let out = ids.exchange(&line);
        to.write_all(out.as_bytes()).await.unwrap();
        line.clear();
    }
}

struct Ids {
    known: Arc<Mutex<(u64, HashMap<u64, String>)>>,
    is_back: bool,
}

impl Ids {
    /// The line with the other side's id.
    fn exchange(&self, line: &str) -> String {
        let message: Message<'_> = serde_json::from_str(line).unwrap();
        let Some(id) = message.id.map(RawValue::get) else { return line.to_owned() };
        let mut known = self.known.lock().unwrap();
        let other = if self.is_back {
            known.1.remove(&id.parse().unwrap()).unwrap()
        } else {
            known.0 += 1;
            let number = known.0;
            known.1.insert(number, id.to_owned());
            number.to_string()
        };
        let start = id.as_ptr() as usize - line.as_ptr() as usize;
        format!("{}{other}{}", &line[..start], &line[start + id.len()..])
    }
}
