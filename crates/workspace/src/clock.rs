//! The time in the user's zone. An unknown zone is UTC and a note.

use embody_prompt::{Audience, Note, NoteKind, Now, Source, Value};
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// The moment, shown in the zone of that name; the machine's own zone when none is given.
pub(crate) fn now(
    at: Option<Timestamp>,
    zone: Option<&(String, Source)>,
    notes: &mut Vec<Note>,
) -> (Value<Now>, String) {
    let source = if at.is_some() { Source::fixed("--now") } else { Source::fixed("clock") };
    let (zone, name) = match zone {
        None => system_zone(),
        Some((name, source)) => match TimeZone::get(name) {
            Ok(zone) => {
                let name = zone.iana_name().unwrap_or(name).to_owned();
                (zone, name)
            }
            Err(_) => {
                let message = format!("`{name}` is no known time zone; UTC is used instead");
                notes.push(Note::new(NoteKind::UnknownTimezone, message, source.clone()));
                (TimeZone::UTC, "UTC".to_owned())
            }
        },
    };
    let local = at.unwrap_or_else(Timestamp::now).to_zoned(zone).strftime("%A, %Y-%m-%d %H:%M").to_string();
    (Value::new(Now { local, zone: name.clone() }, source, Audience::Public), name)
}

/// The machine's zone, and UTC where it does not say.
fn system_zone() -> (TimeZone, String) {
    let zone = TimeZone::system();
    match zone.iana_name().map(str::to_owned) {
        None => (TimeZone::UTC, "UTC".to_owned()),
        Some(name) if matches!(name.as_str(), "Etc/UTC" | "Etc/UCT" | "Etc/Zulu") => (zone, "UTC".to_owned()),
        Some(name) => (zone, name),
    }
}
