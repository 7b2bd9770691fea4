//! Finding the transport behind a URL: streamable HTTP at the URL, then at `/mcp` below it, then legacy SSE at `/sse`.
//!
//! Goes on only when a server says «not here». Gives up at once when there is no server, it wants other credentials, it
//! is silent, or it is an MCP server that refuses: another path on the same host would not change that.

use reqwest::Url;
use tokio::time::{Instant, timeout_at};

use crate::client::{Client, Terms};
use crate::error::{Attempt, Error, Kind};
use crate::link::Link;
use crate::transport::{Address, parse_url};

/// Opens a session with the server behind `url`, whichever transport it speaks.
///
/// # Errors
/// [`Error::Dial`] with every attempt and its reason; [`Error::Url`], [`Error::Token`] or [`Error::Setup`] when none
/// could be made.
pub async fn dial(url: &str, terms: &Terms) -> Result<Client, Error> {
    let url = parse_url(url)?;
    let link = Link::new(&url, terms)?;
    let limit = terms.limits.dial_timeout;
    let deadline = Instant::now() + limit;
    let mut attempts = Vec::new();
    for address in candidates(&url) {
        let opening = Client::open(&address, link.clone(), terms);
        let error = match timeout_at(deadline, opening).await {
            Ok(Ok(client)) => return Ok(client),
            Ok(Err(error)) => error,
            Err(_) => Error::timeout("finding the server", limit),
        };
        let go_on = says_not_here(&error);
        attempts.push(Attempt {
            transport: address.transport(),
            url: link.redactor().place(address.url()),
            error,
        });
        if !go_on {
            break;
        }
    }
    Err(Error::Dial { url: link.redactor().place(&url), attempts })
}

fn candidates(url: &Url) -> Vec<Address> {
    let path = url.path().trim_end_matches('/');
    if path.ends_with("/sse") {
        return vec![Address::LegacySse(url.clone())];
    }
    let below = |name: &str| {
        let mut below = url.clone();
        below.set_path(&format!("{path}/{name}"));
        below
    };
    let mut addresses = vec![Address::Http(url.clone())];
    if !path.ends_with("/mcp") {
        addresses.push(Address::Http(below("mcp")));
    }
    addresses.push(Address::LegacySse(below("sse")));
    addresses
}

/// Whether a failure means that this is the wrong path, or a server of something else.
fn says_not_here(error: &Error) -> bool {
    match error {
        Error::Status { status, .. } => matches!(status, 400 | 404 | 405 | 406 | 415 | 501),
        Error::Redirect { .. } => true,
        // An MCP server it is, but none for us.
        Error::Version { .. } | Error::ForeignEndpoint { .. } => false,
        other => other.kind() == Kind::Protocol,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(url: &str) -> Vec<String> {
        candidates(&Url::parse(url).unwrap())
            .iter()
            .map(|address| format!("{} {}", address.transport(), address.url()))
            .collect()
    }

    // spec: B-07
    #[test]
    fn a_bare_url_is_tried_as_given_then_below_mcp_then_below_sse() {
        assert_eq!(
            shown("http://h/base/?k=v"),
            [
                "streamable HTTP http://h/base/?k=v",
                "streamable HTTP http://h/base/mcp?k=v",
                "legacy SSE http://h/base/sse?k=v"
            ]
        );
    }

    #[test]
    fn a_path_that_says_mcp_is_not_extended_by_mcp() {
        assert_eq!(shown("http://h/mcp"), ["streamable HTTP http://h/mcp", "legacy SSE http://h/mcp/sse"]);
    }

    #[test]
    fn a_path_that_says_sse_is_legacy_only() {
        assert_eq!(shown("http://h/x/sse/"), ["legacy SSE http://h/x/sse/"]);
    }
}
