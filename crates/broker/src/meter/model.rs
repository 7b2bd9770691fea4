//! Requests of our own agents to their models: counters by model, and a span each by the OpenTelemetry conventions for generative
//! AI. Holds no text that was sent or received.

use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use embody_store::usage::Usage;

use super::Meter;
use super::span::{Attribute, Span, SpanKind, Spans, Value};
use crate::trace_context::new_span_id;

/// Models with counters of their own; any further ones share one.
const MODELS_MAX: usize = 32;
const OTHERS: &str = "_others";
/// The longest name in a span or a label, in characters.
const NAME_CHARS: usize = 128;

/// How requests end, in the order of their counters.
pub(super) const RESULTS: [&str; 3] = ["done", "failed", "over_budget"];
const OVER_BUDGET: usize = 2;
/// The kinds of tokens, in the order of their counters. `input` includes both kinds of cached ones.
pub(super) const TOKENS: [&str; 4] = ["input", "output", "cache_read", "cache_write"];

#[derive(Debug, Clone)]
pub(super) struct ModelCounters {
    pub(super) model: String,
    pub(super) results: [u64; RESULTS.len()],
    pub(super) tokens: [u64; TOKENS.len()],
}

/// The counters of all models that were asked. A request to a model takes long, so that a lock costs nothing here.
#[derive(Debug, Default)]
pub(super) struct Models(Mutex<Vec<ModelCounters>>);

impl Models {
    pub(super) fn all(&self) -> Vec<ModelCounters> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn count(&self, model: &str, result: usize, usage: Usage) {
        let mut models = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let name = embody_text::without_control(model, NAME_CHARS);
        let name = match models.iter().any(|known| known.model == name) || models.len() < MODELS_MAX {
            true => name,
            false => OTHERS.to_owned(),
        };
        if !models.iter().any(|known| known.model == name) {
            let (results, tokens) = (Default::default(), Default::default());
            models.push(ModelCounters { model: name.clone(), results, tokens });
        }
        let Some(counters) = models.iter_mut().find(|known| known.model == name) else { return };
        if let Some(count) = counters.results.get_mut(result) {
            *count += 1;
        }
        let Usage { input, output, cache_read, cache_write } = usage;
        for (sum, more) in counters.tokens.iter_mut().zip([input, output, cache_read, cache_write]) {
            *sum = sum.saturating_add(more.unwrap_or(0));
        }
    }
}

/// What a request to a model is about.
#[derive(Debug, Clone, Copy)]
pub struct ModelRequestInfo<'a> {
    pub model: &'a str,
    /// The provider by its conventional name: `openai`, `anthropic`.
    pub provider: &'static str,
    pub max_tokens: u32,
    pub host: Option<&'a str>,
    pub port: Option<u16>,
    pub agent: &'a str,
    pub channel: &'a str,
    pub thread: &'a str,
    /// The time, in microseconds since 1970.
    pub now_us: i64,
}

/// A request to a model in progress. One that is dropped was cancelled.
#[derive(Debug)]
pub struct ModelRequestSpan<'a> {
    meter: &'a Meter,
    model: String,
    open: Option<(Spans, Span, Instant)>,
    is_over: bool,
}

impl Meter {
    pub fn begin_model_request(&self, info: &ModelRequestInfo<'_>) -> ModelRequestSpan<'_> {
        let trace = uuid::Uuid::new_v4().into_bytes();
        let spans = self.spans.as_ref().filter(|spans| spans.samples(trace));
        let open = spans.map(|spans| (spans.clone(), span(trace, info), Instant::now()));
        ModelRequestSpan { meter: self, model: info.model.to_owned(), open, is_over: false }
    }

    /// Counts a request that was not made because a budget is used up.
    pub fn count_over_budget(&self, model: &str) {
        self.models.count(model, OVER_BUDGET, Usage::default());
    }
}

impl ModelRequestSpan<'_> {
    /// Ends the request with the tokens that it took, or with the kind of its error.
    pub fn finish(mut self, result: Result<Usage, &'static str>) {
        self.end(result);
    }

    fn end(&mut self, result: Result<Usage, &'static str>) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        self.meter.models.count(&self.model, usize::from(result.is_err()), result.unwrap_or_default());
        let Some((spans, mut span, began)) = self.open.take() else { return };
        let took = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        span.end_ns = span.start_ns.saturating_add(took);
        match result {
            Ok(usage) => span.attributes.extend(usage_attributes(usage)),
            Err(kind) => {
                span.is_error = true;
                span.attributes.push(("error.type", Value::Text(Cow::Borrowed(kind))));
            }
        }
        spans.record(span);
    }
}

impl Drop for ModelRequestSpan<'_> {
    fn drop(&mut self) {
        self.end(Err("cancelled"));
    }
}

fn span(trace: [u8; 16], info: &ModelRequestInfo<'_>) -> Span {
    let model = embody_text::without_control(info.model, NAME_CHARS);
    let mut attributes: Vec<Attribute> = vec![
        ("gen_ai.operation.name", Value::Text(Cow::Borrowed("chat"))),
        ("gen_ai.provider.name", Value::Text(Cow::Borrowed(info.provider))),
        ("gen_ai.request.model", text(&model)),
        ("gen_ai.request.max_tokens", Value::Number(info.max_tokens.into())),
        ("gen_ai.agent.name", text(info.agent)),
        ("gen_ai.conversation.id", text(info.thread)),
        ("embody.channel", text(info.channel)),
    ];
    attributes.extend(info.host.map(|host| ("server.address", text(host))));
    attributes.extend(info.port.map(|port| ("server.port", Value::Number(port.into()))));
    let start_ns = u64::try_from(info.now_us).unwrap_or_default().saturating_mul(1000);
    Span {
        trace,
        id: new_span_id(),
        parent: None,
        is_parent_remote: false,
        state: String::new(),
        name: format!("chat {model}"),
        kind: SpanKind::Client,
        start_ns,
        end_ns: start_ns,
        attributes,
        is_error: false,
    }
}

fn usage_attributes(usage: Usage) -> impl Iterator<Item = Attribute> {
    let Usage { input, output, cache_read, cache_write } = usage;
    let named = [
        ("gen_ai.usage.input_tokens", input),
        ("gen_ai.usage.output_tokens", output),
        ("gen_ai.usage.cache_read.input_tokens", cache_read),
        ("gen_ai.usage.cache_creation.input_tokens", cache_write),
    ];
    named.into_iter().filter_map(|(name, count)| Some((name, Value::Number(i64::try_from(count?).ok()?))))
}

fn text(text: &str) -> Value {
    Value::Text(Cow::Owned(embody_text::without_control(text, NAME_CHARS)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(model: &str) -> ModelRequestInfo<'_> {
        ModelRequestInfo {
            model,
            provider: "openai",
            max_tokens: 100,
            host: Some("127.0.0.1"),
            port: Some(8080),
            agent: "assistant",
            channel: "web",
            thread: "t-1",
            now_us: 7,
        }
    }

    const USED: Usage = Usage { input: Some(30), output: Some(2), cache_read: Some(20), cache_write: None };

    #[test]
    fn tokens_and_ends_are_counted_by_model_up_to_a_bound() {
        let meter = Meter::new();
        meter.begin_model_request(&info("big")).finish(Ok(USED));
        meter.begin_model_request(&info("big")).finish(Err("timeout"));
        drop(meter.begin_model_request(&info("big")));
        meter.count_over_budget("big");
        let all = meter.models.all();
        assert_eq!(
            (all[0].model.as_str(), all[0].results, all[0].tokens),
            ("big", [1, 2, 1], [30, 2, 20, 0])
        );
        for number in 0..2 * MODELS_MAX {
            meter.count_over_budget(&format!("m{number}"));
        }
        let all = meter.models.all();
        assert_eq!(all.len(), MODELS_MAX + 1);
        assert_eq!(all.last().map(|last| (last.model.as_str(), last.results[2])), Some((OTHERS, 33)));
    }

    #[test]
    fn a_span_says_what_the_request_took_or_why_it_failed() {
        let (spans, mut queue) = Spans::new(100);
        let meter = Meter::with_spans(spans);
        meter.begin_model_request(&info("big")).finish(Ok(USED));
        let span = queue.try_recv().unwrap();
        assert_eq!(
            (span.name.as_str(), span.kind, span.start_ns, span.is_error),
            ("chat big", SpanKind::Client, 7000, false)
        );
        let number = |name: &str| {
            span.attributes.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
        };
        assert_eq!(number("gen_ai.usage.input_tokens"), Some(Value::Number(30)));
        assert_eq!(number("gen_ai.usage.cache_read.input_tokens"), Some(Value::Number(20)));
        assert_eq!(number("gen_ai.usage.cache_creation.input_tokens"), None, "it was not reported");
        drop(meter.begin_model_request(&info("big")));
        let span = queue.try_recv().unwrap();
        let kind = ("error.type", Value::Text(Cow::Borrowed("cancelled")));
        assert!(span.is_error && span.attributes.contains(&kind), "{span:?}");
    }
}
