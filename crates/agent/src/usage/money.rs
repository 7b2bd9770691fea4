//! Amounts of money as whole numbers, so that sums do not drift, and the prices of models. Knows no currency: amounts are in that of
//! the configured prices.

use std::borrow::Cow;
use std::fmt;

use embody_store::usage::Usage;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Trillionths of a unit: a price per million tokens with six decimals is a whole number of them per token.
const PER_UNIT: u128 = 1_000_000_000_000;
const TOKENS_PER_PRICE: u128 = 1_000_000;
/// Of an amount that is written.
const DECIMALS: usize = 6;
pub const MAX_UNITS: u64 = 1_000_000;

/// An amount of money, never negative. Its serialized form is a number in a configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Money(u128);

impl Money {
    /// From a decimal number such as `0.25`.
    pub fn parse(text: &str) -> Option<Self> {
        let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
        let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(whole) || !is_number(decimals) || decimals.len() > DECIMALS {
            return None;
        }
        let whole: u64 = whole.parse().ok().filter(|whole| *whole <= MAX_UNITS)?;
        let millionths: u128 = format!("{decimals:0<DECIMALS$}").parse().ok()?;
        let amount = u128::from(whole) * PER_UNIT + millionths * (PER_UNIT / 1_000_000);
        Some(Self(amount)).filter(|amount| amount.0 <= u128::from(MAX_UNITS) * PER_UNIT)
    }

    pub fn is_zero(&self) -> bool {
        self.0 == 0
    }

    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The cost of so many tokens at this price per million.
    fn for_tokens(self, tokens: u64) -> Self {
        Self((self.0 / TOKENS_PER_PRICE).saturating_mul(tokens.into()))
    }

    /// How many hundredths of `limit` this is, rounded down.
    pub fn percent_of(self, limit: Self) -> u64 {
        let percent = self.0.saturating_mul(100).checked_div(limit.0);
        percent.map_or(u64::MAX, |percent| u64::try_from(percent).unwrap_or(u64::MAX))
    }

    /// All decimals, for programs.
    pub fn exact(self) -> String {
        trimmed(&format!("{}.{:012}", self.0 / PER_UNIT, self.0 % PER_UNIT))
    }
}

/// At least two decimals.
fn trimmed(text: &str) -> String {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    format!("{whole}.{:0<2}", decimals.trim_end_matches('0'))
}

/// For people: rounded to six decimals; an amount below that is shown as such.
impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let step = PER_UNIT / 1_000_000;
        let millionths = self.0.saturating_add(step / 2) / step;
        if millionths == 0 && self.0 > 0 {
            return f.pad("<0.000001");
        }
        f.pad(&trimmed(&format!("{}.{:06}", millionths / 1_000_000, millionths % 1_000_000)))
    }
}

impl Serialize for Money {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.exact().parse().unwrap_or_default())
    }
}

impl<'de> Deserialize<'de> for Money {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Amount;
        impl Visitor<'_> for Amount {
            type Value = Money;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "an amount from 0 to {MAX_UNITS} with at most {DECIMALS} decimals")
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Money, E> {
                amount(&number.to_string(), &self)
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Money, E> {
                amount(&number.to_string(), &self)
            }

            // The shortest decimal text of a float is what was written.
            fn visit_f64<E: Error>(self, number: f64) -> Result<Money, E> {
                amount(&number.to_string(), &self)
            }
        }
        fn amount<E: Error>(text: &str, expected: &Amount) -> Result<Money, E> {
            Money::parse(text).ok_or_else(|| E::invalid_value(Unexpected::Other(text), expected))
        }
        deserializer.deserialize_any(Amount)
    }
}

impl JsonSchema for Money {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Money".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "minimum": 0, "maximum": MAX_UNITS })
    }
}

/// What a model costs, per million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Price {
    /// The price of a million tokens of the prompt.
    #[serde(skip_serializing_if = "Money::is_zero")]
    pub input: Money,
    /// The price of a million tokens of the answer.
    #[serde(skip_serializing_if = "Money::is_zero")]
    pub output: Money,
    /// The price of a million tokens of the prompt that were read from the provider's cache. Unset: as `input`.
    pub cached: Option<Money>,
    /// The price of a million tokens of the prompt that were written to the provider's cache. Unset: as `input`.
    pub cache_write: Option<Money>,
}

impl Price {
    pub fn cost(&self, usage: Usage) -> Money {
        let count = |tokens: Option<u64>| tokens.unwrap_or(0);
        let (read, written) = (count(usage.cache_read), count(usage.cache_write));
        let fresh = count(usage.input).saturating_sub(read).saturating_sub(written);
        self.input
            .for_tokens(fresh)
            .plus(self.cached.unwrap_or(self.input).for_tokens(read))
            .plus(self.cache_write.unwrap_or(self.input).for_tokens(written))
            .plus(self.output.for_tokens(count(usage.output)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn money(text: &str) -> Money {
        Money::parse(text).unwrap_or_else(|| panic!("{text}"))
    }

    #[test]
    fn amounts_are_exact_decimals() {
        for (text, shown) in [
            ("3", "3.00"),
            ("0.3", "0.30"),
            ("0.000001", "0.000001"),
            ("12.3456", "12.3456"),
            ("1000000", "1000000.00"),
        ] {
            assert_eq!((money(text).to_string(), money(text).exact()), (shown.to_owned(), shown.to_owned()));
        }
        for wrong in
            ["", ".", "-1", "1e3", "0.0000001", "1000000.000001", "99999999999999999999", "NaN", "1.", "+1"]
        {
            assert_eq!(Money::parse(wrong), None, "{wrong}");
        }
        let tenth = (0..10).fold(Money::default(), |sum, _| sum.plus(money("0.1")));
        assert_eq!(tenth, money("1"), "no drift");
    }

    #[test]
    fn a_configured_float_is_the_number_that_was_written() {
        for (written, shown) in [("0.3", "0.30"), ("15", "15.00"), ("0.0375", "0.0375"), ("1.1", "1.10")] {
            let price: Price = priced(written);
            assert_eq!(price.input.to_string(), shown);
        }
        let wrong = serde_json::from_str::<Price>("{\"input\": -1}").unwrap_err().to_string();
        assert!(wrong.contains("from 0 to 1000000 with at most 6 decimals"), "{wrong}");
    }

    fn priced(number: &str) -> Price {
        serde_json::from_str(&format!("{{\"input\": {number}}}")).unwrap()
    }

    #[test]
    fn cached_tokens_have_their_own_price() {
        let price =
            Price { input: money("3"), output: money("15"), cached: Some(money("0.3")), cache_write: None };
        let usage = Usage {
            input: Some(1_000_000),
            output: Some(100_000),
            cache_read: Some(900_000),
            cache_write: Some(50_000),
        };
        // 50,000 fresh and 50,000 written at 3, 900,000 read at 0.3, 100,000 of output at 15.
        assert_eq!(price.cost(usage).to_string(), "2.07");
        let one = Usage { input: Some(1), ..Usage::default() };
        assert_eq!(price.cost(one).exact(), "0.000003");
        assert_eq!(Price { input: money("0.1"), ..Price::default() }.cost(one).to_string(), "<0.000001");
        // More cached than input: a provider that counts otherwise costs nothing below zero.
        let odd = Usage { input: Some(1), cache_read: Some(10), ..Usage::default() };
        assert_eq!(price.cost(odd).exact(), "0.000003");
    }

    #[test]
    fn a_share_is_rounded_down() {
        assert_eq!(money("3.9999").percent_of(money("5")), 79);
        assert_eq!(money("4").percent_of(money("5")), 80);
        assert_eq!(money("1").percent_of(Money::default()), u64::MAX);
    }
}
