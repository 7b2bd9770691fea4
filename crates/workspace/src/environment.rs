//! Facts about the machine, and the time in the user's zone. An unknown zone becomes UTC and a note.

use embody_prompt::{Audience, HostFacts, LocalTime, Note, NoteKind, Source, Value};
use jiff::Timestamp;
use jiff::tz::TimeZone;

pub(crate) struct ClockReading {
    pub(crate) now: Value<LocalTime>,
    pub(crate) utc: String,
    pub(crate) zone: String,
    pub(crate) is_zone_known: bool,
}

/// The time in the given zone, or else in the zone of the machine. A zone other than UTC reveals something about the user, so it is
/// for `audience` only.
pub(crate) fn now(
    at: Option<Timestamp>,
    zone: Option<&(String, Source)>,
    audience: Audience,
    notes: &mut Vec<Note>,
) -> ClockReading {
    let source = if at.is_some() { Source::fixed("--now") } else { Source::fixed("clock") };
    let known = match zone {
        None => system_zone().ok_or_else(|| "the machine's time zone is unknown; UTC is used".to_owned()),
        Some((name, _)) => TimeZone::get(name)
            .map(|zone| {
                let name = zone.iana_name().unwrap_or(name).to_owned();
                (zone, name)
            })
            .map_err(|_| format!("unknown time zone `{name}`; UTC is used instead")),
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
    let now = LocalTime { local: shown(zone), zone: name.clone(), zone_source: Some(zone_source) };
    ClockReading {
        now: Value::new(now, source, audience),
        utc: shown(TimeZone::UTC),
        zone: name,
        is_zone_known,
    }
}

const UTC: &str = "UTC";

fn system_zone() -> Option<(TimeZone, String)> {
    let zone = TimeZone::system();
    let name = zone.iana_name()?.to_owned();
    Some(if matches!(name.as_str(), "Etc/UTC" | "Etc/UCT" | "Etc/Zulu") {
        (TimeZone::UTC, UTC.to_owned())
    } else {
        (zone, name)
    })
}

#[derive(Clone, Debug, Default)]
pub struct ModelFacts {
    pub provider: Option<String>,
    pub model: Option<String>,
}

pub(crate) fn host_facts(model: &ModelFacts, audience: Audience) -> HostFacts {
    let machine = Source::fixed("machine");
    let config = Source::fixed("config [model]");
    let value =
        |text: Option<String>, source: &Source| text.map(|text| Value::new(text, source.clone(), audience));
    let root = rustix::process::geteuid().is_root();
    HostFacts {
        host: value(rustix::system::uname().nodename().to_str().ok().map(str::to_owned), &machine),
        os: value(Some(std::env::consts::OS.into()), &machine),
        arch: value(Some(std::env::consts::ARCH.into()), &machine),
        shell: value(shell(), &machine),
        provider: value(model.provider.clone(), &config),
        model: value(model.model.clone(), &config),
        sudo_non_interactive: value(root.then(|| "true".into()), &machine),
        sudo_status: value(root.then(|| "root".into()), &machine),
        ..HostFacts::default()
    }
}

fn shell() -> Option<String> {
    let shell = std::env::var_os("SHELL")?;
    Some(std::path::Path::new(&shell).file_name()?.to_str()?.to_owned())
}
