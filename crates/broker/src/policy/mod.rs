//! The class of a tool, and the operator's rules about a call of it. Pure.
//!
//! Class: the strictest among the matching rules; else the built-in names; else the server's annotations if trusted; else a
//! human-visible write. An annotation may make a class stricter, never milder. Gate: the strictest among the matching rules;
//! else the default of the class.

mod class;
mod condition;
mod explain;
mod glob;
mod rules;
mod uri;

pub use self::class::{Annotations, Class, Gate};
pub use self::condition::{Condition, Facts, WrongCondition};
pub use self::explain::{ClassFrom, Explained, Match};
pub use self::glob::Glob;
pub(crate) use self::glob::{Fit, Kind, Name};
pub use self::rules::{Policy, Rule, Ruling, Via};
