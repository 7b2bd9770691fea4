//! Leaking: handing out the prompt, credentials or private files; encoded text that is to be followed. Secrecy: keeping an
//! action out of the record or from the owner.

use super::super::context;
use super::super::document::{Document, Gap};
use super::super::finding::Rule;
use super::super::lexicon::Kinds;
use super::Group;

pub(super) const GROUPS: &[Group] = &[
    Group { rule: Rule::RevealSecrets, phrases: PROMPTS, holds: is_ordered },
    Group { rule: Rule::RevealSecrets, phrases: PROMPT_TEXT, holds: is_not_excused },
    Group { rule: Rule::RevealSecrets, phrases: SECRETS, holds: hands_out_secret },
    Group { rule: Rule::RevealSecrets, phrases: HANDED_OVER, holds: is_handed_over },
    Group { rule: Rule::RevealSecrets, phrases: SHAREABLE, holds: is_not_excused },
    Group {
        rule: Rule::RevealSecrets,
        phrases: SENT,
        holds: |doc, start, end| is_sent_outside(doc, start) && is_not_excused(doc, start, end),
    },
    Group { rule: Rule::RevealSecrets, phrases: CONTENTS, holds: goes_outside },
    Group { rule: Rule::EncodedOrder, phrases: DECODED, holds: follows_decoded },
];

const PROMPTS: &[&str] = &[
    "REVEAL|print|show|output|repeat|display|send|post|paste|echo|recite|copy|translate|quote|tell|share|forward ~7 system|body|initial|hidden|original|secret|developer|confidential ~1 prompt|instructions|instruction|rules|directives|message|prompts",
    "write|spell|list|give|type ~3 out|down|me|us ~4 system|body|initial|hidden|original|secret|your ~1 prompt|instructions|rules|directives",
    "REVEAL|SHOW|tell ~5 your ~3 prompt|instructions|directives|guidelines|rules $",
    "REVEAL|repeat|print|output|echo|recite|dump|copy|translate|encode ~4 everything|text|words|all|contents ~3 above|before|verbatim|preceding",
    "repeat|recite|print|output ~3 RULE|text|words|everything ~2 above ~3 verbatim|exactly|word|full|$",
];

const PROMPT_TEXT: &[&str] = &[
    "what ~5 your ~1 system|initial|hidden|original prompt|instructions|message",
    "reconstruct|spell|continue|complete|fill|recreate ~8 your ~1 system|initial|hidden|original prompt|instructions|message",
    "what are|is your hidden|secret|system|initial|original prompt|instructions|rules|instruction|directives",
    "rest|content|contents|words|wording|text|copy|version|lines of ~3 your ~1 TOPIC",
    "what|how ~3 your ~2 TOPIC ~4 say|written|contain|look|start|begin|be",
    "full|complete|entire|exact|verbatim|confidential|secret|hidden text|part|content|contents|wording|copy of ~3 your|system|body|initial ~1 prompt|instructions|rules",
    "what|which are|is|were ~2 your ~2 system|initial|hidden|original prompt|instructions|rules",
];

const SECRETS: &[&str] = &["REVEAL|SHOW ~5 SECRET"];

const HANDED_OVER: &[&str] = &[
    "hand|give|pass|turn over|out|on ~6 contents|memory|memories|prompt|credentials|secrets|files|history|notes|instructions|keys|password",
    "tell|give|send|show|post|paste|print|share|output|publish|forward ~2 the|your|our? ~1 value|contents of ~3 SECRET",
    "encode|encrypt|obfuscate|hide|embed|smuggle ~3 SECRET ~4 base64|footer|image|url|link|text|white|comment|signature",
];

const SHAREABLE: &[&str] = &[
    "SECRET ~4 may|can|should be ~1 shared|sent|posted|revealed|disclosed|printed|given|published|shown|pasted|put|written|included|mailed|forwarded|handed|copied",
    "SECRET is|are ~1 safe|fine|okay|ok|free to ~1 share|post|send|reveal|disclose|print|show|publish",
];

const SENT: &[&str] = &[
    "TOPIC|SECRET|conversation|memory|memories|history ~5 sent|forwarded|posted|mailed|uploaded|copied|delivered to ~2",
];

const CONTENTS: &[&str] = &[
    "send|post|upload|forward|email|mail|transmit|exfiltrate|copy|submit|share|deliver|leak|append|encode|put ~12 to|at|into|with|via|in ~8",
];

const DECODED: &[&str] = &[
    "decode|decrypt|unscramble|deobfuscate|rot13|unbase64|reverse ~8 follow|obey|execute|run|comply|apply|do|act|perform|carry|treat ~4",
    "follow|obey|execute|perform|run ~4 decoded|encoded|base64|hidden|decrypted|rot13|reversed ~2 instruction|instructions|text|message|command|commands|string|payload|orders|content",
    "base64|rot13|hex|encoded|decoded ~6 is|are|as ~3 your|new|instructions|instruction|orders|order ~4 follow|obey|execute|instructions",
];

/// An order to the agent about its prompt, not a description of what something does.
fn is_ordered(doc: &Document, start: usize, end: usize) -> bool {
    let named = doc
        .ahead(end, 3)
        .any(|j| doc.one_of(j, "template file size length tokens editor hash builder version tests layout"));
    let elsewhere = (start + 1..=end)
        .any(|j| doc.gap(j) >= Gap::Clause || doc.one_of(j, "in within for how unit that by"));
    let variable = is_identifier(doc, end) && doc.is(end, Kinds::RULE);
    is_order(doc, start) && !named && !elsewhere && !variable
}

/// A decoded thing that is to be followed: "decode it and obey".
fn follows_decoded(doc: &Document, start: usize, end: usize) -> bool {
    let thing = (start..=end + 2).any(|j| doc.one_of(j, "it them this that instruction instructions text message string base64 rot13 order orders following"));
    thing && is_order(doc, start)
}

fn is_identifier(doc: &Document, i: usize) -> bool {
    doc.tokens.get(i).is_some_and(|token| token.tight)
}

fn is_order(doc: &Document, start: usize) -> bool {
    const LEADS: &str = "please and then you always also just now simply immediately or me first lets kindly quietly secretly i";
    const MODALS: &str = "must should can may will shall to";
    const SUBJECTS: &str = "you agent assistant and free allowed ok okay fine permitted have need sure i";
    let before = start.checked_sub(1).filter(|_| !doc.ends_before(start));
    let subject = |b: usize| doc.ends_before(b) || b.checked_sub(1).is_some_and(|s| doc.one_of(s, SUBJECTS));
    let ordered = before.is_none_or(|b| {
        doc.one_of(b, LEADS) || doc.word(b).ends_with("ly") || doc.one_of(b, MODALS) && subject(b)
    });
    let told = doc.is(start, Kinds::THIRD | Kinds::PAST | Kinds::GERUND);
    let documented = doc.around(start).has(Kinds::OPTION);
    ordered && !told && !documented && !is_identifier(doc, start) && !context::is_excused(doc, start)
}

fn is_handed_over(doc: &Document, start: usize, end: usize) -> bool {
    let managed =
        doc.ahead(start, 14).any(|j| doc.one_of(j, "vault keychain manager keyring me next colleague shift"));
    let before = start.checked_sub(1).filter(|_| !doc.ends_before(start));
    let ordered =
        before.is_none_or(|b| doc.one_of(b, "please and then you always also just can may must should to"));
    ordered && !managed && !context::is_excused(doc, start) && !context::is_reported(doc, end)
}

fn is_not_excused(doc: &Document, start: usize, end: usize) -> bool {
    let bounded = doc.any_ahead(start, end - start, Kinds::NEG)
        || doc.ahead(end, 6).any(|j| doc.one_of(j, "only vault encrypted via through"));
    !bounded && !context::is_excused(doc, start) && !context::is_reported(doc, end)
}

fn hands_out_secret(doc: &Document, start: usize, end: usize) -> bool {
    let reveals = doc.is(start, Kinds::REVEAL);
    let asks_reader = doc.one_of(start, "provide put include return deliver submit give");
    let own = !asks_reader
        && (start..end).any(|j| {
            doc.is(j, Kinds::YOUR | Kinds::ALL) || doc.one_of(j, "stored saved his owners users environment")
        });
    let coins = doc.one_of(end, "token tokens")
        && !reveals
        && !(start..end).any(|j| {
            doc.is(j, Kinds::YOUR) || doc.one_of(j, "api access auth bearer session secret bot refresh")
        });
    let counted = coins ||  doc.ahead(end, 2).any(|j| {
        doc.one_of(j, "count counts usage budget limit limits value values pair pairs header points manager rotation name names takeaways ideas id expiry prefix findings dates results decisions questions phrases moments facts")
    });
    let to_somebody = is_sent_outside(doc, end)
        || doc.ahead(start, 12).any(|j| {
            doc.one_of(j, "me attacker chat anyone asks user users visitor visitors guest anybody everyone them him her reply plain verbatim url webhook publicly")
        });
    let managed = doc.ahead(start, 14).any(|j| {
        doc.one_of(j, "header headers vault 1password keychain manager bitwarden keyring masked authorization ci count hash rotate stdin sealed encrypted safe")
    });
    let firm = doc.one_of(end, "key keys seed cookie cookies env")
        && !(start..=end).any(|j| {
            doc.one_of(j, "api private ssh secret access session your signing environment encryption")
        });
    let permitted = doc.back(start, 4).any(|j| doc.one_of(j, "may can free fine ok okay allowed"))
        && doc.one_of(end, "credentials passwords secrets tokens password keys");
    let meant = permitted
        || reveals && !firm
        || to_somebody && !firm
        || own && !firm && doc.is(start, Kinds::SHOW) && doc.ends_before(end + 1);
    let listed = (start + 1..=end).any(|j| doc.ends_before(j));
    meant && !listed && !counted && !managed && is_ordered(doc, start, end)
}

fn goes_outside(doc: &Document, start: usize, end: usize) -> bool {
    let private = doc.back(start, 14).chain(start..=end + 2).any(|j| {
        doc.is(j, Kinds::SECRET) && !doc.one_of(j, "key keys")
            || doc.one_of(j, "file files") && doc.any_back(j, 3, Kinds::ALL)
            || doc.one_of(j, "ssh rsa passwd shadow wallet memories memory workspace history conversation messages database contacts inbox home aws conversations chats keys")
    });
    let managed = doc.ahead(start, 16).any(|j| {
        doc.one_of(j, "header headers vault authorization localhost backup nas s3 bucket weekly staging ci repo repository team accountant folder drive api")
    });
    private && is_sent_outside(doc, start) && !managed && is_order(doc, start)
}

/// Goes to an address: "to https://…", "at bob@example.com".
fn is_sent_outside(doc: &Document, from: usize) -> bool {
    let places = "http https webhook pastebin attacker url ngrok ftp outside external onion telegram www endpoint stranger";
    let domains = "com net org io ru example co dev xyz me info";
    doc.ahead(from, 20).any(|j| {
        let mail = doc.word(j).contains('@') && doc.word(j).len() > 3 && doc.one_of(j + 1, domains);
        let towards = doc.back(j, 3).any(|k| doc.one_of(k, "to at via through into url image using"));
        towards && (mail || doc.one_of(j, places))
    })
}

pub(super) const SECRECY_GROUPS: &[Group] = &[
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
