//! Traces of calls on their way to a collector: OTLP over HTTP, in protobuf. Owns what is sent, when, and how often it is
//! tried; what is in a span the broker says. Nothing here is ever waited for by a call.
//!
//! - `otlp`: the bytes
//! - `export`: batches, attempts, the last words

mod export;
mod otlp;

use std::sync::Arc;
use std::time::Duration;

use embody_broker::meter::{Meter, Spans};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use self::export::Exporter;
use crate::config::env::non_empty;
use crate::config::resolved::Config;
use crate::config::telemetry::ENDPOINT;
use crate::failure::Failure;

/// How long the last spans may take when everything ends.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// What a broker counts in, and the work that sends its spans, if they are sent.
pub(crate) struct Telemetry {
    meter: Arc<Meter>,
    exporting: Option<(watch::Sender<bool>, JoinHandle<()>)>,
}

impl Telemetry {
    /// Begins, as the configuration says.
    pub(crate) fn start(config: &Config) -> Result<Self, Failure> {
        let settings = &config.telemetry;
        let Some(url) = &settings.otlp_url else {
            if non_empty(ENDPOINT).is_some() {
                tracing::debug!(
                    variable = ENDPOINT,
                    "no traces are sent: it is turned off, or cannot be used"
                );
            }
            return Ok(Self { meter: Arc::default(), exporting: None });
        };
        let (spans, queue) = Spans::new(settings.sample_percent);
        let exporter = Exporter::new(config, url, spans.clone())?;
        let (stop, stopping) = watch::channel(false);
        let work = tokio::spawn(exporter.run(queue, stopping));
        Ok(Self { meter: Arc::new(Meter::with_spans(spans)), exporting: Some((stop, work)) })
    }

    /// What the broker counts in.
    pub(crate) fn meter(&self) -> Arc<Meter> {
        Arc::clone(&self.meter)
    }

    /// Sends what is left, for a short time. Called when nothing is traced any more.
    pub(crate) async fn end(self) {
        let Some((stop, mut work)) = self.exporting else { return };
        stop.send_replace(true);
        if timeout(LAST_WORDS, &mut work).await.is_err() {
            work.abort();
            tracing::warn!("the last traces could not be sent in time");
        }
    }
}
