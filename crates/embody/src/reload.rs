//! Reads the configuration again while `embody up` or `embody mcp` runs: when its file changes, and when `embody reload` asks.
//! Applies all of it or nothing. Keeps the configuration of before if the new one is invalid or its file is gone, and says so in
//! the process's file, where `embody status`, `embody reload` and the console find it.

use std::ffi::OsStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use embody_agent::model::{FailureLog, ModelTimes};
use embody_agent::turn::Agent;
use embody_broker::Broker;
use embody_wire::server::CancellationToken;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;
use tokio::sync::watch;

use crate::app;
use crate::broker_setup::SettingsBuilder;
use crate::config::settings::Config;
use crate::config::{FILE_NAME, Inputs};
use crate::error::{CliError, ErrorContext};
use crate::processes::{self, ConfigurationState, Process, ProcessFile};
use crate::prompt_service::PromptService;
use crate::settings::Settings;
use crate::time::rfc3339;

/// For the names of changed files.
const EVENT_BYTES: usize = 4096;
/// The name that a mounted configuration replaces instead of its files.
const MOUNTED: &str = "..data";

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
    started_at: SystemTime,
    own: Mutex<Own>,
    one_at_a_time: tokio::sync::Mutex<()>,
}

struct Own {
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
        let mut file = ProcessFile::create(&inputs.workspace);
        file.write(&process(command, &state));
        Arc::new(Self {
            command,
            inputs,
            prompts: Arc::clone(prompts),
            broker: Arc::clone(broker),
            builder,
            agent,
            started,
            started_at: SystemTime::now(),
            own: Mutex::new(Own { state, file }),
            one_at_a_time: tokio::sync::Mutex::default(),
        })
    }

    pub(crate) fn state(&self) -> ConfigurationState {
        self.own().state.clone()
    }

    /// Reads the configuration and applies it if it is valid.
    pub(crate) async fn reload(&self) -> ConfigurationState {
        let _one = self.one_at_a_time.lock().await;
        let request = processes::requested(&self.inputs.workspace);
        let applied = self.load_and_apply().await;
        let mut own = self.own();
        own.state.request = request;
        match applied {
            Ok(changed) => {
                own.state.problem = None;
                own.state.needs_restart =
                    fixed_changes(&self.started.config, &self.prompts.settings().config);
                if !changed.is_empty() {
                    tracing::info!(changed = changed.join(", "), "the configuration was reloaded");
                    (own.state.changed, own.state.loaded_at) = (changed, now());
                }
            }
            Err(error) => {
                let (problem, hint) = error.summary();
                tracing::warn!(
                    reason = problem,
                    hint,
                    "the configuration was not reloaded; the one of before is in force"
                );
                own.state.problem = Some(problem);
            }
        }
        let process = process(self.command, &own.state);
        own.file.write(&process);
        own.state.clone()
    }

    /// Returns what has changed.
    async fn load_and_apply(&self) -> Result<Vec<String>, CliError> {
        let inputs = self.inputs.clone();
        let before = self.prompts.settings();
        // The file may be on a slow disk.
        let loaded = tokio::task::spawn_blocking(move || Config::load(inputs)).await;
        let config = loaded.context("the configuration could not be read")??;
        if before.config.file.is_some() && config.file.is_none() {
            return Err(CliError::new(format!("`{}` no longer exists", file(&self.inputs).display()))
                .hint("restore the file, or stop this process"));
        }
        let settings = Arc::new(Settings { workspace: before.workspace.clone(), config });
        let broker = self.builder.build(&settings)?;
        let agent = app::agent_settings(&settings.config, ModelTimes::default(), FailureLog::Warn)?;
        // The key of the model may have changed, which the configuration only names.
        if let Some(own) = &self.agent {
            own.apply(agent);
        }
        let changed = changes(&before.config, &settings.config);
        if !changed.is_empty() {
            self.prompts.apply(settings).await;
            self.broker.apply(broker);
        }
        Ok(changed)
    }

    fn own(&self) -> MutexGuard<'_, Own> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reloads whenever the file changes or `embody reload` asks, until the process ends.
    pub(crate) async fn watch(self: Arc<Self>, ending: CancellationToken) {
        let mut changes = match changes_of_file(&self.inputs) {
            Ok(changes) => changes,
            Err(error) => {
                return tracing::warn!(reason = %error, "changes of the configuration are not noticed: the system cannot watch its folder");
            }
        };
        // The file may have changed between its first reading and the watch.
        let changed_at = std::fs::metadata(file(&self.inputs)).and_then(|found| found.modified());
        if changed_at.is_ok_and(|changed_at| changed_at >= self.started_at) {
            self.reload().await;
        }
        loop {
            tokio::select! {
                () = ending.cancelled() => return,
                changed = changes.changed() => match changed {
                    Ok(()) => drop(self.reload().await),
                    Err(_) => return tracing::warn!("changes of the configuration are no longer noticed"),
                },
            }
        }
    }
}

fn process(command: &str, state: &ConfigurationState) -> Process {
    Process {
        command: command.to_owned(),
        pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
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

/// Counts what may be changes of the configuration. Watches its folder, because editors and mounts replace files, and the one
/// with the requests to reload it.
fn changes_of_file(inputs: &Inputs) -> io::Result<watch::Receiver<u64>> {
    let file = file(inputs);
    let events = inotify::init(CreateFlags::CLOEXEC)?;
    // A file that is still being written is not read.
    let flags = WatchFlags::CLOSE_WRITE | WatchFlags::MOVED_TO;
    inotify::add_watch(&events, file.parent().unwrap_or(Path::new("/")), flags)?;
    if let Ok(target) = file.canonicalize()
        && let Some(folder) = target.parent()
    {
        inotify::add_watch(&events, folder, flags)?;
    }
    // Without the folder there are no requests.
    let _ = inotify::add_watch(&events, processes::folder(&inputs.workspace), flags);
    let (sender, receiver) = watch::channel(0);
    let names = [file.file_name().unwrap_or_default().to_owned(), MOUNTED.into(), processes::REQUEST.into()];
    // It ends with the process, or with the first event without a listener.
    std::thread::Builder::new().name("configuration".to_owned()).spawn(move || {
        let mut buffer = [MaybeUninit::uninit(); EVENT_BYTES];
        let mut reader = inotify::Reader::new(&events, &mut buffer);
        while !sender.is_closed() {
            match reader.next() {
                Ok(event) => {
                    let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()));
                    if name.is_some_and(|name| names.iter().any(|ours| ours == name)) {
                        sender.send_modify(|count| *count += 1);
                    }
                }
                Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }
    })?;
    Ok(receiver)
}
