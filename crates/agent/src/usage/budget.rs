//! Daily budgets: limits of money and tokens, for all requests, an agent or a schedule. Compares them with what the store has on
//! record for the day, so that they hold across processes.

use std::collections::BTreeMap;
use std::fmt;

use embody_store::usage::{UsageFilter, UsageKey, UsageSum};
use embody_store::{Result, Store};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Money, Price};

/// The share of a limit at which the owner is warned, in percent.
pub const WARN_PERCENT: u32 = 80;

/// What may be used in a day.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// Money for all requests of a day, in the currency of `[prices]`. It needs a price for the model.
    pub daily: Option<Money>,
    /// Tokens for all requests of a day, input and output together.
    #[schemars(range(min = 0, max = 4_294_967_295_u32))]
    pub daily_tokens: Option<u64>,
    /// Limits of single agents, by name, in place of those above.
    pub agents: BTreeMap<String, Limit>,
    /// Limits of single schedules, by id, in place of those above.
    pub schedules: BTreeMap<String, Limit>,
}

/// What an agent or a schedule may use in a day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limit {
    /// Money for its requests of a day.
    pub daily: Option<Money>,
    /// Tokens for its requests of a day, input and output together.
    #[schemars(range(min = 0, max = 4_294_967_295_u32))]
    pub daily_tokens: Option<u64>,
}

impl Limit {
    fn is_set(&self) -> bool {
        self.daily.is_some() || self.daily_tokens.is_some()
    }
}

/// What a limit applies to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BudgetScope {
    All,
    Agent(String),
    Schedule(String),
}

impl BudgetScope {
    /// The heading in the configuration.
    pub fn section(&self) -> String {
        match self {
            Self::All => "[budget]".to_owned(),
            Self::Agent(name) => format!("[budget.agents.\"{name}\"]"),
            Self::Schedule(id) => format!("[budget.schedules.\"{id}\"]"),
        }
    }

    fn filter(&self, day: &Day) -> UsageFilter {
        let (agent, schedule) = match self {
            Self::All => (None, None),
            Self::Agent(name) => (Some(name.clone()), None),
            Self::Schedule(id) => (None, Some(id.clone())),
        };
        UsageFilter { since: Some(day.start), until: Some(day.end), user: None, agent, schedule }
    }
}

impl fmt::Display for BudgetScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("the daily budget"),
            Self::Agent(name) => write!(f, "the daily budget of agent `{name}`"),
            Self::Schedule(id) => write!(f, "the daily budget of schedule `{id}`"),
        }
    }
}

/// An amount that a limit is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    Money(Money),
    Tokens(u64),
}

impl Amount {
    /// The key in the configuration.
    pub fn key(self) -> &'static str {
        match self {
            Self::Money(_) => "daily",
            Self::Tokens(_) => "daily_tokens",
        }
    }

    fn percent_of(self, limit: Self) -> u64 {
        match (self, limit) {
            (Self::Money(used), Self::Money(limit)) => used.percent_of(limit),
            (Self::Tokens(used), Self::Tokens(limit)) => {
                used.saturating_mul(100).checked_div(limit).unwrap_or(u64::MAX)
            }
            _ => 0,
        }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Money(money) => money.fmt(f),
            Self::Tokens(count) => write!(f, "{count} tokens"),
        }
    }
}

/// A limit, and what of it is used today.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetState {
    pub scope: BudgetScope,
    pub limit: Amount,
    pub used: Amount,
    /// When it starts again.
    pub resets_at: Zoned,
}

impl BudgetState {
    pub fn percent(&self) -> u64 {
        self.used.percent_of(self.limit)
    }

    pub fn is_used_up(&self) -> bool {
        self.percent() >= 100
    }

    pub fn hint(&self) -> String {
        format!(
            "raise `{}` below `{}` in embody.toml, or wait until then; `embody usage` shows what was used",
            self.limit.key(),
            self.scope.section()
        )
    }
}

impl fmt::Display for BudgetState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scope, limit, used, resets_at } = self;
        let is = if self.is_used_up() { "is used up" } else { "is nearly used up" };
        let zone = resets_at.time_zone().iana_name().unwrap_or("UTC");
        let at = resets_at.strftime("%Y-%m-%d %H:%M");
        write!(f, "{scope} {is}: {used} of {limit} used today; it resets at {at} ({zone})")
    }
}

/// A calendar day in a time zone, in microseconds since 1970.
#[derive(Clone, Debug)]
pub struct Day {
    pub start: i64,
    pub end: i64,
    pub next: Zoned,
    /// Its date, as in `2026-11-17`.
    pub date: String,
}

impl Day {
    /// The day of a moment in microseconds since 1970. `None` at the end of time.
    pub fn of(now: i64, zone: &TimeZone) -> Option<Self> {
        let now = Timestamp::from_microsecond(now).ok()?.to_zoned(zone.clone());
        let start = now.start_of_day().ok()?;
        let next = now.tomorrow().ok()?.start_of_day().ok()?;
        let micros = |at: &Zoned| at.timestamp().as_microsecond();
        Some(Self { start: micros(&start), end: micros(&next), next, date: now.date().to_string() })
    }
}

impl Budget {
    /// Whether any limit is set.
    pub fn is_set(&self) -> bool {
        self.general().is_set() || self.agents.values().chain(self.schedules.values()).any(Limit::is_set)
    }

    /// Whether any limit is one of money.
    pub fn needs_prices(&self) -> bool {
        let mut limits = self.agents.values().chain(self.schedules.values());
        self.daily.is_some() || limits.any(|limit| limit.daily.is_some())
    }

    /// All limits, for a report.
    pub fn all(&self) -> Vec<(BudgetScope, Limit)> {
        let agents = self.agents.iter().map(|(name, limit)| (BudgetScope::Agent(name.clone()), *limit));
        let schedules = self.schedules.iter().map(|(id, limit)| (BudgetScope::Schedule(id.clone()), *limit));
        let all = std::iter::once((BudgetScope::All, self.general())).chain(agents).chain(schedules);
        all.filter(|(_, limit)| limit.is_set()).collect()
    }

    /// The limits of a request: for money and for tokens that of the schedule, else of the agent, else the general one.
    pub fn limits_of(&self, agent: &str, schedule: Option<&str>) -> Vec<(BudgetScope, Limit)> {
        let of_schedule =
            schedule.and_then(|id| Some((BudgetScope::Schedule(id.to_owned()), *self.schedules.get(id)?)));
        let of_agent = self.agents.get(agent).map(|limit| (BudgetScope::Agent(agent.to_owned()), *limit));
        let mut is_open = (true, true);
        let mut limits = Vec::new();
        for (scope, limit) in
            of_schedule.into_iter().chain(of_agent).chain([(BudgetScope::All, self.general())])
        {
            let limit = Limit {
                daily: limit.daily.filter(|_| is_open.0),
                daily_tokens: limit.daily_tokens.filter(|_| is_open.1),
            };
            is_open = (is_open.0 && limit.daily.is_none(), is_open.1 && limit.daily_tokens.is_none());
            limits.extend(Some((scope, limit)).filter(|(_, limit)| limit.is_set()));
        }
        limits
    }

    fn general(&self) -> Limit {
        Limit { daily: self.daily, daily_tokens: self.daily_tokens }
    }
}

/// What of these limits is used on this day.
pub async fn budget_states(
    store: &Store,
    prices: &BTreeMap<String, Price>,
    limits: Vec<(BudgetScope, Limit)>,
    day: &Day,
) -> Result<Vec<BudgetState>> {
    let mut states = Vec::new();
    for (scope, limit) in limits {
        let sums = store.usage().sums(UsageKey::Model, &scope.filter(day)).await?;
        let money = limit.daily.map(|limit| (Amount::Money(limit), Amount::Money(cost(prices, &sums))));
        let tokens = limit.daily_tokens.map(|limit| (Amount::Tokens(limit), Amount::Tokens(tokens(&sums))));
        states.extend(money.into_iter().chain(tokens).map(|(limit, used)| BudgetState {
            scope: scope.clone(),
            limit,
            used,
            resets_at: day.next.clone(),
        }));
    }
    Ok(states)
}

fn cost(prices: &BTreeMap<String, Price>, sums: &[UsageSum]) -> Money {
    let costs = sums.iter().filter_map(|sum| Some(prices.get(&sum.model)?.cost(sum.usage)));
    costs.fold(Money::default(), Money::plus)
}

fn tokens(sums: &[UsageSum]) -> u64 {
    let count = |sum: &UsageSum| sum.usage.input.unwrap_or(0).saturating_add(sum.usage.output.unwrap_or(0));
    sums.iter().map(count).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(daily: Option<&str>, daily_tokens: Option<u64>) -> Limit {
        Limit { daily: daily.and_then(Money::parse), daily_tokens }
    }

    #[test]
    fn the_narrowest_limit_of_each_kind_applies() {
        let budget = Budget {
            daily: Money::parse("5"),
            daily_tokens: Some(1000),
            agents: [("clerk".to_owned(), limit(Some("2"), None))].into(),
            schedules: [("s".to_owned(), limit(None, Some(10)))].into(),
        };
        let all = |limit| (BudgetScope::All, limit);
        let agent = |limit| (BudgetScope::Agent("clerk".to_owned()), limit);
        let schedule = |limit| (BudgetScope::Schedule("s".to_owned()), limit);
        assert_eq!(budget.limits_of("assistant", None), [all(limit(Some("5"), Some(1000)))]);
        assert_eq!(
            budget.limits_of("clerk", None),
            [agent(limit(Some("2"), None)), all(limit(None, Some(1000)))]
        );
        assert_eq!(
            budget.limits_of("clerk", Some("s")),
            [schedule(limit(None, Some(10))), agent(limit(Some("2"), None))]
        );
        assert_eq!(budget.limits_of("assistant", Some("other")), [all(limit(Some("5"), Some(1000)))]);
        assert_eq!(Budget::default().limits_of("clerk", Some("s")), []);
        assert!(!Budget::default().is_set() && budget.is_set() && budget.needs_prices());
    }

    #[test]
    fn a_day_is_that_of_its_zone_also_when_clocks_change() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap().as_microsecond();
        let berlin = TimeZone::get("Europe/Berlin").unwrap();
        let day = Day::of(at("2026-10-24T22:30:00Z"), &berlin).unwrap();
        assert_eq!(
            (day.start, day.end),
            (at("2026-10-24T22:00:00Z"), at("2026-10-25T23:00:00Z")),
            "25 hours"
        );
        assert_eq!(
            (day.date.as_str(), day.next.to_string().as_str()),
            ("2026-10-25", "2026-10-26T00:00:00+01:00[Europe/Berlin]")
        );
    }

    #[test]
    fn a_state_says_limit_use_and_reset() {
        let day = Day::of(0, &TimeZone::UTC).unwrap();
        let state = |used: u64| BudgetState {
            scope: BudgetScope::Agent("clerk".to_owned()),
            limit: Amount::Tokens(1000),
            used: Amount::Tokens(used),
            resets_at: day.next.clone(),
        };
        assert_eq!(
            state(1200).to_string(),
            "the daily budget of agent `clerk` is used up: 1200 tokens of 1000 tokens used today; it resets at 1970-01-02 00:00 (UTC)"
        );
        assert_eq!(
            (state(799).percent(), state(999).is_used_up(), state(1000).is_used_up()),
            (79, false, true)
        );
        assert!(state(1).hint().contains("`daily_tokens` below `[budget.agents.\"clerk\"]`"));
    }
}
