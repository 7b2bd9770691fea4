//! What the test programs share: a workspace of its own for every test, running servers, a scripted model and a Telegram server.
#![allow(dead_code, unused_imports, unused_macros, reason = "each test program uses its own part")]

pub(crate) mod app;
pub(crate) mod model;
pub(crate) mod persona_server;
pub(crate) mod served;
pub(crate) mod stores;
pub(crate) mod telegram;
pub(crate) mod world;
