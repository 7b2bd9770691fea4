//! Sends spans in batches. A collector that is away is tried again a few times, more and more seldom; then the batch is
//! given up and counted. What comes meanwhile waits in a bounded queue.

use std::borrow::Cow;
use std::error::Error;
use std::time::Duration;

use embody_broker::meter::{Attribute, Span, Spans, Value};
use embody_wire::{Proxies, Url};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, StatusCode};
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use super::otlp;
use crate::config::address::Address;
use crate::config::resolved::Config;
use crate::failure::Failure;

/// The most spans of one request.
const BATCH: usize = 512;
/// Calls that follow each other are told of together.
const GATHER: Duration = Duration::from_secs(1);
const CONNECT: Duration = Duration::from_secs(5);
const REQUEST: Duration = Duration::from_secs(10);
/// How often one batch is tried, how long it waits after the first time, and at most.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Where traces belong, below the collector's address.
const PATH: &str = "/v1/traces";

/// Sends spans.
pub(super) struct Exporter {
    client: Client,
    url: Url,
    /// The address, fit to print.
    place: String,
    headers: HeaderMap,
    proxies: Proxies,
    resource: Vec<Attribute>,
    spans: Spans,
    is_failing: bool,
}

/// Why a batch did not arrive.
enum Failed {
    /// It may later.
    ForNow(String, Option<Duration>),
    /// It never will.
    ForGood(String),
}

impl Exporter {
    pub(super) fn new(config: &Config, address: &Address, spans: Spans) -> Result<Self, Failure> {
        let (settings, proxies) = (&config.telemetry, config.proxies.clone());
        let wrong = |error: &dyn Error| Failure::usage("`telemetry.otlp_url` is no address").because(error);
        let mut url = Url::parse(address.expose()).map_err(|error| wrong(&error))?;
        let path = url.path().trim_end_matches('/').to_owned();
        if !path.ends_with(PATH) {
            url.set_path(&format!("{path}{PATH}"));
        }
        let builder = Client::builder()
            .connect_timeout(CONNECT)
            .timeout(REQUEST)
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false);
        let client = proxies
            .pave(builder, &url)
            .build()
            .map_err(|error| Failure::new("traces cannot be sent").because(&error.without_url()))?;
        let mut headers = HeaderMap::new();
        for (name, value) in &settings.headers {
            let failed = |error: &dyn Error| {
                Failure::usage(format!("`telemetry.headers.{name}` cannot be sent")).because(error)
            };
            let mut value = HeaderValue::from_str(value.expose()).map_err(|error| failed(&error))?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_bytes(name.as_bytes()).map_err(|error| failed(&error))?, value);
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        let (place, resource) = (address.to_string(), resource(&settings.service_name));
        Ok(Self { client, url, place, headers, proxies, resource, spans, is_failing: false })
    }

    /// Sends whatever comes until it is told to stop, and then what is left.
    pub(super) async fn run(mut self, mut queue: mpsc::Receiver<Span>, mut stop: watch::Receiver<bool>) {
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            tokio::select! {
                taken = queue.recv_many(&mut batch, BATCH) => if taken == 0 { return },
                () = stopped(&mut stop) => break,
            }
            tokio::select! {
                () = sleep(GATHER) => {}
                () = stopped(&mut stop) => {}
            }
            fill(&mut batch, &mut queue);
            self.deliver(&mut batch, &mut stop).await;
        }
        loop {
            fill(&mut batch, &mut queue);
            if batch.is_empty() {
                return;
            }
            self.deliver(&mut batch, &mut stop).await;
        }
    }

    /// Sends a batch, again if need be; when everything ends, once.
    async fn deliver(&mut self, batch: &mut Vec<Span>, stop: &mut watch::Receiver<bool>) {
        let body = otlp::request(&self.resource, batch);
        let mut pause = PAUSE;
        for attempt in 1..=ATTEMPTS {
            let reason = match self.send(body.clone()).await {
                Ok(()) => {
                    self.arrived();
                    self.spans.exported(batch.len());
                    batch.clear();
                    return;
                }
                Err(Failed::ForNow(reason, wanted)) if attempt < ATTEMPTS && !*stop.borrow() => {
                    self.complain(&reason);
                    let longer = wanted.unwrap_or(pause).min(LONGEST_PAUSE);
                    pause = pause.saturating_mul(2);
                    tokio::select! {
                        () = sleep(longer) => {}
                        () = stopped(stop) => {}
                    }
                    continue;
                }
                Err(Failed::ForNow(reason, _) | Failed::ForGood(reason)) => reason,
            };
            self.complain(&reason);
            break;
        }
        self.spans.failed(batch.len());
        batch.clear();
    }

    async fn send(&self, body: Vec<u8>) -> Result<(), Failed> {
        let request = self.client.post(self.url.clone()).headers(self.headers.clone()).body(body);
        let failed = |error: reqwest::Error| {
            Failed::ForNow(self.proxies.blame(&self.url, why(&error.without_url())), None)
        };
        let response = request.send().await.map_err(failed)?;
        let status = response.status();
        if status.is_success() {
            return Ok(());
        }
        let reason = format!("the collector answers {}", status.as_u16());
        // Those that the protocol names.
        let is_for_now = matches!(
            status,
            StatusCode::TOO_MANY_REQUESTS
                | StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT
        );
        if !is_for_now {
            return Err(Failed::ForGood(reason));
        }
        let wanted = response.headers().get(RETRY_AFTER).and_then(|after| after.to_str().ok()?.parse().ok());
        Err(Failed::ForNow(reason, wanted.map(Duration::from_secs)))
    }

    /// Said once, and not with every attempt.
    fn complain(&mut self, reason: &str) {
        if !self.is_failing {
            tracing::warn!(collector = self.place, reason, "traces cannot be sent; calls go on");
        }
        self.is_failing = true;
    }

    fn arrived(&mut self) {
        if self.is_failing {
            tracing::info!(collector = self.place, lost = self.spans.lost(), "traces are sent again");
        }
        self.is_failing = false;
    }
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    // Whoever could say so is gone only when everything is.
    let _ = stop.wait_for(|stop| *stop).await;
}

fn fill(batch: &mut Vec<Span>, queue: &mut mpsc::Receiver<Span>) {
    while batch.len() < BATCH
        && let Ok(span) = queue.try_recv()
    {
        batch.push(span);
    }
}

/// Who sends.
fn resource(service: &str) -> Vec<Attribute> {
    let text = |text: String| Value::Text(Cow::Owned(text));
    let mut bytes = [0; 16];
    // Without chance every process looks the same, which is no reason to send nothing.
    let _ = getrandom::fill(&mut bytes);
    let instance: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    vec![
        ("service.name", text(service.to_owned())),
        ("service.version", text(env!("CARGO_PKG_VERSION").to_owned())),
        ("service.instance.id", text(instance)),
        ("process.pid", Value::Number(std::process::id().into())),
    ]
}

fn why(error: &dyn Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        words.push_str(": ");
        words.push_str(&error.to_string());
        cause = error.source();
    }
    words
}
