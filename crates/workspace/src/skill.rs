//! Reads one skill for the agent. The name is compared with the names of skills, and never becomes a path.

use std::fs;
use std::path::Path;

use crate::AgentName;
use crate::files::{FoundSkill, skills};
use crate::load::skill_folders;
use crate::read::Folder;

const NAMED_MAX: usize = 20;

#[derive(Debug, thiserror::Error)]
pub enum SkillError {
    #[error("unknown skill `{name}`: {}", known_skills(.known))]
    Unknown { name: String, known: Vec<String> },
    #[error("the skill `{name}` is not read: a link is in its place")]
    Link { name: String },
}

fn known_skills(known: &[String]) -> String {
    if known.is_empty() {
        return "there are none".to_owned();
    }
    let shown: Vec<&str> = known.iter().take(NAMED_MAX).map(String::as_str).collect();
    let more = if known.len() > shown.len() { ", …" } else { "" };
    format!("there are {}{more}", shown.join(", "))
}

/// The text of an agent's skill without its front matter. Skills of the agent's folder win over those of the workspace, as in
/// the prompt.
pub fn read_skill(workspace: &Path, agent: &AgentName, name: &str) -> Result<String, SkillError> {
    let mut notes = Vec::new();
    let workspace = Folder::new(workspace, "");
    let own = workspace.folder(&format!("agents/{}", agent.as_str()), &mut notes);
    let mut found = skills(&skill_folders(own, &workspace), &mut notes);
    let Some(index) = found.iter().position(|found| found.skill.name == name) else {
        let name = name.chars().filter(|c| !c.is_control()).take(64).collect();
        return Err(SkillError::Unknown {
            name,
            known: found.into_iter().map(|found| found.skill.name).collect(),
        });
    };
    let FoundSkill { text, parent, name: folder, .. } = found.swap_remove(index);
    let folder = parent.path().join(folder);
    let is_link = |path: &Path| fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink());
    if [parent.path(), &folder, &folder.join("SKILL.md")].into_iter().any(is_link) {
        return Err(SkillError::Link { name: name.to_owned() });
    }
    Ok(text)
}
