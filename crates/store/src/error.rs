//! One error type: the kind of failure, what was being done, and the database's error as its source.

use std::fmt;

/// Callers decide by the kind; people read the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// Too long, empty, or with characters that a database rejects.
    Invalid,
    NotFound,
    /// Exists already, or was changed concurrently.
    Conflict,
    /// The database stayed locked for too long.
    Busy,
    /// The disk or a queue is full.
    Full,
    ReadOnly,
    /// Not a database, or a damaged one.
    Corrupt,
    Unreachable,
    /// The server rejected the user, the password or the database.
    Denied,
    /// A schema that this program does not understand.
    Schema,
    /// The audit key file is readable by others, or is not a key.
    Key,
    /// The connection broke during the commit: the write may or may not have happened.
    Uncertain,
    Other,
}

#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    hint: Option<&'static str>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, source: None }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    pub(crate) fn because(self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self { source: Some(Box::new(source)), ..self }
    }

    pub(crate) fn hint(self, hint: &'static str) -> Self {
        Self { hint: Some(hint), ..self }
    }

    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    pub fn advice(&self) -> Option<&'static str> {
        self.hint
    }

    /// The same failure, with what it prevented as its message.
    pub(crate) fn about(self, message: String) -> Self {
        Self { kind: self.kind, message, hint: self.hint, source: Some(Box::new(self)) }
    }

    /// A copy for another caller of the same commit.
    pub(crate) fn shared(&self) -> Self {
        let source = self.source.as_ref().map(|source| Error::new(self.kind, source.to_string()));
        Self {
            kind: self.kind,
            message: self.message.clone(),
            hint: self.hint,
            source: source.map(|source| Box::new(source) as Box<_>),
        }
    }

    pub(crate) fn file(message: impl Into<String>, source: std::io::Error) -> Self {
        use std::io::ErrorKind as Io;
        let (kind, hint) = match source.kind() {
            Io::PermissionDenied | Io::ReadOnlyFilesystem => {
                (ErrorKind::ReadOnly, "check the permissions of the file and of its folder")
            }
            Io::StorageFull | Io::QuotaExceeded | Io::FileTooLarge => {
                (ErrorKind::Full, "free some space; no write was left incomplete")
            }
            _ => (ErrorKind::Other, "check the file, its folder and their permissions"),
        };
        Self::new(kind, message).because(source).hint(hint)
    }

    fn of(kind: ErrorKind, source: sqlx::Error) -> Self {
        let (message, hint) = match kind {
            ErrorKind::Conflict => ("it exists already", None),
            ErrorKind::Busy => ("the database was locked by other processes for too long", Some("try again")),
            ErrorKind::Full => ("the disk is full", Some("free some space; no write was left incomplete")),
            ErrorKind::ReadOnly => (
                "the database cannot be written",
                Some("check the permissions of the file and of its folder"),
            ),
            ErrorKind::Corrupt => (
                "the file is not a database, or a damaged one",
                Some("restore a backup, or move the file away to start a new database"),
            ),
            ErrorKind::Unreachable => (
                "the database server does not answer",
                Some("check that it runs and that `store.url` names it"),
            ),
            ErrorKind::Denied => (
                "the database server refuses the connection",
                Some("check the user, the password and the database in `store.url`"),
            ),
            _ => ("the database reports an error", None),
        };
        Self { hint, ..Self::new(kind, message).because(source) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source.as_ref() as _)
    }
}

/// For a row that cannot be read; `From<sqlx::Error>` takes it out again.
impl From<Error> for sqlx::Error {
    fn from(error: Error) -> Self {
        Self::Decode(Box::new(error))
    }
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        let error = match error {
            sqlx::Error::Decode(source) => match source.downcast::<Self>() {
                Ok(own) => return *own,
                Err(source) => sqlx::Error::Decode(source),
            },
            other => other,
        };
        let kind = match &error {
            sqlx::Error::Database(database) => {
                let code = database.code().unwrap_or_default();
                if database.try_downcast_ref::<sqlx::sqlite::SqliteError>().is_some() {
                    sqlite_kind(code.parse().unwrap_or(0))
                } else {
                    postgres_kind(&code)
                }
            }
            sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::PoolTimedOut => ErrorKind::Unreachable,
            sqlx::Error::PoolClosed | sqlx::Error::WorkerCrashed => ErrorKind::Unreachable,
            _ => ErrorKind::Other,
        };
        Self::of(kind, error)
    }
}

/// The low byte of SQLite's extended codes is the kind.
fn sqlite_kind(code: i32) -> ErrorKind {
    match code & 0xff {
        5 | 6 => ErrorKind::Busy,
        8 | 14 | 23 => ErrorKind::ReadOnly,
        // An I/O error while writing is mostly a full or failing disk; 778 and 1034 are writes and syncs.
        13 => ErrorKind::Full,
        10 if matches!(code, 778 | 1034) => ErrorKind::Full,
        11 | 26 => ErrorKind::Corrupt,
        19 if matches!(code, 1555 | 2067 | 2579) => ErrorKind::Conflict,
        _ => ErrorKind::Other,
    }
}

fn postgres_kind(code: &str) -> ErrorKind {
    match code {
        "53100" => ErrorKind::Full,
        "55P03" | "40001" | "40P01" | "57014" => ErrorKind::Busy,
        "3D000" => ErrorKind::Denied,
        "25006" => ErrorKind::ReadOnly,
        "42501" => ErrorKind::Denied,
        "XX001" | "XX002" => ErrorKind::Corrupt,
        _ if code.starts_with("28") => ErrorKind::Denied,
        "23505" => ErrorKind::Conflict,
        "53300" => ErrorKind::Unreachable,
        _ if code.starts_with("08") || code.starts_with("57P") => ErrorKind::Unreachable,
        _ => ErrorKind::Other,
    }
}
