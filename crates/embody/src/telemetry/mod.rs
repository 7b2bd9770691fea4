//! Exports the spans of the broker to a collector: OTLP over HTTP in protobuf. `otlp` encodes, `export` batches and retries.
//! No call ever waits for it.

mod export;
mod otlp;

use std::sync::Arc;
use std::time::Duration;

use embody_broker::meter::{Meter, Spans};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use self::export::Exporter;
use crate::config::env::OTLP_ENDPOINT;
use crate::config::env::non_empty;
use crate::config::resolved::Config;
use crate::error::CliError;

/// Limit for exporting the last spans at shutdown.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(3);

/// The meter of the broker, and the task that exports its spans, if it is configured.
pub(crate) struct Telemetry {
    meter: Arc<Meter>,
    exporting: Option<(watch::Sender<bool>, JoinHandle<()>)>,
}

impl Telemetry {
    pub(crate) fn start(config: &Config) -> Result<Self, CliError> {
        let settings = &config.telemetry;
        let Some(url) = &settings.otlp_url else {
            if non_empty(OTLP_ENDPOINT).is_some() {
                tracing::debug!(
                    variable = OTLP_ENDPOINT,
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

    pub(crate) fn meter(&self) -> Arc<Meter> {
        Arc::clone(&self.meter)
    }

    /// Sends the remaining spans, for a short time.
    pub(crate) async fn end(self) {
        let Some((stop, mut work)) = self.exporting else { return };
        stop.send_replace(true);
        if timeout(SHUTDOWN_GRACE, &mut work).await.is_err() {
            work.abort();
            tracing::warn!("the last traces could not be sent in time");
        }
    }
}
