//! A collector on a plain socket that decodes OTLP by itself: protobuf read field by field, with nothing of what wrote it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A collector for as long as the test lives.
pub(super) struct Collector {
    port: u16,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    posts: Mutex<Vec<Post>>,
    /// What it answers from now on.
    status: Mutex<u16>,
}

/// One request.
#[derive(Debug, Clone)]
pub(super) struct Post {
    pub(super) line: String,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Vec<u8>,
    /// What it was answered.
    pub(super) status: u16,
}

/// A span as it came.
#[derive(Debug, Clone)]
pub(super) struct Span {
    pub(super) trace: String,
    pub(super) id: String,
    pub(super) parent: String,
    pub(super) state: String,
    pub(super) name: String,
    pub(super) kind: u64,
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    pub(super) attributes: BTreeMap<String, String>,
    pub(super) is_error: bool,
    pub(super) flags: u32,
    pub(super) resource: BTreeMap<String, String>,
}

/// The kinds of a span.
pub(super) const SERVER: u64 = 2;
pub(super) const CLIENT: u64 = 3;

impl Collector {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State { posts: Mutex::default(), status: Mutex::new(200) });
        let serving = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&serving);
                std::thread::spawn(move || state.serve(stream));
            }
        });
        Self { port, state }
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// From now on it answers this.
    pub(super) fn answer(&self, status: u16) {
        *self.state.status.lock().unwrap() = status;
    }

    pub(super) fn posts(&self) -> Vec<Post> {
        self.state.posts.lock().unwrap().clone()
    }

    /// Every span of a request that was answered well.
    pub(super) fn spans(&self) -> Vec<Span> {
        self.posts().iter().filter(|post| post.status == 200).flat_map(|post| decoded(&post.body)).collect()
    }
}

impl State {
    fn serve(&self, mut stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let (mut line, mut headers) = (String::new(), BTreeMap::new());
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).unwrap();
            let Some((name, value)) = header.trim_end().split_once(": ") else { break };
            headers.insert(name.to_ascii_lowercase(), value.to_owned());
        }
        let mut body = vec![0; headers["content-length"].parse().unwrap()];
        reader.read_exact(&mut body).unwrap();
        let (line, status) = (line.trim_end().to_owned(), *self.status.lock().unwrap());
        self.posts.lock().unwrap().push(Post { line, headers, body, status });
        let answer = format!("HTTP/1.1 {status} So\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        let _ = stream.write_all(answer.as_bytes());
    }
}

/// What a field holds.
#[derive(Debug, Clone, PartialEq)]
enum ReceivedSpans<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> ReceivedSpans<'a> {
    fn bytes(&self) -> &'a [u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Number(number) => panic!("{number} where bytes should be"),
        }
    }

    fn number(&self) -> u64 {
        match self {
            Self::Number(number) => *number,
            Self::Bytes(bytes) => panic!("{bytes:?} where a number should be"),
        }
    }

    fn text(&self) -> String {
        String::from_utf8(self.bytes().to_vec()).unwrap()
    }

    fn hex(&self) -> String {
        self.bytes().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The fields of a message, each with its number, to the last byte.
fn fields(mut bytes: &[u8]) -> Vec<(u64, ReceivedSpans<'_>)> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let held = match key & 7 {
            0 => ReceivedSpans::Number(varint(&mut bytes)),
            1 => ReceivedSpans::Number(u64::from_le_bytes(take(&mut bytes, 8).try_into().unwrap())),
            2 => {
                let length = varint(&mut bytes);
                ReceivedSpans::Bytes(take(&mut bytes, usize::try_from(length).unwrap()))
            }
            5 => ReceivedSpans::Number(u32::from_le_bytes(take(&mut bytes, 4).try_into().unwrap()).into()),
            kind => panic!("there is no kind {kind} of field"),
        };
        found.push((key >> 3, held));
    }
    found
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for place in 0..10 {
        let byte = take(bytes, 1)[0];
        value |= u64::from(byte & 0x7f) << (7 * place);
        if byte < 0x80 {
            return value;
        }
    }
    panic!("a number does not end");
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(count);
    *bytes = rest;
    taken
}

fn all<'a>(message: &'a [u8], number: u64) -> Vec<ReceivedSpans<'a>> {
    fields(message).into_iter().filter(|(known, _)| *known == number).map(|(_, held)| held).collect()
}

fn decoded(request: &[u8]) -> Vec<Span> {
    let mut spans = Vec::new();
    for resource_spans in all(request, 1) {
        let resource = all(resource_spans.bytes(), 1).pop().unwrap();
        let resource = attributes(&all(resource.bytes(), 1));
        for scope_spans in all(resource_spans.bytes(), 2) {
            let scope = all(scope_spans.bytes(), 1).pop().unwrap();
            assert_eq!(all(scope.bytes(), 1).pop().unwrap().text(), "embody.broker");
            spans.extend(all(scope_spans.bytes(), 2).iter().map(|span| one(span.bytes(), &resource)));
        }
    }
    spans
}

fn one(span: &[u8], resource: &BTreeMap<String, String>) -> Span {
    let known = [1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16];
    assert!(fields(span).iter().all(|(number, _)| known.contains(number)), "{:?}", fields(span));
    let only = |number: u64| {
        let mut found = all(span, number);
        assert!(found.len() <= 1, "field {number} is there {} times", found.len());
        found.pop()
    };
    let (trace, id) = (only(1).unwrap().hex(), only(2).unwrap().hex());
    assert_eq!((trace.len(), id.len()), (32, 16));
    let is_error = only(15).is_some_and(|status| all(status.bytes(), 3) == [ReceivedSpans::Number(2)]);
    Span {
        trace,
        id,
        parent: only(4).map(|parent| parent.hex()).unwrap_or_default(),
        state: only(3).map(|state| state.text()).unwrap_or_default(),
        name: only(5).unwrap().text(),
        kind: only(6).unwrap().number(),
        start_ns: only(7).unwrap().number(),
        end_ns: only(8).unwrap().number(),
        attributes: attributes(&all(span, 9)),
        is_error,
        flags: only(16).unwrap().number().try_into().unwrap(),
        resource: resource.clone(),
    }
}

fn attributes(pairs: &[ReceivedSpans<'_>]) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for pair in pairs {
        let key = all(pair.bytes(), 1).pop().unwrap().text();
        let value = all(pair.bytes(), 2).pop().unwrap();
        let value = match fields(value.bytes()).as_slice() {
            [(1, text)] => text.text(),
            [(3, number)] => number.number().cast_signed().to_string(),
            other => panic!("{key} is {other:?}"),
        };
        assert!(found.insert(key.clone(), value).is_none(), "{key} is there twice");
    }
    found
}
