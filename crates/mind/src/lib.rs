//! The embedded mind: it keeps the voice, remembers, predicts and notices, without a language model.
//!
//! It knows nothing of any body or channel: a tool is a name, its arguments are JSON. It reads no file, no environment
//! and no wall clock; time arrives as a [`Moment`], state is the store's.

mod caller;
mod moment;

pub use self::caller::{Caller, Trust};
pub use self::moment::Moment;
