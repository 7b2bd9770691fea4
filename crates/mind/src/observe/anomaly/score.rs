//! The arithmetic of signals: decay, confidence, and how signals combine into one score. Owns every weight of the predictor.

const HALF_LIFE_MIN: f32 = 30.0 * 24.0 * 60.0;
/// A moving share looks back over about a hundred calls.
pub(super) const MOVING: f32 = 0.99;
/// A largest amount is lowered by each call, so that one giant does not make all others small for ever.
pub(super) const LOWERED: f32 = 0.995;
/// With fewer calls than this nothing is held for being unusual.
pub(super) const COLD_CALLS: u32 = 20;
const COLD_LIMIT: f64 = 0.5;
const COLD_SCORE: f64 = 0.3;

/// The most that each part can weigh by itself.
pub(super) const NEW_VALUE: f64 = 0.8;
pub(super) const NEW_PARENT: f64 = 0.9;
pub(super) const NEW_PATH: f64 = 0.5;
pub(super) const RARE_VALUE: f64 = 0.2;
pub(super) const KNOWN_PARENT: f64 = 0.7;
pub(super) const UNUSUAL_TOOL: f64 = 0.65;
pub(super) const UNUSUAL_HOUR: f64 = 0.7;
pub(super) const QUIET_WEEKEND: f64 = 0.35;
pub(super) const LARGE: f64 = 0.85;
pub(super) const FAILED: f64 = 0.7;

/// What is left of a weight after so many minutes.
pub(super) fn decay(minutes: u32) -> f32 {
    (-(minutes as f32) / HALF_LIFE_MIN).exp2()
}

/// How far so many observations can be trusted, when `half` of them are worth a half.
pub(super) fn confidence(observations: f64, half: f64) -> f64 {
    observations / (observations + half)
}

pub(super) fn rarity(share: f64) -> f64 {
    1.0 - share.clamp(0.0, 1.0).sqrt()
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Signal {
    pub(super) weight: f64,
    pub(super) reason: String,
}

impl Signal {
    pub(super) fn new(weight: f64, reason: String) -> Self {
        Self { weight: weight.clamp(0.0, 1.0), reason }
    }

    /// The heavier of two of the same sort: they come from one cause too often to be counted twice.
    pub(super) fn stronger(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(one), Some(other)) => Some(if other.weight > one.weight { other } else { one }),
            (one, other) => one.or(other),
        }
    }
}

/// All doubts as one number, given how many calls were ever seen.
pub(super) fn combine(signals: &[Signal], calls: u32) -> f64 {
    let error = 1.0 - signals.iter().map(|signal| 1.0 - signal.weight).product::<f64>();
    if calls >= COLD_CALLS {
        return error;
    }
    let unknown = COLD_SCORE * (1.0 - f64::from(calls) / f64::from(COLD_CALLS));
    error.max(unknown).min(COLD_LIMIT)
}

/// A value in a sentence: cut at eighty characters, on one line.
pub(super) fn quote(text: &str) -> String {
    let flat: String =
        text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).take(81).collect();
    if flat.chars().count() <= 80 {
        return format!("`{flat}`");
    }
    format!("`{}…`", flat.chars().take(80).collect::<String>())
}
