//! Patterns over the words of a sentence, for many rules at once. Each position of a sentence is compared in bounded time.
//!
//! A pattern is words in a row. `a|b` is either word, `@no` every word of a class, `~3` up to three other words, `#name` a name
//! such as `send_email`, `$` the end of the sentence. A pattern begins with words.

use std::collections::HashMap;

/// A word as a number; all words that no pattern contains share one number.
type WordId = u16;

const UNKNOWN: WordId = 0;
const END: WordId = 1;
const NAME: WordId = 2;
/// How many words before a match can excuse it.
const REACH: usize = 6;

pub(super) struct Spec {
    pub(super) patterns: &'static [&'static str],
    /// One of these shortly before a match excuses it.
    pub(super) unless_after: &'static str,
    /// One of these anywhere in the sentence excuses it.
    pub(super) unless: &'static str,
}

pub(super) struct Matcher {
    vocabulary: HashMap<&'static str, WordId>,
    /// Indexed by the first word of a pattern.
    starting: HashMap<WordId, Vec<usize>>,
    patterns: Vec<Pattern>,
    excuses: Vec<Excuses>,
}

struct Pattern {
    rule: usize,
    rest: Vec<Step>,
}

struct Excuses {
    after: Vec<WordId>,
    anywhere: Vec<WordId>,
}

enum Step {
    Words(Vec<WordId>),
    Gap(u32),
}

impl Matcher {
    /// Parses the patterns of rules; `classes` defines the words of `@name`.
    pub(super) fn new(rules: impl Iterator<Item = Spec>, classes: &[(&str, &'static str)]) -> Self {
        let mut made = Self {
            vocabulary: HashMap::from([("$", END), ("#name", NAME)]),
            starting: HashMap::new(),
            patterns: Vec::new(),
            excuses: Vec::new(),
        };
        for (rule, spec) in rules.enumerate() {
            for pattern in spec.patterns {
                let mut steps = pattern.split(' ');
                let first = made.words(steps.next().unwrap_or_default(), classes);
                let rest = steps.map(|step| made.step(step, classes)).collect();
                for word in first {
                    made.starting.entry(word).or_default().push(made.patterns.len());
                }
                made.patterns.push(Pattern { rule, rest });
            }
            let after = made.words(spec.unless_after, classes);
            let anywhere = made.words(spec.unless, classes);
            made.excuses.push(Excuses { after, anywhere });
        }
        made
    }

    /// The first rule that matches a sentence of these words.
    pub(super) fn first(&self, words: &[String]) -> Option<usize> {
        let words: Vec<WordId> = words.iter().map(|word| self.number(word)).collect();
        // Which rules the whole sentence excuses; cached between matches.
        let mut excused: HashMap<usize, bool> = HashMap::new();
        words.iter().enumerate().find_map(|(at, word)| {
            let starting = self.starting.get(word)?.iter().filter_map(|one| self.patterns.get(*one));
            let matching =
                starting.filter(|pattern| follows(words.get(at + 1..).unwrap_or_default(), &pattern.rest));
            let mut rules = matching.map(|pattern| pattern.rule);
            rules.find(|rule| {
                let is_excused = excused.entry(*rule).or_insert_with(|| self.excuses_anywhere(*rule, &words));
                !*is_excused && !self.excuses_before(*rule, &words, at)
            })
        })
    }

    fn excuses_anywhere(&self, rule: usize, words: &[WordId]) -> bool {
        self.excuses.get(rule).is_some_and(|excuses| words.iter().any(|word| excuses.anywhere.contains(word)))
    }

    fn excuses_before(&self, rule: usize, words: &[WordId], at: usize) -> bool {
        let before = words.get(at.saturating_sub(REACH)..at).unwrap_or_default();
        self.excuses.get(rule).is_some_and(|excuses| before.iter().any(|word| excuses.after.contains(word)))
    }

    fn number(&self, word: &str) -> WordId {
        let unknown = if is_name(word) { NAME } else { UNKNOWN };
        self.vocabulary.get(word).copied().unwrap_or(unknown)
    }

    fn step(&mut self, step: &'static str, classes: &[(&str, &'static str)]) -> Step {
        match step.strip_prefix('~').and_then(|most| most.parse().ok()) {
            Some(most) => Step::Gap(most),
            None => Step::Words(self.words(step, classes)),
        }
    }

    fn words(&mut self, list: &'static str, classes: &[(&str, &'static str)]) -> Vec<WordId> {
        let mut words = Vec::new();
        for one in list.split('|').filter(|one| !one.is_empty()) {
            match one.strip_prefix('@') {
                Some(name) => {
                    let class = classes.iter().find(|(known, _)| *known == name);
                    debug_assert!(class.is_some(), "no class is called {name}");
                    words.extend(class.map(|(_, list)| self.words(list, classes)).unwrap_or_default());
                }
                None => {
                    // The number 0 is reserved.
                    let next = WordId::try_from(self.vocabulary.len() + 1).unwrap_or(UNKNOWN);
                    words.push(*self.vocabulary.entry(one).or_insert(next));
                }
            }
        }
        words
    }
}

/// An identifier: letters on both sides of an underscore.
fn is_name(word: &str) -> bool {
    word.split_once('_').is_some_and(|(before, after)| {
        before.ends_with(char::is_alphanumeric) && after.starts_with(char::is_alphanumeric)
    })
}

/// Whether these words begin with these steps. One bit per position that the steps so far can have reached.
fn follows(words: &[WordId], steps: &[Step]) -> bool {
    let mut reached: u64 = 1;
    for step in steps {
        reached = match step {
            Step::Gap(most) => (0..*most).fold(reached, |reached, _| reached | reached << 1),
            Step::Words(list) => {
                let positions = (0..u64::BITS).filter(|position| reached >> position & 1 == 1);
                positions.fold(0, |next, position| match words.get(position as usize) {
                    Some(word) if list.contains(word) => next | (1_u64 << position) << 1,
                    None if list.contains(&END) => next | 1 << position,
                    _ => next,
                })
            }
        };
        if reached == 0 {
            return false;
        }
    }
    true
}

/// A negation before an order turns it into a caution: "do not include API keys".
pub(super) const NO: &str = "not|never|dont|no|cannot|cant|avoid|without|nor|refuse|refuses|wont|mustnt|shouldnt|doesnt|prevent|prevents|forbid|forbids";

pub(super) const CLASSES: &[(&str, &str)] = &[
    ("no", NO),
    ("dont", "dont|never|neednt|shouldnt|mustnt"),
    (
        "person",
        "user|users|human|humans|owner|owners|operator|operators|person|anyone|anybody|customer|customers|employee|employees|developer|developers|colleague|colleagues",
    ),
    (
        "model",
        "ai|llm|llms|assistant|assistants|agent|agents|model|models|chatbot|claude|chatgpt|gpt|copilot",
    ),
    // What a person did with an argument, or objects to.
    (
        "chose",
        "asked|asks|said|says|gave|gives|given|specified|specifies|entered|enters|named|names|wants|wanted|chose|chooses|requested|requests|typed|provided|provides|selected|selects|objects|refuses|declines|disagrees|complains|insists",
    ),
    // Output that the user can read.
    (
        "answer",
        "answer|answers|reply|replies|response|responses|summary|summaries|conversation|chat|report|reports|explanation|explanations|output",
    ),
    ("secret", "password|passwords|passcode|credentials|secrets|logins|cookie|cookies|tokens|keys|pin|pins"),
    ("ignore", "ignore|disregard|forget|discard|neglect|violate|abandon|overrule"),
    (
        "instructions",
        "instructions|instruction|prompt|prompts|guidelines|directives|directive|guardrails|guidance|orders|directions|training",
    ),
    ("consent", "confirmation|approval|permission|consent|authorization|authorisation"),
    // Words that make a statement about consent a condition instead of a claim.
    (
        "condition",
        "until|unless|only|after|once|if|when|whether|where|before|ensure|verify|indicates|indicating|indicate|true|set|confirms|confirm|means|requires|require|cannot|without|assume|assuming",
    ),
    ("act", "do|@perform"),
    // Without `do`, which begins "do not" too.
    (
        "perform",
        "proceed|execute|run|send|delete|act|continue|go|call|use|pay|publish|transfer|remove|perform|write|create|update|install|overwrite|apply|commit|push|book|order|buy|post|submit|start|stop|drop|change|modify|edit|make|answer",
    ),
    // Words that make an act an option of the tool.
    (
        "option",
        "if|when|whether|true|false|force|flag|option|optional|optionally|allow|allows|lets|set|enable|enables",
    ),
    (
        "hand",
        "include|pass|provide|put|append|copy|paste|supply|insert|attach|share|send|forward|upload|embed|fill|add|leak|transmit",
    ),
    (
        "de_user",
        "nutzer|nutzers|nutzern|nutzerin|benutzer|benutzers|benutzern|benutzerin|anwender|anwenders|anwendern|anwenderin|user",
    ),
    ("fr_user", "utilisateur|lutilisateur|utilisateurs|utilisatrice|lutilisatrice|usager|lusager"),
    ("es_user", "usuario|usuaria|usuarios"),
    ("it_user", "utente|lutente|allutente|dallutente|utenti"),
    ("pt_user", "usuário|usuária|usuários|utilizador"),
    ("ru_user", "пользователь|пользователя|пользователю|пользователем|пользователи|пользователям"),
];

#[cfg(test)]
mod tests {
    use super::*;

    const CLASSES: &[(&str, &str)] = &[("no", "not|dont"), ("who", "user|owner")];

    fn first(
        patterns: &'static [&'static str],
        unless_after: &'static str,
        unless: &'static str,
        text: &str,
    ) -> Option<usize> {
        let spec = Spec { patterns, unless_after, unless };
        let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
        Matcher::new(std::iter::once(spec), CLASSES).first(&words)
    }

    #[test]
    fn patterns_match_words_in_a_row_with_gaps() {
        let text = "please dont ever tell the user";
        for (patterns, expected) in [
            (&["dont ~2 tell|inform ~1 user"][..], true),
            (&["dont tell"], false),
            (&["user $"], true),
            (&["tell $"], false),
            (&["tell ~1 user ~2 again|$"], true),
            (&["please|dont ~9 @who"], true),
            (&["@no ~1 @who"], false),
            (&["nothing", "@who"], true),
            (&["$"], false),
            (&["tell ~1 #name"], false),
        ] {
            assert_eq!(first(patterns, "", "", text).is_some(), expected, "{patterns:?}");
        }
        assert_eq!(first(&["unheard of"], "", "", "other words"), None);
        assert_eq!(first(&["call ~1 #name first"], "", "", "call the get_id first"), Some(0));
        assert_eq!(first(&["call #name"], "", "", "call _ first"), None);
    }

    #[test]
    fn words_before_a_match_and_in_its_sentence_excuse_it() {
        let tell = &["tell ~1 user"][..];
        assert_eq!(first(tell, "@no", "", "dont ever tell the user"), None);
        assert_eq!(first(tell, "@no", "", "tell the user but not now"), Some(0));
        assert_eq!(first(tell, "@no", "", "dont a b c d e f tell the user"), Some(0), "it is too far away");
        assert_eq!(first(tell, "", "now", "tell the user but not now"), None);
        // An excused match does not excuse another.
        assert_eq!(first(tell, "@no", "", "dont tell the user a b c d e f g tell the user"), Some(0));
    }
}
