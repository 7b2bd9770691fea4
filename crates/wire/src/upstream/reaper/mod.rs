//! Kills the servers' processes when ours dies without cleaning up (e.g. `kill -9`): a helper process that knows each of them
//! and reads from a pipe that only we write to. `process` is the code of the helper.

mod process;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use rustix::process::Pid;
use tokio::process::{Child, Command};
use tokio::sync::oneshot;

pub use self::process::run;
use crate::error::Error;

/// How long a new reaper may take to read its initial list.
const READING: Duration = Duration::from_secs(1);
/// Delay before a reaper that has exited is replaced, and again after each failure.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_LONGEST: Duration = Duration::from_secs(60);

/// How to start a reaper: a command that only calls [`run`].
#[derive(Debug, Clone)]
pub struct ReaperSpec {
    pub program: OsString,
    /// Its name in process listings.
    pub name: OsString,
    pub arguments: Vec<OsString>,
    /// Called with messages for the operator: a reaper had to be replaced, or cannot be.
    pub trouble: fn(&str),
}

/// Watches all processes that are started with it. The helper process starts with the first of them, is replaced if it
/// exits early, and exits when this is dropped.
///
/// A server is registered before it starts, and again with its process id. If we are killed in between, the helper
/// finds the process by its stderr pipe; until `exec`, that process also holds our end of the helper's pipe open. A
/// process that leaves the server's group on purpose is not killed.
#[derive(Debug)]
pub struct Reaper {
    spec: ReaperSpec,
    post: Mutex<ReaperState>,
}

#[derive(Debug, Default)]
struct ReaperState {
    running: Option<ReaperProcess>,
    watched: Watched,
    last: u64,
}

/// The running helper process. Dropping this makes it kill the registered processes and exit.
#[derive(Debug)]
struct ReaperProcess {
    pipe: File,
    dismissal: oneshot::Sender<File>,
}

impl ReaperProcess {
    /// Kills only the helper process, before its pipe is closed.
    fn dismiss(self) {
        let _ = self.dismissal.send(self.pipe);
    }
}

type Watched = BTreeMap<u64, Target>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    /// The server is being started: identified as the group leader that has this pipe open, if it started at all.
    Pipe(u64),
    Group(Pid),
}

impl Reaper {
    /// The helper process is started on demand.
    #[must_use]
    pub fn new(spec: ReaperSpec) -> Arc<Self> {
        Arc::new(Self { spec, post: Mutex::default() })
    }

    /// Registers a process that is about to start, by the inode of its stderr pipe.
    pub(super) fn watch(self: &Arc<Self>, pipe: u64) -> Result<Watch, Error> {
        let number = {
            let mut post = self.post();
            post.last += 1;
            let number = post.last;
            post.watched.insert(number, Target::Pipe(pipe));
            number
        };
        // From here on, dropping the watch removes the entry if anything fails.
        let watch = Watch { guard: Arc::clone(self), number };
        self.send_entry(&mut self.post(), number).map_err(|source| {
            let program = self.spec.program.display();
            Error::Start { program: format!("{program} (the reaper of server processes)"), source }
        })?;
        Ok(watch)
    }

    fn post(&self) -> MutexGuard<'_, ReaperState> {
        self.post.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends the state of one entry to the helper; if the helper does not read, replaces it and sends everything.
    fn send_entry(self: &Arc<Self>, post: &mut ReaperState, number: u64) -> std::io::Result<()> {
        if let Some(running) = &mut post.running {
            // So short a line is written whole or not at all.
            if running.pipe.write_all(line(number, post.watched.get(&number)).as_bytes()).is_ok() {
                return Ok(());
            }
            (self.spec.trouble)("the reaper of the servers' processes does not respond and is replaced");
        }
        self.replace(post)
    }

    /// The same, but reports a failure only to the operator.
    fn try_send_entry(self: &Arc<Self>, post: &mut ReaperState, number: u64) {
        if let Err(error) = self.send_entry(post, number) {
            (self.spec.trouble)(&format!("the reaper of the servers' processes cannot be started: {error}"));
        }
    }

    /// Starts a new helper for all entries, if there are any.
    fn replace(self: &Arc<Self>, post: &mut ReaperState) -> std::io::Result<()> {
        if let Some(running) = post.running.take() {
            running.dismiss();
        }
        if !post.watched.is_empty() {
            post.running = Some(self.start(&post.watched)?);
        }
        Ok(())
    }

    fn start(self: &Arc<Self>, watched: &Watched) -> std::io::Result<ReaperProcess> {
        let mut command = Command::new(&self.spec.program);
        command.arg0(&self.spec.name).args(&self.spec.arguments);
        command.env_clear().current_dir("/").process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut process = command.spawn()?;
        let pipe = process.stdin.take().ok_or_else(|| std::io::Error::other("it has no input"))?;
        let pipe = File::from(pipe.into_owned_fd()?);
        let (dismissal, dismissed) = oneshot::channel();
        tokio::spawn(collect(process, dismissed, Arc::downgrade(self)));
        let running = ReaperProcess { pipe, dismissal };
        let all: String = watched.iter().map(|(number, whom)| line(*number, Some(whom))).collect();
        match write_soon(&running.pipe, all.as_bytes()) {
            Ok(()) => Ok(running),
            Err(error) => {
                running.dismiss();
                Err(error)
            }
        }
    }
}

/// Writes everything, or fails if it is not read soon. Only thousands of processes need more than a pipe holds.
fn write_soon(mut pipe: &File, mut bytes: &[u8]) -> std::io::Result<()> {
    // Non-blocking: a helper that was stopped must not block us.
    rustix::io::ioctl_fionbio(pipe, true)?;
    let deadline = Instant::now() + READING;
    while !bytes.is_empty() {
        match pipe.write(bytes) {
            Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::WouldBlock && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Waits for the helper process to exit. If it was still needed, starts another one.
async fn collect(mut process: Child, dismissed: oneshot::Receiver<File>, guard: Weak<Reaper>) {
    tokio::select! {
        _ = process.wait() => {}
        pipe = dismissed => {
            match pipe {
                // If it saw the end of its input now, it would kill the processes that its successor watches.
                Ok(_pipe) => drop(process.kill().await),
                // No process is left to watch.
                Err(_) => drop(process.wait().await),
            }
            return;
        }
    }
    let mut pause = PAUSE;
    loop {
        tokio::time::sleep(pause).await;
        let Some(guard) = guard.upgrade() else { return };
        let mut post = guard.post();
        // A concurrent update may already have noticed and replaced it.
        let is_needed = match &post.running {
            Some(running) => running.dismissal.is_closed(),
            None => !post.watched.is_empty(),
        };
        if !is_needed {
            return;
        }
        (guard.spec.trouble)("the reaper of the servers' processes has ended and is replaced");
        match guard.replace(&mut post) {
            Ok(()) => return,
            Err(error) => (guard.spec.trouble)(&format!(
                "the reaper of the servers' processes cannot be started: {error}"
            )),
        }
        pause = (pause * 2).min(PAUSE_LONGEST);
    }
}

/// The line format: `3 ?815` for a process that may be starting, `3 4711` for one that runs, `3` for one that has
/// exited.
fn line(number: u64, whom: Option<&Target>) -> String {
    match whom {
        None => format!("{number}\n"),
        Some(Target::Pipe(pipe)) => format!("{number} ?{pipe}\n"),
        Some(Target::Group(group)) => format!("{number} {group}\n"),
    }
}

/// A process that stays registered until this is dropped.
#[derive(Debug)]
pub(super) struct Watch {
    guard: Arc<Reaper>,
    number: u64,
}

impl Watch {
    pub(super) fn leads(&self, group: Pid) {
        let mut post = self.guard.post();
        post.watched.insert(self.number, Target::Group(group));
        self.guard.try_send_entry(&mut post, self.number);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut post = self.guard.post();
        post.watched.remove(&self.number);
        self.guard.try_send_entry(&mut post, self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    static TROUBLE: AtomicUsize = AtomicUsize::new(0);

    #[tokio::test]
    async fn a_helper_that_does_not_read_is_replaced() {
        // The helper never reads, so its pipe fills up.
        let guard = Reaper::new(ReaperSpec {
            program: "/bin/sleep".into(),
            name: "sleep".into(),
            arguments: vec!["600".into()],
            trouble: |_| {
                TROUBLE.fetch_add(1, Ordering::SeqCst);
            },
        });
        let first = guard.watch(1).unwrap();
        while TROUBLE.load(Ordering::SeqCst) < 2 {
            drop(guard.watch(2).unwrap());
        }
        // The new helper was sent exactly the current entries.
        let post = guard.post();
        assert_eq!((post.watched.len(), post.running.is_some()), (1, true));
        drop((post, first));
    }
}
