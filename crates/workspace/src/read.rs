//! Bounded reads inside one folder. A path that leaves the folder, by dots, by a link or by being absolute, is refused;
//! so are devices, folders, large files and files that are not UTF-8. A file that changes meanwhile is read again.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};

use embody_prompt::{Note, NoteKind, Source};

pub const FILE_LIMIT: u64 = 256 * 1024;
/// How often a file that keeps changing is read again.
const ATTEMPTS: usize = 8;
/// A younger file may still be being written. Longer than a writer is usually suspended, and than the coarsest clock of file
/// times, so that a later write is noticed.
const SETTLING: Duration = Duration::from_millis(20);

#[derive(Clone, Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    canonical: Option<PathBuf>,
    /// The prefix of its paths in sources; empty for the workspace.
    label: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadError {
    NotFound,
    Refused(String),
}

impl Folder {
    pub(crate) fn new(path: &Path, label: impl Into<String>) -> Self {
        Self { path: path.to_owned(), canonical: fs::canonicalize(path).ok(), label: label.into() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A folder inside this one, if it exists. One that leads out becomes a note.
    pub(crate) fn folder(&self, name: &str, notes: &mut Vec<Note>) -> Option<Self> {
        match self.resolve(name) {
            Ok(canonical) => canonical.is_dir().then(|| Self {
                path: self.path.join(name),
                canonical: Some(canonical),
                label: self.name_of(name),
            }),
            Err(ReadError::NotFound) => None,
            Err(ReadError::Refused(reason)) => {
                notes.push(self.refusal(name, &reason));
                None
            }
        }
    }

    pub(crate) fn has(&self, relative: &str) -> bool {
        fs::symlink_metadata(self.path.join(relative)).is_ok()
    }

    /// The first `limit` names that `wanted` selects, sorted, and whether there are more.
    pub(crate) fn names(&self, limit: usize, wanted: impl Fn(&str) -> bool) -> (Vec<String>, bool) {
        let Ok(entries) = fs::read_dir(&self.path) else { return (Vec::new(), false) };
        // Sorting needs all names; a folder with more than this is not a workspace.
        let mut names: Vec<String> = entries
            .take(20_000)
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| wanted(name))
            .collect();
        names.sort_unstable();
        let more = names.len() > limit;
        names.truncate(limit);
        (names, more)
    }

    pub(crate) fn name_of(&self, relative: &str) -> String {
        if self.label.is_empty() { relative.to_owned() } else { format!("{}/{relative}", self.label) }
    }

    pub(crate) fn source(&self, relative: &str) -> Source {
        Source::file(&self.name_of(relative))
    }

    /// The text of a file, without a byte order mark and with plain line ends.
    pub(crate) fn read(&self, relative: &str) -> Result<String, ReadError> {
        let path = self.resolve(relative)?;
        let bytes = read_settled(&path)?;
        let text = String::from_utf8(bytes).map_err(|_| ReadError::Refused("it is not UTF-8 text".into()))?;
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(&text);
        Ok(if text.contains('\r') { text.replace("\r\n", "\n") } else { text.to_owned() })
    }

    /// The text of a file, if it exists and is not blank; a refused one becomes a note.
    pub(crate) fn text(&self, relative: &str, notes: &mut Vec<Note>) -> Option<String> {
        match self.read(relative) {
            Ok(text) => (!text.trim().is_empty()).then_some(text),
            Err(ReadError::NotFound) => None,
            Err(ReadError::Refused(reason)) => {
                notes.push(self.refusal(relative, &reason));
                None
            }
        }
    }

    fn refusal(&self, relative: &str, reason: &str) -> Note {
        let message = format!("not read: {reason}");
        Note::new(NoteKind::RefusedPath, message, Source::named(&self.name_of(relative)))
    }

    pub(crate) fn resolve(&self, relative: &str) -> Result<PathBuf, ReadError> {
        let refuse = |reason: &str| Err(ReadError::Refused(reason.into()));
        let path = Path::new(relative);
        let mut depth = 0_usize;
        for component in path.components() {
            match component {
                Component::Normal(_) => depth += 1,
                Component::CurDir => {}
                Component::ParentDir if depth > 0 => depth -= 1,
                Component::ParentDir => return refuse("it leaves its folder"),
                Component::RootDir | Component::Prefix(_) => return refuse("it is an absolute path"),
            }
        }
        let Some(root) = &self.canonical else { return Err(ReadError::NotFound) };
        let target = fs::canonicalize(root.join(path)).map_err(|error| absent(&error))?;
        if !target.starts_with(root) {
            return refuse("a link leads out of its folder");
        }
        Ok(target)
    }
}

fn absent(error: &io::Error) -> ReadError {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => ReadError::NotFound,
        _ => ReadError::Refused(error.to_string()),
    }
}

/// The bytes of a file at one moment. Replacing the file does not disturb a read: the opened one stays whole.
fn read_settled(path: &Path) -> Result<Vec<u8>, ReadError> {
    for _ in 0..ATTEMPTS {
        // Opening a pipe would block, so check the type first.
        if !fs::metadata(path).map_err(|error| absent(&error))?.is_file() {
            return Err(ReadError::Refused("it is not a regular file".into()));
        }
        let mut file = File::open(path).map_err(|error| absent(&error))?;
        let before = file.metadata().map_err(|error| absent(&error))?;
        if before.len() > FILE_LIMIT {
            return Err(ReadError::Refused(format!(
                "it has {} bytes, the limit is {FILE_LIMIT}",
                before.len()
            )));
        }
        if is_settling(&before) {
            std::thread::sleep(SETTLING);
        }
        let mut bytes = Vec::with_capacity(before.len() as usize);
        Read::by_ref(&mut file)
            .take(FILE_LIMIT + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| absent(&error))?;
        let after = file.metadata().map_err(|error| absent(&error))?;
        let unchanged = before.modified().ok() == after.modified().ok() && before.len() == after.len();
        if unchanged && after.len() == bytes.len() as u64 {
            return Ok(bytes);
        }
    }
    Err(ReadError::Refused("it kept changing while it was read".into()))
}

fn is_settling(metadata: &Metadata) -> bool {
    let age = metadata.modified().ok().and_then(|modified| SystemTime::now().duration_since(modified).ok());
    age.is_some_and(|age| age < SETTLING)
}
