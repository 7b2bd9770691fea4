//! The folder that a demo lives in: new, the owner's alone, and gone at the end. Refuses to touch any other.

use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// A folder that is removed when it is dropped, also when a step has failed.
pub(super) struct Folder(PathBuf);

impl Folder {
    /// Makes one where the system keeps what is temporary.
    pub(super) fn new() -> Result<Self, Failure> {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).map_err(|_| Failure::new("the system gives no random bytes"))?;
        let path = std::env::temp_dir().join(format!("embody-demo-{:016x}", u64::from_ne_bytes(bytes)));
        // Nobody else's: it fails if something is there, and nobody but the owner may look inside.
        DirBuilder::new().mode(0o700).create(&path).map_err(|error| {
            Failure::new(format!("the folder `{}` could not be made", path.display()))
                .because(&error)
                .hint("the variable TMPDIR says where temporary folders are made")
        })?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Removes it, and says so if that fails.
    pub(super) fn remove(self) -> Result<(), Failure> {
        match fs::remove_dir_all(&self.0) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(Failure::new(format!("the folder `{}` could not be removed", self.0.display()))
                    .because(&error)
                    .hint("nothing in it is needed any more: remove it by hand"))
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
