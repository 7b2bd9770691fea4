//! The order of old rows by their `priority`: numbers of any size first, then what is no number, then NULL. Pure.

use std::cmp::Ordering;

use super::cell::Cell;

/// A priority that can be compared, exactly.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Priority {
    Lowest,
    Number(Decimal),
    Highest,
    /// Not a number; compared as text.
    Word(String),
    Missing,
}

/// A decimal number as its digits, because two different ones may be one `f64`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    negative: bool,
    /// Without leading zeros.
    whole: String,
    /// Without trailing zeros.
    part: String,
}

impl Priority {
    pub(super) fn of(cell: &Cell) -> Self {
        let Some(clean) = cell.clean() else { return Self::Missing };
        let text = clean.text.trim();
        if let Some(number) = Decimal::read(text) {
            return Self::Number(number);
        }
        match text.parse::<f64>() {
            // Rust never writes an exponent, so that the digits can be read again.
            Ok(number) if number.is_finite() => {
                Decimal::read(&number.to_string()).map_or_else(|| Self::Word(text.to_owned()), Self::Number)
            }
            Ok(number) if number == f64::INFINITY => Self::Highest,
            Ok(number) if number == f64::NEG_INFINITY => Self::Lowest,
            _ => Self::Word(text.to_owned()),
        }
    }
}

impl Decimal {
    fn read(text: &str) -> Option<Self> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
        let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() && part.is_empty() || !all_digits(whole) || !all_digits(part) {
            return None;
        }
        let whole = whole.trim_start_matches('0').to_owned();
        let part = part.trim_end_matches('0').to_owned();
        let zero = whole.is_empty() && part.is_empty();
        Some(Self { negative: negative && !zero, whole, part })
    }

    fn size(&self) -> (usize, &str, &str) {
        (self.whole.len(), &self.whole, &self.part)
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => self.size().cmp(&other.size()),
            (true, true) => other.size().cmp(&self.size()),
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert!(Priority::of(&pair[0]) < Priority::of(&pair[1]), "{pair:?}");
        }
        assert_eq!(Priority::of(&Cell::Text("-0.0".into())), Priority::of(&Cell::Int(0)));
        assert_eq!(Priority::of(&Cell::Text("007.50".into())), Priority::of(&Cell::Real(7.5)));
    }
}
