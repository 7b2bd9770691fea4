//! The embedded body: the agent's channels, tasks, schedules and skills as tools, an MCP server of its own.
//!
//! An outgoing message is a durable row that the owner of its channel delivers; this crate sends nothing itself. Every row belongs to
//! the user of the connection, never to one that an argument names. It reads no file, no environment and no clock: those come in
//! with [`BodyConfig`].
//!
//! | module | owns |
//! |---|---|
//! | `body` | configuration, callers, `whoami` |
//! | `check` | finds out before a call whether it is certain to fail |
//! | `tools` | the tools by name, with descriptions and classes |
//! | `messages` | reads conversations |
//! | `notify` | stores notices to the user |
//! | `outgoing` | queues messages |
//! | `tasks` | tasks with steps |
//! | `schedule` | later and repeated runs |
//! | `skill` | reads skills |
//! | [`server`] | all of it as an MCP server |

mod body;
mod check;
mod error;
mod messages;
mod notify;
mod outgoing;
mod schedule;
pub mod server;
mod skill;
mod tasks;
mod tools;

pub use self::body::{Body, BodyConfig, Caller, HeardOn, Identity, Whoami};
pub(crate) use self::body::{excerpt, format_timestamp};
pub use self::error::{Error, Result};
pub use self::messages::{MessageEntry, Messages, ReadMessages};
pub use self::notify::{NotifyUser, StoredNotice, Urgency};
pub use self::outgoing::{QueuedMessage, SendMessage};
pub use self::schedule::{ScheduleRun, ScheduledRun};
pub use self::skill::{ReadSkill, SkillText};
pub use self::tasks::{CreateTask, ListTasks, StepEntry, StepState, TaskEntry, TaskList, UpdateTask};
pub use self::tools::Tool;
