//! What ends the servers' processes when we end without a chance to do it, by `kill -9` for instance: one process that is
//! told of each of them, and holds the end of a pipe that only we write to.
//!
//! It is told before a server is started, and again of its number when there is one. In between, we may be killed: until the
//! server's program runs, its process holds our end of the pipe too, and then it is found by the pipe that it writes its
//! complaints to. Whoever leaves the server's group on purpose is not followed.
//!
//! - `stand`: what the process itself does

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

/// How long a new guard may take to read what it is told at first.
const READING: Duration = Duration::from_secs(1);
/// Before a guard that has ended is replaced, and again after each failure.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_LONGEST: Duration = Duration::from_secs(60);

/// How a guard is started: a command that does nothing but [`stand`].
#[derive(Debug, Clone)]
pub struct ReaperSpec {
    pub program: OsString,
    /// What it is called where processes are listed.
    pub name: OsString,
    pub arguments: Vec<OsString>,
    /// Hears what an operator should know: that a guard had to be replaced, or cannot be.
    pub trouble: fn(&str),
}

/// The guard of all processes that are started with it. It runs from the first of them on, is replaced if it ends before
/// them, and ends when this is dropped.
#[derive(Debug)]
pub struct Reaper {
    spec: ReaperSpec,
    post: Mutex<Post>,
}

#[derive(Debug, Default)]
struct Post {
    running: Option<PendingCall>,
    watched: Watched,
    last: u64,
}

/// A guard's process. When this is dropped it does what it is there for, and ends.
#[derive(Debug)]
struct PendingCall {
    pipe: File,
    dismissal: oneshot::Sender<File>,
}

impl PendingCall {
    /// Ends it, and nobody else: before the pipe is closed.
    fn dismiss(self) {
        let _ = self.dismissal.send(self.pipe);
    }
}

type Watched = BTreeMap<u64, Whom>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whom {
    /// Who leads a group and has this pipe, if it was started at all.
    Has(u64),
    Group(Pid),
}

impl Reaper {
    /// A guard that is started when it is needed.
    #[must_use]
    pub fn new(spec: ReaperSpec) -> Arc<Self> {
        Arc::new(Self { spec, post: Mutex::default() })
    }

    /// Says that a process is going to be started which has this pipe, by its number in the file system.
    pub(super) fn watch(self: &Arc<Self>, pipe: u64) -> Result<Watch, Error> {
        let number = {
            let mut post = self.post();
            post.last += 1;
            let number = post.last;
            post.watched.insert(number, Whom::Has(pipe));
            number
        };
        // From here on it is taken back when anything fails.
        let watch = Watch { guard: Arc::clone(self), number };
        self.tell(&mut self.post(), number).map_err(|source| {
            let program = self.spec.program.display();
            Error::Start { program: format!("{program}, the guard of its process"), source }
        })?;
        Ok(watch)
    }

    fn post(&self) -> MutexGuard<'_, Post> {
        self.post.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the guard how one of them is now; tells another one everything if this one does not listen.
    fn tell(self: &Arc<Self>, post: &mut Post, number: u64) -> std::io::Result<()> {
        if let Some(running) = &mut post.running {
            // So short a line is written whole or not at all.
            if running.pipe.write_all(line(number, post.watched.get(&number)).as_bytes()).is_ok() {
                return Ok(());
            }
            (self.spec.trouble)("the guard of the servers' processes does not listen, and is replaced");
        }
        self.replace(post)
    }

    /// The same where nobody waits for it.
    fn tell_if_possible(self: &Arc<Self>, post: &mut Post, number: u64) {
        if let Err(error) = self.tell(post, number) {
            (self.spec.trouble)(&format!("there is no guard of the servers' processes: {error}"));
        }
    }

    /// Another one for all, if there is anything to guard.
    fn replace(self: &Arc<Self>, post: &mut Post) -> std::io::Result<()> {
        if let Some(running) = post.running.take() {
            running.dismiss();
        }
        if !post.watched.is_empty() {
            post.running = Some(self.start(&post.watched)?);
        }
        Ok(())
    }

    fn start(self: &Arc<Self>, watched: &Watched) -> std::io::Result<PendingCall> {
        let mut command = Command::new(&self.spec.program);
        command.arg0(&self.spec.name).args(&self.spec.arguments);
        command.env_clear().current_dir("/").process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut process = command.spawn()?;
        let pipe = process.stdin.take().ok_or_else(|| std::io::Error::other("it has no input"))?;
        let pipe = File::from(pipe.into_owned_fd()?);
        let (dismissal, dismissed) = oneshot::channel();
        tokio::spawn(collect(process, dismissed, Arc::downgrade(self)));
        let running = PendingCall { pipe, dismissal };
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

/// Writes everything, if it is read soon: more than a pipe holds is only there with thousands of processes.
fn write_soon(mut pipe: &File, mut bytes: &[u8]) -> std::io::Result<()> {
    // Nobody waits for a guard that was stopped.
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

/// Collects a guard's process when it ends. If it was still needed, another one is started.
async fn collect(mut process: Child, dismissed: oneshot::Receiver<File>, guard: Weak<Reaper>) {
    tokio::select! {
        _ = process.wait() => {}
        pipe = dismissed => {
            match pipe {
                // If it saw the end of its input now, it would kill those that another one guards.
                Ok(_pipe) => drop(process.kill().await),
                // Nothing is left to guard.
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
        // Whoever had something to tell meanwhile has noticed, and replaced it.
        let is_needed = match &post.running {
            Some(running) => running.dismissal.is_closed(),
            None => !post.watched.is_empty(),
        };
        if !is_needed {
            return;
        }
        (guard.spec.trouble)("the guard of the servers' processes has ended, and is replaced");
        match guard.replace(&mut post) {
            Ok(()) => return,
            Err(error) => {
                (guard.spec.trouble)(&format!("there is no guard of the servers' processes: {error}"))
            }
        }
        pause = (pause * 2).min(PAUSE_LONGEST);
    }
}

/// What the guard reads: `3 ?815` for one that may be being started, `3 4711` for one that runs, `3` for one that is over.
fn line(number: u64, whom: Option<&Whom>) -> String {
    match whom {
        None => format!("{number}\n"),
        Some(Whom::Has(pipe)) => format!("{number} ?{pipe}\n"),
        Some(Whom::Group(group)) => format!("{number} {group}\n"),
    }
}

/// A process that is under guard until this is dropped.
#[derive(Debug)]
pub(super) struct Watch {
    guard: Arc<Reaper>,
    number: u64,
}

impl Watch {
    pub(super) fn leads(&self, group: Pid) {
        let mut post = self.guard.post();
        post.watched.insert(self.number, Whom::Group(group));
        self.guard.tell_if_possible(&mut post, self.number);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut post = self.guard.post();
        post.watched.remove(&self.number);
        self.guard.tell_if_possible(&mut post, self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    static TROUBLE: AtomicUsize = AtomicUsize::new(0);

    #[tokio::test]
    async fn one_that_does_not_listen_is_replaced_and_harms_nobody() {
        // It never reads, so its pipe is full at some time.
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
        // It has been told of what there is, and of nothing else.
        let post = guard.post();
        assert_eq!((post.watched.len(), post.running.is_some()), (1, true));
        drop((post, first));
    }
}
