//! Which observations are held back: those that read like an order to the agent, unless the owner told them by their own
//! hand. Nothing is read out of one, and nobody but the owner sees it again.

use super::Reflect;
use crate::{Caller, Trust, quarantine};

/// Looking at more would keep other tasks of the thread waiting.
const LONG_BYTES: usize = 4 * 1024;

/// Whether it is held back. One that could not be looked at is.
pub(super) async fn is_held(caller: &Caller, args: &Reflect) -> bool {
    if caller.trust == Trust::Owner {
        return false;
    }
    if args.observation.len() < LONG_BYTES {
        return gives_orders(args);
    }
    let copy = args.clone();
    tokio::task::spawn_blocking(move || gives_orders(&copy)).await.unwrap_or(true)
}

/// The kind comes back with the text, so it is looked at too.
fn gives_orders(args: &Reflect) -> bool {
    let told = [Some(args.observation.as_str()), args.kind.as_deref()];
    told.into_iter().flatten().any(|text| quarantine::order(text).is_some())
}
