//! The closed choice between transports.

use reqwest::header::HeaderMap;

use super::calls::Calls;
use super::http::Http;
use super::pipe::Pipe;
use super::sse::Sse;
use super::stateless::Stateless;
use super::{Calling, Running};
use crate::error::Error;

/// How a server is reached.
pub(super) enum Way {
    Pipe(Box<Pipe>),
    Http(Http),
    Sse(Sse),
}

impl Way {
    pub(super) async fn begin(
        &self,
        calling: Calling<'_>,
        given_up: impl Future<Output = ()>,
    ) -> Result<Option<Running>, Error> {
        match self {
            Self::Pipe(pipe) => pipe.begin(calling, given_up).await,
            Self::Http(http) => http.begin(calling, HeaderMap::new(), given_up).await,
            Self::Sse(sse) => sse.begin(calling, given_up).await,
        }
    }

    /// The same to a server without sessions.
    pub(super) async fn begin_alone(
        &self,
        alone: &Stateless,
        calling: Calling<'_>,
        given_up: impl Future<Output = ()>,
    ) -> Result<Option<Running>, Error> {
        let params = alone.dress(calling.params)?;
        let dressed = Calling { params: Some(&params), ..calling };
        match self {
            Self::Http(http) => http.begin(dressed, alone.headers(calling), given_up).await,
            Self::Pipe(_) | Self::Sse(_) => self.begin(dressed, given_up).await,
        }
    }

    pub(super) async fn send(&self, text: String) -> Result<(), Error> {
        match self {
            Self::Pipe(pipe) => pipe.send(text).await,
            Self::Http(http) => http.send(text).await,
            Self::Sse(sse) => sse.send(text).await,
        }
    }

    pub(super) async fn close(&self, calls: &Calls) {
        match self {
            Self::Pipe(pipe) => pipe.close(),
            Self::Http(http) => http.close().await,
            // Its reader lets go of the stream.
            Self::Sse(_) => calls.close(Error::Left),
        }
    }
}
