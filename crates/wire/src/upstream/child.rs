//! A server that is a process of ours: started with little of our environment, ended with everything it started.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

use crate::error::Error;

/// The last lines of stderr that are kept, and how long each may be.
const KEPT_LINES: usize = 50;
const LINE_BYTES: u64 = 1000;

const LAST_WORDS: Duration = Duration::from_millis(200);

/// How a process is started.
#[derive(Clone)]
pub struct ChildSpec {
    /// The program.
    pub program: OsString,
    /// Its arguments. They may be secrets and are never shown.
    pub arguments: Vec<OsString>,
    /// All of its environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Its working folder.
    pub folder: Option<PathBuf>,
}

impl std::fmt::Debug for ChildSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}`", self.program.display())
    }
}

/// A running process with its group. Dropping it kills the group.
#[derive(Debug)]
pub(super) struct Child {
    process: tokio::process::Child,
    group: Option<Pid>,
    errors: Errors,
    /// Reads stderr to its end.
    keeper: Option<JoinHandle<()>>,
}

/// The last lines of stderr.
pub(super) type Errors = Arc<Mutex<VecDeque<String>>>;

impl Child {
    /// Starts it; its streams are the caller's.
    pub(super) fn start(spec: &ChildSpec) -> Result<(Self, (ChildStdout, ChildStdin)), Error> {
        let mut command = Command::new(&spec.program);
        command
            .args(&spec.arguments)
            .env_clear()
            .envs(spec.environment.iter().map(|(name, value)| (name, value)));
        if let Some(folder) = &spec.folder {
            command.current_dir(folder);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|source| Error::Start { program: spec.program.display().to_string(), source })?;
        let group = process.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let errors = Errors::default();
        let keeper = process.stderr.take().map(|stderr| tokio::spawn(keep(stderr, Arc::clone(&errors))));
        let streams = process.stdout.take().zip(process.stdin.take());
        let child = Self { process, group, errors, keeper };
        streams.map(|streams| (child, streams)).ok_or(Error::Protocol("the process has no streams"))
    }

    pub(super) fn kept(&self) -> Errors {
        Arc::clone(&self.errors)
    }

    /// Its process id, while it runs.
    pub(super) fn id(&self) -> Option<u32> {
        self.process.id()
    }

    /// Waits for its end; in words, how it ended.
    pub(super) async fn ended(&mut self) -> String {
        match self.process.wait().await {
            Ok(status) => {
                // What it started may still run. Its own number may soon be another's.
                self.signal(Signal::KILL);
                self.group = None;
                // Its last words, unless somebody else holds on to its stderr.
                if let Some(keeper) = self.keeper.take() {
                    let _ = tokio::time::timeout(LAST_WORDS, keeper).await;
                }
                status.to_string()
            }
            Err(error) => error.to_string(),
        }
    }

    /// Ends it: its input must be closed already. It gets this long, then the same again after SIGTERM, then it is
    /// killed with everything it started.
    pub(super) async fn end(mut self, patience: Duration) {
        if tokio::time::timeout(patience, self.process.wait()).await.is_err() {
            self.signal(Signal::TERM);
            let _ = tokio::time::timeout(patience, self.process.wait()).await;
        }
        self.signal(Signal::KILL);
        let _ = self.process.wait().await;
        self.group = None;
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // No such group: everything has ended.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

pub(super) fn lines(errors: &Errors) -> Vec<String> {
    errors.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
}

/// Keeps the last lines, and reads on: a process that cannot write to stderr stops.
async fn keep(stderr: ChildStderr, kept: Errors) {
    let mut reader = BufReader::new(stderr);
    loop {
        let mut line = Vec::new();
        match (&mut reader).take(LINE_BYTES).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT_LINES {
            kept.pop_front();
        }
        kept.push_back(String::from_utf8_lossy(&line).trim_end().to_owned());
    }
}
