//! Builds the configuration of the broker: its upstreams, how they are reached, which environment they inherit, and its policy.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use embody_broker::catalogue::CatalogueCache;
use embody_broker::meter::Meter;
use embody_broker::policy::{Condition, Glob, Policy, Rule, WrongCondition};
use embody_broker::upstream::{BodySpec, BodyUsers, IdleShutdown, RawTool, Role, Roots, Spec};
use embody_broker::{
    BrokerConfig, BrokerSettings, CurrentSettings, InstructionsMode, Rules, Timeouts, UpstreamFactory,
};
use embody_mind::server::MindHandler;
use embody_store::{Principal, Store};
use embody_wire::upstream::reaper::{Reaper, ReaperSpec};
use embody_wire::upstream::{ChildSpec, EraCache, Route, TokenSource};
use embody_wire::{Limits, Proxies, Secret, Url};
use serde_json::json;

use crate::config::env::non_empty;
use crate::config::settings::{self, Body, Config, Sampling, Transport, Upstream};
use crate::embedded::Availability;
use crate::error::{CliError, ErrorContext};
use crate::prompt_service::PromptService;
use crate::settings::Settings;
use crate::{embedded, era_cache, token_cache};

/// The variables that child processes inherit, besides their `env`.
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
/// How long a call may take without any message from the upstream.
const CALL_TIMEOUT: Duration = Duration::from_secs(300);
/// The upstream name of the mind, embedded or remote.
pub(crate) const MIND: &str = "mind";
/// The upstream name of the embedded body.
pub(crate) const BODY: &str = "embody";
/// The argument that makes this program the reaper of child processes.
pub(crate) const REAPER_ARG: &str = "__guard";

/// The configuration of a broker, and what builds its settings again when the configuration changes.
pub(crate) fn build(
    prompts: &Arc<PromptService>,
    store: Store,
    agent: &str,
    meter: Arc<Meter>,
) -> Result<(BrokerConfig, SettingsBuilder), CliError> {
    let settings = prompts.settings();
    let reaper = reaper();
    let channels = embedded::channels(&settings.config);
    let builder = SettingsBuilder {
        embedded: embedded_body(&store, prompts, agent, channels),
        reaper: Arc::clone(&reaper),
        store: store.clone(),
        last: Mutex::default(),
    };
    let config = BrokerConfig {
        mind: mind(&settings.config, &store, prompts, agent, &reaper)?,
        settings: CurrentSettings::new(builder.build(&settings)?),
        rules: {
            let prompts = Arc::clone(prompts);
            Rules::new(move |scope| {
                let prompts = Arc::clone(&prompts);
                async move { prompts.rules(&scope).await.map_err(|failure| failure.summary().0) }
            })
        },
        catalogues: CatalogueCache::default(),
        meter,
        clock: Box::new(|| jiff::Timestamp::now().as_microsecond()),
        agent: agent.to_owned(),
        owner: prompts.owner().to_owned(),
        store,
    };
    Ok((config, builder))
}

/// Builds the settings of a broker from a configuration. A body that a change leaves as it is keeps its specification, and so
/// its server in open sessions.
pub(crate) struct SettingsBuilder {
    embedded: UpstreamFactory,
    reaper: Arc<Reaper>,
    store: Store,
    last: Mutex<Vec<(Arc<Settings>, Arc<Spec>)>>,
}

impl SettingsBuilder {
    pub(crate) fn build(&self, settings: &Arc<Settings>) -> Result<BrokerSettings, CliError> {
        let config = &settings.config;
        let rules = policy(config)?;
        let specs = self.specs(settings)?;
        let bodies = std::iter::once(self.embedded.clone());
        Ok(BrokerSettings {
            bodies: bodies.chain(specs.into_iter().map(UpstreamFactory::fixed)).collect(),
            policy: Arc::new(rules.policy),
            policy_version: rules.version,
            mind_down: config.policy.mind_down,
            times: Timeouts {
                observe: Duration::from_millis(config.mind.observe_timeout_ms.into()),
                ask_wait: Duration::from_secs(config.policy.ask_wait_s.into()),
                ask: Duration::from_secs(config.policy.ask_timeout_s.into()),
                contract_delay: Duration::from_millis(config.policy.contract_delay_ms.into()),
                receipts: Duration::from_secs(u64::from(config.prompt.keep_receipts_days) * 24 * 3600),
                ..Timeouts::default()
            },
            listing_limit: config.listing_limit(),
        })
    }

    fn specs(&self, settings: &Arc<Settings>) -> Result<Vec<Arc<Spec>>, CliError> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let unchanged = |body: &Body| {
            let is_same = |(known, spec): &&(Arc<Settings>, Arc<Spec>)| {
                spec.name == body.name && known.config.bodies.contains(body)
            };
            last.iter().find(is_same).map(|(_, spec)| Arc::clone(spec))
        };
        let spec = |body: &Body| match unchanged(body) {
            Some(spec) => Ok(spec),
            None => body_spec(body, &settings.config.proxies, &self.reaper, Some(&self.store)).map(Arc::new),
        };
        let specs = settings.config.bodies.iter().map(spec).collect::<Result<Vec<_>, _>>()?;
        *last = specs.iter().map(|spec| (Arc::clone(settings), Arc::clone(spec))).collect();
        Ok(specs)
    }
}

pub(crate) struct LoadedPolicy {
    pub(crate) policy: Policy,
    /// Differs whenever the rules or `mind_down` differ: an approval given under another policy is void.
    pub(crate) version: String,
}

/// Fails on an invalid `when`, which loading the configuration already rejects.
pub(crate) fn policy(config: &Config) -> Result<LoadedPolicy, CliError> {
    let rules = config.policy.rules.iter().map(rule).collect::<Result<Vec<_>, _>>();
    let rules = rules.map_err(|error| CliError::usage(&error))?;
    Ok(LoadedPolicy { policy: Policy::new(rules), version: policy_version(&config.policy) })
}

fn rule(rule: &settings::Rule) -> Result<Rule, WrongCondition> {
    Ok(Rule {
        tools: globs(&rule.tools),
        class: rule.class,
        gate: rule.gate,
        via: rule.via.clone(),
        when: rule.when.as_deref().map(Condition::new).transpose()?,
        reason: rule.reason.clone(),
    })
}

pub(crate) fn policy_version(policy: &settings::Policy) -> String {
    let rules: Vec<_> = policy
        .rules
        .iter()
        .map(|rule| json!([rule.tools, rule.class, rule.gate, rule.via, rule.when, rule.reason]))
        .collect();
    let all = json!([policy.mind_down, rules]).to_string();
    blake3::hash(all.as_bytes()).to_hex().to_string()
}

fn mind(
    config: &Config,
    store: &Store,
    prompts: &Arc<PromptService>,
    agent: &str,
    reaper: &Arc<Reaper>,
) -> Result<UpstreamFactory, CliError> {
    if let Some(upstream) = &config.mind.upstream {
        let (route, tokens) = route(upstream, MIND, (Vec::new(), None), reaper)?;
        let (proxies, era) = (config.proxies.clone(), era_cache::cache(store, MIND, &route));
        let spec = Spec { tokens, proxies, era, ..mind_spec(route, None) };
        return Ok(UpstreamFactory::fixed(Arc::new(spec)));
    }
    Ok(embedded_mind(embedded::mind(store, prompts, agent), Availability::new()))
}

/// The embedded mind, with one connection per session.
pub(crate) fn embedded_mind(
    service: Arc<embody_mcp::Server<MindHandler>>,
    presence: Availability,
) -> UpstreamFactory {
    // The same for all channels of a user: a change of the memories is announced to each of them.
    let admit = |principal: &Principal| {
        let scope = principal.scope.clone();
        Principal { is_broker: true, ..Principal::of(scope, "mcp") }
    };
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
        call_timeout: CALL_TIMEOUT,
        idle_shutdown: IdleShutdown::default(),
        tools,
        check: None,
        era: EraCache::default(),
    }
}

/// The embedded body with these channels to other people, with one connection per session.
pub(crate) fn embedded_body(
    store: &Store,
    prompts: &Arc<PromptService>,
    agent: &str,
    channels: Vec<String>,
) -> UpstreamFactory {
    let admit = |Principal { scope, channel, thread, shared_conversation, .. }: &Principal| Principal {
        thread: thread.clone(),
        shared_conversation: shared_conversation.clone(),
        is_broker: true,
        ..Principal::of(scope.clone(), channel)
    };
    let tools = embedded::tools(embody_body::server::tools(&channels));
    let service = embedded::body(store, prompts, agent, channels);
    embedded::upstream(service, Availability::new(), admit, move |route| Spec {
        name: BODY.to_owned(),
        role: embedded_role(),
        route,
        tokens: None,
        proxies: Proxies::default(),
        limits: Limits::default(),
        call_timeout: CALL_TIMEOUT,
        idle_shutdown: IdleShutdown::default(),
        tools: tools.clone(),
        check: None,
        era: EraCache::default(),
    })
}

/// The role of the embedded body: all tools are offered and its annotations are trusted. Its instructions are dropped,
/// because the contract and its tool definitions say the same.
pub(crate) fn embedded_role() -> Role {
    Role::Body(BodySpec {
        allow: vec![Glob::new("*")],
        trust_annotations: true,
        instructions: InstructionsMode::Drop,
        // It stores its rows by user.
        users: BodyUsers::All,
        ..BodySpec::default()
    })
}

/// Without a store the protocol era of the server is not remembered.
pub(crate) fn body_spec(
    body: &Body,
    proxies: &Proxies,
    reaper: &Arc<Reaper>,
    store: Option<&Store>,
) -> Result<Spec, CliError> {
    let (route, tokens) = route(&body.upstream, &body.name, (environment(body), body.cwd.clone()), reaper)?;
    let era = store.map(|store| era_cache::cache(store, &body.name, &route)).unwrap_or_default();
    Ok(Spec {
        name: body.name.clone(),
        role: role(body),
        route,
        tokens,
        proxies: proxies.clone(),
        limits: Limits::default(),
        call_timeout: CALL_TIMEOUT,
        idle_shutdown: IdleShutdown {
            start: body.start,
            idle_stop: (body.idle_stop_s > 0).then(|| Duration::from_secs(body.idle_stop_s.into())),
        },
        tools: None,
        check: None,
        era,
    })
}

/// The variables of a body that its command gets besides the inherited ones. Its own come last and win.
fn environment(body: &Body) -> Vec<(OsString, OsString)> {
    let passed = body.env_vars.iter().filter_map(|name| Some((name.into(), non_empty(name)?)));
    passed.chain(body.env.iter().map(|(name, value)| (name.into(), value.expose().into()))).collect()
}

pub(crate) fn usable_bodies<'a>(
    config: &'a Config,
    user: &str,
    owner: &str,
) -> impl Iterator<Item = &'a Body> {
    config.bodies.iter().filter(move |body| body.users.include(user, owner))
}

/// The names of the bodies that a user may see: `None` for the owner, who sees all, including those removed from the
/// configuration. Other users see those that they may use, the mind and the embedded body.
pub(crate) fn visible_bodies(config: &Config, user: &str, owner: &str) -> Option<Vec<String>> {
    let is_theirs = |body: &&Body| body.users.include(user, owner);
    let theirs = || config.bodies.iter().filter(is_theirs).map(|body| body.name.clone());
    (user != owner).then(|| theirs().chain(["embody", "mind"].map(str::to_owned)).collect())
}

fn globs(patterns: &[String]) -> Vec<Glob> {
    patterns.iter().map(|pattern| Glob::new(pattern)).collect()
}

pub(crate) fn role(body: &Body) -> Role {
    Role::Body(BodySpec {
        allow: globs(&body.allow),
        deny: globs(&body.deny),
        observes: body.observes,
        trust_annotations: body.trust_annotations == Some(true),
        arguments_max_bytes: Some(body.arguments_max_bytes),
        forward_methods: body.forward_methods.clone(),
        sampling: body.sampling == Sampling::Allow,
        roots: roots(body),
        instructions: body.instructions,
        users: body.users.clone(),
    })
}

/// With `auto`, a command that names a folder gets no roots: a server that takes the roots of its client would use them
/// instead of that folder.
fn roots(body: &Body) -> Roots {
    match &body.roots {
        settings::Roots::Folders(folders) => Roots::Replace(folders.clone()),
        settings::Roots::Forward => Roots::Forward,
        settings::Roots::Withhold => Roots::Withhold,
        settings::Roots::Auto => match &body.upstream {
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
    (env, folder): (Vec<(OsString, OsString)>, Option<PathBuf>),
    reaper: &Arc<Reaper>,
) -> Result<(Route, Option<TokenSource>), CliError> {
    match upstream {
        Upstream::Stdio { command } => {
            let inherited =
                INHERITED.iter().filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)));
            let route = Route::Child(ChildSpec {
                program: (&command.program).into(),
                arguments: command.args.iter().map(Into::into).collect(),
                secrets: env.iter().map(|(_, value)| Secret::new(value.to_string_lossy())).collect(),
                // The configured variables come last and win.
                environment: inherited.chain(env).collect(),
                folder,
                reaper: Some(Arc::clone(reaper)),
                stderr: None,
            });
            Ok((route, None))
        }
        Upstream::Remote { url, transport, token_command } => {
            let url = Url::parse(url.expose()).usage_context(format!("invalid URL for `{name}`"))?;
            let route = match transport {
                None => Route::Probe { url },
                Some(Transport::Sse) => Route::Sse { url },
                Some(_) => Route::Http { url },
            };
            Ok((route, token_command.clone().map(token_cache::token_source)))
        }
    }
}

/// Runs this program as the reaper, even if its file was replaced.
pub(crate) fn reaper() -> Arc<Reaper> {
    Reaper::new(ReaperSpec {
        program: "/proc/self/exe".into(),
        name: "embody".into(),
        arguments: vec![REAPER_ARG.into()],
        trouble: |message| tracing::warn!("{message}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Inputs;

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

    fn rules(text: &str) -> LoadedPolicy {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("embody.toml");
        std::fs::write(&file, text).unwrap();
        let inputs = Inputs {
            file: Some(file),
            workspace: PathBuf::from("nowhere"),
            env: Vec::new(),
            overrides: Vec::new(),
        };
        policy(&Config::load(inputs).unwrap()).unwrap()
    }

    #[test]
    fn another_policy_is_another_version() {
        let rule = "[[policy.rule]]\ntools = [\"send_*\"]\ngate = \"ask\"\n";
        let texts = [
            String::new(),
            "[policy]\nmind_down = \"warn\"".to_owned(),
            rule.to_owned(),
            rule.replace("ask", "deny"),
            rule.replace("send_*", "send"),
            format!("{rule}class = \"read\""),
            format!("{rule}via = [\"cli\"]"),
            format!("{rule}when = 'user == \"ann\"'"),
            format!("{rule}reason = \"because\""),
            format!("{rule}{rule}"),
        ];
        let mut versions: Vec<String> = texts.iter().map(|text| rules(text).version).collect();
        // How long a person has to answer does not change what they answer.
        for same in ["[log]\nlevel = \"debug\"", "[policy]\nask_wait_s = 7\nask_timeout_s = 301"] {
            assert_eq!(versions[0], rules(same).version);
        }
        versions.sort_unstable();
        versions.dedup();
        assert_eq!(versions.len(), texts.len());
    }
}
