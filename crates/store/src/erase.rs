//! Removes a text from everything that is stored of a user, wherever it stands literally: as it is, inside JSON, or shortened by
//! embody. Memories and the audit chain, which need more than that, have modules of their own.

use crate::db::{Conn, Value, args, dialect};
use crate::error::Result;

/// Stands where the text was.
pub(crate) const ERASED: &str = "[erased]";
/// A shorter text occurs in texts that have nothing to do with it.
const SHORTEST_CHARS: usize = 8;
/// How embody shortens what it copies: characters that stay, and the sign after them. Reflections, context, the audit chain.
const CUTS: [(usize, &str); 6] = [(7999, "…"), (499, "…"), (299, "…"), (256, "… ["), (200, ""), (199, "…")];
const TITLE_CUT: (usize, &str) = (60, "…");
/// JSON in JSON in JSON: the arguments of a call in a message in a receipt.
const DEPTH: usize = 3;
/// Forms of one statement.
const BATCH: usize = 8;

/// A text as it may be stored, longest form first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Forms {
    plain: Vec<String>,
    /// Inside JSON.
    escaped: Vec<String>,
    titles: Vec<String>,
}

impl Forms {
    pub(crate) fn new<'t>(texts: impl Iterator<Item = &'t str>) -> Self {
        let mut forms = Self::default();
        for text in texts.map(str::trim).filter(|text| is_distinct(text)) {
            let beginnings = CUTS.iter().filter_map(|cut| beginning(text, *cut));
            for form in std::iter::once(text.to_owned()).chain(beginnings) {
                forms.escaped.extend(escaped(&form));
                forms.plain.push(form);
            }
            let line = text.lines().next().unwrap_or_default();
            forms.titles.extend(beginning(line, TITLE_CUT));
        }
        forms.plain.extend(forms.escaped.iter().cloned());
        forms.titles.extend(forms.plain.iter().cloned());
        for forms in [&mut forms.plain, &mut forms.escaped, &mut forms.titles] {
            forms.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
            forms.dedup();
        }
        forms
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.plain.is_empty()
    }

    /// The text without any of the forms; `None` if it has none.
    pub(crate) fn erase(&self, text: &str) -> Option<String> {
        let mut erased = None;
        for form in &self.plain {
            let current = erased.as_deref().unwrap_or(text);
            if current.contains(form.as_str()) {
                erased = Some(current.replace(form.as_str(), ERASED));
            }
        }
        erased
    }

    fn of(&self, format: Format) -> &[String] {
        match format {
            Format::Text => &self.plain,
            Format::Json => &self.escaped,
            Format::Title => &self.titles,
        }
    }
}

/// Whether a text is more than one word or number: such a word also is a name or a value in the store's own JSON.
pub(crate) fn is_distinct(text: &str) -> bool {
    let is_word = text.chars().all(|c| c.is_ascii_alphabetic() || matches!(c, '_' | '/'));
    let is_number = text.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | 'e' | 'E'));
    text.chars().count() >= SHORTEST_CHARS && !is_word && !is_number
}

fn beginning(text: &str, (characters, sign): (usize, &str)) -> Option<String> {
    let (end, _) = text.char_indices().nth(characters)?;
    Some(format!("{}{sign}", text.get(..end)?))
}

/// A text as it stands inside JSON, with and without codes for what is not ASCII.
fn escaped(text: &str) -> Vec<String> {
    let inside = |text: &str| {
        let quoted = serde_json::to_string(text).unwrap_or_default();
        quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default().to_owned()
    };
    let once = inside(text);
    let mut forms = Vec::new();
    for mut form in [ascii(&once), once] {
        for _ in 0..DEPTH {
            let deeper = inside(&form);
            forms.push(form);
            form = deeper;
        }
    }
    forms
}

fn ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii() {
            out.push(c);
        } else {
            out.extend(c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")));
        }
    }
    out
}

/// Where the text was found, and in how many rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErasedPlace {
    pub what: &'static str,
    pub count: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Treatment {
    /// The text is replaced in the row; so is what is derived from it.
    Redact { derived: &'static str },
    /// The row is for one use, which the text was part of.
    Delete,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Text,
    Json,
    Title,
}

struct Place {
    what: &'static str,
    table: &'static str,
    columns: &'static [&'static str],
    format: Format,
    treatment: Treatment,
}

const REDACT: Treatment = Treatment::Redact { derived: "" };
const WITHDRAW: Treatment = Treatment::Redact {
    derived: ", digest = '', status = CASE WHEN status IN ('pending', 'approved') THEN 'expired' ELSE status END",
};

const fn text(what: &'static str, table: &'static str, columns: &'static [&'static str]) -> Place {
    Place { what, table, columns, format: Format::Text, treatment: REDACT }
}

const fn json(what: &'static str, table: &'static str, columns: &'static [&'static str]) -> Place {
    Place { format: Format::Json, ..text(what, table, columns) }
}

const PLACES: &[Place] = &[
    json("messages", "messages", &["content"]),
    Place { format: Format::Title, ..text("titles of conversations", "threads", &["title"]) },
    json("memory history", "memory_history", &["state"]),
    text("sources and tags of memories", "agent_long_term_memory", &["source", "tags"]),
    text("mind log", "mind_log", &["text"]),
    text("mind log", "mind_log_archive", &["text"]),
    Place {
        treatment: Treatment::Redact { derived: ", words = ''" },
        ..text("commitments", "commitments", &["text", "sentence"])
    },
    text("proposals", "instruction_proposals", &["line", "text", "diff", "sentence"]),
    text("standing instructions", "user_agent_prompt_customizations", &["instructions"]),
    text("old standing instructions", "instruction_history", &["instructions"]),
    text("tasks", "tasks", &["title", "description"]),
    json("tasks", "tasks", &["steps"]),
    text("schedules", "schedules", &["prompt"]),
    text("runs of schedules", "schedule_runs", &["output"]),
    json("sessions", "broker_sessions", &["packet"]),
    Place { treatment: WITHDRAW, ..json("approvals", "approvals", &["args", "flags"]) },
    text("approvals", "approvals", &["reason"]),
    Place {
        treatment: Treatment::Delete,
        ..json("calls that wait for approval", "held_calls", &["arguments", "content"])
    },
    Place { treatment: Treatment::Delete, ..json("suspended calls", "parked_calls", &["anew"]) },
    Place {
        treatment: Treatment::Delete,
        ..json("observations for the mind", "observation_outbox", &["payload"])
    },
    json("incoming messages", "incoming", &["content"]),
    text("incoming messages", "incoming", &["reason"]),
    text("outgoing messages", "outgoing", &["text", "about", "reason"]),
    text("notices", "notices", &["text"]),
];

/// Counts the rows of a user with the text.
pub(crate) async fn count(conn: &mut Conn, user: &str, forms: &Forms) -> Result<Vec<ErasedPlace>> {
    let mut found = Vec::new();
    for place in PLACES {
        for batch in forms.of(place.format).chunks(BATCH) {
            let sql =
                format!("SELECT count(*) FROM {} WHERE {}", place.table, condition(place.columns, batch));
            let (count,): (i64,) = conn.fetch_one(sql, values(user, batch)).await?;
            add(&mut found, place.what, u64::try_from(count).unwrap_or(0));
        }
    }
    for batch in forms.plain.chunks(BATCH) {
        let sql = format!("SELECT count(*) FROM prompt_receipts WHERE {}", receipts(batch));
        let (count,): (i64,) = conn.fetch_one(sql, values(user, batch)).await?;
        add(&mut found, RECEIPTS, u64::try_from(count).unwrap_or(0));
    }
    Ok(found)
}

/// Removes the text from all rows of a user.
pub(crate) async fn erase(conn: &mut Conn, user: &str, forms: &Forms) -> Result<Vec<ErasedPlace>> {
    let mut found = Vec::new();
    for place in PLACES {
        for batch in forms.of(place.format).chunks(BATCH) {
            let (table, condition) = (place.table, condition(place.columns, batch));
            let sql = match place.treatment {
                Treatment::Delete => format!("DELETE FROM {table} WHERE {condition}"),
                Treatment::Redact { derived } => {
                    let changes: Vec<String> = place.columns.iter().map(|name| change(name, batch)).collect();
                    format!("UPDATE {table} SET {}{derived} WHERE {condition}", changes.join(", "))
                }
            };
            add(&mut found, place.what, conn.execute(sql, values(user, batch)).await?);
        }
    }
    conn.execute(dialect!(LOCK_SECTIONS), Vec::new()).await?;
    for batch in forms.plain.chunks(BATCH) {
        let sql = format!("DELETE FROM prompt_receipts WHERE {}", receipts(batch));
        add(&mut found, RECEIPTS, conn.execute(sql, values(user, batch)).await?);
    }
    for sql in [LOOSE_PARTS, LOOSE_SECTIONS] {
        conn.execute(sql, args![user]).await?;
    }
    Ok(found)
}

fn add(found: &mut Vec<ErasedPlace>, what: &'static str, count: u64) {
    match found.iter_mut().find(|place| place.what == what) {
        Some(place) => place.count += count,
        None if count > 0 => found.push(ErasedPlace { what, count }),
        None => {}
    }
}

/// A receipt replays exact bytes, so one without the text is deleted.
const RECEIPTS: &str = "receipts of prompts";
const LOOSE_PARTS: &str = "DELETE FROM prompt_receipt_parts WHERE user_id = $1 AND NOT EXISTS \
     (SELECT 1 FROM prompt_receipts receipt WHERE receipt.user_id = prompt_receipt_parts.user_id \
     AND receipt.id = prompt_receipt_parts.receipt_id)";
const LOOSE_SECTIONS: &str = "DELETE FROM prompt_sections WHERE user_id = $1 AND NOT EXISTS \
     (SELECT 1 FROM prompt_receipt_parts part WHERE part.user_id = prompt_sections.user_id \
     AND part.hash = prompt_sections.hash)";

fn receipts(forms: &[String]) -> String {
    let (detail, section) = (condition(&["detail"], forms), condition(&["text"], forms));
    format!(
        "({detail}) OR user_id = $1 AND id IN (SELECT receipt_id FROM prompt_receipt_parts WHERE user_id = $1 \
         AND hash IN (SELECT hash FROM prompt_sections WHERE {section}))"
    )
}

/// `$1` is the user, `$2` what replaces the text, the rest are the forms.
fn values(user: &str, forms: &[String]) -> Vec<Value> {
    let mut values = args![user, ERASED];
    values.extend(forms.iter().map(Value::from));
    values
}

pub(crate) fn condition(columns: &[&str], forms: &[String]) -> String {
    let has = |name: &str, form: usize| format!("replace({name}, ${form}, $2) <> {name}");
    let pairs = columns.iter().flat_map(|name| (3..forms.len() + 3).map(move |form| (*name, form)));
    let any: Vec<String> = pairs.map(|(name, form)| has(name, form)).collect();
    format!("user_id = $1 AND ({})", any.join(" OR "))
}

fn change(name: &str, forms: &[String]) -> String {
    let replaced =
        (3..forms.len() + 3).fold(name.to_owned(), |inner, form| format!("replace({inner}, ${form}, $2)"));
    format!("{name} = {replaced}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::migrate;

    fn erased(text: &str, stored: &str) -> Option<String> {
        Forms::new(std::iter::once(text)).erase(stored)
    }

    #[test]
    fn a_text_is_found_however_it_was_written() {
        let text = "Ann said \"no\".\nHer café closes.";
        let json = |value: &str| serde_json::to_string(value).unwrap();
        let (once, twice) = (json(text), json(&json(text)));
        let ascii = once.replace('é', "\\u00e9");
        for stored in [text, &once, &twice, &json(&twice), &ascii, &json(&ascii)] {
            let left = erased(text, &format!("before {stored} after")).unwrap_or_else(|| panic!("{stored}"));
            assert!(left.contains(ERASED) && !left.contains("caf") && !left.contains("Ann"), "{left}");
        }
        assert_eq!(erased(text, "Ann said \"no\". Her café closes."), None);
    }

    #[test]
    fn a_shortened_copy_is_found() {
        let text = "word and number 7 ".repeat(600);
        for length in [199, 299, 499, 7999] {
            let copy: String = text.chars().take(length).chain(['…']).collect();
            assert_eq!(erased(&text, &copy).as_deref(), Some(ERASED), "{length}");
        }
        assert_eq!(erased(&text, &text.chars().take(100).collect::<String>()), None);
    }

    #[test]
    fn one_word_or_number_is_not_searched_for() {
        for text in ["tea", "assistant", "human_visible_write", "1234567890123", "  Ann  "] {
            assert!(Forms::new(std::iter::once(text)).is_empty(), "{text}");
        }
        for text in ["tea for Ann", "hunter2-x", "私は東京に住んでいます", "+49 170 1234567"] {
            assert!(!Forms::new(std::iter::once(text)).is_empty(), "{text}");
        }
    }

    /// Columns that hold no text of a person or a model: names, ids, states, times, keys. The audit chain, memories and receipts are
    /// treated apart from the others.
    const OTHER: &[&str] = &[
        "user_id",
        "id",
        "agent",
        "agent_name",
        "session",
        "channel",
        "external",
        "conversation",
        "recipient",
        "thread_id",
        "schedule_id",
        "receipt_id",
        "run_id",
        "subject",
        "kept",
        "what",
        "status",
        "state",
        "kind",
        "urgency",
        "role",
        "event",
        "call_id",
        "chain",
        "writer",
        "trust",
        "origin",
        "origins",
        "who",
        "words",
        "actor",
        "name",
        "tool",
        "body",
        "class",
        "digest",
        "pin",
        "policy",
        "decided_by",
        "lease_owner",
        "scope",
        "label",
        "signed_in_with",
        "cron",
        "timezone",
        "misfire",
        "outcome",
        "idempotency_key",
        "layout",
        "hash",
        "usage",
        "host",
        "hello",
        "reasons",
        "contract",
        "bounced",
        "ticket",
        "holder",
        "approval",
        "thread",
        "model",
    ];
    const APART: &[&str] = &[
        "audit.detail",
        "agent_long_term_memory.text",
        "mind_cautions.beginning",
        "prompt_sections.text",
        "prompt_receipts.detail",
    ];

    #[test]
    fn every_column_with_text_of_a_user_is_covered() {
        let covered = |table: &str, column: &str| {
            PLACES.iter().any(|place| place.table == table && place.columns.contains(&column))
                || APART.contains(&format!("{table}.{column}").as_str())
        };
        let columns = migrate::text_columns_of_users();
        assert!(columns.len() > 100, "{}", columns.len());
        for (table, column) in &columns {
            assert!(
                covered(table, column) || OTHER.contains(&column.as_str()),
                "`{table}.{column}` may hold text of a memory: add it to PLACES, or to OTHER if it cannot"
            );
        }
        for place in PLACES {
            for column in place.columns {
                let known = (place.table.to_owned(), (*column).to_owned());
                assert!(columns.contains(&known), "{known:?} does not exist");
            }
        }
    }
}
