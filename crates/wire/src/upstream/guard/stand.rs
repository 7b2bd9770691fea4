//! What a guard's process does: it listens, and when nobody is left who could tell it anything, it kills.

use std::io::BufRead;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpgrp, getpid, kill_process_group};
use tokio::signal::unix::{SignalKind, signal};

use super::{MARK, Watched};

/// How long one is looked for: its program has begun to run, and its environment may not be readable yet.
const LOOK: Duration = Duration::from_secs(1);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

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
    let (mut watched, mut input, mut line) = (Watched::new(), std::io::stdin().lock(), String::new());
    // A line without its end may be half a number.
    while input.read_line(&mut line).is_ok() && line.ends_with('\n') {
        heed(&mut watched, line.trim_end());
        line.clear();
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
    use super::super::line;
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
