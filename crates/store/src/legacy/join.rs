//! How the old rows of one user and agent become one text. Pure: rows in, texts and what to say about them out.

use std::collections::BTreeMap;

use super::cell::{Cell, Clean};
use super::content::{Meaning, meaning};
use super::priority::Priority;
use super::report::{LegacyInstructions, rows};
use crate::instructions::TEXT_LIMIT;
use crate::store::check_name;

/// What stands between the texts of two rows.
const BLANK_LINE: &str = "\n\n";

/// One old row. Rows come in the order that breaks ties: oldest first.
pub(super) struct OldRow {
    /// `ctid` or `rowid`.
    pub(super) at: String,
    pub(super) user: Cell,
    pub(super) agent: Cell,
    pub(super) content: Cell,
    pub(super) priority: Cell,
    pub(super) active: Cell,
}

/// What the column with the text holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// JSON, valid or not.
    Json,
    /// The column was converted to text before.
    Plain,
}

/// The rows of one user and agent, joined.
pub(super) struct Joined {
    pub(super) user: String,
    pub(super) agent: String,
    pub(super) text: String,
    /// The row that stays, for columns unknown to us.
    pub(super) kept: String,
    pub(super) others: Vec<String>,
    pub(super) report: LegacyInstructions,
}

/// Everything joined, and the rows that belong to nobody.
pub(super) struct Joining {
    pub(super) joined: Vec<Joined>,
    pub(super) nameless: Vec<String>,
}

/// Joins rows: by user and agent, lowest priority number first, ties in the order given.
pub(super) fn join(old: Vec<OldRow>, form: Form) -> Joining {
    let mut groups: BTreeMap<(String, String), Vec<(OldRow, bool)>> = BTreeMap::new();
    let mut nameless = Vec::new();
    for row in old {
        match (row.user.clean(), row.agent.clean()) {
            (Some(user), Some(agent)) => {
                let renamed = [&user, &agent].iter().any(|name| name.nuls > 0 || name.lossy);
                groups.entry((user.text, agent.text)).or_default().push((row, renamed));
            }
            _ => nameless.push(row.at),
        }
    }
    let joined = groups.into_iter().map(|((user, agent), rows)| group(user, agent, rows, form)).collect();
    Joining { joined, nameless }
}

fn group(user: String, agent: String, group: Vec<(OldRow, bool)>, form: Form) -> Joined {
    let mut seen = Seen::default();
    let mut group: Vec<(Priority, OldRow)> = group
        .into_iter()
        .map(|(row, renamed)| {
            seen.renamed += usize::from(renamed);
            (Priority::of(&row.priority), row)
        })
        .collect();
    group.sort_by(|(one, _), (other, _)| one.cmp(other));
    let (active, inactive): (Vec<_>, Vec<_>) = group.into_iter().partition(|(_, row)| !row.active.is_false());
    seen.inactive = inactive.len();
    seen.words = active.iter().filter(|(priority, _)| matches!(priority, Priority::Word(_))).count();
    let texts: Vec<String> = active.iter().filter_map(|(_, row)| seen.text(&row.content, form)).collect();
    let text = texts.join(BLANK_LINE);
    let mut places = active.into_iter().chain(inactive).map(|(_, row)| row.at);
    let kept = places.next().unwrap_or_default();
    let others: Vec<String> = places.collect();
    let mut notes = seen.notes();
    if text.len() > TEXT_LIMIT {
        notes.push(format!("the text has {} bytes; a new one may have {TEXT_LIMIT}", text.len()));
    }
    for unusable in
        [check_name("user", &user), check_name("agent", &agent)].into_iter().filter_map(Result::err)
    {
        notes.push(format!("no command can ask for it: {unusable}"));
    }
    let report = LegacyInstructions {
        user: user.clone(),
        agent: agent.clone(),
        rows: others.len() + 1,
        joined: texts.len(),
        characters: text.chars().count(),
        notes,
    };
    Joined { user, agent, text, kept, others, report }
}

/// What was special about the rows of a group.
#[derive(Default)]
struct Seen {
    inactive: usize,
    renamed: usize,
    words: usize,
    empty: usize,
    json: usize,
    bare: usize,
    halved: usize,
    nuls: usize,
    lossy: usize,
    unreadable: usize,
}

impl Seen {
    /// The text of one row; `None` if it has none.
    fn text(&mut self, content: &Cell, form: Form) -> Option<String> {
        let Some(clean) = self.readable(content) else {
            self.empty += usize::from(*content == Cell::Null);
            return None;
        };
        let text = match (form, self.meaning(clean, form)) {
            (_, Meaning::Nothing) => {
                self.empty += 1;
                return None;
            }
            (Form::Plain, Meaning::Bare(text)) | (_, Meaning::Text(text)) => text,
            (Form::Json, Meaning::Bare(text)) => {
                self.bare += 1;
                text
            }
            (_, Meaning::Json(text)) => {
                self.json += 1;
                text
            }
            (_, Meaning::Halved(text)) => {
                self.halved += 1;
                text
            }
        };
        // An escaped NUL turns up only when the JSON string is read.
        let clean = Clean { text, nuls: 0, lossy: false }.without_nul();
        self.nuls += clean.nuls;
        Some(clean.text)
    }

    fn readable(&mut self, content: &Cell) -> Option<Clean> {
        let clean = content.clean()?;
        if clean.lossy && matches!(content, Cell::Blob(_)) {
            self.unreadable += 1;
            return None;
        }
        self.nuls += clean.nuls;
        self.lossy += usize::from(clean.lossy);
        Some(clean)
    }

    fn meaning(&self, clean: Clean, form: Form) -> Meaning {
        match form {
            Form::Json => meaning(&clean.text),
            Form::Plain if clean.text.is_empty() => Meaning::Nothing,
            Form::Plain => Meaning::Bare(clean.text),
        }
    }

    fn notes(&self) -> Vec<String> {
        [
            (self.inactive, "inactive: only in the export"),
            (self.empty, "without any text"),
            (self.json, "kept as compact JSON, not being a JSON string"),
            (self.bare, "not JSON: taken as it was"),
            (self.halved, "with half a surrogate pair: kept as JSON"),
            (self.lossy, "not UTF-8: the bad bytes became U+FFFD"),
            (self.unreadable, "of bytes that are no text: only in the export"),
            (self.words, "with a priority that is no number: put behind those that are"),
            (self.renamed, "with a name that had to be made readable"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{} {what}", rows(count)))
        .chain((self.nuls > 0).then(|| format!("{} NUL characters became U+FFFD", self.nuls)))
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(at: &str, content: &str, priority: Cell) -> OldRow {
        OldRow {
            at: at.into(),
            user: Cell::Text("ann".into()),
            agent: Cell::Text("assistant".into()),
            content: Cell::Text(content.into()),
            priority,
            active: Cell::Null,
        }
    }

    fn one(rows: Vec<OldRow>, form: Form) -> Joined {
        let mut joining = join(rows, form);
        assert_eq!(joining.joined.len(), 1);
        joining.joined.remove(0)
    }

    // spec: S-03
    #[test]
    fn the_lowest_priority_number_comes_first() {
        let joined = one(
            vec![
                row("1", "\"null\"", Cell::Null),
                row("2", "\"ten\"", Cell::Int(10)),
                row("3", "\"first two\"", Cell::Int(2)),
                row("4", "\"second two\"", Cell::Int(2)),
                row("5", "{\"b\": 1, \"a\": [ ]}", Cell::Text("-1".into())),
            ],
            Form::Json,
        );
        assert_eq!(joined.text, "{\"b\":1,\"a\":[]}\n\nfirst two\n\nsecond two\n\nten\n\nnull");
        assert_eq!(joined.kept, "5");
        assert_eq!(joined.others, ["3", "4", "2", "1"]);
        assert_eq!((joined.report.rows, joined.report.joined, joined.report.characters), (5, 5, 48));
        assert_eq!(joined.report.notes, ["1 row kept as compact JSON, not being a JSON string"]);
    }

    // spec: S-03
    #[test]
    fn rows_without_text_leave_no_trace_in_it() {
        let mut off = row("4", "\"off\"", Cell::Int(0));
        off.active = Cell::Text("false".into());
        let mut sql_null = row("5", "", Cell::Int(5));
        sql_null.content = Cell::Null;
        let joined = one(
            vec![
                off,
                row("1", "\"\"", Cell::Int(1)),
                row("2", "\"\"", Cell::Int(2)),
                row("3", "\"only\"", Cell::Int(3)),
                sql_null,
            ],
            Form::Json,
        );
        assert_eq!((joined.text.as_str(), joined.kept.as_str()), ("only", "1"));
        assert_eq!(joined.report.notes, ["1 row inactive: only in the export", "3 rows without any text"]);
    }

    #[test]
    fn what_is_odd_is_said() {
        let mut blob = row("5", "", Cell::Int(5));
        blob.content = Cell::Blob(vec![0xff, 0xfe]);
        let joined = one(
            vec![
                row("1", "bare", Cell::Int(1)),
                row("2", "\"a\\u0000b\"", Cell::Int(2)),
                row("3", "c\0d", Cell::Int(3)),
                row("4", "\"\\udc00\"", Cell::Text("soon".into())),
                blob,
            ],
            Form::Json,
        );
        assert_eq!(joined.text, "bare\n\na\u{fffd}b\n\nc\u{fffd}d\n\n\"\\udc00\"");
        assert_eq!(
            joined.report.notes,
            [
                "2 rows not JSON: taken as it was",
                "1 row with half a surrogate pair: kept as JSON",
                "1 row of bytes that are no text: only in the export",
                "1 row with a priority that is no number: put behind those that are",
                "2 NUL characters became U+FFFD",
            ]
        );
    }

    #[test]
    fn plain_texts_stay_as_they_are() {
        let joined = one(vec![row("1", "\"quoted\"", Cell::Null), row("2", "", Cell::Null)], Form::Plain);
        assert_eq!(joined.text, "\"quoted\"");
        assert_eq!(joined.report.notes, ["1 row without any text"]);
    }

    #[test]
    fn names_decide_the_group_and_a_row_needs_both() {
        let mut nobody = row("1", "\"x\"", Cell::Null);
        nobody.user = Cell::Null;
        let mut number = row("2", "\"x\"", Cell::Null);
        number.user = Cell::Int(7);
        let mut empty = row("3", "\"x\"", Cell::Null);
        empty.user = Cell::Text(String::new());
        let joining = join(vec![nobody, number, empty, row("4", "\"y\"", Cell::Null)], Form::Json);
        assert_eq!(joining.nameless, ["1"]);
        let users: Vec<&str> = joining.joined.iter().map(|joined| joined.user.as_str()).collect();
        assert_eq!(users, ["", "7", "ann"]);
        assert_eq!(joining.joined[0].report.notes, ["no command can ask for it: the user has no name"]);
    }
}
