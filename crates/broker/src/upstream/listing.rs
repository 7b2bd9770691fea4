//! The tools of a server, page by page. Bounded: entries beyond a limit are dropped and reported.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use embody_wire::upstream::{Link, OutgoingCall, ServerMessage};
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::mpsc;

use super::RawTool;
use super::supervisor::{into_result, request};

const PAGES_MAX: usize = 64;
const TOOLS_MAX: usize = 10_000;
const BYTES_MAX: usize = 16 * 1024 * 1024;
/// The number of shared listings; sessions store any further ones separately.
const SHARED_MAX: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Listing {
    tools: Vec<RawTool>,
    bytes: usize,
    left_out: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page<'a> {
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
    #[serde(default)]
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

/// Lists the tools of a server; each page may take this long.
pub(super) async fn read(
    link: &Link,
    messages: &mpsc::Sender<ServerMessage>,
    limit: Duration,
) -> Result<Listing, String> {
    let mut listing = Listing::default();
    let mut cursor: Option<String> = None;
    for _ in 0..PAGES_MAX {
        let params = cursor.map(|cursor| to_raw_value(&serde_json::json!({ "cursor": cursor })));
        let params = params.transpose().map_err(|error| error.to_string())?;
        let calling = OutgoingCall { method: "tools/list", params: params.as_deref() };
        let page = into_result(request(link, messages, calling, limit).await?)?;
        cursor = listing.add(&page)?;
        if cursor.is_none() {
            return Ok(listing);
        }
    }
    listing.left_out = Some(format!("it has more than {PAGES_MAX} pages of tools; the rest is left out"));
    Ok(listing)
}

impl Listing {
    /// Adds a page and returns the cursor of the next one, if it is needed.
    fn add(&mut self, page: &RawValue) -> Result<Option<String>, String> {
        let page: Page<'_> = serde_json::from_str(page.get())
            .map_err(|error| format!("the list of tools cannot be read: {error}"))?;
        for definition in page.tools {
            // A tool without a name cannot be called.
            let Ok(Named { name }) = serde_json::from_str(definition.get()) else { continue };
            self.bytes += definition.get().len();
            if self.tools.len() >= TOOLS_MAX || self.bytes > BYTES_MAX {
                self.left_out = Some(format!(
                    "it has more than {TOOLS_MAX} tools or {BYTES_MAX} bytes of them; the rest is left out"
                ));
                return Ok(None);
            }
            self.tools.push(RawTool { name, definition: definition.to_owned() });
        }
        // Some servers send an empty cursor at the end.
        Ok(page.next_cursor.filter(|cursor| !cursor.is_empty()))
    }

    pub(super) fn into_parts(self) -> (Arc<[RawTool]>, Option<String>) {
        (shared(self.tools), self.left_out)
    }
}

/// Returns a shared copy: sessions list separately but nearly always get the same listing.
pub(super) fn shared(tools: Vec<RawTool>) -> Arc<[RawTool]> {
    static SEEN: Mutex<Vec<Weak<[RawTool]>>> = Mutex::new(Vec::new());
    let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    seen.retain(|listing| listing.strong_count() > 0);
    if let Some(same) = seen.iter().filter_map(Weak::upgrade).find(|listing| is_same(listing, &tools)) {
        return same;
    }
    let tools: Arc<[RawTool]> = tools.into();
    if seen.len() < SHARED_MAX {
        seen.push(Arc::downgrade(&tools));
    }
    tools
}

/// Whether two listings are byte-identical.
pub(super) fn is_same(one: &[RawTool], other: &[RawTool]) -> bool {
    let is_same = |(one, other): (&RawTool, &RawTool)| one.definition.get() == other.definition.get();
    std::ptr::eq(one, other) || one.len() == other.len() && one.iter().zip(other).all(is_same)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn pages_are_put_together_and_tools_without_names_left_out() {
        let mut listing = Listing::default();
        let first =
            r#"{"tools":[{"name":"a","x":1.0},{"title":"none"},7,{"name":"b"}],"nextCursor":"2","more":1}"#;
        assert_eq!(listing.add(&page(first)).unwrap().as_deref(), Some("2"));
        assert_eq!(listing.add(&page(r#"{"tools":[{ "name":"c" }],"nextCursor":""}"#)).unwrap(), None);
        let (tools, left_out) = listing.into_parts();
        let texts: Vec<_> = tools.iter().map(|tool| tool.definition.get()).collect();
        assert_eq!(texts, [r#"{"name":"a","x":1.0}"#, r#"{"name":"b"}"#, r#"{ "name":"c" }"#]);
        assert_eq!(left_out, None);
        assert!(Listing::default().add(&page(r#"{"tools":{}}"#)).is_err());
        assert!(Listing::default().add(&page("{}")).is_err());
    }

    #[test]
    fn what_two_sessions_see_alike_is_kept_once() {
        let listed = |text: &str| {
            let mut listing = Listing::default();
            listing.add(&page(text)).unwrap();
            listing.into_parts().0
        };
        let text = r#"{"tools":[{"name":"of two sessions"}]}"#;
        let (one, same) = (listed(text), listed(text));
        assert!(Arc::ptr_eq(&one, &same));
        assert!(!Arc::ptr_eq(&one, &listed(r#"{"tools":[{"name":"of two sessions","x":1}]}"#)));
    }

    #[test]
    fn a_list_has_bounds() {
        let tool = format!(r#"{{"name":"t","description":"{}"}}"#, "x".repeat(100_000));
        let large = format!(r#"{{"tools":[{}],"nextCursor":"2"}}"#, vec![tool; 180].join(","));
        let many = format!(
            r#"{{"tools":[{}],"nextCursor":"2"}}"#,
            vec![r#"{"name":"t"}"#; TOOLS_MAX + 500].join(",")
        );
        for (text, most) in [(large, 167), (many, TOOLS_MAX)] {
            let mut listing = Listing::default();
            assert_eq!(listing.add(&page(&text)).unwrap(), None);
            let (tools, left_out) = listing.into_parts();
            assert_eq!((tools.len(), left_out.is_some()), (most, true));
        }
    }
}
