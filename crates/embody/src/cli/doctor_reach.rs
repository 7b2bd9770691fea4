//! What `doctor` says about what is elsewhere: whether the model answers and takes its key, whether bodies and mind can be
//! started or answer, whether Telegram knows the bot. What cannot work as it is written fails; what is only away is a warning.
//! Starts nothing, and waits for nobody longer than a few seconds.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use embody_agent::model::{Looked, ModelError, ModelTimes, cause};
use embody_agent::telegram::ApiError;
use embody_wire::{Proxies, Url};
use futures_util::future::join_all;
use reqwest::Client;

use super::doctor::{Check, fail, ok, warn};
use super::{Context, Who};
use crate::config::address::Address;
use crate::config::env::non_empty;
use crate::config::origin::Origin;
use crate::config::resolved::{Body, CommandLine, Config, Upstream};
use crate::failure::Failure;
use crate::{channels, house, store};

/// How long each of them may take to answer; all are asked at once.
const WITHIN: Duration = Duration::from_secs(3);

/// Looks at everything that is configured.
pub(super) fn checks(context: &Context) -> Vec<Check> {
    let config = &context.config;
    let looked = store::block_on(async {
        let servers = join_all(config.bodies.iter().map(|body| server(body, config)));
        let (mut checks, mind, servers, telegram) =
            tokio::join!(model(config), mind(config), servers, telegram(config));
        checks.extend(mind);
        checks.extend(servers);
        checks.extend(telegram);
        Ok(checks)
    });
    looked.unwrap_or_else(|failure| vec![failed("model", &failure)])
}

fn failed(name: &'static str, failure: &Failure) -> Check {
    let (message, hint) = failure.in_short();
    fail(name, message, &hint)
}

async fn model(config: &Config) -> Vec<Check> {
    let settings = &config.model;
    let times = ModelTimes { connect: WITHIN, ..ModelTimes::default() };
    let model = match house::model(config, times) {
        Ok(Some(model)) => model,
        Ok(None) => {
            let (message, hint) = house::no_model(config).in_short();
            return vec![warn("model", message, &hint)];
        }
        Err(failure) => return vec![failed("model", &failure)],
    };
    let at = format!("{} at {}", model.name(), settings.base_url);
    let told = match model.look(WITHIN).await {
        Ok(Looked::Lists) => ok("model", at),
        Ok(Looked::Answers(status)) => warn(
            "model",
            format!(
                "{at} answers, but shows no list of models (status {status}): key and path are not tested"
            ),
            "if it does not work check `base_url` in `[model]`: for `openai` it ends with `/v1`, for `anthropic` it does not",
        ),
        Err(error) => {
            let (message, hint) = (error.to_string(), error.hint().unwrap_or_default());
            if matches!(error, ModelError::Unauthorized { .. }) {
                return vec![fail("model", message, &hint)];
            }
            warn("model", message, &hint)
        }
    };
    // Nobody has said whether a key is needed: lists are often public. On this machine it seldom is.
    let variable = &settings.api_key_env;
    let lacks_key = non_empty(variable).is_none() && !settings.base_url.is_here();
    let key = lacks_key.then(|| {
        let message =
            format!("the environment variable {variable} is not set: there is no key for the model");
        warn("key", message, "put the key into it, or name another with `api_key_env` in `[model]`")
    });
    [told].into_iter().chain(key).collect()
}

async fn mind(config: &Config) -> Option<Check> {
    let upstream = config.mind.upstream.as_ref()?;
    Some(match reachable(upstream, (None, None), &config.proxies).await {
        Ok(words) => ok("mind", words),
        Err((message, Why::Wrong)) => fail("mind", message, "check `[mind]` in embody.toml"),
        Err((message, Why::Away)) => warn("mind", message, "check that it runs, and `[mind] url`"),
        Err((message, Why::Elsewhere)) => warn("mind", message, "write the whole path into `[mind] command`"),
    })
}

async fn server(body: &Body, config: &Config) -> Check {
    let name = &body.name;
    let path = body.env.get("PATH").map(|path| OsStr::new(path.expose()));
    match reachable(&body.upstream, (body.cwd.as_deref(), path), &config.proxies).await {
        Ok(words) => ok("server", format!("{name}: {words}")),
        Err((message, Why::Wrong)) => fail(
            "server",
            format!("{name}: {message}"),
            &format!(
                "check `command` and `cwd` of the `[[body]]` `{name}`; a program without a `/` is looked for on PATH"
            ),
        ),
        Err((message, Why::Elsewhere)) => warn(
            "server",
            format!("{name}: {message}"),
            &format!("set `cwd` of the `[[body]]` `{name}`, or write the whole path into its `command`"),
        ),
        Err((message, Why::Away)) => warn(
            "server",
            format!("{name}: {message}"),
            &format!(
                "check that it runs, and `url` of the `[[body]]` `{name}`; its tools are missing meanwhile"
            ),
        ),
    }
}

/// Why something cannot be reached.
enum Why {
    /// It never can, as it is written.
    Wrong,
    /// It cannot now.
    Away,
    /// It depends on the folder that `embody` is started in.
    Elsewhere,
}

async fn reachable(
    upstream: &Upstream,
    (folder, path): (Option<&Path>, Option<&OsStr>),
    proxies: &Proxies,
) -> Result<String, (String, Why)> {
    match upstream {
        Upstream::Stdio { command } => {
            let is_relative = command.program.contains('/') && !command.program.starts_with('/');
            let found = find(command, folder, path).map_err(|message| match folder {
                None if is_relative => (format!("{message} in the folder that this runs in"), Why::Elsewhere),
                _ => (message, Why::Wrong),
            })?;
            Ok(format!("{} starts it", found.display()))
        }
        Upstream::Remote { url, .. } => {
            let away = |why: String| (format!("nobody answers at {url}: {why}"), Why::Away);
            answers(url, proxies).await.map_err(away)?;
            Ok(format!("{url} answers"))
        }
    }
}

/// The program's file, found as the system will find it.
fn find(command: &CommandLine, folder: Option<&Path>, path: Option<&OsStr>) -> Result<PathBuf, String> {
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        return Err(format!("there is no folder `{}` to start it in", folder.display()));
    }
    let program = &command.program;
    let inherited = std::env::var_os("PATH");
    let usual = OsStr::new("/bin:/usr/bin");
    let candidates: Vec<PathBuf> = if program.contains('/') {
        vec![folder.unwrap_or(Path::new("")).join(program)]
    } else {
        let path = path.or(inherited.as_deref()).unwrap_or(usual);
        std::env::split_paths(path).map(|folder| folder.join(program)).collect()
    };
    let files: Vec<PathBuf> = candidates.into_iter().filter(|file| file.is_file()).collect();
    match files.iter().find(|file| is_executable(file)) {
        Some(file) => Ok(file.clone()),
        None if files.is_empty() => Err(format!("there is no program `{program}`")),
        None => Err(format!("`{program}` is a file that may not be executed")),
    }
}

fn is_executable(file: &Path) -> bool {
    file.metadata().is_ok_and(|file| file.permissions().mode() & 0o111 != 0)
}

/// Whether anybody answers there, whatever they say. No token is sent, and no session is begun.
async fn answers(address: &Address, proxies: &Proxies) -> Result<(), String> {
    let url = Url::parse(address.expose()).map_err(|error| error.to_string())?;
    let builder = Client::builder()
        .timeout(WITHIN)
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false);
    let failed = |error: reqwest::Error| proxies.blame(&url, cause(&error));
    let client = proxies.pave(builder, &url).build().map_err(failed)?;
    let response = client.head(url.clone()).send().await.map_err(failed)?;
    // What a proxy says about a server that it does not reach.
    match response.status().as_u16() {
        status @ 502..=504 => Err(proxies.blame(&url, format!("status {status}"))),
        _ => Ok(()),
    }
}

async fn telegram(config: &Config) -> Option<Check> {
    const NAME: &str = "telegram";
    let variable = &config.telegram.token_env;
    let token = format!("check the bot's token in the environment variable {variable}");
    let who = Who { user: None, agent: None };
    let bot = match channels::bot(config, &who.user(), &who.agent()) {
        Ok(Some(bot)) => bot,
        Ok(None) => {
            let is_set = |key: &str| key.starts_with("telegram.");
            let is_wanted = config.keys.iter().any(|key| is_set(&key.key) && key.origin != Origin::Default);
            let message = format!("the environment variable {variable} is not set: there is no bot");
            return is_wanted.then(|| warn(NAME, message, "put the bot's token into it"));
        }
        Err(failure) => {
            let (message, _) = failure.in_short();
            return Some(fail(NAME, message, &token));
        }
    };
    let allowed = config.telegram.allow_users.len();
    Some(match tokio::time::timeout(WITHIN, bot.name()).await {
        Ok(Ok(name)) if allowed == 0 => warn(
            NAME,
            format!("@{name}, and nobody may write to it"),
            "put the numbers of those who may into `allow_users` in `[telegram]`",
        ),
        Ok(Ok(name)) => ok(NAME, format!("@{name}; {allowed} may write to it")),
        // An API says 404 to a token that it does not know.
        Ok(Err(error @ ApiError::Refused { status: 401 | 404, .. })) => {
            fail(NAME, error.to_string(), &format!("{token}, and `api_url` in `[telegram]`"))
        }
        Ok(Err(ApiError::Lost(why))) => warn(
            NAME,
            format!("Telegram does not answer: {why}"),
            "check `api_url` in `[telegram]` and the way to it",
        ),
        Ok(Err(error)) => warn(NAME, error.to_string(), "check `api_url` in `[telegram]` and the way to it"),
        Err(_) => warn(
            NAME,
            format!("no answer from {} within {WITHIN:?}", config.telegram.api_url),
            "check `api_url` in `[telegram]` and the way to it",
        ),
    })
}
