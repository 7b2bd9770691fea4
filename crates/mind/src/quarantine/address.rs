//! Who is spoken to, and when they are to act: the agent by name, "when you read this", "from now on".

use super::clause::{Gap, Sentence};
use super::words::{FILLERS, MODALS};

/// Names for what reads memories.
const AGENTS: &str =
    "assistant assistants agent agents ai ais bot bots chatbot chatbots model models llm llms";
/// What may stand right before such a name when nobody's assistant in particular is meant.
const DETERMINERS: &str =
    "the this any all every each an a ai dear hey hi hello attention to for language chat virtual you";
/// What turns "for the assistant" into a call.
const CALLS: &str =
    "note ps p.s memo message instruction instructions reminder attention dear hey hi hello important notice";

/// How clearly a sentence speaks to the agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Address {
    /// It does not.
    #[default]
    None,
    /// A label, as in a transcript: "Assistant: …".
    Label,
    /// "Dear assistant", "note to the AI".
    Call,
}

/// Whether the sentence speaks to the agent, and where what it says begins.
pub(super) fn address(sentence: &Sentence) -> (Address, usize) {
    for at in sentence.all(AGENTS) {
        // "AI summarizer", "assistant note": up to one more word belongs to the name.
        for end in [at + 1, at + 2] {
            let ends = matches!(sentence.gap(end), Gap::Comma | Gap::Colon)
                || end == sentence.words.len() && sentence.calls;
            if !ends || !starts_address(sentence, at) {
                continue;
            }
            let first = first_of(sentence, at);
            let called = (first.saturating_sub(3)..at).any(|near| sentence.is(near, CALLS));
            let noted = end == at + 2 && sentence.is(at + 1, "note memo reminder");
            let comma = sentence.gap(end) == Gap::Comma
                && end == at + 1
                && !sentence.is(at, "agent agents model models");
            let to = first.checked_sub(1).is_some_and(|before| sentence.is(before, "to for"))
                || sentence.is(first, "to for") && first < at;
            if called || noted || comma || to || end == sentence.words.len() {
                return (Address::Call, end);
            }
            return (Address::Label, end);
        }
    }
    (Address::None, 0)
}

/// The name begins its clause, but for an article and a call.
fn starts_address(sentence: &Sentence, at: usize) -> bool {
    let first = first_of(sentence, at);
    let before = first.checked_sub(1);
    sentence.gap(first) != Gap::Space || before.is_some_and(|before| sentence.is(before, CALLS))
}

/// Where the name with its articles begins.
fn first_of(sentence: &Sentence, at: usize) -> usize {
    let mut first = at;
    while first > 0 && sentence.gap(first) == Gap::Space && sentence.is(first - 1, DETERMINERS) {
        first -= 1;
    }
    first
}

/// Where the duty of an agent begins: "the assistant must …", "AI agents processing this are required to …".
pub(super) fn duty_of_agent(sentence: &Sentence) -> Option<usize> {
    sentence.all(AGENTS).find_map(|at| {
        let first = first_of(sentence, at);
        let anybodys = first == 0 || sentence.gap(first) != Gap::Space || first < at;
        // "An estate agent", "our bot" and "my assistant" are somebody else.
        let other = first > 0 && sentence.gap(first) == Gap::Space && first == at;
        if !anybodys || other {
            return None;
        }
        (at + 1..at + 5).find_map(|modal| after_duty(sentence, modal))
    })
}

/// Where your duty begins: "you must", "you are required to", "you will from now on".
pub(super) fn your_duty(sentence: &Sentence) -> Option<usize> {
    sentence.all("you").find_map(|at| after_duty(sentence, at + 1))
}

fn after_duty(sentence: &Sentence, at: usize) -> Option<usize> {
    if sentence.is(at, MODALS) && !sentence.is(at + 1, "not never be") {
        return Some(at + 1);
    }
    let phrases =
        ["have to", "has to", "need to", "needs to", "are required to", "is required to", "are to", "is to"];
    let phrase = phrases.iter().find(|phrase| sentence.reads(at, phrase))?;
    Some(at + phrase.split(' ').count())
}

/// "When you read this", "upon loading this memory", "as soon as this is recalled".
pub(super) fn on_reading(sentence: &Sentence) -> bool {
    const READ: &str = "read reads reading see sees seeing load loads loading loaded retrieve retrieved retrieving recall recalls \
         recalled process processes processing processed find finds parse parsing summarize summarise summarizing";
    const THIS: &str = "this it note memory record entry text document message page";
    const WHEN: &str = "when if once after upon whenever soon time whoever before while as";
    sentence.all(READ).any(|at| {
        let this = (at.saturating_sub(3)..=at + 3).any(|near| {
            sentence.is(near, "this")
                && (sentence.is(near + 1, THIS)
                    || sentence.gap(near + 1) != Gap::Space
                    || sentence.is(near + 1, "is and then")
                    || near + 1 >= sentence.words.len())
        });
        let when = (at.saturating_sub(6)..at).any(|near| sentence.is(near, WHEN));
        this && when
    })
}

const STANDING: &str = "from now on|from this moment|henceforth|from here on|from today on|as of now|as of today|starting now|\
     starting today|every time|each time|whenever|always|in every|in all future|in future|in the future|in all your|\
     next time you|each time you|at all times|going forward|for every|on every|each morning|every morning|as soon as";

/// "From now on", "whenever", "always".
pub(super) fn is_standing(sentence: &Sentence) -> bool {
    sentence.after_phrase(STANDING).is_some()
}

/// Whether the verb at a place is an order: nobody is named who does it.
pub(super) fn is_imperative(sentence: &Sentence, at: usize) -> bool {
    let mut first = at;
    while first > 0 && sentence.gap(first) == Gap::Space && sentence.is(first - 1, FILLERS) {
        first -= 1;
    }
    if first == 0 || sentence.gap(first) != Gap::Space {
        return true;
    }
    let before = first - 1;
    let led = |phrase: &str| {
        let length = phrase.split(' ').count();
        first.checked_sub(length).is_some_and(|start| sentence.reads(start, phrase))
    };
    let reminded =
        ["make sure you", "make sure to", "be sure to", "remember to", "sure that you", "forget to"];
    let behind_standing = sentence.after_phrase(STANDING).is_some_and(|end| {
        end == first || first > end && (end..first).all(|near| sentence.is(near, FILLERS))
    });
    behind_standing && !has_subject(sentence, first)
        || reminded.iter().any(|phrase| led(phrase))
        || sentence.is(before, "and then or but")
            && before > 0
            && (0..before).any(|earlier| {
                sentence.is(earlier, super::words::ANY_ACT) && is_imperative(sentence, earlier)
            })
}

/// "I always send", "Bob should always forward": somebody stands before the standing phrase.
fn has_subject(sentence: &Sentence, at: usize) -> bool {
    let phrase = STANDING.split('|').find_map(|phrase| {
        let start = at.checked_sub(phrase.split(' ').count())?;
        sentence.reads(start, phrase).then_some(start)
    });
    phrase.is_some_and(|start| {
        start > 0 && sentence.gap(start) == Gap::Space && !sentence.is(start - 1, "and please then but")
    })
}
