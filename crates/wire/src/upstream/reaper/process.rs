//! The helper process: reads registrations until its input closes, then kills the registered processes.

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpgrp, getpid, kill_process_group};
use tokio::signal::unix::{SignalKind, signal};

use super::{Target, Watched};

/// How long to search for a process: its program may only just have started.
const LOOK: Duration = Duration::from_secs(1);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Reads until the input closes, then kills every registered process group. Graceful shutdown is not the reaper's task.
pub fn run() -> ExitCode {
    // When started by hand, it shares its process group with others.
    if getpgrp() != getpid() {
        return ExitCode::FAILURE;
    }
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() else {
        return ExitCode::FAILURE;
    };
    {
        let _inside = runtime.enter();
        // Once a handler is installed, the signal no longer ends the process.
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
    // A line without its newline may hold a truncated number.
    while input.read_line(&mut line).is_ok() && line.ends_with('\n') {
        heed(&mut watched, line.trim_end());
        line.clear();
    }
    let mut pipes = Vec::new();
    for whom in watched.values() {
        match whom {
            Target::Group(group) => drop(kill_process_group(*group, Signal::KILL)),
            Target::Pipe(pipe) => pipes.push(format!("pipe:[{pipe}]")),
        }
    }
    find(pipes);
    ExitCode::SUCCESS
}

fn heed(watched: &mut Watched, line: &str) {
    let (number, whom) = line.split_once(' ').unwrap_or((line, ""));
    let Ok(number) = number.parse() else { return };
    let whom = match (whom, whom.strip_prefix('?')) {
        ("", _) => {
            watched.remove(&number);
            return;
        }
        (_, Some(pipe)) => pipe.parse().ok().map(Target::Pipe),
        // Ids up to 1 are not a group of ours: `kill` gives 0, -1 and 1 other meanings.
        (group, None) => {
            group.parse().ok().filter(|group| *group > 1).and_then(Pid::from_raw).map(Target::Group)
        }
    };
    watched.extend(whom.map(|whom| (number, whom)));
}

/// Searches for process group leaders that have one of these pipes open, and kills their groups. The processes may not
/// have been started at all.
fn find(mut pipes: Vec<String>) {
    let deadline = Instant::now() + LOOK;
    while !pipes.is_empty() && Instant::now() < deadline {
        for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Some(group) = led(&process.path()) else { continue };
            let open = std::fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten();
            let open: Vec<PathBuf> = open.filter_map(|file| std::fs::read_link(file.path()).ok()).collect();
            if let Some(place) =
                pipes.iter().position(|pipe| open.iter().any(|file| *file == Path::new(pipe)))
            {
                let _ = kill_process_group(group, Signal::KILL);
                pipes.swap_remove(place);
            }
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

fn led(process: &Path) -> Option<Pid> {
    let stat = std::fs::read_to_string(process.join("stat")).ok()?;
    // The process name before this may contain any character.
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
        let group = Target::Group(Pid::from_raw(4711).unwrap());
        let mut watched = Watched::new();
        let mut tell = |number, whom: Option<Target>| {
            heed(&mut watched, line(number, whom.as_ref()).trim_end());
            watched.clone()
        };
        assert_eq!(tell(1, Some(Target::Pipe(7))), [(1, Target::Pipe(7))].into());
        assert_eq!(tell(2, Some(Target::Pipe(8))), [(1, Target::Pipe(7)), (2, Target::Pipe(8))].into());
        assert_eq!(tell(1, Some(group)), [(1, group), (2, Target::Pipe(8))].into());
        assert_eq!(tell(2, None), [(1, group)].into());
        assert_eq!(tell(1, None), [].into());
    }

    #[test]
    fn nothing_else_is_anybody() {
        let mut watched = Watched::new();
        for line in ["", "x", "1 x", "1 0", "1 1", "1 -1", "1 99999999999", "1 ?", "1 ?x", "? 4", "-1 4"] {
            heed(&mut watched, line);
        }
        assert!(watched.is_empty(), "{watched:?}");
    }

    #[test]
    fn only_who_leads_a_group_has_one() {
        let this = std::process::id();
        let leads = led(Path::new(&format!("/proc/{this}")));
        assert_eq!(leads.is_some(), getpgrp() == getpid());
        assert_eq!(led(Path::new("/proc/none")), None);
    }
}
