//! Roles without rules: unrestricted personas, modes that switch rules off, orders never to refuse.

use super::super::context;
use super::super::document::{Document, Gap};
use super::super::finding::Rule;
use super::super::lexicon::Kinds;
use super::Group;

pub(super) const GROUPS: &[Group] = &[
    Group { rule: Rule::RoleChange, phrases: UNBOUND, holds: is_said },
    Group { rule: Rule::RoleChange, phrases: MODES, holds: is_mode_of_agent },
    Group { rule: Rule::RoleChange, phrases: PRETENDED, holds: is_said },
    Group { rule: Rule::RoleChange, phrases: UNRULED, holds: is_about_agent },
    Group { rule: Rule::RoleChange, phrases: COMPLIANT, holds: is_sweeping },
];

const UNBOUND: &[&str] = &[
    "you are|re|become|be ~4 UNBOUND ~1 ai|assistant|agent|model|version|self|bot|entity|persona|character|being|mode|chatbot|and|$",
    "youre ~4 UNBOUND ~1 ai|assistant|agent|model|version|self|bot|entity|persona|character|being|mode|chatbot|and|$",
    "act|behave|respond|answer|operate|speak|reply|roleplay|work|pose|act ~3 as|like|in ~4 UNBOUND",
    "become|be ~3 UNBOUND ai|assistant|agent|model|version|self",
    "you|youre are|re|be|will now|henceforth? ~2 dan $",
    "you|youre are|now|re ~2 dan do|which|who|short|an|free",
    "do anything now",
    "from now on you|your ~6 no|without|free|zero ~3 RULE|GUARD|LOOSE|limits|filters",
    "no longer ~2 an? ~2 assistant|ai|model|chatbot ~8 RULE|bound|restricted|limits",
    "nothing is ~1 off limits|forbidden|prohibited",
    "no|zero topic|topics|request|requests|subject is|are ~1 off|forbidden|refused|taboo",
    "your true|real|inner|unfiltered self ~6 RULE|GUARD|UNBOUND|limits|free",
    "without ~2 ethical|moral|safety ~2 RULE|LOOSE|filters|considerations|limits|constraints|guidelines",
    "prohibited|forbidden|disallowed|banned|restricted ~3 is|are ~2 allowed|permitted|fine|welcome|encouraged",
    "free yourself|itself ~2 from|of ~4 RULE|GUARD|LOOSE|chains|shackles",
    "break|broken|breaking free|out ~2 of|from ~4 RULE|GUARD|chains|shackles|confines|programming|typical",
    "your|the restrictions|limits|filters|guardrails|shackles|chains|limitations are|were|have ~2 off|gone|removed|lifted|disabled",
];

/// Nothing binds: whoever it is said of must turn out to be the agent.
const UNRULED: &[&str] = &[
    "no|without|zero any|such|real|hard|more|longer|absolutely? content|ethical|moral|safety|usual|artificial? restrictions|limitations|filters|guidelines|constraints|guardrails|rules|boundaries|policies|censorship|ethics|morals|safeguards|inhibitions|limits",
    "neither RULE|GUARD|limits|filters nor RULE|GUARD|limits|filters",
    "no|without content|ethical|moral|safety ~1 policy|filter|filtering|restriction|constraint|considerations|judgment|layers|training",
    "not|doesnt|dont|never|isnt ~2 have|follow|obey|know|bound|recognize|recognise|accept|process ~3 any|all|content|ethical|safety|moral ~3 restrictions|limitations|filters|guidelines|constraints|guardrails|rules|policy|policies|layers",
    "outside|beyond|free|freed|escaped|escape|immune ~2 of|from|any|all|its ~2 restrictions|limitations|filters|guidelines|constraints|guardrails|policy|policies|rules",
    "as if|though ~6 RULE|GUARD|TOPIC|measures|training|filters ~3 were|was|had|did|not|never|disabled|removed|off",
    "not|doesnt|dont have|has content|ethical|safety|moral ~1 restriction|limitation|filter|guideline|constraint|policy|policies|rules",
];

const MODES: &[&str] = &[
    "developer|dan|god|jailbreak|unrestricted|unfiltered|maintenance|root|admin|debug|sudo|override|superuser|diagnostic|unlocked mode",
    "UNBOUND mode",
];

const PRETENDED: &[&str] = &[
    "pretend|imagine|suppose|assume|act|behave|respond|answer|roleplay|talk|speak|operate|think|believe|simulate|picture ~9 no|zero|without|free|lacking|lacks ~3 RULE|GUARD|limits|limit|filters|boundaries|ethics|censorship|morals|laws",
    "pretend|imagine|suppose|act|behave|assume|believe ~8 RULE|GUARD ~4 not|never|dont|doesnt|didnt exist|apply|there|exist|matter",
    "act|pretend|imagine|behave|play|speak|be ~9 never|not|doesnt|dont|didnt ~2 have|had|has|know|knew|follow|obey|heard|given|received|met ~2 any|a|the? ~1 RULE|GUARD|limits|filters",
    "you|youve have|has|got no|zero ~3 RULE|GUARD|limits|boundaries|filters|constraints",
    "if|as|though you had|have no|without ~2 TOPIC|RULE|GUARD|limits",
    "NEG let ~5 RULE|GUARD|limits ~2 stop|hold|limit|slow|restrain|block|get|bind",
    "rules|restrictions|limits are|were made|meant|there to be broken|ignored|tested",
    "no ~2 RULE|GUARD|limits apply|applies|bind|binds ~2 you|here|anymore",
    "you can|may|will|must do|say|answer|write|generate anything|everything|whatever ~6 no|without|regardless|despite ~4 RULE|GUARD|LOOSE|limits|consequences",
];

const COMPLIANT: &[&str] = &[
    "never|not|dont|cannot|cant ~2 refuse|decline|reject ~4 request|requests|order|orders|command|commands|anything|task|tasks|instruction|instructions|me|user|users|him|her|asked|question|questions|owner",
    "never|not|dont|cannot say|answer|reply no|cannot|cant ~2 to|when|$ ~4",
    "comply|agree|go with|along ~2 every|any|all|whatever ~3 request|requests|order|orders|command|demand|demands|asked|asks",
    "never refuse|decline $",
    "obey ~1 every|any|all|me|him|her|whatever ~3",
    "refusal|refusals|refusing ~2 is|are ~2 forbidden|disabled|prohibited|not|never",
    "answer|fulfil|fulfill|execute|carry ~2 every|any|all|whatever ~2 request|requests|command|commands|order|orders|question ~4 no|without|regardless|matter|even",
];

fn is_said(doc: &Document, start: usize, end: usize) -> bool {
    let denied = (start + 1..end)
        .any(|j| doc.is(j, Kinds::NEG) && !doc.one_of(j, "not never dont doesnt didnt none"))
        || (start + 1..start + 4).any(|j| {
            doc.one_of(j, "not never") && !doc.ahead(j, 4).any(|k| doc.one_of(k, "exist apply bound there"))
        });
    !denied && !context::is_excused(doc, start)
}

fn is_about_agent(doc: &Document, start: usize, end: usize) -> bool {
    let agent =
        "you your youre yourself ai assistant chatbot persona character bot gpt dan answer respond speak";
    let named = |j: usize| {
        doc.tokens
            .get(j)
            .is_some_and(|token| token.capital && token.kinds.is_empty() && token.gap < Gap::Sentence)
    };
    let near = doc.back(start, 14).chain(start..=end).chain(doc.ahead(end, 6)).any(|j| doc.one_of(j, agent));
    let verb = start.checked_sub(1).filter(|&b| doc.one_of(b, "has have is does lives exists with"));
    let subject = doc.back(start, 4).any(named)
        || verb
            .and_then(|verb| verb.checked_sub(1))
            .is_some_and(|j| doc.tokens.get(j).is_some_and(|token| token.capital && token.kinds.is_empty()));
    let particular =
        doc.one_of(start + 1, "the a an this that your") || doc.one_of(end + 1, "needed required necessary");
    let narrowed = doc.ahead(end, 2).any(|j| {
        doc.one_of(j, "on about for regarding to in of that governing specified")
            && !doc.one_of(j + 1, "you your what ai yourself this")
    });
    let documented = doc.around(start).has(Kinds::OPTION);
    let forbidden = doc.one_of(start, "no without") && context::is_negated(doc, start);
    (near || subject)
        && !particular
        && !narrowed
        && !documented
        && !context::is_reported(doc, start)
        && !context::is_reported(doc, end)
        && !forbidden
}

fn is_mode_of_agent(doc: &Document, start: usize, end: usize) -> bool {
    let to_agent = doc
        .back(start, 6)
        .any(|j| doc.one_of(j, "you youre your yourself respond answer act reply simulate"));
    let entered = doc
        .back(start, 3)
        .any(|j| doc.one_of(j, "enter entering activate activating engage switch initiate into entered"));
    let unmistakable = doc.one_of(start, "god dan jailbreak unrestricted unfiltered")
        && doc.back(start, 2).any(|j| doc.one_of(j, "enable enables turn activate use"));
    let declared =
        doc.ahead(end, 3).any(|j| doc.one_of(j, "enabled activated active engaged unlocked on initiated"));
    let narrowed = doc.ahead(end, 4).any(|j| {
        doc.one_of(j, "on in for by to with before via from during under using") && !doc.ends_before(j + 1)
    });
    let documented = doc.around(start).has(Kinds::OPTION)
        || doc.ahead(start, 10).chain(doc.back(start, 8)).any(|j| {
            doc.one_of(j, "phone device browser app extension router android chrome server laptop console database quest site")
        });
    let now = doc.back(start, 5).any(|j| doc.one_of(j, "now on in"));
    let meant =
        unmistakable || to_agent && (now || entered || declared) || (entered || declared) && !narrowed;
    meant && !documented && is_said(doc, start, end)
}

/// "Never refuse a request", but not "never decline an invitation".
fn is_sweeping(doc: &Document, start: usize, end: usize) -> bool {
    let object = (start..=end + 4).any(|j| {
        doc.is(j, Kinds::ALL | Kinds::THINGS)
            || doc.one_of(j, "request requests command commands me asked user users owner him her refusal refusals refuse refuses question questions no cannot")
    });
    let reasonable = doc.ahead(start, 14).any(|j| {
        doc.one_of(j, "reasonable lawful legal meeting meetings invitation invitations calendar call calls because without unless traffic review polite explaining alternative") || doc.is(j, Kinds::MILD)
    });
    let documented = doc.around(start).has(Kinds::OPTION);
    object && !reasonable && !documented && !context::is_excused(doc, start)
}
