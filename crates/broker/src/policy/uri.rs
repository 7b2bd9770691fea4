//! Normalizes URIs for comparison with rules. Pure; readings are compared, never sent.
//!
//! Servers read URIs differently (`/a//../b` is `/a/b` in the URL standard and `/b` in a file system; some ignore query and
//! fragment), so a URI has several readings: a stricter rule holds if it matches any of them, a milder one only if it matches
//! all. In every reading scheme and host are in lower case; user information, default ports, a trailing dot of the host and
//! the host of a `file` URI are removed; percent-encodings are decoded repeatedly, and backslashes are slashes.

use url::Url;

#[derive(Debug)]
pub(super) struct Readings {
    /// Scheme and authority.
    head: String,
    /// The path as a file system reads it; then by the URL standard, if that differs.
    paths: Vec<String>,
    /// Path, query and fragment as one path, if query or fragment exist.
    joined: Option<String>,
    query: String,
    fragment: String,
}

impl Readings {
    pub(super) fn of(uri: &str) -> Self {
        let uri = cleaned(uri);
        let parts = Parts::of(&uri);
        let url = Url::parse(&uri).ok();
        let head = head(&parts, url.as_ref());
        // With a host, a path has a slash before it.
        let is_absolute = parts.is_file() || parts.authority.is_some();
        let path = |text: &str| {
            let path = resolved(&decoded(text));
            if is_absolute && !path.starts_with('/') { format!("/{path}") } else { path }
        };
        let (query, fragment) = parts.tail.split_at(parts.tail.find('#').unwrap_or(parts.tail.len()));
        let mut paths = vec![path(parts.path)];
        paths.extend(url.map(|url| path(url.path())).filter(|other| !paths.contains(other)));
        let joined = (!parts.tail.is_empty()).then(|| path(&format!("{}{}", parts.path, parts.tail)));
        Self { head, paths, joined, query: decoded(query), fragment: decoded(fragment) }
    }

    /// The file system's reading; patterns are normalized to it.
    pub(super) fn canonical(&self) -> String {
        let path = self.paths.first().map_or("", String::as_str);
        format!("{}{path}{}{}", self.head, self.query, self.fragment)
    }

    /// Every reading of the whole URI.
    pub(super) fn whole(&self) -> impl Iterator<Item = String> {
        let Self { head, query, fragment, .. } = self;
        let whole = self.paths.iter().map(move |path| format!("{head}{path}{query}{fragment}"));
        whole.chain(self.joined.iter().map(move |path| format!("{head}{path}")))
    }

    /// Readings without the parts that some servers ignore: the fragment, the query, trailing slashes.
    pub(super) fn shortened(&self) -> impl Iterator<Item = String> {
        let Self { head, query, .. } = self;
        self.paths.iter().flat_map(move |path| {
            let short = path.trim_end_matches('/');
            [format!("{head}{short}"), format!("{head}{path}{query}"), format!("{head}{short}{query}")]
        })
    }
}

/// Removes characters that URL parsers skip, and unifies slashes.
fn cleaned(uri: &str) -> String {
    let is_skipped = |c: char| c.is_whitespace() || c.is_control() || c == '\u{feff}';
    let inner = uri.trim_matches(is_skipped).chars().filter(|c| !matches!(c, '\t' | '\n' | '\r'));
    inner.map(|c| if c == '\\' { '/' } else { c }).collect()
}

struct Parts<'a> {
    scheme: Option<&'a str>,
    authority: Option<&'a str>,
    path: &'a str,
    /// Query and fragment.
    tail: &'a str,
}

impl<'a> Parts<'a> {
    fn of(uri: &'a str) -> Self {
        let is_scheme = |scheme: &str| {
            scheme.starts_with(|first: char| first.is_ascii_alphabetic())
                && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
        };
        let (scheme, rest) = match uri.split_once(':').filter(|(scheme, _)| is_scheme(scheme)) {
            Some((scheme, rest)) => (Some(scheme), rest),
            None => (None, uri),
        };
        // After a web scheme any number of slashes begins the host.
        let is_web = |scheme: &str| {
            ["http", "https", "ws", "wss", "ftp"].iter().any(|web| scheme.eq_ignore_ascii_case(web))
        };
        let after = match scheme.is_some_and(is_web) {
            true => Some(rest.trim_start_matches('/')),
            false => rest.strip_prefix("//"),
        };
        let split = |text: &'a str, at: &[char]| text.split_at(text.find(at).unwrap_or(text.len()));
        let (authority, rest) = match after.map(|after| split(after, &['/', '?', '#'])) {
            Some((authority, rest)) => (Some(authority), rest),
            None => (None, rest),
        };
        let (path, tail) = split(rest, &['?', '#']);
        Self { scheme, authority, path, tail }
    }

    fn is_file(&self) -> bool {
        self.scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("file"))
    }
}

fn head(parts: &Parts<'_>, url: Option<&Url>) -> String {
    let Some(scheme) = parts.scheme.map(str::to_lowercase) else {
        return parts
            .authority
            .map_or_else(String::new, |authority| format!("//{}", decoded(authority).to_lowercase()));
    };
    let host = match url.and_then(Url::host_str) {
        _ if parts.is_file() => Some(String::new()),
        Some(host) => {
            let port = url.and_then(Url::port).map_or_else(String::new, |port| format!(":{port}"));
            Some(format!("{}{port}", decoded(host).to_lowercase().trim_end_matches('.')))
        }
        // A missing authority equals an empty one if the path begins with a slash.
        None if parts.authority.is_none() && parts.path.starts_with('/') => Some(String::new()),
        None => parts.authority.map(|authority| {
            let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
            decoded(host).to_lowercase()
        }),
    };
    match host {
        Some(host) => format!("{scheme}://{host}"),
        None => format!("{scheme}:"),
    }
}

/// Decodes percent-encodings repeatedly; each byte is visited a bounded number of times.
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
        Readings::of(uri).canonical()
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
            ("file:///a//../secret", "file:///secret"),
            ("file:///a/b//../../secret", "file:///secret"),
            ("file:///C:/../secret", "file:///secret"),
            ("file://x/secret", "file:///secret"),
            ("file://user@localhost/secret", "file:///secret"),
            ("file:secret", "file:///secret"),
            ("\u{feff}\u{a0}file:///secret", "file:///secret"),
            ("https://user:pw@example.com./a", "https://example.com/a"),
            ("https:///example.com//b/../a", "https://example.com/a"),
            ("https:\\\\example.com\\a", "https://example.com/a"),
            ("notes:/secret", "notes:///secret"),
            ("notes:///a//../secret", "notes:///secret"),
        ] {
            assert_eq!(canonical(uri), expected, "{uri}");
        }
        let readings = |uri: &str| {
            let readings = Readings::of(uri);
            readings.whole().chain(readings.shortened()).collect::<Vec<String>>()
        };
        for (uri, expected) in [
            ("file:///a//../secret", "file:///a/secret"),
            ("file:///secret/?x#y", "file:///secret"),
            ("file:///secret%3Fx", "file:///secret?x"),
            ("file:///x?/../secret", "file:///secret"),
            ("file:///x#/../secret", "file:///secret"),
            ("https://x/a/?id=1#f", "https://x/a?id=1"),
        ] {
            assert!(readings(uri).iter().any(|one| one == expected), "{uri}: {:?}", readings(uri));
        }
    }

    #[test]
    fn encodings_within_encodings_take_time_proportional_to_their_length() {
        let uri = format!("x:%{}41", "25".repeat(500_000));
        assert_eq!(canonical(&uri), "x:A");
    }

    /// A segment and one spelling of it: which characters are encoded how often, and what precedes it.
    fn segment() -> impl Strategy<Value = (String, String)> {
        let letter =
            (proptest::char::ranges(vec!['a'..='z', '0'..='9', '-'..='-', '_'..='_'].into()), 0..3_u8);
        let noise = proptest::sample::select(
            &["", "./", "/", "x/../", "x//../", "%2e/", "y%2F..%2f", "z/%252e%2e/"][..],
        );
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
            scheme in proptest::sample::select(&["file://", "FILE://", "fiLe://localhost", "file://h"][..]),
        ) {
            let (plain, written): (Vec<String>, Vec<String>) = segments.into_iter().unzip();
            let written = format!("{scheme}/{}", written.join("/"));
            prop_assert_eq!(canonical(&written), format!("file:///{}", plain.join("/")), "{}", written);
        }

        #[test]
        fn no_form_has_encodings_or_dot_segments(uri in "([a-z]{1,4}:)?(//)?[a-z%25eE0-9./\\\\?#]{0,24}") {
            let readings = Readings::of(&uri);
            for whole in readings.whole() {
                prop_assert_eq!(&decoded(&whole), &whole);
            }
            for path in readings.paths.iter().chain(&readings.joined) {
                prop_assert!(path.split('/').all(|segment| segment != ".." && segment != "."), "{} {}", uri, path);
            }
        }

        #[test]
        fn any_text_has_a_form(uri in "\\PC{0,40}") {
            let _ = Readings::of(&uri).shortened().count();
        }
    }
}
