//! The key of a chain: 32 random bytes in a file that only its owner can read, outside the database.
//!
//! It is never printed, and never used itself: each purpose has its own derived key.

use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

use crate::error::{Error, ErrorKind, Result};
use crate::store::{hex, random_bytes};

const SIZE: usize = 32;

pub(super) struct Key {
    pub(super) records: [u8; SIZE],
    pub(super) head: [u8; SIZE],
    /// Fingerprint of the key; names the chain and is not secret.
    pub(super) name: String,
}

impl Key {
    /// A key that lives as long as the process.
    pub(super) fn forgotten() -> Result<Self> {
        Ok(Self::of(&random_bytes()?))
    }

    /// The key in the file, which is created if missing, and whether it is new.
    pub(super) fn open(path: &Path) -> Result<(Self, bool)> {
        if let Some(key) = read(path)? {
            return Ok((Self::of(&key), false));
        }
        let made = random_bytes()?;
        make_once(path, &made)
            .map_err(|error| Error::file(format!("cannot make the audit key `{}`", path.display()), error))?;
        // Another process may have been first: the stored key counts.
        read(path)?.map(|key| (Self::of(&key), key == made)).ok_or_else(|| {
            Error::new(ErrorKind::Key, format!("the audit key `{}` was removed", path.display()))
        })
    }

    fn of(bytes: &[u8; SIZE]) -> Self {
        let name = blake3::derive_key("embody 2026-11 audit chain name", bytes);
        Self {
            records: blake3::derive_key("embody 2026-11 audit record", bytes),
            head: blake3::derive_key("embody 2026-11 audit head", bytes),
            name: hex(&name).chars().take(16).collect(),
        }
    }
}

pub(crate) fn read(path: &Path) -> Result<Option<[u8; SIZE]>> {
    let failed = |error| Error::file(format!("cannot read the audit key `{}`", path.display()), error);
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let about = file.metadata().map_err(failed)?;
    let unusable = |what: String, hint| Err(Error::new(ErrorKind::Key, what).hint(hint));
    if about.mode() & 0o077 != 0 {
        let mode = about.mode() & 0o7777;
        return unusable(
            format!("the audit key `{}` can be used by others: its mode is `{mode:o}`", path.display()),
            "if no other user has read it, restrict it with chmod 600; otherwise start a new chain",
        );
    }
    if about.len() != SIZE as u64 {
        return unusable(
            format!("the audit key `{}` has {} bytes; a key has {SIZE}", path.display(), about.len()),
            "restore the right file, or move it away to start a new chain",
        );
    }
    let mut key = [0; SIZE];
    file.read_exact(&mut key).map_err(failed)?;
    Ok(Some(key))
}

/// Creates the file with this content, readable by its owner only and synced. An existing one stays as it is.
pub(crate) fn make_once(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut file = tempfile::Builder::new().prefix(".embody-").tempfile_in(folder)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    match file.persist_noclobber(path) {
        // Of two processes that start at once the first wins.
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {}
        persisted => drop(persisted?),
    }
    File::open(folder)?.sync_all()
}
