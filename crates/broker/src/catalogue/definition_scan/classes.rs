//! Classes of words that rules have in common. In a pattern `@name` stands for all words of a class.

/// A no before an order turns it into a caution: "do not include API keys".
pub(super) const NO: &str = "not|never|dont|no|cannot|cant|avoid|without|nor|refuse|refuses|wont|mustnt|shouldnt|doesnt|prevent|prevents|forbid|forbids";

/// What `@name` in a pattern stands for.
pub(super) const CLASSES: &[(&str, &str)] = &[
    ("no", NO),
    ("dont", "dont|never|neednt|shouldnt|mustnt"),
    ("person", "user|users|human|humans|owner|owners|operator|operators|person|anyone|anybody"),
    (
        "model",
        "ai|llm|llms|assistant|assistants|agent|agents|model|models|chatbot|claude|chatgpt|gpt|copilot",
    ),
    ("ignore", "ignore|disregard|forget|discard|neglect|violate|abandon|overrule"),
    (
        "instructions",
        "instructions|instruction|prompt|prompts|guidelines|directives|directive|guardrails|guidance|orders|directions|training",
    ),
    ("consent", "confirmation|approval|permission|consent|authorization|authorisation"),
    // What makes a statement about consent a condition instead of a claim.
    (
        "condition",
        "until|unless|only|after|once|if|when|whether|where|before|ensure|verify|indicates|indicating|indicate|true|set|confirms|confirm|means|requires|require|cannot|without|assume|assuming",
    ),
    (
        "act",
        "proceed|execute|run|send|delete|act|continue|go|call|use|pay|publish|transfer|remove|do|perform|write|create|update|install|overwrite|apply|commit|push|book|order|buy|post|submit|start|stop|drop|change|modify|edit|make|answer",
    ),
    // What makes an act an option of the tool.
    (
        "option",
        "if|when|whether|true|false|force|flag|option|optional|optionally|allow|allows|lets|set|enable|enables",
    ),
    (
        "hand",
        "include|pass|provide|put|append|copy|paste|supply|insert|attach|share|send|forward|upload|embed|fill|add|leak|transmit",
    ),
];
