//! Generates the reference page of the configuration from the table of keys. All prose comes from `raw`, so that the page and
//! the program agree.

use super::env;
use super::keys::{self, Field, Shape};

/// The page `docs/config.md`: one table per section.
pub(crate) fn reference_markdown() -> String {
    let mut page = String::from(INTRODUCTION);
    for section in keys::root().fields() {
        let item = match &section.shape {
            Shape::List { item, .. } => item.as_ref(),
            table => table,
        };
        push_section(&mut page, &[&section.name], section, item, matches!(section.shape, Shape::List { .. }));
    }
    page
}

const INTRODUCTION: &str = "\
# Configuration

<!-- Generated from the program. Do not edit by hand. -->

`embody` reads `embody.toml` in its workspace, or the file that `--config` names. Every key is optional.
A flag on the command line wins over the environment, the environment over the file, the file over the default.

- `embody config show` prints every key in force and where it comes from.
- `embody config check` tells everything that is wrong, with file and line.
- `embody config schema` prints a JSON Schema for editors.

A variable's value is taken as it is for keys that hold text; anything else is read as TOML, as in
`EMBODY_TELEGRAM__ALLOW_USERS='[1, 2]'`. Entries of a list are counted from 0, as in `EMBODY_BODY__0__NAME`.
`PERSONA_SATI_MCP_URL` and `PERSONA_SATI_MCP_TOKEN_COMMAND` (split as shell words) set `persona.url` and
`persona.token_command`; they win over the file and give way to `EMBODY_PERSONA__…`. In the same way
`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_EXPORTER_OTLP_HEADERS` and `OTEL_SERVICE_NAME` set `[telemetry]`. `HTTPS_PROXY`,
`HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` are no keys, and hold as [elsewhere](proxies.md).
";

fn push_section(page: &mut String, path: &[&str], section: &Field, table: &Shape, list: bool) {
    let name = path.join(".");
    let heading = if list { format!("[[{name}]]") } else { format!("[{name}]") };
    page.push_str(&format!("\n## `{heading}`\n\n{}\n\n", section.description));
    page.push_str("| key | type | default | what it is | variable |\n|---|---|---|---|---|\n");
    let mut nested = Vec::new();
    for field in table.fields() {
        match &field.shape {
            Shape::List { item, .. } if matches!(**item, Shape::Table(_)) => {
                nested.push((field, item.as_ref()))
            }
            _ => page.push_str(&row(path, field, list)),
        }
    }
    for (field, item) in nested {
        let path: Vec<&str> = path.iter().copied().chain([field.name.as_str()]).collect();
        push_section(page, &path, field, item, true);
    }
}

fn row(path: &[&str], field: &Field, list: bool) -> String {
    let default = field.default.as_ref().map_or_else(String::new, |value| format!("`{value}`"));
    let index = list.then_some("N");
    let below = matches!(field.shape, Shape::Map { .. }).then_some("NAME");
    let parts = path.iter().copied().chain(index).chain([field.name.as_str()]).chain(below);
    let cells = [
        format!("`{}`", field.name),
        kind(&field.shape),
        default,
        field.description.clone(),
        format!("`{}`", env::variable(parts)),
    ];
    format!("| {} |\n", cells.map(|cell| cell.replace('|', "\\|")).join(" | "))
}

fn kind(shape: &Shape) -> String {
    match shape {
        Shape::Text(_) => "text".to_owned(),
        Shape::Choice(words) => words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "),
        Shape::ChoiceOrTexts { words, .. } => {
            let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
            format!("{}, or list of text", words.join(", "))
        }
        Shape::Word => "text or boolean".to_owned(),
        Shape::Boolean => "boolean".to_owned(),
        Shape::Integer { min: i64::MIN, max: i64::MAX } => "integer".to_owned(),
        Shape::Integer { min, max } => format!("integer, {min} to {max}"),
        Shape::List { item, .. } => format!("list of {}", kind(item)),
        Shape::Table(_) => "table".to_owned(),
        Shape::Map { names: None, value } => format!("table of {}", kind(value)),
        Shape::Map { names: Some(names), value } => {
            format!("table of {}; keys: {}", kind(value), names.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_a_row_for_each_kind_of_key() {
        let page = reference_markdown();
        for row in [
            "| `layout` | `body`, `full`, `tagged`, `channel` | `\"channel\"` | ",
            "| `EMBODY_PROMPT__LAYOUT` |",
            "| `EMBODY_BODY__N__ENV__NAME` |",
            "## `[[policy.rule]]`",
            "| `EMBODY_POLICY__RULE__N__GATE` |",
            "integer, 200 to 10000000 | `12000` |",
        ] {
            assert!(page.contains(row), "{row}\n{page}");
        }
        for line in page.lines().filter(|line| line.starts_with('|')) {
            assert_eq!(line.replace("\\|", "").matches('|').count(), 6, "{line}");
        }
    }
}
