//! Checks `[telemetry]`, and reads the shared `OTEL_…` variables for it. Unusable values of those are ignored: they were not
//! set for this program and must not prevent its start.

use super::address::Address;
use super::check::Checks;
use super::error::Report;
use super::node::Node;
use super::origin::{KeyPath, Origin};
use super::resolved::Telemetry;
use super::{put, raw};
use embody_wire::Secret;

pub(super) const PREFIX: &str = "OTEL_";
/// The variables for the endpoint, and those that disable it or select another protocol.
pub(crate) const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";
const SERVICE: &str = "OTEL_SERVICE_NAME";
const PROTOCOL: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"];
const EXPORTER: &str = "OTEL_TRACES_EXPORTER";
const DISABLED: &str = "OTEL_SDK_DISABLED";

/// The supported protocol.
const SPOKEN: &str = "http/protobuf";

/// Overrides `tree` with these variables.
pub(super) fn apply(env: &[(String, String)], tree: &mut Node, report: &mut Report) {
    let value = |wanted: &str| {
        let found = env.iter().find(|(name, value)| name == wanted && !value.trim().is_empty());
        found.map(|(_, value)| value.trim())
    };
    if value(DISABLED).is_some_and(|flag| flag.eq_ignore_ascii_case("true")) {
        return;
    }
    let mut set = |path: KeyPath, name: &str, value: &str| {
        put(&path, Node::text(value, Origin::Env { name: name.to_owned() }), tree, report);
    };
    if let Some(service) = value(SERVICE) {
        set(KeyPath::dotted("telemetry.service_name"), SERVICE, service);
    }
    let is_spoken = PROTOCOL.iter().find_map(|name| value(name)).is_none_or(|protocol| protocol == SPOKEN);
    let is_wanted =
        value(EXPORTER).is_none_or(|exporters| exporters.split(',').any(|one| one.trim() == "otlp"));
    if let Some(url) = value(ENDPOINT).filter(|url| is_spoken && is_wanted && Address::http(url).is_ok()) {
        // Headers are credentials: each set is sent only to the collector that it was configured with.
        let own = Node::empty(Origin::Env { name: ENDPOINT.to_owned() });
        put(&KeyPath::dotted("telemetry.headers"), own, tree, report);
        let mut set = |path: KeyPath, name: &str, value: &str| {
            put(&path, Node::text(value, Origin::Env { name: name.to_owned() }), tree, report);
        };
        set(KeyPath::dotted("telemetry.otlp_url"), ENDPOINT, url);
        for (name, value) in value(HEADERS).into_iter().flat_map(headers) {
            set(KeyPath::dotted("telemetry.headers").key(&name), HEADERS, &value);
        }
    }
}

/// Parses `name=value,name=value` with percent-encoded values. Skips invalid entries.
fn headers(text: &str) -> impl Iterator<Item = (String, String)> {
    text.split(',').filter_map(|header| {
        let (name, value) = header.split_once('=')?;
        let (name, value) = (name.trim(), decoded(value.trim())?);
        (is_name(name) && is_value(&value)).then(|| (name.to_owned(), value))
    })
}

fn decoded(text: &str) -> Option<String> {
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

/// Returns `None` only if a problem was reported.
pub(super) fn resolve(raw: raw::Telemetry, checks: &mut Checks<'_>) -> Option<Telemetry> {
    let section = KeyPath::dotted("telemetry");
    let url = raw.otlp_url.map(|url| checks.http(&section.key("otlp_url"), &url));
    let service_name = checks.filled(&section.key("service_name"), Some(raw.service_name));
    let mut headers = Vec::new();
    for (name, value) in raw.headers {
        let path = section.key("headers").key(&name);
        if !is_name(&name) {
            let hint = "a name has letters, digits and `-` only, as in `authorization`";
            checks.fail(&path, format!("`{path}` is not the name of a header"), Some(hint));
        } else if !is_value(&value) {
            let hint = "a value is one line of plain characters";
            checks.fail(&path, format!("the value of `{path}` cannot be sent"), Some(hint));
        }
        headers.push((name, Secret::new(value)));
    }
    let sample_percent = u8::try_from(raw.sample_percent.min(100)).unwrap_or(100);
    // An invalid URL was already reported.
    let otlp_url = match url {
        Some(url) => Some(url?),
        None => None,
    };
    Some(Telemetry { otlp_url, headers, service_name: service_name?, sample_percent })
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

fn is_value(value: &str) -> bool {
    value.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::super::{Config, ConfigError, Inputs};

    fn load(text: &str, env: &[(&str, &str)]) -> Result<Config, ConfigError> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("embody.toml");
        std::fs::write(&file, text).unwrap();
        let env: Vec<(String, String)> =
            env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Config::load(Inputs {
            file: Some(file),
            workspace: folder.path().to_owned(),
            env,
            overrides: Vec::new(),
        })
    }

    fn url(config: &Config) -> Option<&str> {
        config.telemetry.otlp_url.as_ref().map(|url| url.expose())
    }

    #[test]
    fn it_is_off_unless_somebody_says_where() {
        let config = load("", &[]).unwrap();
        assert_eq!(url(&config), None);
        assert_eq!(
            (config.telemetry.service_name.as_str(), config.telemetry.sample_percent),
            ("embody", 100)
        );
        let text = "[telemetry]\notlp_url = \"http://u:pw@127.0.0.1:4318\"\nsample_percent = 5\nheaders = { x-key = \"hunter2\" }\n";
        let config = load(text, &[]).unwrap();
        assert_eq!(config.telemetry.sample_percent, 5);
        let (name, value) = &config.telemetry.headers[0];
        assert_eq!((name.as_str(), value.expose()), ("x-key", "hunter2"));
        let shown = format!("{:?} {:?}", config.keys, config.telemetry);
        assert!(!shown.contains("hunter2") && !shown.contains("pw"), "{shown}");
    }

    #[test]
    fn shared_variables_rank_between_file_and_embody() {
        let file = "[telemetry]\notlp_url = \"http://file\"\nservice_name = \"file\"\n";
        let shared = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://shared:4318"),
            (
                "OTEL_EXPORTER_OTLP_HEADERS",
                "authorization=Bearer%20a%2Cb, x-team = blue,broken,bad name=1,y=%zz",
            ),
            ("OTEL_SERVICE_NAME", "shared"),
        ];
        let config = load(file, &shared).unwrap();
        assert_eq!(
            (url(&config), config.telemetry.service_name.as_str()),
            (Some("http://shared:4318"), "shared")
        );
        let headers: Vec<(&str, &str)> =
            config.telemetry.headers.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
        assert_eq!(headers, [("authorization", "Bearer a,b"), ("x-team", "blue")]);
        assert_eq!(config.origin("telemetry.otlp_url").to_string(), "env OTEL_EXPORTER_OTLP_ENDPOINT");
        // Credentials are not sent to another collector.
        let secret = format!("{file}headers = {{ x-key = \"hunter2\" }}\n");
        assert!(load(&secret, &shared[..1]).unwrap().telemetry.headers.is_empty());
        let config = load(&secret, &shared[1..2]).unwrap();
        assert_eq!((url(&config), config.telemetry.headers.len()), (Some("http://file"), 1));
        let ours = [shared[0], ("EMBODY_TELEMETRY__OTLP_URL", "http://ours")];
        assert_eq!(url(&load(file, &ours).unwrap()), Some("http://ours"));
    }

    #[test]
    fn shared_variables_that_cannot_be_used_keep_nobody_from_running() {
        let good = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://shared:4317");
        for env in [
            vec![("OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4317")],
            vec![("OTEL_EXPORTER_OTLP_ENDPOINT", "")],
            vec![good, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")],
            vec![good, ("OTEL_TRACES_EXPORTER", "none")],
            vec![good, ("OTEL_SDK_DISABLED", "true")],
        ] {
            assert_eq!(url(&load("", &env).unwrap()), None, "{env:?}");
        }
        let env = [good, ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"), ("OTEL_TRACES_EXPORTER", "otlp")];
        assert_eq!(url(&load("", &env).unwrap()), Some("http://shared:4317"));
    }

    #[test]
    fn what_is_wrong_is_told_and_secrets_are_not() {
        for (text, words) in [
            (
                "otlp_url = \"collector:4318\"",
                "`telemetry.otlp_url` is `collector:4318`, which is not an http://",
            ),
            ("service_name = \" \"", "`telemetry.service_name` is"),
            ("sample_percent = 101", "telemetry.sample_percent"),
            ("headers = { \"a b\" = \"hunter2\" }", "is not the name of a header"),
            ("headers = { a = \"hunter2\\n\" }", "the value of `telemetry.headers.a` cannot be sent"),
        ] {
            let error = load(&format!("[telemetry]\n{text}\n"), &[]).unwrap_err();
            let told = format!("{} {:?}", error.message(), error.hints());
            assert!(told.contains(words) && !told.contains("hunter2"), "{text}: {told}");
        }
    }
}
