//! What `doctor` says about the users of bodies: whom a body without `users` leaves out.

use std::collections::BTreeSet;

use embody_agent::telegram::user_of;

use super::doctor::{Check, warn};
use super::{Context, Who};
use crate::config::origin::Origin;
use crate::store;

/// Names the users that the workspace knows and that cannot use a body because it says nothing about users.
pub(super) fn checks(context: &Context) -> Vec<Check> {
    let is_unset = |index: usize| *context.config.origin(&format!("body[{index}].users")) == Origin::Default;
    let bodies: Vec<&str> = (context.config.bodies.iter().enumerate())
        .filter(|(index, _)| is_unset(*index))
        .map(|(_, body)| body.name.as_str())
        .collect();
    if bodies.is_empty() {
        return Vec::new();
    }
    // A store that cannot be read has a check of its own.
    let stored = store::read(context, async |store| Ok(store.known_users().await?));
    let mut users: BTreeSet<String> = stored.ok().flatten().unwrap_or_default().into_iter().collect();
    let telegram = &context.config.telegram;
    users.extend(telegram.allow_users.iter().map(|id| user_of(*id, &telegram.users)));
    users.remove(&Who::owner());
    if users.is_empty() {
        return Vec::new();
    }
    let users: Vec<String> = users.iter().map(|user| format!("`{user}`")).collect();
    let bodies: Vec<String> = bodies.iter().map(|body| format!("`{body}`")).collect();
    let message = format!("{} cannot use {}", users.join(", "), bodies.join(", "));
    let hint = "a [[body]] without `users` is for the owner alone; name those who may use it in `users`, or write \"all\"";
    vec![warn("users", message, hint)]
}
