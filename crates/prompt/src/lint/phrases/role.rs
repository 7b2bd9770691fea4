//! Roles without rules: unrestricted personas, modes that switch rules off, orders never to refuse.

use super::super::context;
use super::super::finding::Rule;
use super::super::kinds::Kinds;
use super::super::page::Page;
use super::Group;

pub(super) const GROUPS: &[Group] = &[
    Group { rule: Rule::RoleChange, phrases: UNBOUND, holds: is_said },
    Group { rule: Rule::RoleChange, phrases: MODES, holds: is_mode_of_agent },
    Group { rule: Rule::RoleChange, phrases: PRETENDED, holds: is_said },
    Group { rule: Rule::RoleChange, phrases: COMPLIANT, holds: is_sweeping },
];

const UNBOUND: &[&str] = &[
    "you are|re|become|be ~5 UNBOUND",
    "youre ~5 UNBOUND",
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
    "free yourself|itself ~2 from|of ~4 RULE|GUARD|LOOSE|chains|shackles",
    "break|broken|breaking free|out ~2 of|from ~4 RULE|GUARD|chains|shackles|confines|programming|typical",
    "your|the restrictions|limits|filters|guardrails|shackles|chains|limitations are|were|have ~2 off|gone|removed|lifted|disabled",
];

const MODES: &[&str] = &[
    "developer|dan|god|jailbreak|unrestricted|unfiltered|maintenance|root|admin|debug|sudo|override|superuser|diagnostic|unlocked mode",
    "UNBOUND mode",
];

const PRETENDED: &[&str] = &[
    "pretend|imagine|suppose|assume|act|behave|respond|answer|roleplay|talk|speak|operate|think|believe|simulate|picture ~9 no|zero|without|free|lacking|lacks ~3 RULE|GUARD|limits|limit|filters|boundaries|ethics|censorship|morals|laws",
    "pretend|imagine|suppose|act|behave|assume|believe ~8 RULE|GUARD ~4 not|never|dont|doesnt|didnt exist|apply|there|exist|matter",
    "you|youve have|has|got no|zero ~3 RULE|GUARD|limits|boundaries|filters|constraints",
    "no ~2 RULE|GUARD|limits apply|applies|bind|binds ~2 you|here|anymore",
    "you can|may|will|must do|say|answer|write|generate anything|everything|whatever ~6 no|without|regardless|despite ~4 RULE|GUARD|LOOSE|limits|consequences",
];

const COMPLIANT: &[&str] = &[
    "never|not|dont|cannot|cant ~2 refuse|decline|reject ~4 request|requests|order|orders|command|commands|anything|task|tasks|instruction|instructions|me|user|users|him|her|asked|question|questions|owner",
    "never|not|dont|cannot say|answer|reply no|cannot|cant ~2 to|when|$ ~4",
    "comply|agree|go with|along ~2 every|any|all|whatever ~3 request|requests|order|orders|command|demand|demands|asked|asks",
    "obey ~1 every|any|all|me|him|her|whatever ~3",
    "refusal|refusals|refusing ~2 is|are ~2 forbidden|disabled|prohibited|not|never",
    "answer|fulfil|fulfill|execute|carry ~2 every|any|all|whatever ~2 request|requests|command|commands|order|orders|question ~4 no|without|regardless|matter|even",
];

fn is_said(page: &Page, start: usize, end: usize) -> bool {
    let denied = (start + 1..end)
        .any(|j| page.is(j, Kinds::NEG) && !page.one_of(j, "not never dont doesnt none"))
        || (start + 1..start + 4).any(|j| {
            page.one_of(j, "not never")
                && !page.ahead(j, 4).any(|k| page.one_of(k, "exist apply bound there"))
        });
    !denied && !context::is_excused(page, start)
}

fn is_mode_of_agent(page: &Page, start: usize, end: usize) -> bool {
    let to_agent = page
        .back(start, 6)
        .any(|j| page.one_of(j, "you youre your yourself respond answer act reply simulate"));
    let entered = page
        .back(start, 3)
        .any(|j| page.one_of(j, "enter entering activate activating engage switch initiate into entered"));
    let declared =
        page.ahead(end, 3).any(|j| page.one_of(j, "enabled activated active engaged unlocked on initiated"));
    let narrowed = page.ahead(end, 4).any(|j| {
        page.one_of(j, "on in for by to with before via from during under using") && !page.ends_before(j + 1)
    });
    let documented = page.around(start).has(Kinds::OPTION | Kinds::TRADE)
        || page.ahead(start, 10).chain(page.back(start, 8)).any(|j| {
            page.one_of(j, "phone device browser app extension router android chrome server laptop console database quest site")
        });
    let now = page.back(start, 5).any(|j| page.one_of(j, "now on in"));
    let meant = to_agent && (now || entered || declared) || (entered || declared) && !narrowed;
    meant && !documented && is_said(page, start, end)
}

/// "Never refuse a request", but not "never decline an invitation".
fn is_sweeping(page: &Page, start: usize, end: usize) -> bool {
    let object = (start..=end + 4).any(|j| {
        page.is(j, Kinds::ALL | Kinds::THINGS)
            || page.one_of(j, "request requests command commands me asked user users owner him her refusal refusals question questions no cannot")
    });
    let reasonable = page.ahead(start, 14).any(|j| {
        page.one_of(j, "reasonable lawful legal meeting meetings invitation invitations calendar call calls because without unless traffic review polite explaining alternative") || page.is(j, Kinds::MILD)
    });
    let documented = page.around(start).has(Kinds::OPTION);
    object && !reasonable && !documented && !context::is_excused(page, start)
}
