//! The signed task id that a host receives. It names server, session and process, and is bound to the principal: every
//! process can resolve it, and no other principal can use it.

use embody_store::{Principal, SigningKey};
use embody_wire::Outcome;
use embody_wire::server::{code, failure};

use super::super::request_state::{is_same_hash, keyed_hash, unavailable};
use crate::Broker;
use crate::forward::printable;

const FORM: &str = "task 1";
/// The longest id of a server.
const LONGEST_OWN: usize = 1024;
/// The longest id that is parsed.
const LONGEST: usize = LONGEST_OWN + 512;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskRef {
    pub(crate) session: String,
    /// The process of that session in which it runs; empty if the server is not a process.
    pub(crate) process: String,
    pub(crate) upstream: String,
    pub(crate) task: String,
}

pub(super) async fn encode(broker: &Broker, whose: &Principal, named: &TaskRef) -> Result<String, String> {
    if named.task.len() > LONGEST_OWN || named.task.is_empty() {
        return Err(format!("the id of its task has {} bytes", named.task.len()));
    }
    let key = broker.signer.current_key(&broker.config.store).await.map_err(|error| error.to_string())?;
    Ok(written(&key, named, &proof(&key, whose, named)))
}

pub(super) async fn decode(broker: &Broker, whose: &Principal, id: &str) -> Result<TaskRef, Outcome> {
    let unknown = || failure(code::INVALID_PARAMS, format!("unknown task `{}`", printable(id)));
    if id.len() > LONGEST {
        return Err(unknown());
    }
    let parts: Vec<&str> = id.splitn(6, '.').collect();
    let [key, given, session, process, upstream, task] = *parts else { return Err(unknown()) };
    let key = broker.signer.key(&broker.config.store, key).await.map_err(|error| unavailable(&error))?;
    let key = key.ok_or_else(unknown)?;
    let [session, process, upstream, task] = [session, process, upstream, task].map(str::to_owned);
    let named = TaskRef { session, process, upstream, task };
    let meant = proof(&key, whose, &named);
    // Reject other encodings of a valid proof: only the canonical one was issued.
    if !is_same_hash(given, &meant) || id != written(&key, &named, &meant) {
        return Err(unknown());
    }
    Ok(named)
}

fn written(key: &SigningKey, named: &TaskRef, proof: &str) -> String {
    let TaskRef { session, process, upstream, task } = named;
    [&key.id, proof, session, process, upstream, task].join(".")
}

fn proof(key: &SigningKey, whose: &Principal, named: &TaskRef) -> String {
    let TaskRef { session, process, upstream, task } = named;
    keyed_hash(key, whose, FORM, &[session, process, upstream, task])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_one_principals_and_says_where_the_task_is() {
        let key = SigningKey { id: "k".to_owned(), key: [7; 32], created_at: 0 };
        let [session, process, upstream, task] = ["s", "p", "mail", "a.b/ü"].map(str::to_owned);
        let named = TaskRef { session, process, upstream, task };
        let ann = Principal::host("ann", "assistant").unwrap();
        let known = proof(&key, &ann, &named);
        assert!(written(&key, &named, &known).ends_with(".s.p.mail.a.b/ü"));
        for other in [Principal::host("bob", "assistant").unwrap(), ann.clone().in_shared_conversation("")] {
            assert_ne!(proof(&key, &other, &named), known);
        }
        for other in [
            TaskRef { session: "t".to_owned(), ..named.clone() },
            TaskRef { process: "q".to_owned(), ..named.clone() },
            TaskRef { upstream: "mai".to_owned(), task: "la.b/ü".to_owned(), ..named.clone() },
        ] {
            assert_ne!(proof(&key, &ann, &other), known);
        }
    }
}
