//! An open session with a server, whichever way it is reached.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::mpsc;

use super::process::Process;
use super::route::{Hello, Opening, Route};
use super::{CallEvent, Calling, Child, Pipe, Running, Said};
use crate::client::Identity;
use crate::error::Error;
use crate::message::{ErrorObject, Outcome, Response};
use crate::secret::Redactor;
use crate::serve::code;
use crate::version::Version;

/// An open session with a server. Calls may run at the same time. Dropping it ends a process at once, with everything
/// that it started; [`Link::close`] is the polite way.
pub struct Link {
    way: Way,
    process: Option<Process>,
    transport: &'static str,
    version: Version,
    greeting: Box<RawValue>,
}

/// The closed choice between transports.
enum Way {
    Pipe(Pipe),
}

impl Link {
    /// Opens a session: connects, says hello, and says that it is ready. What the server says on its own goes to `said`.
    ///
    /// # Errors
    /// When the server is not reached, refuses, is too slow, or speaks another protocol.
    pub async fn open(opening: &Opening, said: mpsc::Sender<Said>) -> Result<Self, Error> {
        let limit = opening.limits.attempt_timeout;
        tokio::time::timeout(limit, open(opening, said))
            .await
            .unwrap_or_else(|_| Err(Error::timeout("opening the session", limit)))
    }

    /// Sends a call.
    ///
    /// # Errors
    /// When it was not sent.
    pub async fn begin(&self, calling: Calling<'_>) -> Result<Running, Error> {
        self.way.begin(calling).await
    }

    /// Tells the server something.
    ///
    /// # Errors
    /// When it was not told.
    pub async fn notify(&self, method: &str, params: Option<&RawValue>) -> Result<(), Error> {
        match &self.way {
            Way::Pipe(pipe) => pipe.notify(method, params).await,
        }
    }

    /// Tells the server that nobody waits for a call any more.
    ///
    /// # Errors
    /// When it was not told.
    pub async fn cancel(&self, number: u64, reason: &str) -> Result<(), Error> {
        match &self.way {
            Way::Pipe(pipe) => pipe.cancel(number, reason).await,
        }
    }

    /// Answers a question of the server.
    ///
    /// # Errors
    /// When the answer did not go out.
    pub async fn answer(&self, response: Response) -> Result<(), Error> {
        self.way.answer(response).await
    }

    /// Why the session is over, if it is.
    #[must_use]
    pub fn closed(&self) -> Option<Arc<Error>> {
        match &self.way {
            Way::Pipe(pipe) => pipe.closed(),
        }
    }

    /// Returns when the session is over.
    pub async fn until_closed(&self) -> Arc<Error> {
        match &self.way {
            Way::Pipe(pipe) => pipe.until_closed().await,
        }
    }

    /// The server's answer to `initialize`, as written.
    #[must_use]
    pub fn greeting(&self) -> &RawValue {
        &self.greeting
    }

    /// The protocol version both sides speak.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// `stdio`, `http`, `sse` or `embedded`.
    #[must_use]
    pub fn transport(&self) -> &'static str {
        self.transport
    }

    /// The last lines that the server's process wrote to stderr.
    #[must_use]
    pub fn stderr(&self) -> Vec<String> {
        self.process.as_ref().map(Process::errors).unwrap_or_default()
    }

    /// The id of the server's process, while it runs.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().and_then(Process::pid)
    }

    /// Ends the session; calls that still run are lost. Afterwards no process is left.
    pub async fn close(&self) {
        match &self.way {
            Way::Pipe(pipe) => pipe.close(),
        }
        if let Some(process) = &self.process {
            process.end().await;
        }
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("transport", &self.transport)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

impl Way {
    async fn begin(&self, calling: Calling<'_>) -> Result<Running, Error> {
        match self {
            Self::Pipe(pipe) => pipe.begin(calling).await,
        }
    }

    async fn answer(&self, response: Response) -> Result<(), Error> {
        match self {
            Self::Pipe(pipe) => pipe.answer(response).await,
        }
    }
}

async fn open(opening: &Opening, said: mpsc::Sender<Said>) -> Result<Link, Error> {
    let limits = opening.limits.clone();
    let (way, process, transport) = match &opening.route {
        Route::Child(spec) => {
            let (child, streams) = Child::start(spec)?;
            let process = Process::watch(child, limits.courtesy_timeout);
            let pipe = Pipe::open(streams, limits, said, Some(process.over()));
            (Way::Pipe(pipe), Some(process), "stdio")
        }
        Route::Streams(connect) => (Way::Pipe(Pipe::new(connect.open(), limits, said)), None, "embedded"),
        Route::Http { .. } | Route::Sse { .. } | Route::Guess { .. } => {
            return Err(Error::Protocol("this transport is not built yet"));
        }
    };
    let (version, greeting) = greet(&way, &opening.hello, &Redactor::default()).await?;
    let link = Link { way, process, transport, version, greeting };
    link.notify("notifications/initialized", None).await?;
    Ok(link)
}

async fn greet(way: &Way, hello: &Hello, redactor: &Redactor) -> Result<(Version, Box<RawValue>), Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Agreed {
        protocol_version: String,
    }
    let params = params(hello)?;
    let mut running = way.begin(Calling { method: "initialize", params: Some(&params) }).await?;
    let greeting = loop {
        match running.next().await {
            CallEvent::Done(outcome) => break into_result(outcome, redactor)?,
            CallEvent::Lost(error) => return Err(error),
            CallEvent::Notification(_) => {}
            // The protocol allows none but `ping` before the greeting is over.
            CallEvent::Request(request) => {
                let refusal = Response::failure(request.id, code::INVALID_REQUEST, "not yet");
                way.answer(refusal).await?;
            }
        }
    };
    let Agreed { protocol_version } = serde_json::from_str(greeting.get())
        .map_err(|_| Error::Protocol("the answer to `initialize` names no protocol version"))?;
    let version = Version::parse(&protocol_version)
        .ok_or_else(|| Error::Version { version: redactor.quote(&protocol_version) })?;
    Ok((version, greeting))
}

fn params(hello: &Hello) -> Result<Box<RawValue>, Error> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Params<'a> {
        protocol_version: &'a str,
        capabilities: &'a RawValue,
        client_info: &'a Identity,
    }
    let unwritable = |_| Error::Protocol("the client's identity cannot be written");
    let nothing = RawValue::from_string("{}".to_owned()).map_err(unwritable)?;
    to_raw_value(&Params {
        protocol_version: Version::LATEST.as_str(),
        capabilities: hello.capabilities.as_deref().unwrap_or(&nothing),
        client_info: &hello.identity,
    })
    .map_err(unwritable)
}

fn into_result(outcome: Outcome, redactor: &Redactor) -> Result<Box<RawValue>, Error> {
    let object = match outcome {
        Outcome::Result(result) => return Ok(result),
        Outcome::Error(object) => object,
    };
    match serde_json::from_str::<ErrorObject>(object.get()) {
        Ok(ErrorObject { code, message }) => Err(Error::Rpc { code, message: redactor.quote(&message) }),
        Err(_) => Err(Error::Protocol("the server answered with an error that has no code")),
    }
}
