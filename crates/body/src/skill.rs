//! Reads skills of the workspace.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Body, Caller, Error, Result};

const MAX_CHARS: usize = 40_000;

/// The arguments of `read_skill`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadSkill {
    /// As the list of skills names it.
    pub name: String,
}

/// A skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SkillText {
    /// Its name.
    pub name: String,
    /// How to do the work.
    pub text: String,
    /// Whether there is more of it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_cut: bool,
}

impl Body {
    pub async fn read_skill(&self, caller: &Caller, args: ReadSkill) -> Result<SkillText> {
        let (read, caller, name) = (Arc::clone(&self.config.skill), caller.clone(), args.name.clone());
        // Files may be on a slow disk, so they are not read on a runtime thread.
        let read = tokio::task::spawn_blocking(move || read(&caller, &name)).await;
        let text = read
            .map_err(|_| Error::Skill("the skill could not be read".to_owned()))?
            .map_err(Error::Skill)?;
        let text = embody_prompt::without_hidden(text.trim());
        let (text, is_cut) = match text.char_indices().nth(MAX_CHARS) {
            Some((end, _)) => (text.get(..end).unwrap_or(&text).to_owned(), true),
            None => (text.into(), false),
        };
        Ok(SkillText { name: args.name, text, is_cut })
    }
}
