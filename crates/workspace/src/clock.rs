//! The time in the user's zone. An unknown zone is UTC and a note.

use embody_prompt::{Audience, Note, NoteKind, Now, Source, Value};
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// What the clock says, here and in UTC.
pub(crate) struct Moment {
    pub(crate) now: Value<Now>,
    pub(crate) utc: String,
    pub(crate) zone: String,
    /// Whether that is the zone that was asked for.
    pub(crate) is_zone_known: bool,
}

/// The moment, shown in the zone of that name; the machine's own zone when none is given. A zone other than UTC says
/// something about the user, so it is for `audience` only.
pub(crate) fn now(
    at: Option<Timestamp>,
    zone: Option<&(String, Source)>,
    audience: Audience,
    notes: &mut Vec<Note>,
) -> Moment {
    let source = if at.is_some() { Source::fixed("--now") } else { Source::fixed("clock") };
    let known = match zone {
        None => system_zone().ok_or_else(|| "the machine's time zone is unknown; UTC is used".to_owned()),
        Some((name, _)) => TimeZone::get(name)
            .map(|zone| {
                let name = zone.iana_name().unwrap_or(name).to_owned();
                (zone, name)
            })
            .map_err(|_| format!("`{name}` is no known time zone; UTC is used instead")),
    };
    let zone_source = zone.map_or(Source::fixed("machine"), |(_, source)| source.clone());
    let is_zone_known = known.is_ok();
    let (zone, name) = known.unwrap_or_else(|message| {
        notes.push(Note::new(NoteKind::UnknownTimezone, message, zone_source.clone()));
        (TimeZone::UTC, UTC.to_owned())
    });
    let audience = if name == UTC { Audience::Public } else { audience };
    let at = at.unwrap_or_else(Timestamp::now);
    let shown = |zone: TimeZone| at.to_zoned(zone).strftime("%A, %Y-%m-%d %H:%M").to_string();
    let now = Now { local: shown(zone), zone: name.clone(), zone_source: Some(zone_source) };
    Moment { now: Value::new(now, source, audience), utc: shown(TimeZone::UTC), zone: name, is_zone_known }
}

const UTC: &str = "UTC";

/// The machine's zone and its name, if it has one.
fn system_zone() -> Option<(TimeZone, String)> {
    let zone = TimeZone::system();
    let name = zone.iana_name()?.to_owned();
    Some(if matches!(name.as_str(), "Etc/UTC" | "Etc/UCT" | "Etc/Zulu") {
        (TimeZone::UTC, UTC.to_owned())
    } else {
        (zone, name)
    })
}
