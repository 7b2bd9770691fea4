//! The agent: turns (prompt, model, tools, reply) and the channels they run on. It acts only through the broker, reads
//! no file and no environment, and keeps all state in the store.
//!
//! | module | owns |
//! |---|---|
//! | [`model`] | the chat model client: two wire formats, one interface |
//! | [`turn`] | one turn, the same for every channel |
//! | [`delivery`] | outgoing messages of the web channel |
//! | [`telegram`] | the Telegram channel |
//! | [`schedule`] | timetables, and the scheduler that runs due jobs |
//! | [`title`] | conversation titles |
//! | [`web_turns`] | web turns that continue when the page that started them closes |

pub mod delivery;
pub mod model;
pub mod schedule;
pub mod telegram;
pub mod title;
pub mod turn;
pub mod web_turns;
