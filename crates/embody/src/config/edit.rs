//! Changes `embody.toml` in place: adds and removes a `[[body]]`, and sets keys of a section. Every byte outside of them stays, and
//! nothing is written that does not have exactly the intended values. [`ConfigFile`] is the file, locked for a change.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use toml_edit::{Array, Document, DocumentMut, InlineTable, Item, Table, TableLike, Value};

use super::{Config, FILE_NAME, Inputs};
use crate::error::{CliError, ErrorContext};
use crate::settings::Settings;

const SECTION: &str = "body";
/// Beside the file.
const LOCK: &str = ".embody.toml.lock";

#[derive(Debug, thiserror::Error)]
pub(crate) enum EditError {
    #[error("the file is not valid TOML")]
    Invalid(#[source] toml_edit::TomlError),
    #[error("the file has no `[[body]]` of this name")]
    Missing,
    #[error("the file is written in a way that cannot be changed in place")]
    Unsupported,
}

/// What a new `[[body]]` sets. Empty values are not written.
#[derive(Debug, Default)]
pub(crate) struct NewBody {
    pub(crate) name: String,
    pub(crate) command: Vec<String>,
    pub(crate) url: Option<String>,
    pub(crate) transport: Option<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) env_vars: Vec<String>,
    pub(crate) cwd: Option<String>,
    pub(crate) token_command: Vec<String>,
}

impl NewBody {
    fn table(&self) -> Table {
        let list = |texts: &[String]| Value::Array(Array::from_iter(texts));
        let filled = |texts: &[String]| (!texts.is_empty()).then(|| list(texts));
        let text = |text: &Option<String>| text.as_ref().map(Value::from);
        let env = InlineTable::from_iter(self.env.iter().map(|(name, value)| (name, value.as_str())));
        let values = [
            ("name", Some(Value::from(&self.name))),
            ("command", filled(&self.command)),
            ("url", text(&self.url)),
            ("transport", text(&self.transport)),
            ("token_command", filled(&self.token_command)),
            ("env", (!self.env.is_empty()).then_some(Value::InlineTable(env))),
            ("env_vars", filled(&self.env_vars)),
            ("cwd", text(&self.cwd)),
        ];
        let set = values.into_iter().filter_map(|(key, value)| Some((key, value?)));
        set.map(|(key, value)| (key, Item::Value(value))).collect()
    }
}

/// The text with a new entry: at its end, or in the list of a file that writes `body = [{…}]`.
pub(crate) fn add_body(text: &str, body: &NewBody) -> Result<String, EditError> {
    let (mut expected, mut document) = (parse(text)?, parse_mut(text)?);
    let table = body.table();
    let values = table.to_string().parse::<toml::Table>().map_err(|_| EditError::Unsupported)?;
    match expected.entry(SECTION).or_insert_with(|| toml::Value::Array(Vec::new())) {
        toml::Value::Array(bodies) => bodies.push(values.into()),
        _ => return Err(EditError::Unsupported),
    }
    let changed = match document.get_mut(SECTION).and_then(Item::as_array_mut) {
        Some(list) => {
            list.push(table.into_inline_table());
            document.to_string()
        }
        None => {
            format!("{text}{}[[{SECTION}]]\n{table}", gap_after(text))
        }
    };
    checked(with_line_ends_of(text, &changed), &expected)
}

/// The text without the entry of this name.
pub(crate) fn remove_body(text: &str, name: &str) -> Result<String, EditError> {
    let mut expected = parse(text)?;
    let bodies = expected.get_mut(SECTION).and_then(toml::Value::as_array_mut).ok_or(EditError::Missing)?;
    let is_it = |body: &toml::Value| body.get("name").and_then(toml::Value::as_str) == Some(name);
    let index = bodies.iter().position(is_it).ok_or(EditError::Missing)?;
    bodies.remove(index);
    let is_empty = bodies.is_empty();
    let mut document = parse_mut(text)?;
    if let Some(list) = document.get_mut(SECTION).and_then(Item::as_array_mut) {
        list.remove(index);
        return checked(with_line_ends_of(text, &document.to_string()), &expected);
    }
    if is_empty {
        expected.remove(SECTION);
    }
    let spans = Document::parse(text).map_err(EditError::Invalid)?;
    let entry = spans.get(SECTION).and_then(Item::as_array_of_tables).and_then(|all| all.get(index));
    let mut ranges = Vec::new();
    table_ranges(entry.ok_or(EditError::Unsupported)?, &mut ranges);
    ranges.sort_unstable_by_key(|range| std::cmp::Reverse(range.start));
    let mut changed = text.to_owned();
    for range in ranges {
        let lines = whole_lines(&changed, range).ok_or(EditError::Unsupported)?;
        changed.replace_range(lines, "");
    }
    checked(changed, &expected)
}

/// A key of a section, and its new value; without one the key is removed.
pub(crate) type NewValue<'a> = (&'a str, Option<toml::Value>);

/// The text with these keys in a section, which is added at the end if it is missing.
pub(crate) fn set_keys(text: &str, section: &str, values: &[NewValue<'_>]) -> Result<String, EditError> {
    let mut expected = parse(text)?;
    let table = expected.entry(section).or_insert_with(|| toml::Value::Table(toml::Table::new()));
    let table = table.as_table_mut().ok_or(EditError::Unsupported)?;
    for (key, value) in values {
        match value {
            Some(value) => table.insert((*key).to_owned(), value.clone()),
            None => table.remove(*key),
        };
    }
    let set = values.iter().filter_map(|(key, value)| Some((*key, value.as_ref()?)));
    let new: Table =
        set.clone().filter_map(|(key, value)| Some((key, Item::Value(as_edit(value)?)))).collect();
    let is_there = parse(text)?.contains_key(section);
    if !is_there {
        let changed = format!("{text}{}[{section}]\n{new}", gap_after(text));
        return checked(with_line_ends_of(text, &changed), &expected);
    }
    let removed: Vec<&str> =
        values.iter().filter(|(_, value)| value.is_none()).map(|(key, _)| *key).collect();
    let mut document = parse_mut(&without_keys(text, section, &removed)?)?;
    let table = document.get_mut(section).and_then(Item::as_table_like_mut).ok_or(EditError::Unsupported)?;
    for key in removed {
        table.remove(key);
    }
    for (key, mut value) in set.filter_map(|(key, value)| Some((key, as_edit(value)?))) {
        match table.get_mut(key).and_then(Item::as_value_mut) {
            Some(old) => {
                *value.decor_mut() = old.decor().clone();
                *old = value;
            }
            None => {
                table.insert(key, Item::Value(value));
            }
        }
    }
    checked(with_line_ends_of(text, &document.to_string()), &expected)
}

fn as_edit(value: &toml::Value) -> Option<Value> {
    value.to_string().parse().ok()
}

/// The text without the lines of these keys, if they have lines of their own: comments around them stay.
fn without_keys(text: &str, section: &str, keys: &[&str]) -> Result<String, EditError> {
    let spans = Document::parse(text).map_err(EditError::Invalid)?;
    let Some(table) = spans.get(section).and_then(Item::as_table).filter(|table| !table.is_dotted()) else {
        return Ok(text.to_owned());
    };
    let range = |key: &&str| {
        let (name, item) = table.get_key_value(key)?;
        Some(name.span()?.start..item.span()?.end)
    };
    let mut ranges: Vec<Range<usize>> = keys.iter().filter_map(range).collect();
    ranges.sort_unstable_by_key(|range| std::cmp::Reverse(range.start));
    let mut changed = text.to_owned();
    for range in ranges {
        let start = changed.get(..range.start).and_then(|before| before.rfind('\n')).map_or(0, |end| end + 1);
        let rest = changed.get(range.end..).ok_or(EditError::Unsupported)?;
        let end = range.end + rest.find('\n').map_or(rest.len(), |end| end + 1);
        changed.replace_range(start..end, "");
    }
    Ok(changed)
}

/// What separates a new section from the text before it.
fn gap_after(text: &str) -> &'static str {
    match text {
        "" => "",
        text if text.ends_with('\n') => "\n",
        _ => "\n\n",
    }
}

/// The header with its keys, and the same for every table below it, which may be elsewhere in the file.
fn table_ranges(table: &Table, ranges: &mut Vec<Range<usize>>) {
    let mut end = table.span().map(|header| header.end);
    for (_, item) in table.iter() {
        match item {
            Item::Table(below) if !below.is_dotted() => table_ranges(below, ranges),
            Item::ArrayOfTables(list) => list.iter().for_each(|below| table_ranges(below, ranges)),
            Item::Table(dotted) => end = end.max(values_end(dotted)),
            Item::Value(_) | Item::None => end = end.max(item.span().map(|span| span.end)),
        }
    }
    ranges.extend(table.span().zip(end).map(|(header, end)| header.start..end));
}

/// Where the last value of a table of dotted keys ends.
fn values_end(table: &dyn TableLike) -> Option<usize> {
    let ends = table.iter().filter_map(|(_, item)| match item.as_table_like() {
        Some(below) => values_end(below).max(item.span().map(|span| span.end)),
        None => item.span().map(|span| span.end),
    });
    ends.max()
}

/// The lines of a range, and one of two blank lines that would meet without them.
fn whole_lines(text: &str, range: Range<usize>) -> Option<Range<usize>> {
    let before = text.get(..range.start)?;
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    let rest = text.get(range.end..)?;
    let end = range.end + rest.find('\n').map_or(rest.len(), |end| end + 1);
    let after = text.get(end..)?;
    let above = before.get(..start)?;
    let line_above = above.strip_suffix('\n').map(|above| above.rfind('\n').map_or(0, |end| end + 1));
    let is_blank_below = after.lines().next().is_none_or(|line| line.trim().is_empty());
    let blank = line_above
        .filter(|at| is_blank_below && text.get(*at..start).is_some_and(|line| line.trim().is_empty()));
    Some(blank.unwrap_or(start)..end)
}

fn parse(text: &str) -> Result<toml::Table, EditError> {
    parse_mut(text)?;
    text.parse().map_err(|_| EditError::Unsupported)
}

fn parse_mut(text: &str) -> Result<DocumentMut, EditError> {
    text.parse().map_err(EditError::Invalid)
}

/// The text if it has these values and no others.
fn checked(text: String, expected: &toml::Table) -> Result<String, EditError> {
    let has_values = text.parse::<toml::Table>().is_ok_and(|values| values == *expected);
    if has_values { Ok(text) } else { Err(EditError::Unsupported) }
}

/// With CRLF line ends if the old text has them.
pub(super) fn with_line_ends_of(old: &str, new: &str) -> String {
    match old.contains("\r\n") {
        true => new.replace("\r\n", "\n").replace('\n', "\r\n"),
        false => new.to_owned(),
    }
}

/// The configuration file, which may not exist yet. Locked against other changes until it is dropped.
pub(crate) struct ConfigFile {
    path: PathBuf,
    pub(crate) text: String,
    _lock: File,
}

impl ConfigFile {
    pub(crate) fn lock(settings: &Settings) -> Result<Self, CliError> {
        let is_new = settings.config.file.is_none();
        let path = settings.config.file.clone().unwrap_or_else(|| settings.workspace.join(FILE_NAME));
        let shown = path.display();
        let lock = lock(&path).context(format!("`{shown}` cannot be locked"))?;
        let text = match fs::read_to_string(&path) {
            Err(error) if is_new && error.kind() == ErrorKind::NotFound => String::new(),
            read => read.context(format!("`{shown}` cannot be read"))?,
        };
        Ok(Self { path, text, _lock: lock })
    }

    pub(crate) fn shown(&self) -> String {
        self.path.display().to_string()
    }

    pub(crate) fn error(&self, error: &EditError) -> CliError {
        let failure = CliError::usage(format!("`{}` was not changed", self.shown())).caused_by(error);
        match error {
            EditError::Unsupported => failure.hint("change it in an editor"),
            EditError::Invalid(_) | EditError::Missing => failure.hint("run `embody config check`"),
        }
    }

    /// The configuration with this text in the file.
    pub(crate) fn config(&self, text: &str, inputs: Inputs) -> Result<Config, CliError> {
        Ok(Config::load_text(self.path.clone(), text.to_owned(), inputs)?)
    }

    /// Writes the text if it is valid, and returns the configuration with it.
    pub(crate) fn write(&self, text: &str, inputs: Inputs) -> Result<Config, CliError> {
        let config = self.config(text, inputs)?;
        replace(&self.path, text).context(format!("`{}` could not be changed", self.shown()))?;
        Ok(config)
    }
}

/// Locks a configuration file against other processes that change it, until the returned file is dropped. Creates its folder.
pub(crate) fn lock(path: &Path) -> io::Result<File> {
    let path = target(path)?;
    if let Some(folder) = path.parent() {
        // A workspace is private.
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let lock = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path.with_file_name(LOCK))?;
    lock.lock()?;
    Ok(lock)
}

/// Creates a file or replaces its content; a configuration under its [`lock`]. Keeps its mode; a link stays a link, and a crash leaves the old file
/// or the new one.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let path = target(path)?;
    let mode = match fs::metadata(&path) {
        Ok(metadata) => Some(metadata.permissions()),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    replace_with(&path, text, mode)
}

/// The same for a file that only its owner may read, whatever its mode was. It is never there with another mode.
pub(crate) fn replace_private(path: &Path, text: &str) -> io::Result<()> {
    replace_with(&target(path)?, text, None)
}

fn replace_with(path: &Path, text: &str, mode: Option<Permissions>) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().display();
    let temporary = path.with_file_name(format!(".{name}.new"));
    let written = write(&temporary, text, mode).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written?;
    // The change is visible already, and some file systems cannot sync a folder.
    let _ = path.parent().map(|folder| File::open(folder).and_then(|folder| folder.sync_all()));
    Ok(())
}

/// Writes a file completely, with this mode; without one it is private.
fn write(path: &Path, text: &str, mode: Option<Permissions>) -> io::Result<()> {
    // A crash may have left it.
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    if let Some(mode) = mode {
        file.set_permissions(mode)?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// The path without links; a path that does not exist stays as it is.
fn target(path: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(path.to_owned()),
        path => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(name: &str) -> NewBody {
        let command = vec!["sh".to_owned(), "-c".to_owned(), "echo \"hi\" \\ ü".to_owned()];
        NewBody { name: name.to_owned(), command, ..NewBody::default() }
    }

    const ENTRY: &str = "[[body]]\nname = \"a\"\ncommand = [\"sh\", \"-c\", 'echo \"hi\" \\ ü']\n";

    #[test]
    fn an_entry_is_added_at_the_end_and_nothing_else_changes() {
        for (text, gap) in [
            ("", ""),
            ("[log]\nlevel = \"info\"", "\n\n"),
            ("# only a comment\n", "\n"),
            ("[[body]]\nname = \"b\"\nurl = \"http://h/mcp\" # why\n# the end\n", "\n"),
            (super::super::TEMPLATE, "\n"),
        ] {
            let added = add_body(text, &body("a")).unwrap();
            assert_eq!(added, format!("{text}{gap}{ENTRY}"));
            let removed = remove_body(&added, "a").unwrap();
            assert_eq!(removed.trim_end(), text.trim_end());
        }
        let crlf = add_body("[log]\r\nlevel = \"info\"\r\n", &body("a")).unwrap();
        assert_eq!(crlf.matches('\n').count(), crlf.matches("\r\n").count(), "{crlf:?}");
        let inline = "body = [{ name = \"b\", command = [\"x\"] }] # all\n[log]\n";
        let added = add_body(inline, &body("a")).unwrap();
        assert!(added.starts_with("body = [{ name = \"b\", command = [\"x\"] }, { name = \"a\""), "{added}");
        assert!(added.ends_with("}] # all\n[log]\n"), "{added}");
    }

    #[test]
    fn all_values_are_written() {
        let new = NewBody {
            name: "far".to_owned(),
            url: Some("https://h/mcp".to_owned()),
            transport: Some("sse".to_owned()),
            env: vec![("A".to_owned(), "1 = \"x\"".to_owned())],
            env_vars: vec!["KEY".to_owned()],
            cwd: Some("/srv".to_owned()),
            token_command: vec!["pass".to_owned(), "show".to_owned()],
            ..NewBody::default()
        };
        let text = add_body("", &new).unwrap();
        assert_eq!(
            text,
            "[[body]]\nname = \"far\"\nurl = \"https://h/mcp\"\ntransport = \"sse\"\n\
             token_command = [\"pass\", \"show\"]\nenv = { A = '1 = \"x\"' }\nenv_vars = [\"KEY\"]\ncwd = \"/srv\"\n"
        );
    }

    #[test]
    fn an_entry_is_removed_with_its_tables_and_the_comments_around_it_stay() {
        for (text, left) in [
            (
                "# first\n[[body]]\nname = \"a\"\nurl = \"x\" # mine\n# after\n\n[log] # l\nlevel = 'info'\n",
                "# first\n# after\n\n[log] # l\nlevel = 'info'\n",
            ),
            (
                "[[body]]\nname = \"b\"\n\n# of a\n[[body]]\nname = \"a\"\ncommand = [\n  \"x\", # c\n]\n\n[[body]]\nname = \"c\"\n",
                "[[body]]\nname = \"b\"\n\n# of a\n\n[[body]]\nname = \"c\"\n",
            ),
            (
                "[[body]]\nname = \"a\"\n[body.env]\nX = \"[[body]]\"\n[log]\nlevel = \"info\"\n",
                "[log]\nlevel = \"info\"\n",
            ),
            (
                "[[body]]\nname = \"a\"\n\n[log]\nlevel = \"info\"\n\n[body.env]\nX = \"1\"\n",
                "\n[log]\nlevel = \"info\"\n",
            ),
            ("[[body]]\nname = \"a\"\nenv.X = \"1\"\nenv.Y = \"2\"\n[log]\n", "[log]\n"),
            ("body = [{ name = \"b\" }, { name = \"a\" }] # x\n", "body = [{ name = \"b\" }] # x\n"),
            ("[[ body ]] # x\nname = '''\na'''\n", "[[ body ]] # x\nname = '''\na'''\n"),
        ] {
            match remove_body(text, if text.contains("'''") { "\na" } else { "a" }) {
                Ok(changed) => assert_eq!(changed, left, "{text}"),
                Err(error) => assert!(matches!(error, EditError::Missing) && text == left, "{text}: {error}"),
            }
        }
    }

    #[test]
    fn keys_are_set_in_place_and_everything_else_stays() {
        let values = [("url", Some("x".into())), ("old", None), ("n", Some(false.into()))];
        for (text, expected) in [
            ("", "[s]\nurl = \"x\"\nn = false\n"),
            ("[log]\nlevel = 'info'", "[log]\nlevel = 'info'\n\n[s]\nurl = \"x\"\nn = false\n"),
            ("# a\n[s] # b\n\n# c\n[log]\n", "# a\n[s] # b\nurl = \"x\"\nn = false\n\n# c\n[log]\n"),
            (
                "[s]\n# a\nurl   =  'y' # b\n# c\nold = 1 # d\n# e\nn=true\n",
                "[s]\n# a\nurl   =  \"x\" # b\n# c\n# e\nn=false\n",
            ),
            ("[s]\nold = [\n 1, # a\n]\nurl = \"x\"", "[s]\nurl = \"x\"\nn = false\n"),
            ("s = { url = \"y\", old = 1 } # a\n[log]\n", "s = { url = \"x\", n = false } # a\n[log]\n"),
            ("s.old = 1 # a\ns.n = true # b\n", "s.n = false # b\ns.url = \"x\"\n"),
        ] {
            assert_eq!(set_keys(text, "s", &values).unwrap(), expected, "{text}");
        }
        let crlf = set_keys("[s]\r\nold = 1\r\n", "s", &values).unwrap();
        assert_eq!(crlf, "[s]\r\nurl = \"x\"\r\nn = false\r\n");
        for text in ["s = 1\n", "[[s]]\nurl = 'y'\n"] {
            assert!(matches!(set_keys(text, "s", &values), Err(EditError::Unsupported)), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_changed_is_said() {
        assert!(matches!(add_body("[log\n", &body("a")), Err(EditError::Invalid(_))));
        assert!(matches!(add_body("[body]\nname = 1\n", &body("a")), Err(EditError::Unsupported)));
        assert!(matches!(remove_body("", "a"), Err(EditError::Missing)));
        assert!(matches!(remove_body("[[body]]\nname = \"b\"\n", "a"), Err(EditError::Missing)));
    }
}
