//! The cursor of a merged list: the position, and the upstream's own cursor. Opaque to the host.
//!
//! An upstream's own cursor is signed: a server receives only cursors that it returned itself, to the same principal and for
//! the same list. All processes on the store verify the same signatures.

use embody_wire::Outcome;
use embody_wire::server::{code, failure};

use super::lists::ListKind;
use super::printable;
use super::route::HostRequest;
use crate::stateless::{sign_parts, verify_parts};

/// The longest cursor of an upstream, in bytes. A list with a longer cursor ends there.
pub(super) const LONGEST: usize = 4_096;
/// The longest prefix, in bytes: list, position and signature.
const BEFORE: usize = 160;
const FORM: &str = "cursor 1";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cursor {
    pub(super) place: usize,
    /// The upstream's own cursor; `None` for its first page.
    pub(super) theirs: Option<String>,
}

impl Cursor {
    pub(super) async fn print(&self, request: HostRequest<'_>, kind: ListKind) -> Result<String, Outcome> {
        let Some(theirs) = &self.theirs else { return Ok(self.written(kind, "")) };
        let parts = [kind.method(), self.upstream(request), theirs];
        let signature = sign_parts(request.broker, &request.call.host.principal, FORM, &parts).await?;
        Ok(self.written(kind, &signature))
    }

    pub(super) async fn read(request: HostRequest<'_>, text: &str, kind: ListKind) -> Result<Self, Outcome> {
        let places = request.session.upstreams().count();
        let (cursor, signature) = Self::parse(text, kind, places).ok_or_else(|| foreign(text))?;
        if let Some(theirs) = &cursor.theirs {
            let parts = [kind.method(), cursor.upstream(request), theirs];
            if !verify_parts(request.broker, &request.call.host.principal, FORM, &parts, signature).await? {
                return Err(foreign(text));
            }
        }
        Ok(cursor)
    }

    fn upstream<'a>(&self, request: HostRequest<'a>) -> &'a str {
        request.session.upstreams().nth(self.place).map_or("", |upstream| &upstream.spec().name)
    }

    fn written(&self, kind: ListKind, signature: &str) -> String {
        let (letter, place) = (kind.letter(), self.place);
        match &self.theirs {
            Some(theirs) => format!("{letter}{place}:{signature}:{theirs}"),
            None => format!("{letter}{place}"),
        }
    }

    /// Parses a cursor; returns it with the signature to verify.
    fn parse(text: &str, kind: ListKind, places: usize) -> Option<(Self, &str)> {
        let rest = text.strip_prefix(kind.letter()).filter(|_| text.len() <= LONGEST + BEFORE)?;
        let mut parts = rest.splitn(3, ':');
        let (place, signature, theirs) = (parts.next()?, parts.next(), parts.next());
        let is_number = !place.is_empty() && place.bytes().all(|byte| byte.is_ascii_digit());
        let place = place.parse().ok().filter(|place| is_number && *place < places)?;
        match (signature, theirs) {
            (None, None) => Some((Self { place, theirs: None }, "")),
            (Some(signature), Some(theirs)) => {
                Some((Self { place, theirs: Some(theirs.to_owned()) }, signature))
            }
            _ => None,
        }
    }
}

fn foreign(text: &str) -> Outcome {
    failure(code::INVALID_PARAMS, format!("`{}` is no cursor of this list", printable(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_comes_back_as_it_went() {
        for cursor in [
            Cursor { place: 0, theirs: None },
            Cursor { place: 2, theirs: Some("a:b\u{1F600}\"".to_owned()) },
            Cursor { place: 1, theirs: Some(String::new()) },
        ] {
            let text = cursor.written(ListKind::Resources, "k.p");
            let signature = if cursor.theirs.is_some() { "k.p" } else { "" };
            assert_eq!(Cursor::parse(&text, ListKind::Resources, 3), Some((cursor, signature)));
            assert_eq!(Cursor::parse(&text, ListKind::Templates, 3), None, "it is of another list");
        }
        let long = format!("r0:m:{}", "x".repeat(LONGEST + BEFORE));
        for text in [
            "",
            "r",
            "r:",
            "r1:x",
            "r3",
            "r3:m:x",
            "r-1",
            "r+1",
            "r 1",
            "0",
            "x",
            "r99999999999999999999999",
            &long,
        ] {
            assert_eq!(Cursor::parse(text, ListKind::Resources, 3), None, "{text}");
        }
    }
}
