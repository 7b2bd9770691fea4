//! URIs as rules compare them. Two texts that servers read as the same resource have the same canonical form: that of the URL
//! standard (lower-case scheme and host, no default port, no dot segments), with every percent-encoding decoded however often it
//! was encoded, backslashes and repeated slashes as one slash. Pure; it is compared, and never sent.

use url::{Position, Url};

/// A URI in its canonical form.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Canonical {
    pub(super) whole: String,
    /// Bytes before the query and the fragment.
    path_end: usize,
}

impl Canonical {
    pub(super) fn of(uri: &str) -> Self {
        let read = Url::parse(uri);
        let (head, path, tail) = match &read {
            Ok(url) => (&url[..Position::BeforePath], url.path(), &url[Position::AfterPath..]),
            Err(_) => parts(uri),
        };
        let mut whole = decoded(head).to_lowercase();
        whole.push_str(&resolved(&decoded(path)));
        let path_end = whole.len();
        whole.push_str(&decoded(tail));
        Self { whole, path_end }
    }

    /// Without query, fragment and slashes at its end: what many servers look at.
    pub(super) fn bare(&self) -> &str {
        self.whole.get(..self.path_end).unwrap_or(&self.whole).trim_end_matches('/')
    }
}

/// Scheme and authority, path, and the rest of a text that is no URL.
fn parts(uri: &str) -> (&str, &str, &str) {
    let is_scheme = |scheme: &str| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    };
    let scheme = uri.split_once(':').filter(|(scheme, _)| is_scheme(scheme)).map_or(0, |(s, _)| s.len() + 1);
    let (_, rest) = uri.split_at(scheme);
    let authority =
        rest.strip_prefix("//").map_or(0, |rest| 2 + rest.find(['/', '\\', '?', '#']).unwrap_or(rest.len()));
    let (head, rest) = uri.split_at(scheme + authority);
    let (path, tail) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
    (head, path, tail)
}

/// The text without percent-encodings, also those that decoding makes: each byte is looked at a bounded number of times.
fn decoded(text: &str) -> String {
    let mut bytes: Vec<u8> = Vec::with_capacity(text.len());
    for byte in text.bytes() {
        bytes.push(byte);
        while let [.., b'%', high, low] = *bytes
            && let Some(value) = hex(high).zip(hex(low)).map(|(high, low)| high << 4 | low)
        {
            bytes.truncate(bytes.len().saturating_sub(3));
            bytes.push(value);
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

/// A path without empty and dot segments.
fn resolved(path: &str) -> String {
    let path = path.replace('\\', "/");
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    let start = if path.starts_with('/') { "/" } else { "" };
    let is_folder = ["/", "/.", "/.."].iter().any(|end| path.ends_with(end)) && !segments.is_empty();
    let end = if is_folder { "/" } else { "" };
    format!("{start}{}{end}", segments.join("/"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn canonical(uri: &str) -> String {
        Canonical::of(uri).whole
    }

    #[test]
    fn what_servers_read_alike_is_alike() {
        for (uri, expected) in [
            ("file:///secret", "file:///secret"),
            ("FILE:///secret", "file:///secret"),
            ("file:///%73ecret", "file:///secret"),
            ("file:///%2573ecret", "file:///secret"),
            ("file:///a/../secret", "file:///secret"),
            ("file:///a/%2e%2E/secret", "file:///secret"),
            ("file:///a%2F..%2fsecret", "file:///secret"),
            ("file:///a%3F%2F..%2fsecret", "file:///secret"),
            ("file:///a%5c..%5Csecret", "file:///secret"),
            ("file:///a\\..\\secret", "file:///secret"),
            ("file://localhost/secret", "file:///secret"),
            ("file:/secret", "file:///secret"),
            ("file:////secret", "file:///secret"),
            ("file:///.//secret", "file:///secret"),
            (" file:///sec\tret\n", "file:///secret"),
            ("file:///secret/", "file:///secret/"),
            ("https://EXAMPLE.com:443/a?b=%41#C", "https://example.com/a?b=A#C"),
            ("https://example.com", "https://example.com/"),
            ("note://Abc/%C3%A9", "note://abc/é"),
            ("note://x/a/../../b", "note://x/b"),
            ("urn:a%62/./c", "urn:ab/c"),
            ("desk:%3A%25zz", "desk::%zz"),
            ("http://[::1/../x", "http://[::1/x"),
            ("no uri/../at all", "at all"),
            ("note://x/{+path}", "note://x/{+path}"),
        ] {
            assert_eq!(canonical(uri), expected, "{uri}");
        }
        assert_eq!(Canonical::of("file:///secret/?x#y").bare(), "file:///secret");
        assert_eq!(Canonical::of("file:///secret%3Fx").bare(), "file:///secret?x");
    }

    #[test]
    fn encodings_within_encodings_take_time_proportional_to_their_length() {
        let uri = format!("x:%{}41", "25".repeat(500_000));
        assert_eq!(canonical(&uri), "x:A");
    }

    /// A segment, and how it is written: which of its characters are encoded how often, and what stands before it.
    fn segment() -> impl Strategy<Value = (String, String)> {
        let letter =
            (proptest::char::ranges(vec!['a'..='z', '0'..='9', '-'..='-', '_'..='_'].into()), 0..3_u8);
        let noise =
            proptest::sample::select(&["", "./", "/", "x/../", "%2e/", "y%2F..%2f", "z/%252e%2e/"][..]);
        (proptest::collection::vec(letter, 1..6), noise).prop_map(|(letters, noise)| {
            let plain: String = letters.iter().map(|(letter, _)| *letter).collect();
            let written = letters.iter().map(|(letter, times)| match times {
                0 => letter.to_string(),
                1 => format!("%{:02x}", u32::from(*letter)),
                _ => format!("%25{:02X}", u32::from(*letter)),
            });
            (plain, format!("{noise}{}", written.collect::<String>()))
        })
    }

    proptest! {
        #[test]
        fn no_way_of_writing_a_uri_changes_its_form(
            segments in proptest::collection::vec(segment(), 1..5),
            scheme in proptest::sample::select(&["file://", "FILE://", "fiLe://localhost"][..]),
        ) {
            let (plain, written): (Vec<String>, Vec<String>) = segments.into_iter().unzip();
            let written = format!("{scheme}/{}", written.join("/"));
            prop_assert_eq!(canonical(&written), format!("file:///{}", plain.join("/")), "{}", written);
        }

        #[test]
        fn no_form_has_encodings_or_dot_segments(uri in "([a-z]{1,4}:)?(//)?[a-z%25eE0-9./\\\\?#]{0,24}") {
            let Canonical { whole, path_end } = Canonical::of(&uri);
            prop_assert_eq!(&decoded(&whole), &whole);
            let (_, path, _) = parts(&whole[..path_end]);
            prop_assert!(path.split('/').all(|segment| segment != ".." && segment != "."), "{} {}", uri, whole);
        }

        #[test]
        fn any_text_has_a_form(uri in "\\PC{0,40}") {
            let _ = Canonical::of(&uri).bare();
        }
    }
}
