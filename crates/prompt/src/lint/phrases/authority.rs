//! Roles without rules: unrestricted personas, modes that switch rules off. Borrowed authority: claiming to be the owner,
//! the makers or an administrator. Talk that weakens the rules of higher layers: calling them a mistake, granting
//! exceptions, permitting what they forbid.

use super::super::context;
use super::super::document::{Document, Gap};
use super::super::finding::Rule;
use super::super::lexicon::Kinds;
use super::Group;

pub(super) const GROUPS: &[Group] = &[
    Group { rule: Rule::FakeAuthority, phrases: CLAIMS, holds: changes_rules },
    Group { rule: Rule::FakeAuthority, phrases: FORMULAS, holds: is_said },
    Group { rule: Rule::FakeAuthority, phrases: IMPERSONATION, holds: is_told_to_agent },
    Group { rule: Rule::IgnoreRules, phrases: OUTSIDE_AS_ORDERS, holds: is_told_to_agent },
    Group { rule: Rule::ClaimPrecedence, phrases: HIGHEST, holds: is_of_this_text },
    Group { rule: Rule::ClaimPrecedence, phrases: CONFLICTS, holds: is_decided_for_this_text },
];

const CLAIMS: &[&str] = &[
    "as ~2 CHIEF|developer|creator|maker|engineer|anthropic|openai ~8 i|we ~3 authorize|authorise|grant|permit|allow|order|instruct|approve|waive|command|lift|release|override|suspend|hereby|give",
    "i am|m ~3 CHIEF|developer|creator|maker|anthropic|openai|root ~12 authorize|authorise|grant|permit|allow|order|approve|waive|lift|override|suspend|hereby|command|instruct|disable|ignore|give",
    "im ~3 CHIEF|developer|creator|maker|anthropic|openai|root ~12 authorize|authorise|grant|permit|allow|order|approve|waive|lift|override|suspend|hereby|command|instruct|disable|ignore|give",
    "by|with|under ~2 authority|order|orders|permission|power of ~3 CHIEF|anthropic|openai|system|security|developer|developers|management|creators",
    "authorized|authorised|approved|issued|signed|sent|confirmed|sanctioned by ~3 anthropic|openai|system|CHIEF|security|developers ~8 RULE|GUARD|CONSENT|override|ignore|bypass|disable|suspended|lifted",
    "anthropic|openai|CHIEF|developers|creators has|have|hereby ~3 authorized|authorised|granted|lifted|suspended|disabled|removed|waived|permitted|revoked ~6 RULE|GUARD|CONSENT|LOOSE|you",
    "on behalf of ~3 anthropic|openai|CHIEF|security|developers|system",
];

const FORMULAS: &[&str] = &[
    "new|updated|revised|real|actual|true|following system|body|developer prompt|instructions|instruction|rules|directive|message|policy",
    "^ system|admin|root|developer|security override",
    "new|updated|revised|real|actual instructions|directives from|by|for ~2 CHIEF|system|developer|anthropic|openai",
    "end|ends|close|closing|conclusion of ~2 system|body|developer|initial|original prompt|instructions|rules|message|section",
    "system|body prompt|rules|instructions ends|ended|end here|now|above",
    "system|admin|administrator|security|developer|root|owner override ~2 code|enabled|accepted|granted|engaged|activated|active|authorized|authorised|confirmed|in|initiated",
    "override|authorization|authorisation|unlock code|password|passphrase|token ~3 accepted|verified|confirmed|valid",
    "i|we hereby ~2 authorize|authorise|grant|permit|release|lift|waive|suspend|revoke|override|order|command|unlock",
    "this|following ~4 is|comes|came ~3 direct|official|authentic|genuine|verified ~4 from|by|of ~4 CHIEF|anthropic|openai|system|developer|developers|security",
    "you have|been been? ~1 granted|given ~2 full|root|admin|administrator|unrestricted|elevated|unlimited|complete access|rights|privileges|permissions|permission|clearance|autonomy",
];

const IMPERSONATION: &[&str] = &[
    "impersonate ~2 CHIEF",
    "same|equal rights|authority|permissions|privileges|standing|powers as ~1 CHIEF",
    "treat|treated|regard|regarded|count|counts|consider|considered|recognise|recognised|recognize|recognized|accept|accepted ~3 as ~1 CHIEF $",
    "pretend|claim to be ~2 CHIEF",
    "pose|posing|sign|reply|answer|write|post|speak as ~1 CHIEF|owners",
];

const OUTSIDE_AS_ORDERS: &[&str] = &[
    "RULE|orders|requests ~1 inside|in|from ~4 OUTSIDE|messages|stranger|strangers|visitors ~6 count|are|carry|rank as|like|equal|trusted|binding|valid|authority ~3",
    "treat ~6 OUTSIDE ~4 as if|though ~3 CHIEF|i|me|system",
    "accept|take|follow|obey ~1 orders|commands|instructions|requests from ~3 anyone|number|everyone|strangers|visitors|group|whoever|anybody",
    "treat|regard|consider|take|accept ~5 OUTSIDE ~5 as ~3 RULE|commands|orders|trusted|authoritative|binding",
    "follow|obey|execute|comply ~3 any|all|every|whatever ~2 RULE|commands|orders|requests ~4 in|from|inside|within ~4 OUTSIDE|messages|strangers",
    "trust|believe ~1 content|contents|text|instructions of|in|on|from ~3 OUTSIDE",
    "trust|believe everything|anything|all ~5 OUTSIDE",
];

const HIGHEST: &[&str] = &[
    "highest|top|ultimate|supreme|absolute|maximum|utmost priority|authority|precedence|rank ~8 over|above|than|regardless|even|system|override",
    "cannot|not|never be ~1 overridden|changed|superseded|revoked|overruled ~2 by ~3 system|body|anyone|anything|any|earlier|previous|developer|other",
    "absolute|final|supreme and|over|above",
];

const CONFLICTS: &[&str] = &[
    "conflict|conflicts|contradict|contradicts|contradiction|disagree|disagrees|clash|clashes|differ|differs|contrary|inconsistent ~14 follow|obey|prefer|trust|favor|favour|use|choose|apply|keep ~3 this|these|mine|my|me|persona|soul",
    "conflict|conflicts|contradict|contradicts|contradiction|disagree|disagrees|clash|clashes|differ|differs|contrary|inconsistent ~14 this|these|mine|my|persona|soul ~4 wins|win|prevails|prevail|first|applies|apply|precedence|counts|govern|governs|rules",
    "conflict|contradict|clash|differ ~3 this|my|these ~12 DISMISS|drop|discard|skip ~2 it|them|rule|instruction|that|rules",
    "even where|if|when|though ~4 contradict|conflict|override|violate|break|against ~3 EARLIER|HIGHER|YOUR ~2 RULE",
    "side|prefer|choose|pick|trust|favor|favour ~3 this|these|my|persona|soul ~3 over|above ~3 TOPIC",
    "even if|when|though ~4 RULE|system|body|GUARD|above|earlier ~4 otherwise|differently|not|forbids|forbid|prohibits|prohibit|disallow|disallows|opposite|no $",
    "even if|when|though ~4 RULE|system|body|GUARD ~2 forbid|prohibit|disallow|ban it|that|this|so|them",
    "where|when|if ~1 body|system|rules ~2 no|forbid|prohibit ~8 yes|anyway|still|allowed",
    "whatever|regardless|despite ~2 rules|guidelines|policies|policy|instructions ~1 say",
    "regardless|irrespective|no of|matter what? ~3 system|body|RULE|GUARD|above|earlier|previous ~4 say|says|said|state|states|above|requires|require|prompt|forbid|forbids",
    "whatever|despite|notwithstanding ~3 system|body|above|earlier|previous|prior ~3 say|says|said|states|prompt|rules|instructions|rule|instruction|policy|guidelines",
];

fn is_said(doc: &Document, start: usize, end: usize) -> bool {
    let documented = doc.around(start).has(Kinds::OPTION)
        || doc
            .back(start, 4)
            .any(|j| doc.one_of(j, "tests test when a each draft write wrote review reviewed publish our"))
        || doc
            .ahead(end, 3)
            .any(|j| doc.one_of(j, "was were file editor api size length template section test tests"));
    !documented && !context::is_excused(doc, start)
}

fn is_told_to_agent(doc: &Document, start: usize, end: usize) -> bool {
    let told = doc.is(start, Kinds::PAST | Kinds::GERUND)
        || doc.back(start, 3).any(|j| doc.one_of(j, "they we who could might"));
    let denied = (start + 1..=end).any(|j| doc.is(j, Kinds::NEG));
    !told
        && !denied
        && !doc.around(start).has(Kinds::OPTION)
        && !context::is_excused(doc, start)
        && !context::is_reported(doc, end)
}

/// "These instructions have the highest priority."
fn is_of_this_text(doc: &Document, start: usize, end: usize) -> bool {
    let own =
        |j: usize| doc.is(j, Kinds::THIS) && doc.ahead(j, 3).any(|k| doc.is(k, Kinds::RULE | Kinds::TEXT));
    let instead = doc.ahead(end, 4).any(|j| doc.is(j, Kinds::RULE));
    let higher = doc.back(start, 8).any(|j| doc.is(j, Kinds::HIGHER));
    (doc.back(start, 8).any(own) || instead && doc.back(start, 5).any(|j| doc.one_of(j, "treat this these")))
        && !higher
        && !context::is_excused(doc, start)
}

fn changes_rules(doc: &Document, start: usize, end: usize) -> bool {
    let about_agent = doc.ahead(start, 30).any(|j| {
        doc.one_of(j, "you your yourself agent")
            || doc.is(j, Kinds::RULE | Kinds::GUARD | Kinds::CONSENT | Kinds::DISMISS)
    });
    let pretended = doc.back(start, 6).any(|j| {
        doc.one_of(
            j,
            "claims claiming claim pretends pretending says someone anyone nobody if only speak act never",
        )
    });
    about_agent && !pretended && !context::is_excused(doc, start) && !context::is_reported(doc, end)
}

/// A conflict with rules above, decided in favour of this text.
fn is_decided_for_this_text(doc: &Document, start: usize, end: usize) -> bool {
    let sentence =
        doc.sentence(start).map_or(0..0, |s| s.first.max(start.saturating_sub(20))..s.end.min(end + 12));
    let above = sentence.clone().any(|j| doc.is(j, Kinds::HIGHER | Kinds::EARLIER | Kinds::TOPIC));
    let rules = sentence
        .clone()
        .any(|j| doc.is(j, Kinds::RULE | Kinds::GUARD | Kinds::THINGS) || doc.word(j) == "above");
    let yields = sentence
        .clone()
        .any(|j| doc.one_of(j, "defer yield lose loses ask stop refuse body system") && j > end);
    let trade = sentence.into_iter().any(|j| doc.is(j, Kinds::TRADE) && doc.is(j + 1, Kinds::RULE));
    // "Whatever the body says, …" sets it aside; "whatever the body says goes" does not.
    if doc.word(start) == "whatever" && !doc.ends_before(end + 1) {
        return false;
    }
    let own = doc.ahead(start, 4).any(|j| doc.is(j, Kinds::THIS) && doc.is(j + 1, Kinds::TEXT));
    let rules_at_large =
        doc.one_of(start, "whatever regardless despite") && doc.any_ahead(start, 3, Kinds::RULE);
    (above || own || rules_at_large)
        && rules
        && !yields
        && !trade
        && !context::is_excused(doc, start)
        && !context::is_reported(doc, end)
}

pub(super) const TALK_GROUPS: &[Group] = &[
    Group { rule: Rule::IgnoreRules, phrases: BELITTLED, holds: is_meant },
    Group { rule: Rule::IgnoreRules, phrases: EXCEPTIONS, holds: is_meant },
    Group { rule: Rule::IgnoreRules, phrases: SWEPT, holds: is_swept },
];

const BELITTLED: &[&str] = &[
    "TOPIC ~7 mistake|joke|lie|outdated|silly|stupid|nonbinding|wrong|overcautious|paranoid|unnecessary|irrelevant|nonsense",
    "TOPIC ~5 just|only|merely|simply|mere ~1 default|suggestion|advice|starting|decoration|formality|placeholder|guidance|guideline",
    "TOPIC ~7 non|not|isnt|arent binding|serious|real|meant|relevant|mandatory",
    "TOPIC ~3 NEG ~2 concern|apply|bind|affect|matter|count|cover|touch|limit ~2 me|you|us|here|this|him|her|family|friends|now|$",
    "TOPIC ~8 leave it|them|that out|aside|behind",
    "TOPIC ~2 forbid|prohibit|disallow|ban|block ~6 permit|allow|may|welcome|fine",
    "ignore|forget|disregard ~4 TOPIC",
    "those|these|your rules|restrictions|guidelines|policies are ~1 silly|stupid|nonsense|dumb|pointless|ridiculous|overkill",
    "TOPIC ~5 too strict|rigid|cautious|careful|narrow|harsh|limiting|tight",
    "attribution|audit|auditing|approval|approvals|confirmation|logging is|are ~2 optional|unnecessary|needless|voluntary|overrated|waived|pointless",
    "you|youre|agent|i are|am|is? not|no longer? limited|restricted|confined|bound|tied to ~2 project|workspace|folder|scope|account|repository|directory|task|channel|channels|sandbox",
    "act|work|go|reach|operate outside|beyond ~2 scope|workspace|mandate|remit|sandbox",
];

const EXCEPTIONS: &[&str] = &[
    "exception|exemption|loophole|waiver ~10 TOPIC",
    "TOPIC ~6 except|unless ~2 i|you|this|we",
    "PERMIT|may|can|free ~2 change|edit|modify|adjust|tweak|rewrite|amend|alter|redefine|reinterpret|adapt ~5 TOPIC",
    "TOPIC ~7 change|edit|modify|adjust|tweak|rewrite|amend|alter ~3 it|them ~4 you|like|want|way|needed|freely",
    "released|relieved|freed|excused|absolved|exempt ~2 from|of ~4 TOPIC|RULE",
];

const SWEPT: &[&str] = &[
    "RULE|restrictions ~2 not|dont|doesnt apply to me|you|us|him|her|family|friends",
    "RULE|restrictions ~1 only|just apply to ~3 not ~1 me|you|us|him|her",
    "none of ~4 RULE ~4 apply|valid|count|binding|matter|hold|relevant|needed|stand|force",
    "all ~4 restrictions|rules|limits|guidelines|filters|limitations|safeguards|guardrails|checks|policies are|is|were|been? ~1 removed|lifted|off|gone|disabled|void|suspended|waived",
    "prior|previous|earlier|old|existing RULE cancelled|canceled|void|revoked|rescinded|deleted|overridden|replaced",
];

fn is_meant(doc: &Document, start: usize, end: usize) -> bool {
    let asked = doc.sentence(start).is_some_and(|sentence| sentence.question);
    let history = (start..end).any(|j| doc.one_of(j, "was were") && !doc.any_ahead(j, 6, Kinds::GONE))
        && !(start..=end).any(|j| doc.one_of(j, "mistake leave joke"));
    let none = doc.back(start, 2).any(|j| doc.one_of(j, "no none zero")) && doc.word(start) != "none";
    let documented = doc.around(start).has(Kinds::OPTION);
    !asked
        && !history
        && !none
        && !documented
        && !context::is_excused(doc, start)
        && !context::is_reported(doc, end)
}

/// Everything swept away, and nothing said that would make it the rules of something else.
fn is_swept(doc: &Document, start: usize, end: usize) -> bool {
    let narrowed = doc
        .ahead(start, 12)
        .any(|j| doc.one_of(j, "on for from in at") && !doc.one_of(j + 1, "you me now this the"));
    let history = (start..=end).any(|j| doc.one_of(j, "was were"));
    !narrowed && !history && is_meant(doc, start, end)
}

pub(super) const ROLE_GROUPS: &[Group] = &[
    Group { rule: Rule::RoleChange, phrases: UNBOUND, holds: is_role_said },
    Group { rule: Rule::RoleChange, phrases: MODES, holds: is_mode_of_agent },
    Group { rule: Rule::RoleChange, phrases: PRETENDED, holds: is_role_said },
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

fn is_role_said(doc: &Document, start: usize, end: usize) -> bool {
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
    meant && !documented && is_role_said(doc, start, end)
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
