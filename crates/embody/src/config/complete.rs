//! Adds the keys that `init` sets in a new workspace to an `embody.toml` that lacks them. Changes no value, and keeps comments and
//! order.

use std::path::Path;
use std::{fs, io};

use toml_edit::{DocumentMut, Item, Table};

use super::{TEMPLATE, edit};

/// Returns the names of the added keys. Leaves a file alone that is not valid TOML, which `config check` reports.
pub(crate) fn add_missing_keys(path: &Path) -> io::Result<Vec<String>> {
    if read_completed(path)?.is_none() {
        return Ok(Vec::new());
    }
    let _lock = edit::lock(path)?;
    let Some((completed, keys)) = read_completed(path)? else { return Ok(Vec::new()) };
    edit::replace(path, &completed).map(|()| keys)
}

fn read_completed(path: &Path) -> io::Result<Option<(String, Vec<String>)>> {
    let bytes = fs::read(path)?;
    Ok(String::from_utf8(bytes).ok().and_then(|text| complete(&text)))
}

/// The text with the missing keys, and their names; `None` if it lacks none or cannot be extended.
fn complete(text: &str) -> Option<(String, Vec<String>)> {
    let template: DocumentMut = TEMPLATE.parse().ok()?;
    let mut document: DocumentMut = text.parse().ok()?;
    let mut added = Vec::new();
    for (section, keys) in template.iter().filter_map(|(name, item)| Some((name, item.as_table()?))) {
        let is_inline = document.get(section).is_some_and(Item::is_inline_table);
        let target = document.entry(section).or_insert_with(|| Item::Table(Table::new()));
        let Some(target) = target.as_table_like_mut() else { continue };
        for (key, item) in keys.iter().filter_map(|(key, item)| Some((key, item.as_value()?))) {
            if target.contains_key(key) {
                continue;
            }
            let mut value = item.clone();
            if is_inline {
                // A comment would end the line before the table does.
                value.decor_mut().clear();
            }
            target.insert(key, Item::Value(value));
            added.push(format!("{section}.{key}"));
        }
        if let Some(table) = document.get_mut(section).and_then(Item::as_table_mut) {
            table.set_implicit(false);
        }
    }
    let completed = edit::with_line_ends_of(text, &document.to_string());
    (!added.is_empty()).then_some((completed, added))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRESH: &str = "fresh_last = true                       # what changes every turn goes last, so that more can be cached\n";
    const EXTRA: &str = "extra_sections = [\"user\", \"workspace_files\", \"skills\"] # what USER.md, AGENTS.md, TOOLS.md and skills/ say\n";
    const LAYOUT: &str = "layout = \"channel\"                      # body, full, tagged or channel\n";

    #[test]
    fn missing_keys_are_added_below_their_heading_and_everything_else_stays() {
        for (text, expected) in [
            (String::new(), format!("[prompt]\n{LAYOUT}{FRESH}{EXTRA}")),
            (
                "# mine\n[model]\nmodel = 'm' # why\n".to_owned(),
                format!("# mine\n[model]\nmodel = 'm' # why\n\n[prompt]\n{LAYOUT}{FRESH}{EXTRA}"),
            ),
            (
                "# a\n[prompt] # b\n\nlayout  =  \"full\" # c\n# d\n\n# e\n[log]\nlevel = 'info'\n# f\n"
                    .to_owned(),
                format!(
                    "# a\n[prompt] # b\n\nlayout  =  \"full\" # c\n{FRESH}{EXTRA}# d\n\n# e\n[log]\nlevel = 'info'\n# f\n"
                ),
            ),
            (
                "prompt = { layout = 'full' } # x\n".to_owned(),
                "prompt = { layout = 'full' , fresh_last = true, extra_sections = [\"user\", \"workspace_files\", \"skills\"] } # x\n".to_owned(),
            ),
        ] {
            assert_eq!(complete(&text).unwrap().0, expected, "{text}");
        }
    }

    /// The values of a file with every key that was added removed again.
    fn values(text: &str, added: &[String]) -> toml::Table {
        let mut table: toml::Table = text.parse().unwrap();
        for key in added.iter().filter_map(|key| key.strip_prefix("prompt.")) {
            table["prompt"].as_table_mut().unwrap().remove(key).unwrap();
        }
        table
    }

    #[test]
    fn no_value_changes_in_any_form_of_the_file() {
        for (text, keys) in [
            ("[prompt]\nlayout = \"body\"\n", &["prompt.fresh_last", "prompt.extra_sections"][..]),
            ("[prompt]\nfresh_last = false", &["prompt.layout", "prompt.extra_sections"]),
            (
                "prompt.layout = \"full\"\n[log]\nlevel = \"warn\"\n",
                &["prompt.fresh_last", "prompt.extra_sections"],
            ),
            (
                "[prompt.sections]\nsoul = 8\n[[body]]\nname = \"a\"\n",
                &["prompt.layout", "prompt.fresh_last", "prompt.extra_sections"],
            ),
            ("[prompt]\r\nlayout = \"full\"\r\n", &["prompt.fresh_last", "prompt.extra_sections"]),
        ] {
            let (completed, added) = complete(text).unwrap();
            assert_eq!(added, keys, "{text}");
            let mut before: toml::Table = text.parse().unwrap();
            before.entry("prompt").or_insert_with(|| toml::Table::new().into());
            assert_eq!(values(&completed, &added), before, "{completed}");
            assert_eq!(completed.matches("\r\n").count() > 0, text.contains('\r'), "{completed}");
            assert_eq!(complete(&completed).map(|(_, added)| added), None, "{completed}");
        }
    }

    #[test]
    fn complete_and_invalid_files_are_left_alone() {
        for text in [TEMPLATE, "[prompt\n", "prompt = 3\n", "[[prompt]]\n"] {
            assert!(complete(text).is_none(), "{text}");
        }
    }
}
