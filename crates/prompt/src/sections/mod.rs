//! The catalogue: one small file per section, and one for those with a fixed text. A section that looks different in two
//! layouts has two rows in its file.

mod body;
mod channel;
mod context;
mod directories;
mod fixed;
mod identity;
mod instructions;
mod memories;
mod persona;
mod project;
mod responsibilities;
mod runtime;
mod skills;
mod soul;
mod task;
mod tools;
mod user;
mod user_instructions;
mod workspace_files;

pub(crate) use body::BODY;
pub(crate) use channel::CHANNEL;
pub(crate) use context::{CONTEXT, CURRENT_TIME};
pub(crate) use directories::DIRECTORIES;
pub(crate) use fixed::{
    BACKGROUND, FORMATTING, GUIDELINES, INTRO, INTRO_PLAIN, MEMORY_CHANNEL, MEMORY_HINT, STORAGE,
};
pub(crate) use identity::{IDENTITY_CHANNEL, IDENTITY_FULL, IDENTITY_TAGGED};
pub(crate) use instructions::{INSTRUCTIONS, ROLE};
pub(crate) use memories::MEMORIES;
pub(crate) use persona::{FALLBACK, PERSONA};
pub(crate) use project::PROJECT_CONTEXT;
pub(crate) use responsibilities::RESPONSIBILITIES;
pub(crate) use runtime::RUNTIME;
pub(crate) use skills::{SKILLS, SKILLS_TO_READ};
pub use soul::DEFAULT_SOUL;
pub(crate) use soul::{SOUL_CHANNEL, SOUL_FULL};
pub(crate) use task::TASK;
pub(crate) use tools::{TOOL_FORMAT, TOOLS_CHANNEL, TOOLS_FULL};
pub(crate) use user::{USER, USER_PROFILE};
pub use user_instructions::INSTRUCTIONS_LIMIT;
pub(crate) use user_instructions::USER_INSTRUCTIONS;
pub(crate) use workspace_files::WORKSPACE_FILES;
