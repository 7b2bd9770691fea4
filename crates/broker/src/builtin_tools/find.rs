//! `find_tools`: finds tools that are not listed. Its results contain everything that a call needs, so that a host that never
//! lists again can call them at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use embody_store::Principal;
use embody_wire::Outcome;
use embody_wire::server::Call;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use crate::BrokerConfig;
use crate::arguments::Arguments;
use crate::catalogue::{CatalogTool, Catalogue, Texts};
use crate::gate::Pin;
use crate::pipeline::classify::classify;
use crate::pipeline::respond::raw;
use crate::session::Session;

use super::error_result;

const QUERY_CHARS: usize = 1_000;
const LIMIT_DEFAULT: usize = 5;
const MOST: usize = 20;
/// Bytes of the definitions in a result; the best match is always complete.
const BYTES: usize = 24 * 1024;
/// Further matches that are listed by name.
const NAMED_MAX: usize = 20;
/// From this many tools on, the index is built on a blocking thread.
const BLOCKING_FROM: usize = 200;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FindArgs {
    query: String,
    #[serde(default)]
    limit: Option<u64>,
}

#[derive(Serialize)]
struct Answer<'a> {
    tools: Vec<Match<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    also: Vec<&'a str>,
    /// Matches that are neither shown nor listed by name.
    more: usize,
    searched: usize,
    /// All tools by server, if nothing was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    servers: Option<BTreeMap<&'a str, usize>>,
    next: &'static str,
}

#[derive(Serialize)]
struct Match<'a> {
    name: &'a str,
    body: &'a str,
    class: &'static str,
    #[serde(flatten)]
    texts: Texts<'a>,
    /// Its definition differs from its pin: only reads are permitted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    changed: bool,
}

pub(super) async fn find_tools(
    config: &Arc<BrokerConfig>,
    session: &Arc<Session>,
    request: &Call<Principal>,
    args: FindArgs,
) -> Outcome {
    let query = args.query.trim().to_owned();
    if query.is_empty() {
        return error_result("the query is empty: say what the tool should do".to_owned());
    }
    let chars = query.chars().count();
    if chars > QUERY_CHARS {
        return error_result(format!("the query has {chars} characters; at most {QUERY_CHARS} are allowed"));
    }
    let limit = args.limit.map_or(LIMIT_DEFAULT, |limit| usize::try_from(limit).unwrap_or(MOST));
    if !(1..=MOST).contains(&limit) {
        return error_result(format!("the limit is `{limit}`; it can be 1 to {MOST}"));
    }
    let catalogue = session.announce_catalogue(config, config.settings().times.list).await;
    let catalogue = read(catalogue).await;
    let found = catalogue.find(&query, limit + NAMED_MAX);
    let (tools, also) = matches(config, session, &found.tools, limit);
    let servers = found.tools.is_empty().then(|| servers(&catalogue));
    let next = match found.tools.is_empty() {
        true => "search with other words: what the tool does, to what, on which server",
        false => {
            "call one by its name, or with body_tool {name, args} if your list does not contain that name"
        }
    };
    let more = found.matched.saturating_sub(tools.len() + also.len());
    session.record_found(tools.iter().map(|tool| tool.name));
    let answer = raw(&Answer { tools, also, more, searched: found.searched, servers, next });
    notify_after_response(config, session, request);
    Outcome::Result(raw(&SearchResult::new(&answer)))
}

/// Complete matches, and further ones by name: a large definition does not displace smaller ones.
fn matches<'a>(
    config: &BrokerConfig,
    session: &Session,
    found: &[&'a CatalogTool],
    limit: usize,
) -> (Vec<Match<'a>>, Vec<&'a str>) {
    let (mut shown, mut named, mut bytes) = (Vec::new(), Vec::new(), 0);
    for offered in found {
        let texts = offered.texts();
        if shown.len() >= limit || (bytes + texts.len() > BYTES && !shown.is_empty()) {
            named.push(&*offered.name);
            continue;
        }
        bytes += texts.len();
        let class = class_of(config, session, offered);
        let changed = offered.pin == Pin::Changed;
        shown.push(Match { name: &offered.name, body: &offered.upstream, class, texts, changed });
    }
    named.truncate(NAMED_MAX);
    (shown, named)
}

fn class_of(config: &BrokerConfig, session: &Session, offered: &CatalogTool) -> &'static str {
    let upstream = session.upstream(&offered.upstream);
    let ruling = upstream.zip(Arguments::read(None).ok());
    let ruling =
        ruling.map(|(upstream, none)| classify(&config.settings().policy, session, offered, upstream, &none));
    ruling.map_or("human_visible_write", |ruling| ruling.class.name())
}

/// Found tools are listed from now on: notifies the host of the change after the response.
fn notify_after_response(config: &Arc<BrokerConfig>, session: &Arc<Session>, request: &Call<Principal>) {
    let (session, config) = (Arc::clone(session), Arc::clone(config));
    request.on_flushed(move || {
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { session.notify_if_changed(&config).await });
        }
    });
}

/// A result as text and as data, byte-exact: definitions are the same as in the list.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SearchResult<'a> {
    content: [serde_json::Value; 1],
    structured_content: &'a RawValue,
    is_error: bool,
}

impl<'a> SearchResult<'a> {
    fn new(answer: &'a RawValue) -> Self {
        let content = [json!({"type": "text", "text": answer.get()})];
        Self { content, structured_content: answer, is_error: false }
    }
}

/// Builds a large index on a blocking thread, once per catalogue.
async fn read(catalogue: Catalogue) -> Catalogue {
    if catalogue.is_indexed() || catalogue.listed().count() < BLOCKING_FROM {
        return catalogue;
    }
    let reading = catalogue.clone();
    // On failure the search builds the index itself.
    let _ = tokio::task::spawn_blocking(move || reading.build_index()).await;
    catalogue
}

fn servers(catalogue: &Catalogue) -> BTreeMap<&str, usize> {
    let mut servers = BTreeMap::new();
    for offered in catalogue.listed() {
        *servers.entry(&*offered.upstream).or_default() += 1;
    }
    servers
}
