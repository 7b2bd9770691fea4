//! Checks that a model's server responds and accepts the key, without a billable request.

use std::time::Duration;

use embody_wire::Url;
use tokio::time::{Instant, timeout};

use super::super::errors::ModelError;
use super::ChatModel;

/// The server's response to the probe. It does not predict the response to a chat request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeResult {
    /// The server returned its list of models.
    Lists,
    /// The server responded with this status: the path may be wrong, or it has no list, or none for this key.
    Answers(u16),
}

impl ChatModel {
    /// Requests the list of models.
    ///
    /// # Errors
    /// When the server does not respond in time, rejects the key, or reports a server error.
    pub async fn probe(&self, within: Duration) -> Result<ProbeResult, ModelError> {
        let inner = &*self.0;
        let timed_out = |_| ModelError::Unavailable {
            endpoint: inner.context.endpoint.clone(),
            why: inner.settings.proxies.describe_error(&inner.url, format!("no answer within {within:?}")),
        };
        let begun = Instant::now();
        let looking = async {
            let request = inner.client.get(list_of(&inner.url)).headers(inner.headers.clone());
            let response = request.send().await.map_err(|error| inner.send_error(&error, begun.elapsed()))?;
            match response.status().as_u16() {
                200..=299 => Ok(ProbeResult::Lists),
                300..=399 | 401 | 500..=599 => Err(inner.response_error(response).await.error),
                status => Ok(ProbeResult::Answers(status)),
            }
        };
        timeout(within, looking).await.unwrap_or_else(|elapsed| Err(timed_out(elapsed)))
    }
}

/// The list URL next to the chat URL.
fn list_of(questions: &Url) -> Url {
    let mut url = questions.clone();
    let path = url.path();
    let base = path.strip_suffix("/chat/completions").or_else(|| path.strip_suffix("/messages"));
    let list = format!("{}/models", base.unwrap_or(path));
    url.set_path(&list);
    url
}
