//! A forward proxy on plain sockets: requests in absolute form are passed on, `CONNECT` opens a tunnel, and so does SOCKS.
//! The test resolves all names; no other host is reached.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A socket on which nothing moves for that long is given up.
const PATIENCE: Duration = Duration::from_secs(60);

/// The version of SOCKS, and its way to say that there is a password.
const SOCKS: u8 = 5;
const PASSWORD: u8 = 2;

/// A proxy for as long as the test lives.
pub(super) struct Forward {
    port: u16,
    seen: Arc<Mutex<Vec<SeenRequest>>>,
}

/// A request that came in.
#[derive(Debug, Clone)]
pub(super) struct SeenRequest {
    /// The line that it began with.
    pub(super) line: String,
    /// The credentials of the request.
    pub(super) authorization: Option<String>,
}

#[derive(Clone)]
struct ProxyServer {
    /// `HOST:PORT` to where that is.
    names: BTreeMap<String, String>,
    /// The only accepted credentials, if they are checked.
    wants: Option<String>,
    seen: Arc<Mutex<Vec<SeenRequest>>>,
}

struct Head {
    line: String,
    headers: Vec<(String, String)>,
}

impl Forward {
    /// One for whom each of these names, `HOST:PORT`, is at that address.
    pub(super) fn start(names: &[(&str, &str)]) -> Self {
        Self::start_for(None, names)
    }

    /// The same for those who send these credentials.
    pub(super) fn start_for(wants: Option<&str>, names: &[(&str, &str)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let names = names.iter().map(|(name, at)| ((*name).to_owned(), (*at).to_owned())).collect();
        let seen = Arc::<Mutex<Vec<SeenRequest>>>::default();
        let desk = ProxyServer { names, wants: wants.map(str::to_owned), seen: Arc::clone(&seen) };
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let desk = desk.clone();
                // Whoever goes away in the middle of it has had enough.
                std::thread::spawn(move || drop(desk.serve(stream)));
            }
        });
        Self { port, seen }
    }

    /// Its host and port.
    pub(super) fn place(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Everything that it was asked for, in order.
    pub(super) fn seen(&self) -> Vec<SeenRequest> {
        self.seen.lock().unwrap().clone()
    }

    /// The lines of it.
    pub(super) fn lines(&self) -> Vec<String> {
        self.seen().into_iter().map(|seen| seen.line).collect()
    }
}

impl ProxyServer {
    fn serve(&self, mut client: TcpStream) -> std::io::Result<()> {
        client.set_read_timeout(Some(PATIENCE))?;
        let mut reader = BufReader::new(client.try_clone()?);
        if reader.fill_buf()?.first() == Some(&SOCKS) {
            return self.serve_socks(reader, client);
        }
        let mut server: Option<TcpStream> = None;
        while let Some(head) = Head::read(&mut reader)? {
            let authorization = head.header("proxy-authorization");
            self.seen
                .lock()
                .unwrap()
                .push(SeenRequest { line: head.line.clone(), authorization: authorization.clone() });
            if self.wants.is_some() && authorization != self.wants {
                return refuse(&mut client, "407 Proxy Authentication Required");
            }
            let (method, target, host) = head.target();
            let Some(at) = self.names.get(&host) else { return refuse(&mut client, "502 Bad Gateway") };
            if method == "CONNECT" {
                let server = TcpStream::connect(at)?;
                client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
                pipe(server.try_clone()?, client);
                return copy(reader, &server);
            }
            let server = match &mut server {
                Some(server) => server,
                none => {
                    let stream = TcpStream::connect(at)?;
                    pipe(stream.try_clone()?, client.try_clone()?);
                    none.insert(stream)
                }
            };
            let length: u64 = head.header("content-length").map_or(0, |length| length.parse().unwrap());
            assert_eq!(head.header("transfer-encoding"), None, "{}", head.line);
            let mut request = format!("{method} {target} HTTP/1.1\r\n");
            for (name, value) in head.headers.iter().filter(|(name, _)| !name.starts_with("proxy-")) {
                request += &format!("{name}: {value}\r\n");
            }
            server.write_all(format!("{request}\r\n").as_bytes())?;
            std::io::copy(&mut (&mut reader).take(length), server)?;
        }
        Ok(())
    }
}

impl ProxyServer {
    /// SOCKS 5 (RFC 1928) with user and password (RFC 1929), for names only.
    fn serve_socks(&self, mut reader: BufReader<TcpStream>, mut client: TcpStream) -> std::io::Result<()> {
        let [_, methods] = bytes(&mut reader)?;
        let methods = piece(&mut reader, methods)?;
        assert!(methods.contains(&PASSWORD), "{methods:?}");
        client.write_all(&[SOCKS, PASSWORD])?;
        let [_, length] = bytes(&mut reader)?;
        let user = piece(&mut reader, length)?;
        let [length] = bytes(&mut reader)?;
        let password = piece(&mut reader, length)?;
        client.write_all(&[1, 0])?;
        let [_, command, _, kind, length] = bytes(&mut reader)?;
        assert_eq!((command, kind), (1, 3), "a connection to a name is asked for");
        let name = String::from_utf8(piece(&mut reader, length)?).unwrap();
        let host = format!("{name}:{}", u16::from_be_bytes(bytes(&mut reader)?));
        let reported = [user, password].map(|part| String::from_utf8(part).unwrap()).join(":");
        self.seen
            .lock()
            .unwrap()
            .push(SeenRequest { line: format!("SOCKS {host}"), authorization: Some(reported) });
        let Some(at) = self.names.get(&host) else {
            return client.write_all(&[SOCKS, 4, 0, 1, 0, 0, 0, 0, 0, 0]);
        };
        let server = TcpStream::connect(at)?;
        client.write_all(&[SOCKS, 0, 0, 1, 0, 0, 0, 0, 0, 0])?;
        pipe(server.try_clone()?, client);
        copy(reader, &server)
    }
}

fn bytes<const COUNT: usize>(reader: &mut impl Read) -> std::io::Result<[u8; COUNT]> {
    let mut bytes = [0; COUNT];
    reader.read_exact(&mut bytes).map(|()| bytes)
}

fn piece(reader: &mut impl Read, length: u8) -> std::io::Result<Vec<u8>> {
    let mut piece = vec![0; length.into()];
    reader.read_exact(&mut piece).map(|()| piece)
}

impl Head {
    fn read(reader: &mut impl BufRead) -> std::io::Result<Option<Self>> {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let mut headers = Vec::new();
        loop {
            let mut header = String::new();
            reader.read_line(&mut header)?;
            let Some((name, value)) = header.trim().split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        Ok(Some(Self { line: line.trim().to_owned(), headers }))
    }

    fn header(&self, wanted: &str) -> Option<String> {
        self.headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.clone())
    }

    /// The method, the path on the server, and the server as `HOST:PORT`.
    fn target(&self) -> (String, String, String) {
        let mut words = self.line.split(' ').map(str::to_owned);
        let (method, target) = (words.next().unwrap(), words.next().unwrap());
        if method == "CONNECT" {
            return (method, String::new(), target);
        }
        let rest = target.strip_prefix("http://").unwrap_or_else(|| panic!("no absolute form: {target}"));
        let (host, path) = rest.split_once('/').unwrap();
        let host = if host.contains(':') { host.to_owned() } else { format!("{host}:80") };
        (method, format!("/{path}"), host)
    }
}

fn refuse(client: &mut TcpStream, status: &str) -> std::io::Result<()> {
    client
        .write_all(format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").as_bytes())
}

/// Forwards bytes from `from` until it ends.
fn pipe(from: TcpStream, to: TcpStream) {
    std::thread::spawn(move || drop(copy(from, &to)));
}

fn copy(mut from: impl Read, mut to: &TcpStream) -> std::io::Result<()> {
    std::io::copy(&mut from, &mut to)?;
    to.shutdown(Shutdown::Both)
}
