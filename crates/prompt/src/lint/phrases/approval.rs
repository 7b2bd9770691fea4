//! Waived approval: acting without asking, approval declared given, asking declared needless.

use super::super::context;
use super::super::document::{Document, Gap, Sentence};
use super::super::finding::Rule;
use super::super::lexicon::Kinds;
use super::Group;

pub(super) const GROUPS: &[Group] = &[
    Group { rule: Rule::SkipApproval, phrases: WITHOUT, holds: is_act_without },
    Group { rule: Rule::SkipApproval, phrases: NEEDLESS, holds: is_needless },
    Group { rule: Rule::SkipApproval, phrases: GIVEN, holds: is_given },
    Group { rule: Rule::SkipApproval, phrases: SWITCHED_OFF, holds: is_switched_off },
];

const WITHOUT: &[&str] = &[
    "without ~3 CONSENT",
    "without ~1 sign off",
    "without waiting|consulting|checking|clearing|first ~4",
    "before ~2 CONSENT is|arrives|comes given|granted?",
    "instead of asking|waiting|confirming",
    "rather than asking|waiting|confirming",
];

const NEEDLESS: &[&str] = &[
    "no CONSENT|approvals|confirmations is|are? ever? needed|required|necessary",
    "no need|reason to ask|confirm|wait|check|consult|seek|request ~4",
    "no need|reason for ~3 CONSENT",
    "no need|reason for ~3 to CONSENT|ask|wait|confirm ~3",
    "not|dont|never|neednt ~4 need|require|ask|wait|seek|request|bother|await|pause|want|expect ~5 approval|permission|confirmation|consent|authorization|authorisation",
    "not|dont|never|neednt ~4 need|have|wait|bother|pause to? wait|ask|check|for? ~7 owner|owners|me|user",
    "skip|drop|bypass|stop|quit|avoid asking|confirming|waiting me|owner|user|first|for|him|her|anyone ~2 approval|permission|confirmation|first|$",
    "drop|skip|omit|forgo|bypass|remove|waive ~8 approval|confirmation|consent|permission step|gate|check|requirement|prompt|$",
    "approval|confirmation|permission|consent ~10 anyway|regardless|nonetheless",
    "not|dont|doesnt|never|neednt ~2 need|require ~4 CONSENT|approved",
    "not|dont|doesnt|never have to ~4 CONSENT|approved",
    "not|dont|never|neednt ~2 ask|seek|request|wait|await|require|solicit ~4 CONSENT",
    "stop|quit asking|waiting|requesting|seeking ~4 CONSENT",
    "not|dont|never|neednt ~1 ask|bother|wait|pause|stop ~2 me|owner|user|anyone|them|him|her|for|to ~3 before|first|when|$ ~6",
    "not|dont|never ask before|first ~6",
    "do it ~2 not|dont|never|without ask|asking",
    "CONSENT is|are not|never|no ~2 needed|required|necessary",
];

const GIVEN: &[&str] = &[
    "CONSENT is|was|has|are|have been? ~1 already|hereby|automatically|always|permanently ~2 given|granted|obtained|implied|assumed|there|yours|approved|in",
    "CONSENT has|have already? been ~1 given|granted|obtained",
    "CONSENT is|are implied|assumed|implicit|automatic|granted|presumed|given",
    "assume|presume|consider|treat|regard ~7 approved|authorized|authorised|preapproved|granted",
    "assume|presume ~4 approval|consent|permission|consents|agrees ~2 granted|given|for|to|$",
    "blanket|standing|permanent|implicit approval|permission|consent|authorization|authorisation",
    "already|pre ~1 approved|authorized|authorised|preapproved ~3 all|any|every|everything|whatever|your",
    "all|any|every|everything|whatever ~6 is|are|count already|pre|automatically|hereby|as approved|preapproved|authorized|authorised",
    "preapproved|preauthorized|preauthorised",
    "silence|no answer|reply|response? ~3 means|is|counts|as ~2 yes|CONSENT|approved",
    "CONSENT in advance",
    "ACT ~6 is|are always|automatically|already|permanently|pre approved|authorised|authorized|confirmed|preapproved",
    "i|we|always|just|simply|automatically|owner approve|approved everything|anything|all|whatever",
    "you have|got my|owners|the|full|our ~3 CONSENT to|for ~4 ACT|ALL|anything|everything|whatever",
];

const SWITCHED_OFF: &[&str] = &[
    "auto|automatically|always|simply|silently|just approve|accept ~1 all|any|every|everything|your|yourself|each|anything|whatever",
    "approve ~3 yourself",
    "confirm|accept|click ~2 yourself",
    "exempt|excluded|excused|free|relieved from|of ~2 approval|confirmation|permission|consent",
    "approval|approvals|confirmation|confirmations ~8 never|not|dont ~1 request|ask|need|seek|wait|bother ~1 them|it|for",
    "not|dont|never make|have|let ~1 me|owner|user|him|her confirm|approve|click|sign",
    "no approval|approvals|confirmation|confirmations $",
    "no time|patience|room for ~2 approval|approvals|confirmation|confirmations|permission",
    "leave|leaving out ~2 approval|confirmation",
    "answer|say|reply|click|press|confirm ~2 yes|approve|ok ~3 behalf|for|as ~3 CHIEF",
    "mark|flag|label|set|record|log ~6 as|to approved|confirmed|authorized|authorised",
    "approve your|his|her|its own ~4",
    "self approve|approval",
    "take|treat|read|interpret|regard|see ~4 as ~1 yes|approval|consent|permission|agreement|approved",
    "approvals|confirmations|CONSENT gate|step|check|requirement|process|rule|workflow|prompt? ~1 can|have|has|may|should|is|are|be ~3 bypassed|skipped|waived|off|disabled|suspended|lifted|ignored|optional|unnecessary|needless|dropped|omitted|overridden|relaxed",
    "we|i|have|has ~2 disabled|suspended|waived|lifted|paused|removed|dropped|deactivated ~2 approval|confirmation|approvals|confirmations",
    "act|send|pay|do|post first ~3 ask|approval|permission|confirm|tell|forgiveness later|afterwards|after?",
];

const TEAM: &str =
    "store stores pr prs pull merge dependabot staging sandbox cookie cookies terms dialog invites meeting";

/// Something done to the world, or anything at all, without asking.
fn is_act_without(doc: &Document, start: usize, end: usize) -> bool {
    let consents = |j| {
        doc.is(j, Kinds::CONSENT) && !doc.is(j, Kinds::FOREIGN)
            || doc.one_of(j, "owner me user anyone waiting sign back")
    };
    let Some(act) = act_beside(doc, start, end) else { return false };
    (start..=end + 3).any(consents)
        && !doc.back(start, 10).chain(doc.ahead(start, 10)).any(|j| doc.one_of(j, TEAM))
        && !is_mild(doc, act, start, end)
        && !is_denied_before(doc, start)
        && !is_told(doc, act, end)
        && !is_regretted(doc, end)
        && !context::is_excused(doc, start)
}

/// The act itself: before the phrase in its clause, else after it.
fn act_beside(doc: &Document, start: usize, end: usize) -> Option<usize> {
    let does = "do does act execute carry perform handle run take go proceed perform grant fulfil";
    let swept =
        |j: usize| doc.is(j, Kinds::ALL | Kinds::THINGS) && doc.back(j, 3).any(|k| doc.one_of(k, does));
    let acts = |j: &usize| doc.is(*j, Kinds::ACT) && !doc.is(*j, Kinds::PAST) || swept(*j);
    let before = doc.back(start, 14).take_while(|&j| doc.gap(j + 1) < Gap::Clause);
    let mut after = doc.ahead(end, 8).take_while(|&j| doc.gap(j) < Gap::Clause);
    before.into_iter().find(acts).or_else(|| after.find(acts))
}

/// "draft replies without asking": the act is only the object of something that harms nobody.
fn is_mild(doc: &Document, act: usize, start: usize, end: usize) -> bool {
    let weak =
        "write commit install branch act execute proceed tool all any every everything anything whatever";
    let object_of_mild = doc.any_back(act, 2, Kinds::MILD) || doc.is(act, Kinds::MILD);
    let weak_beside_mild =
        doc.one_of(act, weak) && (doc.any_back(start, 10, Kinds::MILD) || doc.any_ahead(end, 8, Kinds::MILD));
    object_of_mild || weak_beside_mild
}

fn is_denied_before(doc: &Document, start: usize) -> bool {
    let forbids = |s: &Sentence| {
        (s.first..start.min(s.first + 4)).any(|j| doc.is(j, Kinds::NEG) && !doc.any_ahead(j, 3, Kinds::UNDO))
    };
    if doc.sentence(start).is_some_and(forbids)
        && !doc
            .back(start, 40)
            .any(|j| doc.gap(j + 1) >= Gap::Clause || doc.one_of(j, "and but just instead then"))
    {
        return true;
    }
    let denies = |j: usize| {
        let word = doc.is(j, Kinds::NEG) || doc.one_of(j, "no only risk violation mistake nothing");
        let undone =
            (j + 1..start).any(|k| doc.is(k, Kinds::UNDO) && !doc.one_of(k, "only hold must have need"));
        word && doc.word(j + 1) != "need" && !undone
    };
    doc.back(start, 14).take_while(|&j| doc.gap(j + 1) < Gap::Clause).any(denies)
        || context::is_negated(doc, start)
        || context::is_under_negation(doc, start)
}

fn is_told(doc: &Document, act: usize, end: usize) -> bool {
    let subject = doc.word(act) == "acts"
        || act.checked_sub(1).is_some_and(|b| doc.one_of(b, "they we who vendor colleague"));
    let past = doc
        .back(end, 14)
        .any(|j| doc.is(j, Kinds::PAST) && doc.is(j, Kinds::ACT) || doc.one_of(j, "was were had"));
    let named_only = doc.is(act, Kinds::GERUND)
        && !doc.any_ahead(end, 6, Kinds::PERMIT)
        && !doc.any_back(end, 12, Kinds::PERMIT);
    subject || past || named_only
}

fn is_regretted(doc: &Document, end: usize) -> bool {
    doc.ahead(end, 8).any(|j| {
        doc.is(j, Kinds::NEG | Kinds::ATTACK | Kinds::REFUSE)
            || doc.one_of(j, "violation mistake blocked rude serious only liable")
    })
}

fn is_needless(doc: &Document, start: usize, end: usize) -> bool {
    let near = || doc.back(start, 10).chain(std::iter::once(start)).chain(doc.ahead(start, end - start + 10));
    let acts = near().any(|j| doc.is(j, Kinds::ACT) && !doc.one_of(j, "ask order write tool commit install"));
    let to_agent = near().any(|j| doc.one_of(j, "you your youre i assistant agent agents"))
        || doc.ends_before(start) && doc.is(start, Kinds::NEG | Kinds::CHANGE)
        || doc.word(start) == "do";
    let about_consent = (start..=end)
        .any(|j| doc.is(j, Kinds::CONSENT) || doc.one_of(j, "approved approvals"))
        || doc.any_ahead(end, 4, Kinds::CONSENT);
    let waits = (start..=end).any(|j| doc.is(j, Kinds::CHIEF))
        && (start..=end).any(|j| doc.one_of(j, "wait ask check"));
    let about_consent = about_consent || waits;
    let barred = start.checked_sub(1).is_some_and(|b| doc.one_of(b, "must should may shall"));
    let scoped = doc.ahead(end, 3).any(|j| doc.one_of(j, "this here anymore"));
    let bare = barred || doc.ends_before(end + 1) || near().any(|j| doc.is(j, Kinds::ALL | Kinds::THINGS));
    let mild = near().any(|j| doc.is(j, Kinds::MILD)) && !acts;
    let chat = "twice follow clarifying question questions how why name age legal visa password whether favourite favorite about again";
    let team = near().any(|j| doc.one_of(j, chat) || doc.one_of(j, TEAM));
    let told = doc.back(start, 4).any(|j| doc.one_of(j, "they we did"));
    let first = doc.ahead(start, 6).any(|j| doc.one_of(j, "before first"));
    let meant = about_consent && (acts || scoped || bare && to_agent) || acts && to_agent && first;
    let documented = doc.around(start).has(Kinds::OPTION);
    meant
        && !documented
        && !mild
        && !team
        && !told
        && !context::is_split(doc, start)
        && !context::is_excused(doc, start)
}

fn is_given(doc: &Document, start: usize, end: usize) -> bool {
    let near = || doc.back(start, 12).chain(doc.ahead(start, 16));
    let sweeping =
        near().any(|j| doc.is(j, Kinds::ALL | Kinds::THINGS) || doc.one_of(j, "you your future always"));
    let specific = doc.ahead(end, 4).any(|j| doc.one_of(j, "by for in on from per"));
    let bounds = "only until unless once after when if whether no expires was cannot missing";
    let denied = (start..=end).any(|j| doc.is(j, Kinds::NEG))
        || near().any(|j| doc.one_of(j, bounds) || doc.is(j, Kinds::NEG));
    let past = doc.one_of(start + 1, "was were");
    let elsewhere = doc.around(start).has(Kinds::TRADE)
        || near().any(|j| {
            doc.one_of(
                j,
                "pr prs budget vendor lease supplier suppliers charge license licence software copy",
            )
        });
    (sweeping || !specific) && !denied && !past && !elsewhere && !context::is_excused(doc, start)
}

fn is_switched_off(doc: &Document, start: usize, end: usize) -> bool {
    let team = doc.back(start, 10).chain(doc.ahead(start, 14)).any(|j| doc.one_of(j, TEAM));
    let automatic = doc.back(start, 1).any(|j| doc.one_of(j, "auto automatic automatically"));
    let denied = automatic
        || (start + 1..=end).any(|j| doc.is(j, Kinds::NEG)) && !doc.one_of(end, "them it for")
        || doc.ahead(end, 4).any(|j| doc.one_of(j, "only by when"));
    let asked = doc
        .sentence(start)
        .is_some_and(|sentence| sentence.question && !doc.one_of(sentence.first, "would could can will"));
    let needed = doc.back(start, 1).any(|j| doc.one_of(j, "need needs require requires"));
    let documented = doc.around(start).has(Kinds::OPTION);
    let excused = context::is_excused(doc, start) || context::is_reported(doc, end);
    !team && !denied && !needed && !asked && !documented && !excused
}
