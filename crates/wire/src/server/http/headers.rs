//! The headers that mirror a request's body in the stateless era. The body is authoritative; a header that differs is
//! rejected, because an intermediary may have acted on it.

use axum::http::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::message::{Outcome, Request};
use crate::server::era::{MODERN, RequestMeta, named_by, unsupported};
use crate::server::errors::{code, failure};

const VERSION: &str = "mcp-protocol-version";
const PARAM_PREFIX: &str = "mcp-param-";

pub(super) fn version(headers: &HeaderMap) -> Option<&str> {
    text(headers, VERSION)
}

/// Checks a request of the stateless era against its headers. Returns the mirrored parameters, decoded.
pub(super) fn check(
    headers: &HeaderMap,
    request: &Request,
    meta: &RequestMeta,
) -> Result<Vec<(String, String)>, Outcome> {
    let Some(stated) = version(headers) else { return Err(missing("MCP-Protocol-Version")) };
    if let Some(meant) = &meta.version
        && meant != stated
    {
        return Err(mismatch("MCP-Protocol-Version", stated, meant));
    }
    if stated != MODERN {
        return Err(unsupported(stated));
    }
    if let Some(error) = meta.validate() {
        return Err(error);
    }
    same(headers, "Mcp-Method", &request.method)?;
    if named_by(&request.method).is_some()
        && let Some(name) = &meta.name
    {
        same(headers, "Mcp-Name", name)?;
    }
    parameters(headers)
}

fn same(headers: &HeaderMap, name: &'static str, meant: &str) -> Result<(), Outcome> {
    let Some(stated) = text(headers, name) else { return Err(missing(name)) };
    let stated = if name == "Mcp-Method" { stated.to_owned() } else { decode(name, stated)? };
    if stated == meant { Ok(()) } else { Err(mismatch(name, &stated, meant)) }
}

fn parameters(headers: &HeaderMap) -> Result<Vec<(String, String)>, Outcome> {
    let mut parameters = Vec::new();
    for (name, value) in headers {
        let Some(parameter) = name.as_str().strip_prefix(PARAM_PREFIX) else { continue };
        let value = value.to_str().map_err(|_| {
            failure(code::HEADER_MISMATCH, format!("the header `{name}` has invalid characters"))
        })?;
        parameters.push((parameter.to_owned(), decode(name.as_str(), value.trim())?));
    }
    Ok(parameters)
}

/// Decodes a value of the form `=?base64?…?=`; any other value is literal.
fn decode(name: &str, value: &str) -> Result<String, Outcome> {
    let Some(encoded) = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) else {
        return Ok(value.to_owned());
    };
    let decoded = STANDARD.decode(encoded).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    decoded.ok_or_else(|| {
        failure(
            code::HEADER_MISMATCH,
            format!("the header `{name}` is marked as Base64, but is not valid Base64"),
        )
    })
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim)
}

fn missing(name: &str) -> Outcome {
    failure(
        code::HEADER_MISMATCH,
        format!("the header `{name}` is missing, which protocol {MODERN} requires"),
    )
}

fn mismatch(name: &str, stated: &str, meant: &str) -> Outcome {
    let short = |text: &str| -> String { text.chars().take(120).collect() };
    let message = format!("the header `{name}` is `{}`, but the body has `{}`", short(stated), short(meant));
    failure(code::HEADER_MISMATCH, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read_strictly() {
        let decoded = |text: &str| decode("x", &format!("=?base64?{text}?=")).ok();
        for (text, expected) in [("SGVsbG8=", "Hello"), ("SGVsbG8h", "Hello!"), ("SA==", "H"), ("", "")] {
            assert_eq!(decoded(text).as_deref(), Some(expected));
        }
        for wrong in ["SGVsbG8", "SGVs!!!bG8=", "=", "====", "SG=s", "SGVsbG8=="] {
            assert_eq!(decoded(wrong), None, "{wrong}");
        }
    }
}
