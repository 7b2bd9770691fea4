//! Values of statements, statements in two dialects, and the macros for transactions and rows.

use sqlx::query::Query;
use sqlx::types::Json;
use sqlx::{AssertSqlSafe, Postgres, SqlSafeStr, SqlStr, Sqlite};

/// A statement; most are the same for both databases.
#[derive(Clone, Copy)]
pub(crate) struct Sql {
    pub(crate) sqlite: &'static str,
    pub(crate) pg: &'static str,
}

/// A text that can be run: one for both databases, one for each, or one that was put together for this connection.
pub(crate) trait Statement {
    fn text(self, is_postgres: bool) -> SqlStr;
}

impl Statement for &'static str {
    fn text(self, _is_postgres: bool) -> SqlStr {
        self.into_sql_str()
    }
}

impl Statement for Sql {
    fn text(self, is_postgres: bool) -> SqlStr {
        if is_postgres { self.pg.into_sql_str() } else { self.sqlite.into_sql_str() }
    }
}

/// Names in it must be quoted; values belong into parameters.
impl Statement for String {
    fn text(self, _is_postgres: bool) -> SqlStr {
        AssertSqlSafe(self).into_sql_str()
    }
}

/// The statement of this name in each backend's own file.
macro_rules! dialect {
    ($name:ident) => {
        $crate::db::Sql { sqlite: $crate::db::sqlite::sql::$name, pg: $crate::db::postgres::sql::$name }
    };
}
pub(crate) use dialect;

/// Runs `|conn| ..` as one transaction of a store and waits until it is durable.
macro_rules! transaction {
    ($store:expr, |$conn:ident| $work:block) => {
        $store.write(move |$conn| Box::pin(async move $work)).await
    };
    ($store:expr, |$conn:ident| $work:expr) => {
        $crate::db::transaction!($store, |$conn| { $work })
    };
}
pub(crate) use transaction;

/// Runs `|tx| ..` as one transaction that may add audit records, and waits until it is durable.
macro_rules! audited {
    ($store:expr, |$tx:ident| $work:block) => {
        $store.write_audited(move |$tx| Box::pin(async move $work)).await
    };
    ($store:expr, |$tx:ident| $work:expr) => {
        $crate::db::audited!($store, |$tx| { $work })
    };
}
pub(crate) use audited;

/// Reads a row into a struct: the columns in their order, each as it is or through a function. With `=>` they are local
/// variables of the expression that makes the struct.
macro_rules! from_row {
    ($Type:ident { $($field:ident $(as $type:ty)? $(: $read:expr)?),* $(,)? }) => {
        $crate::db::from_row! { $Type { $($field $(as $type)? $(: $read)?),* } => Ok(Self { $($field),* }) }
    };
    ($Type:ident { $($field:ident $(as $type:ty)? $(: $read:expr)?),* $(,)? } => $make:expr) => {
        $crate::db::from_row! { @ sqlx::sqlite::SqliteRow, $Type { $($field $(as $type)? $(: $read)?),* } => $make }
        $crate::db::from_row! { @ sqlx::postgres::PgRow, $Type { $($field $(as $type)? $(: $read)?),* } => $make }
    };
    (@ $Row:ty, $Type:ident { $($field:ident $(as $type:ty)? $(: $read:expr)?),* } => $make:expr) => {
        impl sqlx::FromRow<'_, $Row> for $Type {
            fn from_row(row: &$Row) -> sqlx::Result<Self> {
                let mut columns = $crate::db::Columns::new(row);
                $(let $field $(: $type)? = $crate::db::from_row!(@ columns $(, $read)?);)*
                let made: $crate::error::Result<Self> = $make;
                Ok(made?)
            }
        }
    };
    (@ $columns:ident) => { $columns.next()? };
    (@ $columns:ident, $read:expr) => { ($read)($columns.next()?)? };
}
pub(crate) use from_row;

pub(crate) struct Columns<'r, R> {
    row: &'r R,
    next: usize,
}

impl<'r, R: sqlx::Row> Columns<'r, R> {
    pub(crate) fn new(row: &'r R) -> Self {
        Self { row, next: 0 }
    }

    pub(crate) fn next<T>(&mut self) -> sqlx::Result<T>
    where
        T: sqlx::Decode<'r, R::Database> + sqlx::Type<R::Database>,
        usize: sqlx::ColumnIndex<R>,
    {
        let column = self.next;
        self.next += 1;
        self.row.try_get(column)
    }
}

/// A row of a queue: its fence is the last column.
pub(crate) struct WithFence<T>(pub(crate) T, pub(crate) i64);

impl<'r, R: sqlx::Row, T: sqlx::FromRow<'r, R>> sqlx::FromRow<'r, R> for WithFence<T>
where
    i64: sqlx::Decode<'r, R::Database> + sqlx::Type<R::Database>,
    usize: sqlx::ColumnIndex<R>,
{
    fn from_row(row: &'r R) -> sqlx::Result<Self> {
        Ok(Self(T::from_row(row)?, row.try_get(row.len() - 1)?))
    }
}

/// A row that is read by itself: one that cannot be read does not keep the others from being read.
pub(crate) struct Lenient<T>(pub(crate) crate::error::Result<T>);

impl<'r, R: sqlx::Row, T: sqlx::FromRow<'r, R>> sqlx::FromRow<'r, R> for Lenient<T> {
    fn from_row(row: &'r R) -> sqlx::Result<Self> {
        Ok(Self(T::from_row(row).map_err(crate::error::Error::from)))
    }
}

/// Both databases store a truth value as a number.
pub(crate) fn flag(number: i64) -> crate::error::Result<bool> {
    Ok(number != 0)
}

/// The names of an enum's variants in the database.
macro_rules! names {
    ($vis:vis $Enum:ident { $($Variant:ident = $name:literal),* $(,)? }) => {
        impl $Enum {
            $vis fn name(self) -> &'static str {
                match self {
                    $(Self::$Variant => $name),*
                }
            }

            $vis fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$Variant),)*
                    _ => None,
                }
            }
        }
    };
}
pub(crate) use names;

/// A statement that looks up a list: `listed!("… WHERE term", "$3", " ORDER BY …")`.
macro_rules! listed {
    ($head:expr, $place:literal, $tail:expr) => {
        $crate::db::Sql {
            sqlite: concat!($head, " IN (SELECT value FROM json_each(", $place, "))", $tail),
            pg: concat!($head, " = ANY(", $place, ")", $tail),
        }
    };
}
pub(crate) use listed;

#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(Option<String>),
    Int(Option<i64>),
    Bytes(Option<Vec<u8>>),
    Json(Option<serde_json::Value>),
    /// A list to look up: an array for PostgreSQL, a JSON array for SQLite.
    Ints(Vec<i64>),
    Texts(Vec<String>),
}

macro_rules! args {
    ($($value:expr),* $(,)?) => { vec![$($crate::db::Value::from($value)),*] };
}
pub(crate) use args;

macro_rules! from {
    ($($type:ty => $value:ident $make:expr;)*) => {
        $(impl From<$type> for Value { fn from($value: $type) -> Self { $make } })*
    };
}

from! {
    &str => value Self::Text(Some(value.to_owned()));
    &String => value Self::Text(Some(value.clone()));
    String => value Self::Text(Some(value));
    Option<String> => value Self::Text(value);
    Option<&str> => value Self::Text(value.map(str::to_owned));
    i64 => value Self::Int(Some(value));
    u32 => value Self::Int(Some(i64::from(value)));
    bool => value Self::Int(Some(i64::from(value)));
    Option<i64> => value Self::Int(value);
    Vec<u8> => value Self::Bytes(Some(value));
    &[u8] => value Self::Bytes(Some(value.to_vec()));
    Option<Vec<u8>> => value Self::Bytes(value);
    serde_json::Value => value Self::Json(Some(value));
    Option<serde_json::Value> => value Self::Json(value);
    Vec<i64> => value Self::Ints(value);
    Vec<String> => value Self::Texts(value);
}

impl Value {
    pub(crate) fn bind_lite(
        self,
        query: Query<'_, Sqlite, sqlx::sqlite::SqliteArguments>,
    ) -> Query<'_, Sqlite, sqlx::sqlite::SqliteArguments> {
        match self {
            Self::Text(value) => query.bind(value),
            Self::Int(value) => query.bind(value),
            Self::Bytes(value) => query.bind(value),
            Self::Json(value) => query.bind(value.map(|json| json.to_string())),
            Self::Ints(values) => query.bind(serde_json::Value::from(values).to_string()),
            Self::Texts(values) => query.bind(serde_json::Value::from(values).to_string()),
        }
    }

    pub(crate) fn bind_pg(
        self,
        query: Query<'_, Postgres, sqlx::postgres::PgArguments>,
    ) -> Query<'_, Postgres, sqlx::postgres::PgArguments> {
        match self {
            Self::Text(value) => query.bind(value),
            Self::Int(value) => query.bind(value),
            Self::Bytes(value) => query.bind(value),
            Self::Json(value) => query.bind(value.map(Json)),
            Self::Ints(values) => query.bind(values),
            Self::Texts(values) => query.bind(values),
        }
    }
}
