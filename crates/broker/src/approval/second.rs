//! The second line: the beginning of the text, the attachments, and the arguments not shown so far, or their number. A number
//! is never omitted.

use super::argument::{Part, quoted};
use super::audience::is_address;
use super::form::{COLUMNS, columns};
use super::headline::{Choice, MARK, without_middle};
use super::keys::{Meaning, plain};
use super::overview::Overview;
use crate::visible;

/// The minimum width of a text, if it needs that much.
const TEXT: usize = 30;
/// The maximum width of another argument, and the maximum number of them.
const OTHER: usize = 44;
const OTHERS: usize = 8;
/// The maximum width of an attachment's name.
const FILE: usize = 28;
const FILE_KEYS: [&str; 8] = ["path", "filepath", "filename", "file", "name", "url", "uri", "id"];

pub(super) fn line(overview: &Overview<'_>, choice: &Choice<'_>) -> String {
    let files = attachments(overview);
    let (shown, count) = others(overview, choice);
    let text = choice.text.map(|text| text.text.as_str());
    let least = text.map_or(0, |text| columns(&beginning(text, TEXT)));
    // As many of the others as fit next to the text.
    for number in (0..=shown.len()).rev() {
        let more = match count - number {
            0 => None,
            1 => Some("+1 other argument".to_owned()),
            more => Some(format!("+{more} other arguments")),
        };
        let rest: Vec<&str> =
            files.iter().chain(shown.iter().take(number)).chain(&more).map(String::as_str).collect();
        let rest = rest.join(", ");
        let between = if text.is_some() && !rest.is_empty() { ", " } else { "" };
        let room = COLUMNS.saturating_sub(columns(&rest) + columns(between));
        if room >= least || number == 0 {
            let start = text.map(|text| beginning(text, room)).unwrap_or_default();
            return match (start.is_empty(), overview.values.is_empty()) {
                (true, true) => "No arguments".to_owned(),
                (true, false) if rest.is_empty() => "No other arguments".to_owned(),
                _ => format!("{start}{between}{rest}"),
            };
        }
    }
    String::new()
}

/// The beginning of a quoted text, with a mark if it is truncated.
fn beginning(text: &str, most: usize) -> String {
    // Start with the maximum number of characters that can fit.
    let mut start: String = text.chars().take(most).collect();
    loop {
        let mark = if start.len() < text.len() { MARK } else { "" };
        let line = format!("{}{mark}", quoted(&start));
        if columns(&line) <= most || start.pop().is_none() {
            return line;
        }
    }
}

/// The number of attachments, and the name if there is one.
fn attachments(overview: &Overview<'_>) -> Option<String> {
    let is_attached = |place: usize| {
        overview.values.iter().any(|value| value.argument == place && value.meaning == Meaning::Attachment)
    };
    let attached = overview.arguments.iter().enumerate().filter(|(place, _)| is_attached(*place));
    let count: usize = attached
        .map(|(_, argument)| match Part::read(argument.json) {
            Some(Part::Array(items)) => items.len(),
            _ => 1,
        })
        .sum();
    if count != 1 {
        return (count > 0).then(|| format!("{count} attachments"));
    }
    let files =
        overview.values.iter().filter(|value| value.meaning == Meaning::Attachment && value.is_string);
    let is_name =
        |key: &str| FILE_KEYS.contains(&plain(key).as_str()) || Meaning::of(key) == Meaning::Attachment;
    let name =
        files.filter(|value| is_name(&value.key)).map(|value| without_middle(&value.text, FILE)).next();
    Some(name.map_or_else(|| "1 attachment".to_owned(), |name| format!("1 attachment: {name}")))
}

/// Arguments not shown so far, those with an address first, and their number.
fn others(overview: &Overview<'_>, choice: &Choice<'_>) -> (Vec<String>, usize) {
    let of = |place: usize| overview.values.iter().filter(move |value| value.argument == place);
    let is_other = |place: &usize| of(*place).any(|value| !choice.covers(value));
    let mut places: Vec<usize> = (0..overview.arguments.len()).filter(is_other).collect();
    let count = places.len();
    places.retain(|place| overview.is_shown(*place));
    places.sort_by_cached_key(|place| {
        !of(*place).any(|value| value.meaning.is_named() || is_address(&value.text))
    });
    let shown = |place: &usize| {
        // A longer one cannot fit.
        let argument = overview.arguments.get(*place).filter(|argument| argument.json.len() <= 4 * OTHER)?;
        Some(format!("{}: {}", quoted(&argument.key), visible::line(argument.json)))
    };
    let mut all: Vec<String> = places.iter().filter_map(shown).collect();
    all.retain(|other| columns(other) <= OTHER);
    all.truncate(OTHERS);
    (all, count)
}
