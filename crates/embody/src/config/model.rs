//! Checks `[model]`: its URL, the variable with its key, and consistent timeouts. Does not connect.

use std::time::Duration;

use super::check::Checks;
use super::origin::KeyPath;
use super::raw;
use super::resolved::{Model, ModelTimeouts};

/// Returns `None` only if a problem was reported.
pub(super) fn resolve(raw: raw::Model, checks: &mut Checks<'_>) -> Option<Model> {
    let section = KeyPath::dotted("model");
    let timeouts = timeouts(&section, &raw, checks);
    let base_url = raw.base_url.unwrap_or_else(|| raw.provider.base_url().to_owned());
    let base_url = checks.http(&section.key("base_url"), &base_url);
    let api_key_env = raw.api_key_env.unwrap_or_else(|| raw.provider.api_key_env().to_owned());
    let api_key_env = checks.variable_name(&section.key("api_key_env"), &api_key_env);
    Some(Model {
        provider: raw.provider,
        model: checks.filled(&section.key("model"), raw.model),
        base_url: base_url?,
        api_key_env: api_key_env?,
        native_tools: raw.native_tools,
        max_output_tokens: raw.max_output_tokens,
        timeouts,
    })
}

fn timeouts(section: &KeyPath, raw: &raw::Model, checks: &mut Checks<'_>) -> ModelTimeouts {
    let connect = ("connect_timeout_s", raw.connect_timeout_s);
    let first_byte = ("first_byte_timeout_s", raw.first_byte_timeout_s);
    let idle = ("idle_timeout_s", raw.idle_timeout_s);
    let retry = ("retry_s", raw.retry_s);
    let total = ("total_timeout_s", raw.total_timeout_s);
    let of_an_answer = "a part of an answer cannot take longer than the whole";
    for (part, whole, hint) in [
        (connect, first_byte, "the time for the first byte includes the time for the connection"),
        (connect, total, of_an_answer),
        (first_byte, total, of_an_answer),
        (idle, total, of_an_answer),
        (retry, total, "the whole time includes all attempts"),
    ] {
        let ((key, Some(part)), (whole_key, Some(whole))) = (part, whole) else { continue };
        if part > whole {
            let (path, whole_path) = (section.key(key), section.key(whole_key));
            let message = format!("`{path}` is `{part}`, which is longer than `{whole_path}`, `{whole}`");
            checks.fail(&path, message, Some(hint));
        }
    }
    let seconds = |seconds: u32| Duration::from_secs(seconds.into());
    ModelTimeouts {
        connect: raw.connect_timeout_s.map(seconds),
        first_byte: raw.first_byte_timeout_s.map(seconds),
        idle: raw.idle_timeout_s.map(seconds),
        total: raw.total_timeout_s.map(seconds),
        retrying: raw.retry_s.map(seconds),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Config, ConfigError, Inputs};
    use super::*;

    fn load(text: &str) -> Result<Config, ConfigError> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("embody.toml");
        std::fs::write(&file, format!("[model]\n{text}\n")).unwrap();
        let workspace = folder.path().to_owned();
        Config::load(Inputs { file: Some(file), workspace, env: Vec::new(), overrides: Vec::new() })
    }

    #[test]
    fn each_time_is_in_seconds() {
        let timeouts = load("").unwrap().model.timeouts;
        let all = |timeouts: ModelTimeouts| {
            [timeouts.connect, timeouts.first_byte, timeouts.idle, timeouts.total, timeouts.retrying]
        };
        assert_eq!(all(timeouts), [None; 5]);
        let text = "connect_timeout_s = 1\nfirst_byte_timeout_s = 900\nidle_timeout_s = 30\ntotal_timeout_s = 86400\nretry_s = 0";
        let timeouts = load(text).unwrap().model.timeouts;
        assert_eq!(all(timeouts), [1, 900, 30, 86_400, 0].map(|seconds| Some(Duration::from_secs(seconds))));
    }

    #[test]
    fn what_is_out_of_bounds_is_told() {
        for (text, words) in [
            ("connect_timeout_s = 0", "`model.connect_timeout_s` is `0`, but must be from 1 to 600"),
            ("first_byte_timeout_s = 0", "`model.first_byte_timeout_s` is `0`, but must be from 1 to 86400"),
            ("idle_timeout_s = -1", "`model.idle_timeout_s` is `-1`, but must be from 1 to 86400"),
            ("total_timeout_s = 86401", "`model.total_timeout_s` is `86401`, but must be from 1 to 86400"),
            ("retry_s = 3601", "`model.retry_s` is `3601`, but must be from 0 to 3600"),
            ("total_timeout_s = 1.5", "`model.total_timeout_s` is `1.5`, but must be a whole number"),
            ("idle_timeout_s = \"1m\"", "`model.idle_timeout_s` is `\"1m\"`, but must be a whole number"),
            (
                "first_byte_timeout_s = 61\ntotal_timeout_s = 60",
                "`model.first_byte_timeout_s` is `61`, which is longer than `model.total_timeout_s`, `60`",
            ),
            (
                "idle_timeout_s = 61\ntotal_timeout_s = 60",
                "`model.idle_timeout_s` is `61`, which is longer than `model.total_timeout_s`, `60`",
            ),
            (
                "connect_timeout_s = 61\nfirst_byte_timeout_s = 60",
                "`model.connect_timeout_s` is `61`, which is longer than `model.first_byte_timeout_s`, `60`",
            ),
            (
                "connect_timeout_s = 61\ntotal_timeout_s = 60",
                "`model.connect_timeout_s` is `61`, which is longer than `model.total_timeout_s`, `60`",
            ),
            (
                "retry_s = 61\ntotal_timeout_s = 60",
                "`model.retry_s` is `61`, which is longer than `model.total_timeout_s`, `60`",
            ),
        ] {
            let error = load(text).unwrap_err();
            assert!(error.message().contains(words), "{text}: {}", error.message());
        }
        for text in [
            "connect_timeout_s = 60\nfirst_byte_timeout_s = 60\nidle_timeout_s = 60\nretry_s = 60\ntotal_timeout_s = 60",
            "first_byte_timeout_s = 1",
            "total_timeout_s = 1",
            "connect_timeout_s = 600",
            "retry_s = 3600",
        ] {
            load(text).unwrap();
        }
    }
}
