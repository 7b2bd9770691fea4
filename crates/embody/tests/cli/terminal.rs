//! A program at a terminal: what is typed and what is shown.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

const MINUTE: Duration = Duration::from_secs(60);

/// A program at a terminal of its own.
pub(crate) struct Terminal {
    process: Child,
    keyboard: File,
    screen: Receiver<Vec<u8>>,
    shown: Vec<u8>,
    seen: usize,
}

impl Terminal {
    /// A terminal as stdin, stdout and stderr that is not the controlling one: as a program would give it.
    pub(crate) fn start(mut command: Command) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let theirs = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let end = || Stdio::from(theirs.try_clone().unwrap());
        let process = command.stdin(end()).stdout(end()).stderr(end()).spawn();
        let keyboard = File::from(ours);
        let (sender, screen) = channel();
        let mut shown = keyboard.try_clone().unwrap();
        // Reading a terminal without another open end is an error, which ends the thread.
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = shown.read(&mut bytes) {
                if sender.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { process: process.unwrap(), keyboard, screen, shown: Vec::new(), seen: 0 }
    }

    /// The controlling terminal of a session of its own: as a person has it.
    pub(crate) fn of_person(command: &Command) -> Self {
        let mut session = Command::new("setsid");
        session.args(["--ctty", "--wait"]).arg(command.get_program()).args(command.get_args()).env_clear();
        session.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        session.current_dir(command.get_current_dir().unwrap());
        Self::start(session)
    }

    /// Waits until it shows this, after what was waited for before.
    pub(crate) fn until(&mut self, part: &str) {
        let deadline = Instant::now() + MINUTE;
        loop {
            let new = &self.shown[self.seen..];
            if let Some(place) = new.windows(part.len()).position(|window| window == part.as_bytes()) {
                self.seen += place + part.len();
                return;
            }
            let more = self.screen.recv_timeout(deadline.saturating_duration_since(Instant::now()));
            self.shown.extend(more.unwrap_or_else(|error| panic!("no {part:?}: {error}: {}", self.text())));
        }
    }

    pub(crate) fn write(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> (ExitStatus, String) {
        let deadline = Instant::now() + MINUTE;
        loop {
            match self.screen.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(more) => self.shown.extend(more),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("it does not end: {}", self.text()),
            }
        }
        (self.process.wait().unwrap(), self.text())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.shown).into_owned()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
