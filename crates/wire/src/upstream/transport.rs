//! The supported transports, as one enum.

use reqwest::header::HeaderMap;

use super::calls::Calls;
use super::http::Http;
use super::in_process::InProcess;
use super::pipe::Pipe;
use super::sse::Sse;
use super::stateless::Stateless;
use super::{OutgoingCall, PendingCall};
use crate::error::Error;
use crate::message::Message;

pub(super) enum Transport {
    InProcess(InProcess),
    Pipe(Box<Pipe>),
    Http(Http),
    Sse(Sse),
}

impl Transport {
    pub(super) async fn begin(
        &self,
        call: OutgoingCall<'_>,
        given_up: impl Future<Output = ()>,
    ) -> Result<Option<PendingCall>, Error> {
        match self {
            Self::InProcess(server) => server.begin(call).map(Some),
            Self::Pipe(pipe) => pipe.begin(call, given_up).await,
            Self::Http(http) => http.begin(call, HeaderMap::new(), given_up).await,
            Self::Sse(sse) => sse.begin(call, given_up).await,
        }
    }

    /// Sends a call to a stateless server.
    pub(super) async fn begin_stateless(
        &self,
        stateless: &Stateless,
        call: OutgoingCall<'_>,
        given_up: impl Future<Output = ()>,
    ) -> Result<Option<PendingCall>, Error> {
        let params = stateless.add_era_meta(call.params)?;
        let with_meta = OutgoingCall { params: Some(&params), ..call };
        match self {
            Self::Http(http) => http.begin(with_meta, stateless.headers(call), given_up).await,
            Self::InProcess(_) | Self::Pipe(_) | Self::Sse(_) => self.begin(with_meta, given_up).await,
        }
    }

    /// Sends a notification or a response.
    pub(super) async fn send(&self, message: Message) -> Result<(), Error> {
        match self {
            Self::InProcess(server) => server.send(message).await,
            Self::Pipe(pipe) => pipe.send(message.print()).await,
            Self::Http(http) => http.send(message.print()).await,
            Self::Sse(sse) => sse.send(message.print()).await,
        }
    }

    pub(super) async fn close(&self, calls: &Calls) {
        match self {
            Self::InProcess(server) => server.close(Error::Left),
            Self::Pipe(pipe) => pipe.close(),
            Self::Http(http) => http.close().await,
            // The reader then drops the stream.
            Self::Sse(_) => calls.close(Error::Left),
        }
    }
}
