//! Whether an `embody up` runs on this workspace: it holds a file locked for as long as it lives, and says there where it
//! is. The system takes the lock from whoever dies, so that a file that is left behind says nothing.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

const FILE: &str = "up.lock";
/// More than anybody writes there.
const LONGEST: u64 = 4096;

/// An `embody up` that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Up {
    /// Where a browser finds it.
    pub(crate) address: String,
    /// Its process.
    pub(crate) pid: u32,
}

/// Says that this process runs at that address, until it ends. A second one on the same workspace says so when the first has
/// ended. Nothing depends on it: where it cannot be said, it is not.
pub(crate) fn announce(workspace: &Path, address: String) {
    let path = workspace.join(FILE);
    let up = Up { address, pid: std::process::id() };
    // Whoever waits for a lock waits on a thread of their own; it ends with the process.
    std::thread::spawn(move || match hold(&path, &up) {
        Ok(_held) => loop {
            std::thread::park();
        },
        Err(error) => tracing::warn!(reason = %error, "`embody status` cannot be told that this runs"),
    });
}

fn hold(path: &Path, up: &Up) -> io::Result<File> {
    let mut file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
    file.lock()?;
    file.set_len(0)?;
    file.write_all(serde_json::to_string(up)?.as_bytes())?;
    Ok(file)
}

/// The one that runs now, if one does.
pub(crate) fn now(workspace: &Path) -> Option<Up> {
    let file = File::open(workspace.join(FILE)).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => {}
        // Nobody holds it, or nobody can tell.
        Ok(()) | Err(TryLockError::Error(_)) => return None,
    }
    let mut text = String::new();
    file.take(LONGEST).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_holds_the_file_runs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        assert_eq!(now(folder.path()), None);
        let up = Up { address: "http://127.0.0.1:7717".to_owned(), pid: 7 };
        let held = hold(&path, &up).unwrap();
        assert_eq!((now(folder.path()), now(folder.path())), (Some(up.clone()), Some(up)));
        drop(held);
        assert!(path.exists());
        assert_eq!(now(folder.path()), None);
    }

    #[test]
    fn what_is_shorter_leaves_nothing_of_what_was_longer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let up = |address: &str| Up { address: address.to_owned(), pid: 7 };
        drop(hold(&path, &up("http://127.0.0.1:7717")).unwrap());
        let _held = hold(&path, &up("http://h")).unwrap();
        assert_eq!(now(folder.path()), Some(up("http://h")));
    }
}
