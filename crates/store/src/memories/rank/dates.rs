//! The months, years and days that a question names, and whether a time lies in them. Names of months and ISO dates
//! only; "last week" or "05/06" is not interpreted.

use embody_text::calendar;
use embody_text::dates::day_number;
use embody_text::fold::fold;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Dates {
    months: Vec<i8>,
    years: Vec<i64>,
    days: Vec<i8>,
}

impl Dates {
    pub(super) fn read(text: &str) -> Self {
        let words: Vec<&str> =
            text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
        let mut dates = Self::default();
        for (position, word) in words.iter().enumerate() {
            let before = position.checked_sub(1).and_then(|before| words.get(before)).copied();
            let after = words.get(position + 1).copied();
            if let Some(year) = year(word) {
                dates.years.push(year);
                dates.read_iso(after, words.get(position + 2).copied());
            } else if let Some(month) = month(word, before, after) {
                dates.months.push(month);
            }
        }
        if !dates.months.is_empty() {
            dates.days.extend(words.iter().filter_map(|word| day(word)));
        }
        for list in [&mut dates.months, &mut dates.days] {
            list.sort_unstable();
            list.dedup();
        }
        dates
    }

    /// How well a time, in microseconds since 1970, fits: 1 for the month, 1 for its day, a half for the year.
    pub(super) fn fit(&self, moment_us: i64) -> f64 {
        if self.months.is_empty() && self.years.is_empty() {
            return 0.0;
        }
        let (year, month, day) = civil(moment_us.div_euclid(86_400_000_000));
        let in_month = self.months.contains(&month);
        let of = |fits: bool, worth: f64| if fits { worth } else { 0.0 };
        of(in_month, 1.0)
            + of(in_month && self.days.contains(&day), 1.0)
            + of(self.years.contains(&year), 0.5)
    }

    /// The month and day after the year of `2024-03-05`.
    fn read_iso(&mut self, month: Option<&str>, day: Option<&str>) {
        let two_digits = |text: Option<&str>, highest: i8| {
            text.filter(|text| text.len() == 2)?.parse().ok().filter(|number| (1..=highest).contains(number))
        };
        if let Some(month) = two_digits(month, 12) {
            self.months.push(month);
            self.days.extend(two_digits(day, 31));
        }
    }
}

fn year(word: &str) -> Option<i64> {
    let plausible = word.len() == 4 && (word.starts_with("19") || word.starts_with("20"));
    word.parse().ok().filter(|_| plausible)
}

fn month(word: &str, before: Option<&str>, after: Option<&str>) -> Option<i8> {
    let lower = fold(word);
    let number = calendar::month(&lower)?;
    let is_capital = word.starts_with(char::is_uppercase);
    // Short names such as "dec" are capitalized.
    let is_written_out = lower.len() > 4 || matches!(lower.as_str(), "may" | "june" | "july");
    // "may" and "march" are other words too, unless they are capitalized inside a sentence or beside a number.
    let ambiguous = matches!(lower.as_str(), "may" | "march" | "mar" | "mars");
    let beside_number =
        [before, after].into_iter().flatten().any(|word| day(word).is_some() || year(word).is_some());
    let named = is_capital && before.is_some() && lower != "mars";
    ((is_capital || is_written_out) && (!ambiguous || named || beside_number)).then_some(number)
}

/// A day of a month: `7` or `7th`.
fn day(word: &str) -> Option<i8> {
    day_number(&word.to_ascii_lowercase()).map(|(day, _)| day)
}

/// Year, month and day of a number of days since 1970, counted in years that begin in March and eras of 400 years.
fn civil(days: i64) -> (i64, i8, i8) {
    let shifted = days.saturating_add(719_468);
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, i8::try_from(month).unwrap_or(0), i8::try_from(day).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_since_1970_are_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(-1), (1969, 12, 31));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(19_485), (2023, 5, 8));
        for extreme in [i64::MIN, i64::MAX] {
            let (_, month, day) = civil(extreme / 86_400_000_000);
            assert!((1..=12).contains(&month) && (1..=31).contains(&day));
        }
    }
}
