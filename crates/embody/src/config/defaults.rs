//! The fixed defaults, which depend on no other key. `resolve` computes the others.

use std::collections::BTreeMap;

use embody_broker::arguments::ARGUMENTS_MAX_BYTES;
use embody_broker::catalogue::MAX_LISTED;

use super::choices::{Instructions, Layout, LogLevel, MindDown, Provider, Roots, Sampling, Start, Users};
use super::raw::{
    Audiences, Body, Log, Mind, Model, Persona, Policy, Prompt, RootsOrFolders, Telegram, Telemetry, Tools,
    UsersOrNames,
};

/// How long one call waits for a person. Not in `Default`, because a shorter `ask_timeout_s` shortens it.
pub(super) const ASK_WAIT_S: u32 = 45;
/// When an approval expires. Not in `Default`, because the message about a longer wait differs if it is not configured.
pub(super) const ASK_TIMEOUT_S: u32 = 300;

impl Default for Prompt {
    fn default() -> Self {
        Self {
            layout: Layout::Channel,
            body: "prompts/agent_system.md".to_owned(),
            fresh_last: false,
            budget_tokens: 12_000,
            keep_receipts_days: 30,
            sections: BTreeMap::new(),
        }
    }
}

impl Default for Persona {
    fn default() -> Self {
        Self { url: None, token_command: None, timeout_s: 12 }
    }
}

impl Default for Mind {
    fn default() -> Self {
        Self { url: None, command: None, transport: None, token_command: None, observe_timeout_ms: 250 }
    }
}

impl Default for Body {
    fn default() -> Self {
        Self {
            name: None,
            command: None,
            url: None,
            transport: None,
            env: BTreeMap::new(),
            cwd: None,
            token_command: None,
            allow: vec!["*".to_owned()],
            deny: Vec::new(),
            observes: false,
            trust_annotations: None,
            arguments_max_bytes: u32::try_from(ARGUMENTS_MAX_BYTES).unwrap_or(u32::MAX),
            forward_methods: Vec::new(),
            sampling: Sampling::Deny,
            roots: RootsOrFolders::Word(Roots::Auto),
            instructions: Instructions::Data,
            users: UsersOrNames::Word(Users::Owner),
            start: Start::Eager,
            idle_stop_s: 0,
        }
    }
}

impl Default for Tools {
    fn default() -> Self {
        Self { max_listed: u32::try_from(MAX_LISTED).unwrap_or(u32::MAX), always_listed: Vec::new() }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            mind_down: MindDown::Block,
            ask_wait_s: None,
            ask_timeout_s: None,
            contract_delay_ms: 250,
            rule: Vec::new(),
        }
    }
}

impl Default for Model {
    fn default() -> Self {
        Self {
            provider: Provider::Openai,
            base_url: None,
            model: None,
            api_key_env: None,
            native_tools: true,
            max_output_tokens: 8192,
            connect_timeout_s: None,
            first_byte_timeout_s: None,
            idle_timeout_s: None,
            total_timeout_s: None,
            retry_s: None,
        }
    }
}

impl Default for Telegram {
    fn default() -> Self {
        Self {
            token_env: "TELEGRAM_BOT_TOKEN".to_owned(),
            api_url: "https://api.telegram.org".to_owned(),
            allow_users: Vec::new(),
            users: BTreeMap::new(),
        }
    }
}

impl Default for Telemetry {
    fn default() -> Self {
        Self {
            otlp_url: None,
            headers: BTreeMap::new(),
            service_name: "embody".to_owned(),
            sample_percent: 100,
        }
    }
}

impl Default for Log {
    fn default() -> Self {
        Self { level: LogLevel::Info }
    }
}

impl Default for Audiences {
    fn default() -> Self {
        let default = embody_workspace::Audiences::default();
        Self {
            identity: default.identity.into(),
            soul: default.soul.into(),
            user: default.user.into(),
            project: default.project.into(),
            runtime: default.runtime.into(),
            skills: default.skills.into(),
            workspace_files: default.workspace_files.into(),
            memories: default.memories.into(),
            instructions: default.instructions.into(),
            task: default.task.into(),
            persona: default.persona.into(),
        }
    }
}
