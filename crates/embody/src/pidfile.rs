//! The lock file of `embody up`: held for the life of the process, with its address and pid. The system releases the lock of a
//! process that dies, so a stale file means nothing.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

const FILE: &str = "up.lock";
const MAX_BYTES: u64 = 4096;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UpProcess {
    pub(crate) address: String,
    pub(crate) pid: u32,
}

/// Writes the file and holds its lock until the process ends. A second process on the same workspace waits for the first.
/// Best effort: only `embody status` reads it.
pub(crate) fn announce(workspace: &Path, address: String) {
    let path = workspace.join(FILE);
    let up = UpProcess { address, pid: std::process::id() };
    // Waiting for the lock blocks, so it has a thread of its own, which ends with the process.
    std::thread::spawn(move || match lock(&path, &up) {
        Ok(_lock) => loop {
            std::thread::park();
        },
        Err(error) => {
            tracing::warn!(reason = %error, "cannot write the lock file: `embody status` will not show this process")
        }
    });
}

fn lock(path: &Path, up: &UpProcess) -> io::Result<File> {
    let mut file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
    file.lock()?;
    file.set_len(0)?;
    file.write_all(serde_json::to_string(up)?.as_bytes())?;
    Ok(file)
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

    #[test]
    fn only_a_locked_file_means_a_running_process() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        assert_eq!(read(folder.path()), None);
        let up = UpProcess { address: "http://127.0.0.1:7717".to_owned(), pid: 7 };
        let held = lock(&path, &up).unwrap();
        assert_eq!((read(folder.path()), read(folder.path())), (Some(up.clone()), Some(up)));
        drop(held);
        assert!(path.exists());
        assert_eq!(read(folder.path()), None);
    }

    #[test]
    fn a_shorter_entry_replaces_a_longer_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let up = |address: &str| UpProcess { address: address.to_owned(), pid: 7 };
        drop(lock(&path, &up("http://127.0.0.1:7717")).unwrap());
        let _held = lock(&path, &up("http://h")).unwrap();
        assert_eq!(read(folder.path()), Some(up("http://h")));
    }
}
