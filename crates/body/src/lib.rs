//! The embedded body: the agent's channels, tasks and schedules as tools, an MCP server of its own.
//!
//! What leaves is written down as a durable row and delivered by whoever has the channel; this room sends nothing itself.
//! Everything is one user's: whose is the connection's word, never an argument's. It reads no file, no environment and no
//! clock; what it needs of the world comes in as a [`BodyConfig`].
//!
//! | module | owns |
//! |---|---|
//! | `tools` | the tools by name: what each says of itself, and what it does to the world |
//! | `whoami` | who acts, for whom, where |
//! | `messages` | what was said |
//! | `outgoing` | what is to be said |
//! | `chat` | the one name of a chat of Telegram |
//! | `tasks` | tasks with steps |
//! | `schedule` | later and repeated runs |
//! | [`server`] | all of it as an MCP server |

mod body;
mod chat;
mod error;
mod messages;
mod outgoing;
mod schedule;
pub mod server;
mod tasks;
mod tools;
mod whoami;

pub(crate) use self::body::format_timestamp;
pub use self::body::{Body, BodyConfig, Caller};
pub use self::error::{Error, Result};
pub use self::messages::{MessageEntry, Messages, ReadMessages};
pub use self::outgoing::{NotifyUser, QueuedMessage, SendMessage, Urgency};
pub use self::schedule::{ScheduleRun, ScheduledRun};
pub use self::tasks::{CreateTask, ListTasks, StepEntry, StepState, TaskEntry, TaskList, UpdateTask};
pub use self::tools::Tool;
pub use self::whoami::{HeardOn, Identity, Whoami};
