//! One value of an old table: its text, its order as a priority, and its form in the export. Pure.

use std::cmp::Ordering;

use serde_json::{Value, json};

use crate::store::hex;

/// A value as the database has it. PostgreSQL returns every type in its own text form.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    Null,
    Int(i64),
    Real(f64),
    Text(String),
    /// Text by SQLite's type, but not UTF-8.
    BadText(Vec<u8>),
    Blob(Vec<u8>),
}

/// The text of a cell, fit for both databases.
#[derive(Debug, Default, PartialEq)]
pub(super) struct CleanText {
    pub(super) text: String,
    /// Number of NUL characters replaced by U+FFFD: PostgreSQL cannot store them.
    pub(super) nuls: usize,
    /// Whether bytes that are not UTF-8 were replaced by U+FFFD.
    pub(super) lossy: bool,
}

impl CleanText {
    pub(super) fn new(text: &str, lossy: bool) -> Self {
        Self { text: text.replace('\0', "\u{fffd}"), nuls: text.matches('\0').count(), lossy }
    }
}

impl Cell {
    /// `None` for NULL.
    pub(super) fn text(&self) -> Option<CleanText> {
        Some(match self {
            Self::Null => return None,
            Self::Int(number) => CleanText::new(&number.to_string(), false),
            Self::Real(number) => CleanText::new(&format!("{number:?}"), false),
            Self::Text(text) => CleanText::new(text, false),
            Self::BadText(bytes) | Self::Blob(bytes) => {
                CleanText::new(&String::from_utf8_lossy(bytes), std::str::from_utf8(bytes).is_err())
            }
        })
    }

    /// A value without a JSON form is an object with one key.
    pub(super) fn to_json(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Int(number) => json!(number),
            Self::Real(number) if number.is_finite() => json!(number),
            Self::Real(number) => json!({ "$real": format!("{number:?}") }),
            Self::Text(text) => json!(text),
            Self::BadText(bytes) => json!({ "$text": hex(bytes) }),
            Self::Blob(bytes) => json!({ "$blob": hex(bytes) }),
        }
    }

    /// Only an explicit false: a missing value is not.
    pub(super) fn is_false(&self) -> bool {
        let text = self.text().unwrap_or_default().text.trim().to_ascii_lowercase();
        ["false", "f", "0", "0.0", "no", "off"].contains(&text.as_str())
    }

    pub(super) fn priority(&self) -> Priority {
        let Some(CleanText { text, .. }) = self.text() else { return Priority(2, 0, 0.0, String::new()) };
        match (text.trim().parse(), text.trim().parse::<f64>()) {
            (Ok(number), _) => Priority(0, number, 0.0, String::new()),
            (_, Ok(number)) if number.abs() < 1e38 => {
                Priority(0, number.floor() as i128, number - number.floor(), String::new())
            }
            (_, Ok(number)) if !number.is_nan() => Priority(0, number as i128, number, String::new()),
            _ => Priority(1, 0, 0.0, text.trim().to_owned()),
        }
    }
}

/// Numbers (0) come first, exact up to 38 digits before the point: the integer below, and the rest. Then other texts (1),
/// then NULL (2).
#[derive(Debug)]
pub(super) struct Priority(pub(super) u8, i128, f64, String);

impl Priority {
    pub(super) fn order(&self, other: &Self) -> Ordering {
        let numbers = self.1.cmp(&other.1).then(self.2.total_cmp(&other.2));
        self.0.cmp(&other.0).then(numbers).then(self.3.cmp(&other.3))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: S-03
    #[test]
    fn every_value_has_one_exact_form_in_the_export() {
        for (cell, json) in [
            (Cell::Null, "null"),
            (Cell::Int(i64::MIN), "-9223372036854775808"),
            (Cell::Real(1.0), "1.0"),
            (Cell::Real(0.1), "0.1"),
            (Cell::Real(f64::NEG_INFINITY), r#"{"$real":"-inf"}"#),
            (Cell::Text("a\0é".into()), "\"a\\u0000é\""),
            (Cell::BadText(vec![0x61, 0xff]), r#"{"$text":"61ff"}"#),
            (Cell::Blob(vec![0, 255]), r#"{"$blob":"00ff"}"#),
        ] {
            assert_eq!(cell.to_json().to_string(), json);
        }
    }

    #[test]
    fn replaced_characters_are_counted() {
        let clean = Cell::Text("a\0b\0".into()).text().unwrap();
        assert_eq!(clean, CleanText { text: "a\u{fffd}b\u{fffd}".into(), nuls: 2, lossy: false });
        assert_eq!(Cell::BadText(vec![0x61, 0xff]).text().unwrap().text, "a\u{fffd}");
        assert!(Cell::Blob(vec![0xff]).text().unwrap().lossy);
        assert_eq!(Cell::Blob(b"ab".to_vec()).text().unwrap().text, "ab");
        assert_eq!(Cell::Real(2.5).text().unwrap().text, "2.5");
        assert_eq!(Cell::Null.text(), None);
    }

    #[test]
    fn only_a_clear_no_is_false() {
        for no in [Cell::Int(0), Cell::Real(0.0), Cell::Text("False".into()), Cell::Text("f".into())] {
            assert!(no.is_false(), "{no:?}");
        }
        for yes in [Cell::Null, Cell::Int(1), Cell::Text("true".into()), Cell::Text(String::new())] {
            assert!(!yes.is_false(), "{yes:?}");
        }
    }

    // spec: S-03
    #[test]
    fn priorities_are_ordered_exactly() {
        let ordered = [
            Cell::Text("-Infinity".into()),
            Cell::Text("-123456789012345678901234567890".into()),
            Cell::Int(i64::MIN),
            Cell::Int(-10),
            Cell::Text("-1.5".into()),
            Cell::Real(-1.25),
            Cell::Int(-1),
            Cell::Text("0".into()),
            Cell::Real(0.5),
            Cell::Text("1".into()),
            Cell::Int(2),
            Cell::Text(" 10 ".into()),
            Cell::Int(i64::MAX - 1),
            Cell::Int(i64::MAX),
            Cell::Text("9223372036854775808".into()),
            Cell::Text("1e+300".into()),
            Cell::Text("Infinity".into()),
            Cell::Text("NaN".into()),
            Cell::Text("high".into()),
            Cell::Null,
        ];
        for pair in ordered.windows(2) {
            assert_eq!(pair[0].priority().order(&pair[1].priority()), Ordering::Less, "{pair:?}");
        }
        for (one, other) in [("-0.0", Cell::Int(0)), ("007.50", Cell::Real(7.5))] {
            let one = Cell::Text(one.into()).priority();
            assert_eq!(one.order(&other.priority()), Ordering::Equal);
        }
    }
}
