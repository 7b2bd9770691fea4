//! Reads the configuration file: selects it, limits its size, and parses TOML into a tree of values with line numbers.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{Problem, Report, quoted};
use super::keys::{self, Shape};
use super::mask;
use super::tree::{Content, KeyPath, Node, Origin};

/// Parses a whole file. Invalid TOML returns `None` and reports one problem per broken line.
pub(super) fn file(path: &Arc<Path>, text: &str, report: &mut Report) -> Option<Node> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        syntax_problems(path, text, &errors, report);
        return None;
    }
    let lines = Lines::of(text);
    let origin_at = |offset: usize| Origin::File { path: Arc::clone(path), line: lines.at(offset).0 };
    let root = KeyPath::default();
    Some(Node { origin: origin_at(0), content: table_content(table.get_ref(), &root, &origin_at, report) })
}

/// Parses one value with a single origin. `None` if the text is not a TOML value.
pub(super) fn value(text: &str, path: &KeyPath, origin: &Origin, report: &mut Report) -> Option<Node> {
    let value = DeValue::parse(text.trim()).ok()?;
    node(&value, path, &|_| origin.clone(), report)
}

fn node(
    value: &Spanned<DeValue<'_>>,
    path: &KeyPath,
    origin_at: &dyn Fn(usize) -> Origin,
    report: &mut Report,
) -> Option<Node> {
    let origin = origin_at(value.span().start);
    let content = match value.get_ref() {
        DeValue::String(text) => Content::Leaf(toml::Value::String(text.to_string())),
        DeValue::Boolean(flag) => Content::Leaf(toml::Value::Boolean(*flag)),
        DeValue::Datetime(date) => Content::Leaf(toml::Value::Datetime(*date)),
        // No key accepts a fraction, so only the type matters.
        DeValue::Float(number) => {
            Content::Leaf(toml::Value::Float(number.as_str().parse().unwrap_or(f64::NAN)))
        }
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Content::Leaf(toml::Value::Integer(number)),
            Err(_) => {
                let message = format!("`{path}` is {}, which is too large", quoted(number.as_str()));
                report.reject(path, Problem::at(path, &origin, message));
                return None;
            }
        },
        DeValue::Array(items) => Content::List(
            (items.iter().enumerate())
                .filter_map(|(index, item)| node(item, &path.index(index), origin_at, report))
                .collect(),
        ),
        DeValue::Table(table) => table_content(table, path, origin_at, report),
    };
    Some(Node { origin, content })
}

fn table_content(
    table: &DeTable<'_>,
    path: &KeyPath,
    origin_at: &dyn Fn(usize) -> Origin,
    report: &mut Report,
) -> Content {
    let entries = table.iter().filter_map(|(key, value)| {
        let mut entry = node(value, &path.key(key.get_ref()), origin_at, report)?;
        // Use the key's line, even if the value starts further down.
        entry.origin = origin_at(key.span().start);
        Some((key.get_ref().to_string(), entry))
    });
    Content::Table(entries.collect())
}

/// The maximum number of reported broken lines: the first error often causes others.
const MAX_SYNTAX_PROBLEMS: usize = 10;

fn syntax_problems(path: &Arc<Path>, text: &str, errors: &[toml::de::Error], report: &mut Report) {
    let lines = Lines::of(text);
    let mut places: Vec<(usize, usize, &str)> = errors
        .iter()
        .map(|error| {
            let (line, column) = lines.at(error.span().map_or(0, |span| span.start));
            (line, column, error.message())
        })
        .collect();
    places.sort_unstable();
    places.dedup_by_key(|(line, ..)| *line);
    for (line, column, message) in places.into_iter().take(MAX_SYNTAX_PROBLEMS) {
        let origin = Origin::File { path: Arc::clone(path), line };
        let written = mask::line(lines.text(line), is_plain_key);
        report.add(Problem {
            origin: Some(origin),
            ..Problem::bare(format!("invalid TOML at column {column}: {}", mask::text(message)))
                .cause(format!("line {line} reads `{written}`"))
                .hint("texts need quotes, as in `layout = \"full\"`; sections are headed like `[prompt]`")
        });
    }
}

/// Whether the value of every key with this name may be printed, in any section.
fn is_plain_key(name: &str) -> bool {
    fn kinds(name: &str, shape: &Shape, found: &mut Vec<bool>) {
        for field in shape.fields() {
            if field.name == name {
                found.push(!field.shape.is_secret());
            }
            match &field.shape {
                Shape::List { item, .. } => kinds(name, item, found),
                table => kinds(name, table, found),
            }
        }
    }
    let mut found = Vec::new();
    kinds(name, keys::root(), &mut found);
    !found.is_empty() && found.into_iter().all(|plain| plain)
}

struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn of(text: &'a str) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { text, starts }
    }

    /// Line and column of a byte offset, both from 1; columns count characters.
    fn at(&self, offset: usize) -> (usize, usize) {
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = self.starts.get(line.saturating_sub(1)).copied().unwrap_or(0);
        let before = self.text.get(start..offset).unwrap_or_default();
        (line, before.trim_start_matches('\u{feff}').chars().count() + 1)
    }

    /// The text of a line, without its end.
    fn text(&self, line: usize) -> &'a str {
        let start = self.starts.get(line.saturating_sub(1)).copied().unwrap_or(0);
        let rest = self.text.get(start..).unwrap_or_default();
        rest.lines().next().unwrap_or_default().trim_start_matches('\u{feff}')
    }
}

pub(super) const MAX_BYTES: u64 = 1024 * 1024;

pub(crate) const FILE_NAME: &str = "embody.toml";

pub(super) struct Source {
    pub(super) path: PathBuf,
    pub(super) text: String,
}

/// Reads the given file, or else the workspace's file if it exists.
pub(super) fn read_file(explicit: Option<PathBuf>, workspace: &Path) -> Result<Option<Source>, Box<Problem>> {
    let path = match explicit {
        Some(path) => path,
        None => {
            let path = workspace.join(FILE_NAME);
            // A dangling link counts as present: a policy must not be lost silently.
            match fs::symlink_metadata(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                _ => path,
            }
        }
    };
    let text = text_of(&path)?;
    Ok(Some(Source { path, text }))
}

fn text_of(path: &Path) -> Result<String, Box<Problem>> {
    let name = quoted(&path.to_string_lossy());
    let refuse = |what: &str| Box::new(Problem::bare(format!("the configuration file {name} {what}")));
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => Box::new(
            refuse("does not exist")
                .hint("check the path; without `--config` the workspace's `embody.toml` is read"),
        ),
        _ => Box::new(refuse("cannot be read").cause(error.to_string())),
    };
    // Opening a pipe or a terminal could block, so check the type first.
    let metadata = fs::metadata(path).map_err(unreadable)?;
    if metadata.is_dir() {
        let hint =
            format!("name a file in it, for example {}", quoted(&path.join(FILE_NAME).to_string_lossy()));
        return Err(Box::new(refuse("is a folder").hint(hint)));
    }
    if !metadata.is_file() {
        return Err(refuse("is not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes)).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(refuse(&format!("is larger than {MAX_BYTES} bytes")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let line = 1 + error.as_bytes().iter().take(good).filter(|byte| **byte == b'\n').count();
        Box::new(
            refuse(&format!("is not UTF-8 text: line {line} has a wrong byte"))
                .hint("save the file as UTF-8"),
        )
    })
}
