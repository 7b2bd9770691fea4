//! Values that may contain a secret: a checked URL that prints without it, and masks for other text that is printed. `keys`
//! decides which keys are secret.

use std::fmt;

use embody_text::truncate;

/// A checked URL. Printing it hides user, password and query.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Address(String);

impl Address {
    pub(crate) fn http(text: &str) -> Result<Self, &'static str> {
        let rest = strip_scheme(text, &["http", "https"]).ok_or("is not an http:// or https:// address")?;
        check_host(host_and_port(rest))?;
        Self::without_odd_characters(text)
    }

    /// Whether traffic to it is unencrypted: plain HTTP to another machine.
    pub(crate) fn is_open(&self) -> bool {
        strip_scheme(&self.0, &["http"]).is_some() && !self.is_loopback()
    }

    pub(crate) fn is_loopback(&self) -> bool {
        let Some(rest) = strip_scheme(&self.0, &["http", "https"]) else { return false };
        let host = host_and_port(rest);
        let host = host.rsplit_once(':').filter(|_| !host.ends_with(']')).map_or(host, |(host, _)| host);
        host == "localhost" || host == "[::1]" || host.starts_with("127.")
    }

    pub(crate) fn postgres(text: &str) -> Result<Self, &'static str> {
        match strip_scheme(text, &["postgres", "postgresql"]) {
            None => Err("is not a postgres:// address"),
            Some("") => Err("names no server"),
            Some(_) => Self::without_odd_characters(text),
        }
    }

    /// An `sqlite` URL: a scheme and a path.
    pub(crate) fn sqlite(text: &str) -> Result<Self, &'static str> {
        match text.strip_prefix("sqlite:") {
            None => Err("is not an sqlite: address"),
            Some("" | "//") => Err("names no file"),
            Some(":memory:" | "//:memory:") => Err("is a store in memory, which would end with the command"),
            // Other programs accept options there; a file with such a name is probably a mistake.
            Some(_) if text.contains('?') => Err("holds a `?`, but takes no options"),
            Some(_) if text.contains(char::is_control) => Err("holds a control character"),
            Some(_) => Ok(Self(text.to_owned())),
        }
    }

    /// The complete URL, for connecting only.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    fn without_odd_characters(text: &str) -> Result<Self, &'static str> {
        let odd = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '"' | '<' | '>' | '\\' | '`');
        if text.contains(odd) {
            return Err("holds a character that no address may hold");
        }
        Ok(Self(text.to_owned()))
    }
}

fn strip_scheme<'a>(text: &'a str, schemes: &[&str]) -> Option<&'a str> {
    let (scheme, rest) = text.split_once("://")?;
    schemes.iter().any(|known| scheme.eq_ignore_ascii_case(known)).then_some(rest)
}

/// The host and port of a URL without its scheme.
fn host_and_port(rest: &str) -> &str {
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit_once('@').map_or(authority, |(_, host)| host)
}

fn check_host(host_and_port: &str) -> Result<(), &'static str> {
    let (host, port) = match host_and_port.strip_prefix('[') {
        Some(bracketed) => {
            let (host, rest) = bracketed.split_once(']').ok_or("has an unclosed bracket")?;
            if host.parse::<std::net::Ipv6Addr>().is_err() {
                return Err("has no IPv6 address in its brackets");
            }
            match rest.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if rest.is_empty() => (host, None),
                None => return Err("has something other than a port behind the bracket"),
            }
        }
        None => match host_and_port.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (host_and_port, None),
        },
    };
    if host.is_empty() {
        return Err("names no host");
    }
    let digits = |port: &str| port.chars().all(|c| c.is_ascii_digit());
    match port {
        Some(port) if !digits(port) || port.parse::<u16>().is_err() => {
            Err("has no port number from 0 to 65535")
        }
        _ => Ok(()),
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
        ] {
            assert_eq!(Address::http(text).unwrap().is_open(), open, "{text}");
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
            assert!(Address::http(good).is_ok(), "{good}");
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
            assert!(Address::http(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn stores() {
        assert!(Address::postgres("postgres:///db?host=/run").is_ok());
        assert!(Address::postgres("postgresql://a,b:1/db").is_ok());
        assert!(Address::postgres("mysql://a").is_err());
        assert!(Address::postgres("postgres://").is_err());
        assert!(Address::sqlite("sqlite:///var/my notes.db").is_ok());
        assert!(Address::sqlite("sqlite:x.db").is_ok());
        for bad in ["sqlite://", "sqlite::memory:", "sqlite://:memory:", "sqlite:x.db?mode=rwc"] {
            assert!(Address::sqlite(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn printing_hides() {
        let address = Address::postgres("postgres://u:pw@h/d?password=pw").unwrap();
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
