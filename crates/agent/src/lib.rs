//! One turn of an agent: prompt, model, tools, reply; and the channels that it takes place on. It acts only through the
//! broker, reads no file and no environment, and keeps nothing that is not in the store.
//!
//! | module | owns |
//! |---|---|
//! | [`model`] | asking a model: two wire formats, one answer |
//! | [`turn`] | one turn, the same for every channel |
//! | [`delivery`] | messages that leave for the web |
//! | [`telegram`] | the Telegram channel |
//! | [`schedule`] | when a schedule is due, and running what is |
//! | [`title`] | what a conversation is called |
//! | [`turns`] | turns that go on when the page that began them goes away |

pub mod delivery;
pub mod model;
pub mod schedule;
pub mod telegram;
pub mod title;
pub mod turn;
pub mod turns;
