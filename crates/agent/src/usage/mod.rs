//! What models use: the one place where an agent's requests are made. It refuses a request when a budget is used up, puts the
//! reported tokens on record, counts them, and warns the owner when a budget is nearly used up.
//!
//! | module | owns |
//! |---|---|
//! | `money` | exact amounts, and the prices of models |
//! | `budget` | daily limits, and what of them is used |

mod budget;
mod money;

use std::sync::Arc;

use embody_broker::meter::{Meter, ModelRequestInfo};
use embody_store::Store;
use embody_store::usage::{ModelRequest, Usage};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::AsyncCallback;
use crate::model::{ChatModel, ChatRequest, ChatResponse, ModelError};
use crate::turn::{AgentSettings, OnEvent, TurnError, TurnInput};

pub use self::budget::{Amount, Budget, BudgetScope, BudgetState, Day, Limit, WARN_PERCENT, budget_states};
pub use self::money::{MAX_UNITS, Money, Price};

/// The notice about requests whose tokens the provider did not report.
const UNREPORTED: &str = "unreported";

/// The time zone in which days begin.
pub type Zone = Box<dyn Fn() -> TimeZone + Send + Sync>;

/// Where requests are counted, and how the owner is told about a budget.
pub struct UsageContext {
    pub zone: Zone,
    pub meter: Arc<Meter>,
    /// Sends a notice to the owner.
    pub notify: AsyncCallback<String, Result<(), String>>,
}

/// A model, on behalf of one turn.
pub(crate) struct MeteredModel<'a> {
    pub(crate) model: &'a ChatModel,
    pub(crate) store: &'a Store,
    pub(crate) settings: &'a AgentSettings,
    pub(crate) usage: &'a UsageContext,
    pub(crate) input: &'a TurnInput,
}

impl MeteredModel<'_> {
    /// Sends a request, unless a budget is used up. Its tokens are on record when this returns.
    pub(crate) async fn complete(
        &self,
        request: ChatRequest<'_>,
        on: OnEvent<'_>,
    ) -> Result<ChatResponse, TurnError> {
        for state in self.budget_states().await? {
            if state.is_used_up() {
                self.usage.meter.count_over_budget(self.model.name());
                self.notify(&state).await;
                return Err(TurnError::Budget { state: Box::new(state), has_begun: false });
            }
        }
        let span = self.usage.meter.begin_model_request(&self.info());
        match self.model.complete(request, on).await {
            Ok(answer) => {
                span.finish(Ok(answer.usage));
                self.record(answer.usage).await;
                Ok(answer)
            }
            Err(error) => {
                span.finish(Err(error_kind(&error)));
                Err(error.into())
            }
        }
    }

    /// An answer that was paid for is not thrown away because its tokens cannot be stored.
    async fn record(&self, usage: Usage) {
        let recorded = async {
            let prompt = &self.input.prompt;
            let request = ModelRequest {
                scope: prompt.scope.clone(),
                channel: self.input.channel().to_owned(),
                schedule: prompt.schedule.clone(),
                model: self.model.name().to_owned(),
                usage,
                at: self.store.clock().await?,
            };
            self.store.usage().record(request).await?;
            self.budget_states().await
        };
        match recorded.await {
            Ok(states) => {
                if usage.input.is_none() && usage.output.is_none() {
                    self.notify_unreported(&states).await;
                }
                for state in states.iter().filter(|state| state.percent() >= WARN_PERCENT.into()) {
                    self.notify(state).await;
                }
            }
            Err(error) => tracing::warn!(reason = %error, "the tokens of a request are not on record"),
        }
    }

    async fn budget_states(&self) -> embody_store::Result<Vec<BudgetState>> {
        let AgentSettings { prices, budget, .. } = self.settings;
        if !budget.is_set() {
            return Ok(Vec::new());
        }
        let Some(day) = Day::of(self.store.clock().await?, &(self.usage.zone)()) else {
            return Ok(Vec::new());
        };
        let prompt = &self.input.prompt;
        let limits = budget.limits_of(prompt.scope.agent(), prompt.schedule.as_deref());
        budget_states(self.store, prices, limits, &day).await
    }

    /// Tells the owner once a day that a budget is nearly used up, and once that it is.
    async fn notify(&self, state: &BudgetState) {
        let percent = if state.is_used_up() { 100 } else { WARN_PERCENT };
        let budget = format!("{}.{}", state.scope.section(), state.limit.key());
        if self.claim_notice(state, &budget, percent).await {
            tracing::warn!("{state}");
            self.send_notice(format!("{state}. To go on: {}.", state.hint())).await;
        }
    }

    /// Tells the owner once a day that the budgets of this request do not count it.
    async fn notify_unreported(&self, states: &[BudgetState]) {
        let Some(state) = states.first() else { return };
        if self.claim_notice(state, UNREPORTED, 0).await {
            let (scope, model) = (&state.scope, self.model.name());
            let text = format!(
                "the provider reported no tokens for a request to `{model}`; {scope} cannot count it"
            );
            tracing::warn!("{text}");
            self.send_notice(format!("{text}. `embody usage` shows the number of such requests.")).await;
        }
    }

    /// Whether this notice of the day is not sent yet.
    async fn claim_notice(&self, state: &BudgetState, budget: &str, percent: u32) -> bool {
        let day = state.resets_at.date().to_string();
        self.store.usage().claim_notice(&day, budget, percent).await.unwrap_or_else(|error| {
            tracing::warn!(reason = %error, "a notice about a budget cannot be stored");
            false
        })
    }

    async fn send_notice(&self, text: String) {
        if let Err(reason) = self.usage.notify.call(text).await {
            tracing::warn!(reason, "the owner cannot be told about a budget");
        }
    }

    fn info(&self) -> ModelRequestInfo<'_> {
        let settings = self.model.settings();
        ModelRequestInfo {
            model: &settings.model,
            provider: settings.provider.name(),
            max_tokens: settings.max_output_tokens,
            host: settings.base_url.host_str(),
            port: settings.base_url.port_or_known_default(),
            agent: self.input.scope().agent(),
            channel: self.input.channel(),
            thread: &self.input.thread,
            now_us: Timestamp::now().as_microsecond(),
        }
    }
}

fn error_kind(error: &ModelError) -> &'static str {
    match error {
        ModelError::Settings { .. } => "settings",
        ModelError::Overflow { .. } => "context_length_exceeded",
        ModelError::Unauthorized { .. } => "unauthorized",
        ModelError::NotFound { .. } => "not_found",
        ModelError::RateLimited { .. } => "rate_limited",
        ModelError::Unavailable { .. } => "unavailable",
        ModelError::Unreached { .. } => "unreachable",
        ModelError::Timeout { .. } => "timeout",
        ModelError::Broken { .. } => "invalid_response",
        ModelError::Refused { .. } => "refused",
    }
}
