//! Whether a configured server works: starts or connects to it, lists its tools and ends it. The same check for
//! `embody server test`, `server add` and `embody doctor`. Records nothing.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use embody_broker::upstream::{self, CheckError, CheckErrorKind, CheckedServer};
use embody_store::Store;
use embody_wire::upstream::TokenSource;
use embody_wire::upstream::reaper::Reaper;
use embody_wire::{Kind, Proxies};

use crate::broker_setup;
use crate::config::env::non_empty;
use crate::config::settings::{Body, CommandLine, Upstream};
use crate::token_cache::{TOKEN_COMMAND_TIMEOUT, run_token_command};

/// How many lines of a server's stderr are shown.
pub(crate) const STDERR_LINES: usize = 12;

/// Why a server does not work, and what to do.
#[derive(Debug)]
pub(crate) struct ServerFailure {
    pub(crate) kind: FailureKind,
    pub(crate) message: String,
    pub(crate) hint: String,
    /// The last lines of its stderr.
    pub(crate) stderr: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureKind {
    Misconfigured,
    /// Depends on the current directory of `embody`.
    RelativePath,
    /// The process ended before it answered: a crash, or a package that does not exist.
    Ended,
    Unauthorized,
    /// It may work later.
    Unreachable,
    Timeout,
    /// It answers, but not as an MCP server with tools.
    Protocol,
}

impl FailureKind {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Misconfigured => "misconfigured",
            Self::RelativePath => "relative_path",
            Self::Ended => "ended",
            Self::Unauthorized => "unauthorized",
            Self::Unreachable => "unreachable",
            Self::Timeout => "timeout",
            Self::Protocol => "protocol",
        }
    }
}

pub(crate) struct CheckSettings<'a> {
    pub(crate) proxies: &'a Proxies,
    pub(crate) reaper: &'a Arc<Reaper>,
    /// Its memory of the servers' protocol era.
    pub(crate) store: Option<&'a Store>,
    pub(crate) limit: Duration,
}

/// Starts or connects to the server and lists its tools; nothing of it runs when this returns.
pub(crate) async fn check(body: &Body, settings: &CheckSettings<'_>) -> Result<CheckedServer, ServerFailure> {
    let fail =
        |kind, message: String, hint: String| ServerFailure { kind, message, hint, stderr: Vec::new() };
    let invalid = |error: crate::error::CliError| {
        let (message, hint) = error.summary();
        fail(FailureKind::Misconfigured, message, hint)
    };
    let mut spec =
        broker_setup::body_spec(body, settings.proxies, settings.reaper, settings.store).map_err(invalid)?;
    match &body.upstream {
        Upstream::Stdio { command } => check_command(body, command)?,
        Upstream::Remote { token_command: Some(command), .. } => {
            let limit = TOKEN_COMMAND_TIMEOUT.min(settings.limit);
            let token = run_token_command(command, limit).await.map_err(|error| {
                let hint = "run the command in a shell: it must print the token, and nothing else";
                fail(FailureKind::Unauthorized, crate::error::chain_text(&error), hint.to_owned())
            })?;
            spec.tokens = Some(TokenSource::fixed(token));
        }
        Upstream::Remote { .. } => {}
    }
    upstream::check(&spec, settings.limit).await.map_err(|error| describe(body, error, settings.limit))
}

fn check_command(body: &Body, command: &CommandLine) -> Result<(), ServerFailure> {
    let fail = |kind, message, hint| ServerFailure { kind, message, hint, stderr: Vec::new() };
    let section = section(body);
    if let Some(variable) = body.env_vars.iter().find(|variable| non_empty(variable).is_none()) {
        let message = format!("the environment variable {variable} is not set, and `env_vars` passes it on");
        let hint = format!("set it where `embody` is started, or remove it from {section}");
        return Err(fail(FailureKind::Misconfigured, message, hint));
    }
    let is_relative = command.program.contains('/') && !command.program.starts_with('/');
    let from_env = body.env.get("PATH").map(|path| OsString::from(path.expose()));
    let folder = body.cwd.as_deref();
    let found = find_program(command, folder, from_env.as_deref());
    found.map(drop).map_err(|message| {
        if folder.is_none() && is_relative {
            let hint = format!("set `cwd` of {section}, or use an absolute path in its `command`");
            return fail(FailureKind::RelativePath, format!("{message} in the current folder"), hint);
        }
        let install = match command.program.as_str() {
            "npx" | "npm" | "node" => "; `npx` comes with Node.js: https://nodejs.org",
            "uvx" | "uv" => "; `uvx` comes with uv: https://docs.astral.sh/uv",
            "docker" => "; `docker` comes with Docker: https://docs.docker.com",
            _ => "",
        };
        let hint = format!(
            "check `command` and `cwd` of {section}; a program without a `/` is searched on PATH{install}"
        );
        fail(FailureKind::Misconfigured, message, hint)
    })
}

/// The file of the program, searched as the system does.
fn find_program(
    command: &CommandLine,
    folder: Option<&Path>,
    path: Option<&OsStr>,
) -> Result<PathBuf, String> {
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        return Err(format!("the folder `{}` does not exist", folder.display()));
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
        None if files.is_empty() => Err(format!("program `{program}` not found")),
        None => Err(format!("`{program}` is not executable")),
    }
}

fn is_executable(file: &Path) -> bool {
    file.metadata().is_ok_and(|file| file.permissions().mode() & 0o111 != 0)
}

fn describe(body: &Body, error: CheckError, limit: Duration) -> ServerFailure {
    let section = section(body);
    let CheckError { kind, reason, stderr } = error;
    let (kind, hint) = match kind {
        CheckErrorKind::Ended => (FailureKind::Ended, ended_hint(&stderr, &section)),
        CheckErrorKind::Timeout | CheckErrorKind::Connect(Kind::Timeout) => {
            let hint = match &body.upstream {
                Upstream::Stdio { .. } => format!(
                    "run `command` of {section} in a shell: it must read MCP from stdin; `embody server test --timeout SECONDS` waits longer than {} s",
                    limit.as_secs()
                ),
                Upstream::Remote { .. } => {
                    format!("check that the server is running, and `url` of {section}")
                }
            };
            (FailureKind::Timeout, hint)
        }
        CheckErrorKind::Connect(Kind::Unauthorized) => (FailureKind::Unauthorized, credentials_hint(body)),
        CheckErrorKind::Connect(Kind::Unreachable) => match &body.upstream {
            Upstream::Stdio { .. } => {
                (FailureKind::Misconfigured, format!("check `command` and `cwd` of {section}"))
            }
            Upstream::Remote { .. } => {
                let hint = format!(
                    "check that the server is running, and `url` of {section}; until then its tools are missing"
                );
                (FailureKind::Unreachable, hint)
            }
        },
        CheckErrorKind::Connect(_) | CheckErrorKind::List | CheckErrorKind::Broker => {
            let hint = match &body.upstream {
                Upstream::Stdio { .. } => {
                    format!("check that `command` of {section} starts an MCP server on stdin and stdout")
                }
                Upstream::Remote { .. } => {
                    format!(
                        "check `url` of {section}: it is where an MCP server answers, often with `/mcp` at its end"
                    )
                }
            };
            (FailureKind::Protocol, hint)
        }
    };
    let message = match &body.upstream {
        Upstream::Remote { url, .. } if matches!(kind, FailureKind::Unreachable | FailureKind::Timeout) => {
            format!("{url} does not answer: {reason}")
        }
        _ => reason,
    };
    let skip = stderr.len().saturating_sub(STDERR_LINES);
    ServerFailure { kind, message, hint, stderr: stderr.into_iter().skip(skip).collect() }
}

/// How messages name the part of the configuration.
fn section(body: &Body) -> String {
    match body.name.as_str() {
        broker_setup::MIND => "`[mind]`".to_owned(),
        name => format!("the `[[body]]` `{name}`"),
    }
}

fn credentials_hint(body: &Body) -> String {
    let section = section(body);
    match &body.upstream {
        Upstream::Remote { token_command: Some(_), .. } => {
            format!("the token that `token_command` of {section} prints is refused: get a new one")
        }
        Upstream::Remote { .. } => format!(
            "set `token_command` of {section} to a command that prints a token, such as [\"pass\", \"show\", \"NAME\"]"
        ),
        Upstream::Stdio { .. } => format!("check `env` and `env_vars` of {section}"),
    }
}

/// What package runners and interpreters print when there is nothing to run.
fn ended_hint(stderr: &[String], section: &str) -> String {
    const NO_PACKAGE: [&str; 6] = [
        "E404",
        "404 Not Found",
        "No solution found",
        "was not found in the package registry",
        "Could not find a version",
        "pull access denied",
    ];
    const NO_FILE: [&str; 4] = ["Cannot find module", "No such file", "No module named", "can't open file"];
    let says = |words: &[&str]| stderr.iter().any(|line| words.iter().any(|word| line.contains(word)));
    if says(&NO_PACKAGE) {
        return format!("the package does not seem to exist: check its name in `command` of {section}");
    }
    if says(&NO_FILE) {
        return format!("a file or module is missing: check the paths in `command` of {section}");
    }
    format!("run `command` of {section} in a shell: it must wait for input, and not end")
}

/// The program or the URL. The arguments of a command may contain secrets.
pub(crate) fn target(body: &Body) -> String {
    match &body.upstream {
        Upstream::Stdio { command } if command.args.is_empty() => command.program.clone(),
        Upstream::Stdio { command } => format!("{} …", command.program),
        Upstream::Remote { url, .. } => url.to_string(),
    }
}
