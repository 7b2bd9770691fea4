//! Every bound of the wire in one struct, with the values used when nobody asks for others.

use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes in one message, whichever way it goes: a body or one event.
    pub message_max_bytes: usize,
    /// Levels of nesting in one message, the envelope included.
    pub depth_max: usize,
    pub batch_max: usize,
    /// Time to reach the server: name, TCP and TLS.
    pub connect_timeout: Duration,
    /// Time for one attempt at opening a session, connecting included.
    pub attempt_timeout: Duration,
    /// Time for finding the transport behind a URL, all attempts together.
    pub dial_timeout: Duration,
    /// Time from sending a request to holding its whole answer; for a notification, to its acceptance.
    pub request_timeout: Duration,
    /// Time for a host to send the body of a request.
    pub body_timeout: Duration,
    /// Time for a host to send the head of a request, and for an idle connection to send the next one.
    pub header_timeout: Duration,
    /// Connections over HTTP that are open at the same time.
    pub connections_max: usize,
    /// Those from one address among them; of IPv6, from one /64.
    pub connections_each_max: usize,
    /// Those that do not serve the protocol, of all and of one address: they are for the console.
    pub connections_reserved: usize,
    /// Bytes of requests that are read and that something still works on, also while they wait for a person: all over HTTP.
    pub in_flight_max_bytes: usize,
    /// Those of one token among them; of a host on a pipe, all of its own.
    pub in_flight_each_max_bytes: usize,
    /// Requests that run at the same time: of one session, or of one token without sessions.
    pub calls_max: usize,
    /// Sessions that are open over HTTP at the same time.
    pub sessions_max: usize,
    /// Those of one token among them; one more closes the one that was unused for longest.
    pub sessions_each_max: usize,
    /// Time after which a session over HTTP that nobody uses is closed.
    pub session_idle_timeout: Duration,
    /// Messages that wait for a host to read them, for each of its streams.
    pub unread_max: usize,
    /// Time without a word on an open stream, after which an empty comment keeps it open.
    pub keep_alive_interval: Duration,
    /// Time given to each courtesy: an answer to a server's request, the farewell at close.
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
