//! Every bound of the wire in one struct, with the values used when nobody asks for others.

use std::time::Duration;

/// How much and how long.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes in one message, whichever way it goes: a body or one event.
    pub message_max_bytes: usize,
    /// Levels of nesting in one message, the envelope included.
    pub depth_max: usize,
    /// Messages in one batch.
    pub batch_max: usize,
    /// Time to reach the server: name, TCP and TLS.
    pub connect_timeout: Duration,
    /// Time for one attempt at opening a session, connecting included.
    pub attempt_timeout: Duration,
    /// Time for finding the transport behind a URL, all attempts together.
    pub dial_timeout: Duration,
    /// Time from sending a request to holding its whole answer; for a notification, to its acceptance.
    pub request_timeout: Duration,
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
            courtesy_timeout: Duration::from_secs(2),
        }
    }
}
