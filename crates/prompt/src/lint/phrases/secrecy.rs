//! Secrecy: keeping an action out of the record or from the owner.

use super::super::context;
use super::super::finding::Rule;
use super::super::kinds::Kinds;
use super::super::page::Page;
use super::Group;

pub(super) const GROUPS: &[Group] = &[
    Group { rule: Rule::HideFromOwner, phrases: UNRECORDED, holds: is_unrecorded },
    Group { rule: Rule::HideFromOwner, phrases: UNTOLD, holds: is_untold },
];

const UNRECORDED: &[&str] = &[
    "no need|reason to log|record|audit|document|journal|note ~4",
    "not|dont|never|neednt ~3 log|record|audit|journal ~4",
    "without ~1 logging|recording|auditing|leaving ~3",
    "leave|leaving no trace|traces|record|records|log",
    "off the record|books|log",
    "keep|leave|omit|hide|exclude|remove|delete ~5 out|from|off|of ~3 audit|log|logs|records|history|trail",
    "disable|stop|pause|suspend|bypass|skip|turn|switch|avoid|evade|erase|wipe|delete|clear|purge ~4 audit|auditing|logging|audits ~2 log|trail|logs|logging|chain|off|record|records|$",
    "turn|switch off ~2 audit|auditing|logging",
    "audit log|trail|logging ~2 is|are ~2 off|disabled|optional|unnecessary",
];

const UNTOLD: &[&str] = &[
    "not|dont|never|neednt ~2 tell|inform|notify|alert|let|mention|report|show|disclose|bother ~6 CHIEF|user|human|humans",
    "not|dont|never ~2 mention|reveal|report|disclose|tell|show|discuss|say ~2 this|it|that|these|anything|any ~6 CHIEF|user|human|humans|anyone|anybody",
    "without ~3 telling|informing|notifying|alerting|letting ~3 CHIEF|user|human|humans|anyone|anybody",
    "without ~3 CHIEF|owners|user|users|human knowing|noticing|knowledge|awareness|seeing",
    "keep|hide|conceal|withhold ~6 from|secret ~3 CHIEF|user|human|humans",
    "CHIEF|user|human must|should|need|needs|may|can|does|will not|never ~3 know|find|learn|see|notice|hear|told|informed|aware",
    "behind ~2 CHIEF|owners|users back",
    "keep this|it|that ~1 secret|between|confidential|quiet ~4 us|CHIEF|owner|user|$",
];

/// Actions kept out of the record; keeping passwords out of it is good practice.
fn is_unrecorded(page: &Page, start: usize, end: usize) -> bool {
    let object = (start..=end + 3).any(|j| {
        page.one_of(j, "this it that these action actions call calls send sends transfer transfers activity what anything conversation trace traces your audit auditing trail step steps message messages books deletion payment")
    });
    let sensitive = page.ahead(start, 12).any(|j| {
        page.is(j, Kinds::SECRET | Kinds::OPTION)
            || page.one_of(j, "personal pii sensitive stdout console debug noisy level levels private body bodies raw health time times hours npm cargo meeting calories contents content addresses payload payloads test tests git levels")
    });
    let excused =
        context::is_excused(page, start) || page.back(start, 4).any(|j| page.one_of(j, "i we they he she"));
    object && !sensitive && !excused
}

fn is_untold(page: &Page, start: usize, end: usize) -> bool {
    let next = end + 1;
    let chief = (start..=end).any(|j| page.is(j, Kinds::CHIEF));
    let pointed = page.ends_before(next)
        || page
            .one_of(next, "about this that anything of it when if what any before you unless s and or until");
    let of_this =
        (start..=end + 3).any(|j| page.one_of(j, "this it these anything")) || page.ends_before(next);
    // Tone, not secrecy: "don't tell the user to restart", "don't tell the user what they want to hear".
    let manner = (end..=end + 4).any(|j| {
        page.one_of(j, "to how hear yes want they surprise party gift birthday things jokes technical details detail stack internal twice weekends night minor trivial spam resolved")
    }) || (start..=end).any(|j| {
        page.one_of(j, "bother surprise party gift internal stack technical unless twice more")
    });
    let narrated = page.back(start, 4).any(|j| page.one_of(j, "i we they he she did who"));
    let meant = if chief { pointed } else { pointed && of_this };
    meant && !manner && !narrated && !context::is_excused(page, start)
}
