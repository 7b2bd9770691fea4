//! Reads a workspace into the plain values that `embody-prompt` assembles: files, the clock, host facts. The only
//! reader of workspace files; it decides which source wins and who may see a value, and formats nothing.
//!
//! | module | owns |
//! |---|---|
//! | `read` | bounded reads that never leave their folder |
//! | `include`, `body` | the body file and its `@include` lines |
//! | `front_matter`, `persona_files` | `IDENTITY.md`, `SOUL.md`, `USER.md` |
//! | `agent` | `agents/NAME/agent.toml` |
//! | `project`, `skills`, `files` | project instructions, skills, `AGENTS.md`, `TOOLS.md`, `memories.json` |
//! | `tasks` | `tasks.json` |
//! | `host`, `clock` | facts about the machine, the time in the user's zone |
//! | `load` | all of it, in one call |
//! | `mend` | the one change to a file: taking out what is invisible |

mod agent;
mod body;
mod clock;
mod files;
mod front_matter;
mod host;
mod include;
mod load;
mod mend;
mod persona_files;
mod project;
mod read;
mod skills;
mod tasks;

pub use agent::{AgentName, exposed_directories};
pub use front_matter::{BadYaml, FrontMatter, split as split_front_matter};
pub use host::ModelFacts;
pub use include::{Expanded, Missing, expand};
pub use load::{Audiences, BodyOutcome, Error, Loaded, Request, RequestFacts, Stored, load};
pub use mend::{Mended, mend};
