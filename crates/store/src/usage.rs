//! The tokens of each model request of our own agents, their sums, and which notices about a budget were sent. Money is not
//! stored: it follows from the tokens and the prices of the reader.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::areas::UsageRecords;
use crate::db::{Sql, args, from_row, names, transaction};
use crate::error::{Error, Result};
use crate::leases::{self, claim_sql, clock, prune_sql};
use crate::store::{Scope, check_name, new_id};

/// Of one request; larger numbers are not believed. Sums of them fit into the database's integers.
const TOKENS_LIMIT: u64 = 1_000_000_000;
/// The most sums of one question.
const SUMS_LIMIT: u32 = 100_000;
/// The parts of a day in which usage can be summed up: every time zone differs from UTC by a multiple.
pub const QUARTER_HOUR_US: i64 = 900_000_000;

/// Token counts of one or more requests, as far as the provider reports them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Prompt tokens, including cached ones.
    pub input: Option<u64>,
    pub output: Option<u64>,
    pub cache_read: Option<u64>,
    pub cache_write: Option<u64>,
}

impl Usage {
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let sum = |one: Option<u64>, two: Option<u64>| match (one, two) {
            (None, None) => None,
            (one, two) => Some(one.unwrap_or(0).saturating_add(two.unwrap_or(0))),
        };
        Self {
            input: sum(self.input, other.input),
            output: sum(self.output, other.output),
            cache_read: sum(self.cache_read, other.cache_read),
            cache_write: sum(self.cache_write, other.cache_write),
        }
    }
}

#[derive(Clone, Debug)]
pub struct ModelRequest {
    pub scope: Scope,
    pub channel: String,
    /// The schedule whose run it belongs to.
    pub schedule: Option<String>,
    pub model: String,
    pub usage: Usage,
    /// When it was answered.
    pub at: i64,
}

/// What sums are told apart by, beside the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageKey {
    /// The start of a quarter of an hour, in microseconds since 1970.
    QuarterHour,
    Agent,
    User,
    Channel,
    /// Empty for requests outside of schedules.
    Schedule,
    Model,
}

names! {
    pub UsageKey {
        QuarterHour = "quarter_hour", Agent = "agent", User = "user", Channel = "channel", Schedule = "schedule",
        Model = "model",
    }
}

/// Which requests are summed up; `None` is all.
#[derive(Clone, Debug, Default)]
pub struct UsageFilter {
    pub since: Option<i64>,
    /// The first moment that does not count.
    pub until: Option<i64>,
    pub user: Option<String>,
    pub agent: Option<String>,
    pub schedule: Option<String>,
}

/// The sums of one key and one model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageSum {
    pub key: String,
    pub model: String,
    pub requests: u64,
    /// Those of which the provider reported nothing.
    pub unreported: u64,
    pub usage: Usage,
}

from_row! {
    UsageSum {
        key, model, requests: count, unreported: count, input as u64: count, output as u64: count,
        cache_read as u64: count, cache_write as u64: count,
    } => Ok(Self {
        key, model, requests, unreported,
        usage: Usage {
            input: Some(input), output: Some(output), cache_read: Some(cache_read), cache_write: Some(cache_write),
        },
    })
}

fn count(number: i64) -> Result<u64> {
    Ok(u64::try_from(number).unwrap_or(0))
}

macro_rules! sums {
    ($key:literal) => {
        concat!(
            "SELECT ",
            $key,
            ", model, count(*), \
             coalesce(sum(CASE WHEN input_tokens IS NULL AND output_tokens IS NULL THEN 1 ELSE 0 END), 0), \
             CAST(coalesce(sum(input_tokens), 0) AS BIGINT), CAST(coalesce(sum(output_tokens), 0) AS BIGINT), \
             CAST(coalesce(sum(cache_read_tokens), 0) AS BIGINT), \
             CAST(coalesce(sum(cache_write_tokens), 0) AS BIGINT) FROM model_requests \
             WHERE created_at >= $1 AND created_at < $2 AND ($3 IS NULL OR user_id = $3) \
             AND ($4 IS NULL OR agent = $4) AND ($5 IS NULL OR schedule_id = $5) GROUP BY 1, 2 ORDER BY 1, 2 LIMIT +$6"
        )
    };
}

const PRUNE: Sql = prune_sql!("model_requests", "created_at < $1 ORDER BY created_at");
const PRUNE_NOTICES: Sql = claim_sql!(
    "WITH picked AS MATERIALIZED (SELECT day, budget, percent FROM budget_notices WHERE created_at < $1 \
     ORDER BY created_at LIMIT +$2",
    ") DELETE FROM budget_notices WHERE (day, budget, percent) IN (SELECT * FROM picked)",
);

impl UsageRecords<'_> {
    pub async fn record(self, request: ModelRequest) -> Result<()> {
        let ModelRequest { scope, channel, schedule, model, usage, at } = request;
        check_name("model", &model)?;
        let tokens = |count: Option<u64>| count.map(|count| stored(count.min(TOKENS_LIMIT)));
        let sql = "INSERT INTO model_requests (user_id, id, agent, channel, schedule_id, model, input_tokens, \
             output_tokens, cache_read_tokens, cache_write_tokens, created_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
        let values = args![
            scope.user(),
            new_id(),
            scope.agent(),
            channel,
            schedule,
            model,
            tokens(usage.input),
            tokens(usage.output),
            tokens(usage.cache_read),
            tokens(usage.cache_write),
            at,
        ];
        transaction!(self.store, |conn| conn.execute(sql, values).await.map(drop))
    }

    /// The sums of the requests that pass the filter, by key and model, in their order. Of all users unless the filter names
    /// one; for operators.
    pub async fn sums(self, by: UsageKey, filter: &UsageFilter) -> Result<Vec<UsageSum>> {
        let sql = match by {
            UsageKey::QuarterHour => sums!("CAST(created_at / 900000000 * 900000000 AS TEXT)"),
            UsageKey::Agent => sums!("agent"),
            UsageKey::User => sums!("user_id"),
            UsageKey::Channel => sums!("channel"),
            UsageKey::Schedule => sums!("coalesce(schedule_id, '')"),
            UsageKey::Model => sums!("''"),
        };
        let UsageFilter { since, until, user, agent, schedule } = filter.clone();
        let (since, until) = (since.unwrap_or(0), until.unwrap_or(i64::MAX));
        let values = args![since, until, user, agent, schedule, SUMS_LIMIT];
        let sums: Vec<UsageSum> = self.store.fetch_all(sql, values).await?;
        if sums.len() >= SUMS_LIMIT as usize {
            return Err(Error::invalid(format!("the usage has more than {SUMS_LIMIT} sums"))
                .hint("ask for a shorter time"));
        }
        Ok(sums)
    }

    /// Notes that the notice of this day, budget and level is sent now. Returns `false` if it was noted before, by any process.
    pub async fn claim_notice(self, day: &str, budget: &str, percent: u32) -> Result<bool> {
        check_name("day", day)?;
        check_name("budget", budget)?;
        let sql = "INSERT INTO budget_notices (day, budget, percent, created_at) VALUES ($1, $2, $3, $4) \
             ON CONFLICT (day, budget, percent) DO NOTHING";
        let (day, budget) = (day.to_owned(), budget.to_owned());
        transaction!(self.store, |conn| {
            let now = clock(conn).await?;
            Ok(conn.execute(sql, args![day, budget, percent, now]).await? > 0)
        })
    }

    /// Deletes up to `limit` requests, and as many notices, that are older than `age`, of all users; returns how many requests.
    pub async fn prune(self, age: Duration, limit: u32) -> Result<u64> {
        transaction!(self.store, |conn| {
            leases::prune(conn, PRUNE_NOTICES, age, limit).await?;
            leases::prune(conn, PRUNE, age, limit).await
        })
    }
}

fn stored(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
