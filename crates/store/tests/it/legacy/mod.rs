//! The upgrade from the old shape, on every backend that can hold one.

mod content;
mod of_postgres;
mod of_sqlite;
mod old;
mod refusals;
mod upgrade;
