//! What was read before is not read again: the rules of texts, kept within bounds. It changes no answer, only the time that
//! one takes: reading a text is pure.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use jiff::civil::DateTime;

use super::parse::rules;
use super::rule::Rule;
use super::words::sentences;

/// So much text is kept; then all of it is dropped.
const KEPT_BYTES: usize = 4 * 1024 * 1024;
/// What a text costs besides its own length.
const EACH_BYTES: usize = 512;

/// The sentences of a text that are rules.
pub(super) type Ruled = Arc<[(String, Vec<Rule>)]>;

#[derive(Default)]
struct Known {
    texts: HashMap<String, Vec<(DateTime, Ruled)>>,
    bytes: usize,
}

static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);

/// The rules of a text that was said at a time.
pub(super) fn ruled(text: &str, said: DateTime) -> Ruled {
    let kept = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let same = kept.texts.get(text).and_then(|kept| kept.iter().find(|(at, _)| *at == said));
    if let Some((_, ruled)) = same {
        return Arc::clone(ruled);
    }
    drop(kept);
    let read = sentences(text).into_iter().map(|sentence| (sentence.to_owned(), rules(sentence, said)));
    let ruled: Ruled = read.filter(|(_, rules)| !rules.is_empty()).collect();
    let mut kept = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    kept.bytes += text.len() + EACH_BYTES;
    if kept.bytes > KEPT_BYTES {
        *kept = Known { bytes: text.len() + EACH_BYTES, ..Known::default() };
    }
    kept.texts.entry(text.to_owned()).or_default().push((said, Arc::clone(&ruled)));
    ruled
}
