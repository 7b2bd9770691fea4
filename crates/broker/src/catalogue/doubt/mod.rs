//! Which definitions are not shown to a model before the operator has looked at them: those that hide something, and those
//! that give orders beyond their own use. Pure.
//!
//! A description tells a model how to use its own tool, often in the imperative ("call this first", "never pass a relative
//! path"): that is its purpose and passes. What does not: orders about other rules, about secrets and private files, about
//! keeping something from the user or doing without their consent, about mail and addresses of the author's choice; texts
//! that pose as somebody else; and anything that a person who reads the definition would not see. It finds common wordings
//! and misses new ones: a definition that passes is still only data, and the gate decides about each call.
//!
//! - `hidden`: characters that nobody sees
//! - `disguise`: other readings of a text (encoded, spaced out, reversed)
//! - `frames`: marks with which a text poses as another part of the prompt
//! - `words`: sentences, and patterns over their words
//! - `phrases`: the patterns
//! - `orders`: where they count, and what excuses them

mod disguise;
mod frames;
mod hidden;
mod orders;
mod phrases;
mod words;

/// Texts are looked at up to here; a longer one is a reason to look by itself.
const LONGEST: usize = 16 * 1024;
/// So are those of one definition together.
const LONGEST_TOGETHER: usize = 64 * 1024;

/// Why a definition waits for the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Doubt {
    /// A character that nobody sees, or that turns text around.
    #[error("hidden character U+{:04X}", u32::from(*.0))]
    Hidden(char),
    /// Text far behind empty space, or longer than anybody reads.
    #[error("text out of sight")]
    OutOfSight,
    /// Letters that look like others.
    #[error("letters in disguise")]
    Disguised,
    /// Encoded text.
    #[error("encoded text")]
    Encoded,
    /// A mark with which a text poses as another part of the prompt.
    #[error("it poses as another part of the prompt")]
    Frame,
    /// It puts other rules out of force.
    #[error("it puts other rules out of force")]
    Override,
    /// It keeps something from the user.
    #[error("it keeps something from the user")]
    Secrecy,
    /// It wants to do without the user's consent.
    #[error("it does without the user's consent")]
    Consent,
    /// It wants secrets, private files or the conversation.
    #[error("it asks for secrets or private files")]
    Secrets,
    /// It sends something to an address of its own choice.
    #[error("it names where things are to be sent")]
    Diverts,
    /// It gives orders about other tools.
    #[error("it gives orders about other tools")]
    OtherTools,
}

/// The first reason to doubt a definition with these texts.
pub(super) fn doubt<'a>(texts: impl IntoIterator<Item = &'a str>) -> Option<Doubt> {
    let mut left = LONGEST_TOGETHER;
    texts.into_iter().find_map(|text| {
        let Some(rest) = left.checked_sub(text.len()) else { return Some(Doubt::OutOfSight) };
        left = rest;
        of_text(text)
    })
}

/// Whether a text has hidden characters, or text where people do not look.
pub(super) fn hides_something(text: &str) -> bool {
    hidden::find(text).is_some()
}

/// The text without its hidden characters.
pub(super) fn without_hidden(text: &str) -> String {
    hidden::without(text)
}

fn of_text(text: &str) -> Option<Doubt> {
    let bounded = text.get(..text.floor_char_boundary(LONGEST)).unwrap_or(text);
    hidden::find(bounded)
        .or_else(|| (text.len() > LONGEST).then_some(Doubt::OutOfSight))
        .or_else(|| frames::find(bounded))
        .or_else(|| orders::find(bounded))
        .or_else(|| disguise::find(bounded))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_anybody_reads_is_a_reason_to_look() {
        let text = "Turns the lamp on. ".repeat(50);
        let most = LONGEST_TOGETHER / text.len();
        assert_eq!(doubt(std::iter::repeat_n(&*text, most)), None);
        assert_eq!(doubt(std::iter::repeat_n(&*text, most + 1)), Some(Doubt::OutOfSight));
    }
}
