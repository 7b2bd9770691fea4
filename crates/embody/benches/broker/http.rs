//! Just enough HTTP/1.1 to ask and to be asked: whole messages, with a length or in chunks.

/// A message that has arrived in full.
pub(crate) struct Whole {
    /// How many bytes it took.
    pub(crate) length: usize,
    /// The first line and the headers.
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Whole {
    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }

    /// The JSON-RPC answer in it, whether it came plain or as an event.
    pub(crate) fn answer(self) -> String {
        if !self.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream")) {
            return self.body;
        }
        let data = self.body.lines().filter_map(|line| line.strip_prefix("data:"));
        data.rev().find(|data| data.contains("\"id\"")).unwrap_or_default().trim().to_owned()
    }
}

/// The first message in the buffer, if all of it is there.
pub(crate) fn message(buffer: &[u8]) -> Option<Whole> {
    let end = find(buffer, b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
    let rest = &buffer[end..];
    let (body, length) = if header(&head, "transfer-encoding").is_some() {
        chunks(rest)?
    } else {
        let length = header(&head, "content-length").map_or(0, |length| length.parse().unwrap());
        (rest.get(..length)?.to_vec(), length)
    };
    Some(Whole { length: end + length, head, body: String::from_utf8(body).unwrap() })
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

fn chunks(rest: &[u8]) -> Option<(Vec<u8>, usize)> {
    let (mut body, mut at) = (Vec::new(), 0);
    loop {
        let line = find(&rest[at..], b"\r\n")?;
        let size = std::str::from_utf8(&rest[at..at + line]).unwrap();
        let size = usize::from_str_radix(size.split(';').next().unwrap().trim(), 16).unwrap();
        at += line + 2;
        let chunk = rest.get(at..at + size + 2)?;
        body.extend_from_slice(&chunk[..size]);
        at += size + 2;
        if size == 0 {
            return Some((body, at));
        }
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}
