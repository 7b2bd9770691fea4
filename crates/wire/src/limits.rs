//! All limits of this crate in one struct, with their defaults.

use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes in one message, inbound or outbound: a body or one event.
    pub message_max_bytes: usize,
    /// Levels of nesting in one message, the envelope included.
    pub depth_max: usize,
    pub batch_max: usize,
    /// Time to reach the server: DNS, TCP and TLS.
    pub connect_timeout: Duration,
    /// Time for one attempt to open a session, including connecting.
    pub attempt_timeout: Duration,
    /// Time to find the transport behind a URL, all attempts together.
    pub dial_timeout: Duration,
    /// Time from sending a request to its complete response; for a notification, to its acceptance.
    pub request_timeout: Duration,
    /// Time for a host to send the body of a request.
    pub body_timeout: Duration,
    /// Time for a host to send the head of a request, and for an idle connection to send the next one.
    pub header_timeout: Duration,
    /// Open HTTP connections.
    pub connections_max: usize,
    /// Open HTTP connections from one address; for IPv6, from one /64.
    pub connections_each_max: usize,
    /// Connections that do not serve the protocol, of the total and of each address: they are reserved for the console.
    pub connections_reserved: usize,
    /// Bytes of requests in flight over HTTP, including those that wait for a person.
    pub in_flight_max_bytes: usize,
    /// Bytes of requests in flight of one token, or of the host on a pipe.
    pub in_flight_each_max_bytes: usize,
    /// Concurrent requests of one session, or of one token without sessions.
    pub calls_max: usize,
    /// Open HTTP sessions.
    pub sessions_max: usize,
    /// Open HTTP sessions of one token; one more closes the least recently used.
    pub sessions_each_max: usize,
    /// Time after which an idle HTTP session is closed.
    pub session_idle_timeout: Duration,
    /// Unread messages for each stream of a host.
    pub unread_max: usize,
    /// Idle time on an open stream after which an empty comment keeps it open.
    pub keep_alive_interval: Duration,
    /// Time for best-effort messages: the reply to a server request, the session's DELETE.
    pub courtesy_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_max_bytes: 16 * 1024 * 1024,
            depth_max: 128,
            batch_max: 128,
            connect_timeout: Duration::from_secs(3),
            attempt_timeout: Duration::from_secs(5),
            dial_timeout: Duration::from_secs(12),
            request_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(30),
            header_timeout: Duration::from_secs(30),
            connections_max: 1024,
            connections_each_max: 512,
            connections_reserved: 32,
            in_flight_max_bytes: 128 * 1024 * 1024,
            in_flight_each_max_bytes: 32 * 1024 * 1024,
            calls_max: 256,
            sessions_max: 1024,
            sessions_each_max: 64,
            session_idle_timeout: Duration::from_secs(300),
            unread_max: 1024,
            keep_alive_interval: Duration::from_secs(15),
            courtesy_timeout: Duration::from_secs(2),
        }
    }
}
