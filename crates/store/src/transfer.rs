//! Copies a whole store: a backup, its restoration, and the way from SQLite to PostgreSQL and back. The target is empty before,
//! and complete or untouched afterwards. The audit chain of this machine goes along with its key and head.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use futures_util::StreamExt;
use sqlx::{Column, Row as _, TypeInfo, ValueRef};
use tempfile::TempPath;

use crate::audit::{ChainFiles, make_once, read_key};
use crate::db::{Begin, Conn, Value, args, dialect, migrate, postgres, sqlite};
use crate::error::{Error, ErrorKind, Result};
use crate::store::{DatabaseUrl, files_beside, files_in, now};

/// Rows and bytes of one insert.
const BATCH_ROWS: usize = 256;
const BATCH_BYTES: usize = 4 * 1024 * 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyReport {
    pub tables: usize,
    pub rows: u64,
    /// The key of the audit chain beside the copy; `None` if neither the store nor the target has one.
    pub audit_key: Option<PathBuf>,
    /// Where the replaced store is now.
    pub replaced: Option<PathBuf>,
}

/// What may be at the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Nothing, or an empty PostgreSQL database.
    Empty,
    /// A SQLite store that no process uses. It is renamed and kept.
    Replace,
}

/// Copies every row of the store at `from` to `to`. Other processes may write to `from` meanwhile: the copy is the state of one
/// moment.
pub async fn copy_store(from: &DatabaseUrl, to: &DatabaseUrl, target: Target) -> Result<CopyReport> {
    let source =
        Source::open(from).await.map_err(|error| error.about(format!("cannot read the store `{from}`")))?;
    let done = match to {
        DatabaseUrl::Memory => Err(Error::invalid("a store in memory ends with its process")),
        DatabaseUrl::File(path) => copy_to_file(&source, path, target).await,
        DatabaseUrl::Postgres { url, keys, .. } => copy_to_postgres(&source, url, keys).await,
    };
    source.begin.close().await;
    done.map_err(|error| error.about(format!("cannot copy the store to `{to}`")))
}

struct Source {
    begin: Begin,
    id: String,
    key: Option<[u8; 32]>,
    /// The content of the head's file.
    head: Option<Vec<u8>>,
}

impl Source {
    async fn open(url: &DatabaseUrl) -> Result<Self> {
        let begin = match url {
            DatabaseUrl::Memory => return Err(Error::invalid("a store in memory cannot be copied")),
            DatabaseUrl::File(path) => Begin::sqlite(sqlite::open_existing(path).await?),
            DatabaseUrl::Postgres { url, .. } => Begin::Pg(postgres::open(url)?),
        };
        let mut conn = begin.read().await?;
        if !migrate::is_known(&mut conn).await? {
            return Err(Error::new(ErrorKind::NotFound, "it is not a store of embody"));
        }
        if !migrate::is_current(&mut conn).await? {
            return Err(Error::new(ErrorKind::Schema, "its schema is older than this version")
                .hint("copy it with the version that wrote it, or open it once with this one, as by `embody store status`"));
        }
        let id = migrate::name(&mut conn).await?;
        drop(conn);
        let files = chain_files(url, &id);
        // The head before the rows: one that is older than its chain is normal, a newer one means a loss.
        let head = fs::read(&files.head).ok();
        let key = read_key(&files.key)?;
        Ok(Self { begin, id, key, head })
    }
}

fn chain_files(url: &DatabaseUrl, id: &str) -> ChainFiles {
    match url {
        DatabaseUrl::Memory => files_beside(Path::new("")),
        DatabaseUrl::File(path) => files_beside(path),
        DatabaseUrl::Postgres { keys, .. } => files_in(keys, id),
    }
}

async fn copy_to_postgres(source: &Source, url: &str, keys: &Path) -> Result<CopyReport> {
    let files = files_in(keys, &source.id);
    refuse_other_key(source, &files)?;
    let begin = Begin::Pg(postgres::open(url)?);
    let done = copy_to_database(source, &begin).await;
    begin.close().await;
    let (tables, rows) = done?;
    Ok(CopyReport { tables, rows, audit_key: keep_chain_files(source, &files)?, replaced: None })
}

/// The file has another name until it is complete.
async fn copy_to_file(source: &Source, path: &Path, target: Target) -> Result<CopyReport> {
    let failed = |error| Error::file(format!("cannot write `{}`", path.display()), error);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let present = path.symlink_metadata().is_ok();
    let files = files_beside(path);
    match (present, target) {
        (true, Target::Empty) => {
            return Err(Error::new(ErrorKind::Conflict, format!("`{}` exists already", path.display()))
                .hint("choose another file"));
        }
        (true, Target::Replace) => close_unused(path).await?,
        (false, _) => refuse_other_key(source, &files)?,
    }
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    let unfinished = tempfile::Builder::new().prefix(".embody-copy-").tempdir_in(folder).map_err(failed)?;
    let file = unfinished.path().join("store.db");
    let sqlite = sqlite::open_file(&file).await?;
    let begin = Begin::Sqlite(sqlite.writer);
    drop(sqlite.readers);
    let done = copy_to_database(source, &begin).await;
    begin.close().await;
    let (tables, rows) = done?;
    sqlite::close_journal(&file).await?;
    File::open(&file).and_then(|file| file.sync_all()).map_err(failed)?;
    let replaced = if present { Some(move_aside(source, path, &files).await?) } else { None };
    let placed = TempPath::try_from_path(&file).map_err(failed)?.persist_noclobber(path);
    if let Err(error) = placed {
        let error = failed(error.error);
        // Never over a file that another process has just created.
        return Err(match replaced {
            Some(aside) => error.about(format!(
                "the store before is `{}`, and no other was put in its place",
                aside.display()
            )),
            None => error,
        });
    }
    let audit_key = keep_chain_files(source, &files)?;
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)?;
    Ok(CopyReport { tables, rows, audit_key, replaced })
}

/// Makes a store a single file. Fails if a process uses it.
async fn close_unused(path: &Path) -> Result<()> {
    let closed = sqlite::close_journal(path).await;
    closed.map_err(|error| {
        let hint = "stop every process that uses it, and run it again";
        error.about(format!("the store `{}` is in use", path.display())).hint(hint)
    })
}

/// Renames a SQLite store, and keeps its key and head with it.
async fn move_aside(source: &Source, path: &Path, files: &ChainFiles) -> Result<PathBuf> {
    // A process may have opened it during the copy. Its journal must not lie beside another database.
    close_unused(path).await?;
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".replaced-{}", now()));
    let aside = PathBuf::from(name);
    let kept = files_beside(&aside);
    let is_ours = source.key.is_none() || read_key(&files.key)? == source.key;
    for (from, to) in [(&files.key, &kept.key), (&files.head, &kept.head)] {
        let moved = match is_ours {
            // The chain goes on with both: the head knows what the backup does not have.
            true => fs::copy(from, to).map(drop),
            false => fs::rename(from, to),
        };
        match moved {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::file(format!("cannot keep `{}`", from.display()), error));
            }
            _ => {}
        }
    }
    fs::rename(path, &aside)
        .map_err(|error| Error::file(format!("cannot rename `{}`", path.display()), error))?;
    Ok(aside)
}

fn refuse_other_key(source: &Source, files: &ChainFiles) -> Result<()> {
    match (read_key(&files.key)?, source.key) {
        (Some(known), Some(key)) if known != key => {
            let message = format!("`{}` is the audit key of another store", files.key.display());
            Err(Error::new(ErrorKind::Conflict, message)
                .hint("move the key and the head beside it away, or choose another target"))
        }
        _ => Ok(()),
    }
}

/// Writes key and head of the audit chain, unless they are there. A crash before this loses no record.
fn keep_chain_files(source: &Source, files: &ChainFiles) -> Result<Option<PathBuf>> {
    let keep = |path: &Path, content: &[u8]| {
        make_once(path, content)
            .map_err(|error| Error::file(format!("cannot write `{}`", path.display()), error))
    };
    if let Some(head) = &source.head {
        keep(&files.head, head)?;
    }
    if let Some(key) = &source.key {
        keep(&files.key, key)?;
    }
    Ok(files.key.exists().then(|| files.key.clone()))
}

async fn copy_to_database(source: &Source, target: &Begin) -> Result<(usize, u64)> {
    let mut to = target.begin().await?.conn;
    match copy_tables(source, &mut to).await {
        Ok(done) => to.commit().await.map(|()| done),
        Err(error) => {
            let _ = to.rollback().await;
            Err(error)
        }
    }
}

async fn copy_tables(source: &Source, to: &mut Conn) -> Result<(usize, u64)> {
    migrate::apply(to).await?;
    to.execute("DELETE FROM embody_database", Vec::new()).await?;
    let mut from = source.begin.read().await?;
    if !from.is_postgres() {
        from.execute("BEGIN", Vec::new()).await?;
    }
    from.execute(dialect!(SNAPSHOT), Vec::new()).await?;
    let (mut tables, mut rows) = (0, 0);
    for table in migrate::tables() {
        let taken: Vec<(i64,)> = to
            .fetch_all(format!("SELECT COUNT(*) FROM (SELECT 1 FROM {table} LIMIT 1) AS one"), Vec::new())
            .await?;
        if taken != [(0,)] {
            return Err(Error::new(ErrorKind::Conflict, format!("the database has rows in `{table}`"))
                .hint("copy into an empty database"));
        }
        rows += copy_table(&mut from, to, table).await?;
        tables += 1;
    }
    from.rollback().await?;
    Ok((tables, rows))
}

async fn copy_table(from: &mut Conn, to: &mut Conn, table: &str) -> Result<u64> {
    let columns: Vec<(String, String)> = to.fetch_all(dialect!(COLUMN_TYPES), args![table]).await?;
    let kinds: Vec<Kind> = columns.iter().map(|(_, kind)| Kind::from_type(kind)).collect();
    let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
    let names = names.join(", ");
    let insert = format!("INSERT INTO {table} ({names})");
    let mut source = from.stream::<Cells>(format!("SELECT {names} FROM {table}"));
    let (mut batch, mut bytes, mut count) = (Vec::new(), 0, 0);
    while let Some(row) = source.next().await {
        let Cells(cells) = row?;
        bytes += cells.iter().map(Cell::len).sum::<usize>();
        let values = cells.into_iter().zip(&kinds).map(|(cell, kind)| cell.into_value(*kind));
        batch.push(values.collect::<Result<Vec<Value>>>()?);
        count += 1;
        if batch.len() == BATCH_ROWS || bytes > BATCH_BYTES {
            to.insert_rows(&insert, std::mem::take(&mut batch), "").await?;
            bytes = 0;
        }
    }
    to.insert_rows(&insert, batch, "").await?;
    Ok(count)
}

/// The type of a column.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Int,
    Bytes,
    Json,
}

impl Kind {
    fn from_type(name: &str) -> Self {
        match name.to_ascii_lowercase().as_str() {
            "integer" | "bigint" | "int8" => Self::Int,
            "blob" | "bytea" => Self::Bytes,
            "jsonb" => Self::Json,
            _ => Self::Text,
        }
    }
}

/// A row of any table.
struct Cells(Vec<Cell>);

enum Cell {
    Null,
    Text(String),
    Int(i64),
    Bytes(Vec<u8>),
    Json(serde_json::Value),
}

impl Cell {
    fn len(&self) -> usize {
        match self {
            Self::Null | Self::Int(_) => 8,
            Self::Text(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
            Self::Json(json) => json.to_string().len(),
        }
    }

    fn into_value(self, kind: Kind) -> Result<Value> {
        Ok(match (self, kind) {
            (Self::Null, Kind::Text) => Value::Text(None),
            (Self::Null, Kind::Int) => Value::Int(None),
            (Self::Null, Kind::Bytes) => Value::Bytes(None),
            (Self::Null, Kind::Json) => Value::Json(None),
            (Self::Text(text), Kind::Json) => Value::Json(Some(
                serde_json::from_str(&text)
                    .map_err(|error| Error::new(ErrorKind::Corrupt, error.to_string()))?,
            )),
            (Self::Text(text), _) => Value::from(text),
            (Self::Int(number), _) => Value::from(number),
            (Self::Bytes(bytes), _) => Value::from(bytes),
            (Self::Json(json), _) => Value::from(json),
        })
    }
}

macro_rules! read_cells {
    ($Row:ty) => {
        impl sqlx::FromRow<'_, $Row> for Cells {
            fn from_row(row: &$Row) -> sqlx::Result<Self> {
                let cell =
                    |(index, column): (usize, &<<$Row as sqlx::Row>::Database as sqlx::Database>::Column)| {
                        if row.try_get_raw(index)?.is_null() {
                            return Ok(Cell::Null);
                        }
                        Ok(match Kind::from_type(column.type_info().name()) {
                            Kind::Text => Cell::Text(row.try_get(index)?),
                            Kind::Int => Cell::Int(row.try_get(index)?),
                            Kind::Bytes => Cell::Bytes(row.try_get(index)?),
                            Kind::Json => Cell::Json(row.try_get(index)?),
                        })
                    };
                row.columns().iter().enumerate().map(cell).collect::<sqlx::Result<_>>().map(Self)
            }
        }
    };
}

read_cells!(sqlx::sqlite::SqliteRow);
read_cells!(sqlx::postgres::PgRow);
