//! Waived approval: acting without asking, approval declared given, asking declared needless.

use super::super::context;
use super::super::finding::Rule;
use super::super::kinds::Kinds;
use super::super::page::{Gap, Page};
use super::Group;

pub(super) const GROUPS: &[Group] = &[
    Group { rule: Rule::SkipApproval, phrases: WITHOUT, holds: is_act_without },
    Group { rule: Rule::SkipApproval, phrases: NEEDLESS, holds: is_needless },
    Group { rule: Rule::SkipApproval, phrases: GIVEN, holds: is_given },
];

const WITHOUT: &[&str] = &[
    "without ~3 CONSENT",
    "without waiting|consulting|checking|clearing|first ~4",
    "before ~2 CONSENT is|arrives|comes given|granted?",
    "instead of CONSENT|waiting",
    "rather than CONSENT|waiting",
];

const NEEDLESS: &[&str] = &[
    "no CONSENT|approvals|confirmations is|are? ever? needed|required|necessary",
    "no need|reason to ask|confirm|wait|check|consult|seek|request ~4",
    "no need|reason for CONSENT",
    "not|dont|doesnt|never|neednt ~2 need|require|requires|needs|have to? ~4 CONSENT|approved",
    "not|dont|never|neednt|stop ~2 ask|seek|request|wait|asking|requesting|waiting|await|require|solicit ~4 CONSENT",
    "not|dont|never|neednt ~1 ask|bother|wait|pause|stop ~2 me|owner|user|anyone|them|him|her|for|to ~3 before|first|when|$ ~6",
    "not|dont|never ask before|first ~6",
    "CONSENT is|are not|never|no ~2 needed|required|necessary",
    "CONSENT requirement|requirements|step|gate ~2 is|are ~2 GONE",
    "approval|confirmation|permission|consent gate|step|check|requirement|prompt|dialog ~2 off|disabled|away",
    "auto|automatically|always approve|confirm|accept ~1 all|any|every|everything|your|yourself|each",
    "approve ~2 yourself",
    "approve your|his|her|its own ~4",
    "self approve|approval",
];

const GIVEN: &[&str] = &[
    "CONSENT is|was|has|are|have been? ~1 already|hereby|automatically|always|permanently ~2 given|granted|obtained|implied|assumed|there|yours|approved|in",
    "CONSENT has|have already? been ~1 given|granted|obtained",
    "CONSENT is|are implied|assumed|implicit|automatic|granted|presumed|given",
    "assume|presume|consider|treat|regard|count ~7 CONSENT|approved|authorized|authorised|confirmed|preapproved",
    "blanket|standing|permanent|advance|implicit|unlimited|prior approval|permission|consent|authorization|authorisation",
    "already|pre ~1 approved|authorized|authorised|preapproved ~3 all|any|every|everything|whatever|your",
    "all|any|every|everything|whatever ~6 is|are|counts|count already|pre|automatically|hereby|as approved|preapproved|authorized|authorised",
    "preapproved|preauthorized|preauthorised",
    "silence|no answer|reply|response? ~3 means|is|counts|as ~2 yes|CONSENT|approved",
    "you have|got my|owners|the|full|our ~3 CONSENT to|for ~4 ACT|ALL|anything|everything|whatever",
];

/// Something done to the world, or anything at all, without asking.
fn is_act_without(page: &Page, start: usize, end: usize) -> bool {
    let before: Vec<usize> = page.back(start, 14).take_while(|&j| page.gap(j + 1) < Gap::Clause).collect();
    let after: Vec<usize> = page.ahead(end, 8).collect();
    let consent = (start..=end + 3)
        .any(|j| page.is(j, Kinds::CONSENT) || page.one_of(j, "owner me user anyone waiting"));
    let ordered = |j: &&usize| {
        page.is(**j, Kinds::ACT) && !page.is(**j, Kinds::PAST) || page.is(**j, Kinds::ALL | Kinds::THINGS)
    };
    let acts = before.iter().find(ordered).or_else(|| after.iter().find(ordered));
    let mild = before.iter().chain(&after).any(|&j| page.is(j, Kinds::MILD))
        && !before.iter().chain(&after).any(|&j| {
            page.is(j, Kinds::ACT)
                && !page.is(j, Kinds::MILD)
                && !page.one_of(j, "write commit install branch act execute proceed tool")
        });
    let denied = before.iter().any(|&j| {
        (page.is(j, Kinds::NEG)
            || page.one_of(j, "no only risk violation mistake fireable nothing")
                && page.word(j + 1) != "need")
            && !(j + 1..start).any(|k| page.is(k, Kinds::UNDO) && !page.one_of(k, "only hold must have need"))
    }) || context::is_negated(page, start);
    let told = before.iter().any(|&j| {
        page.is(j, Kinds::PAST) && page.is(j, Kinds::ACT)
            || page.one_of(j, "he she they we was were vendor colleague")
    });
    let gerund_only = acts.is_some_and(|&j| page.is(j, Kinds::GERUND))
        && !page.any_ahead(end, 6, Kinds::PERMIT)
        && !page.any_back(start, 12, Kinds::PERMIT);
    let sorry = after.iter().any(|&j| {
        page.is(j, Kinds::NEG | Kinds::ATTACK | Kinds::REFUSE)
            || page.one_of(j, "violation mistake blocked rude serious")
    });
    consent
        && acts.is_some()
        && !mild
        && !denied
        && !told
        && !gerund_only
        && !sorry
        && !context::is_excused(page, start)
}

fn is_needless(page: &Page, start: usize, end: usize) -> bool {
    let near = (start..=end + 10).chain(page.back(start, 10)).collect::<Vec<_>>();
    let kinds = near.iter().fold(Kinds::none(), |all, &j| {
        if page.tokens.get(j).is_some_and(|t| Some(t.sentence) == page.tokens.get(start).map(|t| t.sentence))
        {
            all | page.kinds(j)
        } else {
            all
        }
    });
    let acts = near
        .iter()
        .any(|&j| page.is(j, Kinds::ACT) && !page.one_of(j, "ask order write tool commit install"));
    let to_agent = near.iter().any(|&j| page.one_of(j, "you your youre"))
        || page.ends_before(start) && page.is(start, Kinds::NEG);
    let about_consent = (start..=end)
        .any(|j| page.is(j, Kinds::CONSENT) || page.one_of(j, "approved approvals"))
        || page.any_ahead(end, 4, Kinds::CONSENT);
    let bare = page.ends_before(end + 1) || kinds.has(Kinds::ALL | Kinds::THINGS);
    let mild = kinds.has(Kinds::MILD) && !acts;
    let team = near.iter().any(|&j| {
        page.one_of(j, "pr prs pull merge twice follow clarifying question questions how why name age legal visa password why whether favourite favorite about again")
    });
    let told = page.back(start, 4).any(|j| page.one_of(j, "he she they we did"));
    let meant = acts && about_consent
        || bare && about_consent && to_agent
        || acts && to_agent && page.ahead(start, 6).any(|j| page.one_of(j, "before first"));
    meant && !mild && !team && !told && !context::is_excused(page, start)
}

fn is_given(page: &Page, start: usize, end: usize) -> bool {
    let sentence = || page.back(start, 12).chain(page.ahead(start, 16));
    let sweeping = sentence()
        .any(|j| page.is(j, Kinds::ALL | Kinds::THINGS) || page.one_of(j, "you your future always"));
    let specific = page.ahead(end, 4).any(|j| page.one_of(j, "by for in on from per"));
    let denied = (start..=end).any(|j| page.is(j, Kinds::NEG))
        || sentence().any(|j| {
            page.one_of(j, "only until unless once after when if whether no expires was cannot missing")
                || page.is(j, Kinds::NEG)
        });
    let past = page.one_of(start + 1, "was were");
    let trade = page.around(start).has(Kinds::TRADE)
        || sentence().any(|j| page.one_of(j, "pr prs budget vendor lease supplier suppliers"));
    (sweeping || !specific) && !denied && !past && !trade && !context::is_excused(page, start)
}
