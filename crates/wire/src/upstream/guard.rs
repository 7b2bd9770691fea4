//! What ends the servers' processes when we end without a chance to do it, by `kill -9` for instance: one process that is
//! told of each of them, and holds the end of a pipe that only we write to.
//!
//! It is told before a server is started, and again of its number when there is one. In between, we may be killed: until the
//! server's program runs, its process holds our end of the pipe too, and then it has a mark in its environment by which it is
//! found. Whoever leaves the server's group on purpose is not followed.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, ErrorKind, Write};
use std::path::Path;
use std::process::{ExitCode, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpgrp, getpid, kill_process_group};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};

use crate::error::Error;

/// The variable that a server's process is found by.
const MARK: &str = "EMBODY_GUARD";
/// How long one is looked for: its program has begun to run, and its environment may not be readable yet.
const LOOK: Duration = Duration::from_secs(1);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// How a guard is started: a command that does nothing but [`stand`].
#[derive(Debug, Clone)]
pub struct GuardSpec {
    /// The program.
    pub program: OsString,
    /// What it is called where processes are listed.
    pub name: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}

/// The guard of all processes that are started with it. It runs from the first of them on, is started again if it ended, and
/// ends when this is dropped.
#[derive(Debug)]
pub struct Guard {
    spec: GuardSpec,
    /// The mark of one process is this with its number.
    mark: String,
    post: Mutex<Post>,
}

#[derive(Debug, Default)]
struct Post {
    /// The process, which is collected when it has ended, and the pipe to it.
    running: Option<(Child, File)>,
    watched: Watched,
    last: u64,
}

/// The groups to end, by number; of one that may be being started nothing is known yet.
type Watched = BTreeMap<u64, Option<Pid>>;

impl Guard {
    /// A guard that is started when it is needed.
    #[must_use]
    pub fn new(spec: GuardSpec) -> Arc<Self> {
        let mark = format!("{}-{:016x}", std::process::id(), RandomState::new().hash_one(()));
        Arc::new(Self { spec, mark, post: Mutex::default() })
    }

    /// Says that a process is going to be started.
    pub(super) fn watch(self: &Arc<Self>) -> Result<Watch, Error> {
        let number = {
            let mut post = self.post();
            post.last += 1;
            let number = post.last;
            post.watched.insert(number, None);
            number
        };
        // From here on it is taken back when anything fails.
        let watch = Watch { guard: Arc::clone(self), number };
        self.tell(&mut self.post(), number).map_err(|source| {
            let program = self.spec.program.display().to_string();
            Error::Start { program, source }
        })?;
        Ok(watch)
    }

    fn post(&self) -> MutexGuard<'_, Post> {
        self.post.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the guard how one of them is now; tells another one everything if it is gone.
    fn tell(&self, post: &mut Post, number: u64) -> std::io::Result<()> {
        if let Some((_, pipe)) = &mut post.running {
            // So short a line is written whole or not at all.
            match pipe.write_all(line(number, post.watched.get(&number)).as_bytes()) {
                Err(error) if error.kind() != ErrorKind::WouldBlock => post.running = None,
                told => return told,
            }
        }
        if !post.watched.is_empty() {
            post.running = Some(self.start(&post.watched)?);
        }
        Ok(())
    }

    fn start(&self, watched: &Watched) -> std::io::Result<(Child, File)> {
        let mut command = Command::new(&self.spec.program);
        command.arg0(&self.spec.name).args(&self.spec.arguments);
        command.env_clear().env(MARK, &self.mark).current_dir("/").process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut process = command.spawn()?;
        let pipe = process.stdin.take().ok_or_else(|| std::io::Error::other("it has no input"))?;
        let mut pipe = File::from(pipe.into_owned_fd()?);
        let all: String = watched.iter().map(|(number, group)| line(*number, Some(group))).collect();
        pipe.write_all(all.as_bytes())?;
        // Nobody waits for a guard that was stopped.
        rustix::io::ioctl_fionbio(&pipe, true)?;
        Ok((process, pipe))
    }
}

/// What the guard reads: `3 ?` for one that may be being started, `3 4711` for one that runs, `3` for one that is over.
fn line(number: u64, group: Option<&Option<Pid>>) -> String {
    match group {
        None => format!("{number}\n"),
        Some(None) => format!("{number} ?\n"),
        Some(Some(group)) => format!("{number} {group}\n"),
    }
}

/// A process that is under guard until this is dropped.
#[derive(Debug)]
pub(super) struct Watch {
    guard: Arc<Guard>,
    number: u64,
}

impl Watch {
    /// The variable that it is to have.
    pub(super) fn mark(&self) -> (&'static str, String) {
        (MARK, format!("{}-{}", self.guard.mark, self.number))
    }

    /// It runs, and leads this group.
    pub(super) fn leads(&self, group: Pid) {
        let mut post = self.guard.post();
        post.watched.insert(self.number, Some(group));
        // One that could not be told finds it by its mark.
        let _ = self.guard.tell(&mut post, self.number);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut post = self.guard.post();
        post.watched.remove(&self.number);
        let _ = self.guard.tell(&mut post, self.number);
    }
}

/// Stands guard: waits until nobody is at the other end of the input, then kills every group that it was told of. What ends
/// them politely is for them to heed, not for the guard.
pub fn stand() -> ExitCode {
    // Whoever runs this by hand has no mark to find anybody by, and shares the group with others.
    let Some(mark) = std::env::var(MARK).ok().filter(|_| getpgrp() == getpid()) else {
        return ExitCode::FAILURE;
    };
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() else {
        return ExitCode::FAILURE;
    };
    {
        let _inside = runtime.enter();
        // A signal that was listened to once no longer ends the process.
        for kind in [
            SignalKind::alarm(),
            SignalKind::hangup(),
            SignalKind::interrupt(),
            SignalKind::quit(),
            SignalKind::terminate(),
            SignalKind::user_defined1(),
            SignalKind::user_defined2(),
        ] {
            let _ = signal(kind);
        }
    }
    let mut watched = Watched::new();
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        heed(&mut watched, &line);
    }
    for group in watched.values().flatten() {
        let _ = kill_process_group(*group, Signal::KILL);
    }
    let unknown = watched.iter().filter(|(_, group)| group.is_none());
    find(unknown.map(|(number, _)| format!("{MARK}={mark}-{number}")).collect());
    ExitCode::SUCCESS
}

fn heed(watched: &mut Watched, line: &str) {
    let (number, state) = line.split_once(' ').unwrap_or((line, ""));
    let Ok(number) = number.parse() else { return };
    match state {
        "" => watched.remove(&number),
        "?" => watched.insert(number, None),
        // Nobody's group, and everybody's, are none.
        group => match group.parse().ok().filter(|group| *group > 1).and_then(Pid::from_raw) {
            Some(group) => watched.insert(number, Some(group)),
            None => None,
        },
    };
}

/// Looks for processes that have one of these in their environment and lead a group, and kills it. They may not have been
/// started at all.
fn find(mut marks: Vec<String>) {
    let deadline = Instant::now() + LOOK;
    while !marks.is_empty() && Instant::now() < deadline {
        for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Ok(environment) = std::fs::read(entry.path().join("environ")) else { continue };
            let has =
                |mark: &String| environment.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes());
            if let Some(place) = marks.iter().position(has)
                && let Some(group) = led(&entry.path())
            {
                let _ = kill_process_group(group, Signal::KILL);
                marks.swap_remove(place);
            }
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// The group that a process leads.
fn led(process: &Path) -> Option<Pid> {
    let stat = std::fs::read_to_string(process.join("stat")).ok()?;
    // The name before this may be anything.
    let group = stat.rsplit_once(") ")?.1.split(' ').nth(2)?;
    let is_leader = process.file_name().is_some_and(|id| id == group);
    group.parse().ok().filter(|group| is_leader && *group > 1).and_then(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guard_heeds_what_it_is_told() {
        let group = Pid::from_raw(4711);
        let mut watched = Watched::new();
        let mut tell = |number, state: Option<&Option<Pid>>| {
            heed(&mut watched, line(number, state).trim_end());
            watched.clone()
        };
        assert_eq!(tell(1, Some(&None)), [(1, None)].into());
        assert_eq!(tell(2, Some(&None)), [(1, None), (2, None)].into());
        assert_eq!(tell(1, Some(&group)), [(1, group), (2, None)].into());
        assert_eq!(tell(2, None), [(1, group)].into());
        assert_eq!(tell(1, None), [].into());
    }

    #[test]
    fn nothing_else_is_a_group() {
        let mut watched = Watched::new();
        for line in ["", "x", "1 x", "1 0", "1 1", "1 -1", "1 99999999999", "? 4", "-1 4"] {
            heed(&mut watched, line);
        }
        assert!(watched.is_empty(), "{watched:?}");
    }
}
