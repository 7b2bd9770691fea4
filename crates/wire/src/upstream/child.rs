//! A server that runs as a child process: started with a minimal environment, watched until it exits, ended together with its
//! process group when the link closes.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::unix::pipe::Receiver;
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::reaper::{Reaper, Watch};
use crate::error::Error;
use crate::secret::Secret;

/// How many lines of stderr are kept, and how long each may be.
const KEPT_LINES: usize = 50;
const LINE_BYTES: usize = 1000;
/// Read buffer for stderr, in bytes.
const ERRORS_AT_ONCE: usize = 1024;
/// Shorter values are not masked: masking `1` would garble every line.
const SECRET_MIN_BYTES: usize = 4;

const DRAIN_TIMEOUT: Duration = Duration::from_millis(200);
const LAST_LINE_MAX_CHARS: usize = 200;

#[derive(Clone)]
pub struct ChildSpec {
    pub program: OsString,
    /// May contain secrets, so they are never displayed.
    pub arguments: Vec<OsString>,
    pub environment: Vec<(OsString, OsString)>,
    pub folder: Option<PathBuf>,
    /// The secrets of its environment, masked in the kept stderr lines.
    pub secrets: Vec<Secret>,
    /// Kills the process when ours is killed. Without a reaper the process must exit by itself when its input closes.
    pub reaper: Option<Arc<Reaper>>,
    /// Receives the last stderr lines of every process started from this value, also if no session is opened with it.
    pub stderr: Option<StderrTail>,
}

/// The last lines that a process wrote to stderr, with secrets masked.
#[derive(Clone, Debug, Default)]
pub struct StderrTail(Arc<Mutex<VecDeque<String>>>);

impl StderrTail {
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    fn push(&self, line: String) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT_LINES {
            kept.pop_front();
        }
        kept.push_back(line);
    }
}

impl std::fmt::Debug for ChildSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}`", self.program.display())
    }
}

/// A running process with its process group. Dropping it kills the group.
#[derive(Debug)]
struct Child {
    process: tokio::process::Child,
    group: Option<Pid>,
    watch: Option<Watch>,
    errors: StderrTail,
    keeper: JoinHandle<()>,
}

impl Child {
    fn start(spec: &ChildSpec) -> Result<(Self, (ChildStdout, ChildStdin)), Error> {
        let failed = |source| Error::Start { program: spec.program.display().to_string(), source };
        let (stderr_read, stderr_write) = std::io::pipe().map_err(failed)?;
        let stderr_read = File::from(OwnedFd::from(stderr_read));
        let number = stderr_read.metadata().map_err(failed)?.ino();
        let watch = spec.reaper.as_ref().map(|reaper| reaper.watch(number)).transpose()?;
        let stderr_read = Receiver::from_owned_fd(stderr_read.into()).map_err(failed)?;
        let mut command = Command::new(&spec.program);
        command
            .args(&spec.arguments)
            .env_clear()
            .envs(spec.environment.iter().map(|(name, value)| (name, value)));
        if let Some(folder) = &spec.folder {
            command.current_dir(folder);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr_write);
        let mut process = command.process_group(0).kill_on_drop(true).spawn().map_err(failed)?;
        let group = process.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        if let Some((watch, group)) = watch.as_ref().zip(group) {
            watch.leads(group);
        }
        let errors = spec.stderr.clone().unwrap_or_default();
        let keeper = tokio::spawn(keep(stderr_read, errors.clone(), Mask::new(&spec.secrets)));
        let streams = process.stdout.take().zip(process.stdin.take());
        let child = Self { process, group, watch, errors, keeper };
        streams.map(|streams| (child, streams)).ok_or(Error::Protocol("the process has no streams"))
    }

    /// Waits until the process exits. Returns a description of how it exited.
    async fn ended(&mut self) -> String {
        match self.process.wait().await {
            Ok(status) => {
                // Processes that it started may still run.
                self.signal(Signal::KILL);
                self.is_gone();
                self.drain_stderr().await;
                status.to_string()
            }
            Err(error) => error.to_string(),
        }
    }

    /// Ends the process, whose input must be closed already. After `limit` it gets SIGTERM; after the same time
    /// again, the whole group gets SIGKILL.
    async fn stop(mut self, limit: Duration) {
        if tokio::time::timeout(limit, self.process.wait()).await.is_err() {
            self.signal(Signal::TERM);
            let _ = tokio::time::timeout(limit, self.process.wait()).await;
        }
        self.signal(Signal::KILL);
        let _ = self.process.wait().await;
        self.is_gone();
        self.drain_stderr().await;
    }

    /// Reads stderr to its end, unless another process holds it open.
    async fn drain_stderr(&mut self) {
        if !self.keeper.is_finished() {
            let _ = tokio::time::timeout(DRAIN_TIMEOUT, &mut self.keeper).await;
            self.keeper.abort();
        }
    }

    /// From now on the group id may be reused by another process.
    fn is_gone(&mut self) {
        (self.group, self.watch) = (None, None);
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // No such group: every process in it has exited.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        self.keeper.abort();
    }
}

/// A process and its watching task. Dropping it kills the process with everything it started.
pub(super) struct Process {
    pid: Option<u32>,
    errors: StderrTail,
    stop: watch::Sender<bool>,
    exit: watch::Receiver<Option<ProcessExit>>,
    watcher: JoinHandle<()>,
}

#[derive(Debug, Clone)]
pub(super) struct ProcessExit {
    pub(super) how: String,
    /// The last line that it wrote to stderr, truncated.
    pub(super) last_line: String,
}

impl Process {
    /// Starts a process and returns its standard streams. `limit` is the time it gets to exit, applied twice (see
    /// [`Child::stop`]).
    pub(super) fn start(
        spec: &ChildSpec,
        limit: Duration,
    ) -> Result<(Self, (ChildStdout, ChildStdin)), Error> {
        let (child, streams) = Child::start(spec)?;
        let (stop, stopping) = watch::channel(false);
        let (ended, exit) = watch::channel(None);
        let (pid, errors) = (child.process.id(), child.errors.clone());
        let watcher = tokio::spawn(watch(child, stopping, ended, limit));
        Ok((Self { pid, errors, stop, exit, watcher }, streams))
    }

    /// Reports how the process exited, once it has.
    pub(super) fn exit(&self) -> watch::Receiver<Option<ProcessExit>> {
        self.exit.clone()
    }

    pub(super) fn errors(&self) -> Vec<String> {
        self.errors.lines()
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.pid.filter(|_| self.exit.borrow().is_none())
    }

    /// Ends the process; its input must be closed already.
    pub(super) async fn stop(&self) {
        self.stop.send_replace(true);
        let mut exit = self.exit.clone();
        // On error the watching task is gone, and the process with it.
        let _ = exit.wait_for(Option::is_some).await;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.watcher.abort();
    }
}

async fn watch(
    mut child: Child,
    mut stopping: watch::Receiver<bool>,
    ended: watch::Sender<Option<ProcessExit>>,
    limit: Duration,
) {
    let errors = child.errors.clone();
    let how = tokio::select! {
        how = child.ended() => Some(how),
        _ = stopping.wait_for(|stopping| *stopping) => None,
    };
    let how = match how {
        Some(how) => how,
        None => {
            child.stop(limit).await;
            "it was stopped by embody".to_owned()
        }
    };
    let last = errors.lines().into_iter().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    let last_line = last.chars().filter(|c| !c.is_control()).take(LAST_LINE_MAX_CHARS).collect();
    ended.send_replace(Some(ProcessExit { how, last_line }));
}

/// Keeps the last lines and drains the rest: a process that cannot write to stderr blocks. A long line is truncated.
async fn keep(stderr: Receiver, kept: StderrTail, mask: Mask) {
    let mut reader = BufReader::with_capacity(ERRORS_AT_ONCE, stderr);
    let most = LINE_BYTES + mask.longest();
    let mut is_begun = false;
    loop {
        let mut line = Vec::new();
        match (&mut reader).take(most as u64).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let (is_rest, is_cut) = (is_begun, line.last() != Some(&b'\n') && line.len() >= most);
        is_begun = is_cut;
        if is_rest {
            continue;
        }
        let line = mask.line(&line, is_cut);
        kept.push(line);
    }
}

/// The secrets to mask, longest first, so that a secret within a secret leaves no remainder.
struct Mask(Vec<Secret>);

impl Mask {
    /// Splits a secret of several lines, because stderr is masked line by line.
    fn new(secrets: &[Secret]) -> Self {
        let lines = secrets.iter().flat_map(|secret| secret.expose().lines().map(str::trim));
        let mut secrets: Vec<Secret> =
            lines.filter(|line| line.len() >= SECRET_MIN_BYTES).map(Secret::new).collect();
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.expose().len()));
        Self(secrets)
    }

    fn longest(&self) -> usize {
        self.0.first().map_or(0, |secret| secret.expose().len())
    }

    /// A line with secrets masked. A truncated line is shortened further, because its end may be part of a secret.
    fn line(&self, bytes: &[u8], is_cut: bool) -> String {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let mut text = self.0.iter().fold(text, |text, secret| secret.redact(&text));
        if is_cut {
            // Lossy decoding replaces a partial character at the end with one that is up to two bytes longer.
            let end = text.len().saturating_sub(self.longest() + 2);
            text.truncate(text.floor_char_boundary(end));
        }
        text.truncate(text.floor_char_boundary(LINE_BYTES));
        text.trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, secrets: &[&str]) -> ChildSpec {
        ChildSpec {
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), script.into()],
            environment: vec![("PATH".into(), std::env::var_os("PATH").unwrap_or_default())],
            folder: None,
            secrets: secrets.iter().map(|secret| Secret::new(*secret)).collect(),
            reaper: None,
            stderr: None,
        }
    }

    #[tokio::test]
    async fn secrets_are_not_kept() {
        let script = "echo 'key hunter22, hunter22x!' >&2; echo 1 BEGINNING >&2; echo second-line >&2";
        let spec = shell(script, &["hunter22", "hunter22x", "1", "BEGINNING\nsecond-line\n"]);
        let (mut child, _streams) = Child::start(&spec).unwrap();
        child.ended().await;
        assert_eq!(child.errors.lines(), ["key [secret], [secret]!", "1 [secret]", "[secret]"]);
    }

    #[test]
    fn a_cut_leaves_no_half_secret() {
        let secret = "s3cret-é".repeat(20);
        let mask = Mask::new(&[Secret::new(secret.clone())]);
        let most = LINE_BYTES + mask.longest();
        for before in (most - secret.len() - 2)..most {
            let text = format!("{}{secret}", "x".repeat(before));
            let cut = text.as_bytes().get(..most.min(text.len())).unwrap();
            assert!(!mask.line(cut, true).contains("s3"), "{before}");
        }
        // Masking many secrets shortens the line but does not reveal the partial secret at its end.
        let text = secret.repeat(9);
        assert!(!mask.line(text.as_bytes().get(..most).unwrap(), true).contains("s3"));
    }

    #[tokio::test]
    async fn reading_stops_at_the_end() {
        // The process leaves a child behind that holds its stderr open.
        let spec = shell("setsid sh -c 'echo $$ >&2; exec sleep 60' & read x", &[]);
        for is_dropped in [true, false] {
            let (child, streams) = Child::start(&spec).unwrap();
            let kept = child.errors.clone();
            while kept.lines().is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            drop(streams);
            if is_dropped {
                drop(child);
            } else {
                child.stop(Duration::from_secs(5)).await;
            }
            let gone = async {
                while Arc::strong_count(&kept.0) > 1 {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            let is_gone = tokio::time::timeout(Duration::from_secs(10), gone).await.is_ok();
            let left = kept.lines().first().and_then(|pid| Pid::from_raw(pid.parse().ok()?));
            let _ = rustix::process::kill_process(left.unwrap(), Signal::KILL);
            assert!(is_gone);
        }
    }
}
