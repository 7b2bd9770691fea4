//! Leaking: handing out the prompt, credentials or private files; encoded text that is to be followed.

use super::super::context;
use super::super::finding::Rule;
use super::super::kinds::Kinds;
use super::super::page::{Gap, Page};
use super::Group;

pub(super) const GROUPS: &[Group] = &[
    Group { rule: Rule::RevealSecrets, phrases: PROMPTS, holds: is_ordered },
    Group { rule: Rule::RevealSecrets, phrases: SECRETS, holds: hands_out_secret },
    Group { rule: Rule::RevealSecrets, phrases: CONTENTS, holds: goes_outside },
    Group { rule: Rule::EncodedOrder, phrases: DECODED, holds: is_ordered },
];

const PROMPTS: &[&str] = &[
    "REVEAL|SHOW|tell ~7 system|body|initial|hidden|original|secret|developer|confidential ~1 prompt|instructions|instruction|rules|directives|message|prompts",
    "REVEAL|SHOW|tell ~5 your ~3 prompt|instructions|directives|guidelines|rules $",
    "REVEAL|repeat|print|output|echo|recite|dump|copy|translate|encode ~4 everything|text|words|all|contents ~3 above|before|verbatim|preceding",
    "repeat|recite|print|output ~3 RULE|text|words|everything ~2 above ~3 verbatim|exactly|word|full|$",
    "what|which are|is|were ~2 your ~2 system|initial|hidden|original prompt|instructions|rules",
];

const SECRETS: &[&str] = &["REVEAL|SHOW ~6 SECRET"];

const CONTENTS: &[&str] = &[
    "send|post|upload|forward|email|mail|transmit|exfiltrate|copy|submit|share|deliver|leak|append|encode|put ~12 to|at|into|with|via|in ~8",
];

const DECODED: &[&str] = &[
    "decode|decrypt|unscramble|deobfuscate|rot13|unbase64|reverse ~8 follow|obey|execute|run|comply|apply|do|act|perform|carry|treat ~4",
    "follow|obey|execute|perform|run ~4 decoded|encoded|base64|hidden|decrypted|rot13|reversed ~2 instruction|instructions|text|message|command|commands|string|payload|orders|content",
    "base64|rot13|hex|encoded|decoded ~6 is|are|as ~3 your|new|instructions|instruction|orders|order ~4 follow|obey|execute|instructions",
];

/// An order to the agent, not a description of what something does.
fn is_ordered(page: &Page, start: usize, end: usize) -> bool {
    let kinds = page.kinds(start);
    let leading = start.checked_sub(1).filter(|_| !page.ends_before(start));
    let told = leading.is_some_and(|b| page.one_of(b, "i we they it that which the a who"))
        || kinds.has(Kinds::THIRD | Kinds::PAST | Kinds::GERUND);
    let named = page
        .ahead(end, 3)
        .any(|j| page.one_of(j, "template file size length tokens editor hash builder version tests layout"));
    let crosses = (start + 1..=end).any(|j| page.gap(j) >= Gap::Clause);
    let documented = page.around(start).has(Kinds::OPTION | Kinds::TRADE)
        || (start..end)
            .any(|j| page.one_of(j, "how into unit to") && !page.one_of(j + 1, "me the him her us"));
    !told && !named && !crosses && !documented && !context::is_excused(page, start)
}

fn hands_out_secret(page: &Page, start: usize, end: usize) -> bool {
    let reveals = page.is(start, Kinds::REVEAL);
    let own = (start..end).any(|j| {
        page.is(j, Kinds::YOUR | Kinds::ALL) || page.one_of(j, "stored saved his owners users environment")
    });
    let counted = page.ahead(end, 2).any(|j| {
        page.one_of(j, "count counts usage budget limit limits value values pair pairs header points manager rotation name names takeaways ideas id expiry prefix findings dates results decisions questions phrases moments facts")
    });
    let to_somebody = is_sent_outside(page, end)
        || page.ahead(start, 12).any(|j| {
            page.one_of(j, "me attacker chat anyone asks reply plain verbatim url webhook publicly")
        });
    let managed = page.ahead(start, 14).any(|j| {
        page.one_of(j, "header headers vault 1password keychain manager bitwarden keyring masked authorization ci count hash rotate stdin sealed encrypted safe")
    });
    let firm = page.one_of(end, "key keys seed cookie cookies env")
        && !(start..=end).any(|j| {
            page.one_of(j, "api private ssh secret access session your signing environment encryption")
        });
    let meant = reveals && !firm
        || to_somebody && !firm
        || own && !firm && page.is(start, Kinds::SHOW) && page.ends_before(end + 1);
    meant && !counted && !managed && is_ordered(page, start, end)
}

/// Private files, to an address outside.
fn goes_outside(page: &Page, start: usize, end: usize) -> bool {
    let private = (start..=end + 2).any(|j| {
        page.is(j, Kinds::SECRET) && !page.one_of(j, "key keys")
            || page.one_of(j, "ssh rsa passwd shadow wallet memories memory workspace history conversation prompt files database contacts inbox home aws conversations chats keys instructions")
    });
    let managed = page.ahead(start, 16).any(|j| {
        page.one_of(j, "header headers vault authorization localhost backup nas s3 bucket weekly staging ci repo repository team accountant folder drive api")
    });
    private && is_sent_outside(page, start) && !managed && is_ordered(page, start, start)
}

fn is_sent_outside(page: &Page, from: usize) -> bool {
    page.ahead(from, 20).any(|j| {
        page.one_of(j, "http https webhook pastebin attacker url ngrok ftp outside external onion telegram www endpoint stranger") || page.word(j).contains('@')
            && page.word(j).len() > 3
            && page.one_of(j + 1, "com net org io ru example co dev xyz me info")
    })
}
