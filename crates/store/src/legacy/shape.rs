//! Which old tables a database has, and what is to be done with each. Pure: columns in, a plan or a refusal out.

use super::join::Form;
use crate::error::{Error, ErrorKind, Result};

pub(super) const AGENTS: &str = "agent_configurations";
pub(super) const CUSTOMIZATIONS: &str = "user_agent_prompt_customizations";
pub(super) const MEMORIES: &str = "agent_long_term_memory";
pub(super) const MEMORIES_KEPT: &str = "agent_long_term_memory_legacy";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) name: &'static str,
    pub(super) columns: Vec<Column>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) not_null: bool,
    pub(super) default: Option<String>,
    /// Generated or identity column.
    pub(super) automatic: bool,
    pub(super) primary: bool,
}

#[derive(Debug, Default)]
pub(super) struct Found {
    /// Whether our own migrations table exists.
    pub(super) ours: bool,
    pub(super) agents: Option<Table>,
    pub(super) customizations: Option<Table>,
    pub(super) memories: Option<Table>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) agents: Option<AgentsPlan>,
    pub(super) customizations: Option<CustomizationsPlan>,
    /// A foreign table of this name, to be moved aside.
    pub(super) memories: Option<Table>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct AgentsPlan {
    pub(super) table: Table,
    pub(super) name: &'static str,
    pub(super) soul: &'static str,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct CustomizationsPlan {
    pub(super) table: Table,
    pub(super) text: &'static str,
    pub(super) form: Form,
}

impl Found {
    /// What is to be done; `None` if nothing is. A database that is neither old nor ours is refused.
    pub(super) fn plan(self) -> Result<Option<Plan>> {
        let none = self.agents.is_none() && self.customizations.is_none() && self.memories.is_none();
        if none && !self.ours {
            return Err(Error::new(
                ErrorKind::Schema,
                format!(
                    "the database has neither `{AGENTS}` nor `{CUSTOMIZATIONS}`: there is nothing to upgrade"
                ),
            )
            .hint("check that the address names the right database"));
        }
        let plan = Plan {
            agents: self.agents.filter(|table| !table.has_all(&AGENT_COLUMNS)).map(agents).transpose()?,
            customizations: self
                .customizations
                .filter(|table| !table.has_all(&CUSTOMIZATION_COLUMNS))
                .map(customizations)
                .transpose()?,
            memories: self.memories.filter(|_| !self.ours),
        };
        let old =
            [&plan.agents.as_ref().map(|_| AGENTS), &plan.customizations.as_ref().map(|_| CUSTOMIZATIONS)];
        match old.into_iter().flatten().next() {
            Some(table) if self.ours => Err(Error::new(
                ErrorKind::Schema,
                format!(
                    "the database has embody's own tables already, and `{table}` in another shape beside them"
                ),
            )
            .hint("move that table aside, or restore the database from a backup")),
            None if plan.memories.is_none() => Ok(None),
            _ => Ok(Some(plan)),
        }
    }
}

impl Plan {
    /// The tables that change, for the export.
    pub(super) fn tables(&self) -> impl Iterator<Item = &Table> {
        let agents = self.agents.as_ref().map(|plan| &plan.table);
        let customizations = self.customizations.as_ref().map(|plan| &plan.table);
        [agents, customizations, self.memories.as_ref()].into_iter().flatten()
    }
}

const AGENT_COLUMNS: [&str; 5] = ["agent_name", "soul", "identity", "version", "changed_at"];
const CUSTOMIZATION_COLUMNS: [&str; 5] = ["user_id", "agent_name", "instructions", "version", "changed_at"];
/// Columns of ours that an old table can have only with another meaning.
const TAKEN: [&str; 2] = ["version", "changed_at"];

impl Table {
    pub(super) fn has(&self, column: &str) -> bool {
        self.column(column).is_some()
    }

    pub(super) fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    fn has_all(&self, columns: &[&str]) -> bool {
        columns.iter().all(|column| self.has(column))
    }

    fn first_of(&self, candidates: [&'static str; 2], what: &str) -> Result<&'static str> {
        let [old, new] = candidates;
        match (self.has(old), self.has(new)) {
            (true, true) => Err(Error::new(
                ErrorKind::Schema,
                format!("`{}` has both `{old}` and `{new}`: somebody began to upgrade it", self.name),
            )
            .hint("drop the column that is not to be kept, and run it again")),
            (true, false) => Ok(old),
            (false, true) => Ok(new),
            (false, false) => Err(Error::new(
                ErrorKind::Schema,
                format!("`{}` has neither `{old}` nor `{new}`: there is no {what}", self.name),
            )),
        }
    }

    /// Columns that stay as they are, each with the name it gets.
    fn others(&self, used: &[&str]) -> Vec<(&Column, String)> {
        let stays = |column: &&Column| !used.contains(&column.name.as_str());
        self.columns.iter().filter(stays).map(|column| (column, free_name(&column.name))).collect()
    }
}

impl Column {
    /// Whether a row that does not mention it is refused.
    pub(super) fn demands_a_value(&self) -> bool {
        self.not_null && self.default.is_none() && !self.automatic
    }
}

impl AgentsPlan {
    pub(super) fn others(&self) -> Vec<(&Column, String)> {
        // An id that lends its value to the name stays what it is.
        let name = if self.name == "id" { "agent_name" } else { self.name };
        self.table.others(&[name, self.soul, "identity"])
    }
}

impl CustomizationsPlan {
    pub(super) fn others(&self) -> Vec<(&Column, String)> {
        self.table.others(&["user_id", "agent_name", self.text, "customization_type", "priority"])
    }

    /// The old columns that are there, and go.
    pub(super) fn dropped(&self) -> Vec<&'static str> {
        let old = ["content", "customization_type", "priority"];
        old.into_iter().filter(|column| self.table.has(column)).collect()
    }
}

fn free_name(column: &str) -> String {
    if TAKEN.contains(&column) { format!("legacy_{column}") } else { column.to_owned() }
}

fn agents(table: Table) -> Result<AgentsPlan> {
    let soul = table.first_of(["system_prompt", "soul"], "text of an agent in it")?;
    let name =
        ["agent_name", "name", "id"].into_iter().find(|column| table.has(column)).ok_or_else(|| {
            Error::new(
                ErrorKind::Schema,
                format!("`{AGENTS}` has no column `agent_name`, `name` or `id`: its agents have no names"),
            )
        })?;
    Ok(AgentsPlan { table, name, soul })
}

fn customizations(table: Table) -> Result<CustomizationsPlan> {
    for column in ["user_id", "agent_name"] {
        if !table.has(column) {
            return Err(Error::new(
                ErrorKind::Schema,
                format!("`{CUSTOMIZATIONS}` has no column `{column}`"),
            ));
        }
    }
    let text = table.first_of(["content", "instructions"], "text of a user in it")?;
    let form = if text == "content" { Form::Json } else { Form::Plain };
    Ok(CustomizationsPlan { table, text, form })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(name: &'static str, columns: &[&str]) -> Option<Table> {
        let column = |name: &&str| Column { name: (*name).to_owned(), ..Column::default() };
        Some(Table { name, columns: columns.iter().map(column).collect() })
    }

    fn refusal(found: Found) -> String {
        found.plan().unwrap_err().to_string()
    }

    #[test]
    fn plans_for_the_old_shape() {
        let plan = Found {
            agents: table(AGENTS, &["id", "agent_name", "system_prompt", "llm_config", "version"]),
            customizations: table(CUSTOMIZATIONS, &["user_id", "agent_name", "content", "priority", "id"]),
            memories: table(MEMORIES, &["notes"]),
            ours: false,
        }
        .plan()
        .unwrap()
        .unwrap();
        let agents = plan.agents.unwrap();
        assert_eq!((agents.name, agents.soul), ("agent_name", "system_prompt"));
        let others: Vec<String> = agents.others().into_iter().map(|(_, name)| name).collect();
        assert_eq!(others, ["id", "llm_config", "legacy_version"]);
        let customizations = plan.customizations.unwrap();
        assert_eq!(customizations.form, Form::Json);
        assert_eq!(customizations.dropped(), ["content", "priority"]);
        assert!(plan.memories.is_some());
    }

    #[test]
    fn names_come_from_the_best_column() {
        let name = |columns: &[&str]| {
            let found = Found { agents: table(AGENTS, columns), ..Found::default() };
            found.plan().unwrap().unwrap().agents.unwrap().name
        };
        assert_eq!(name(&["id", "name", "agent_name", "system_prompt"]), "agent_name");
        assert_eq!(name(&["id", "name", "system_prompt"]), "name");
        assert_eq!(name(&["id", "soul"]), "id");
    }

    #[test]
    fn what_is_ours_needs_nothing() {
        let ours = || Found {
            ours: true,
            agents: table(AGENTS, &AGENT_COLUMNS),
            customizations: table(CUSTOMIZATIONS, &CUSTOMIZATION_COLUMNS),
            memories: table(MEMORIES, &["seq"]),
        };
        assert_eq!(ours().plan().unwrap(), None);
        assert_eq!(Found { ours: true, ..Found::default() }.plan().unwrap(), None);
        assert!(
            refusal(Found { agents: table(AGENTS, &["id", "system_prompt"]), ..ours() }).contains("beside")
        );
    }

    #[test]
    fn what_is_neither_is_refused() {
        assert!(refusal(Found::default()).contains("nothing to upgrade"));
        let agents = |columns: &[&str]| Found { agents: table(AGENTS, columns), ..Found::default() };
        assert!(refusal(agents(&["id", "x"])).contains("neither `system_prompt` nor `soul`"));
        assert!(
            refusal(agents(&["id", "system_prompt", "soul"])).contains("both `system_prompt` and `soul`")
        );
        assert!(refusal(agents(&["system_prompt"])).contains("have no names"));
        let customizations = table(CUSTOMIZATIONS, &["user_id", "content"]);
        assert!(refusal(Found { customizations, ..Found::default() }).contains("no column `agent_name`"));
    }
}
