//! Named lists in a data file: `[name]`, and below it entries that end with a comma or with their line. A line that begins with
//! `# ` is a comment.

use std::collections::HashMap;

#[derive(Debug, Default)]
pub struct Lists(HashMap<&'static str, Vec<&'static str>>);

impl Lists {
    #[must_use]
    pub fn parse(file: &'static str) -> Self {
        let mut lists: HashMap<&str, Vec<&str>> = HashMap::new();
        let mut name = "";
        for line in file.lines().map(str::trim).filter(|line| !line.starts_with("# ")) {
            match line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                Some(heading) => name = heading,
                None => {
                    let entries = line.split(',').map(str::trim).filter(|entry| !entry.is_empty());
                    lists.entry(name).or_default().extend(entries);
                }
            }
        }
        Self(lists)
    }

    /// The entries of this list; none if there is no such list.
    #[must_use]
    pub fn get(&self, name: &str) -> &[&'static str] {
        self.0.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    #[must_use]
    pub fn has(&self, name: &str, entry: &str) -> bool {
        self.get(name).contains(&entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_stand_below_their_name() {
        let lists = Lists::parse("# Comment, not an entry.\n[small words]\na, of the\n\nor,\n[marks]\n#x\n");
        assert_eq!(lists.get("small words"), ["a", "of the", "or"]);
        assert!(lists.has("marks", "#x") && !lists.has("marks", "a") && lists.get("x").is_empty());
    }
}
