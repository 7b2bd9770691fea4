//! Reads the configuration again while `embody up` or `embody mcp` runs: when its file changes, and when `embody reload` asks.
//! Applies all of it or nothing. Keeps the previous configuration if the new one is invalid or its file is gone, and says so in
//! the process's file, where `embody status`, `embody reload` and the console find it.

use std::ffi::OsStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use embody_agent::model::{FailureLog, ModelTimes};
use embody_agent::turn::Agent;
use embody_broker::Broker;
use embody_wire::server::CancellationToken;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::app;
use crate::broker_setup::SettingsBuilder;
use crate::config::settings::Config;
use crate::config::tree::Origin;
use crate::config::{FILE_NAME, Inputs};
use crate::error::{CliError, ErrorContext};
use crate::processes::{self, ConfigurationState, Process, ProcessFile};
use crate::prompt_service::PromptService;
use crate::settings::Settings;
use crate::time::rfc3339;

/// A file that was not changed for this long is complete.
const SETTLE: Duration = Duration::from_millis(50);
const SETTLE_ROUNDS: u32 = 20;
/// For the names of changed files.
const EVENT_BYTES: usize = 4096;
/// The name that a mounted configuration replaces instead of its files.
const MOUNTED: &str = "..data";
/// A file that is still being written is not read.
const WATCHED: WatchFlags = WatchFlags::CLOSE_WRITE
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM);

pub(crate) struct Reloader {
    /// `up` or `mcp`.
    command: &'static str,
    inputs: Inputs,
    prompts: Arc<PromptService>,
    broker: Arc<Broker>,
    builder: Arc<SettingsBuilder>,
    /// `None` if the process only serves hosts.
    agent: Option<Agent>,
    /// What the process began with: some settings are never applied to a running process.
    started: Arc<Settings>,
    published: Mutex<Published>,
    one_at_a_time: tokio::sync::Mutex<()>,
}

/// What other commands see of this process.
struct Published {
    state: ConfigurationState,
    file: ProcessFile,
}

impl Reloader {
    pub(crate) fn new(
        command: &'static str,
        inputs: Inputs,
        (prompts, broker, builder): (&Arc<PromptService>, &Arc<Broker>, Arc<SettingsBuilder>),
        agent: Option<Agent>,
    ) -> Arc<Self> {
        let started = prompts.settings();
        let state = ConfigurationState {
            file: file(&inputs),
            loaded_at: now(),
            request: processes::requested(&inputs.workspace),
            ..ConfigurationState::default()
        };
        let file = ProcessFile::create(&inputs.workspace, &process(command, &state));
        Arc::new(Self {
            command,
            inputs,
            prompts: Arc::clone(prompts),
            broker: Arc::clone(broker),
            builder,
            agent,
            started,
            published: Mutex::new(Published { state, file }),
            one_at_a_time: tokio::sync::Mutex::default(),
        })
    }

    pub(crate) fn state(&self) -> ConfigurationState {
        self.status().state.clone()
    }

    /// Reads the configuration and applies it if it is valid.
    pub(crate) async fn reload(&self) -> ConfigurationState {
        let _one = self.one_at_a_time.lock().await;
        let request = processes::requested(&self.inputs.workspace);
        let applied = self.load_and_apply().await;
        self.status().state.request = request;
        self.publish(applied)
    }

    async fn report_removal(&self) {
        let _one = self.one_at_a_time.lock().await;
        if self.prompts.settings().config.file.is_some() {
            self.publish(Err(self.missing_file()));
        }
    }

    fn missing_file(&self) -> CliError {
        CliError::new(format!("`{}` no longer exists", file(&self.inputs).display()))
            .hint("restore the file, or stop this process")
    }

    fn publish(&self, applied: Result<Vec<String>, CliError>) -> ConfigurationState {
        let mut status = self.status();
        let Published { state, file } = &mut *status;
        match applied {
            Ok(changed) => {
                state.problem = None;
                state.needs_restart = fixed_changes(&self.started.config, &self.prompts.settings().config);
                if !changed.is_empty() {
                    tracing::info!(changed = changed.join(", "), "the configuration was reloaded");
                    (state.changed, state.loaded_at) = (changed, now());
                }
            }
            Err(error) => {
                let (problem, hint) = error.summary();
                tracing::warn!(
                    reason = problem,
                    hint,
                    "the configuration was not reloaded; the previous configuration is in force"
                );
                state.problem = Some(problem);
            }
        }
        file.write(&process(self.command, state));
        state.clone()
    }

    /// Returns what has changed.
    async fn load_and_apply(&self) -> Result<Vec<String>, CliError> {
        let inputs = self.inputs.clone();
        let before = self.prompts.settings();
        // The file may be on a slow disk.
        let loaded = tokio::task::spawn_blocking(move || Config::load(inputs)).await;
        let config = loaded.context("the configuration could not be read")??;
        if before.config.file.is_some() && config.file.is_none() {
            return Err(self.missing_file());
        }
        // A program that writes the file anew begins with an empty one.
        if sets_keys(&before.config) && !sets_keys(&config) {
            return Err(CliError::new(format!("`{}` sets no key any more", file(&self.inputs).display()))
                .hint("restore the file; to run without settings, start this process again"));
        }
        let settings = Arc::new(Settings { workspace: before.workspace.clone(), config });
        // Without an agent, the file of the model's key does not matter.
        let agent_settings =
            || app::agent_settings(&settings.config, ModelTimes::default(), FailureLog::Warn);
        let agent =
            self.agent.as_ref().map(|agent| Ok::<_, CliError>((agent, agent_settings()?))).transpose()?;
        // The last that can fail: it remembers the bodies as applied.
        let broker = self.builder.build(&settings)?;
        let changed = changes(&before.config, &settings.config);
        if !changed.is_empty() {
            self.broker.apply(broker);
            self.prompts.apply(settings);
        }
        // The key of the model may have changed, which the configuration only names.
        if let Some((agent, settings)) = agent {
            agent.apply(settings);
        }
        Ok(changed)
    }

    fn status(&self) -> MutexGuard<'_, Published> {
        self.published.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reloads whenever the file changes or `embody reload` asks, until the process ends.
    pub(crate) async fn watch(self: Arc<Self>, ending: CancellationToken) {
        let mut changes = match changes_of_file(&self.inputs) {
            Ok(changes) => changes,
            Err(error) => {
                return tracing::warn!(reason = %error, "changes of the configuration are not noticed: the system cannot watch its folder");
            }
        };
        let mut count = 0;
        // The file may have changed, and `embody reload` may have asked, before the watch.
        self.reload().await;
        loop {
            tokio::select! {
                () = ending.cancelled() => return,
                changed = changes.changed() => if changed.is_err() {
                    return tracing::warn!("changes of the configuration are no longer noticed");
                },
            }
            // A file may be written in several steps.
            for _ in 0..SETTLE_ROUNDS {
                if timeout(SETTLE, changes.changed()).await.is_err() {
                    break;
                }
            }
            let before = std::mem::replace(&mut count, *changes.borrow_and_update());
            if count == before {
                self.report_removal().await;
            } else {
                self.reload().await;
            }
        }
    }
}

fn process(command: &str, state: &ConfigurationState) -> Process {
    Process {
        command: command.to_owned(),
        pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        id: String::new(),
        configuration: state.clone(),
    }
}

fn now() -> String {
    rfc3339(jiff::Timestamp::now().as_microsecond())
}

/// The file that the configuration is read from, also if it does not exist.
pub(crate) fn file(inputs: &Inputs) -> PathBuf {
    let file = inputs.file.clone().unwrap_or_else(|| inputs.workspace.join(FILE_NAME));
    std::path::absolute(&file).unwrap_or(file)
}

/// Whether these are paths of one file, which may not exist.
pub(crate) fn is_same_file(one: &Path, other: &Path) -> bool {
    let resolve = |path: &Path| {
        path.canonicalize().or_else(|_| {
            let folder = path.parent().unwrap_or(Path::new("/")).canonicalize()?;
            io::Result::Ok(folder.join(path.file_name().unwrap_or_default()))
        })
    };
    one == other || matches!((resolve(one), resolve(other)), (Ok(one), Ok(other)) if one == other)
}

fn sets_keys(config: &Config) -> bool {
    config.keys.iter().any(|key| matches!(key.origin, Origin::File { .. }))
}

/// The sections that differ, and the bodies by name.
fn changes(before: &Config, after: &Config) -> Vec<String> {
    let bodies = after.bodies.iter().filter(|body| !before.bodies.contains(body));
    let is_gone = |name: &str| !after.bodies.iter().any(|body| body.name == name);
    let gone = before.bodies.iter().filter(|body| is_gone(&body.name));
    let names = bodies.chain(gone).map(|body| format!("body {}", body.name));
    let sections = [
        ("prompt", before.prompt != after.prompt),
        ("persona", before.persona != after.persona),
        ("sandbox", before.sandbox != after.sandbox),
        ("store", before.store != after.store),
        ("mind", before.mind != after.mind),
        ("tools", before.tools != after.tools),
        ("policy", before.policy != after.policy),
        ("model", before.model != after.model),
        ("prices", before.prices != after.prices),
        ("budget", before.budget != after.budget),
        ("telegram", before.telegram != after.telegram),
        ("telemetry", before.telemetry != after.telemetry),
        ("audience", before.audience != after.audience),
        ("log", before.log != after.log),
    ];
    let sections = sections.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name.to_owned());
    sections.chain(names).collect()
}

/// The sections that a running process does not apply.
fn fixed_changes(started: &Config, after: &Config) -> Vec<String> {
    let sections = [
        ("store", started.store != after.store),
        ("mind", started.mind.upstream != after.mind.upstream),
        ("telegram", started.telegram != after.telegram),
        ("telemetry", started.telemetry != after.telemetry),
        ("log", started.log != after.log),
    ];
    sections.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name.to_owned()).collect()
}

/// Counts what may be new content of the configuration, and notifies without counting when its file is gone: then there is
/// nothing to read, and a new file may be incomplete. Watches folders, because editors and mounts replace files.
fn changes_of_file(inputs: &Inputs) -> io::Result<watch::Receiver<u64>> {
    let mut file = WatchedFile::new(file(inputs))?;
    // Without the folder there are no requests.
    let _ = inotify::add_watch(&file.events, processes::folder(&inputs.workspace), WATCHED);
    let (sender, receiver) = watch::channel(0);
    // It ends with the process, or with the first event without a listener.
    std::thread::Builder::new().name("configuration".to_owned()).spawn(move || {
        let events = Arc::clone(&file.events);
        let mut buffer = [MaybeUninit::uninit(); EVENT_BYTES];
        let mut reader = inotify::Reader::new(&*events, &mut buffer);
        while !sender.is_closed() {
            match reader.next().map(|event| file.change(&event)) {
                Ok(Change::Written) => {
                    file.follow_link();
                    sender.send_modify(|count| *count += 1);
                }
                Ok(Change::Removed) => sender.send_modify(|_| ()),
                Ok(Change::Other) | Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }
    })?;
    Ok(receiver)
}

struct WatchedFile {
    events: Arc<OwnedFd>,
    file: PathBuf,
    /// The number of the watch of its folder.
    folder: i32,
    /// What the file is a link to, or the file.
    target: PathBuf,
}

enum Change {
    Other,
    Removed,
    /// The configuration may be another one, or `embody reload` asks.
    Written,
}

impl WatchedFile {
    fn new(file: PathBuf) -> io::Result<Self> {
        let events = Arc::new(inotify::init(CreateFlags::CLOEXEC)?);
        let folder = inotify::add_watch(&events, file.parent().unwrap_or(Path::new("/")), WATCHED)?;
        let mut watched = Self { events, folder, target: file.clone(), file };
        watched.follow_link();
        Ok(watched)
    }

    fn follow_link(&mut self) {
        if let Ok(target) = self.file.canonicalize()
            && let Some(folder) = target.parent()
            && target != self.target
        {
            if let Err(error) = inotify::add_watch(&self.events, folder, WATCHED) {
                tracing::warn!(reason = %error, "changes of the file that the configuration is a link to are not noticed");
            }
            self.target = target;
        }
    }

    fn change(&self, event: &inotify::Event<'_>) -> Change {
        // Without a name, the system has dropped events or a folder is gone.
        let Some(name) = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes())) else {
            return Change::Written;
        };
        let ours = [self.file.file_name(), self.target.file_name()];
        if !(ours.contains(&Some(name)) || name == MOUNTED || name == processes::REQUEST) {
            return Change::Other;
        }
        let flags = event.events();
        let is_written = if flags.intersects(ReadFlags::DELETE | ReadFlags::MOVED_FROM) {
            match self.file.try_exists() {
                Ok(false) => return Change::Removed,
                // Another event follows.
                Ok(true) | Err(_) => false,
            }
        } else {
            // A new link is complete, a new file is not.
            let is_the_file = event.wd() == self.folder && Some(name) == self.file.file_name();
            !flags.contains(ReadFlags::CREATE) || is_the_file && self.file.is_symlink()
        };
        if is_written { Change::Written } else { Change::Other }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn paths_of_one_file_are_the_same_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::create_dir(path("real")).unwrap();
        std::fs::write(path("other.toml"), "").unwrap();
        symlink(path("real"), path("link")).unwrap();
        for exists in [false, true] {
            if exists {
                std::fs::write(path("real/embody.toml"), "").unwrap();
            }
            for other in ["real/embody.toml", "link/embody.toml", "real/../real/embody.toml"] {
                assert!(is_same_file(&path("real/embody.toml"), &path(other)), "{other}, exists: {exists}");
            }
            assert!(!is_same_file(&path("real/embody.toml"), &path("other.toml")));
        }
    }
}
