//! Exports the spans of the broker to a collector: OTLP over HTTP in protobuf, which `otlp` encodes. Spans wait in a bounded queue and
//! are sent in batches; a batch that fails is retried with backoff, then dropped and counted. No call ever waits for it.

mod otlp;

use std::borrow::Cow;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use embody_broker::meter::{Attribute, Meter, Span, Spans, Value};
use embody_wire::server::CancellationToken;
use embody_wire::{Proxies, Url};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, StatusCode};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::config::Config;
use crate::config::env::{OTLP_ENDPOINT, non_empty};
use crate::config::mask::Address;
use crate::error::{CliError, chain_text};

const SHUTDOWN_GRACE: Duration = Duration::from_secs(3);

pub(crate) struct Telemetry {
    meter: Arc<Meter>,
    exporting: Option<(CancellationToken, JoinHandle<()>)>,
}

impl Telemetry {
    pub(crate) fn start(config: &Config) -> Result<Self, CliError> {
        let settings = &config.telemetry;
        let Some(url) = &settings.otlp_url else {
            if non_empty(OTLP_ENDPOINT).is_some() {
                tracing::debug!(
                    variable = OTLP_ENDPOINT,
                    "no traces are sent: the exporter is off or its settings cannot be used"
                );
            }
            return Ok(Self { meter: Arc::default(), exporting: None });
        };
        let (spans, queue) = Spans::new(settings.sample_percent);
        let exporter = Exporter::new(config, url, spans.clone())?;
        let stop = CancellationToken::new();
        let work = tokio::spawn(exporter.run(queue, stop.clone()));
        Ok(Self { meter: Arc::new(Meter::with_spans(spans)), exporting: Some((stop, work)) })
    }

    pub(crate) fn meter(&self) -> Arc<Meter> {
        Arc::clone(&self.meter)
    }

    /// Sends the remaining spans, for a short time.
    pub(crate) async fn end(self) {
        let Some((stop, mut work)) = self.exporting else { return };
        stop.cancel();
        if timeout(SHUTDOWN_GRACE, &mut work).await.is_err() {
            work.abort();
            tracing::warn!("the last traces could not be sent in time");
        }
    }
}

const BATCH: usize = 512;
/// How long spans are collected into one batch.
const BATCH_DELAY: Duration = Duration::from_secs(1);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Attempts per batch, the first delay, and the maximum delay.
const ATTEMPTS: u32 = 5;
const RETRY_DELAY: Duration = Duration::from_secs(1);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(30);
const PATH: &str = "/v1/traces";

struct Exporter {
    client: Client,
    url: Url,
    display_url: String,
    headers: HeaderMap,
    proxies: Proxies,
    resource: Vec<Attribute>,
    spans: Spans,
    is_failing: bool,
}

enum SendError {
    /// With the delay of `Retry-After`.
    Retryable(String, Option<Duration>),
    Permanent(String),
}

impl Exporter {
    fn new(config: &Config, address: &Address, spans: Spans) -> Result<Self, CliError> {
        let (settings, proxies) = (&config.telemetry, config.proxies.clone());
        let wrong =
            |error: &dyn Error| CliError::usage("`telemetry.otlp_url` is not a valid URL").caused_by(error);
        let mut url = Url::parse(address.expose()).map_err(|error| wrong(&error))?;
        let path = url.path().trim_end_matches('/').to_owned();
        if !path.ends_with(PATH) {
            url.set_path(&format!("{path}{PATH}"));
        }
        let builder = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(REQUEST_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false);
        let client = proxies
            .apply(builder, &url)
            .build()
            .map_err(|error| CliError::new("traces cannot be sent").caused_by(&error.without_url()))?;
        let mut headers = HeaderMap::new();
        for (name, value) in &settings.headers {
            let failed = |error: &dyn Error| {
                CliError::usage(format!("`telemetry.headers.{name}` cannot be sent")).caused_by(error)
            };
            let mut value = HeaderValue::from_str(value.expose()).map_err(|error| failed(&error))?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_bytes(name.as_bytes()).map_err(|error| failed(&error))?, value);
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        let (display_url, resource) = (address.to_string(), resource(&settings.service_name));
        Ok(Self { client, url, display_url, headers, proxies, resource, spans, is_failing: false })
    }

    /// Sends spans until `stop`, and then the remaining ones.
    async fn run(mut self, mut queue: mpsc::Receiver<Span>, stop: CancellationToken) {
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            tokio::select! {
                taken = queue.recv_many(&mut batch, BATCH) => if taken == 0 { return },
                () = stop.cancelled() => break,
            }
            tokio::select! {
                () = sleep(BATCH_DELAY) => {}
                () = stop.cancelled() => {}
            }
            fill(&mut batch, &mut queue);
            self.deliver(&mut batch, &stop).await;
        }
        loop {
            fill(&mut batch, &mut queue);
            if batch.is_empty() {
                return;
            }
            self.deliver(&mut batch, &stop).await;
        }
    }

    /// Sends a batch, with retries unless it is stopping.
    async fn deliver(&mut self, batch: &mut Vec<Span>, stop: &CancellationToken) {
        let body = otlp::request(&self.resource, batch);
        let mut delay = RETRY_DELAY;
        for attempt in 1..=ATTEMPTS {
            let reason = match self.send(body.clone()).await {
                Ok(()) => {
                    self.note_success();
                    self.spans.exported(batch.len());
                    batch.clear();
                    return;
                }
                Err(SendError::Retryable(reason, retry_after))
                    if attempt < ATTEMPTS && !stop.is_cancelled() =>
                {
                    self.warn_once(&reason);
                    let wait = retry_after.unwrap_or(delay).min(MAX_RETRY_DELAY);
                    delay = delay.saturating_mul(2);
                    tokio::select! {
                        () = sleep(wait) => {}
                        () = stop.cancelled() => {}
                    }
                    continue;
                }
                Err(SendError::Retryable(reason, _) | SendError::Permanent(reason)) => reason,
            };
            self.warn_once(&reason);
            break;
        }
        self.spans.failed(batch.len());
        batch.clear();
    }

    async fn send(&self, body: Vec<u8>) -> Result<(), SendError> {
        let request = self.client.post(self.url.clone()).headers(self.headers.clone()).body(body);
        let failed = |error: reqwest::Error| {
            SendError::Retryable(
                self.proxies.describe_error(&self.url, chain_text(&error.without_url())),
                None,
            )
        };
        let response = request.send().await.map_err(failed)?;
        let status = response.status();
        if status.is_success() {
            return Ok(());
        }
        let reason = format!("the collector returned {}", status.as_u16());
        // The codes that OTLP declares retryable.
        let is_retryable = matches!(
            status,
            StatusCode::TOO_MANY_REQUESTS
                | StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT
        );
        if !is_retryable {
            return Err(SendError::Permanent(reason));
        }
        let retry_after =
            response.headers().get(RETRY_AFTER).and_then(|after| after.to_str().ok()?.parse().ok());
        Err(SendError::Retryable(reason, retry_after.map(Duration::from_secs)))
    }

    /// Logs the first failure only.
    fn warn_once(&mut self, reason: &str) {
        if !self.is_failing {
            tracing::warn!(
                collector = self.display_url,
                reason,
                "traces cannot be sent; calls are not affected"
            );
        }
        self.is_failing = true;
    }

    fn note_success(&mut self) {
        if self.is_failing {
            tracing::info!(collector = self.display_url, lost = self.spans.lost(), "traces are sent again");
        }
        self.is_failing = false;
    }
}

fn fill(batch: &mut Vec<Span>, queue: &mut mpsc::Receiver<Span>) {
    while batch.len() < BATCH
        && let Ok(span) = queue.try_recv()
    {
        batch.push(span);
    }
}

fn resource(service: &str) -> Vec<Attribute> {
    let text = |text: String| Value::Text(Cow::Owned(text));
    let mut bytes = [0; 16];
    // Without random bytes all instances have the same id, which is acceptable.
    let _ = getrandom::fill(&mut bytes);
    let instance: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    vec![
        ("service.name", text(service.to_owned())),
        ("service.version", text(env!("CARGO_PKG_VERSION").to_owned())),
        ("service.instance.id", text(instance)),
        ("process.pid", Value::Number(std::process::id().into())),
    ]
}
