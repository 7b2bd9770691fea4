//! Which era a server is of, found out by greeting it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::time::timeout;

use super::route::{Hello, Opening};
use super::stateless::{self, Known, Stateless};
use super::way::Way;
use super::{CallEvent, Calling, Running, greeting};
use crate::error::Error;
use crate::message::{Notification, Response};
use crate::secret::Redactor;
use crate::serve::code;
use crate::version::Version;

/// How long a server may take to say that it has no sessions. One that is slow to start is then asked for a session, which
/// nearly all have.
const PROBE: Duration = Duration::from_secs(1);

/// The version both speak, what the server says of itself, and what is kept of one without sessions.
pub(super) type Found = (Version, Box<RawValue>, Option<Arc<Stateless>>);

/// Finds out which era a server is of, and greets it accordingly.
pub(super) async fn found(
    way: &Way,
    opening: &Opening,
    transport: &'static str,
    redactor: &Redactor,
) -> Result<Found, Error> {
    let memory = &opening.memory;
    // What is part of this program has sessions, and so has everything on the legacy transport.
    let may_be_alone = transport != "embedded" && !matches!(way, Way::Sse(_));
    let known = if may_be_alone { memory.get() } else { Known::Sessions };
    if known != Known::Sessions
        && let Some(found) = discover(way, opening, redactor).await?
    {
        memory.set(Known::Stateless);
        return Ok(found);
    }
    let refused = match greet(way, &opening.hello, redactor).await {
        Ok((version, greeting)) => {
            memory.set(Known::Sessions);
            return Ok((version, greeting, None));
        }
        Err(error) => error,
    };
    // It may be another program by now, or have been slow to say what it is.
    memory.set(Known::Nothing);
    let has_none =
        matches!(refused, Error::Rpc { code: code::METHOD_NOT_FOUND | code::UNSUPPORTED_VERSION, .. });
    if may_be_alone
        && has_none
        && let Some(found) = discover(way, opening, redactor).await?
    {
        memory.set(Known::Stateless);
        return Ok(found);
    }
    Err(refused)
}

/// What a server without sessions says about itself; nothing, if it is none or does not answer soon.
async fn discover(way: &Way, opening: &Opening, redactor: &Redactor) -> Result<Option<Found>, Error> {
    let alone = Arc::new(Stateless::new(&opening.hello));
    if let Way::Http(http) = way {
        http.stand_alone(true);
    }
    let asked = async {
        let calling = Calling { method: "server/discover", params: None };
        let running = way.begin_alone(&alone, calling, std::future::pending()).await?;
        greeted(way, running.ok_or(Error::NoAnswer)?, redactor).await
    };
    let greeting = match timeout(PROBE.min(opening.limits.attempt_timeout / 2), asked).await {
        Ok(Ok(answer)) => stateless::greeting(&answer),
        // Whoever is not let in, or finds nobody, does so in either era.
        Ok(Err(error @ (Error::Unauthorized { .. } | Error::NoToken { .. }))) => return Err(error),
        Ok(Err(error @ (Error::Unreachable(_) | Error::Proxy { .. }))) => return Err(error),
        Ok(Err(error @ (Error::Closed(_) | Error::Ended { .. }))) => return Err(error),
        Ok(Err(_)) | Err(_) => None,
    };
    if let (None, Way::Http(http)) = (&greeting, way) {
        http.stand_alone(false);
    }
    Ok(greeting.map(|greeting| (Version::LATEST, greeting, Some(alone))))
}

async fn greet(way: &Way, hello: &Hello, redactor: &Redactor) -> Result<(Version, Box<RawValue>), Error> {
    let params = greeting::params(hello)?;
    let hello = Calling { method: "initialize", params: Some(&params) };
    let running = way.begin(hello, std::future::pending()).await?.ok_or(Error::NoAnswer)?;
    let answer = greeted(way, running, redactor).await?;
    let version = greeting::version(&answer, redactor)?;
    if let Way::Http(http) = way {
        http.agree(version);
    }
    let ready = Notification { method: "notifications/initialized".to_owned(), params: None };
    way.send(ready.print()).await?;
    if let Way::Http(http) = way {
        http.listen();
    }
    Ok((version, answer))
}

/// The answer to a greeting.
async fn greeted(way: &Way, mut running: Running, redactor: &Redactor) -> Result<Box<RawValue>, Error> {
    loop {
        match running.next().await {
            CallEvent::Done(outcome) => return greeting::into_result(outcome, redactor),
            CallEvent::Lost(error) => return Err(error),
            CallEvent::Notification(_) => {}
            // The protocol allows none but `ping` before the greeting is over.
            CallEvent::Request(request) => {
                let refusal = Response::failure(request.id, code::INVALID_REQUEST, "not yet");
                way.send(refusal.print()).await?;
            }
        }
    }
}
