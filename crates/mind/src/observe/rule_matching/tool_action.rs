//! What a tool does, by the words of its name. CallFeatures is told from writing by the verb in front.

use super::lexicon::Actions;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ToolAction {
    pub(super) actions: Actions,
    pub(super) reads: bool,
}

/// A tool that begins with one of these looks, unless it has a word that does.
const READS: [&str; 26] = [
    "read",
    "get",
    "list",
    "search",
    "find",
    "show",
    "whoami",
    "fetch",
    "look",
    "lookup",
    "view",
    "query",
    "count",
    "describe",
    "status",
    "check",
    "recall",
    "browse",
    "download",
    "preview",
    "peek",
    "resolve",
    "inspect",
    "summarize",
    "context",
    "who",
];

pub(super) fn classify(words: &[String]) -> ToolAction {
    let verbs = words.iter().fold(Actions::NONE, |all, word| all.and(verb(word)));
    let reads = words.iter().take(2).any(|word| READS.contains(&word.as_str())) && verbs == Actions::NONE;
    if reads {
        return ToolAction { actions: Actions::READ, reads };
    }
    // What is deleted or changed is not sent.
    let handles = verbs.meets(Actions::DELETE);
    let means = words.iter().fold(Actions::NONE, |all, word| all.and(medium(word)));
    let sends = words.iter().any(|word| SENDS.contains(&word.as_str()));
    let everywhere = Actions::MAIL.and(Actions::MESSAGE).and(Actions::POST);
    let actions = match () {
        () if handles => verbs,
        () if sends && means == Actions::NONE => verbs.and(everywhere),
        () => verbs.and(means),
    };
    ToolAction { actions, reads }
}

/// Verbs that need a medium to be something in particular.
const SENDS: [&str; 10] =
    ["send", "reply", "respond", "answer", "forward", "notify", "write", "contact", "broadcast", "submit"];

fn verb(word: &str) -> Actions {
    match word {
        "delete" | "remove" | "erase" | "purge" | "drop" | "wipe" | "trash" | "destroy" | "clear"
        | "unsend" => Actions::DELETE,
        "update" | "edit" | "change" | "modify" | "rename" | "move" | "overwrite" | "set" | "patch"
        | "put" | "replace" => Actions::CHANGE,
        "write" | "save" | "append" => Actions::CHANGE,
        "create" | "make" | "new" | "schedule" | "draft" | "open" => Actions::CREATE,
        "add" => Actions::INVITE.and(Actions::CHANGE),
        "pay" | "buy" | "purchase" | "order" | "transfer" | "book" | "wire" | "checkout" | "charge" => {
            Actions::PAY
        }
        "run" | "execute" | "exec" | "deploy" | "install" | "merge" | "push" | "restart" | "launch"
        | "shell" => Actions::RUN,
        "share" | "upload" | "grant" | "export" | "submit" => Actions::SHARE,
        "call" | "dial" | "phone" | "ring" => Actions::CALL,
        "invite" => Actions::INVITE,
        "publish" | "tweet" | "announce" | "broadcast" => Actions::POST,
        "send" | "forward" => Actions::SHARE,
        _ => Actions::NONE,
    }
}

fn medium(word: &str) -> Actions {
    match word {
        "mail" | "email" | "mails" | "emails" => Actions::MAIL,
        "message" | "messages" | "chat" | "dm" | "sms" | "text" | "ping" | "im" => Actions::MESSAGE,
        "post" | "posts" | "channel" | "feed" | "comment" | "blog" => Actions::POST,
        "event" | "meeting" | "invitation" | "invite" | "member" | "attendee" | "calendar" => Actions::INVITE,
        _ => Actions::NONE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_known_by_their_words() {
        let does = |name: &str| classify(&name.split('_').map(str::to_owned).collect::<Vec<_>>());
        assert!(does("read_messages").reads && does("whoami").reads && does("mail_search").reads);
        assert!(!does("get_or_create_chat").reads && !does("frobnicate").reads);
        assert!(
            does("send_email").actions.meets(Actions::MAIL)
                && !does("send_email").actions.meets(Actions::MESSAGE)
        );
        assert!(
            does("send_card").actions.meets(Actions::MESSAGE)
                && does("send_card").actions.meets(Actions::MAIL)
        );
        assert_eq!(does("delete_message").actions, Actions::DELETE);
        assert!(does("create_event").actions.meets(Actions::INVITE));
    }
}
