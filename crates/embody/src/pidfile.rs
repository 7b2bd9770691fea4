//! The lock file of `embody up`: one process per workspace on this machine holds it for its life, with its address, its pid and
//! its owner. The system releases the lock of a process that dies, so a stale file means nothing.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::CliError;

const FILE: &str = "up.lock";
const MAX_BYTES: u64 = 4096;
/// How often to try to get the lock: readers hold it for a moment, and so does a process that was killed.
const RETRIES: u32 = 200;
const RETRY_WAIT: Duration = Duration::from_millis(5);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UpProcess {
    pub(crate) address: String,
    pub(crate) pid: u32,
    /// The owner, who signs in with a link.
    #[serde(default)]
    pub(crate) user: String,
    /// The store, without its password.
    #[serde(default)]
    pub(crate) store: String,
    /// Empty if it is older than this field.
    #[serde(default)]
    pub(crate) version: String,
}

/// The lock of this process, until it is dropped.
#[derive(Debug)]
pub(crate) struct UpLock {
    /// `None` if the workspace cannot be written: then the process is not found, but works.
    file: Option<File>,
}

impl UpLock {
    /// Fails if another process holds the lock, and says where that listens.
    pub(crate) fn take(workspace: &Path) -> Result<Self, CliError> {
        match open(workspace) {
            Ok(Some(file)) => Ok(Self { file: Some(file) }),
            Ok(None) => Err(running(workspace)),
            Err(error) => {
                tracing::warn!(reason = %error, "cannot write the lock file: other commands will not find this process");
                Ok(Self { file: None })
            }
        }
    }

    /// Writes where this process listens.
    pub(crate) fn announce(&mut self, up: &UpProcess) {
        let Some(file) = &mut self.file else { return };
        if let Err(error) = serde_json::to_string(up)
            .map_err(io::Error::from)
            .and_then(|text| file.write_all(text.as_bytes()))
        {
            tracing::warn!(reason = %error, "cannot write the lock file: other commands will not find this process");
        }
    }
}

fn running(workspace: &Path) -> CliError {
    let running = match read(workspace) {
        Some(UpProcess { address, pid, .. }) => format!("at {address} (process {pid})"),
        None => "and is starting".to_owned(),
    };
    CliError::new(format!("`embody up` already runs in the workspace `{}` {running}", workspace.display()))
        .hint("`embody open` prints a link to sign in there; stop that process to start another, or pass `--workspace DIR`")
}

/// The locked, empty file; `None` if another `embody up` holds the lock.
fn open(workspace: &Path) -> io::Result<Option<File>> {
    DirBuilder::new().recursive(true).mode(0o700).create(workspace)?;
    let path = workspace.join(FILE);
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)?;
    for _ in 0..RETRIES {
        match file.try_lock() {
            Ok(()) => return file.set_len(0).map(|()| Some(file)),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) => {}
        }
        std::thread::sleep(RETRY_WAIT);
    }
    Ok(None)
}

/// Whether the account of this process owns the lock file.
pub(crate) fn is_ours(workspace: &Path) -> bool {
    let owner = std::fs::metadata(workspace.join(FILE)).map(|found| found.uid());
    owner.is_ok_and(|owner| owner == rustix::process::geteuid().as_raw())
}

pub(crate) fn read(workspace: &Path) -> Option<UpProcess> {
    let file = File::open(workspace.join(FILE)).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => {}
        Ok(()) | Err(TryLockError::Error(_)) => return None,
    }
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn up(address: &str) -> UpProcess {
        UpProcess {
            address: address.to_owned(),
            pid: 7,
            user: "owner".to_owned(),
            store: String::new(),
            version: String::new(),
        }
    }

    #[test]
    fn only_a_locked_file_means_a_running_process() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(folder.path()), None);
        let mut held = UpLock::take(folder.path()).unwrap();
        assert_eq!(read(folder.path()), None, "it does not listen yet");
        let (starting, _) = UpLock::take(folder.path()).unwrap_err().summary();
        assert!(starting.ends_with("and is starting"), "{starting}");
        held.announce(&up("http://127.0.0.1:7717"));
        let found = up("http://127.0.0.1:7717");
        assert_eq!((read(folder.path()), read(folder.path())), (Some(found.clone()), Some(found)));
        let (second, _) = UpLock::take(folder.path()).unwrap_err().summary();
        assert!(second.ends_with("at http://127.0.0.1:7717 (process 7)"), "{second}");
        drop(held);
        assert!(folder.path().join(FILE).exists());
        assert_eq!(read(folder.path()), None);
    }

    #[test]
    fn a_shorter_entry_replaces_a_longer_one() {
        let folder = tempfile::tempdir().unwrap();
        UpLock::take(folder.path()).unwrap().announce(&up("http://127.0.0.1:7717"));
        let mut held = UpLock::take(folder.path()).unwrap();
        held.announce(&up("http://h"));
        assert_eq!(read(folder.path()), Some(up("http://h")));
    }

    #[test]
    fn readers_do_not_stop_a_process_from_starting() {
        let folder = tempfile::tempdir().unwrap();
        drop(UpLock::take(folder.path()).unwrap());
        let reader = File::open(folder.path().join(FILE)).unwrap();
        reader.try_lock_shared().unwrap();
        std::thread::scope(|scope| {
            let starting = scope.spawn(|| UpLock::take(folder.path()));
            drop(reader);
            starting.join().unwrap().unwrap();
        });
    }
}
