//! Values that may contain a secret: a URL that prints without it, and masks for other text that is printed. `schema`
//! decides which keys are secret.

use std::fmt;

use embody_text::truncate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::{Host, ParseError, Url};

/// A URL. Printing it hides user, password and query.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("format" = "uri"))]
pub(crate) struct Address(String);

impl Address {
    pub(crate) fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The complete URL, for connecting only.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn check_http(&self) -> Result<(), &'static str> {
        let rest = self.strip_scheme(&["http", "https"]).ok_or("is not an http:// or https:// address")?;
        self.check_characters()?;
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        match Url::parse(&self.0) {
            // The parser accepts both.
            Ok(_) if authority.is_empty() => Err("names no host"),
            Ok(_) if authority.ends_with(':') => Err("has no port number from 0 to 65535"),
            Ok(_) => Ok(()),
            Err(ParseError::EmptyHost) => Err("names no host"),
            Err(ParseError::InvalidPort) => Err("has no port number from 0 to 65535"),
            Err(ParseError::InvalidIpv6Address) => Err("has no IPv6 address in its brackets"),
            Err(_) => Err("names a host that cannot exist"),
        }
    }

    /// Whether traffic to it is unencrypted: plain HTTP to another machine.
    pub(crate) fn is_open(&self) -> bool {
        self.strip_scheme(&["http"]).is_some() && !self.is_loopback()
    }

    pub(crate) fn is_loopback(&self) -> bool {
        match Url::parse(&self.0).as_ref().map(Url::host) {
            Ok(Some(Host::Domain(name))) => name == "localhost",
            Ok(Some(Host::Ipv4(address))) => address.is_loopback(),
            Ok(Some(Host::Ipv6(address))) => address.is_loopback(),
            _ => false,
        }
    }

    pub(crate) fn check_postgres(&self) -> Result<(), &'static str> {
        match self.strip_scheme(&["postgres", "postgresql"]) {
            None => Err("is not a postgres:// address"),
            Some("") => Err("names no server"),
            Some(_) => self.check_characters(),
        }
    }

    pub(crate) fn is_sqlite(&self) -> bool {
        self.0.starts_with("sqlite:")
    }

    /// An `sqlite` URL: a scheme and a path.
    pub(crate) fn check_sqlite(&self) -> Result<(), &'static str> {
        match self.0.strip_prefix("sqlite:") {
            None => Err("is not an sqlite: address"),
            Some("" | "//") => Err("names no file"),
            Some(":memory:" | "//:memory:") => Err("is a store in memory, which would end with the command"),
            // Other programs accept options there; a file with such a name is probably a mistake.
            Some(path) if path.contains('?') => Err("holds a `?`, but takes no options"),
            Some(path) if path.contains(char::is_control) => Err("holds a control character"),
            Some(_) => Ok(()),
        }
    }

    fn check_characters(&self) -> Result<(), &'static str> {
        let odd = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '"' | '<' | '>' | '\\' | '`');
        if self.0.contains(odd) { Err("holds a character that no address may hold") } else { Ok(()) }
    }

    fn strip_scheme(&self, schemes: &[&str]) -> Option<&str> {
        let (scheme, rest) = self.0.split_once("://")?;
        schemes.iter().any(|known| scheme.eq_ignore_ascii_case(known)).then_some(rest)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&address(&self.0))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

pub(crate) const HIDDEN: &str = "***";

const MAX_CHARS: usize = 120;

/// Makes a text printable: masks URLs, escapes control characters, truncates.
pub(crate) fn text(text: &str) -> String {
    truncate(&escape_control(&addresses(text)), MAX_CHARS)
}

pub(crate) fn addresses(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        let end = after.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>'));
        let (body, tail) = after.split_at(end.unwrap_or(after.len()));
        out.push_str(before);
        out.push_str("://");
        out.push_str(&address_body(body));
        rest = tail;
    }
    out.push_str(rest);
    out
}

/// The value of a key that contains a URL. Stricter than [`addresses`]: masks malformed values.
pub(crate) fn address(text: &str) -> String {
    let shown = match text.split_once("://") {
        Some((scheme, body)) => format!("{scheme}://{}", address_body(body)),
        None if text.contains(['@', '=', '?']) => HIDDEN.to_owned(),
        None => text.to_owned(),
    };
    escape_control(&shown)
}

/// One line of a file that is not valid TOML. `plain_key` returns whether the line's key never contains a secret; otherwise
/// only the key is shown.
pub(crate) fn line(line: &str, plain_key: impl Fn(&str) -> bool) -> String {
    // A broken quote can end a URL anywhere, so mask everything after `://`.
    let (head, hidden) = match line.split_once("://") {
        Some((head, _)) => (format!("{head}://{HIDDEN}"), true),
        None => (line.to_owned(), false),
    };
    let shown = match line.find(['=', ':']) {
        Some(at) => {
            let (key, rest) = line.split_at(at);
            let plain = plain_key(key.trim().trim_matches(['"', '\'']));
            let sign = if rest.starts_with('=') { "=" } else { ":" };
            if plain { head } else { format!("{key}{sign} {HIDDEN}") }
        }
        None if hidden => HIDDEN.to_owned(),
        None => head,
    };
    truncate(&escape_control(&shown), MAX_CHARS)
}

fn address_body(body: &str) -> String {
    let query = body.find(['?', '#']);
    let user = body.rfind('@');
    match (user, query) {
        (None, None) => body.to_owned(),
        // An `@` after a `?` may be in the query or in a password with a raw `?`: mask everything.
        (Some(at), Some(cut)) if cut < at => HIDDEN.to_owned(),
        _ => {
            let start = user.map_or(0, |at| at + 1);
            let end = query.unwrap_or(body.len());
            let user = if user.is_some() { format!("{HIDDEN}@") } else { String::new() };
            let sign = body.get(end..).and_then(|tail| tail.chars().next());
            let tail = sign.map_or_else(String::new, |sign| format!("{sign}{HIDDEN}"));
            format!("{user}{}{tail}", body.get(start..end).unwrap_or_default())
        }
    }
}

/// Escapes control and other invisible characters.
pub(crate) fn escape_control(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '\'' | '\\' => out.push(c),
            _ => out.extend(c.escape_debug()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_http_to_another_machine_is_open() {
        for (text, open) in [
            ("http://mind.example.com/mcp", true),
            ("http://u:p@10.0.0.1:80", true),
            ("https://mind.example.com", false),
            ("http://127.0.0.1:7717/mcp", false),
            ("http://localhost", false),
            ("http://[::1]:9/x", false),
            ("http://[2001:db8::1]/x", true),
            ("http://127.0.0.1.example.com/mcp", true),
        ] {
            assert_eq!(Address::new(text).is_open(), open, "{text}");
        }
    }

    #[test]
    fn http_addresses() {
        for good in [
            "http://h",
            "HTTPS://h/p",
            "http://127.0.0.1:7717/mcp",
            "http://[::1]:80/",
            "http://[::1]",
            "http://u:p@h:1/x?y#z",
            "http://münchen.example/",
        ] {
            assert!(Address::new(good).check_http().is_ok(), "{good}");
        }
        for bad in [
            "",
            "h",
            "http:/h",
            "http://",
            "http:///p",
            "http://?q",
            "http://u@",
            "http://h:x/",
            "http://h:",
            "http://h:+1",
            "http://h:70000",
            "http://[::1",
            "http://[x]/",
            "http://[::1]x",
            "ftp://h",
            "javascript:alert(1)",
            "http://h/ p",
            "http://h/\n",
            "http://h\\x",
            " http://h",
        ] {
            assert!(Address::new(bad).check_http().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn stores() {
        assert!(Address::new("postgres:///db?host=/run").check_postgres().is_ok());
        assert!(Address::new("postgresql://a,b:1/db").check_postgres().is_ok());
        assert!(Address::new("mysql://a").check_postgres().is_err());
        assert!(Address::new("postgres://").check_postgres().is_err());
        assert!(Address::new("sqlite:///var/my notes.db").check_sqlite().is_ok());
        assert!(Address::new("sqlite:x.db").check_sqlite().is_ok());
        for bad in ["sqlite://", "sqlite::memory:", "sqlite://:memory:", "sqlite:x.db?mode=rwc"] {
            assert!(Address::new(bad).check_sqlite().is_err(), "{bad}");
        }
    }

    #[test]
    fn printing_hides() {
        let address = Address::new("postgres://u:pw@h/d?password=pw");
        assert_eq!(
            format!("{address} {address:?}"),
            "postgres://***@h/d?*** Address(postgres://***@h/d?***)"
        );
        assert_eq!(address.expose(), "postgres://u:pw@h/d?password=pw");
    }

    #[test]
    fn addresses_lose_user_and_query() {
        for (written, shown) in [
            ("postgres://bob:pw@db/x", "postgres://***@db/x"),
            ("postgres://bob:p/w@db/x", "postgres://***@db/x"),
            ("postgres://bob:p?w@db/x", "postgres://***"),
            ("postgres://bob:p#w@db/x?a=b", "postgres://***"),
            ("postgres://bob:p@w@db/x", "postgres://***@db/x"),
            ("http://h/p?token=pw", "http://h/p?***"),
            ("http://h/p#pw", "http://h/p#***"),
            ("http://h/?a=x@y&token=pw", "http://***"),
            ("http://h:1/p", "http://h:1/p"),
            ("bob:pw@db", "***"),
            ("host=db password=pw", "***"),
            ("plain", "plain"),
            ("http://h\n/\u{202e}x", "http://h\\n/\\u{202e}x"),
            ("", ""),
            ("://", "://"),
        ] {
            assert_eq!(address(written), shown, "{written:?}");
            assert!(!address(written).contains("pw"));
        }
    }

    #[test]
    fn addresses_inside_text_are_masked_each() {
        assert_eq!(
            addresses("curl 'http://a:b@c/d?e' \"ftp://f@g\" http://h"),
            "curl 'http://***@c/d?***' \"ftp://***@g\" http://h"
        );
        assert_eq!(text(&"é".repeat(200)).chars().count(), 121);
        assert_eq!(text("a\u{1b}[31m"), "a\\u{1b}[31m");
    }

    #[test]
    fn broken_lines_show_no_secret() {
        let plain = |key: &str| key == "layout" || key == "url";
        for (written, shown) in [
            ("layout = full", "layout = full"),
            ("[prompt", "[prompt"),
            ("url = \"postgres://u:pw\"x@h\"", "url = \"postgres://***"),
            ("API_TOKEN = \"pw", "API_TOKEN = ***"),
            ("API_TOKEN: pw", "API_TOKEN: ***"),
            ("env = { A = \"pw }", "env = ***"),
            ("postgres://u:pw@h", "postgres: ***"),
        ] {
            assert_eq!(line(written, plain), shown, "{written:?}");
        }
    }
}
