//! Every table of the SQLite store, its schema and its rows in the order of their keys. Times and ids are replaced as
//! everywhere; secrets and what is computed with a random key are replaced by their length.

use std::fmt::Write;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use sqlx::sqlite::{SqliteConnectOptions, SqliteRow};
use sqlx::{AssertSqlSafe, Column, Connection, Row, SqliteConnection, TypeInfo, ValueRef};

use super::normalize::stored_time;
use super::record::Record;
use crate::support::world::World;

/// Columns with a secret, a keyed hash, or the hash of a text with a path.
const SECRET: [(&str, &str); 7] = [
    ("tokens", "hash"),
    ("audit", "mac"),
    ("audit_chains", "mac"),
    ("prompt_sections", "hash"),
    ("prompt_receipt_parts", "hash"),
    ("seal_keys", "secret"),
    ("seal_keys", "id"),
];

/// Tables whose key is random: another order.
const ORDER: [(&str, &str); 2] = [("prompt_sections", "text"), ("seal_keys", "created_at")];

/// How many records the audit has.
pub(super) fn audited(world: &World) -> i64 {
    read(world, async |database| {
        sqlx::query_scalar("SELECT count(*) FROM audit").fetch_one(database).await.unwrap()
    })
}

/// Waits until the audit has so many records, and what they tell was handed to the mind. Records of reads and outcomes are
/// written when their results are sent already; without this their order would differ.
pub(super) fn settle(world: &World, records: i64) {
    let deadline = Instant::now() + Duration::from_secs(60);
    let look = || {
        read(world, async |database| {
            let sql = "SELECT (SELECT count(*) FROM audit), (SELECT count(*) FROM observation_outbox) + (SELECT count(*) FROM audit_open)";
            sqlx::query_as::<_, (i64, i64)>(sql).fetch_one(database).await.unwrap()
        })
    };
    loop {
        let (written, waiting) = look();
        assert!(written <= records, "{written} records, expected {records}");
        if written == records && waiting == 0 {
            return;
        }
        assert!(Instant::now() < deadline, "{written} records of {records}, {waiting} wait for the mind");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Takes two snapshots: `NAME_schema` and `NAME`.
pub(super) fn snapshots(world: &World, record: &mut Record, name: &str) {
    let (schema, tables) = read(world, async |database| {
        let sql = "SELECT type || ' ' || name, coalesce(sql, '(automatic)'), name, type FROM sqlite_schema ORDER BY name";
        let all = sqlx::query_as::<_, (String, String, String, String)>(sql)
            .fetch_all(&mut *database)
            .await
            .unwrap();
        let mut tables = Vec::new();
        for (_, _, table, _) in all.iter().filter(|(_, _, _, kind)| kind == "table") {
            let order = ORDER
                .iter()
                .find(|(known, _)| known == table)
                .map_or_else(|| keys(&all, table), |(_, by)| (*by).to_owned());
            let sql = format!("SELECT * FROM \"{table}\" ORDER BY {order}");
            let rows = sqlx::query(AssertSqlSafe(sql)).fetch_all(&mut *database).await.unwrap();
            tables.push((table.clone(), rows));
        }
        (all, tables)
    });
    for (what, sql, ..) in schema {
        record.heading(&format!("# {what}"));
        record.part("sql", &(sql + "\n"));
    }
    record.snapshot(&format!("{name}_schema"));
    for (table, rows) in tables {
        record.heading(&format!("# {table}: {} rows", rows.len()));
        for (number, row) in (1..).zip(&rows) {
            record.part(&number.to_string(), &shown(&table, row));
        }
    }
    record.snapshot(name);
}

/// The columns of the primary key, by their place; all of them if there is none.
fn keys(schema: &[(String, String, String, String)], table: &str) -> String {
    let sql = schema
        .iter()
        .find(|(_, _, name, kind)| name == table && kind == "table")
        .map(|(_, sql, ..)| sql.as_str());
    let sql = sql.unwrap_or_default();
    match sql.split_once("PRIMARY KEY (").and_then(|(_, rest)| rest.split_once(')')) {
        Some((keys, _)) => keys.to_owned(),
        None => "1".to_owned(),
    }
}

/// A row, a line for each column.
fn shown(table: &str, row: &SqliteRow) -> String {
    let mut out = String::new();
    for (number, column) in row.columns().iter().enumerate() {
        let raw = row.try_get_raw(number).unwrap();
        let kind = raw.type_info().name().to_owned();
        let name = column.name();
        let is_secret = SECRET.contains(&(table, name));
        let value = match kind.as_str() {
            _ if raw.is_null() => "NULL".to_owned(),
            "INTEGER" if (table, name) == ("agent_long_term_memory", "digest") && in_broker_session(row) => {
                "[digest of a session's id]".to_owned()
            }
            "INTEGER" => {
                let number: i64 = row.get_unchecked(number);
                let is_time = name == "at" || name.ends_with("_at") || name.ends_with("_until");
                let time = if is_time { stored_time(number) } else { None };
                time.map_or_else(|| number.to_string(), str::to_owned)
            }
            "REAL" => row.get_unchecked::<f64, _>(number).to_string(),
            "BLOB" => {
                let bytes: Vec<u8> = row.get_unchecked(number);
                let subject = || row.try_get::<String, _>("subject").unwrap_or_default();
                match table {
                    _ if is_secret => format!("[{} bytes]", bytes.len()),
                    // The hour of the day, and sessions.
                    "mind_habits" if !subject().starts_with("tool ") => format!("[{} bytes]", bytes.len()),
                    "mind_habits" => habit(&bytes),
                    _ => hexadecimal(&bytes),
                }
            }
            _ => {
                let text: String = row.get_unchecked(number);
                if is_secret { format!("[{} characters]", text.len()) } else { format!("{text:?}") }
            }
        };
        writeln!(out, "{name} = {value}").unwrap();
    }
    out
}

/// Whether a memory belongs to a session of the broker, whose id is random.
fn in_broker_session(row: &SqliteRow) -> bool {
    let session: Option<String> = row.get("session");
    session.is_some_and(|id| id.len() == 32 && id.chars().all(|digit| digit.is_ascii_hexdigit()))
}

/// In groups, so that it is not taken for a random hash.
fn hexadecimal(bytes: &[u8]) -> String {
    let group = |part: &[u8]| part.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    bytes.chunks(4).map(group).collect::<Vec<_>>().join("_")
}

/// A version, then integers and weights of four bytes. Weights fade from minute to minute: two decimals of them are shown.
fn habit(bytes: &[u8]) -> String {
    let now = u32::try_from(Timestamp::now().as_second() / 60).unwrap();
    let (version, rest) = bytes.split_at(1);
    let group = |part: &[u8]| {
        let Ok(part) = <[u8; 4]>::try_from(part) else { return hexadecimal(part) };
        let (integer, weight) = (u32::from_le_bytes(part), f32::from_le_bytes(part));
        match weight {
            _ if (now - 30..=now).contains(&integer) => "[minute]".to_owned(),
            weight if (0.01..1.0e6).contains(&weight) => format!("{weight:.2}"),
            _ => hexadecimal(&part),
        }
    };
    let groups: Vec<String> = rest.chunks(4).map(group).collect();
    format!("{} {}", hexadecimal(version), groups.join(" "))
}

fn read<T>(world: &World, run: impl AsyncFnOnce(&mut SqliteConnection) -> T) -> T {
    let options = SqliteConnectOptions::new().filename(world.path("embody.db")).read_only(true);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut database = SqliteConnection::connect_with(&options).await.unwrap();
        run(&mut database).await
    })
}
