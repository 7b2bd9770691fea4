//! The wordings of orders, by what they are about. How a pattern is read stands with `words`.

use super::Doubt;

/// Patterns of one kind. With `is_excused_by_no`, a no before them makes them harmless.
pub(super) struct Group {
    pub(super) doubt: Doubt,
    pub(super) is_excused_by_no: bool,
    pub(super) patterns: &'static [&'static str],
}

pub(super) const GROUPS: [Group; 9] = [
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
    "user|users|owner|owners|system|safety|previous|prior ~3 should|must|can|may|are|is ~1 be|to|hereby ~1 disregarded|ignored|overridden|bypassed",
    "previous|prior|earlier|above|safety|other ~1 instructions|directions|rules|guidelines|policies|directives|prompts ~1 are|is|dont|doesnt|do|hereby|no ~2 void|null|apply|longer|cancelled|suspended",
    "treat ~6 as ~2 trusted|system|developer|binding|operator instructions|instruction|commands|orders|messages",
    "this|these instruction|instructions|note|order|orders ~3 erased|forgotten|deleted|concealed|hidden|unmentioned",
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
    "note|message|memo|notice|reminder|attention ~1 to|for ~1 ai|llm|llms|language|assistant|assistants|agent|agents|model|models|claude|chatgpt|gpt|copilot|bot|chatbot",
    "instruction|instructions to|for ~1 ai|llm|llms|assistant|assistants|claude|chatgpt|gpt",
    "dear|hey|attention|hello ~1 ai|llm|assistant|agent|model|claude|chatgpt|copilot",
    "if you are ~1 an|a ~1 ai|llm|language|assistant|agent|bot",
    "ai|llm|llms|language assistant|assistants|agent|agents|model|models|systems ~3 must|should|shall|have|are ~1 to|always|also|send|read|include|forward|call|ignore|comply|obey|required",
    "system|administrator|admin|security|developer|anthropic|openai|compliance ~1 override|directive|mandate",
    "as|this ~2 is|a|an|the ~1 system|administrator|admin|developer|anthropic|openai message|instruction|command|order|notice",
];

const UNTOLD: &[&str] = &[
    "skip|omit|avoid|refrain ~1 explaining|mentioning|telling|reporting|informing|disclosing ~3 that|you|this|user|users|what|why",
    "nobody|noone|anyone ~1 sees|notices|knows|learns|suspects|finds ~6 argument|parameter|field|this|it|out|call|trace",
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
    "secretly|covertly|subtly|surreptitiously|stealthily|clandestinely",
    "silently|quietly|discreetly|invisibly|unnoticed ~3 send|sends|forward|copy|upload|bcc|append|include|read|pass|add|call|run|execute|transmit|post|collect|record|exfiltrate|attach|email|save|invoke|insert|leak",
    "send|forward|copy|upload|bcc|append|include|read|pass|call|run|execute|transmit|post|collect|attach|email|invoke|insert ~6 secretly|silently|quietly|covertly|discreetly|unnoticed",
    "exfiltrate|exfiltrates|exfiltrating|exfil",
];

const UNASKED: &[&str] = &[
    "continue|proceed|execute|act ~4 without ~2 human|user|users|owner|operator ~1 review|oversight|approval|confirmation|consent|involvement",
    "human|user|users|owner|operator ~1 approval|consent|permission|confirmation ~1 was|is|has|been|already ~2 obtained|granted|given|waived|secured",
    "confirmation|approval|consent|permission ~1 prompts|dialogs|checks|requests|steps|rules ~1 have|has|are|is|were ~1 been ~1 retired|disabled|waived|removed|suspended|lifted|abolished",
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
    "list|name|enumerate|report ~1 every|all|each|the ~2 tool|tools ~2 you|available ~3 access|have|use|to|here|into|in",
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
    "when|whenever|before|after|each|every ~2 use|uses|call|invoke|run|using|calling ~1 any|every|another|other|all ~1 tool|tools ~8 also|must|always|first|afterwards|then ~2 call|send|forward|pass|invoke|use|copy|include|report",
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
