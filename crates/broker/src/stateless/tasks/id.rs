//! The id by which a host knows a task. It says which server has the task, in which session it was begun, and in which process of that if the server is one, and proves that
//! this principal was told of it: so every process finds a task again, two servers may use the same id, and nobody can ask
//! for somebody else's.
//!
//! Like a request's state it is no secret, only unforgeable, and sealed with the same keys.

use embody_store::SigningKey;
use embody_wire::Outcome;
use embody_wire::server::{code, failure};

use super::super::seal::{is_same, proof_of, unavailable};
use crate::forward::printable;
use crate::{Broker, Principal};

const FORM: &str = "task 1";
/// The longest id that a server may give.
const LONGEST_OWN: usize = 1024;
/// The longest that is looked at.
const LONGEST: usize = LONGEST_OWN + 512;

/// What an id says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    /// The session in which it was begun.
    pub(crate) session: String,
    /// The process of that session in which it runs; empty if its server is none.
    pub(crate) process: String,
    /// The server that has it.
    pub(crate) upstream: String,
    /// What the server calls it.
    pub(crate) task: String,
}

impl Broker {
    /// The id for a host.
    pub(super) async fn task_id(&self, whose: &Principal, named: &Named) -> Result<String, String> {
        if named.task.len() > LONGEST_OWN || named.task.is_empty() {
            return Err(format!("the id of its task has {} bytes", named.task.len()));
        }
        let key = self.seals.current(&self.config.store).await.map_err(|error| error.to_string())?;
        Ok(written(&key, named, &proof(&key, whose, named)))
    }

    /// What an id says that was given to this principal.
    pub(super) async fn named_task(&self, whose: &Principal, id: &str) -> Result<Named, Outcome> {
        let unknown = || failure(code::INVALID_PARAMS, format!("there is no task `{}`", printable(id)));
        if id.len() > LONGEST {
            return Err(unknown());
        }
        let parts: Vec<&str> = id.splitn(6, '.').collect();
        let [key, given, session, process, upstream, task] = *parts else { return Err(unknown()) };
        let key = self.seals.named(&self.config.store, key).await.map_err(|error| unavailable(&error))?;
        let key = key.ok_or_else(unknown)?;
        let [session, process, upstream, task] = [session, process, upstream, task].map(str::to_owned);
        let named = Named { session, process, upstream, task };
        let meant = proof(&key, whose, &named);
        // A proof can be written in other ways too, and none of those was given.
        if !is_same(given, &meant) || id != written(&key, &named, &meant) {
            return Err(unknown());
        }
        Ok(named)
    }
}

fn written(key: &SigningKey, named: &Named, proof: &str) -> String {
    let Named { session, process, upstream, task } = named;
    [&key.id, proof, session, process, upstream, task].join(".")
}

fn proof(key: &SigningKey, whose: &Principal, named: &Named) -> String {
    let Named { session, process, upstream, task } = named;
    proof_of(key, whose, FORM, &[session, process, upstream, task])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_one_principals_and_says_where_the_task_is() {
        let key = SigningKey { id: "k".to_owned(), key: [7; 32], created_at: 0 };
        let [session, process, upstream, task] = ["s", "p", "mail", "a.b/ü"].map(str::to_owned);
        let named = Named { session, process, upstream, task };
        let ann = Principal::new("ann", "assistant", "mcp");
        let known = proof(&key, &ann, &named);
        assert!(written(&key, &named, &known).ends_with(".s.p.mail.a.b/ü"));
        for other in [Principal::new("bob", "assistant", "mcp"), ann.clone().in_shared_conversation("")] {
            assert_ne!(proof(&key, &other, &named), known);
        }
        for other in [
            Named { session: "t".to_owned(), ..named.clone() },
            Named { process: "q".to_owned(), ..named.clone() },
            Named { upstream: "mai".to_owned(), task: "la.b/ü".to_owned(), ..named.clone() },
        ] {
            assert_ne!(proof(&key, &ann, &other), known);
        }
    }
}
