//! Finds the transport behind a URL: streamable HTTP at the URL, then at `/mcp` below it, then legacy SSE at the URL and at
//! `/sse` below it. Continues only when a response means "not here"; an unreachable server, wrong credentials, a timeout or an
//! incompatible MCP server would be the same on another path.

use reqwest::Url;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use super::route::WebTransport;
use super::{ConnectOptions, Link, ServerMessage};
use crate::error::{Attempt, Error, Kind};
use crate::secret::Redactor;

/// Opens a session with the server behind `url`, whichever transport it speaks.
pub(super) async fn open(
    url: &Url,
    options: &ConnectOptions,
    messages: mpsc::Sender<ServerMessage>,
) -> Result<Link, Error> {
    let redactor = Redactor::new(url);
    let limit = options.limits.dial_timeout;
    let deadline = Instant::now() + limit;
    let mut attempts = Vec::new();
    for (transport, url) in candidates(url) {
        let opened = Link::open_web(transport, &url, options, messages.clone());
        let error = match timeout_at(deadline, opened).await {
            Ok(Ok(link)) => return Ok(link),
            // The configuration is invalid; another path would fail in the same way.
            Ok(Err(error)) if error.kind() == Kind::Invalid => return Err(error),
            Ok(Err(error)) => error,
            Err(_) => Error::timeout("finding the server", limit),
        };
        let go_on = says_not_here(&error);
        attempts.push(Attempt { transport: name(transport), url: redactor.bare_url(&url), error });
        if !go_on {
            break;
        }
    }
    Err(Error::Dial { url: redactor.bare_url(url), attempts })
}

fn name(transport: WebTransport) -> &'static str {
    match transport {
        WebTransport::Http => "streamable HTTP",
        WebTransport::Sse => "legacy SSE",
    }
}

fn candidates(url: &Url) -> Vec<(WebTransport, Url)> {
    let path = url.path().trim_end_matches('/');
    if path.ends_with("/sse") {
        return vec![(WebTransport::Sse, url.clone())];
    }
    let below = |name: &str| {
        let mut below = url.clone();
        below.set_path(&format!("{path}/{name}"));
        below
    };
    let mut candidates = vec![(WebTransport::Http, url.clone())];
    if !path.ends_with("/mcp") {
        candidates.push((WebTransport::Http, below("mcp")));
    }
    // Legacy SSE is not tried at the root of a host.
    if !path.is_empty() {
        candidates.push((WebTransport::Sse, url.clone()));
    }
    candidates.push((WebTransport::Sse, below("sse")));
    candidates
}

/// Whether a failure means that the path is wrong or the server is not an MCP server.
fn says_not_here(error: &Error) -> bool {
    match error {
        Error::Status { status, .. } => matches!(status, 400 | 404 | 405 | 406 | 415 | 501),
        Error::Redirect { .. } => true,
        // It is an MCP server, but an incompatible one.
        Error::Version { .. } | Error::ForeignEndpoint { .. } => false,
        other => other.kind() == Kind::Protocol,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate_names(url: &str) -> Vec<String> {
        candidates(&Url::parse(url).unwrap())
            .iter()
            .map(|(transport, url)| format!("{} {url}", name(*transport)))
            .collect()
    }

    // spec: B-07
    #[test]
    fn a_bare_url_is_tried_as_given_then_below_mcp_then_below_sse() {
        assert_eq!(
            candidate_names("http://h/base/?k=v"),
            [
                "streamable HTTP http://h/base/?k=v",
                "streamable HTTP http://h/base/mcp?k=v",
                "legacy SSE http://h/base/?k=v",
                "legacy SSE http://h/base/sse?k=v"
            ]
        );
        assert_eq!(
            candidate_names("http://h"),
            ["streamable HTTP http://h/", "streamable HTTP http://h/mcp", "legacy SSE http://h/sse"]
        );
    }

    #[test]
    fn a_path_that_says_mcp_is_not_extended_by_mcp() {
        assert_eq!(
            candidate_names("http://h/mcp"),
            ["streamable HTTP http://h/mcp", "legacy SSE http://h/mcp", "legacy SSE http://h/mcp/sse"]
        );
    }

    #[test]
    fn a_path_that_says_sse_is_legacy_only() {
        assert_eq!(candidate_names("http://h/x/sse/"), ["legacy SSE http://h/x/sse/"]);
    }
}
