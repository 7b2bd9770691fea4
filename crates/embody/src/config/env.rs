//! Reads the environment, which it takes as values: `EMBODY_SECTION__KEY` for every key, the two `PERSONA_SATI_MCP_…` variables,
//! and the variables that programs share for telemetry (`OTEL_…`) and for proxies. Ignores variables of ours without `__`,
//! which are not keys of the configuration.

use embody_wire::{Proxies, Proxy};
use reqwest::header::{HeaderName, HeaderValue};

use super::error::{Problem, Report, quoted};
use super::mask::Address;
use super::schema::{self, Shape};
use super::tree::{KeyPath, Node, Origin};
use super::{check, parse, put};

const PREFIX: &str = "EMBODY_";
const SEPARATOR: &str = "__";

/// The environment of the process as text. Invalid UTF-8 becomes replacement characters, so that it is reported, not ignored.
pub(crate) fn of_process() -> Vec<(String, String)> {
    std::env::vars_os()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()))
        .collect()
}

/// The value of a variable that is set and not empty.
pub(crate) fn non_empty(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

pub(super) fn variable(parts: &[&str]) -> String {
    format!("{PREFIX}{}", parts.join(SEPARATOR).to_uppercase())
}

pub(super) fn apply(env: &[(String, String)], tree: &mut Node, report: &mut Report) {
    apply_persona(env, tree, report);
    apply_otel(env, tree, report);
    let mut ours: Vec<(Vec<&str>, &str, &str)> = env
        .iter()
        .filter(|(name, _)| name.contains(SEPARATOR))
        .filter_map(|(name, value)| {
            let parts = name.strip_prefix(PREFIX)?.split(SEPARATOR).collect();
            Some((parts, name.as_str(), value.as_str()))
        })
        .collect();
    // Ordered by index, so that a new entry can be set key by key.
    ours.sort_by_cached_key(|(parts, ..)| {
        parts.iter().map(|part| (index(part).unwrap_or(usize::MAX), *part)).collect::<Vec<_>>()
    });
    for (parts, name, value) in ours {
        match locate(name, &parts) {
            Ok((path, shape)) => set(name, value, &path, shape, tree, report),
            Err(hint) => {
                let problem = Problem::new("this variable names no key").hint(hint);
                report.add(Problem { origin: Some(Origin::env(name)), ..problem });
            }
        }
    }
}

/// The number of an entry, written without leading zeros.
fn index(part: &str) -> Option<usize> {
    part.parse().ok().filter(|index: &usize| index.to_string() == part)
}

fn apply_persona(env: &[(String, String)], tree: &mut Node, report: &mut Report) {
    let name = "PERSONA_SATI_MCP_URL";
    if let Some(url) = non_blank(env, name) {
        put(&"persona.url".into(), Node::from_value(url.into(), &Origin::env(name)), tree, report);
    }
    let name = "PERSONA_SATI_MCP_TOKEN_COMMAND";
    let Some(command) = non_blank(env, name) else { return };
    let (path, origin) = (KeyPath::from("persona.token_command"), Origin::env(name));
    match shlex::split(command) {
        Some(words) => put(&path, Node::from_value(words.into(), &origin), tree, report),
        None => {
            let problem = Problem::new(format!("`{path}` cannot be split into words"));
            report.reject(&path, problem.at(&path, &origin).hint("close every quote"));
        }
    }
}

/// The key that a variable names, or a hint why it names none.
fn locate(variable_name: &str, parts: &[&str]) -> Result<(KeyPath, &'static Shape), String> {
    let (mut path, mut shape) = (KeyPath::default(), schema::root());
    for (position, part) in parts.iter().enumerate() {
        let (good, rest) = parts.split_at(position);
        let no_such = |names: Vec<String>| match schema::nearest(part, names.iter().map(String::as_str)) {
            Some(near) => {
                let meant = variable(&[good, &[near], rest.get(1..).unwrap_or_default()].concat());
                format!("did you mean `{meant}` instead of {}?", quoted(variable_name))
            }
            None => {
                let start = variable(&[good, &[""]].concat());
                format!("after `{start}` may come {}", names.join(", "))
            }
        };
        let spelled = |name: &&String| name.to_uppercase() == *part;
        match shape {
            Shape::Table(fields) => {
                let names = || fields.iter().map(|field| field.name.to_uppercase()).collect();
                let field = fields.iter().find(|field| spelled(&&field.name));
                let field = field.ok_or_else(|| no_such(names()))?;
                (path, shape) = (path.key(&field.name), &field.shape);
            }
            Shape::List { item, .. } => {
                let index = index(part).ok_or_else(|| {
                    let above = variable(good);
                    format!("after `{above}__` comes the number of an entry, counted from 0")
                })?;
                (path, shape) = (path.index(index), item);
            }
            Shape::Map { names: Some(known), value } => {
                let names = || known.iter().map(|name| name.to_uppercase()).collect();
                let name = known.iter().find(spelled).ok_or_else(|| no_such(names()))?;
                (path, shape) = (path.key(name), value);
            }
            // User-defined names may contain the separator.
            Shape::Map { names: None, value } => return Ok((path.key(&rest.join(SEPARATOR)), value)),
            _ => return Err(format!("did you mean `{}`?", variable(good))),
        }
    }
    Ok((path, shape))
}

fn set(name: &str, value: &str, path: &KeyPath, shape: &Shape, tree: &mut Node, report: &mut Report) {
    let origin = Origin::env(name);
    let is_text = match shape {
        Shape::Choice { or_list: Some(_), .. } => !value.trim_start().starts_with('['),
        Shape::Text(_) | Shape::Choice { .. } | Shape::TextOrBoolean => true,
        _ => false,
    };
    let before = report.count();
    let node = if is_text { None } else { parse::value(value, path, &origin, report) };
    if report.count() > before {
        return;
    }
    // A text that is not a TOML value stays a string, and fails the type check.
    let mut node = node.unwrap_or_else(|| Node::from_value(value.into(), &origin));
    if check::prune(shape, &mut node, path, report) {
        put(path, node, tree, report);
    }
}

/// The value of a variable that is set and not blank.
fn non_blank<'a>(env: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let is_set = |(known, value): &&(String, String)| known == name && !value.trim().is_empty();
    env.iter().find(is_set).map(|(_, value)| value.as_str())
}

pub(crate) const OTLP_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const OTLP_HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";
const OTEL_SERVICE: &str = "OTEL_SERVICE_NAME";
const OTLP_PROTOCOL: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"];
const SUPPORTED_PROTOCOL: &str = "http/protobuf";

/// Overrides `[telemetry]` with the shared variables. Ignores unusable values: they were not set for this program and must
/// not prevent its start.
fn apply_otel(env: &[(String, String)], tree: &mut Node, report: &mut Report) {
    let value = |name: &str| non_blank(env, name).map(str::trim);
    if value("OTEL_SDK_DISABLED").is_some_and(|flag| flag.eq_ignore_ascii_case("true")) {
        return;
    }
    let mut set = |path: KeyPath, name: &str, value: &str| {
        put(&path, Node::from_value(value.into(), &Origin::env(name)), tree, report);
    };
    if let Some(service) = value(OTEL_SERVICE) {
        set("telemetry.service_name".into(), OTEL_SERVICE, service);
    }
    let protocol = OTLP_PROTOCOL.iter().find_map(|name| value(name)).unwrap_or(SUPPORTED_PROTOCOL);
    let mut exporters = value("OTEL_TRACES_EXPORTER").unwrap_or("otlp").split(',');
    let is_usable = protocol == SUPPORTED_PROTOCOL && exporters.any(|exporter| exporter.trim() == "otlp");
    if let Some(url) = value(OTLP_ENDPOINT).filter(|url| is_usable && Address::new(url).check_http().is_ok())
    {
        set("telemetry.otlp_url".into(), OTLP_ENDPOINT, url);
        // Headers are credentials: each set is sent only to the collector that it was configured with.
        let headers = KeyPath::from("telemetry.headers");
        put(&headers, Node::empty(Origin::env(OTLP_ENDPOINT)), tree, report);
        for (name, value) in value(OTLP_HEADERS).into_iter().flat_map(parse_headers) {
            let node = Node::from_value(value.into(), &Origin::env(OTLP_HEADERS));
            put(&headers.key(&name), node, tree, report);
        }
    }
}

/// Parses `name=value,name=value` with percent-encoded values. Skips invalid entries.
fn parse_headers(text: &str) -> impl Iterator<Item = (String, String)> {
    text.split(',').filter_map(|header| {
        let (name, value) = header.split_once('=')?;
        let (name, value) = (name.trim(), percent_decode(value.trim())?);
        let is_valid =
            HeaderName::from_bytes(name.as_bytes()).is_ok() && HeaderValue::from_str(&value).is_ok();
        is_valid.then(|| (name.to_owned(), value))
    })
}

fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

/// The variables for each scheme; the first that is set counts.
const HTTP_PROXY: [&str; 4] = ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"];
const HTTPS_PROXY: [&str; 4] = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
/// Hosts that are reached directly.
const NO_PROXY: [&str; 2] = ["no_proxy", "NO_PROXY"];

/// The proxies. An invalid value that would be used is an error, not a reason to bypass the proxy. Values are not shown,
/// because they may contain a password.
pub(super) fn proxies(env: &[(String, String)], report: &mut Report) -> Proxies {
    const HINT: &str = "write it like http://proxy.example:3128 or http://user:password@proxy.example:3128, with %XX for \
                        signs such as @, / and # in the password; or unset it";
    let first = |names: &[&'static str]| names.iter().find_map(|name| Some((*name, non_blank(env, name)?)));
    let mut parse = |variable: Option<(&str, &str)>| {
        let (name, value) = variable?;
        let parsed = Proxy::parse(value);
        parsed
            .map_err(|reason| {
                let message = format!("its value cannot be used as a proxy: it {reason}");
                report.add(Problem { origin: Some(Origin::env(name)), ..Problem::new(message).hint(HINT) });
            })
            .ok()
    };
    let (http, https) = (first(&HTTP_PROXY), first(&HTTPS_PROXY));
    let https_proxy = parse(https);
    // Report a variable that is used for both only once.
    let http_proxy = if http == https { https_proxy.clone() } else { parse(http) };
    Proxies::new(http_proxy, https_proxy, first(&NO_PROXY).map_or("", |(_, value)| value))
}
