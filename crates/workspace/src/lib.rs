//! Reads a workspace into the plain values that `embody-prompt` assembles: files, the clock, host facts. The only
//! reader of workspace files; it decides which source wins and who may see a value, and formats nothing.
//!
//! | module | owns |
//! |---|---|
//! | `read` | bounded reads that never leave their folder |
//! | `body` | the body file and its `@include` lines |
//! | `front_matter`, `persona_files` | `IDENTITY.md`, `SOUL.md`, `USER.md` |
//! | `agent` | `agents/NAME/agent.toml` |
//! | `files` | project instructions, skills, `AGENTS.md`, `TOOLS.md`, `memories.json` |
//! | `skill` | the text of one skill, for the agent |
//! | `tasks` | `tasks.json` |
//! | `environment` | facts about the machine, the time in the user's zone |
//! | `load` | all of it, in one call |
//! | `strip_invisible` | the only change to a file: removes invisible characters |

mod agent;
mod body;
mod environment;
mod files;
mod front_matter;
mod load;
mod persona_files;
mod read;
mod skill;
mod strip_invisible;
mod tasks;

pub use agent::{AgentName, exposed_directories};
pub use body::{ExpandedBody, expand};
pub use environment::ModelFacts;
pub use front_matter::{FrontMatter, YamlError, split as split_front_matter};
pub use load::{Audiences, BodyOutcome, Error, LoadRequest, LoadedWorkspace, StoredValues, load, read_soul};
pub use read::{FILE_LIMIT, ReadError};
pub use skill::{SkillError, read_skill};
pub use strip_invisible::{StripOutcome, strip_invisible};
