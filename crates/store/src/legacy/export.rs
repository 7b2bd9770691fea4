//! The export of old rows: a JSON file that only its owner can read, complete or missing, never over another file.
//!
//! `docs/store.md` describes the format.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use serde_json::{Map, Value, json};

use super::cell::Cell;
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
        let tables: Vec<Value> = tables.iter().map(table_json).collect();
        let export = json!({
            "format": "embody-legacy-export", "version": 1, "exported_at": now(), "database": database,
            "tables": tables,
        });
        file.write_all(&serde_json::to_vec_pretty(&export)?)?;
        file.as_file().sync_all()?;
        file.persist_noclobber(path)?;
        File::open(folder)?.sync_all()
    };
    let failed = |error: io::Error| {
        let is_taken = error.kind() == io::ErrorKind::AlreadyExists;
        let why = if is_taken { "exists already" } else { "cannot be written" };
        let message = format!("the export `{}` {why}; nothing was changed", path.display());
        if is_taken { Error::new(ErrorKind::Conflict, message) } else { Error::file(message, error) }
    };
    write().map_err(|error| failed(error).hint("name another file with `--export`"))
}

fn table_json(table: &Table) -> Value {
    let row = |row: &Vec<Cell>| -> Map<String, Value> {
        table.columns.iter().zip(row).map(|(column, cell)| (column.name.clone(), cell.to_json())).collect()
    };
    let rows: Vec<Map<String, Value>> = table.rows.iter().map(row).collect();
    let schema: Vec<&String> = table.schema.iter().map(|(sql,)| sql).collect();
    json!({ "name": table.name, "columns": table.columns, "schema": schema, "rows": rows })
}
