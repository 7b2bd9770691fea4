//! The names of months and weekdays in the languages that are read.

/// The month (1 to 12) that a folded word names.
#[must_use]
pub fn month(word: &str) -> Option<i8> {
    position(&MONTHS, word)
}

/// The weekday (Monday is 1) that a folded word names.
#[must_use]
pub fn weekday(word: &str) -> Option<i8> {
    position(&WEEKDAYS, word)
}

/// Whether a word names a month or a weekday, however it is written.
#[must_use]
pub fn is_name(word: &str) -> bool {
    let word = crate::fold::fold(word);
    month(&word).is_some() || weekday(&word).is_some()
}

pub(crate) fn months() -> impl Iterator<Item = &'static str> {
    MONTHS.iter().flat_map(|names| names.split(' '))
}

pub(crate) fn weekdays() -> impl Iterator<Item = &'static str> {
    WEEKDAYS.iter().flat_map(|names| names.split(' '))
}

fn position(table: &[&str], word: &str) -> Option<i8> {
    let at = table.iter().position(|names| names.split(' ').any(|name| name == word))?;
    i8::try_from(at + 1).ok().filter(|_| !word.is_empty())
}

const MONTHS: [&str; 12] = [
    "january jan januar janvier enero",
    "february feb februar fevrier febrero",
    "march mar marz mars marzo",
    "april apr avril abril",
    "may mai mayo",
    "june jun juni juin junio",
    "july jul juli juillet julio",
    "august aug aout agosto",
    "september sep sept septembre septiembre",
    "october oct okt oktober octobre octubre",
    "november nov novembre noviembre",
    "december dec dez dezember decembre diciembre",
];

const WEEKDAYS: [&str; 7] = [
    "monday mondays mon montag montags lundi lundis lunes",
    "tuesday tuesdays tue dienstag dienstags mardi mardis martes",
    "wednesday wednesdays wed mittwoch mittwochs mercredi mercredis miercoles",
    "thursday thursdays thu donnerstag donnerstags jeudi jeudis jueves",
    "friday fridays fri freitag freitags vendredi vendredis viernes",
    "saturday saturdays sat samstag samstags sonnabend samedi samedis sabado sabados",
    "sunday sundays sun sonntag sonntags dimanche dimanches domingo domingos",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_folded_and_known() {
        assert_eq!(
            (month("marz"), weekday("viernes"), month("x"), month("")),
            (Some(3), Some(5), None, None)
        );
        assert!(is_name("Février") && is_name("MONTAG") && !is_name("Entwurf"));
        for name in months().chain(weekdays()) {
            assert_eq!(crate::fold::fold(name), name);
        }
    }
}
