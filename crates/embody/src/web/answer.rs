//! One turn of the web channel: what a request says becomes what an agent hears, and what happens becomes what a page hears.

use std::sync::Arc;

use embody_agent::web::{End, Voice};
use embody_store::Scope;

use super::Web;

/// What somebody says.
pub(super) struct Question {
    pub(super) scope: Scope,
    pub(super) thread: String,
    pub(super) text: String,
    pub(super) task: Option<String>,
    pub(super) said: Said,
}

/// What the request says about itself.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) accept_language: Option<String>,
    pub(super) remote_ip: Option<String>,
    pub(super) location: Option<String>,
}

/// Nobody answers.
pub(super) fn no_model() -> End {
    End::Failed {
        message: "no model is configured, so nobody can answer".to_owned(),
        hint: Some("add these lines to embody.toml:\n[model]\nbase_url = \"http://127.0.0.1:11434/v1\"\nmodel = \"qwen3\"".to_owned()),
    }
}

impl Web {
    pub(super) fn has_model(&self) -> bool {
        false
    }
}

/// Answers.
pub(super) async fn answer(_web: Arc<Web>, question: Question, _voice: Voice) -> End {
    let Question { scope: _, thread: _, text: _, task: _, said: Said { .. } } = question;
    no_model()
}
