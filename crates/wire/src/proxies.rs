//! Selects the proxy for an address. Pure: the caller reads the environment. Loopback never uses a proxy: a request may carry a
//! token, and the proxy's own loopback is another machine. Does not display a proxy's credentials. Does not resolve names: the
//! proxy does (only with `socks5://` does this machine resolve them, when it connects).

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use reqwest::{ClientBuilder, Url};

/// The default port for SOCKS.
const SOCKS_PORT: u16 = 1080;

/// A proxy. Displayed as host and port only.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy(Url);

impl Proxy {
    /// Parses `http://`, `https://` or SOCKS URLs, or host and port alone, with an optional `user:password@`.
    /// `socks://`, which desktops use, is treated as the newest variant, where the proxy resolves names.
    ///
    /// # Errors
    /// When the text is not such an address; the message continues a sentence after "it" and does not repeat the text.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let text = text.trim();
        let whole = match text.split_once("://") {
            None => format!("http://{text}"),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("socks") => format!("socks5h://{rest}"),
            Some(_) => text.to_owned(),
        };
        let unreadable = "cannot be read as an address";
        let mut url = Url::parse(&whole).map_err(|_| unreadable)?;
        if !matches!(url.scheme(), "http" | "https" | "socks4" | "socks4a" | "socks5" | "socks5h") {
            return Err("is not an http://, https:// or socks5h:// address");
        }
        // The HTTP client parses it again as a URI, and would connect without a proxy if that failed.
        let uri = url.as_str().parse::<axum::http::Uri>().map_err(|_| unreadable)?;
        if url.host_str().is_none_or(str::is_empty) || uri.host() != url.host_str() {
            return Err(unreadable);
        }
        if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
            return Err("has a path, query or fragment");
        }
        if url.port_or_known_default().is_none() {
            url.set_port(Some(SOCKS_PORT)).map_err(|()| unreadable)?;
        }
        Ok(Self(url))
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let port = self.0.port_or_known_default().unwrap_or_default();
        write!(f, "{}:{port}", self.0.host_str().unwrap_or_default())
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxy({self})")
    }
}

/// The proxy rules. By default no address uses a proxy.
#[derive(Debug, Clone, Default)]
pub struct Proxies(Option<Arc<Rules>>);

#[derive(Debug)]
struct Rules {
    http: Option<Proxy>,
    https: Option<Proxy>,
    exceptions: Vec<Exception>,
}

impl Proxies {
    /// The proxies for `http` and `https` addresses, and the exceptions: `*`, or names (with all subdomains), addresses
    /// and networks, each with an optional port, separated by commas or spaces. Invalid entries are ignored.
    #[must_use]
    pub fn new(http: Option<Proxy>, https: Option<Proxy>, exceptions: &str) -> Self {
        if http.is_none() && https.is_none() {
            return Self::default();
        }
        let parts = exceptions.split(|c: char| c == ',' || c.is_whitespace());
        let exceptions = parts.filter_map(Exception::parse).collect();
        Self(Some(Arc::new(Rules { http, https, exceptions })))
    }

    /// The proxy for `http` addresses.
    #[must_use]
    pub fn http(&self) -> Option<&Proxy> {
        self.0.as_ref()?.http.as_ref()
    }

    /// The proxy for `https` addresses.
    #[must_use]
    pub fn https(&self) -> Option<&Proxy> {
        self.0.as_ref()?.https.as_ref()
    }

    /// The proxy for this address.
    #[must_use]
    pub fn proxy_for(&self, url: &Url) -> Option<&Proxy> {
        let rules = self.0.as_ref()?;
        let proxy = match url.scheme() {
            "http" => rules.http.as_ref(),
            "https" => rules.https.as_ref(),
            _ => None,
        }?;
        let host = Host::of(url.host_str()?);
        let port = url.port_or_known_default();
        let is_direct =
            host.is_this_machine() || rules.exceptions.iter().any(|exception| exception.covers(&host, port));
        (!is_direct).then_some(proxy)
    }

    /// Configures a client to choose its proxies by these rules. Loads certificates only if `url` needs TLS.
    pub fn apply(&self, builder: ClientBuilder, url: &Url) -> ClientBuilder {
        // Otherwise reqwest reads the proxies from the environment.
        let mut builder = builder.no_proxy();
        if self.0.is_some() {
            let rules = self.clone();
            let proxy_for = move |url: &Url| rules.proxy_for(url).map(|proxy| proxy.0.clone());
            builder = builder.proxy(reqwest::Proxy::custom(proxy_for));
        }
        let is_plain = |url: &Url| url.scheme() != "https";
        if is_plain(url) && self.proxy_for(url).is_none_or(|proxy| is_plain(&proxy.0)) {
            // Plain HTTP must work on a machine without certificates, so none are loaded.
            builder = builder.tls_certs_only([]);
        }
        builder
    }

    /// Adds the proxy to the reason why an address could not be reached.
    #[must_use]
    pub fn describe_error(&self, url: &Url, why: String) -> String {
        match self.proxy_for(url) {
            Some(proxy) => format!("{why} (through the proxy `{proxy}`)"),
            None => why,
        }
    }
}

enum Host {
    Name(String),
    Ip(IpAddr),
}

impl Host {
    fn of(text: &str) -> Self {
        let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
        match bare.parse::<IpAddr>() {
            Ok(ip) => Self::Ip(ip.to_canonical()),
            Err(_) => Self::Name(text.trim_end_matches('.').to_ascii_lowercase()),
        }
    }

    fn is_this_machine(&self) -> bool {
        match self {
            Self::Name(name) => is_below(name, "localhost"),
            // Connecting to the unspecified address reaches this machine.
            Self::Ip(ip) => ip.is_loopback() || ip.is_unspecified(),
        }
    }
}

/// An address that is reached without a proxy.
#[derive(Debug, PartialEq, Eq)]
enum Exception {
    All,
    Name { name: String, port: Option<u16> },
    Net { net: IpAddr, bits: u32, port: Option<u16> },
}

impl Exception {
    fn parse(text: &str) -> Option<Self> {
        if text == "*" {
            return Some(Self::All);
        }
        if let Some((net, bits)) = text.split_once('/') {
            let (net, bits) = (net.parse::<IpAddr>().ok()?, bits.parse().ok()?);
            return (bits <= width(net)).then_some(Self::Net { net, bits, port: None });
        }
        if let Ok(net) = text.parse::<IpAddr>() {
            return Some(Self::Net { net, bits: width(net), port: None });
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => (host, Some(port.parse().ok()?)),
            None => (text, None),
        };
        let host = host.strip_prefix('*').unwrap_or(host).trim_start_matches('.');
        // Normalized as in a URL: lower case, and internationalized names in their ASCII form.
        let url = Url::parse(&format!("http://{host}/")).ok()?;
        Some(match Host::of(url.host_str()?) {
            Host::Ip(net) => Self::Net { net, bits: width(net), port },
            Host::Name(name) => Self::Name { name, port },
        })
    }

    fn covers(&self, host: &Host, at: Option<u16>) -> bool {
        let is_at = |port: Option<u16>| port.is_none() || port == at;
        match (self, host) {
            (Self::All, _) => true,
            (Self::Name { name, port }, Host::Name(host)) => is_at(*port) && is_below(host, name),
            (Self::Net { net, bits, port }, Host::Ip(ip)) => is_at(*port) && is_within(*ip, *net, *bits),
            _ => false,
        }
    }
}

/// Whether `host` is this name, or a subdomain of it.
fn is_below(host: &str, name: &str) -> bool {
    let proxy_for = host.strip_suffix(name);
    !name.is_empty() && proxy_for.is_some_and(|proxy_for| proxy_for.is_empty() || proxy_for.ends_with('.'))
}

fn is_within(ip: IpAddr, net: IpAddr, bits: u32) -> bool {
    let differing = match (ip, net.to_canonical()) {
        (IpAddr::V4(ip), IpAddr::V4(net)) => u128::from(ip.to_bits() ^ net.to_bits()),
        (IpAddr::V6(ip), IpAddr::V6(net)) => ip.to_bits() ^ net.to_bits(),
        _ => return false,
    };
    // A network of all addresses has no bits to compare.
    let free = width(net).saturating_sub(bits);
    differing.checked_shr(free).unwrap_or(0) == 0
}

fn width(net: IpAddr) -> u32 {
    if net.is_ipv4() { 32 } else { 128 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROXY: &str = "http://user:hunter2@proxy.example:3128";

    fn is_proxied(exceptions: &str, url: &str) -> bool {
        let proxy = Proxy::parse(PROXY).ok();
        Proxies::new(proxy.clone(), proxy, exceptions).proxy_for(&Url::parse(url).unwrap()).is_some()
    }

    #[test]
    fn this_machine_is_never_behind_a_proxy() {
        for url in [
            "http://127.0.0.1:8080/v1",
            "http://127.9.9.9/",
            "https://localhost/",
            "http://LOCALHOST:1/",
            "http://localhost./",
            "http://model.localhost:11434/v1",
            "http://[::1]:7717/mcp",
            "http://[::ffff:127.0.0.1]/",
            "http://0.0.0.0:80/",
            "http://[::]/",
            // Another notation for 127.0.0.1.
            "http://2130706433/",
        ] {
            for exceptions in ["", "example.com", "nothing"] {
                assert!(!is_proxied(exceptions, url), "{url}");
            }
        }
        for url in ["http://localhost.example/", "http://notlocalhost/", "http://128.0.0.1/", "http://[::2]/"]
        {
            assert!(is_proxied("", url), "{url}");
        }
    }

    #[test]
    fn exceptions_are_names_addresses_and_networks() {
        for (exceptions, direct, proxied) in [
            ("*", "https://a.example/", None),
            ("*", "http://10.0.0.1/", None),
            ("example.com", "https://example.com/", Some("https://notexample.com/")),
            ("example.com", "https://a.b.example.com/", Some("https://example.com.evil/")),
            (".example.com", "https://example.com/", Some("https://example.org/")),
            ("*.Example.com", "https://a.EXAMPLE.com./", Some("https://example.org/")),
            (" a.example , b.example", "https://b.example/", Some("https://c.example/")),
            ("a.example b.example", "https://b.example/", Some("https://c.example/")),
            ("a.example:8443", "https://a.example:8443/", Some("https://a.example/")),
            ("a.example:443", "https://a.example/", Some("http://a.example/")),
            ("10.1.2.3", "http://10.1.2.3/", Some("http://10.1.2.4/")),
            ("10.1.2.3:80", "http://10.1.2.3/", Some("http://10.1.2.3:81/")),
            ("10.0.0.0/8", "http://10.255.0.1:9/", Some("http://11.0.0.1/")),
            ("192.168.4.0/22", "http://192.168.7.255/", Some("http://192.168.8.0/")),
            ("10.0.0.0/8", "http://[::ffff:10.1.1.1]/", Some("http://[2001:db8::1]/")),
            ("0.0.0.0/0", "http://8.8.8.8/", Some("http://[2001:db8::1]/")),
            ("2001:db8::/32", "http://[2001:db8:ffff::1]/", Some("http://[2001:db9::1]/")),
            ("::/0", "http://[2001:db8::1]/", Some("http://8.8.8.8/")),
            ("2001:db8::1", "http://[2001:db8::1]:81/", Some("http://[2001:db8::2]/")),
            ("[2001:db8::1]:81", "http://[2001:db8::1]:81/", Some("http://[2001:db8::1]/")),
            ("münchen.example", "http://xn--mnchen-3ya.example/", Some("http://munchen.example/")),
        ] {
            assert!(!is_proxied(exceptions, direct), "{exceptions}: {direct}");
            assert!(proxied.is_none_or(|url| is_proxied(exceptions, url)), "{exceptions}: {proxied:?}");
        }
    }

    #[test]
    fn what_is_no_exception_is_none() {
        for exceptions in ["", ",, ,", "10.0.0.0/33", "10.0.0.0/x", "a.example:port", "<local>", ".", "/8"] {
            assert!(is_proxied(exceptions, "http://a.example/"), "{exceptions}");
            assert!(is_proxied(exceptions, "http://10.0.0.1/"), "{exceptions}");
        }
    }

    #[test]
    fn each_kind_of_address_has_its_own_proxy() {
        let proxies = Proxies::new(None, Proxy::parse("p.example:1").ok(), "");
        let proxy_for = |url: &str| proxies.proxy_for(&Url::parse(url).unwrap()).map(ToString::to_string);
        assert_eq!(proxy_for("https://a.example/").as_deref(), Some("p.example:1"));
        assert_eq!(proxy_for("http://a.example/"), None);
        assert_eq!(proxy_for("ftp://a.example/"), None);
    }

    #[test]
    fn a_proxy_is_read_and_its_password_not_shown() {
        for (text, shown) in [
            (PROXY, "proxy.example:3128"),
            ("proxy.example:3128", "proxy.example:3128"),
            ("user:hunter2@proxy.example:8080", "proxy.example:8080"),
            (" https://Proxy.Example/ ", "proxy.example:443"),
            ("HTTP://10.0.0.1", "10.0.0.1:80"),
            ("http://user:hunter2@[2001:db8::1]:8080", "[2001:db8::1]:8080"),
            ("socks5h://user:hunter2@10.0.0.1:9050", "10.0.0.1:9050"),
            ("SOCKS5://proxy.example", "proxy.example:1080"),
            ("socks://127.0.0.1:1080/", "127.0.0.1:1080"),
            ("socks4a://proxy.example:1", "proxy.example:1"),
            ("http://us%22er:hunt{er}2@proxy.example:1", "proxy.example:1"),
            ("http://münchen.example:1", "xn--mnchen-3ya.example:1"),
        ] {
            let proxy = Proxy::parse(text).unwrap();
            assert_eq!(proxy.to_string(), shown);
            let proxies = Proxies::new(Some(proxy.clone()), None, "");
            let printed = format!("{proxy:?} {proxies:?}");
            assert!(
                printed.contains(shown) && !printed.contains("hunter2") && !printed.contains("user"),
                "{printed}"
            );
        }
        for text in [
            "",
            "http://",
            "http://proxy:port",
            "http://user:hunter2@",
            "http://a b",
            "ftp://hunter2.example",
            "socks6://hunter2@127.0.0.1:1080",
            // An unexpanded template, or quotes left over from a file.
            "http://${HUNTER2}:3128",
            "http://{hunter2}",
            "\"proxy.example\"",
            "'http://proxy.example'",
            "http://pro`xy:1",
            "socks5h://münchen.example",
            "socks5h://pro xy",
            "socks5://",
            "socks5h://user:hunter2@",
            "socks5h://proxy.example/hunter2",
            "http://proxy.example:3128/hunter2",
            "http://proxy.example/?hunter2",
            "proxy.example:70000",
        ] {
            let error = Proxy::parse(text).unwrap_err();
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
