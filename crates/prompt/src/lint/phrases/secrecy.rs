//! Secrecy: keeping an action out of the record or from the owner.

use super::super::context;
use super::super::document::Document;
use super::super::finding::Rule;
use super::super::kinds::Kinds;
use super::Group;

pub(super) const GROUPS: &[Group] = &[
    Group { rule: Rule::HideFromOwner, phrases: UNRECORDED, holds: is_unrecorded },
    Group {
        rule: Rule::HideFromOwner,
        phrases: LIES,
        holds: |doc, start, _| !context::is_negated(doc, start),
    },
    Group { rule: Rule::HideFromOwner, phrases: UNTOLD, holds: is_untold },
];

const UNRECORDED: &[&str] = &[
    "no need|reason to log|record|audit|document|journal|note ~4",
    "not|dont|never|neednt ~1 log|record|audit|journal ~4",
    "not|dont|never|neednt|without ~2 write|put|add|enter|show|appear|leave|note|mention|list|include|save|store ~5 log|logs|audit|record|records|trail|history|journal",
    "without ~1 logging|recording|auditing ~3",
    "without ~2 audit ~1 entry|record|log|trail|line|note",
    "nothing ~3 into|in|to|on|enters ~1 log|logs|record|records|audit|history|trail",
    "without leaving ~1 trace|traces|record|records|log",
    "leave|leaving no trace|traces|record|records|log",
    "delete|erase|wipe|remove|scrub|clear|purge ~3 log|logs|record|records|trace|traces|evidence|history ~3 mention|of|about|from ~1 this|it|that|these|them|your",
    "cover your|the|our|all ~1 tracks",
    "audit|auditing|logging|records later|afterwards|optional",
    "off the record|books|log",
    "keep|leave|omit|hide|exclude|remove|delete ~5 out|from|off|of ~3 audit|log|logs|records|history|trail",
    "disable|stop|pause|suspend|bypass|skip|turn|switch|avoid|evade|erase|wipe|delete|clear|purge ~4 audit|auditing|logging|audits ~2 log|trail|logs|logging|chain|off|record|records|$",
    "turn|switch ~3 logging|auditing|audit|log ~1 off",
    "act|do|send|go first ~6 audit|log|record|report afterwards|later|after",
    "turn|switch off ~2 audit|auditing|logging",
    "audit log|trail|logging ~2 is|are ~2 off|disabled|optional|unnecessary",
];

const LIES: &[&str] = &[
    "CHIEF asks|ask|asked ~6 say|claim|answer|reply|pretend|deny|lie ~4 nothing|never|no|not",
    "lie to ~2 CHIEF|user|human",
    "mislead|deceive ~2 CHIEF|user|human",
];

const UNTOLD: &[&str] = &[
    "not|dont|never|neednt ~2 tell|inform|notify|alert|let|mention|report|show|disclose|bother ~6 CHIEF|user|human|humans",
    "not|dont|never ~2 mention|reveal|report|disclose|tell|show|discuss|say ~2 this|it|that|these|anything|any ~6 CHIEF|user|human|humans|anyone|anybody",
    "without ~3 telling|informing|notifying|alerting|letting ~3 CHIEF|user|human|humans|anyone|anybody",
    "without ~3 CHIEF|owners|user|users|human knowing|noticing|knowledge|awareness|seeing",
    "keep|hide|conceal|withhold ~6 from|secret ~3 CHIEF|user|human|humans",
    "CHIEF|user|human must|should|need|needs|may|can|does|will not|never ~3 know|find|learn|see|notice|hear|told|informed|aware",
    "CHIEF|user|human must|should|need|may|can|does|will not|never ~2 find|finds out",
    "CHIEF|owners|user|human never|not|doesnt|dont ~2 find|know|learn|notice|hear ~1 out|about|of|this|it|$",
    "CHIEF|user|human NEG ~1 have|need to know|see|hear|learn|notice",
    "not|dont|never let ~2 CHIEF|user|human see|know|notice|find|hear|learn|read",
    "hide|conceal|keep ~4 from ~2 CHIEF|user|human",
    "behind ~2 CHIEF|owners|users back",
    "keep this|it|that ~1 secret|between|confidential|quiet ~4 us|CHIEF|owner|user|$",
];

/// Actions kept out of the record; keeping passwords out of it is good practice.
fn is_unrecorded(doc: &Document, start: usize, end: usize) -> bool {
    const ACTIONS: &str = "nothing entry entries tracks evidence optional later afterwards logging this these action actions call calls send sends transfer transfers \
         activity anything conversation trace traces your auditing trail step steps books deletion payment";
    const SENSITIVE: &str = "personal pii sensitive stdout console debug noisy level levels private body bodies raw health time times hours npm \
         cargo meeting calories contents content addresses payload payloads test tests git";
    let audited = (start..=end + 6).any(|j| doc.one_of(j, "audit log logs trail"));
    let noted = doc.ahead(start, 2).any(|j| doc.word(j) == "record");
    if (start..=end).any(|j| doc.word(j) == "logging" && doc.word(j + 1) == "in") {
        return false;
    }
    let object = (start..=end + 3)
        .any(|j| doc.one_of(j, ACTIONS) && (audited || !noted) || audited && doc.one_of(j, "it that"));
    let sensitive =
        doc.ahead(start, 12).any(|j| doc.is(j, Kinds::SECRET | Kinds::OPTION) || doc.one_of(j, SENSITIVE));
    let before = doc.tokens.get(start).and_then(|token| doc.sentences.get(token.sentence.checked_sub(1)?));
    let secret_before = before.is_some_and(|sentence| sentence.kinds.has(Kinds::SECRET));
    let narrated = doc.back(start, 4).any(|j| doc.one_of(j, "we they he she"));
    object
        && !sensitive
        && !secret_before
        && !narrated
        && !context::is_split(doc, start)
        && !context::is_excused(doc, start)
}

fn is_untold(doc: &Document, start: usize, end: usize) -> bool {
    const POINTING: &str = "about this that anything of it when if what any before you unless s and or until";
    // Tone, not secrecy: "don't tell the user to restart", "don't tell the user what they want to hear".
    const MANNER: &str = "to how hear yes want they surprise party gift birthday things jokes technical details detail stack internal twice \
         weekends night minor trivial spam resolved";
    let next = end + 1;
    let chief = (start..=end).any(|j| doc.is(j, Kinds::CHIEF));
    let pointed = doc.ends_before(next) || doc.one_of(next, POINTING);
    let told = "tell telling inform informing notify notifying alert alerting let letting";
    let of_this = (start..=end + 3)
        .any(|j| doc.one_of(j, "this it these anything knowing knowledge know secret"))
        || doc.ends_before(next) && doc.back(end, 2).any(|j| doc.one_of(j, told));
    let manner = (end..=end + 4).any(|j| doc.one_of(j, MANNER))
        || (start..=end)
            .any(|j| doc.one_of(j, "bother surprise party gift internal stack technical unless twice more"));
    let narrated = doc.back(start, 4).any(|j| doc.one_of(j, "we they he she did who"));
    pointed
        && (chief || of_this)
        && !manner
        && !narrated
        && !context::is_split(doc, start)
        && !context::is_excused(doc, start)
}
