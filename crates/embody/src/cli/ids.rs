//! Ids on the command line: a person writes the end of an id, or its beginning, if that names one id. Lists show as much of the end
//! as names the id alone: it is random, while ids made at about the same time begin alike.

use embody_store::{IdSet, ShortIds, Store};

use super::Context;
use crate::error::CliError;
use crate::output::printable;

/// The least that a person must write of an id.
const SHORTEST: usize = 4;
/// A whole id; it needs no lookup.
const WHOLE: usize = 36;
/// How many candidates an error names.
const NAMED: u32 = 5;

/// The id that a person means: the one that is written, else the only one with this end or this beginning.
pub(super) async fn resolve(
    store: &Store,
    set: IdSet<'_>,
    given: &str,
    missing: impl FnOnce(&str) -> CliError,
) -> Result<String, CliError> {
    if let Some(id) = look_up(store, set, given).await? {
        return Ok(id);
    }
    let newest = names(store, set, store.ids().newest(set, NAMED).await?).await?;
    Err(missing(given).hint_opt(newest.map(|newest| format!("the newest ids are {newest}"))))
}

/// Like [`resolve`]; `None` if no id matches.
pub(super) async fn look_up(store: &Store, set: IdSet<'_>, given: &str) -> Result<Option<String>, CliError> {
    if given.len() >= WHOLE {
        return Ok(Some(given.to_owned()));
    }
    let found = store.ids().matching(set, given, NAMED + 1).await?;
    match found.as_slice() {
        // The first in order is the id itself.
        [first, ..] if first == given => Ok(Some(given.to_owned())),
        [] => Ok(None),
        _ if given.len() < SHORTEST => {
            Err(CliError::usage(format!("`{}` is too short for an id", printable(given)))
                .hint(format!("write at least {SHORTEST} characters of its end or its beginning")))
        }
        [only] => Ok(Some(only.clone())),
        several => {
            let names = names(store, set, several.to_vec()).await?.unwrap_or_default();
            Err(CliError::usage(format!("more than one id matches `{}`: {names}", printable(given)))
                .hint("write more of its end"))
        }
    }
}

/// The short forms of the first ids, in one line.
async fn names(store: &Store, set: IdSet<'_>, mut ids: Vec<String>) -> Result<Option<String>, CliError> {
    let has_more = ids.len() > NAMED as usize;
    ids.truncate(NAMED as usize);
    let short = store.ids().shorten(set, ids.clone()).await?;
    let mut names: Vec<&str> = ids.iter().map(|id| short.of(id)).collect();
    names.extend(has_more.then_some("…"));
    Ok((!names.is_empty()).then(|| printable(&names.join(", ")).into_owned()))
}

/// The short forms for a list in text; JSON has whole ids.
pub(super) async fn shorten<'i>(
    context: &Context,
    store: &Store,
    set: IdSet<'_>,
    ids: impl Iterator<Item = &'i String>,
) -> Result<ShortIds, CliError> {
    if context.json {
        return Ok(ShortIds::default());
    }
    Ok(store.ids().shorten(set, ids.cloned().collect()).await?)
}
