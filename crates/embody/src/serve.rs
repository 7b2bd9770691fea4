//! How a service of ours is served: over standard streams, or on an address, until a signal or the end of input.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use axum::Router;
use embody_wire::Limits;
use embody_wire::serve::http::{Door, Options};
use embody_wire::serve::{Ending, Service, http, lines};
use rustix::process::{Resource, getrlimit};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::failure::Failure;
use crate::output;

/// How long a process may take to end after a signal: running requests have ten seconds, then bodies are stopped.
const END: Duration = Duration::from_secs(20);
/// Time to say that it took longer.
const LAST_LINE: Duration = Duration::from_millis(100);
/// Files that are left for everything but connections.
const OTHER_FILES: usize = 256;

/// An address to listen on.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct ListenArgs {
    /// Serve HTTP on this address, port 0 for a free one: streamable at /mcp, legacy at /sse [default: stdio]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
    /// Listen beyond this machine, with TLS in front of it
    #[arg(long, requires = "listen")]
    pub(crate) allow_remote: bool,
    /// A name that this machine is reached by, besides localhost; may be repeated
    #[arg(long = "host", value_name = "NAME", requires = "listen")]
    pub(crate) hosts: Vec<String>,
}

/// Everything that tells a server to end. Signals are waited for on a thread of their own: whatever the runtime's threads do,
/// the process ends within [`END`] after the first one.
pub(crate) fn ending() -> Result<Ending, Failure> {
    let (switch, ending) = Ending::new();
    let (sender, receiver) = std::sync::mpsc::channel();
    let failed = |error: std::io::Error| Failure::new("signals cannot be waited for").because(&error);
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            match runtime {
                Ok(runtime) => runtime.block_on(end_at_a_signal(&switch, &sender)),
                Err(error) => drop(sender.send(Err(error))),
            }
        })
        .map_err(failed)?;
    let registered = receiver.recv().unwrap_or_else(|error| Err(std::io::Error::other(error)));
    registered.map_err(failed)?;
    Ok(ending)
}

async fn end_at_a_signal(switch: &watch::Sender<bool>, registered: &Sender<std::io::Result<()>>) {
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
    switch.send_replace(true);
    tokio::time::sleep(END).await;
    // On another thread: stderr may be what everything waits for.
    std::thread::spawn(|| output::aside("it did not end in time after a signal, and is stopped"));
    tokio::time::sleep(LAST_LINE).await;
    std::process::exit(1);
}

/// Serves one host over standard streams.
pub(crate) async fn over_stdio<S: Service>(
    service: Arc<S>,
    principal: S::Principal,
    ending: Ending,
) -> Result<(), Failure> {
    let streams = crate::streams::standard()
        .map_err(|error| Failure::new("the standard streams cannot be used").because(&error))?;
    // As a task of its own it shares a thread with the calls that it starts; the main future never does.
    let serving = tokio::spawn(lines::serve(service, principal, streams, Limits::default(), ending));
    serving
        .await
        .unwrap_or_else(|error| Err(std::io::Error::other(error)))
        .map_err(|error| Failure::new("the host cannot be read from or written to").because(&error))
}

/// Serves many hosts over HTTP, and what else there is. The first line on stdout says where.
pub(crate) async fn over_http<S: Service>(
    service: Arc<S>,
    more: impl FnOnce(Door) -> Router,
    args: &ListenArgs,
    address: SocketAddr,
    ending: Ending,
) -> Result<(), Failure> {
    let Listening { listener, address, door } = listen(args, address).await?;
    let more = more(door.clone());
    let limits = limits();
    let router = http::router(service, Options { door, limits: limits.clone() }, ending.clone()).merge(more);
    output::plain(&format!("http://{address}/mcp\n"))?;
    output::aside(&format!("listening; older hosts find http://{address}/sse"));
    http::serve(listener, router, &limits, ending).await;
    Ok(())
}

/// The bounds of a server on the web: it must not run out of files, which everything else needs too.
pub(crate) fn limits() -> Limits {
    let limits = Limits::default();
    let files = getrlimit(Resource::Nofile).current.map(|files| usize::try_from(files).unwrap_or(usize::MAX));
    let most =
        files.map_or(usize::MAX, |files| files.saturating_sub(OTHER_FILES).max(2 * limits.connections_kept));
    Limits {
        connections_max: limits.connections_max.min(most),
        connections_each_max: limits.connections_each_max.min(most),
        ..limits
    }
}

/// An address that is listened on, and who may come in there.
pub(crate) struct Listening {
    pub(crate) listener: TcpListener,
    pub(crate) address: SocketAddr,
    pub(crate) door: Door,
}

/// Takes an address.
pub(crate) async fn listen(args: &ListenArgs, address: SocketAddr) -> Result<Listening, Failure> {
    let listener = TcpListener::bind(address).await.map_err(|error| {
        let failure = Failure::new(format!("cannot listen on `{address}`")).because(&error);
        match error.kind() {
            ErrorKind::AddrInUse => {
                failure.hint("another program has this port; `--listen 127.0.0.1:0` picks a free one")
            }
            _ => failure.hint("port 0 picks a free one"),
        }
    })?;
    let address =
        listener.local_addr().map_err(|error| Failure::new("the address is not known").because(&error))?;
    let mut hosts = args.hosts.clone();
    if address.ip().is_loopback() {
        hosts.push(match address.ip() {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        });
    }
    Ok(Listening { listener, address, door: Door { hosts, is_behind_tls: args.allow_remote } })
}

impl ListenArgs {
    /// The address, if there is one. Beyond this machine everything would travel in the open.
    pub(crate) fn address(&self) -> Result<Option<SocketAddr>, Failure> {
        let Some(text) = &self.listen else { return Ok(None) };
        let address = parse(text).ok_or_else(|| {
            Failure::usage(format!("`{text}` is no address to listen on"))
                .hint("write it like 127.0.0.1:7717, [::1]:7717, or 127.0.0.1:0 for a free port")
        })?;
        if !address.ip().is_loopback() && !self.allow_remote {
            return Err(Failure::usage(format!("`{text}` is reachable from other machines")).hint(
                "put TLS in front of it and pass `--allow-remote --host NAME`, or listen on 127.0.0.1",
            ));
        }
        if !address.ip().is_loopback() && self.hosts.is_empty() {
            return Err(Failure::usage(format!(
                "nobody could reach `{text}`: no name is known that it has there"
            ))
            .hint("pass `--host NAME` for every name that hosts use"));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn args(listen: &str, allow_remote: bool) -> ListenArgs {
        let hosts = if allow_remote { vec!["agent.example.com".to_owned()] } else { Vec::new() };
        ListenArgs { listen: Some(listen.to_owned()), allow_remote, hosts }
    }

    #[test]
    fn nothing_is_reachable_from_elsewhere_by_accident() {
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
