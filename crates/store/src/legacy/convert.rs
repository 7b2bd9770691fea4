//! How old rows become agents and instructions. Pure: rows in, new rows and a report out.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::cell::{Cell, CleanText, Priority};
use super::table::Table;
use super::{LegacyAgent, LegacyInstructions, rows};
use crate::agents::SOUL_LIMIT;
use crate::error::{Error, ErrorKind, Result};
use crate::instructions::TEXT_LIMIT;
use crate::store::check_name;

/// With its soul and identity.
pub(super) type NewAgent = (LegacyAgent, Option<String>, Option<Value>);

/// Rows without a name are left out. Two agents of one name are rejected: only a person can decide which one to keep.
pub(super) fn agents(table: &Table) -> Result<Vec<NewAgent>> {
    let mut agents = BTreeMap::new();
    for row in &table.rows {
        let [name, soul, identity] = table.sources.map(|column| table.cell(row, column));
        let mut notes = Vec::new();
        let Some(name) = noted("name", name, &mut notes) else { continue };
        let soul = noted("soul", soul, &mut notes);
        let (identity, change) =
            noted("identity", identity, &mut notes).map_or((None, None), |text| to_identity(&text));
        notes.extend(change.map(str::to_owned));
        if let Some(bytes) = soul.as_ref().map(String::len).filter(|bytes| *bytes > SOUL_LIMIT) {
            notes.push(format!("the soul has {bytes} bytes; a new one may have {SOUL_LIMIT}"));
        }
        notes.extend(unusable("agent", &name));
        let characters = soul.as_ref().map_or(0, |soul| soul.chars().count());
        let report = LegacyAgent { agent: name.clone(), characters, notes };
        if agents.insert(name.clone(), (report, soul, identity)).is_some() {
            let message = format!("`agent_configurations` has two rows named `{}`", name.escape_debug());
            return Err(Error::new(ErrorKind::Conflict, message).hint("keep one of them and run it again"));
        }
    }
    Ok(agents.into_values().collect())
}

fn noted(what: &str, cell: &Cell, notes: &mut Vec<String>) -> Option<String> {
    let clean = cell.text()?;
    if clean.nuls > 0 {
        notes.push(format!("{} NUL characters of the {what} became U+FFFD", clean.nuls));
    }
    if clean.lossy {
        notes.push(format!("the {what} is not UTF-8: its invalid bytes became U+FFFD"));
    }
    Some(clean.text)
}

fn unusable(what: &str, name: &str) -> Option<String> {
    check_name(what, name).err().map(|error| format!("no command can select it: {error}"))
}

/// An agent's identity as a JSON object that both databases store, and what had to be changed for it.
fn to_identity(text: &str) -> (Option<Value>, Option<&'static str>) {
    let (Some(description), _) = content_text(text) else {
        return (None, Some("the identity was empty, and is left out"));
    };
    // Two backslashes are one that is escaped.
    let clean =
        text.split(r"\\").map(|part| part.replace(r"\u0000", r"\ufffd")).collect::<Vec<_>>().join(r"\\");
    match serde_json::from_str(&clean) {
        Ok(Value::Null) => (None, None),
        Ok(object @ Value::Object(_)) => {
            (Some(object), (clean != text).then_some("NUL characters of the identity became U+FFFD"))
        }
        // Also numbers out of range, half a surrogate pair, and too many levels.
        _ => {
            let object = json!({ "description": CleanText::new(&description, false).text });
            (Some(object), Some("the identity was not a JSON object and became the description in one"))
        }
    }
}

const INACTIVE: &str = "inactive: only in the export";
const EMPTY: &str = "without any text";
const JSON: &str = "not a JSON string: kept as compact JSON";
const BARE: &str = "not JSON: kept unchanged";
const HALVED: &str = "with an incomplete surrogate pair: kept as JSON";
const LOSSY: &str = "not UTF-8: the invalid bytes became U+FFFD";
const UNREADABLE: &str = "with bytes that are not text: only in the export";
const WORD: &str = "with a priority that is not a number: placed after the others";
const RENAMED: &str = "with a name that had to be made readable";
/// The order of the notes in a report.
const NOTES: [&str; 9] = [INACTIVE, EMPTY, JSON, BARE, HALVED, LOSSY, UNREADABLE, WORD, RENAMED];

struct OldRow<'a> {
    inactive: bool,
    priority: Priority,
    renamed: bool,
    content: &'a Cell,
}

/// The joined rows of each user and agent: lowest priority number first, ties in the order of the table. Rows without both
/// names are left out.
pub(super) fn instructions(table: &Table) -> Vec<(LegacyInstructions, String)> {
    let mut groups: BTreeMap<(String, String), Vec<OldRow>> = BTreeMap::new();
    for row in &table.rows {
        let [user, agent, content] = table.sources.map(|column| table.cell(row, column));
        if let (Some(user), Some(agent)) = (user.text(), agent.text()) {
            let renamed = [&user, &agent].iter().any(|name| name.nuls > 0 || name.lossy);
            let inactive = table.cell(row, "is_active").is_false();
            let priority = table.cell(row, "priority").priority();
            let group = groups.entry((user.text, agent.text)).or_default();
            group.push(OldRow { inactive, priority, renamed, content });
        }
    }
    let is_json = table.has("content");
    groups.into_iter().map(|((user, agent), group)| join(user, agent, group, is_json)).collect()
}

fn join(user: String, agent: String, mut group: Vec<OldRow>, is_json: bool) -> (LegacyInstructions, String) {
    group.sort_by(|one, other| one.priority.order(&other.priority));
    let mut seen = Vec::new();
    let mut texts = Vec::new();
    for row in &group {
        seen.extend(row.renamed.then_some(RENAMED));
        if row.inactive {
            seen.push(INACTIVE);
            continue;
        }
        seen.extend((row.priority.0 == 1).then_some(WORD));
        texts.extend(row_text(row.content, is_json, &mut seen));
    }
    let nuls: usize = texts.iter().map(|text| text.nuls).sum();
    let joined = texts.len();
    let text = texts.into_iter().map(|text| text.text).collect::<Vec<_>>().join("\n\n");
    let count = |note: &str| seen.iter().filter(|seen| **seen == note).count();
    let found = NOTES.into_iter().filter(|note| count(note) > 0);
    let mut notes: Vec<String> = found.map(|note| format!("{} {note}", rows(count(note)))).collect();
    if nuls > 0 {
        notes.push(format!("{nuls} NUL characters became U+FFFD"));
    }
    if text.len() > TEXT_LIMIT {
        notes.push(format!("the text has {} bytes; a new one may have {TEXT_LIMIT}", text.len()));
    }
    notes.extend(unusable("user", &user).into_iter().chain(unusable("agent", &agent)));
    let characters = text.chars().count();
    (LegacyInstructions { user, agent, rows: group.len(), joined, characters, notes }, text)
}

/// The text of one row, if it has any. A column that was converted before has plain text, not JSON.
fn row_text(content: &Cell, is_json: bool, seen: &mut Vec<&'static str>) -> Option<CleanText> {
    let stored = content.text().unwrap_or_default();
    if stored.lossy {
        if matches!(content, Cell::Blob(_)) {
            seen.push(UNREADABLE);
            return None;
        }
        seen.push(LOSSY);
    }
    let (text, note) = match is_json {
        true => content_text(&stored.text),
        false if stored.text.is_empty() => (None, Some(EMPTY)),
        false => (Some(stored.text), None),
    };
    seen.extend(note);
    // An escaped NUL appears only when the JSON string is read.
    let clean = CleanText::new(&text?, stored.lossy);
    Some(CleanText { nuls: stored.nuls + clean.nuls, ..clean })
}

/// What JSON says as text: the value of a string, other JSON compact, with its keys and numbers as written.
fn content_text(stored: &str) -> (Option<String>, Option<&'static str>) {
    let Ok(raw) = serde_json::from_str::<&RawValue>(stored) else {
        return if stored.is_empty() { (None, Some(EMPTY)) } else { (Some(stored.to_owned()), Some(BARE)) };
    };
    let json = raw.get();
    if !json.starts_with('"') {
        return (Some(compact(json)), Some(JSON));
    }
    match serde_json::from_str::<String>(json) {
        Ok(value) if value.is_empty() => (None, Some(EMPTY)),
        Ok(value) => (Some(value), None),
        Err(_) => (Some(json.to_owned()), Some(HALVED)),
    }
}

/// Valid JSON without its white space. Its values are not read: numbers keep their digits, objects the order of their keys.
fn compact(json: &str) -> String {
    let (mut in_string, mut escaped) = (false, false);
    let keeps = |c: &char| {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => in_string = !in_string,
            _ => {}
        }
        in_string || !c.is_ascii_whitespace()
    };
    json.chars().filter(keeps).collect()
}

#[cfg(test)]
mod tests;
