//! The running `embody up` and `embody mcp` processes of a workspace: each holds the lock of its own file in `run/` and writes
//! there which configuration it uses. The system releases the lock of a process that dies, so an unlocked file means nothing.
//! `run/reload` holds the number of the last request to read the configuration again.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

const FOLDER: &str = "run";
pub(crate) const REQUEST: &str = "reload";
const REQUEST_LOCK: &str = "reload.lock";
const MAX_BYTES: u64 = 64 * 1024;
/// A file may be replaced while it is read.
const READ_RETRIES: u32 = 20;
const LOCK_RETRIES: u32 = 200;
const LOCK_WAIT: Duration = Duration::from_millis(5);
/// What to do about a configuration that a process did not apply.
pub(crate) const FIX_HINT: &str = "fix the file; it is read again when saved";

/// A running process, as other commands see it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Process {
    /// `up` or `mcp`.
    pub(crate) command: String,
    pub(crate) pid: u32,
    /// The name of its file: unlike the number, different in each container.
    #[serde(skip)]
    pub(crate) id: String,
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
    /// Why the last reload failed; the previous configuration is in force.
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
    pub(crate) fn create(workspace: &Path, process: &Process) -> Self {
        let created = (|| {
            let folder = folder(workspace);
            DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
            // In containers, processes of one workspace may have the same number.
            let new = temporary(&folder, process.pid)?;
            let path = new.path().with_extension("json");
            put(new, &path, process).map(|file| (file, path))
        })();
        Self(created.map_err(|error| warn(&error)).ok())
    }

    pub(crate) fn write(&mut self, process: &Process) {
        let Some((file, path)) = &mut self.0 else { return };
        let folder = path.parent().unwrap_or(Path::new("/"));
        match temporary(folder, process.pid).and_then(|new| put(new, path, process)) {
            // Only now the lock of the replaced file is released.
            Ok(new) => *file = new,
            Err(error) => warn(&error),
        }
    }
}

/// A new file with a name that was never used.
fn temporary(folder: &Path, pid: u32) -> io::Result<NamedTempFile> {
    tempfile::Builder::new().prefix(&format!("{pid}-")).suffix(".new").rand_bytes(16).tempfile_in(folder)
}

/// Puts the file there when it is complete and locked.
fn put(mut new: NamedTempFile, path: &Path, process: &Process) -> io::Result<File> {
    new.as_file().try_lock()?;
    new.write_all(&serde_json::to_vec(process)?)?;
    Ok(new.persist(path)?)
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
    for _ in 0..READ_RETRIES {
        let file = open(path).ok()?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                file.take(MAX_BYTES).read_to_string(&mut text).ok()?;
                let process: Process = serde_json::from_str(&text).ok()?;
                return Some(Process { id: path.file_stem()?.to_string_lossy().into_owned(), ..process });
            }
            Err(TryLockError::Error(_)) => return None,
            // The process has replaced it.
            Ok(()) if file.metadata().ok()?.nlink() == 0 => {}
            Ok(()) => {
                let _ = fs::remove_file(path);
                return None;
            }
        }
    }
    None
}

/// Opens a file that is neither a link nor a pipe, which would block.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = flags.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// Asks every process to read the configuration again; returns the number of the request, which is higher than all others.
pub(crate) fn request_reload(workspace: &Path) -> io::Result<u64> {
    let folder = folder(workspace);
    let lock = folder.join(REQUEST_LOCK);
    let lock = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(lock)?;
    wait_for(&lock)?;
    // The file of the requests may have been removed.
    let answered = list(workspace).iter().map(|process| process.configuration.request).max();
    let number = requested(workspace).max(answered.unwrap_or_default()).saturating_add(1);
    let mut file = NamedTempFile::new_in(&folder)?;
    file.write_all(number.to_string().as_bytes())?;
    file.persist(folder.join(REQUEST))?;
    Ok(number)
}

/// Another request holds the lock for a moment.
fn wait_for(lock: &File) -> io::Result<()> {
    for _ in 0..LOCK_RETRIES {
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_WAIT),
            Err(TryLockError::Error(error)) => return Err(error),
            Ok(()) => return Ok(()),
        }
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "another `embody reload` does not end"))
}

/// The number of the last request; 0 if there was none.
pub(crate) fn requested(workspace: &Path) -> u64 {
    let mut text = String::new();
    let read = open(&folder(workspace).join(REQUEST))
        .and_then(|file| file.take(MAX_BYTES).read_to_string(&mut text));
    read.ok().and_then(|_| text.trim().parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    fn process(changed: &[&str]) -> Process {
        Process {
            command: "up".to_owned(),
            pid: std::process::id(),
            configuration: ConfigurationState {
                changed: changed.iter().map(|&name| name.to_owned()).collect(),
                ..ConfigurationState::default()
            },
            ..Process::default()
        }
    }

    fn listed(workspace: &Path) -> Vec<Process> {
        list(workspace).into_iter().map(|process| Process { id: String::new(), ..process }).collect()
    }

    #[test]
    fn a_process_is_listed_while_it_holds_its_file() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(list(folder.path()), []);
        let mut file = ProcessFile::create(folder.path(), &process(&["policy"]));
        assert_eq!(listed(folder.path()), [process(&["policy"])]);
        let id = list(folder.path())[0].id.clone();
        for state in [process(&["policy", "body mail"]), process(&[])] {
            file.write(&state);
            assert_eq!(listed(folder.path()), [state]);
        }
        // A process with the same number in another container.
        let other = ProcessFile::create(folder.path(), &process(&["tools"]));
        assert_eq!(list(folder.path()).len(), 2);
        drop(other);
        assert_eq!(list(folder.path())[0].id, id);
        drop(file);
        assert_eq!(list(folder.path()), []);
        let dead = super::folder(folder.path()).join("1.json");
        fs::write(&dead, "{}").unwrap();
        assert_eq!(list(folder.path()), []);
        assert_eq!(fs::read_dir(super::folder(folder.path())).unwrap().count(), 0);
    }

    #[test]
    fn a_process_is_found_at_any_moment_while_others_list() {
        let folder = tempfile::tempdir().unwrap();
        for _ in 0..20 {
            std::thread::scope(|scope| {
                let files: Vec<_> = (0..4)
                    .map(|_| {
                        scope.spawn(|| {
                            let mut file = ProcessFile::create(folder.path(), &process(&[]));
                            (0..20).for_each(|_| {
                                file.write(&process(&["policy"]));
                                assert!(!list(folder.path()).is_empty());
                            });
                            file
                        })
                    })
                    .collect();
                let files: Vec<_> = files.into_iter().map(|file| file.join().unwrap()).collect();
                assert_eq!(list(folder.path()).len(), 4);
                drop(files);
            });
            assert_eq!(list(folder.path()), []);
        }
    }

    #[test]
    fn links_and_pipes_are_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| super::folder(folder.path()).join(name);
        let file = ProcessFile::create(folder.path(), &process(&[]));
        symlink(&file.0.as_ref().unwrap().1, path("link.json")).unwrap();
        for name in ["pipe.json", REQUEST] {
            mknodat(CWD, path(name), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        }
        assert_eq!(listed(folder.path()), [process(&[])]);
        assert_eq!(requested(folder.path()), 0);
    }

    #[test]
    fn each_request_has_a_higher_number() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(requested(folder.path()), 0);
        let mut file = ProcessFile::create(folder.path(), &process(&[]));
        assert_eq!(request_reload(folder.path()).unwrap(), 1);
        assert_eq!((request_reload(folder.path()).unwrap(), requested(folder.path())), (2, 2));
        // Requests at the same time have different numbers, and a reader always finds one.
        let mut numbers: Vec<u64> = std::thread::scope(|scope| {
            let ask = || {
                let number = request_reload(folder.path()).unwrap();
                assert!(requested(folder.path()) >= number);
                number
            };
            let asking: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
            asking.into_iter().map(|asking| asking.join().unwrap()).collect()
        });
        numbers.sort_unstable();
        assert_eq!(numbers, (3..=10).collect::<Vec<u64>>());
        // A lost file does not start again: processes have answered higher numbers.
        let mut answered = process(&[]);
        answered.configuration.request = 10;
        file.write(&answered);
        fs::remove_file(super::folder(folder.path()).join(REQUEST)).unwrap();
        assert_eq!(request_reload(folder.path()).unwrap(), 11);
    }
}
