//! Everything that must outlive a process, on SQLite or PostgreSQL with the same behaviour.

mod memory;
