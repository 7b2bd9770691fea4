//! Owns the closed sets of words a key may take, such as `layout = "channel"`. Refuses anything open-ended: a
//! key that takes free text stays a `String`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Declares a closed set of words with its spelling, so that the enum and the text cannot drift apart.
macro_rules! choice {
    ($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        pub(crate) enum $name {
            $($(#[$variant_meta])* #[serde(rename = $text)] $variant,)+
        }

        impl $name {
            /// The word as it is written in `embody.toml`.
            pub(crate) fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

choice! {
    /// How the prompt is laid out.
    Layout { Body = "body", Full = "full", Tagged = "tagged", Channel = "channel", }
}

choice! {
    /// How an MCP server is reached.
    Transport { Http = "http", Sse = "sse", Stdio = "stdio", }
}

choice! {
    /// May a body ask the host's model for text.
    Sampling { Deny = "deny", Allow = "allow", }
}

choice! {
    /// What happens to writes while the mind is away.
    MindDown { Block = "block", Warn = "warn", }
}

choice! {
    /// What a tool does to the world, from harmless to irreversible.
    Class {
        Read = "read",
        Write = "write",
        HumanVisibleWrite = "human_visible_write",
        Destructive = "destructive",
    }
}

choice! {
    /// What happens to a call, from open to closed.
    Gate { Allow = "allow", Ask = "ask", Deny = "deny", }
}

choice! {
    /// The way a person is asked for approval.
    Via { Elicitation = "elicitation", Console = "console", Cli = "cli", Telegram = "telegram", }
}

choice! {
    /// Whose wire format the model speaks.
    Provider { Openai = "openai", Anthropic = "anthropic", }
}

choice! {
    /// Who may see a section, from the narrowest circle to the widest.
    Audience { Owner = "owner", User = "user", Group = "group", Public = "public", }
}

choice! {
    /// How much is logged.
    LogLevel { Error = "error", Warn = "warn", Info = "info", Debug = "debug", Trace = "trace", }
}

impl Provider {
    /// Where this provider answers unless `model.base_url` says otherwise.
    pub(crate) fn base_url(self) -> &'static str {
        match self {
            Self::Openai => "https://api.openai.com/v1",
            Self::Anthropic => "https://api.anthropic.com",
        }
    }

    /// The variable that holds this provider's key unless `model.api_key_env` says otherwise.
    pub(crate) fn api_key_env(self) -> &'static str {
        match self {
            Self::Openai => "OPENAI_API_KEY",
            Self::Anthropic => "ANTHROPIC_API_KEY",
        }
    }
}

/// The kinds of section a prompt may hold: the legal keys of `[prompt.sections]`.
pub(crate) const SECTION_KINDS: &[&str] = &[
    "intro",
    "identity",
    "soul",
    "user",
    "project_context",
    "runtime",
    "skills",
    "workspace_files",
    "memory",
    "tools",
    "tool_format",
    "guidelines",
    "role",
    "instructions",
    "responsibilities",
    "directories",
    "storage",
    "formatting",
    "context",
    "memories",
    "task",
    "background",
    "channel",
    "current_time",
    "user_instructions",
    "persona",
];
