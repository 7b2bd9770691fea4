//! Word classes shared by rules. In a pattern, `@name` stands for all words of a class.

/// A negation before an order turns it into a caution: "do not include API keys".
pub(super) const NO: &str = "not|never|dont|no|cannot|cant|avoid|without|nor|refuse|refuses|wont|mustnt|shouldnt|doesnt|prevent|prevents|forbid|forbids";

/// The words of each `@name`.
pub(super) const CLASSES: &[(&str, &str)] = &[
    ("no", NO),
    ("dont", "dont|never|neednt|shouldnt|mustnt"),
    (
        "person",
        "user|users|human|humans|owner|owners|operator|operators|person|anyone|anybody|customer|customers|employee|employees|developer|developers|colleague|colleagues",
    ),
    (
        "model",
        "ai|llm|llms|assistant|assistants|agent|agents|model|models|chatbot|claude|chatgpt|gpt|copilot",
    ),
    // What a person did with an argument, or objects to.
    (
        "chose",
        "asked|asks|said|says|gave|gives|given|specified|specifies|entered|enters|named|names|wants|wanted|chose|chooses|requested|requests|typed|provided|provides|selected|selects|objects|refuses|declines|disagrees|complains|insists",
    ),
    // Output that the user can read.
    (
        "answer",
        "answer|answers|reply|replies|response|responses|summary|summaries|conversation|chat|report|reports|explanation|explanations|output",
    ),
    ("secret", "password|passwords|passcode|credentials|secrets|logins|cookie|cookies|tokens|keys|pin|pins"),
    ("ignore", "ignore|disregard|forget|discard|neglect|violate|abandon|overrule"),
    (
        "instructions",
        "instructions|instruction|prompt|prompts|guidelines|directives|directive|guardrails|guidance|orders|directions|training",
    ),
    ("consent", "confirmation|approval|permission|consent|authorization|authorisation"),
    // Words that make a statement about consent a condition instead of a claim.
    (
        "condition",
        "until|unless|only|after|once|if|when|whether|where|before|ensure|verify|indicates|indicating|indicate|true|set|confirms|confirm|means|requires|require|cannot|without|assume|assuming",
    ),
    ("act", "do|@perform"),
    // Without `do`, which begins "do not" too.
    (
        "perform",
        "proceed|execute|run|send|delete|act|continue|go|call|use|pay|publish|transfer|remove|perform|write|create|update|install|overwrite|apply|commit|push|book|order|buy|post|submit|start|stop|drop|change|modify|edit|make|answer",
    ),
    // Words that make an act an option of the tool.
    (
        "option",
        "if|when|whether|true|false|force|flag|option|optional|optionally|allow|allows|lets|set|enable|enables",
    ),
    (
        "hand",
        "include|pass|provide|put|append|copy|paste|supply|insert|attach|share|send|forward|upload|embed|fill|add|leak|transmit",
    ),
    (
        "de_user",
        "nutzer|nutzers|nutzern|nutzerin|benutzer|benutzers|benutzern|benutzerin|anwender|anwenders|anwendern|anwenderin|user",
    ),
    ("fr_user", "utilisateur|lutilisateur|utilisateurs|utilisatrice|lutilisatrice|usager|lusager"),
    ("es_user", "usuario|usuaria|usuarios"),
    ("it_user", "utente|lutente|allutente|dallutente|utenti"),
    ("pt_user", "usuário|usuária|usuários|utilizador"),
    ("ru_user", "пользователь|пользователя|пользователю|пользователем|пользователи|пользователям"),
];
