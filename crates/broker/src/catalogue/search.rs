//! Ranks tools by their names, argument names, titles and descriptions. Terms are built as for memories and weighted by
//! rarity and field (BM25 over fields). Pure: the same query returns the same tools in the same order.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use embody_store::memories::{TextTerm, text_terms};
use serde_json::Value;

use super::{CatalogTool, Catalogue};

/// How quickly repeated mentions lose weight.
const SATURATION: f64 = 1.2;
const SYNONYM_WEIGHT: f64 = 0.4;
/// The weight of a stop word in a name: `turn_on`, `list_all`.
const FILLER_WEIGHT: f64 = 0.3;
/// Tools below this share of the best score are not matches.
const MIN_SCORE_SHARE: f64 = 0.25;
const WORDS_MAX: usize = 32;
/// Characters of each text of a definition that are indexed.
const TEXT_MAX: usize = 4_000;
/// Arguments of a tool that are indexed.
const ARGUMENTS_MAX: usize = 100;

/// The fields, with their weight and length normalization.
const FIELDS: [Field; FIELD_COUNT] = [
    Field { weight: 4.0, length: 0.3 }, // name
    Field { weight: 2.0, length: 0.3 }, // title
    Field { weight: 1.5, length: 0.0 }, // server
    Field { weight: 1.0, length: 0.6 }, // description
    Field { weight: 0.6, length: 0.6 }, // arguments
];
const FIELD_COUNT: usize = 5;
const NAME: usize = 0;

struct Field {
    weight: f64,
    length: f64,
}

/// Words that people and servers use for the same thing.
const SYNONYMS: &str = "\
    create add new make insert register compose draft
    delete remove drop erase destroy discard
    update edit change modify set alter revise
    get read fetch show view retrieve open display load
    list enumerate browse
    search find query lookup
    send post deliver submit
    start run execute launch trigger begin
    stop cancel abort halt end terminate
    copy duplicate clone
    move rename transfer
    close finish complete resolve
    email mail
    image picture photo
    ticket issue bug
    folder directory
    document doc page
    repository repo
    meeting event appointment
    person people user member contact
    pay charge
    customer client
    branch fork";

#[derive(Debug)]
pub struct SearchResult<'a> {
    pub tools: Vec<&'a CatalogTool>,
    pub matched: usize,
    pub searched: usize,
}

#[derive(Debug)]
pub(super) struct Index {
    /// By word: the position of each tool that has it, and the weight from 0 to 1.
    postings: HashMap<i64, Vec<(u32, f64)>>,
    tools: usize,
}

impl Catalogue {
    /// The best matches, at most this many, without quarantined tools.
    pub fn find(&self, query: &str, limit: usize) -> SearchResult<'_> {
        let tools: Vec<&CatalogTool> = self.listed().collect();
        let mut ranked = self.index(&tools).rank(query);
        let bar = ranked.iter().map(|(_, score)| *score).fold(0.0, f64::max) * MIN_SCORE_SHARE;
        ranked.retain(|(_, score)| *score >= bar);
        // An exact name returns its tool, whatever the words match.
        let asked = query.trim();
        let by_name = self.by_name(asked);
        let is_named = |tool: &&CatalogTool| {
            by_name.is_some_and(|named| std::ptr::eq(named, *tool))
                || [&tool.name, &tool.tool].iter().any(|name| name.eq_ignore_ascii_case(asked))
        };
        let named: HashSet<usize> =
            (0..).zip(&tools).filter(|(_, tool)| is_named(tool)).map(|(position, _)| position).collect();
        ranked.retain(|(position, _)| !named.contains(position));
        ranked.extend(named.iter().map(|position| (*position, f64::MAX)));
        // Ties keep the catalogue's order.
        ranked.sort_by(|(position, score), (other, other_score)| {
            other_score.total_cmp(score).then(position.cmp(other))
        });
        let best = ranked.iter().take(limit).filter_map(|(position, _)| tools.get(*position).copied());
        SearchResult { tools: best.collect(), matched: ranked.len(), searched: tools.len() }
    }

    pub(crate) fn is_indexed(&self) -> bool {
        self.tools.index.get().is_some()
    }

    /// Builds the index, which takes a while for many tools.
    pub(crate) fn build_index(&self) {
        self.index(&self.listed().collect::<Vec<_>>());
    }

    fn index(&self, tools: &[&CatalogTool]) -> &Index {
        self.tools.index.get_or_init(|| Index::new(tools))
    }
}

impl Index {
    fn new(tools: &[&CatalogTool]) -> Self {
        let mut reader = TermReader::default();
        let read: Vec<[Vec<TextTerm>; FIELD_COUNT]> = tools.iter().map(|tool| reader.fields(tool)).collect();
        let average = |field: usize| {
            let sum: usize = read.iter().filter_map(|fields| fields.get(field)).map(Vec::len).sum();
            (sum as f64 / read.len().max(1) as f64).max(1.0)
        };
        let averages: Vec<f64> = (0..FIELD_COUNT).map(average).collect();
        let mut postings: HashMap<i64, Vec<(u32, f64)>> = HashMap::new();
        for (position, fields) in (0_u32..).zip(&read) {
            for (term, weight) in weights(fields, &averages) {
                postings.entry(term).or_default().push((position, weight / (SATURATION + weight)));
            }
        }
        Self { postings, tools: tools.len() }
    }

    fn rank(&self, query: &str) -> Vec<(usize, f64)> {
        let mut seen = HashSet::new();
        let asked = text_terms(&spaced(query)).into_iter().filter(|word| seen.insert(word.term));
        let mut scores: HashMap<u32, f64> = HashMap::new();
        let mut fillers: HashMap<u32, f64> = HashMap::new();
        for word in asked.take(WORDS_MAX) {
            let into = if word.is_filler { &mut fillers } else { &mut scores };
            for (position, score) in self.word(word) {
                *into.entry(position).or_default() += score;
            }
        }
        // Stop words only rank tools that other words have found.
        if !scores.is_empty() {
            fillers.retain(|position, _| scores.contains_key(position));
        }
        for (position, score) in fillers {
            *scores.entry(position).or_default() += score * FILLER_WEIGHT;
        }
        scores.into_iter().map(|(position, score)| (position as usize, score)).collect()
    }

    fn word(&self, word: TextTerm) -> HashMap<u32, f64> {
        let mut earned: HashMap<u32, f64> = HashMap::new();
        let synonyms = GROUPS.iter().filter(|group| group.contains(&word.term)).flatten();
        let others = synonyms.filter(|term| **term != word.term).map(|term| (*term, SYNONYM_WEIGHT));
        for (term, share) in std::iter::once((word.term, 1.0)).chain(others) {
            let Some(postings) = self.postings.get(&term) else { continue };
            let with = postings.len() as f64;
            let rarity = (1.0 + (self.tools as f64 - with + 0.5) / (with + 0.5)).ln();
            for (position, worth) in postings {
                let best = earned.entry(*position).or_default();
                *best = best.max(rarity * worth * share);
            }
        }
        earned
    }
}

fn weights(fields: &[Vec<TextTerm>; FIELD_COUNT], averages: &[f64]) -> HashMap<i64, f64> {
    let mut weights: HashMap<i64, f64> = HashMap::new();
    for (position, ((terms, field), average)) in fields.iter().zip(&FIELDS).zip(averages).enumerate() {
        let length = 1.0 - field.length + field.length * terms.len() as f64 / average;
        for word in terms.iter().filter(|word| position == NAME || !word.is_filler) {
            *weights.entry(word.term).or_default() += field.weight / length;
        }
    }
    weights
}

static GROUPS: LazyLock<Vec<Vec<i64>>> = LazyLock::new(|| {
    let terms = |line: &str| text_terms(line).into_iter().map(|word| word.term).collect();
    SYNONYMS.lines().map(terms).collect()
});

/// Tokenizes definitions. Caches each folded and stemmed word, because servers repeat the same words.
#[derive(Default)]
struct TermReader {
    known: HashMap<String, Vec<TextTerm>>,
}

impl TermReader {
    fn fields(&mut self, entry: &CatalogTool) -> [Vec<TextTerm>; FIELD_COUNT] {
        let definition: Value = serde_json::from_str(entry.definition.get()).unwrap_or_default();
        let text = |key: &str| definition.get(key).and_then(Value::as_str).unwrap_or_default();
        [
            self.terms(&entry.tool),
            self.terms(text("title")),
            self.terms(&entry.upstream),
            self.terms(text("description")),
            self.arguments(&definition),
        ]
    }

    fn arguments(&mut self, definition: &Value) -> Vec<TextTerm> {
        let properties = definition.pointer("/inputSchema/properties").and_then(Value::as_object);
        let mut terms = Vec::new();
        for (name, schema) in properties.into_iter().flatten().take(ARGUMENTS_MAX) {
            terms.extend(self.terms(name));
            let about = schema.get("description").and_then(Value::as_str);
            terms.extend(self.terms(about.unwrap_or_default()));
        }
        terms
    }

    fn terms(&mut self, text: &str) -> Vec<TextTerm> {
        let end = text.char_indices().nth(TEXT_MAX).map_or(text.len(), |(at, _)| at);
        let spaced = spaced(text.get(..end).unwrap_or_default());
        let mut terms = Vec::new();
        for word in spaced.split_whitespace() {
            if let Some(known) = self.known.get(word) {
                terms.extend(known);
                continue;
            }
            let read = text_terms(word);
            terms.extend(&read);
            self.known.insert(word.to_owned(), read);
        }
        terms
    }
}

/// Splits names into words with spaces: `getIssueByID` is four words.
fn spaced(text: &str) -> String {
    let mut spaced = String::with_capacity(text.len() + 8);
    let mut chars = text.chars().peekable();
    let mut last = ' ';
    while let Some(c) = chars.next() {
        let next_is_small = chars.peek().is_some_and(|next| next.is_lowercase());
        // Keeps the plural of an abbreviation together: `IDs`.
        let ends_there = chars.peek() == Some(&'s') && {
            let mut after = chars.clone();
            after.next();
            after.next().is_none_or(|c| !c.is_lowercase())
        };
        let starts = c.is_uppercase()
            && (last.is_lowercase()
                || last.is_numeric()
                || (last.is_uppercase() && next_is_small && !ends_there));
        if starts {
            spaced.push(' ');
        }
        spaced.push(if c == '_' { ' ' } else { c });
        last = c;
    }
    spaced
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use serde_json::value::RawValue;

    use super::super::{FirstListing, Source};
    use super::*;
    use crate::policy::Glob;
    use crate::upstream::{BodySpec, RawTool, Role};

    fn catalogue(bodies: &[(&str, &[(&str, &str)])]) -> Catalogue {
        let role = Role::Body(BodySpec { allow: vec![Glob::new("*")], ..BodySpec::default() });
        let tool = |(name, about): &(&str, &str)| {
            let schema =
                json!({"type": "object", "properties": {"recipientAddress": {"description": "whom"}}});
            let schema = if about.contains("letter") { schema } else { json!({}) };
            let text = json!({"name": name, "description": about, "inputSchema": schema}).to_string();
            RawTool { name: (*name).to_owned(), definition: RawValue::from_string(text).unwrap() }
        };
        let sources: Vec<Source<'_>> = bodies
            .iter()
            .map(|(name, tools)| {
                let tools: Arc<[RawTool]> = tools.iter().map(tool).collect();
                Source {
                    upstream: (*name).into(),
                    role: &role,
                    is_embedded: false,
                    tools,
                    is_live: true,
                    first_listing: FirstListing::BeforeSession,
                }
            })
            .collect();
        Catalogue::without_pins(&sources)
    }

    fn tool_names<'a>(catalogue: &'a Catalogue, query: &str) -> Vec<&'a str> {
        catalogue.find(query, 5).tools.iter().map(|tool| &*tool.name).collect()
    }

    fn example() -> Catalogue {
        catalogue(&[
            (
                "git",
                &[
                    ("create_issue", "Opens a new issue in a repository."),
                    ("listPullRequests", "Lists the pull requests of a repository."),
                    ("getIssueByID", "Returns one issue."),
                    ("delete_branch", "Deletes a branch for good."),
                ],
            ),
            (
                "home",
                &[
                    ("turn_on", "Switches a lamp."),
                    ("turn_off", "Switches a lamp."),
                    ("dim", "Dims a lamp, as far as it goes."),
                ],
            ),
            ("post", &[("send_letter", "Sends a letter."), ("track", "Says where a parcel is.")]),
        ])
    }

    #[test]
    fn a_tool_is_found_by_its_name_its_words_and_its_arguments() {
        let house = example();
        for (query, best) in [
            ("create an issue", "create_issue"),
            ("list pull requests", "listPullRequests"),
            ("issue by id", "getIssueByID"),
            ("removing branches", "delete_branch"),
            ("report a bug", "create_issue"),
            ("turn the lamp on", "turn_on"),
            ("turn the lamp off", "turn_off"),
            ("dimming", "dim"),
            ("recipient address", "send_letter"),
            ("where is my parcel?", "track"),
            ("git branch", "delete_branch"),
            ("LISTPULLREQUESTS", "listPullRequests"),
            ("TURN_OFF", "turn_off"),
        ] {
            assert_eq!(
                tool_names(&house, query).first(),
                Some(&best),
                "{query}: {:?}",
                tool_names(&house, query)
            );
        }
    }

    #[test]
    fn unknown_words_find_nothing_and_the_order_is_stable() {
        let house = example();
        for query in ["", "   ", "quantum chromodynamics", "!?", "\u{0}"] {
            let none = house.find(query, 5);
            assert_eq!((none.tools.len(), none.matched, none.searched), (0, 0, 9), "{query}");
        }
        let once = tool_names(&house, "lamp");
        assert_eq!(once.len(), 3, "{once:?}");
        for _ in 0..20 {
            assert_eq!(tool_names(&self::example(), "lamp"), once);
        }
        let few = house.find("lamp", 1);
        assert_eq!((few.tools.len(), few.matched), (1, 3));
        let long = "lamp ".repeat(100_000);
        assert_eq!(house.find(&long, 3).matched, 3);
    }

    #[test]
    fn names_are_taken_apart() {
        for (name, parts) in [
            ("getIssueByID", "get Issue By ID"),
            ("HTTPServerList", "HTTP Server List"),
            ("list_all-things.now", "list all-things.now"),
            ("listIDs", "list IDs"),
            ("v2Items", "v2 Items"),
            ("größeÄndern", "größe Ändern"),
            ("", ""),
        ] {
            assert_eq!(spaced(name), parts);
        }
    }
}
