//! The head: the last record of a chain, stored outside the database.
//!
//! It is written after the commit, so it may be older than the database and never newer. A database whose tail was
//! cut off, or that was replaced by an older copy, is behind its head. Several processes share the file: the head
//! only moves forward, unless the chain has recorded that it does not match. It is not synced with every commit: a
//! power cut may lose the last second.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::key::make_once;
use crate::store::{hex, unhex};

/// The format and its version.
const INTRO: &str = "embody-audit-head-1";
/// Intro, chain, seq, mac, tag; a space between two and a line end.
const SIZE: usize = 19 + 1 + 16 + 1 + 20 + 1 + 64 + 1 + 64 + 1;
/// Another process holds the lock for microseconds; a stopped one must not block us.
const LOCK_TRIES: u32 = 100;
const LOCK_PAUSE: Duration = Duration::from_millis(1);
const SYNC_PAUSE: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) seq: i64,
    pub(crate) mac: [u8; 32],
}

/// The head after a commit.
pub(crate) struct NewHead {
    pub(super) head: Head,
    /// A head that did not match the chain. That is recorded, so it may be replaced.
    pub(super) noted: Option<Head>,
}

#[derive(Debug)]
pub(super) enum HeadState {
    Head(Head),
    Missing,
    /// The head of another chain.
    Foreign(String),
    /// Not written with our key.
    Damaged,
    Unreadable(io::Error),
}

impl HeadState {
    pub(super) fn head(&self) -> Option<Head> {
        match self {
            Self::Head(head) => Some(*head),
            _ => None,
        }
    }
}

pub(super) struct HeadKeeper {
    chain: String,
    key: [u8; 32],
    storage: HeadStorage,
    troubled: AtomicBool,
    synced: Mutex<Option<Instant>>,
}

enum HeadStorage {
    Memory(Mutex<Head>),
    File(PathBuf),
}

impl HeadKeeper {
    /// Without a path the head lives as long as the process.
    pub(super) fn new(chain: String, key: [u8; 32], path: Option<PathBuf>) -> Self {
        let storage = match path {
            Some(path) => HeadStorage::File(path),
            None => HeadStorage::Memory(Mutex::new(Head { seq: 0, mac: [0; 32] })),
        };
        Self { chain, key, storage, troubled: AtomicBool::new(false), synced: Mutex::new(None) }
    }

    /// Stores the head of a new chain, unless there is one.
    pub(super) fn begin(&self) -> io::Result<()> {
        match &self.storage {
            HeadStorage::Memory(_) => Ok(()),
            HeadStorage::File(path) => make_once(path, self.line(&Head { seq: 0, mac: [0; 32] }).as_bytes()),
        }
    }

    /// Waits for a process that has just created the key and is about to store the head.
    pub(super) async fn wait_for_begin(&self) {
        for _ in 0..LOCK_TRIES {
            if !matches!(self.read().await, HeadState::Missing) {
                return;
            }
            tokio::time::sleep(LOCK_PAUSE).await;
        }
    }

    pub(super) async fn read(&self) -> HeadState {
        let path = match &self.storage {
            HeadStorage::Memory(head) => {
                return HeadState::Head(*head.lock().unwrap_or_else(PoisonError::into_inner));
            }
            HeadStorage::File(path) => path,
        };
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return HeadState::Missing,
            Err(error) => return HeadState::Unreadable(error),
        };
        match locked(&file, File::try_lock_shared).await {
            Ok(()) => self.read_state(&file),
            Err(error) => HeadState::Unreadable(error),
        }
    }

    /// Moves the head to the end of the chain. A failure does not undo the commit: it is logged, and `verify` reports
    /// it.
    pub(super) async fn advance(&self, reached: &NewHead) {
        let done = match &self.storage {
            HeadStorage::Memory(kept) => {
                *kept.lock().unwrap_or_else(PoisonError::into_inner) = reached.head;
                Ok(())
            }
            HeadStorage::File(path) => self.advance_file(path, reached).await,
        };
        let failed = done.is_err();
        let before = self.troubled.swap(failed, Ordering::Relaxed);
        match done {
            Err(error) if !before => tracing::warn!(
                reason = %error, chain = %self.chain, seq = reached.head.seq,
                "the head of the audit chain cannot be written"
            ),
            Ok(()) if before => {
                tracing::info!(chain = %self.chain, "the head of the audit chain can be written again")
            }
            _ => {}
        }
    }

    pub(super) fn trouble(&self) -> Option<io::Error> {
        match &self.storage {
            HeadStorage::Memory(_) => None,
            HeadStorage::File(path) => OpenOptions::new().write(true).open(path).err(),
        }
    }

    pub(super) fn sync(&self) {
        if let HeadStorage::File(path) = &self.storage
            && let Err(error) = File::open(path).and_then(|file| file.sync_all())
        {
            tracing::warn!(reason = %error, chain = %self.chain, "the head of the audit chain cannot be synced");
        }
    }

    async fn advance_file(&self, path: &PathBuf, NewHead { head, noted }: &NewHead) -> io::Result<()> {
        let file = match OpenOptions::new().read(true).write(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return make_once(path, self.line(head).as_bytes());
            }
            opened => opened?,
        };
        locked(&file, File::try_lock).await?;
        // A foreign head was recorded in the chain when it was read before the commit.
        if !matches!(self.read_state(&file), HeadState::Head(kept) if kept.seq >= head.seq && *noted != Some(kept))
        {
            file.write_all_at(self.line(head).as_bytes(), 0)?;
            file.set_len(SIZE as u64)?;
        }
        file.unlock()?;
        self.sync_sometimes(file);
        Ok(())
    }

    fn sync_sometimes(&self, file: File) {
        let mut synced = self.synced.lock().unwrap_or_else(PoisonError::into_inner);
        if synced.is_none_or(|at| at.elapsed() >= SYNC_PAUSE) {
            *synced = Some(Instant::now());
            tokio::task::spawn_blocking(move || file.sync_data());
        }
    }

    fn read_state(&self, file: &File) -> HeadState {
        let mut bytes = Vec::with_capacity(SIZE);
        let mut buffer = [0; SIZE + 1];
        match file.read_at(&mut buffer, 0) {
            Ok(count) => bytes.extend(buffer.iter().take(count)),
            Err(error) => return HeadState::Unreadable(error),
        }
        let Ok(text) = String::from_utf8(bytes) else { return HeadState::Damaged };
        let fields: Vec<&str> = text.split_ascii_whitespace().collect();
        let [INTRO, chain, seq, mac, _] = fields.as_slice() else { return HeadState::Damaged };
        if *chain != self.chain {
            return HeadState::Foreign(chain.chars().take(16).collect());
        }
        let (Ok(seq), Some(mac)) = (seq.parse(), unhex(mac)) else { return HeadState::Damaged };
        let head = Head { seq, mac };
        if self.line(&head) == text { HeadState::Head(head) } else { HeadState::Damaged }
    }

    fn line(&self, head: &Head) -> String {
        let told = format!("{INTRO} {} {:020} {}", self.chain, head.seq, hex(&head.mac));
        let tag = blake3::keyed_hash(&self.key, told.as_bytes());
        format!("{told} {}\n", tag.to_hex())
    }
}

async fn locked(file: &File, lock: fn(&File) -> Result<(), TryLockError>) -> io::Result<()> {
    for _ in 0..LOCK_TRIES {
        match lock(file) {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => tokio::time::sleep(LOCK_PAUSE).await,
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "another process has it locked"))
}
