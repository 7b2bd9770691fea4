//! The standard streams of a server. Hosts connect pipes or sockets, which the runtime waits for by itself; for anything
//! else it keeps a thread, and each message then costs two changes of threads.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream as Socket;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

/// What a host writes, and what it reads.
pub(crate) type Streams = (Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>);

/// Standard input and output.
pub(crate) fn standard() -> io::Result<Streams> {
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
        // Only sockets of this machine carry standard streams that we know of.
        if socket.local_addr().is_ok() {
            socket.set_nonblocking(true)?;
            return Ok(Kind::Socket(UnixStream::from_std(socket)?));
        }
    }
    Ok(Kind::Other)
}
