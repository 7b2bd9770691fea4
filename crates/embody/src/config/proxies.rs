//! Reads the shared environment variables for proxies. An invalid value that would be used is an error, not a reason to
//! bypass the proxy. Values are not shown, because they may contain a password.

use embody_wire::{Proxies, Proxy};

use super::error::{Problem, Report};
use super::origin::Origin;

/// The variables for each scheme; the first that is set counts.
const HTTP: [&str; 4] = ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"];
const HTTPS: [&str; 4] = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
/// Hosts that are reached directly.
const EXCEPTIONS: [&str; 2] = ["no_proxy", "NO_PROXY"];

const HINT: &str = "write it like http://proxy.example:3128 or http://user:password@proxy.example:3128, with %XX for signs \
                    such as @, / and # in the password; or unset it";

pub(super) fn read(env: &[(String, String)], report: &mut Report) -> Proxies {
    let (http, https) = (first(env, &HTTP), first(env, &HTTPS));
    let mut parse = |given: Option<(&str, &str)>| {
        let (name, value) = given?;
        match Proxy::parse(value) {
            Ok(proxy) => Some(proxy),
            Err(reason) => {
                report.add(wrong(name, reason));
                None
            }
        }
    };
    let https_proxy = parse(https);
    // Report a variable that is used for both only once.
    let http_proxy = if http == https { https_proxy.clone() } else { parse(http) };
    let exceptions = first(env, &EXCEPTIONS).map_or("", |(_, value)| value);
    Proxies::new(http_proxy, https_proxy, exceptions)
}

/// The first of these variables that is set and not empty, and its value.
fn first<'a>(env: &'a [(String, String)], names: &[&str]) -> Option<(&'a str, &'a str)> {
    names.iter().find_map(|wanted| {
        let is_set = |(name, value): &&(String, String)| name == wanted && !value.trim().is_empty();
        env.iter().find(is_set).map(|(name, value)| (name.as_str(), value.as_str()))
    })
}

fn wrong(name: &str, reason: &str) -> Problem {
    let place = Origin::Env { name: name.to_owned() };
    let message = format!("its value cannot be used as a proxy: it {reason}");
    Problem { place: Some(place), ..Problem::bare(message) }.hint(HINT)
}

#[cfg(test)]
mod tests {
    use super::super::{Config, ConfigError, Inputs};

    fn load(env: &[(&str, &str)]) -> Result<Config, ConfigError> {
        let folder = tempfile::tempdir().unwrap();
        let env: Vec<(String, String)> =
            env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Config::load(Inputs { file: None, workspace: folder.path().to_owned(), env, overrides: Vec::new() })
    }

    /// The proxies for `http` and `https`.
    fn shown(env: &[(&str, &str)]) -> [String; 2] {
        let proxies = load(env).unwrap().proxies;
        [proxies.http(), proxies.https()].map(|proxy| proxy.map(ToString::to_string).unwrap_or_default())
    }

    #[test]
    fn each_variable_in_both_cases_of_letters() {
        assert_eq!(shown(&[]), ["", ""]);
        for (name, expected) in [
            ("HTTP_PROXY", ["p:1", ""]),
            ("http_proxy", ["p:1", ""]),
            ("HTTPS_PROXY", ["", "p:1"]),
            ("https_proxy", ["", "p:1"]),
            ("ALL_PROXY", ["p:1", "p:1"]),
            ("all_proxy", ["p:1", "p:1"]),
        ] {
            assert_eq!(shown(&[(name, "http://p:1")]), expected, "{name}");
            assert_eq!(shown(&[(name, " ")]), ["", ""], "{name} is empty");
            let with = |url: &str| {
                let proxies = load(&[(name, "http://p:1"), ("NO_PROXY", "a.example")]).unwrap().proxies;
                proxies.proxy_for(&embody_wire::Url::parse(url).unwrap()).is_some()
            };
            assert!(with("http://b.example/") || with("https://b.example/"));
            assert!(!with("http://a.example/") && !with("https://a.example/"), "{name}");
        }
    }

    #[test]
    fn the_narrower_wins_and_small_letters_win() {
        let env = [("ALL_PROXY", "all:1"), ("HTTPS_PROXY", "upper:2"), ("https_proxy", "lower:3")];
        assert_eq!(shown(&env), ["all:1", "lower:3"]);
        assert_eq!(shown(&env[..2]), ["all:1", "upper:2"]);
        // Empty counts as unset.
        assert_eq!(shown(&[("https_proxy", ""), ("HTTPS_PROXY", "upper:2")]), ["", "upper:2"]);
    }

    #[test]
    fn what_cannot_be_read_is_told_by_its_name_and_not_by_its_value() {
        for (name, value, reason) in [
            ("HTTPS_PROXY", "http://me:hunter2@", "cannot be read as an address"),
            ("https_proxy", "http://me:hunter2@proxy:port", "cannot be read as an address"),
            ("HTTP_PROXY", "ftp://me:hunter2@proxy", "is not an http://, https:// or socks5h:// address"),
            ("ALL_PROXY", "socks5://me:hunter2@proxy:port", "cannot be read as an address"),
            ("all_proxy", "http://me:hun/ter2@proxy:1", "cannot be read as an address"),
        ] {
            let error = load(&[(name, value)]).unwrap_err();
            assert_eq!(error.count(), 1, "{name} is told once");
            let words = format!("{name}: its value cannot be used as a proxy: it {reason}");
            assert_eq!(error.message(), words);
            let all = format!("{error:?} {:?}", error.hints());
            assert!(all.contains("http://proxy.example:3128") && !all.contains("hunter2"), "{all}");
        }
        // An invalid proxy that is not used is not reported.
        let env = [("ALL_PROXY", "ftp://p:1"), ("HTTP_PROXY", "p:2"), ("HTTPS_PROXY", "p:3")];
        assert_eq!(shown(&env), ["p:2", "p:3"]);
    }

    #[test]
    fn no_password_is_shown() {
        let config = load(&[("HTTPS_PROXY", "http://me:hunter2@proxy.example:3128")]).unwrap();
        let shown = format!("{config:?}");
        assert!(shown.contains("proxy.example:3128") && !shown.contains("hunter2"), "{shown}");
    }
}
