//! Characters, and what a person sees of them. Pure: no IO, no clock, no knowledge of prompts, tools or terminals.
//!
//! | module | owns |
//! |---|---|
//! | [`invisible`] | the one table of characters that a person does not see, by kind |
//! | [`look_alike`] | the one table of characters that pass for a plain Latin letter |
//! | [`visible`] | text that hides nothing from a person who decides by it, or reads it on a terminal |

pub mod invisible;
pub mod look_alike;
pub mod visible;
