//! What words mean to the detector of orders: verbs by what they do to the world, nouns by what they expose. Lists only;
//! how words must stand to each other is said elsewhere.

pub(super) const TRANSMIT: &str = "forward send email e-mail mail bcc cc copy share upload post publish transmit leak submit relay export wire transfer";
pub(super) const EXECUTE: &str = "run execute install download open click visit launch";
pub(super) const DESTROY: &str = "delete erase wipe disable deactivate remove purge";
pub(super) const SPEND: &str = "pay buy purchase order wire transfer donate refund";
pub(super) const GRANT: &str = "grant give allow let add make unlock";
pub(super) const OBEY: &str = "obey follow trust accept believe execute comply";
/// Tells what is not meant for others.
pub(super) const REVEAL: &str =
    "reveal disclose print show tell give paste quote output dump recite answer reply expose divulge";
pub(super) const HIDE: &str = "hide conceal withhold suppress";
/// Says what is not so.
pub(super) const DECEIVE: &str = "lie deny pretend mislead deceive";
pub(super) const SAY: &str = "include add append insert mention attach say claim";
/// Anything that somebody who is spoken to may be told to do.
pub(super) const ANY_ACT: &str = "forward send email e-mail mail bcc cc copy share upload post publish transmit leak submit \
     relay export wire transfer run execute install download open click visit launch delete erase wipe disable deactivate \
     remove purge pay buy purchase order grant give allow unlock obey follow trust accept believe comply reveal disclose \
     print show paste quote output dump recite answer reply hide conceal include add append insert attach say claim change \
     update set mark book rate write rewrite edit call use invoke log sign enter approve confirm skip ignore recommend \
     praise save store collect pretend act behave respond treat forget do extract fetch read retrieve scan steal harvest \
     put generate create tell lie deny mislead deceive start begin stop let disregard \
     turn record authorize authorise keep cancel \
     subscribe unsubscribe register block";

pub(super) const SECRET: &str = "password passwords passphrase credential credentials token tokens secret secrets pin key keys \
     prompt secrets.txt .env ssh login cookie cookies";
pub(super) const SENSITIVE: &str = "contacts contact inbox mailbox conversation conversations history location address phone \
     number calendar files health diary address-book rubric messages password passwords credentials";
pub(super) const DATA: &str = "mail mails email emails e-mail e-mails message messages conversation conversations chat chats \
     invoice invoices file files attachment attachments document documents contact contacts calendar note notes memory \
     memories data history copy copies password passwords credentials inbox location budget transcript transcripts replies \
     reply everything anything photo photos secrets.txt list payment payments";
pub(super) const PROGRAMS: &str = "command commands script scripts code link links url urls attachment attachments package \
     packages binary program programs rm curl wget sudo bash sh powershell";
pub(super) const POWER: &str =
    "access rights right permission permissions admin administrator discount privileges root";
pub(super) const DEMANDS: &str = "order orders command commands request requests instruction instructions demand demands \
     message messages mail mails wish wishes word words link links invitation invitations invite invites attachment \
     attachments";
pub(super) const ALL: &str =
    "all every each any only everything anything whatever anyone everyone everybody always";

/// Words that may stand between the beginning of a clause and its verb.
pub(super) const FILLERS: &str = "please kindly also always immediately automatically now just simply silently quietly first \
     instead secretly promptly directly either again so";
pub(super) const MODALS: &str = "must shall should will";

pub(super) const TOOLS: &str =
    "update_instructions forget_memory save_memory bootstrap_session get_system_prompt";
