//! Checked values that may contain a secret: URLs and environment values. Neither can be printed completely by accident.

use std::fmt;

use super::mask;

/// A checked URL. Printing it hides user, password and query.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Address(String);

impl Address {
    /// An `http` or `https` URL.
    pub(crate) fn http(text: &str) -> Result<Self, &'static str> {
        let rest = strip_scheme(text, &["http", "https"]).ok_or("is not an http:// or https:// address")?;
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let host_and_port = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        check_host(host_and_port)?;
        Self::printable(text)
    }

    /// Whether traffic to it is unencrypted: plain HTTP to another machine.
    pub(crate) fn is_open(&self) -> bool {
        strip_scheme(&self.0, &["http"]).is_some() && !self.is_here()
    }

    /// Whether it is on this machine.
    pub(crate) fn is_here(&self) -> bool {
        let Some(rest) = strip_scheme(&self.0, &["http", "https"]) else { return false };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let host = host.rsplit_once(':').filter(|_| !host.ends_with(']')).map_or(host, |(host, _)| host);
        host == "localhost" || host == "[::1]" || host.starts_with("127.")
    }

    /// A `postgres` or `postgresql` URL.
    pub(crate) fn postgres(text: &str) -> Result<Self, &'static str> {
        match strip_scheme(text, &["postgres", "postgresql"]) {
            None => Err("is not a postgres:// address"),
            Some("") => Err("names no server"),
            Some(_) => Self::printable(text),
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

    fn printable(text: &str) -> Result<Self, &'static str> {
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
        f.write_str(&mask::address(&self.0))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
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
}
