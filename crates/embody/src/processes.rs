//! The running `embody up` and `embody mcp` processes of a workspace: each holds the lock of its own file in `run/` and writes
//! there which configuration it uses. The system releases the lock of a process that dies, so an unlocked file means nothing.
//! `run/reload` holds the number of the last request to read the configuration again.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

const FOLDER: &str = "run";
pub(crate) const REQUEST: &str = "reload";
const MAX_BYTES: u64 = 64 * 1024;
/// A file may be read while it is written.
const READ_RETRIES: u32 = 20;

/// A running process, as other commands see it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Process {
    /// `up` or `mcp`.
    pub(crate) command: String,
    pub(crate) pid: u32,
    pub(crate) version: String,
    pub(crate) configuration: ConfigurationState,
}

/// Which configuration a process uses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ConfigurationState {
    /// The file, which may not exist.
    pub(crate) file: PathBuf,
    /// When the process began to use it, in RFC 3339.
    pub(crate) loaded_at: String,
    /// What the last reload changed, such as `policy` or `body mail`.
    pub(crate) changed: Vec<String>,
    /// Why the last reload failed; the configuration of before is in force.
    pub(crate) problem: Option<String>,
    /// What differs from the file until the process is started again.
    pub(crate) needs_restart: Vec<String>,
    /// The last request that it has answered.
    pub(crate) request: u64,
}

/// The file of this process, until it is dropped. `None` if the workspace cannot be written: then the process is not found,
/// but works.
pub(crate) struct ProcessFile(Option<(File, PathBuf)>);

impl ProcessFile {
    pub(crate) fn create(workspace: &Path) -> Self {
        Self(Self::open(workspace).map_err(|error| warn(&error)).ok())
    }

    fn open(workspace: &Path) -> io::Result<(File, PathBuf)> {
        let folder = folder(workspace);
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let path = folder.join(format!("{}.json", std::process::id()));
        // The file of an earlier process with this number.
        let file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&path)?;
        file.try_lock()?;
        Ok((file, path))
    }

    pub(crate) fn write(&mut self, process: &Process) {
        let Some((file, _)) = &mut self.0 else { return };
        let written = serde_json::to_vec(process).map_err(io::Error::from).and_then(|text| {
            file.set_len(0)?;
            file.rewind()?;
            file.write_all(&text)
        });
        if let Err(error) = written {
            warn(&error);
        }
    }
}

impl Drop for ProcessFile {
    fn drop(&mut self) {
        if let Some((_, path)) = self.0.take() {
            let _ = fs::remove_file(path);
        }
    }
}

fn warn(error: &io::Error) {
    tracing::warn!(reason = %error, "cannot write to `run/` in the workspace: other commands do not find this process");
}

pub(crate) fn folder(workspace: &Path) -> PathBuf {
    workspace.join(FOLDER)
}

/// The running processes, by number. Removes what dead ones left.
pub(crate) fn list(workspace: &Path) -> Vec<Process> {
    let entries = fs::read_dir(folder(workspace)).into_iter().flatten().flatten();
    let paths =
        entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "json"));
    let mut processes: Vec<Process> = paths.filter_map(|path| read(&path)).collect();
    processes.sort_by_key(|process| process.pid);
    processes
}

fn read(path: &Path) -> Option<Process> {
    let mut file = File::open(path).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => {}
        Ok(()) => {
            let _ = fs::remove_file(path);
            return None;
        }
        Err(TryLockError::Error(_)) => return None,
    }
    for _ in 0..READ_RETRIES {
        let mut text = String::new();
        file.rewind().ok()?;
        (&file).take(MAX_BYTES).read_to_string(&mut text).ok()?;
        if let Ok(process) = serde_json::from_str(&text) {
            return Some(process);
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    None
}

/// Asks every process to read the configuration again; returns the number of the request.
pub(crate) fn request_reload(workspace: &Path) -> io::Result<u64> {
    let number = requested(workspace) + 1;
    let path = folder(workspace).join(REQUEST);
    let mut file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(path)?;
    file.write_all(number.to_string().as_bytes())?;
    Ok(number)
}

/// The number of the last request; 0 if there was none.
pub(crate) fn requested(workspace: &Path) -> u64 {
    let text = fs::read_to_string(folder(workspace).join(REQUEST)).unwrap_or_default();
    text.trim().parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_listed_while_it_holds_its_file() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(list(folder.path()), []);
        let mut file = ProcessFile::create(folder.path());
        let process = |changed: &[&str]| Process {
            command: "up".to_owned(),
            pid: std::process::id(),
            configuration: ConfigurationState {
                changed: changed.iter().map(|&name| name.to_owned()).collect(),
                ..ConfigurationState::default()
            },
            ..Process::default()
        };
        for state in [process(&["policy", "body mail"]), process(&[])] {
            file.write(&state);
            assert_eq!(list(folder.path()), [state]);
        }
        drop(file);
        assert_eq!(list(folder.path()), []);
        let dead = super::folder(folder.path()).join("1.json");
        fs::write(&dead, "{}").unwrap();
        assert_eq!(list(folder.path()), []);
        assert!(!dead.exists());
    }

    #[test]
    fn each_request_has_a_higher_number() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(requested(folder.path()), 0);
        drop(ProcessFile::create(folder.path()));
        assert_eq!(request_reload(folder.path()).unwrap(), 1);
        assert_eq!((request_reload(folder.path()).unwrap(), requested(folder.path())), (2, 2));
    }
}
