//! From the configuration to a broker: which servers are behind it, how they are reached, what they get of this machine.

use std::ffi::OsString;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use embody_broker::gate::MindDown;
use embody_broker::policy::Glob;
use embody_broker::upstream::{BodySpec, Role, Spec};
use embody_broker::{Principal, Rules, Setup, SpecSource, Times};
use embody_mind::server::{MindServer, Principal as MindPrincipal};
use embody_store::{Scope, Store};
use embody_wire::serve::{Ending, lines};
use embody_wire::upstream::guard::GuardSpec;
use embody_wire::upstream::{ChildSpec, Connect, Fresh, Route, TokenSource};
use embody_wire::{Limits, Secret, Url};
use tokio::sync::watch;

use crate::cli::Context;
use crate::config::choices;
use crate::config::resolved::{Body, CommandLine, Dialect, Upstream};
use crate::contract::Voice;
use crate::failure::Failure;
use crate::{policy, token};

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
const PIPE_BYTES: usize = 256 * 1024;
/// The word that makes this program a guard of another one.
pub(crate) const GUARD: &str = "__guard";

/// Everything that a broker is made of.
pub(crate) fn setup(
    context: &Context,
    store: Store,
    voice: &Arc<Voice>,
    agent: &str,
) -> Result<Setup, Failure> {
    let config = &context.config;
    let rules = policy::of(config)?;
    let bodies: Result<Vec<SpecSource>, Failure> =
        config.bodies.iter().map(|body| Ok(SpecSource::fixed(Arc::new(body_spec(body)?)))).collect();
    Ok(Setup {
        mind: mind(context, &store, voice, agent)?,
        bodies: bodies?,
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
            ..Times::default()
        },
        clock: Box::new(|| jiff::Timestamp::now().as_microsecond()),
        agent: agent.to_owned(),
        store,
    })
}

/// The mind that is configured, or the embedded one: a pipe of its own for each session.
fn mind(context: &Context, store: &Store, voice: &Arc<Voice>, agent: &str) -> Result<SpecSource, Failure> {
    let spec = |route, tokens| Spec {
        name: "mind".to_owned(),
        role: Role::Mind,
        route,
        tokens,
        limits: Limits::default(),
        call_timeout: CALL,
    };
    if let Some(upstream) = &context.config.mind.upstream {
        let (route, tokens) = route(upstream, "mind", Vec::new(), None)?;
        return Ok(SpecSource::fixed(Arc::new(spec(route, tokens))));
    }
    let clock = {
        let voice = Arc::clone(voice);
        move |scope: &Scope| voice.now(scope)
    };
    let server = MindServer::new(store.clone(), voice.source(), agent.to_owned(), clock);
    Ok(SpecSource::new(move |principal: &Principal| {
        let (service, principal) = (server.service(), principal.clone());
        Arc::new(spec(
            Route::Streams(Connect::new(move || {
                let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
                let service = Arc::clone(&service);
                // Names that are none do not get as far as a session.
                if let Ok(broker) = MindPrincipal::broker(&principal.user, &principal.agent) {
                    tokio::spawn(async move {
                        let (_switch, ending) = Ending::new();
                        let _ = lines::serve(
                            service,
                            broker,
                            tokio::io::split(theirs),
                            Limits::default(),
                            ending,
                        )
                        .await;
                    });
                }
                tokio::io::split(ours)
            })),
            None,
        ))
    }))
}

fn body_spec(body: &Body) -> Result<Spec, Failure> {
    let env = body.env.iter().map(|(name, value)| (name.into(), value.expose().into())).collect();
    let (route, tokens) = route(&body.upstream, &body.name, env, body.cwd.clone())?;
    let globs = |patterns: &[String]| patterns.iter().map(|pattern| Glob::new(pattern)).collect();
    Ok(Spec {
        name: body.name.clone(),
        role: Role::Body(BodySpec {
            allow: globs(&body.allow),
            deny: globs(&body.deny),
            observes: body.observes,
            trust_annotations: body.trust_annotations,
            forward_methods: body.forward_methods.clone(),
            sampling: matches!(body.sampling, choices::Sampling::Allow),
        }),
        route,
        tokens,
        limits: Limits::default(),
        call_timeout: CALL,
    })
}

fn route(
    upstream: &Upstream,
    name: &str,
    env: Vec<(OsString, OsString)>,
    folder: Option<std::path::PathBuf>,
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
                guard: Some(guard(&command.program)),
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
            Ok((route, token_command.clone().map(tokens)))
        }
    }
}

/// This very program, also when its file was replaced meanwhile.
fn guard(of: &str) -> GuardSpec {
    GuardSpec {
        program: "/proc/self/exe".into(),
        name: "embody".into(),
        // The second is for whoever reads a list of processes.
        arguments: vec![GUARD.into(), of.into()],
    }
}

/// Runs the command for the first token, and again when that one is refused.
fn tokens(command: CommandLine) -> TokenSource {
    let purse = Arc::new(Purse { command, held: Mutex::default() });
    TokenSource::new(move |fresh| {
        let purse = Arc::clone(&purse);
        async move { purse.fetch(fresh).await }
    })
}

/// The token of one server. The command may take longer than an attempt to connect: whoever gives up leaves it running,
/// and the next one finds what came of it.
struct Purse {
    command: CommandLine,
    held: Mutex<Held>,
}

type Minted = Option<Result<Secret, String>>;

#[derive(Default)]
struct Held {
    token: Option<Secret>,
    /// The command that runs, or what came of it as long as nobody has heard that.
    minting: Option<watch::Receiver<Minted>>,
}

impl Purse {
    async fn fetch(self: &Arc<Self>, fresh: Fresh) -> Result<Secret, String> {
        let mut minting = {
            let mut held = self.held();
            match (&held.minting, fresh, &held.token) {
                (Some(minting), ..) => minting.clone(),
                (None, Fresh::Any, Some(token)) => return Ok(token.clone()),
                _ => {
                    let minting = self.mint();
                    *held = Held { token: None, minting: Some(minting.clone()) };
                    minting
                }
            }
        };
        let minted = minting.wait_for(Option::is_some).await.ok().and_then(|minted| minted.clone());
        let minted = minted.unwrap_or_else(|| Err("the token command was not run to its end".to_owned()));
        let mut held = self.held();
        if held.minting.as_ref().is_some_and(|other| other.same_channel(&minting)) {
            *held = Held { token: minted.clone().ok(), minting: None };
        }
        minted
    }

    fn mint(self: &Arc<Self>) -> watch::Receiver<Minted> {
        let (done, minting) = watch::channel(None);
        let purse = Arc::clone(self);
        tokio::spawn(async move {
            let minted = token::mint(&purse.command, token::LIMIT).await;
            done.send_replace(Some(minted.map_err(|error| error.to_string())));
        });
        minting
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A command that notes that it runs, and prints how often it did, once it may.
    fn slow(folder: &std::path::Path, ending: &str) -> Arc<Purse> {
        let script = format!(
            "cd {} && echo x >> runs && until [ -e go ]; do sleep 0.02; done; {ending}",
            folder.display()
        );
        let command = CommandLine { program: "sh".into(), args: vec!["-c".into(), script] };
        Arc::new(Purse { command, held: Mutex::default() })
    }

    /// Asks, and gives up when the command runs.
    async fn give_up(purse: &Arc<Purse>, folder: &std::path::Path) {
        let runs = async {
            while !folder.join("runs").exists() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            _ = purse.fetch(Fresh::Any) => panic!("it may not end yet"),
            () = runs => {}
        }
    }

    // spec: B-07
    #[tokio::test]
    async fn a_token_that_comes_too_late_is_there_for_the_next_attempt() {
        let folder = tempfile::tempdir().unwrap();
        let purse = slow(folder.path(), "wc -l < runs");
        give_up(&purse, folder.path()).await;
        std::fs::write(folder.path().join("go"), "").unwrap();
        assert_eq!(purse.fetch(Fresh::Any).await.unwrap().expose(), "1", "it ran on, and ran once");
        assert_eq!(purse.fetch(Fresh::Any).await.unwrap().expose(), "1", "it is kept");
        assert_eq!(purse.fetch(Fresh::New).await.unwrap().expose(), "2", "it was refused");
        assert_eq!(purse.fetch(Fresh::Any).await.unwrap().expose(), "2");
    }

    #[tokio::test]
    async fn a_failure_that_comes_too_late_is_heard_once() {
        let folder = tempfile::tempdir().unwrap();
        let purse = slow(folder.path(), "[ $(wc -l < runs) -gt 1 ] && echo good");
        give_up(&purse, folder.path()).await;
        std::fs::write(folder.path().join("go"), "").unwrap();
        assert!(purse.fetch(Fresh::Any).await.unwrap_err().contains("failed"));
        assert_eq!(purse.fetch(Fresh::Any).await.unwrap().expose(), "good");
    }
}
