//! What ends a server's process when we end without a chance to do it, by `kill -9` for instance: a process that leads the
//! server's group and holds the end of a pipe that only we write to. It owns nothing else, and reads nothing.
//!
//! It is there before the server, so there is no moment at which one could be left alone: until the server's program runs,
//! its process holds our end of the pipe too, and by then it is in the group. Whoever leaves the group on purpose is not
//! followed.

use std::ffi::OsString;
use std::process::{ExitCode, Stdio};

use rustix::process::{Pid, Signal, getpgrp, getpid, kill_process_group};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};

use crate::error::Error;

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

/// A guard that stands. It ends its group, and itself, when this is dropped.
#[derive(Debug)]
pub(super) struct Guard {
    /// Collects it when it has ended, and holds the pipe.
    _process: Child,
    /// The group that it leads.
    pub(super) group: Pid,
}

impl Guard {
    pub(super) fn start(spec: &GuardSpec) -> Result<Self, Error> {
        let start = |source| Error::Start { program: spec.program.display().to_string(), source };
        let mut command = Command::new(&spec.program);
        command.arg0(&spec.name).args(&spec.arguments).env_clear().current_dir("/").process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().map_err(start)?;
        let group = process.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let group = group.ok_or_else(|| start(std::io::Error::other("it has no number")))?;
        Ok(Self { _process: process, group })
    }
}

/// Stands guard: waits until nobody is at the other end of the input, then kills every process of the group that this one
/// leads. What ends the others politely is for them to heed, not for the guard.
pub fn stand() -> ExitCode {
    // Anything else would be the group of somebody who runs this by hand.
    if getpgrp() != getpid() {
        return ExitCode::FAILURE;
    }
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
    let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
    let _ = kill_process_group(getpgrp(), Signal::KILL);
    ExitCode::SUCCESS
}
