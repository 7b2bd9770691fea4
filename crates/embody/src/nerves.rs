//! From the configuration to a broker: which servers are behind it, how they are reached, what they get of this machine.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use embody_body::server::{BodyOffer, Principal as BodyPrincipal};
use embody_broker::catalogue::{Catalogues, Shelf};
use embody_broker::gate::MindDown;
use embody_broker::meter::Meter;
use embody_broker::policy::Glob;
use embody_broker::upstream::{BodySpec, BodyUsers, RawTool, Rest, Role, Roots, Spec, Start};
use embody_broker::{InstructionsMode, Principal, Rules, Setup, SpecSource, Times};
use embody_mind::server::{MindOffer, Principal as MindPrincipal};
use embody_store::Store;
use embody_wire::upstream::guard::{Guard, GuardSpec};
use embody_wire::upstream::{ChildSpec, EraCache, Route, TokenSource};
use embody_wire::{Limits, Proxies, Secret, Url};

use crate::cli::{Context, Who};
use crate::config::choices;
use crate::config::resolved::{Body, Config, Dialect, Roots as GivenRoots, Tools, Upstream};
use crate::contract::Voice;
use crate::embedded::Presence;
use crate::failure::Failure;
use crate::{embedded, eras, policy, purse};

/// What a process behind us gets of our environment, besides what its `env` says.
const INHERITED: [&str; 16] = [
    "HOME",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "LOGNAME",
    "PATH",
    "SHELL",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_CACHE_HOME",
    "XDG_RUNTIME_DIR",
];
/// How long a call to a body may be without a word.
const CALL: Duration = Duration::from_secs(300);
/// The name of the mind, whichever it is.
pub(crate) const MIND: &str = "mind";
/// The name of the embedded body; no other has it.
pub(crate) const BODY: &str = "embody";
/// The word that makes this program a guard of others.
pub(crate) const GUARD: &str = "__guard";

/// Everything that a broker is made of.
pub(crate) fn setup(
    context: &Context,
    store: Store,
    voice: &Arc<Voice>,
    agent: &str,
    meter: Arc<Meter>,
) -> Result<Setup, Failure> {
    let config = &context.config;
    let rules = policy::of(config)?;
    let guard = guard();
    let mut bodies = vec![own_body(embedded::body(&store, voice, agent))];
    for body in &config.bodies {
        bodies.push(SpecSource::fixed(Arc::new(body_spec(body, &config.proxies, &guard, &store)?)));
    }
    Ok(Setup {
        mind: mind(context, &store, voice, agent, &guard)?,
        bodies,
        policy: rules.policy,
        policy_version: rules.version,
        mind_down: match config.policy.mind_down {
            choices::MindDown::Block => MindDown::Block,
            choices::MindDown::Warn => MindDown::Warn,
        },
        rules: {
            let voice = Arc::clone(voice);
            Rules::new(move |scope| {
                let voice = Arc::clone(&voice);
                async move { voice.rules(&scope).await.map_err(|failure| failure.in_short().0) }
            })
        },
        times: Times {
            observe: config.mind.observe_timeout,
            ask_wait: config.policy.ask_wait,
            ask: config.policy.ask_timeout,
            contract_delay: config.policy.contract_delay,
            receipts: config.prompt.keep_receipts,
            ..Times::default()
        },
        shelf: shelf(config),
        catalogues: Catalogues::default(),
        meter,
        clock: Box::new(|| jiff::Timestamp::now().as_microsecond()),
        agent: agent.to_owned(),
        owner: voice.owner().to_owned(),
        store,
    })
}

/// The mind that is configured, or the embedded one.
fn mind(
    context: &Context,
    store: &Store,
    voice: &Arc<Voice>,
    agent: &str,
    guard: &Arc<Guard>,
) -> Result<SpecSource, Failure> {
    if let Some(upstream) = &context.config.mind.upstream {
        let (route, tokens) = route(upstream, MIND, (Vec::new(), None), guard)?;
        let (proxies, era) = (context.config.proxies.clone(), eras::cache(store, MIND, &route));
        let spec = Spec { tokens, proxies, era, ..mind_spec(route, None) };
        return Ok(SpecSource::fixed(Arc::new(spec)));
    }
    Ok(own_mind(embedded::mind(store, voice, agent), Presence::new()))
}

/// The embedded mind, a pipe of its own for each session.
pub(crate) fn own_mind(service: Arc<embody_mcp::Server<MindOffer>>, presence: Presence) -> SpecSource {
    let admit = |principal: &Principal| MindPrincipal::broker(&principal.user, &principal.agent).ok();
    let tools = embedded::tools(embody_mind::server::tools());
    embedded::upstream(service, presence, admit, move |route| mind_spec(route, tools.clone()))
}

fn mind_spec(route: Route, tools: Option<Arc<[RawTool]>>) -> Spec {
    Spec {
        name: MIND.to_owned(),
        role: Role::Mind,
        route,
        tokens: None,
        proxies: Proxies::default(),
        limits: Limits::default(),
        call_timeout: CALL,
        rest: Rest::default(),
        tools,
        era: EraCache::default(),
    }
}

/// The embedded body, a pipe of its own for each session.
pub(crate) fn own_body(service: Arc<embody_mcp::Server<BodyOffer>>) -> SpecSource {
    let admit = |Principal { user, agent, channel, room, .. }: &Principal| {
        let principal = BodyPrincipal::broker(user, agent, channel).ok()?;
        Some(principal.in_room(room.clone()))
    };
    let tools = embedded::tools(embody_body::server::tools());
    embedded::upstream(service, Presence::new(), admit, move |route| Spec {
        name: BODY.to_owned(),
        role: embedded_role(),
        route,
        tokens: None,
        proxies: Proxies::default(),
        limits: Limits::default(),
        call_timeout: CALL,
        rest: Rest::default(),
        tools: tools.clone(),
        era: EraCache::default(),
    })
}

/// What holds for the embedded body: all of it is offered, and what it says of its tools counts. The contract and its tool
/// definitions say what its instructions would.
pub(crate) fn embedded_role() -> Role {
    Role::Body(BodySpec {
        allow: vec![Glob::new("*")],
        trust_annotations: true,
        instructions: InstructionsMode::Drop,
        // Its rows are kept by user.
        users: BodyUsers::All,
        ..BodySpec::default()
    })
}

fn body_spec(body: &Body, proxies: &Proxies, guard: &Arc<Guard>, store: &Store) -> Result<Spec, Failure> {
    let env = body.env.iter().map(|(name, value)| (name.into(), value.expose().into())).collect();
    let (route, tokens) = route(&body.upstream, &body.name, (env, body.cwd.clone()), guard)?;
    let era = eras::cache(store, &body.name, &route);
    Ok(Spec {
        name: body.name.clone(),
        role: role(body),
        route,
        tokens,
        proxies: proxies.clone(),
        limits: Limits::default(),
        call_timeout: CALL,
        rest: rest(body),
        tools: None,
        era,
    })
}

/// The bodies that this user may use.
pub(crate) fn bodies_of<'a>(config: &'a Config, user: &str) -> impl Iterator<Item = &'a Body> {
    let owner = Who::owner();
    config.bodies.iter().filter(move |body| body.users.include(user, &owner))
}

/// The bodies that a user knows of: `None` for the owner, who knows of all, also of those that were removed from the configuration.
/// Other users know of those that they may use, and of the runtime's own.
pub(crate) fn bodies_seen_by(config: &Config, user: &str, owner: &str) -> Option<Vec<String>> {
    let is_theirs = |body: &&Body| body.users.include(user, owner);
    let theirs = || config.bodies.iter().filter(is_theirs).map(|body| body.name.clone());
    (user != owner).then(|| theirs().chain(["embody", "mind"].map(str::to_owned)).collect())
}

/// When a body runs.
fn rest(body: &Body) -> Rest {
    let start = match body.start {
        choices::Start::Eager => Start::Eager,
        choices::Start::Lazy => Start::Lazy,
    };
    Rest { start, idle_stop: body.idle_stop }
}

/// Which tools hosts are shown.
pub(crate) fn shelf(config: &Config) -> Shelf {
    let Tools { max_listed, always_listed } = &config.tools;
    Shelf { max_listed: *max_listed, always: globs(always_listed) }
}

fn globs(patterns: &[String]) -> Vec<Glob> {
    patterns.iter().map(|pattern| Glob::new(pattern)).collect()
}

/// What becomes of a body's instructions.
pub(crate) fn instructions_mode(body: &Body) -> InstructionsMode {
    match body.instructions {
        choices::Instructions::Rules => InstructionsMode::Rules,
        choices::Instructions::Data => InstructionsMode::Data,
        choices::Instructions::Drop => InstructionsMode::Drop,
    }
}

/// What the operator says about a body.
pub(crate) fn role(body: &Body) -> Role {
    Role::Body(BodySpec {
        allow: globs(&body.allow),
        deny: globs(&body.deny),
        observes: body.observes,
        trust_annotations: body.trust_annotations,
        arguments_max_bytes: Some(body.arguments_max_bytes),
        forward_methods: body.forward_methods.clone(),
        sampling: matches!(body.sampling, choices::Sampling::Allow),
        roots: roots(body),
        instructions: instructions_mode(body),
        users: body.users.clone(),
    })
}

/// Which roots a body is given. A command that names a folder has been given its own: a server that takes its client's roots
/// would work in those instead.
fn roots(body: &Body) -> Roots {
    match &body.roots {
        GivenRoots::Folders(folders) => Roots::Replace(folders.clone()),
        GivenRoots::Host(choices::Roots::Forward) => Roots::Forward,
        GivenRoots::Host(choices::Roots::Withhold) => Roots::Withhold,
        GivenRoots::Host(choices::Roots::Auto) => match &body.upstream {
            Upstream::Stdio { command } if names_folder(&command.args, body.cwd.as_deref()) => {
                Roots::Withhold
            }
            Upstream::Stdio { .. } | Upstream::Remote { .. } => Roots::Forward,
        },
    }
}

/// Whether one of the arguments, or the value of one like `--root=VALUE`, is a folder.
fn names_folder(arguments: &[String], cwd: Option<&Path>) -> bool {
    let values = arguments.iter().map(|argument| match argument.split_once('=') {
        Some((name, value)) if name.starts_with('-') => value,
        _ => argument,
    });
    let mut values = values.filter(|value| !value.is_empty());
    values.any(|value| cwd.unwrap_or(Path::new("")).join(value).is_dir())
}

fn route(
    upstream: &Upstream,
    name: &str,
    (env, folder): (Vec<(OsString, OsString)>, Option<std::path::PathBuf>),
    guard: &Arc<Guard>,
) -> Result<(Route, Option<TokenSource>), Failure> {
    match upstream {
        Upstream::Stdio { command } => {
            let inherited =
                INHERITED.iter().filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)));
            let route = Route::Child(ChildSpec {
                program: (&command.program).into(),
                arguments: command.args.iter().map(Into::into).collect(),
                secrets: env.iter().map(|(_, value)| Secret::new(value.to_string_lossy())).collect(),
                // What the operator says comes last, and wins.
                environment: inherited.chain(env).collect(),
                folder,
                guard: Some(Arc::clone(guard)),
            });
            Ok((route, None))
        }
        Upstream::Remote { url, dialect, token_command } => {
            let url = Url::parse(url.expose()).map_err(|error| {
                Failure::usage(format!("the address of `{name}` is none")).because(&error)
            })?;
            let route = match dialect {
                Dialect::Http => Route::Http { url },
                Dialect::Sse => Route::Sse { url },
                Dialect::Guessed => Route::Guess { url },
            };
            Ok((route, token_command.clone().map(purse::tokens)))
        }
    }
}

/// This very program, also when its file was replaced meanwhile.
fn guard() -> Arc<Guard> {
    Guard::new(GuardSpec {
        program: "/proc/self/exe".into(),
        name: "embody".into(),
        arguments: vec![GUARD.into()],
        trouble: |words| tracing::warn!("{words}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_names_a_folder_by_an_argument_or_the_value_of_one() {
        let cwd = tempfile::tempdir().unwrap();
        std::fs::create_dir(cwd.path().join("notes")).unwrap();
        std::fs::write(cwd.path().join("file"), "").unwrap();
        let absolute = cwd.path().join("notes").display().to_string();
        let names = |argument: &str| names_folder(&["-y".to_owned(), argument.to_owned()], Some(cwd.path()));
        for folder in [absolute.as_str(), "notes", ".", "--root=notes", &format!("--root={absolute}")] {
            assert!(names(folder), "{folder}");
        }
        for other in ["", "file", "missing", "--root=", "--root=file", "root=notes", "https://h/notes"] {
            assert!(!names(other), "{other}");
        }
    }
}
