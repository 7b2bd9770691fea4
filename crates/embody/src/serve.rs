//! Serves an MCP service over standard streams or on an address, until a signal or the end of input.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream as Socket;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use axum::Router;
use embody_wire::Limits;
use embody_wire::server::http::{self, Options, OriginGuard};
use embody_wire::server::{CancellationToken, Service, lines};
use rustix::process::{Resource, getrlimit};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::unix::pipe;
use tokio::net::{TcpListener, UnixStream};
use tokio::signal::unix::{SignalKind, signal};

use crate::error::{CliError, ErrorContext};
use crate::output;

/// How long the process may take to exit after a signal: requests have ten seconds, then bodies are stopped.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(20);
/// Time to print the message about a slow shutdown.
const MESSAGE_TIMEOUT: Duration = Duration::from_millis(100);
/// File descriptors reserved for everything but connections.
const RESERVED_FILES: usize = 256;

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct ListenArgs {
    /// Serve HTTP on this address (port 0 picks a free port): streamable HTTP at /mcp, legacy SSE at /sse [default: stdio]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
    /// Allow an address that other machines can reach; put TLS in front of it
    #[arg(long, requires = "listen")]
    pub(crate) allow_remote: bool,
    /// A host name that clients use to reach this machine, besides localhost; may be repeated
    #[arg(long = "host", value_name = "NAME", requires = "listen")]
    pub(crate) hosts: Vec<String>,
}

/// Ends on SIGINT, SIGTERM or SIGHUP. Signals have a thread of their own: the process exits within [`SHUTDOWN_TIMEOUT`], even
/// if the threads of the runtime are blocked.
pub(crate) fn shutdown_signal() -> Result<CancellationToken, CliError> {
    let ending = CancellationToken::new();
    let switch = ending.clone();
    let (sender, receiver) = std::sync::mpsc::channel();
    let failed = |error: std::io::Error| CliError::new("cannot listen for signals").caused_by(&error);
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            match runtime {
                Ok(runtime) => runtime.block_on(wait_for_signal(&switch, &sender)),
                Err(error) => drop(sender.send(Err(error))),
            }
        })
        .map_err(failed)?;
    let registered = receiver.recv().unwrap_or_else(|error| Err(std::io::Error::other(error)));
    registered.map_err(failed)?;
    Ok(ending)
}

async fn wait_for_signal(switch: &CancellationToken, registered: &Sender<std::io::Result<()>>) {
    let signals = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal);
    let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)] = signals else {
        let error = signals.into_iter().find_map(Result::err);
        let _ = registered.send(Err(error.unwrap_or_else(|| std::io::Error::other("no signal"))));
        return;
    };
    let _ = registered.send(Ok(()));
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
    switch.cancel();
    tokio::time::sleep(SHUTDOWN_TIMEOUT).await;
    // On another thread, because stderr may be what blocks.
    std::thread::spawn(|| output::stderr_line("the shutdown took too long; the process is stopped"));
    tokio::time::sleep(MESSAGE_TIMEOUT).await;
    std::process::exit(1);
}

pub(crate) async fn over_stdio<S: Service>(
    service: Arc<S>,
    principal: S::Principal,
    ending: CancellationToken,
) -> Result<(), CliError> {
    let streams = standard_streams().context("cannot use the standard streams")?;
    // A task shares a worker thread with the calls that it spawns; the main future does not.
    let serving = tokio::spawn(lines::serve(service, principal, streams, Limits::default(), ending));
    serving
        .await
        .unwrap_or_else(|error| Err(std::io::Error::other(error)))
        .context("cannot read from or write to the host")
}

/// Serves hosts over HTTP, and `more` routes beside `/mcp`. Prints the address as the first line on stdout.
pub(crate) async fn over_http<S: Service>(
    service: Arc<S>,
    more: impl FnOnce(OriginGuard) -> Router,
    args: &ListenArgs,
    address: SocketAddr,
    ending: CancellationToken,
) -> Result<(), CliError> {
    let BoundListener { listener, address, origin_guard } = listen(args, address).await?;
    let more = more(origin_guard.clone());
    let limits = limits();
    let router =
        http::router(service, Options { origin_guard, limits: limits.clone() }, ending.clone()).merge(more);
    output::plain(&format!("http://{address}/mcp\n"))?;
    output::stderr_line(&format!("listening; legacy SSE at http://{address}/sse"));
    http::serve(listener, router, &limits, ending).await;
    Ok(())
}

/// The limits of an HTTP server: connections must not use up the file descriptors of the process.
pub(crate) fn limits() -> Limits {
    let limits = Limits::default();
    let files = getrlimit(Resource::Nofile).current.map(|files| usize::try_from(files).unwrap_or(usize::MAX));
    let most = files.map_or(usize::MAX, |files| {
        files.saturating_sub(RESERVED_FILES).max(2 * limits.connections_reserved)
    });
    Limits {
        connections_max: limits.connections_max.min(most),
        connections_each_max: limits.connections_each_max.min(most),
        ..limits
    }
}

pub(crate) struct BoundListener {
    pub(crate) listener: TcpListener,
    pub(crate) address: SocketAddr,
    pub(crate) origin_guard: OriginGuard,
}

pub(crate) async fn listen(args: &ListenArgs, address: SocketAddr) -> Result<BoundListener, CliError> {
    let listener = TcpListener::bind(address).await.map_err(|error| {
        let failure = CliError::new(format!("cannot listen on `{address}`")).caused_by(&error);
        match error.kind() {
            ErrorKind::AddrInUse => {
                failure.hint("another program uses this port; `--listen 127.0.0.1:0` picks a free one")
            }
            _ => failure.hint("port 0 picks a free port"),
        }
    })?;
    let address = listener.local_addr().context("cannot determine the address")?;
    let mut hosts = args.hosts.clone();
    if address.ip().is_loopback() {
        hosts.push(match address.ip() {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        });
    }
    Ok(BoundListener {
        listener,
        address,
        origin_guard: OriginGuard { hosts, is_behind_tls: args.allow_remote },
    })
}

impl ListenArgs {
    /// The address, if any. One that other machines reach needs `--allow-remote`, because nothing here is encrypted.
    pub(crate) fn address(&self) -> Result<Option<SocketAddr>, CliError> {
        let Some(text) = &self.listen else { return Ok(None) };
        let address = parse(text).ok_or_else(|| {
            CliError::usage(format!("invalid address `{text}`"))
                .hint("write 127.0.0.1:7717, [::1]:7717, or 127.0.0.1:0 for a free port")
        })?;
        if !address.ip().is_loopback() && !self.allow_remote {
            return Err(CliError::usage(format!("`{text}` is reachable from other machines")).hint(
                "put TLS in front of it and pass `--allow-remote --host NAME`, or listen on 127.0.0.1",
            ));
        }
        if !address.ip().is_loopback() && self.hosts.is_empty() {
            return Err(CliError::usage(format!("`--listen {text}` needs at least one `--host NAME`"))
                .hint("pass every host name that clients use"));
        }
        Ok(Some(address))
    }
}

fn parse(text: &str) -> Option<SocketAddr> {
    let text =
        text.strip_prefix("localhost").map_or_else(|| text.to_owned(), |rest| format!("127.0.0.1{rest}"));
    text.parse().ok().or_else(|| {
        let ip: IpAddr = text.parse().ok()?;
        Some(SocketAddr::new(ip, 0))
    })
}

type Streams = (Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>);

/// Standard input and output. Hosts connect pipes or sockets, which the runtime polls; for anything else tokio uses a thread, and
/// each message costs two thread switches.
fn standard_streams() -> io::Result<Streams> {
    Ok((input()?, output()?))
}

fn input() -> io::Result<Box<dyn AsyncRead + Send + Unpin>> {
    Ok(match kind(io::stdin().as_fd().try_clone_to_owned()?)? {
        Kind::Pipe(fd) => Box::new(pipe::Receiver::from_owned_fd(fd)?),
        Kind::Socket(socket) => Box::new(socket),
        Kind::Other => Box::new(tokio::io::stdin()),
    })
}

fn output() -> io::Result<Box<dyn AsyncWrite + Send + Unpin>> {
    Ok(match kind(io::stdout().as_fd().try_clone_to_owned()?)? {
        Kind::Pipe(fd) => Box::new(pipe::Sender::from_owned_fd(fd)?),
        Kind::Socket(socket) => Box::new(socket),
        Kind::Other => Box::new(tokio::io::stdout()),
    })
}

enum Kind {
    Pipe(OwnedFd),
    Socket(UnixStream),
    Other,
}

fn kind(fd: OwnedFd) -> io::Result<Kind> {
    let file = File::from(fd);
    let found = file.metadata()?.file_type();
    if found.is_fifo() {
        return Ok(Kind::Pipe(file.into()));
    }
    if found.is_socket() {
        let socket = Socket::from(OwnedFd::from(file));
        // Only Unix sockets are supported.
        if socket.local_addr().is_ok() {
            socket.set_nonblocking(true)?;
            return Ok(Kind::Socket(UnixStream::from_std(socket)?));
        }
    }
    Ok(Kind::Other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(listen: &str, allow_remote: bool) -> ListenArgs {
        let hosts = if allow_remote { vec!["agent.example.com".to_owned()] } else { Vec::new() };
        ListenArgs { listen: Some(listen.to_owned()), allow_remote, hosts }
    }

    #[test]
    fn remote_access_needs_a_flag() {
        for listen in ["127.0.0.1:0", "[::1]:7717", "localhost:80", "127.0.0.1"] {
            assert!(args(listen, false).address().unwrap().is_some(), "{listen}");
        }
        for listen in ["0.0.0.0:80", "[::]:80", "192.168.1.1:80"] {
            assert!(args(listen, false).address().is_err(), "{listen}");
            assert!(args(listen, true).address().is_ok(), "{listen}");
        }
        for listen in ["", "7717", "example.com:80", "127.0.0.1:99999"] {
            assert!(args(listen, true).address().is_err(), "{listen}");
        }
    }
}
