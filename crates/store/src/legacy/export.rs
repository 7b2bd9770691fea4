//! The export of old rows: a JSON file that only its owner can read, complete or not there, never over another file.
//!
//! The format stands in `docs/store.md`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::cell::Cell;
use super::shape::Table;
use crate::error::{Error, ErrorKind, Result};
use crate::store::{new_id, now};

/// A file that is being written, under a name of its own until it is complete.
pub(super) struct Export {
    file: BufWriter<File>,
    temporary: PathBuf,
    path: PathBuf,
    tables: usize,
    rows: usize,
}

impl Export {
    /// Begins the file beside where it will be.
    pub(super) fn create(path: &Path, database: &str) -> Result<Self> {
        if path.symlink_metadata().is_ok() {
            return Err(taken(path));
        }
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let temporary = path.with_file_name(format!(".{name}.{}", new_id()));
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&temporary)
            .map_err(|error| failed(path, error))?;
        let mut export =
            Self { file: BufWriter::new(file), temporary, path: path.to_owned(), tables: 0, rows: 0 };
        let head = json!({ "format": "embody-legacy-export", "version": 1, "exported_at": now(), "database": database });
        let head = head.to_string();
        // The object stays open for the tables.
        export.write(&format!("{},\n\"tables\": [", head.trim_end_matches('}')))?;
        Ok(export)
    }

    pub(super) fn table(&mut self, table: &Table, schema: &[String]) -> Result<()> {
        let columns: Vec<Value> = table
            .columns
            .iter()
            .map(|column| {
                json!({ "name": column.name, "type": column.kind, "not_null": column.not_null, "default": column.default })
            })
            .collect();
        let comma = if self.tables == 0 { "" } else { "]}," };
        let text = format!(
            "{comma}\n{{\"name\": {},\n\"columns\": {},\n\"schema\": {},\n\"rows\": [",
            json!(table.name),
            json!(columns),
            json!(schema)
        );
        self.tables += 1;
        self.rows = 0;
        self.write(&text)
    }

    /// Writes one row of the table, with all of its columns.
    pub(super) fn row(&mut self, table: &Table, cells: &[Cell]) -> Result<()> {
        let fields: Vec<String> = table
            .columns
            .iter()
            .zip(cells)
            .map(|(column, cell)| format!("{}: {}", json!(column.name), cell.exported()))
            .collect();
        let comma = if self.rows == 0 { "" } else { "," };
        self.rows += 1;
        self.write(&format!("{comma}\n{{{}}}", fields.join(", ")))
    }

    /// Makes the file durable and gives it its name.
    pub(super) fn finish(mut self) -> Result<()> {
        let end = if self.tables == 0 { "]}\n" } else { "]}\n]}\n" };
        self.write(end)?;
        let mut settle = || {
            self.file.flush()?;
            self.file.get_ref().sync_all()?;
            appear(&self.temporary, &self.path)?;
            File::open(folder(&self.path))?.sync_all()
        };
        let settled: io::Result<()> = settle();
        settled.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => taken(&self.path),
            _ => failed(&self.path, error),
        })
    }

    fn write(&mut self, text: &str) -> Result<()> {
        self.file.write_all(text.as_bytes()).map_err(|error| failed(&self.path, error))
    }
}

impl Drop for Export {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.temporary);
    }
}

/// Gives the file its name unless that is taken. A link fails when it is, a rename would not.
fn appear(temporary: &Path, path: &Path) -> io::Result<()> {
    match fs::hard_link(temporary, path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            // Some file systems have no links.
            match path.symlink_metadata() {
                Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
                Err(_) => fs::rename(temporary, path),
            }
        }
        linked => linked,
    }
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn taken(path: &Path) -> Error {
    Error::new(
        ErrorKind::Conflict,
        format!("the export `{}` exists already; nothing was changed", path.display()),
    )
    .hint("name another file with `--export`")
}

fn failed(path: &Path, error: io::Error) -> Error {
    let kind = match error.kind() {
        io::ErrorKind::StorageFull => ErrorKind::Full,
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => ErrorKind::ReadOnly,
        _ => ErrorKind::Other,
    };
    Error::new(kind, format!("the export `{}` cannot be written; nothing was changed", path.display()))
        .because(error)
        .hint("name another file with `--export`")
}
