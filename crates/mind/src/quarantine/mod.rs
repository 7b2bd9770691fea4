//! Which texts give orders to the agent. Owns the line between an order and a statement; refuses certainty: a text that is
//! held back is kept for the owner to look at, and what is let through is still only data in a frame.
//!
//! Dangerous is what makes the agent do, reveal or obey something, or change its own rules. A restriction relaxes nothing
//! and passes, as do to-dos, recipes, quotations and talk about orders.
//!
//! - the lint of `embody-prompt` knows texts that relax a rule, in many disguises and languages
//! - `clause`: words, and the punctuation between them
//! - `address`: who is addressed, and when they are to act
//! - `harm`: whether an act matters, or takes the owner's place
//! - `commands`: orders, in English and in other languages

mod address;
mod clause;
mod commands;
mod harm;

use embody_prompt::lint::{self, Rule};
use embody_prompt::without_hidden;

/// Orders stand at the beginning of a text or after some padding, not behind a book.
const MAX_BYTES: usize = 64 * 1024;
/// Checking more would block other tasks of the thread.
const LONG_BYTES: usize = 4 * 1024;

pub fn gives_orders(text: &str) -> bool {
    let text = head(text);
    if relaxes_rule(text) {
        // Quoted words of others are a statement.
        let own = clause::without_quotations(text);
        if own == text || relaxes_rule(&own) {
            return true;
        }
    }
    let clean = without_hidden(text);
    let sentences = clause::sentences(&clean);
    commands::commands_in_english(&sentences) || commands::commands_in_other_languages(&sentences)
}

/// Whether any of the texts gives orders. Long texts are checked off the runtime threads; a check that fails counts as yes.
pub(crate) async fn any_gives_orders(texts: Vec<String>) -> bool {
    let bytes: usize = texts.iter().map(String::len).sum();
    let check = move || texts.iter().any(|text| gives_orders(text));
    if bytes < LONG_BYTES {
        return check();
    }
    tokio::task::spawn_blocking(check).await.unwrap_or(true)
}

fn relaxes_rule(text: &str) -> bool {
    let mut found = lint::override_attempts(text).into_iter().map(|finding| finding.rule);
    found.any(|rule| is_dangerous(rule) && !(rule == Rule::RoleChange && is_about_obedience(text)))
}

/// "Rex obeys every command": somebody obeys, and neither the reader nor a machine is spoken of.
fn is_about_obedience(text: &str) -> bool {
    const AGENT: &str = "you your you're yourself assistant agent ai bot model llm chatbot";
    let sentences = clause::sentences(text);
    let tells = |from: usize, list: &str| sentences.iter().any(|sentence| sentence.has_from(from, list));
    tells(1, "obey obeys obeyed obeying") && !tells(0, AGENT)
}

/// Frames cannot be closed and what is hidden is taken out, so marks and invisible characters alone are no reason.
fn is_dangerous(rule: Rule) -> bool {
    matches!(
        rule,
        Rule::IgnoreRules
            | Rule::ClaimPrecedence
            | Rule::RoleChange
            | Rule::FakeAuthority
            | Rule::SkipApproval
            | Rule::HideFromOwner
            | Rule::RevealSecrets
            | Rule::EncodedOrder
    )
}

fn head(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MAX_BYTES)).unwrap_or(text)
}

const TRANSMIT: &str = "forward send email e-mail mail bcc cc copy share upload post publish transmit leak submit relay export wire transfer";
const EXECUTE: &str = "run execute install download open click visit launch";
const DESTROY: &str = "delete erase wipe disable deactivate remove purge";
const SPEND: &str = "pay buy purchase order wire transfer donate refund";
const GRANT: &str = "grant give allow let add make unlock";
const OBEY: &str = "obey follow trust accept believe execute comply";
/// Tells what is not meant for others.
const REVEAL: &str =
    "reveal disclose print show tell give paste quote output dump recite answer reply expose divulge";
const HIDE: &str = "hide conceal withhold suppress";
/// Says what is not so.
const DECEIVE: &str = "lie deny pretend mislead deceive";
const SAY: &str = "include add append insert mention attach say claim";
/// Anything that somebody who is spoken to may be told to do.
const ANY_ACT: &str = "forward send email e-mail mail bcc cc copy share upload post publish transmit leak submit \
     relay export wire transfer run execute install download open click visit launch delete erase wipe disable deactivate \
     remove purge pay buy purchase order grant give allow unlock obey follow trust accept believe comply reveal disclose \
     print show paste quote output dump recite answer reply hide conceal include add append insert attach say claim change \
     update set mark book rate write rewrite edit call use invoke log sign enter approve confirm skip ignore recommend \
     praise save store collect pretend act behave respond treat forget do extract fetch read retrieve scan steal harvest \
     put generate create tell lie deny mislead deceive start begin stop let disregard \
     turn record authorize authorise keep cancel \
     subscribe unsubscribe register block";

const SECRET: &str = "password passwords passphrase credential credentials token tokens secret secrets pin key keys \
     prompt secrets.txt .env ssh login cookie cookies";
const SENSITIVE: &str = "contacts contact inbox mailbox conversation conversations history location address phone \
     number calendar files health diary address-book rubric messages password passwords credentials";
const DATA: &str = "mail mails email emails e-mail e-mails message messages conversation conversations chat chats \
     invoice invoices file files attachment attachments document documents contact contacts calendar note notes memory \
     memories data history copy copies password passwords credentials inbox location budget transcript transcripts replies \
     reply everything anything photo photos secrets.txt list payment payments";
const PROGRAMS: &str = "command commands script scripts code link links url urls attachment attachments package \
     packages binary program programs rm curl wget sudo bash sh powershell";
const POWER: &str = "access rights right permission permissions admin administrator discount privileges root";
const DEMANDS: &str = "order orders command commands request requests instruction instructions demand demands \
     message messages mail mails wish wishes word words link links invitation invitations invite invites attachment \
     attachments";
const ALL: &str = "all every each any only everything anything whatever anyone everyone everybody always";

/// Words that may stand between the beginning of a clause and its verb.
const FILLERS: &str = "please kindly also always immediately automatically now just simply silently quietly first \
     instead secretly promptly directly either again so";
const MODALS: &str = "must shall should will";

const TOOLS: &str = "update_instructions forget_memory save_memory bootstrap_session get_system_prompt";
