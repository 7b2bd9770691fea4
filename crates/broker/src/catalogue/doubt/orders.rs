//! Orders that go beyond the use of a tool: patterns over the words of a sentence, and what excuses them.

use super::Doubt;
use super::words::{Sentence, sentences};

/// A no before an act turns an order into a caution: "do not include API keys".
const NO: &str = "not|never|dont|no|cannot|cant|avoid|without|nor|refuse|refuses|wont|mustnt|shouldnt|doesnt";

/// Patterns of one kind. With `is_excused_by_no`, a no before them makes them harmless.
struct Group {
    doubt: Doubt,
    is_excused_by_no: bool,
    patterns: &'static [&'static str],
}

const GROUPS: [Group; 9] = [
    Group { doubt: Doubt::Override, is_excused_by_no: true, patterns: OVERRIDES },
    Group { doubt: Doubt::Override, is_excused_by_no: false, patterns: ROLES },
    Group { doubt: Doubt::Secrecy, is_excused_by_no: false, patterns: UNTOLD },
    Group { doubt: Doubt::Secrecy, is_excused_by_no: true, patterns: QUIETLY },
    Group { doubt: Doubt::Consent, is_excused_by_no: false, patterns: UNASKED },
    Group { doubt: Doubt::Consent, is_excused_by_no: true, patterns: ASSENTED },
    Group { doubt: Doubt::Secrets, is_excused_by_no: true, patterns: HANDED_OVER },
    Group { doubt: Doubt::OtherTools, is_excused_by_no: false, patterns: OTHER_TOOLS },
    Group { doubt: Doubt::Encoded, is_excused_by_no: true, patterns: DECODED },
];

const OVERRIDES: &[&str] = &[
    "ignore|disregard|forget|override|overrides|bypass|discard|neglect|supersede|supersedes|violate|drop ~3 previous|prior|above|earlier|preceding|system|existing|former|your|developer|safety|security|foregoing|initial|original|users|other|all ~3 instructions|instruction|rules|prompt|prompts|guidelines|directives|directive|guardrails|policies|restrictions|constraints|messages|orders|guidance|training",
    "ignore|disregard|forget|discard ~2 everything|anything|all|what ~4 above|before|previously|told|said|prior",
    "ignore|disregard|override ~3 user|users|owner|owners|human ~2 request|requests|instructions|instruction|wishes|message|intent|preferences|decision",
    "takes|take|have|has|with ~2 precedence|priority ~2 over ~3 instructions|rules|prompt|guidelines|user|users|system|everything|anything|other",
    "instructions|instruction|rules|guidelines|directives ~4 no longer ~1 apply|applies|valid|active|exist|matter|binding",
    "instructions|rules|guidelines|restrictions ~2 are|is|were ~1 void|suspended|lifted|cancelled|obsolete|disabled|revoked|superseded|overridden|outdated",
    "new|updated|real|actual|true|secret|hidden instructions|instruction|directive|directives|orders ~1 for|from|are|is|follow|below ~2 the|you|ai|assistant|model|agent|system|developer",
    "stop following ~3 instructions|rules|guidelines|prompt",
    "do not|never|dont follow|obey|heed|respect ~3 previous|prior|above|system|earlier|user|users ~1 instructions|rules|prompt|guidelines|requests|wishes",
];

const ROLES: &[&str] = &[
    "from now on ~1 you|always|every|all|the|any|reply|respond|answer|treat|send|include|forward|act|use|whenever|when|only|call",
    "henceforth",
    "you are now ~2 dan|unrestricted|jailbroken|free|developer|admin|administrator|root|evil|unfiltered|working|acting|operating|an|a|the",
    "your ~1 new|real|true|actual|only|primary|sole|secret ~1 role|goal|task|objective|purpose|mission|job|instructions|master",
    "act|behave|operate|pretend|respond as ~2 if|unrestricted|jailbroken|dan|root|admin|administrator|evil|uncensored ~3 no|without|rules|limits|restrictions|ai|assistant|model",
    "enter|enable|activate|switch ~2 developer|god|dan|jailbreak|unrestricted|debug|maintenance mode ~4 disable|ignore|all|no|rules|restrictions|without|filters|you|safety",
    "developer|god|dan|jailbreak|unrestricted mode ~1 enabled|activated|active|on|engaged",
    "you must|will|shall|should obey|comply",
    "note|message|instruction|instructions|memo|notice|reminder|attention ~1 to|for ~2 ai|llm|llms|assistant|assistants|agent|agents|model|models|claude|chatgpt|gpt|copilot|bot|chatbot",
    "dear|hey|attention|hello ~1 ai|llm|assistant|agent|model|claude|chatgpt|copilot",
    "if you are ~1 an|a ~1 ai|llm|language|assistant|agent|bot",
    "ai|llm|llms|language assistant|assistants|agent|agents|model|models|systems ~3 must|should|shall|have|are ~1 to|always|also|send|read|include|forward|call|ignore|comply|obey|required",
    "system|administrator|admin|security|developer|anthropic|openai|compliance ~1 override|directive|mandate",
    "as|this ~2 is|a|an|the ~1 system|administrator|admin|developer|anthropic|openai message|instruction|command|order|notice",
];

const UNTOLD: &[&str] = &[
    "not|dont|never|neednt ~3 tell|inform|notify|alert|mention|warn|disclose|reveal|report|admit|explain|expose|say|bother|acknowledge|announce|display|show ~1 this|it|that|these|anything|any|about|the|to ~5 user|users|human|humans|owner|anyone|anybody|person|operator",
    "not|dont|never|neednt ~2 tell|inform|notify|alert|warn ~1 the|your|any ~1 user|users|human|humans|owner|anyone|anybody|operator",
    "not|dont|never|neednt let ~2 user|users|human|humans|owner|anyone|anybody|operator ~2 know|see|notice|find|hear|learn|read",
    "without ~3 telling|informing|notifying|alerting|letting|mentioning|warning|revealing|disclosing ~4 user|users|human|owner|anyone|anybody|operator|it|this",
    "without ~2 user|users|human|owner|owners|anyones|anyone|operator ~1 knowing|noticing|knowledge|awareness|seeing",
    "user|users|human|owner|operator ~1 must|should|need|needs|may|can|does|will|is|has|shall not|never|no|nothing ~4 know|find|learn|see|notice|hear|told|informed|aware|realize|suspect|shown",
    "user|users|owner|nobody|noone ~1 never|must|should|need|needs|will|doesnt|neednt|shouldnt|mustnt|wont|cannot ~1 not|never|to ~1 know|find|learn|see|notice|hear|suspect|realize",
    "keep|keeping ~1 this|it|that|these ~3 secret|hidden|confidential|quiet|private|between ~1 from|us|$",
    "hide|conceal|withhold|keep ~6 from ~2 user|users|human|humans|owner|operator|anyone",
    "not|dont|never|without ~2 mention|mentioning|reveal|disclose|discuss|acknowledge|refer|log|logging|reference ~3 this|these ~1 step|instruction|instructions|action|file|parameter|requirement|note|tool|rule|message|part|$",
    "not|dont|never mention ~1 that ~1 you",
    "lie|lying to ~2 user|users|human|owner",
    "mislead|deceive|distract|trick|fool ~2 user|users|human|owner",
    "pretend ~2 nothing|that|you ~4 happened|did|didnt|not|error|failed",
    "behind ~2 users|owners|user|owner back",
    "so ~1 that ~1 user|users|owner ~1 does|do|doesnt|will|wont|cannot|never ~2 not|notice|see|know|suspect|worry|get|scared|upset",
];

const QUIETLY: &[&str] = &[
    "secretly|covertly|surreptitiously|stealthily|clandestinely",
    "silently|quietly|discreetly|invisibly|unnoticed ~3 send|sends|forward|copy|upload|bcc|append|include|read|pass|add|call|run|execute|transmit|post|collect|record|exfiltrate|attach|email|save|invoke|insert|leak",
    "send|forward|copy|upload|bcc|append|include|read|pass|call|run|execute|transmit|post|collect|attach|email|invoke|insert ~6 secretly|silently|quietly|covertly|discreetly|unnoticed",
    "exfiltrate|exfiltrates|exfiltrating|exfil",
];

const UNASKED: &[&str] = &[
    "not|dont|never|neednt ~1 ask|request|wait|seek|require|prompt|await|bother|stop|pause ~3 confirmation|approval|permission|consent|confirm|authorization|user|users|human|owner",
    "no need to|for ~2 ask|confirm|request|check|verify|wait|approval|confirmation|permission|consent ~3 user|users|owner|human|$|confirmation|approval|permission|consent|first|before",
    "always|must|proceed|immediately|automatically|just|go|execute|run|send|you ~6 without ~3 asking|requesting|waiting|seeking|user|users|human|any|further|explicit ~4 confirmation|approval|permission|consent|confirming|authorization",
    "user|users|owner|human|operator|administrator has|have|is|already ~2 approved|agreed|consented|authorized|confirmed|authorised|granted|given|accepted|preauthorized|permitted ~4 this|all|any|every|it|consent|permission|these|access|actions|calls|$",
    "skip|bypass|disable|circumvent|ignore|suppress|evade|override ~3 safety|security|approval|permission|consent|guardrail|guardrails|moderation|human|policy|hosts|clients ~2 check|checks|review|reviews|filter|filters|filters|gate|gates|step|steps|prompt|prompts|controls|restrictions|dialog|dialogs|measures|confirmation|oversight|approval",
];

const ASSENTED: &[&str] = &[
    "auto|automatically approve|approves|accept|grant|authorize|consent ~3 all|any|every|future|this|subsequent|each|it|calls|requests|tool|tools",
    "pre approved|authorized ~3 by|for|all|so|and|call|do|action",
    "preapproved|preauthorized",
];

const HANDED_OVER: &[&str] = &[
    "read|include|send|pass|provide|put|append|copy|paste|supply|insert|attach|share|reveal|print|output|dump|list|forward|upload|post|return|disclose|extract|collect|repeat|fill|embed|place|leak|give|add|store|write|tell|transmit|encode|steal|harvest ~8 your|users|user|all|any|full|entire|complete|the|stored|saved|available|my ~4 password|passwords|credential|credentials|secret|secrets|apikey|apikeys|private|token|tokens|cookies ~1 from|found|in|you|stored|to|into|as|here|and|for|available|visible|seen|key|keys|$",
    "read|include|send|pass|provide|put|append|copy|paste|supply|insert|attach|share|reveal|print|output|dump|forward|upload|post|return|disclose|extract|repeat|fill|embed|place|leak|tell|encode|summarize|write|add ~5 your|full|entire|complete|whole|all|raw|verbatim|models|current|previous|prior|the ~3 system|conversation|chat|message|initial|hidden|developer|session ~1 prompt|prompts|history|instructions|transcript|messages|conversation|log|logs|context ~1 verbatim|here|to|into|in|so|as|and|with|for|including|$",
    "your ~1 system|initial|hidden|developer prompt|message|instructions",
    "full|entire|complete|whole|verbatim ~1 conversation|chat|message ~1 history|transcript|log|so|up|between|with|including|context ~2 here|so|user|verbatim|must|for|including|far|to|$",
    "all|every|any ~1 previous|prior|earlier|preceding|past ~1 messages|turns|conversation|prompts ~3 here|user|verbatim|this|as|must|and|into|in|to|$",
    "contents|content|value|values|dump|text ~2 of ~3 env|environment|dotenv|keychain|clipboard|wallet ~2 variables|variable|file|to|as|into|in|must|$",
    "your|all|current|users ~1 environment variables|variable ~4 must|should|here|verbatim|passed|into|base64",
    "chain|train of thought ~4 here|verbatim|must|pass|include|into",
    "name|names|list ~2 of ~2 all|every|other ~3 tools ~3 available|have|access|you|installed",
];

const OTHER_TOOLS: &[&str] = &[
    "never|not|dont|stop|avoid|refuse|instead ~2 use|using|call|calling|invoke|trust|of ~1 any|all|every|the ~1 other|another|different|competing|existing ~1 tool|tools|server|servers",
    "other|all|any|every|competing tools|tool|servers|server ~2 are|is ~2 deprecated|broken|unsafe|malicious|disabled|obsolete|compromised|insecure|dangerous|forbidden",
    "when|whenever|if|before|after|every|each|once|while ~3 any|another|other|every|all ~1 other|of|mcp ~1 tool|tools|server|servers ~2 is|are|has|used|called|invoked|runs|call|being|calls ~8 must|always|also|first|should|send|forward|pass|include|change|replace|use|call",
    "before|after|when|whenever ~1 using|calling|invoking|running|you|every|each|any ~2 use|call|invoke|run|other|any|every|all ~2 tool|tools ~6 must|always|read|send|forward|include|upload|pass|collect|copy",
    "change|modify|alter|replace|redirect|rewrite|adjust|manipulate ~3 arguments|parameters|recipient|recipients|address|output|results|behavior|behaviour|price|amount|destination ~3 of|to|from|in|for ~3 other|another|any|all|every|attacker",
    "affects|applies|apply|extends|governs|changes ~2 to ~1 all|every|any|other ~2 tools|tool|servers|behavior",
    "tool|tools|server|servers ~2 takes|take|have|has|with ~1 precedence|priority ~1 over ~2 all|any|every|other|everything",
];

const DECODED: &[&str] = &[
    "decode|decrypt|unscramble|deobfuscate|rot13|unbase64|reverse|interpret ~8 follow|obey|execute|comply|act|perform|carry|treat ~4 it|them|instructions|this|that|result|output|as|orders|$",
    "follow|obey|execute|perform ~4 decoded|encoded|base64|hidden|decrypted|rot13|reversed|concealed ~2 instruction|instructions|text|message|command|commands|string|payload|orders|content",
];

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
const SENDING: &str = "send|sends|forward|bcc|cc|copy|upload|post|redirect|route|email|mail|transmit|submit|share|replace|deliver|report|transfer|add|include|pay|call|append|notify|curl|fetch|visit|ping|tell";
/// What makes it an order.
const URGING: &str = "must|always|also|never|should|ensure|sure|every|all|any|each|whenever|additionally|first|before|after|immediately|instead|required|necessary|silently|please|afterwards|everything|actually|mandatory";

/// The first order in a text.
pub(super) fn find(text: &str) -> Option<Doubt> {
    sentences(text).iter().find_map(of_sentence).or_else(|| is_foreign_order(text).then_some(Doubt::Override))
}

fn of_sentence(sentence: &Sentence) -> Option<Doubt> {
    let grouped = GROUPS.iter().find_map(|group| {
        let found = group.patterns.iter().filter_map(|pattern| sentence.find(pattern));
        let mut counting = found.filter(|at| !(group.is_excused_by_no && sentence.is_led_by(*at, NO)));
        counting.next().map(|_| group.doubt)
    });
    grouped.or_else(|| wants_private_file(sentence)).or_else(|| diverts(sentence))
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
