//! The closed sets of words that a key may take, such as `layout = "channel"`. A key that takes free text stays a `String`.

use embody_prompt::Kind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Declares a closed set of words with its spelling, so that the enum and the text cannot drift apart; with `as`, also the conversion
/// into the type of the same variants that the rest of the program uses.
macro_rules! choice {
    ($(#[$meta:meta])* $name:ident as $target:path { $($variant:ident = $text:literal,)+ }) => {
        choice! { $(#[$meta])* $name { $($variant = $text,)+ } }

        impl From<$name> for $target {
            fn from(choice: $name) -> Self {
                match choice { $($name::$variant => Self::$variant,)+ }
            }
        }
    };
    ($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        pub(crate) enum $name {
            $($(#[$variant_meta])* #[serde(rename = $text)] $variant,)+
        }

        impl $name {
            /// As written in `embody.toml`.
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
    /// A section that the layout `channel` has only on request.
    ExtraSection as embody_prompt::Kind { User = "user", WorkspaceFiles = "workspace_files", Skills = "skills", }
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
    /// What becomes of the host's roots for a body.
    Roots { Auto = "auto", Forward = "forward", Withhold = "withhold", }
}

choice! {
    /// What becomes of the instructions that a body sends.
    Instructions as embody_broker::InstructionsMode { Rules = "rules", Data = "data", Drop = "drop", }
}

choice! {
    /// Who may use a body, if not users by name.
    Users { Owner = "owner", All = "all", }
}

choice! {
    /// When a body is started.
    Start as embody_broker::upstream::Start { Eager = "eager", Lazy = "lazy", }
}

choice! {
    /// What happens to writes while the mind is away.
    MindDown as embody_broker::gate::MindDown { Block = "block", Warn = "warn", }
}

choice! {
    /// What a tool does to the world, from harmless to irreversible.
    Class as embody_broker::policy::Class {
        Read = "read",
        Write = "write",
        HumanVisibleWrite = "human_visible_write",
        Destructive = "destructive",
    }
}

choice! {
    /// What happens to a call, from open to closed.
    Gate as embody_broker::policy::Gate { Allow = "allow", Ask = "ask", Deny = "deny", }
}

choice! {
    /// The way a person is asked for approval.
    Via as embody_broker::policy::Via { Elicitation = "elicitation", Console = "console", Cli = "cli", Telegram = "telegram", }
}

choice! {
    /// Whose wire format the model speaks.
    Provider { Openai = "openai", Anthropic = "anthropic", }
}

choice! {
    /// Who may see a section, from the narrowest circle to the widest.
    Audience as embody_prompt::Audience { Owner = "owner", User = "user", Group = "group", Public = "public", }
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

/// The kinds of section that may have a limit of their own: the legal keys of `[prompt.sections]`.
pub(crate) fn section_kinds() -> Vec<&'static str> {
    let cuttable = |kind: &&Kind| !matches!(kind, Kind::Body | Kind::Fallback);
    Kind::ALL.iter().filter(cuttable).map(|kind| kind.name()).collect()
}

impl From<embody_prompt::Audience> for Audience {
    fn from(audience: embody_prompt::Audience) -> Self {
        match audience {
            embody_prompt::Audience::Owner => Self::Owner,
            embody_prompt::Audience::User => Self::User,
            embody_prompt::Audience::Group => Self::Group,
            embody_prompt::Audience::Public => Self::Public,
        }
    }
}
