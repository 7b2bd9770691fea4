//! A mind on a store of its own, and people who talk to it.

use embody_mind::{Caller, Contract, ContractSource, Mind, Trust, ZonedNow};
use embody_store::{DatabaseUrl, Scope, Store};
use jiff::tz::TimeZone;

pub(crate) const CONTRACT: &str = "## Identity\nYour name is Nia.\n";

pub(crate) async fn mind() -> Mind {
    Mind::new(Store::open(DatabaseUrl::Memory).await.unwrap(), voice())
}

pub(crate) async fn mind_in(file: &std::path::Path) -> Mind {
    Mind::new(Store::open(DatabaseUrl::File(file.to_owned())).await.unwrap(), voice())
}

pub(crate) fn voice() -> ContractSource {
    ContractSource::new(async |_, _| {
        Ok(Contract { text: CONTRACT.to_owned(), persona_available: true, reasons: Vec::new() })
    })
}

/// A host's model that speaks for somebody.
pub(crate) fn host(user: &str) -> Caller {
    Caller {
        scope: Scope::new(user, "assistant").unwrap(),
        writer: "host".into(),
        trust: Trust::Agent,
        session: Some("s1".into()),
        trains: false,
    }
}

/// The owner's own hand.
pub(crate) fn owner(user: &str) -> Caller {
    Caller { writer: "operator".into(), trust: Trust::Owner, session: None, ..host(user) }
}

pub(crate) fn in_session(session: &str) -> Caller {
    Caller { session: Some(session.into()), ..host("ann") }
}

pub(crate) fn now() -> ZonedNow {
    ZonedNow::new("2026-11-16T04:00:00Z".parse().unwrap(), TimeZone::get("Europe/Berlin").unwrap())
}
