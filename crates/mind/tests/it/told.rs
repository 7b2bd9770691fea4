//! A mind to talk to: a store in memory, a user, and a clock that stands still.

use embody_mind::{Caller, Contract, ContractSource, Mind, Reflect, Reflection, Trust, ZonedNow};
use embody_store::{DatabaseUrl, Scope, Store};
use jiff::tz::TimeZone;

pub(crate) async fn store() -> Store {
    Store::open(DatabaseUrl::Memory).await.unwrap()
}

/// The mind on this store; who it is does not matter here.
pub(crate) fn mind(store: &Store) -> Mind {
    let nobody = || Contract { text: String::new(), persona_available: false, reasons: Vec::new() };
    Mind::new(store.clone(), ContractSource::new(move |_, _| async move { Ok(nobody()) }))
}

pub(crate) fn caller(user: &str) -> Caller {
    Caller {
        scope: Scope::new(user, "assistant").unwrap(),
        writer: user.into(),
        trust: Trust::Agent,
        session: Some("talk".into()),
        trains: false,
    }
}

/// A time in Berlin, by its wall clock.
pub(crate) fn moment(wall: &str) -> ZonedNow {
    let zone = TimeZone::get("Europe/Berlin").unwrap();
    let wall: jiff::civil::DateTime = wall.parse().unwrap();
    ZonedNow::new(wall.to_zoned(zone.clone()).unwrap().timestamp(), zone)
}

/// A Wednesday, four days before the clocks change.
pub(crate) fn wednesday() -> ZonedNow {
    moment("2026-10-21T10:30")
}

pub(crate) async fn tell(store: &Store, text: &str, kind: Option<&str>, now: &ZonedNow) -> Reflection {
    let args = Reflect { observation: text.into(), kind: kind.map(str::to_owned) };
    mind(store).reflect(&caller("ann"), args, now).await.unwrap()
}

/// What was noted, as the host sees it.
pub(crate) fn noted(reflection: &Reflection) -> Vec<serde_json::Value> {
    let value = serde_json::to_value(reflection).unwrap();
    value["noted"].as_array().unwrap().clone()
}
