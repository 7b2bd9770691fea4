//! Where a merged list goes on: whose turn it is, and that one's own cursor. Opaque to the host, which only gives it back.

use embody_wire::Outcome;
use embody_wire::serve::{code, failure};

use super::lists::Kind;
use super::printable;

/// Bytes of an upstream's cursor. A list whose cursor is longer ends there.
pub(super) const LONGEST: usize = 4_096;

/// Where a list goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cursor {
    /// Which upstream.
    pub(super) place: usize,
    /// Its own cursor; none for its first page.
    pub(super) theirs: Option<String>,
}

impl Cursor {
    pub(super) fn print(&self, kind: Kind) -> String {
        let (letter, place) = (kind.letter(), self.place);
        match &self.theirs {
            Some(theirs) => format!("{letter}{place}:{theirs}"),
            None => format!("{letter}{place}"),
        }
    }

    pub(super) fn read(text: &str, kind: Kind, places: usize) -> Result<Self, Outcome> {
        let read = || {
            let (place, theirs) = match text.strip_prefix(kind.letter())?.split_once(':') {
                Some((place, theirs)) => (place, Some(theirs.to_owned())),
                None => (text.strip_prefix(kind.letter())?, None),
            };
            let is_number = !place.is_empty() && place.bytes().all(|byte| byte.is_ascii_digit());
            let place = place.parse().ok().filter(|place| is_number && *place < places)?;
            Some(Self { place, theirs }).filter(|_| text.len() <= LONGEST + 16)
        };
        read().ok_or_else(|| {
            failure(code::INVALID_PARAMS, format!("`{}` is no cursor of this list", printable(text)))
        })
    }
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
            let text = cursor.print(Kind::Resources);
            assert_eq!(Cursor::read(&text, Kind::Resources, 3).unwrap(), cursor);
            assert!(Cursor::read(&text, Kind::Templates, 3).is_err(), "it is of another list");
        }
        let long = format!("r0:{}", "x".repeat(LONGEST + 16));
        for text in
            ["", "r", "r:", "r3", "r3:x", "r-1", "r+1", "r 1", "0", "x", "r99999999999999999999999", &long]
        {
            let Err(Outcome::Error(error)) = Cursor::read(text, Kind::Resources, 3) else { panic!("{text}") };
            assert!(error.get().contains("-32602"), "{text}");
        }
    }
}
