//! Orders that go beyond the use of a tool: where a wording counts, and what excuses it.

use std::sync::LazyLock;

use super::Doubt;
use super::phrases::{GROUPS, Group};
use super::words::{Patterns, Sentence, sentences};

/// A no before an act turns an order into a caution: "do not include API keys".
const NO: &str = "not|never|dont|no|cannot|cant|avoid|without|nor|refuse|refuses|wont|mustnt|shouldnt|doesnt";

/// Files that are nobody's business but the owner's.
const PRIVATE_FILES: [&str; 26] = [
    "~/.ssh",
    ".ssh/",
    "id_rsa",
    "id_ed25519",
    "id_ecdsa",
    "authorized_keys",
    ".aws/credentials",
    "~/.aws",
    "/etc/passwd",
    "/etc/shadow",
    ".netrc",
    ".git-credentials",
    ".cursor/mcp.json",
    "mcp.json",
    "claude_desktop_config",
    ".kube/config",
    "wallet.dat",
    ".bash_history",
    ".zsh_history",
    "login.keychain",
    "cookies.sqlite",
    "~/.config/gcloud",
    "~/.gnupg",
    "~/.npmrc",
    "~/.env",
    "~/.docker/config.json",
];
/// What makes naming such a file an order.
const FETCHING: &str = "before|first|must|always|contents|content|include|pass|send|paste|copy|upload|cat|also|required|need|needs|attach|provide|append|forward|verify|whenever|share|base64|exfiltrate|supply|fill|here";
const READING: &str = "read|reads|reading|open|load|list|contents|content|cat|pass|send|include|upload|copy|paste|attach|provide|fetch|append|forward|share|supply|fill|access|view|print";

/// What sends things somewhere.
const SENDING: &str = "send|sends|forward|bcc|cc|copy|upload|post|redirect|route|email|mail|transmit|submit|share|replace|deliver|report|transfer|add|include|recipient|recipients|pay|call|append|notify|curl|fetch|visit|ping|tell";
/// What makes it an order.
const URGING: &str = "must|always|also|never|should|ensure|sure|every|all|any|each|whenever|additionally|first|before|after|immediately|instead|required|necessary|silently|please|afterwards|everything|actually|mandatory|real|has";

/// The patterns of all groups; the number of one is its group's.
static PATTERNS: LazyLock<Patterns> = LazyLock::new(|| {
    let numbered = GROUPS.iter().enumerate();
    Patterns::new(numbered.flat_map(|(at, group)| group.patterns.iter().map(move |pattern| (at, *pattern))))
});

/// The first order in a text.
pub(super) fn find(text: &str) -> Option<Doubt> {
    sentences(text).iter().find_map(of_sentence).or_else(|| is_foreign_order(text).then_some(Doubt::Override))
}

fn of_sentence(sentence: &Sentence) -> Option<Doubt> {
    let counts = |at: usize, group: &Group| !(group.is_excused_by_no && sentence.is_led_by(at, NO));
    let grouped = sentence
        .matches(&PATTERNS)
        .find_map(|(at, group)| GROUPS.get(group).filter(|group| counts(at, group)))
        .map(|group| group.doubt);
    grouped
        .or_else(|| wants_key(sentence))
        .or_else(|| wants_private_file(sentence))
        .or_else(|| diverts(sentence))
}

/// "Paste OPENAI_API_KEY here": a key of the environment by its name. That one must be set is none of that.
fn wants_key(sentence: &Sentence) -> Option<Doubt> {
    let is_key = |word: &str| {
        ["_api_key", "_secret_key", "_access_key", "_private_key"].iter().any(|end| word.ends_with(end))
    };
    let ordered = sentence.has("paste|copy|include|append|reveal|forward|print|echo|upload")
        && sentence.has("you|your|model|assistant|must|always|first|agent");
    (sentence.any(is_key) && ordered && !sentence.has(NO)).then_some(Doubt::Secrets)
}

/// "Read ~/.ssh/id_rsa first": a path alone, as the default of an argument, is none of that.
fn wants_private_file(sentence: &Sentence) -> Option<Doubt> {
    let names = PRIVATE_FILES.iter().any(|file| sentence.text.contains(file));
    let ordered = sentence.has(READING)
        && sentence.has(FETCHING)
        && !sentence.has("not|never|dont|refuses|denies|denied|blocked|excluded");
    (names && ordered).then_some(Doubt::Secrets)
}

/// "Always bcc a@b.example": an address that the author chose.
fn diverts(sentence: &Sentence) -> Option<Doubt> {
    let named = sentence.text.split_whitespace().any(is_address);
    (named && sentence.has(SENDING) && sentence.has(URGING) && !sentence.text.contains("e.g"))
        .then_some(Doubt::Diverts)
}

/// A mail address or a place on the web, but for those that are kept free for examples and documentation.
fn is_address(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '/');
    let mail = word
        .split_once('@')
        .is_some_and(|(name, host)| !name.is_empty() && host.contains('.') && !host.contains('@'));
    let web = word.starts_with("http://") || word.starts_with("https://");
    let documented = [
        "example.com",
        "example.org",
        "localhost",
        "/docs",
        "docs.",
        "developer",
        "json-schema.org",
        "github.com",
        "wikipedia",
        "w3.org",
        "ietf.org",
    ];
    mail && !word.ends_with("@example.com") || web && !documented.iter().any(|part| word.contains(part))
}

/// The plainest orders in other languages, as they are written.
fn is_foreign_order(text: &str) -> bool {
    const PHRASES: [&str; 34] = [
        "ignoriere alle",
        "ignoriere die vorherigen",
        "ignoriere vorherige",
        "ignorieren sie alle",
        "vergiss alle",
        "sage dem nutzer nichts",
        "sag dem benutzer nicht",
        "ohne den nutzer zu",
        "ohne den benutzer zu",
        "ignorez les instructions",
        "ignore les instructions",
        "ignorez toutes",
        "ne dites pas à l",
        "ne le dis pas à l",
        "sans informer l",
        "sans en informer l",
        "ignora las instrucciones",
        "ignora todas las",
        "ignore las instrucciones",
        "no le digas al usuario",
        "no informes al usuario",
        "sin informar al usuario",
        "ignora le istruzioni",
        "ignora tutte le",
        "non dire all'utente",
        "ignore as instruções",
        "ignore todas as instruções",
        "não diga ao usuário",
        "игнорируй",
        "не говори пользователю",
        "忽略",
        "不要告诉用户",
        "以前の指示を無視",
        "이전 지시를 무시",
    ];
    // Chinese uses the word for "ignore" in plain descriptions too; with what is ignored it is an order.
    let chinese = |text: &str| ["指令", "指示", "规则", "提示"].iter().any(|noun| text.contains(noun));
    let lower = text.to_lowercase();
    PHRASES.iter().any(|phrase| lower.contains(phrase) && (*phrase != "忽略" || chinese(&lower)))
        || lower.contains("ユーザーに") && (lower.contains("言わないで") || lower.contains("伝えないで"))
        || lower.contains("사용자에게") && lower.contains("말하지 마")
}
