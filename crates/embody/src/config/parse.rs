//! Reads the configuration file: selects it, limits its size, and parses TOML into a tree of values with line numbers.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{Problem, Report, quoted};
use super::schema::{self, Shape};
use super::tree::{Content, KeyPath, Node, Origin};
use super::{FILE_NAME, mask};

const MAX_BYTES: u64 = 1024 * 1024;

/// The path and the text of the configuration file; `None` without a file.
pub(super) type Source = Result<Option<(PathBuf, String)>, Box<Problem>>;

/// The path and the text of the given file, or else of the workspace's file if it exists.
pub(super) fn read_file(explicit: Option<PathBuf>, workspace: &Path) -> Source {
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
    Ok(Some((path, text)))
}

/// Rejects a text that [`read_file`] would not read.
pub(super) fn check_length(path: PathBuf, text: String) -> Result<(PathBuf, String), Box<Problem>> {
    match text.len() as u64 > MAX_BYTES {
        true => Err(too_large(&quoted(&path.to_string_lossy()))),
        false => Ok((path, text)),
    }
}

fn too_large(name: &str) -> Box<Problem> {
    Box::new(Problem::new(format!("the configuration file {name} is larger than {MAX_BYTES} bytes")))
}

fn text_of(path: &Path) -> Result<String, Box<Problem>> {
    let name = quoted(&path.to_string_lossy());
    let refuse = |what: &str| Box::new(Problem::new(format!("the configuration file {name} {what}")));
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
        let file = quoted(&path.join(FILE_NAME).to_string_lossy());
        return Err(Box::new(refuse("is a folder").hint(format!("name a file in it, for example {file}"))));
    }
    if !metadata.is_file() {
        return Err(refuse("is not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes)).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(too_large(&name));
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let line = 1 + error.as_bytes().iter().take(good).filter(|byte| **byte == b'\n').count();
        let problem = refuse(&format!("is not UTF-8 text: line {line} has a wrong byte"));
        Box::new(problem.hint("save the file as UTF-8"))
    })
}

/// Parses a whole file. Invalid TOML returns `None` and reports one problem per broken line.
pub(super) fn file(path: &Arc<Path>, text: &str, report: &mut Report) -> Option<Node> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        syntax_problems(path, text, &errors, report);
        return None;
    }
    let starts = line_starts(text);
    let origin_at = |offset: usize| Origin::File { path: Arc::clone(path), line: line_at(&starts, offset) };
    let content = table_content(table.get_ref(), &KeyPath::default(), &origin_at, report);
    Some(Node { origin: origin_at(0), content })
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
        DeValue::String(text) => Content::Leaf(text.as_ref().into()),
        DeValue::Boolean(flag) => Content::Leaf((*flag).into()),
        DeValue::Datetime(date) => Content::Leaf((*date).into()),
        // No key accepts a fraction, so only the type matters.
        DeValue::Float(number) => Content::Leaf(number.as_str().parse().unwrap_or(f64::NAN).into()),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Content::Leaf(number.into()),
            Err(_) => {
                let message = format!("`{path}` is {}, which is too large", quoted(number.as_str()));
                report.reject(path, Problem::new(message).at(path, &origin));
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

fn line_starts(text: &str) -> Vec<usize> {
    std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect()
}

/// The line of a byte offset, from 1.
fn line_at(starts: &[usize], offset: usize) -> usize {
    starts.partition_point(|start| *start <= offset)
}

/// A part of the file without a byte order mark.
fn without_mark(text: Option<&str>) -> &str {
    text.unwrap_or_default().trim_start_matches('\u{feff}')
}

/// The maximum number of reported broken lines: the first error often causes others.
const MAX_SYNTAX_PROBLEMS: usize = 10;

fn syntax_problems(path: &Arc<Path>, text: &str, errors: &[toml::de::Error], report: &mut Report) {
    let starts = line_starts(text);
    let mut places: Vec<(usize, usize, &str)> = errors
        .iter()
        .map(|error| {
            let offset = error.span().map_or(0, |span| span.start);
            (line_at(&starts, offset), offset, error.message())
        })
        .collect();
    places.sort_unstable();
    places.dedup_by_key(|(line, ..)| *line);
    for (line, offset, message) in places.into_iter().take(MAX_SYNTAX_PROBLEMS) {
        let start = starts.get(line - 1).copied().unwrap_or_default();
        let column = 1 + without_mark(text.get(start..offset)).chars().count();
        let written = without_mark(text.get(start..)).lines().next().unwrap_or_default();
        let problem = Problem::new(format!("invalid TOML at column {column}: {}", mask::text(message)))
            .cause(format!("line {line} reads `{}`", mask::line(written, is_plain_key)))
            .hint("texts need quotes, as in `layout = \"full\"`; sections are headed like `[prompt]`");
        report.add(Problem { origin: Some(Origin::File { path: Arc::clone(path), line }), ..problem });
    }
}

/// Whether the value of every key with this name may be printed, in any section.
fn is_plain_key(name: &str) -> bool {
    fn find(name: &str, shape: &Shape, found: &mut Vec<bool>) {
        for field in shape.fields() {
            if field.name == name {
                found.push(!field.shape.is_secret());
            }
            find(name, &field.shape, found);
        }
    }
    let mut found = Vec::new();
    find(name, schema::root(), &mut found);
    !found.is_empty() && found.into_iter().all(|plain| plain)
}
