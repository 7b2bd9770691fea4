//! Reads the environment, which it takes as values: `EMBODY_SECTION__KEY` for every key, the two `PERSONA_SATI_MCP_…` variables,
//! and the variables that programs share for telemetry (`OTEL_…`) and for proxies. Ignores variables of ours without `__`,
//! which are not keys of the configuration.

use embody_wire::{Proxies, Proxy};

use super::error::{Problem, Report, quoted};
use super::keys::{self, Shape};
use super::mask::Address;
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

pub(crate) fn variable<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let parts: Vec<String> = parts.into_iter().map(str::to_uppercase).collect();
    format!("{PREFIX}{}", parts.join(SEPARATOR))
}

pub(super) fn apply(env: impl IntoIterator<Item = (String, String)>, tree: &mut Node, report: &mut Report) {
    let mut ours: Vec<(Vec<Part>, String, String)> = Vec::new();
    let mut shared: Vec<(String, String)> = Vec::new();
    for (name, value) in env {
        match name.as_str() {
            "PERSONA_SATI_MCP_URL" => persona_url(&name, &value, tree, report),
            "PERSONA_SATI_MCP_TOKEN_COMMAND" => persona_command(&name, &value, tree, report),
            _ if name.starts_with(OTEL_PREFIX) => shared.push((name, value)),
            _ if name.starts_with(PREFIX) && name.contains(SEPARATOR) => {
                let rest = name.strip_prefix(PREFIX).unwrap_or_default();
                ours.push((rest.split(SEPARATOR).map(Part::of).collect(), name, value));
            }
            _ => {}
        }
    }
    apply_otel(&shared, tree, report);
    // Ordered by index, so that a new entry can be set key by key.
    ours.sort();
    for (parts, name, value) in ours {
        match locate(keys::root(), &parts) {
            Ok((path, shape)) => set(&name, &value, &path, shape, tree, report),
            Err(unknown) => report.add(unknown_variable(&name, &parts, &unknown)),
        }
    }
}

/// A part of a variable's name; numbers first, in numeric order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Number(usize),
    Name(String),
}

impl Part {
    fn of(text: &str) -> Self {
        match text.parse::<usize>() {
            Ok(number) if number.to_string() == text => Self::Number(number),
            _ => Self::Name(text.to_owned()),
        }
    }

    fn spells(&self, key: &str) -> bool {
        matches!(self, Self::Name(name) if *name == key.to_uppercase())
    }

    fn text(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Name(name) => name.clone(),
        }
    }
}

fn persona_url(name: &str, value: &str, tree: &mut Node, report: &mut Report) {
    if !value.trim().is_empty() {
        put(&KeyPath::dotted("persona.url"), Node::text(value, Origin::env(name)), tree, report);
    }
}

fn persona_command(name: &str, value: &str, tree: &mut Node, report: &mut Report) {
    let (path, origin) = (KeyPath::dotted("persona.token_command"), Origin::env(name));
    if value.trim().is_empty() {
        return;
    }
    match shlex::split(value) {
        Some(words) => put(&path, Node::from_value(words.into(), &origin), tree, report),
        None => {
            let message = format!("`{path}` cannot be split into words");
            report.reject(&path, Problem::at(&path, &origin, message).hint("close every quote"));
        }
    }
}

/// Why a variable does not name a key.
struct Unknown {
    /// The index of the wrong part.
    position: usize,
    legal: Legal,
}

enum Legal {
    Names(Vec<String>),
    /// The index of an entry.
    Number,
    /// The key ends before it.
    End,
}

fn locate<'a>(mut shape: &'a Shape, parts: &[Part]) -> Result<(KeyPath, &'a Shape), Unknown> {
    let mut path = KeyPath::default();
    for (position, part) in parts.iter().enumerate() {
        match shape {
            Shape::Table(fields) => {
                let names = || Legal::Names(fields.iter().map(|field| field.name.to_uppercase()).collect());
                let field = fields.iter().find(|field| part.spells(&field.name));
                let field = field.ok_or_else(|| Unknown { position, legal: names() })?;
                path = path.key(&field.name);
                shape = &field.shape;
            }
            Shape::List { item, .. } => {
                let Part::Number(index) = part else {
                    return Err(Unknown { position, legal: Legal::Number });
                };
                path = path.index(*index);
                shape = item;
            }
            Shape::Map { names: Some(known), value } => {
                let names = || Legal::Names(known.iter().map(|name| name.to_uppercase()).collect());
                let name = known.iter().find(|name| part.spells(name));
                path = path.key(name.ok_or_else(|| Unknown { position, legal: names() })?);
                shape = value;
            }
            Shape::Map { names: None, value } => {
                // User-defined names may contain the separator.
                let texts: Vec<String> = parts.iter().skip(position).map(Part::text).collect();
                return Ok((path.key(&texts.join(SEPARATOR)), value));
            }
            _ => return Err(Unknown { position, legal: Legal::End }),
        }
    }
    Ok((path, shape))
}

fn set(name: &str, value: &str, path: &KeyPath, shape: &Shape, tree: &mut Node, report: &mut Report) {
    let origin = Origin::env(name);
    let as_is = match shape {
        Shape::Text(_) | Shape::Choice(_) | Shape::TextOrBoolean => true,
        Shape::ChoiceOrTexts { .. } => !value.trim_start().starts_with('['),
        _ => false,
    };
    // A text that is not a TOML value stays a string, and fails the type check later.
    let before = report.count();
    let node = if as_is { None } else { parse::value(value, path, &origin, report) };
    if report.count() > before {
        return;
    }
    let node = node.unwrap_or_else(|| Node::text(value, origin));
    if let Some(node) = check::prune(shape, node, path, report) {
        put(path, node, tree, report);
    }
}

fn unknown_variable(name: &str, parts: &[Part], unknown: &Unknown) -> Problem {
    let origin = Origin::env(name);
    let problem = Problem { origin: Some(origin), ..Problem::bare("this variable names no key") };
    let texts: Vec<String> = parts.iter().map(Part::text).collect();
    let (good, rest) = texts.split_at(unknown.position);
    let good = good.iter().map(String::as_str);
    let above = variable(good.clone());
    let Legal::Names(names) = &unknown.legal else {
        return problem.hint(match unknown.legal {
            Legal::Number => format!("after `{above}__` comes the number of an entry, counted from 0"),
            _ => format!("did you mean `{above}`?"),
        });
    };
    let wrong = rest.first().map_or("", String::as_str);
    match keys::nearest(wrong, names.iter().map(String::as_str)) {
        Some(near) => {
            let meant = variable(good.chain([near]).chain(rest.iter().skip(1).map(String::as_str)));
            problem.hint(format!("did you mean `{meant}` instead of {}?", quoted(name)))
        }
        None => {
            let start = variable(good.chain([""]));
            problem.hint(format!("after `{start}` may come {}", names.join(", ")))
        }
    }
}

/// The value of a variable that is set and not blank.
fn non_blank<'a>(env: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let is_set = |(known, value): &&(String, String)| known == name && !value.trim().is_empty();
    env.iter().find(is_set).map(|(_, value)| value.as_str())
}

const OTEL_PREFIX: &str = "OTEL_";
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
    let mut set = |path: &KeyPath, name: &str, value: &str| {
        put(path, Node::text(value, Origin::env(name)), tree, report);
    };
    if let Some(service) = value(OTEL_SERVICE) {
        set(&KeyPath::dotted("telemetry.service_name"), OTEL_SERVICE, service);
    }
    let protocol = OTLP_PROTOCOL.iter().find_map(|name| value(name)).unwrap_or(SUPPORTED_PROTOCOL);
    let mut exporters = value("OTEL_TRACES_EXPORTER").unwrap_or("otlp").split(',');
    let is_usable = protocol == SUPPORTED_PROTOCOL && exporters.any(|exporter| exporter.trim() == "otlp");
    if let Some(url) = value(OTLP_ENDPOINT).filter(|url| is_usable && Address::http(url).is_ok()) {
        set(&KeyPath::dotted("telemetry.otlp_url"), OTLP_ENDPOINT, url);
        // Headers are credentials: each set is sent only to the collector that it was configured with.
        let headers = KeyPath::dotted("telemetry.headers");
        put(&headers, Node::empty(Origin::env(OTLP_ENDPOINT)), tree, report);
        for (name, value) in value(OTLP_HEADERS).into_iter().flat_map(parse_headers) {
            put(&headers.key(&name), Node::text(&value, Origin::env(OTLP_HEADERS)), tree, report);
        }
    }
}

/// Parses `name=value,name=value` with percent-encoded values. Skips invalid entries.
fn parse_headers(text: &str) -> impl Iterator<Item = (String, String)> {
    text.split(',').filter_map(|header| {
        let (name, value) = header.split_once('=')?;
        let (name, value) = (name.trim(), percent_decode(value.trim())?);
        (is_header_name(name) && is_header_value(&value)).then(|| (name.to_owned(), value))
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

pub(super) fn is_header_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

pub(super) fn is_header_value(value: &str) -> bool {
    value.bytes().all(|byte| (b' '..=b'~').contains(&byte))
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
                report.add(Problem { origin: Some(Origin::env(name)), ..Problem::bare(message) }.hint(HINT));
            })
            .ok()
    };
    let (http, https) = (first(&HTTP_PROXY), first(&HTTPS_PROXY));
    let https_proxy = parse(https);
    // Report a variable that is used for both only once.
    let http_proxy = if http == https { https_proxy.clone() } else { parse(http) };
    Proxies::new(http_proxy, https_proxy, first(&NO_PROXY).map_or("", |(_, value)| value))
}
