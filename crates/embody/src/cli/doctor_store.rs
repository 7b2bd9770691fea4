//! What `doctor` says about the store: whether it opens, whether its file is whole, whether the audit chain is,
//! whether anything got lost.

use embody_store::{ChainState, DatabaseUrl};

use super::doctor::{Check, fail, ok, warn};
use super::{Context, lost};
use crate::output::counted;
use crate::store;

/// Looks at the configured store. One that is not there yet is not made.
pub(super) fn checks(context: &Context) -> Vec<Check> {
    let place = store::place(context);
    let looked = store::read(context, async |store| {
        store.check().await?;
        Ok((store.verify_audit().await?, lost::all(store).await?.len()))
    });
    match looked {
        Err(failure) => {
            let (message, hint) = failure.in_short();
            vec![fail("store", message, &hint)]
        }
        Ok(None) => vec![ok("store", format!("there is none yet; `{place}` is made when it is needed"))],
        Ok(Some((report, lost))) => {
            let kind = if matches!(place, DatabaseUrl::Postgres { .. }) { "PostgreSQL" } else { "SQLite" };
            let mut checks = vec![ok("store", format!("{kind}, {place}"))];
            let records: u64 = report.chains.iter().map(|chain| chain.records).sum();
            let away = report.chains.iter().filter(|chain| chain.state == ChainState::KeyAway).count();
            checks.push(match report.broken() {
                Some((chain, found)) => fail(
                    "audit",
                    format!("the chain {} is broken at {found}", chain.chain),
                    "`embody audit verify` says more; docs/audit.md what to do",
                ),
                None if away > 0 => warn(
                    "audit",
                    format!(
                        "{}; {away} of the chains cannot be verified: their keys are not here",
                        counted(records, "record")
                    ),
                    "run `embody audit verify` on the machines that wrote them",
                ),
                None => ok("audit", format!("{}, unbroken", counted(records, "record"))),
            });
            if lost > 0 {
                checks.push(warn(
                    "lost",
                    format!("{lost} messages or runs of which nobody knows how they ended"),
                    "`embody status` lists them for a user; docs/lost.md says what to do",
                ));
            }
            checks
        }
    }
}
