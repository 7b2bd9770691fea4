//! Request ids: a JSON number or string, kept exactly as written.
//!
//! Two ids are equal if they are the same string after unescaping, or the same number text: `1` and `1.0` differ.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde_json::Value;

#[derive(Clone)]
pub struct Id {
    json: Arc<str>,
    /// Present only when the text has escapes, so that the usual id needs one allocation.
    unescaped: Option<Box<str>>,
}

impl Id {
    /// The id as on the wire, including quotes.
    #[must_use]
    pub fn as_json(&self) -> &str {
        &self.json
    }

    /// Parses the JSON text of an id; `None` when it is neither a number nor a string.
    pub(crate) fn from_json(json: &str) -> Option<Self> {
        match json.as_bytes().first()? {
            b'"' if json.contains('\\') => {
                let unescaped: String = serde_json::from_str(json).ok()?;
                Some(Self { json: json.into(), unescaped: Some(unescaped.into()) })
            }
            b'"' | b'-' | b'0'..=b'9' => Some(Self { json: json.into(), unescaped: None }),
            _ => None,
        }
    }

    fn key(&self) -> (bool, &str) {
        let quoted = self.json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        match (&self.unescaped, quoted) {
            (Some(text), _) => (true, text),
            (None, Some(text)) => (true, text),
            (None, None) => (false, &self.json),
        }
    }
}

impl From<u64> for Id {
    fn from(number: u64) -> Self {
        Self { json: number.to_string().into(), unescaped: None }
    }
}

impl From<&str> for Id {
    fn from(text: &str) -> Self {
        let json = Value::from(text).to_string();
        let unescaped = json.contains('\\').then(|| text.into());
        Self { json: json.into(), unescaped }
    }
}

impl PartialEq for Id {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Id {}

impl Hash for Id {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Id({})", self.json)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.json)
    }
}
