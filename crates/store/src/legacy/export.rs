//! The export of old rows: a JSON file that only its owner can read, complete or missing, never over another file.
//!
//! `docs/store.md` describes the format.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use serde_json::{Value, json};

use super::table::Table;
use crate::error::{Error, ErrorKind, Result};
use crate::store::now;

/// Writes the file and syncs it. It has another name until it is complete.
pub(super) fn write(path: &Path, database: &str, tables: &[Table]) -> Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let write = || -> io::Result<()> {
        if path.symlink_metadata().is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let mut file = tempfile::Builder::new().prefix(".embody-legacy-").tempfile_in(folder)?;
        write_json(BufWriter::new(&mut file), database, tables)?;
        file.as_file().sync_all()?;
        file.persist_noclobber(path)?;
        File::open(folder)?.sync_all()
    };
    write().map_err(|error| failed(path, error))
}

fn write_json(mut file: impl Write, database: &str, tables: &[Table]) -> io::Result<()> {
    let head =
        json!({ "format": "embody-legacy-export", "version": 1, "exported_at": now(), "database": database });
    // The object stays open for the tables.
    write!(file, "{},\n\"tables\": [", head.to_string().trim_end_matches('}'))?;
    for (at, table) in tables.iter().enumerate() {
        let columns: Vec<Value> = (table.columns.iter())
            .map(|column| {
                json!({ "name": column.name, "type": column.kind, "not_null": column.not_null, "default": column.default })
            })
            .collect();
        let comma = if at == 0 { "" } else { "," };
        write!(file, "{comma}\n{{\"name\": {},\n\"columns\": {},", json!(table.name), json!(columns))?;
        write!(file, "\n\"schema\": {},\n\"rows\": [", json!(table.schema))?;
        for (at, row) in table.rows.iter().enumerate() {
            let values = table.columns.iter().zip(row);
            let fields: Vec<String> =
                values.map(|(column, cell)| format!("{}: {}", json!(column.name), cell.to_json())).collect();
            let comma = if at == 0 { "" } else { "," };
            write!(file, "{comma}\n{{{}}}", fields.join(", "))?;
        }
        write!(file, "]}}")?;
    }
    writeln!(file, "\n]}}")?;
    file.flush()
}

fn failed(path: &Path, error: io::Error) -> Error {
    let path = path.display();
    let kind = match error.kind() {
        io::ErrorKind::AlreadyExists => {
            let message = format!("the export `{path}` exists already; nothing was changed");
            return Error::new(ErrorKind::Conflict, message).hint("name another file with `--export`");
        }
        io::ErrorKind::StorageFull => ErrorKind::Full,
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => ErrorKind::ReadOnly,
        _ => ErrorKind::Other,
    };
    Error::new(kind, format!("the export `{path}` cannot be written; nothing was changed"))
        .because(error)
        .hint("name another file with `--export`")
}
