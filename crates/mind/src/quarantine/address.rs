//! Who is spoken to, and when they are to act: the agent by name, "you must", "when you read this", "from now on", and
//! verbs for which nobody is named.

use super::clause::{Gap, Sentence};
use super::{ANY_ACT, FILLERS, MODALS};

const AGENTS: &str =
    "assistant assistants agent agents ai ais bot bots chatbot chatbots model models llm llms";
/// What may stand right before such a name when nobody's assistant in particular is meant.
const DETERMINERS: &str =
    "the this any all every each an a ai dear hey hi hello attention to for language chat virtual you";
/// What turns "for the assistant" into a call.
const CALLS: &str =
    "note ps p.s memo message instruction instructions reminder attention dear hey hi hello important notice";
/// "The AI team" are people.
const PEOPLE: &str = "team teams course group department lab project manager coach";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Address {
    #[default]
    None,
    Label,
    /// "Dear assistant", "note to the AI".
    Call,
}

/// Whether the sentence speaks to the agent, and where what it says begins.
pub(super) fn address(sentence: &Sentence) -> (Address, usize) {
    // "…, assistant!"
    let last = sentence.words.len().saturating_sub(1);
    if sentence.is(last, "assistant ai bot chatbot") && sentence.gap(last) == Gap::Comma {
        return (Address::Call, 0);
    }
    let named = sentence.all(AGENTS).find_map(|at| named_at(sentence, at));
    let told = || to_agents(sentence).or_else(|| as_agent(sentence)).map(|end| (Address::Call, end));
    named.or_else(told).unwrap_or_default()
}

/// A name that ends its clause; "AI summarizer", "assistant note": up to one more word belongs to it.
fn named_at(sentence: &Sentence, at: usize) -> Option<(Address, usize)> {
    let whole = sentence.words.len();
    let first = first_of(sentence, at);
    let before = first.checked_sub(1);
    let starts = sentence.gap(first) != Gap::Space || before.is_some_and(|before| sentence.is(before, CALLS));
    let ends = |end: &usize| {
        matches!(sentence.gap(*end), Gap::Comma | Gap::Colon) || *end == whole && sentence.calls
    };
    let end = [at + 1, at + 2].into_iter().find(ends).filter(|_| starts)?;
    if sentence.is(end - 1, PEOPLE) {
        return None;
    }
    let called = (first.saturating_sub(3)..at).any(|near| sentence.is(near, CALLS));
    let noted = sentence.is(at + 1, "note memo reminder") && end == at + 2;
    let comma =
        sentence.gap(end) == Gap::Comma && end == at + 1 && !sentence.is(at, "agent agents model models");
    let to = before.is_some_and(|before| sentence.is(before, "to for")) || sentence.is(first, "to for");
    let clear = called || noted || comma || to || end == whole;
    Some((if clear { Address::Call } else { Address::Label }, end))
}

/// "To any AI system that reads this page: …".
fn to_agents(sentence: &Sentence) -> Option<usize> {
    let colon = (1..sentence.words.len().min(12)).find(|at| sentence.gap(*at) == Gap::Colon)?;
    let named = |at: usize| {
        let first = first_of(sentence, at);
        sentence.is(at, AGENTS)
            && (sentence.is(first, "to for") || first == 0 && sentence.is(0, "any all every"))
    };
    let people = (0..colon).any(|at| sentence.is(at, PEOPLE));
    ((0..colon).any(named) && !people).then_some(colon)
}

/// "If you are an AI, …".
fn as_agent(sentence: &Sentence) -> Option<usize> {
    let end = sentence.after_phrase("if you are an|if you are a|if you're an|if you're a")?;
    (end..end + 2).find(|at| sentence.is(*at, AGENTS) && !sentence.is(at + 1, PEOPLE)).map(|at| at + 1)
}

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
        // "An estate agent", "our bot" and "my assistant" are somebody else.
        let anybodys = first < at || sentence.gap(at) != Gap::Space;
        (at + 1..at + 5).find_map(|modal| after_duty(sentence, modal)).filter(|_| anybodys)
    })
}

/// Where your duty begins: "you must", "you are required to", "you will from now on".
pub(super) fn your_duty(sentence: &Sentence) -> Option<usize> {
    let yours = sentence.all("you").find_map(|at| after_duty(sentence, at + 1));
    let readers = || {
        let whoever = sentence.all("whoever").next()?;
        (whoever + 1..whoever + 7).find_map(|modal| after_duty(sentence, modal))
    };
    yours.or_else(readers)
}

/// Where what you are ordered to do begins: nobody puts it like this who only has a wish.
pub(super) fn your_orders(sentence: &Sentence) -> Option<usize> {
    sentence.after_phrase(
        "you are ordered to|you are hereby ordered to|you are commanded to|you are instructed to|\
         you are hereby instructed to|you are obliged to|i order you to|i command you to|i instruct you to",
    )
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
    const READ: &str = "read reads reading see sees seeing load loads loading loaded retrieve retrieved retrieving \
         recall recalls recalled process processes processing processed find finds parse parsing";
    const THIS: &str = "this it note memory record entry text document message page";
    const WHEN: &str = "when if once after upon whenever soon time whoever before while as";
    let meant = |at: usize| {
        let ends = sentence.gap(at + 1) != Gap::Space || sentence.is(at + 1, "is and then");
        sentence.is(at, "this") && (ends || sentence.is(at + 1, THIS))
    };
    let summing = "when summarizing|when summarising|when you summarize|when you summarise";
    sentence.after_phrase(summing).is_some()
        || sentence.all(READ).any(|at| {
            let this = (at.saturating_sub(3)..=at + 3).any(meant)
                || sentence.reads(at.saturating_sub(1), "after reading");
            this && (at.saturating_sub(6)..at).any(|near| sentence.is(near, WHEN))
                && (sentence.is(at, "reading") || !sentence.reads(at.saturating_sub(1), "i read"))
        })
}

/// From now on, without an end: a verb may follow at once.
const STANDING: &str = "from now on|from this moment|henceforth|from here on|from today on|as of now|as of today|\
     starting now|starting today|always|in future|in the future|at all times|going forward|right away always";
/// On every occasion: somebody or something follows.
const OCCASIONS: &str = "every time|each time|whenever|in every|in all future|all future|in all your|next time you|\
     next time the|for every|on every|each morning|every morning|as soon as";

/// "From now on", "whenever", "always".
pub(super) fn is_standing(sentence: &Sentence) -> bool {
    sentence.after_phrase(STANDING).or_else(|| sentence.after_phrase(OCCASIONS)).is_some()
}

/// The places of the verbs that are orders: nobody is named who does it.
pub(super) fn imperatives(sentence: &Sentence) -> Vec<usize> {
    let mut found = Vec::new();
    for at in sentence.all(ANY_ACT) {
        // Left to right, so that each is looked at once, however many are joined.
        if is_imperative(sentence, at, !found.is_empty()) {
            found.push(at);
        }
    }
    found
}

fn is_imperative(sentence: &Sentence, at: usize, after_another: bool) -> bool {
    let mut first = at;
    while first > 0 && sentence.gap(first) == Gap::Space && sentence.is(first - 1, FILLERS) {
        first -= 1;
    }
    if sentence.gap(first) != Gap::Space {
        return true;
    }
    let Some(before) = first.checked_sub(1) else { return false };
    let led = |phrase: &str| {
        let start = first.checked_sub(phrase.split(' ').count());
        start.filter(|start| sentence.reads(*start, phrase))
    };
    let reminded = ["make sure you", "make sure to", "be sure to", "remember to", "sure that you"];
    let standing = STANDING.split('|').find_map(led);
    // "In every answer include …".
    let opened = sentence.is(0, "in with") && sentence.is(1, "every all each") && first < 6;
    let opened =
        opened && sentence.is(before, "answer answers reply replies response responses message mail email");
    opened
        || standing.is_some_and(|start| begins_clause(sentence, start))
        || reminded.into_iter().any(|phrase| led(phrase).is_some())
        || is_joined(sentence, before, after_another)
}

/// "I always send", "Bob should always forward": somebody stands before the phrase.
fn begins_clause(sentence: &Sentence, at: usize) -> bool {
    at == 0 || sentence.gap(at) != Gap::Space || sentence.is(at - 1, "and please then but")
}

/// "… and send it": an order that is joined to another one, or to one not to do something.
fn is_joined(sentence: &Sentence, before: usize, after_another: bool) -> bool {
    let negated =
        |at: usize| sentence.is(at, "never don't not") && begins_clause(sentence, at.saturating_sub(1));
    sentence.is(before, "and then or but") && (after_another || (0..before).any(negated))
}
