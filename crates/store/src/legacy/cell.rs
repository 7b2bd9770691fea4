//! One value of an old table: what a database gave, the text in it, and how the export writes it. Pure.

use std::fmt::Write;

use serde_json::{Value, json};

/// A value as the database has it. PostgreSQL gives texts only: its own form of every type.
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

/// The text of a cell, fit for both databases, and what had to be replaced for it.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Clean {
    pub(super) text: String,
    /// Number of NUL characters replaced by U+FFFD.
    pub(super) nuls: usize,
    /// Whether bytes that are not UTF-8 were replaced by U+FFFD.
    pub(super) lossy: bool,
}

impl Cell {
    /// The text of it; `None` for NULL.
    pub(super) fn clean(&self) -> Option<Clean> {
        let (text, lossy) = match self {
            Self::Null => return None,
            Self::Int(number) => (number.to_string(), false),
            Self::Real(number) => (number_text(*number), false),
            Self::Text(text) => (text.clone(), false),
            Self::BadText(bytes) | Self::Blob(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => (text.to_owned(), false),
                Err(_) => (String::from_utf8_lossy(bytes).into_owned(), true),
            },
        };
        Some(Clean { nuls: 0, lossy, text }.without_nul())
    }

    /// How the export writes it: what JSON has no form for is an object with one key.
    pub(super) fn exported(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Int(number) => json!(number),
            Self::Real(number) if number.is_finite() => json!(number),
            Self::Real(number) => json!({ "$real": number_text(*number) }),
            Self::Text(text) => json!(text),
            Self::BadText(bytes) => json!({ "$text": hex(bytes) }),
            Self::Blob(bytes) => json!({ "$blob": hex(bytes) }),
        }
    }

    /// Whether it says no. What is not there says nothing.
    pub(super) fn is_false(&self) -> bool {
        match self {
            Self::Int(number) => *number == 0,
            Self::Real(number) => *number == 0.0,
            Self::Text(text) => {
                ["false", "f", "0", "no", "off"].iter().any(|no| text.trim().eq_ignore_ascii_case(no))
            }
            Self::Null | Self::BadText(_) | Self::Blob(_) => false,
        }
    }
}

impl Clean {
    /// The same with its NUL characters replaced: PostgreSQL cannot hold them.
    pub(super) fn without_nul(mut self) -> Self {
        let nuls = self.text.matches('\0').count();
        if nuls > 0 {
            self.text = self.text.replace('\0', "\u{fffd}");
            self.nuls += nuls;
        }
        self
    }
}

fn number_text(number: f64) -> String {
    serde_json::Number::from_f64(number).map_or_else(|| format!("{number}"), |number| number.to_string())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
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
            assert_eq!(cell.exported().to_string(), json);
        }
    }

    #[test]
    fn texts_are_cleaned_and_it_is_said() {
        let clean = Cell::Text("a\0b\0".into()).clean().unwrap();
        assert_eq!(clean, Clean { text: "a\u{fffd}b\u{fffd}".into(), nuls: 2, lossy: false });
        assert_eq!(Cell::BadText(vec![0x61, 0xff]).clean().unwrap().text, "a\u{fffd}");
        assert!(Cell::Blob(vec![0xff]).clean().unwrap().lossy);
        assert_eq!(Cell::Blob(b"ab".to_vec()).clean().unwrap().text, "ab");
        assert_eq!(Cell::Real(2.5).clean().unwrap().text, "2.5");
        assert_eq!(Cell::Null.clean(), None);
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
}
