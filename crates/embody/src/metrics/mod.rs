//! The numbers of this process on a page: the broker's, the outbox, the process itself. Who may see them is the web's.

mod process;

use std::time::Instant;

use embody_broker::Broker;
use embody_broker::meter::{Kind, Page};
use embody_store::Store;

/// Puts everything that any process with a broker can tell on a page.
pub(crate) async fn put(
    page: &mut Page,
    broker: &Broker,
    store: &Store,
    since: Instant,
) -> embody_store::Result<()> {
    page.family("embody_build_info", Kind::Gauge, "Which version runs.")
        .sample(&[("version", env!("CARGO_PKG_VERSION"))], 1);
    let up = "How long it has been running.";
    page.number("embody_up_seconds", Kind::Gauge, up, since.elapsed().as_secs());
    broker.metrics(page);
    let waiting = store.all_pending_observations().await?;
    page.number(
        "embody_outbox_observations",
        Kind::Gauge,
        "What the mind has not heard yet, of all users.",
        waiting.count,
    );
    let now = jiff::Timestamp::now().as_microsecond();
    let oldest_us = waiting.oldest_at.map_or(0, |at| now.saturating_sub(at).max(0));
    page.number(
        "embody_outbox_oldest_seconds",
        Kind::Gauge,
        "For how long the oldest of it has been waiting.",
        std::time::Duration::from_micros(oldest_us.unsigned_abs()).as_secs_f64(),
    );
    process::put(page, since);
    Ok(())
}
