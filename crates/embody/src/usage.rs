//! What models used: the report that `embody usage` and `/api/usage` share. Money follows from the tokens on record and the prices
//! that are configured now, so a price that is added or corrected applies to the past too.

use std::collections::{BTreeMap, BTreeSet};

use embody_agent::usage::{Amount, BudgetState, Day, Money, Price, budget_states};
use embody_store::Store;
use embody_store::usage::{Usage, UsageFilter, UsageKey, UsageSum};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use crate::config::Config;
use crate::error::CliError;
use crate::time::{self, Period};

/// How far a report goes back unless told otherwise.
const DEFAULT_DAYS: i64 = 30;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UsageBy {
    Day,
    Agent,
    User,
    Channel,
    Schedule,
    Model,
}

impl UsageBy {
    pub(crate) const NAMES: [&str; 6] = ["day", "agent", "user", "channel", "schedule", "model"];

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        let all = [Self::Day, Self::Agent, Self::User, Self::Channel, Self::Schedule, Self::Model];
        all.into_iter().find(|by| by.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Agent => "agent",
            Self::User => "user",
            Self::Channel => "channel",
            Self::Schedule => "schedule",
            Self::Model => "model",
        }
    }

    fn key(self) -> UsageKey {
        match self {
            Self::Day => UsageKey::QuarterHour,
            Self::Agent => UsageKey::Agent,
            Self::User => UsageKey::User,
            Self::Channel => UsageKey::Channel,
            Self::Schedule => UsageKey::Schedule,
            Self::Model => UsageKey::Model,
        }
    }
}

pub(crate) struct UsageQuery<'a> {
    pub(crate) by: UsageBy,
    /// A day, a time, or how long ago.
    pub(crate) since: Option<&'a str>,
    pub(crate) until: Option<&'a str>,
    /// `None` for all users.
    pub(crate) user: Option<String>,
}

/// The sums of one line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct UsageRow {
    pub(crate) key: String,
    pub(crate) requests: u64,
    /// Those of which the provider reported no tokens.
    pub(crate) unreported: u64,
    pub(crate) usage: Usage,
    /// Of the models that have a price; `None` if none has.
    pub(crate) cost: Option<Money>,
    /// The models without a price.
    pub(crate) unpriced: BTreeSet<String>,
}

impl UsageRow {
    fn add(&mut self, sum: &UsageSum, prices: &BTreeMap<String, Price>) {
        self.requests = self.requests.saturating_add(sum.requests);
        self.unreported = self.unreported.saturating_add(sum.unreported);
        self.usage = self.usage.plus(sum.usage);
        match prices.get(&sum.model) {
            Some(price) => self.cost = Some(self.cost.unwrap_or_default().plus(price.cost(sum.usage))),
            None => {
                self.unpriced.insert(sum.model.clone());
            }
        }
    }

    pub(crate) fn tokens(count: Option<u64>) -> u64 {
        count.unwrap_or(0)
    }

    fn json(&self) -> Map<String, Value> {
        let members = json!({
            "requests": self.requests,
            "unreported": self.unreported,
            "input_tokens": Self::tokens(self.usage.input),
            "output_tokens": Self::tokens(self.usage.output),
            "cached_tokens": Self::tokens(self.usage.cache_read),
            "cache_write_tokens": Self::tokens(self.usage.cache_write),
            "cost": self.cost.map(Money::exact),
            "unpriced_models": self.unpriced,
        });
        if let Value::Object(members) = members { members } else { Map::new() }
    }
}

pub(crate) struct UsageReport {
    pub(crate) by: UsageBy,
    pub(crate) since: i64,
    pub(crate) until: i64,
    pub(crate) zone: String,
    pub(crate) rows: Vec<UsageRow>,
    pub(crate) total: UsageRow,
    /// Of today, for all users; empty for a report on one user.
    pub(crate) budgets: Vec<BudgetState>,
}

impl UsageReport {
    /// Amounts of money are texts, because a program's number type may not hold them exactly.
    pub(crate) fn json(&self) -> Value {
        let row = |row: &UsageRow| {
            let key = Some(&row.key).filter(|key| !key.is_empty());
            let mut members = Map::from_iter([(self.by.name().to_owned(), json!(key))]);
            members.extend(row.json());
            Value::Object(members)
        };
        json!({
            "by": self.by.name(),
            "since": time::rfc3339(self.since),
            "until": time::rfc3339(self.until),
            "timezone": self.zone,
            "rows": self.rows.iter().map(row).collect::<Vec<_>>(),
            "total": self.total.json(),
            "budgets": self.budgets.iter().map(budget_json).collect::<Vec<_>>(),
        })
    }
}

fn budget_json(state: &BudgetState) -> Value {
    let amount = |amount: Amount| match amount {
        Amount::Money(money) => json!(money.exact()),
        Amount::Tokens(count) => json!(count),
    };
    json!({
        "section": state.scope.section(),
        "key": state.limit.key(),
        "limit": amount(state.limit),
        "used": amount(state.used),
        "percent": state.percent(),
        "resets_at": time::rfc3339(state.resets_at.timestamp().as_microsecond()),
    })
}

/// An error says which value is wrong.
pub(crate) async fn usage_report(
    store: &Store,
    config: &Config,
    zone: &TimeZone,
    query: UsageQuery<'_>,
) -> Result<UsageReport, CliError> {
    let now = store.clock().await?;
    let (since, until) = period(query.since, query.until, now, zone)?;
    let is_whole = query.user.is_none();
    let filter =
        UsageFilter { since: Some(since), until: Some(until), user: query.user, ..UsageFilter::default() };
    let (mut rows, mut total) = (BTreeMap::<String, UsageRow>::new(), UsageRow::default());
    for sum in store.usage().sums(query.by.key(), &filter).await? {
        let key = match query.by {
            UsageBy::Day => date_of(&sum.key, zone),
            UsageBy::Model => sum.model.clone(),
            _ => sum.key.clone(),
        };
        rows.entry(key).or_default().add(&sum, &config.prices);
        total.add(&sum, &config.prices);
    }
    let budgets = match Day::of(now, zone).filter(|_| is_whole) {
        Some(day) => budget_states(store, &config.prices, config.budget.all(), &day).await?,
        None => Vec::new(),
    };
    let rows = rows.into_iter().map(|(key, row)| UsageRow { key, ..row }).collect();
    let zone = zone.iana_name().unwrap_or("UTC").to_owned();
    Ok(UsageReport { by: query.by, since, until, zone, rows, total, budgets })
}

fn date_of(micros: &str, zone: &TimeZone) -> String {
    let at = micros.parse().ok().and_then(|micros| Timestamp::from_microsecond(micros).ok());
    at.map_or_else(|| micros.to_owned(), |at| at.to_zoned(zone.clone()).date().to_string())
}

/// From the start of the first day to the end of the last, unless times are given.
fn period(
    since: Option<&str>,
    until: Option<&str>,
    now: i64,
    zone: &TimeZone,
) -> Result<(i64, i64), CliError> {
    let default_days = SignedDuration::from_hours(24 * (DEFAULT_DAYS - 1));
    let from = since.map_or_else(|| format!("{DEFAULT_DAYS} days ago"), |text| format!("`{text}`"));
    let to = until.map_or_else(|| "now".to_owned(), |text| format!("`{text}`"));
    let since = match since {
        Some(text) => parse_period("since", text, now, zone)?.start.as_microsecond(),
        None => {
            let from = now.saturating_sub(i64::try_from(default_days.as_micros()).unwrap_or(0));
            Day::of(from, zone).map_or(from, |day| day.start)
        }
    };
    let until = match until {
        Some(text) => parse_period("until", text, now, zone)?.end.as_microsecond(),
        None => now.saturating_add(1),
    };
    if until <= since {
        let message = format!("`until` ({to}) is not after `since` ({from})");
        return Err(CliError::usage(message).hint(time::WHEN_HINT));
    }
    Ok((since, until))
}

fn parse_period(name: &str, text: &str, now: i64, zone: &TimeZone) -> Result<Period, CliError> {
    let wrong = |hint| CliError::usage(format!("invalid `{name}`: `{}`", text.trim())).hint(hint);
    let now = Timestamp::from_microsecond(now).map_err(|_| wrong(time::WHEN_HINT))?.to_zoned(zone.clone());
    Period::parse(text, &now).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(text: &str) -> i64 {
        text.parse::<Timestamp>().unwrap().as_microsecond()
    }

    #[test]
    fn a_period_begins_and_ends_with_whole_days_of_the_zone() {
        let berlin = TimeZone::get("Europe/Berlin").unwrap();
        let now = micros("2026-11-18T20:00:00Z");
        let of = |since, until| period(since, until, now, &berlin).map_err(|error| error.summary().0);
        assert_eq!(of(None, None), Ok((micros("2026-10-19T22:00:00Z"), now + 1)));
        assert_eq!(
            of(Some("2026-11-01"), Some("2026-11-02")),
            Ok((micros("2026-10-31T23:00:00Z"), micros("2026-11-02T23:00:00Z")))
        );
        assert_eq!(
            of(Some("7d"), Some("2026-11-18T10:00:00Z")),
            Ok((micros("2026-11-11T20:00:00Z"), micros("2026-11-18T10:00:00Z")))
        );
        assert_eq!(
            of(Some("monday"), Some("yesterday")),
            Ok((micros("2026-11-15T23:00:00Z"), micros("2026-11-17T23:00:00Z")))
        );
        assert_eq!(of(Some("400d"), None), Ok((micros("2025-10-14T20:00:00Z"), now + 1)));
        for (since, until, part) in [
            (Some("soon"), None, "invalid `since`: `soon`"),
            (None, Some("2026-13-01"), "invalid `until`: `2026-13-01`"),
            (Some("2026-11-19"), None, "is not after"),
        ] {
            let message = of(since, until).unwrap_err();
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn a_sum_over_models_says_which_have_no_price() {
        let price = Price { input: Money::parse("2").unwrap(), ..Price::default() };
        let prices = BTreeMap::from([("big".to_owned(), price)]);
        let sum = |model: &str| UsageSum {
            key: "a".into(),
            model: model.into(),
            requests: 2,
            unreported: 1,
            usage: Usage { input: Some(500_000), ..Usage::default() },
        };
        let mut row = UsageRow::default();
        row.add(&sum("free"), &prices);
        assert_eq!(row.cost, None, "tokens only");
        row.add(&sum("big"), &prices);
        assert_eq!(
            (row.cost.unwrap().to_string(), row.requests, row.usage.input),
            ("1.00".into(), 4, Some(1_000_000))
        );
        assert_eq!(row.unpriced, BTreeSet::from(["free".to_owned()]));
    }
}
