//! How old agents become ours: a name, a soul kept to the letter, an identity that is a JSON object. Pure.

use std::collections::BTreeMap;

use super::cell::Cell;
use super::content::identity;
use super::report::LegacyAgent;
use crate::agents::SOUL_LIMIT;
use crate::error::{Error, ErrorKind, Result};
use crate::store::check_name;

pub(super) struct OldAgent {
    /// `ctid` or `rowid`.
    pub(super) at: String,
    pub(super) name: Cell,
    pub(super) soul: Cell,
    pub(super) identity: Cell,
}

pub(super) struct Agent {
    pub(super) at: String,
    pub(super) name: String,
    pub(super) soul: Option<String>,
    pub(super) identity: Option<String>,
    pub(super) rewritten: bool,
    pub(super) report: LegacyAgent,
}

/// All agents, and the rows without a name.
pub(super) struct Agents {
    pub(super) agents: Vec<Agent>,
    pub(super) nameless: Vec<String>,
}

/// Converts rows. Two agents of one name are refused: only a person can say which is meant.
pub(super) fn agents(old: Vec<OldAgent>) -> Result<Agents> {
    let mut agents: BTreeMap<String, Agent> = BTreeMap::new();
    let mut nameless = Vec::new();
    for row in old {
        match agent(&row) {
            None => nameless.push(row.at),
            Some(agent) => {
                if let Some(twin) = agents.insert(agent.name.clone(), agent) {
                    return Err(Error::new(
                        ErrorKind::Conflict,
                        format!("`agent_configurations` has two rows named `{}`", twin.name.escape_debug()),
                    )
                    .hint("keep one of them and run it again"));
                }
            }
        }
    }
    Ok(Agents { agents: agents.into_values().collect(), nameless })
}

fn agent(row: &OldAgent) -> Option<Agent> {
    let mut notes = Vec::new();
    let mut told = |what: &str, cell: &Cell| {
        let clean = cell.clean()?;
        if clean.nuls > 0 {
            notes.push(format!("{} NUL characters of the {what} became U+FFFD", clean.nuls));
        }
        if clean.lossy {
            notes.push(format!("the {what} is not UTF-8: its bad bytes became U+FFFD"));
        }
        Some(clean.text)
    };
    let name = told("name", &row.name)?;
    let soul = told("soul", &row.soul);
    let (identity, change) = told("identity", &row.identity).map_or((None, None), |text| identity(&text));
    let rewritten = change.is_some();
    notes.extend(change.map(str::to_owned));
    if let Some(bytes) = soul.as_ref().map(String::len).filter(|bytes| *bytes > SOUL_LIMIT) {
        notes.push(format!("the soul has {bytes} bytes; a new one may have {SOUL_LIMIT}"));
    }
    if let Err(unusable) = check_name("agent", &name) {
        notes.push(format!("no command can ask for it: {unusable}"));
    }
    let characters = soul.as_ref().map_or(0, |soul| soul.chars().count());
    let report = LegacyAgent { agent: name.clone(), characters, notes };
    Some(Agent { at: row.at.clone(), name, soul, identity, rewritten, report })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn old(at: &str, name: Cell, soul: Cell, identity: Cell) -> OldAgent {
        OldAgent { at: at.into(), name, soul, identity }
    }

    fn text(text: &str) -> Cell {
        Cell::Text(text.into())
    }

    // spec: S-03
    #[test]
    fn a_soul_is_kept_to_the_letter() {
        let soul = " {\"not\": \"parsed\"}\r\n\n ü \u{202e}";
        let Agents { agents, nameless } = agents(vec![
            old("1", text("b"), text(soul), text("{ \"name\": \"Ada\" }")),
            old("2", text("a"), Cell::Null, Cell::Null),
            old("3", Cell::Null, text("lost?"), Cell::Null),
        ])
        .unwrap();
        assert_eq!(nameless, ["3"]);
        assert_eq!((agents[0].name.as_str(), &agents[0].soul, &agents[0].identity), ("a", &None, &None));
        assert_eq!(agents[1].soul.as_deref(), Some(soul));
        assert_eq!(agents[1].identity.as_deref(), Some("{ \"name\": \"Ada\" }"));
        assert_eq!(agents[1].report.characters, soul.chars().count());
        assert!(agents[1].report.notes.is_empty());
    }

    #[test]
    fn two_agents_of_one_name_are_refused() {
        let twins = || old("1", text("a"), Cell::Null, Cell::Null);
        let error = agents(vec![twins(), twins()]).err().unwrap();
        assert_eq!(error.to_string(), "`agent_configurations` has two rows named `a`");
    }

    #[test]
    fn what_had_to_change_is_said() {
        let Agents { agents, .. } = agents(vec![old("1", text("a\nb"), text("x\0"), text("Ada"))]).unwrap();
        assert_eq!(agents[0].soul.as_deref(), Some("x\u{fffd}"));
        assert_eq!(agents[0].identity.as_deref(), Some(r#"{"description":"Ada"}"#));
        assert_eq!(
            agents[0].report.notes,
            [
                "1 NUL characters of the soul became U+FFFD",
                "the identity was no JSON object, and became the description in one",
                "no command can ask for it: the name of the agent `a\\nb` has control characters",
            ]
        );
    }
}
