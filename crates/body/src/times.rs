//! Times as programs and models read and write them.

use jiff::Timestamp;

/// RFC 3339, to the second.
pub(crate) fn shown(micros: i64) -> String {
    Timestamp::from_microsecond(micros).map_or_else(|_| micros.to_string(), |at| format!("{at:.0}"))
}
