//! Merges the lists of all upstreams into one: items unchanged, in the order of upstreams, with a cursor that holds the
//! position and the upstream's own cursor.
//!
//! An unavailable or failing upstream is left out; its error is returned only to a host that continues the list of that
//! upstream.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use embody_wire::Outcome;
use embody_wire::server::{Call, code, failure};
use embody_wire::upstream::OutgoingCall;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::cursor::{Cursor, LONGEST};
use super::read_gate::{denied, is_listed, permit};
use super::reserved::status_resource;
use super::route::{HostRequest, declares, is_reachable, outcome_for_host};
use super::{RoutingTable, params};
use crate::arguments::Members;
use crate::gate::Permit;
use crate::pipeline::respond::raw;
use crate::pipeline::send::{CallResult, UpstreamCall, call_upstream};
use crate::session::Session;
use crate::upstream::Upstream;
use crate::{Principal, policy};

/// Limit for one page: a host waits for the slowest.
const PAGE: Duration = Duration::from_secs(10);
/// Bytes of one response, unless a single page is larger.
const ANSWER: usize = 4 * 1024 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListKind {
    Resources,
    Templates,
    Tasks,
}

#[derive(Debug)]
pub(super) struct Page {
    pub(super) items: Vec<Box<RawValue>>,
    pub(super) next: Option<String>,
}

impl ListKind {
    const fn member(self) -> &'static str {
        match self {
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
            Self::Tasks => "tasks",
        }
    }

    pub(super) const fn method(self) -> &'static str {
        match self {
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
            Self::Tasks => "tasks/list",
        }
    }

    pub(super) const fn letter(self) -> char {
        match self {
            Self::Resources => 'r',
            Self::Templates => 't',
            Self::Tasks => 'k',
        }
    }

    fn is_offered(self, upstream: &Upstream) -> bool {
        match self {
            Self::Resources | Self::Templates => declares(upstream, "resources"),
            Self::Tasks => upstream
                .capabilities()
                .is_some_and(|known| known.get("tasks").is_some_and(|tasks| tasks.get("list").is_some())),
        }
    }

    /// Leaves this upstream out of the list; the host is notified when it is available. Not needed for tasks.
    fn leave_out(self, known: &RoutingTable, upstream: &Upstream) {
        if self != Self::Tasks {
            known.note_listed(&upstream.spec().name, "resources", false);
        }
    }

    fn add_routes(self, request: HostRequest<'_>, upstream: &str, items: &[Box<RawValue>], is_first: bool) {
        let known = &request.session.routes;
        match self {
            Self::Resources if is_first => {
                known.forget_resources(upstream);
                known.note_listed(upstream, "resources", true);
            }
            Self::Templates if is_first => known.forget_templates(upstream),
            _ => {}
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Item {
            uri: Option<String>,
            uri_template: Option<String>,
            task_id: Option<String>,
        }
        for item in items {
            let Ok(item) = serde_json::from_str::<Item>(item.get()) else { continue };
            match self {
                Self::Resources => item.uri.into_iter().for_each(|uri| known.add_uri(upstream, uri)),
                Self::Templates => {
                    item.uri_template.into_iter().for_each(|template| known.add_template(upstream, template));
                }
                Self::Tasks => item.task_id.into_iter().for_each(|task| known.add_task(upstream, task)),
            }
        }
    }
}

#[derive(Default)]
struct Merged {
    items: Vec<Box<RawValue>>,
    bytes: usize,
    next: Option<Cursor>,
}

impl Merged {
    /// Adds a page of the upstream at this position; returns `false` if it does not fit.
    fn take(&mut self, place: usize, page: &Page) -> bool {
        let bytes: usize = page.items.iter().map(|item| item.get().len()).sum();
        if self.bytes > 0 && self.bytes + bytes > ANSWER {
            self.next = Some(Cursor { place, theirs: None });
            return false;
        }
        self.bytes += bytes;
        self.items.extend(page.items.iter().cloned());
        self.next = page.next.clone().map(|theirs| Cursor { place, theirs: Some(theirs) });
        true
    }

    async fn outcome(self, request: HostRequest<'_>, kind: ListKind) -> Result<Outcome, Outcome> {
        let member = Value::from(kind.member());
        let items: Vec<&str> = self.items.iter().map(|item| item.get()).collect();
        let next = match self.next {
            Some(next) => format!(",\"nextCursor\":{}", Value::from(next.print(request, kind).await?)),
            None => String::new(),
        };
        let text = format!("{{{member}:[{}]{next}}}", items.join(","));
        Ok(Outcome::Result(RawValue::from_string(text).unwrap_or_else(|_| raw(&Value::Null))))
    }
}

pub(super) async fn list(request: HostRequest<'_>, kind: ListKind) -> Outcome {
    page(request, kind).await.unwrap_or_else(|outcome| outcome)
}

async fn page(request: HostRequest<'_>, kind: ListKind) -> Result<Outcome, Outcome> {
    let Params { cursor } = params::read(&request.call.request.method, request.params())?;
    let cursor = match cursor {
        Some(text) => Some(Cursor::read(request, &text, kind).await?),
        None => None,
    };
    let offering = request.session.upstreams().enumerate().filter(|(_, upstream)| kind.is_offered(upstream));
    let offering: Vec<(usize, &Arc<Upstream>)> = offering.collect();
    let is_of = |place: usize| cursor.as_ref().is_none_or(|cursor| cursor.place == place);
    match (kind, &*offering) {
        // The broker adds nothing to this list: forward the list of the only upstream that has it.
        (ListKind::Tasks, [(place, only)]) if is_of(*place) => pass_on(request, (*place, only), cursor).await,
        _ => merge(request, kind, cursor).await,
    }
}

/// The tasks of the only upstream that lists any. Only the bytes of the cursor change.
async fn pass_on(
    request: HostRequest<'_>,
    (place, only): (usize, &Arc<Upstream>),
    cursor: Option<Cursor>,
) -> Result<Outcome, Outcome> {
    let theirs = cursor.and_then(|cursor| cursor.theirs);
    let params = params::with_cursor(request.params(), theirs.as_deref());
    let result = match request.relay(only, params.as_deref()).await {
        Outcome::Result(result) => result,
        error @ Outcome::Error(_) => return Ok(error),
    };
    let Some(page) = read(&result, ListKind::Tasks.member()) else { return Ok(Outcome::Result(result)) };
    ListKind::Tasks.add_routes(request, &only.spec().name, &page.items, false);
    let Ok(Members(members)) = serde_json::from_str(result.get()) else { return Ok(Outcome::Result(result)) };
    let Some((_, part)) = members.iter().rev().find(|(name, _)| name == "nextCursor") else {
        return Ok(Outcome::Result(result));
    };
    let next = match page.next {
        Some(theirs) => Cursor { place, theirs: Some(theirs) }.print(request, ListKind::Tasks).await?,
        None if part.get() == "null" => return Ok(Outcome::Result(result)),
        // Common hosts treat an empty cursor as the end.
        None => String::new(),
    };
    let passed_on = params::replace_text(&result, part, &next);
    Ok(Outcome::Result(passed_on.unwrap_or_else(|| raw(&Value::Null))))
}

async fn merge(request: HostRequest<'_>, kind: ListKind, cursor: Option<Cursor>) -> Result<Outcome, Outcome> {
    let method = &request.call.request.method;
    let upstreams: Vec<&Arc<Upstream>> = request.session.upstreams().collect();
    let mut merged = Merged::default();
    let mut from = cursor.as_ref().map_or(0, |cursor| cursor.place);
    if cursor.is_none() {
        request.wait_settled().await;
        if kind == ListKind::Resources {
            merged.items.push(status_resource());
        }
    }
    if let Some(Cursor { place, theirs: Some(theirs) }) = cursor {
        let Some(upstream) = upstreams.get(place) else { return merged.outcome(request, kind).await };
        let params = params::with_cursor(request.params(), Some(&theirs));
        let fetch =
            ListFetch::new(request, upstream, kind.method()).ok_or_else(|| denied(upstream, method))?;
        let mut page = match fetch.page(kind.member(), params.as_deref()).await {
            Ok(page) => page,
            Err(failed) => return Err(outcome_for_host(request.session, upstream, &fetch.what, failed).await),
        };
        // A server that returns the same cursor again would loop.
        page.next = page.next.filter(|next| *next != theirs);
        merged.take(place, &page);
        kind.add_routes(request, &upstream.spec().name, &page.items, false);
        from = place + 1;
    }
    if merged.next.is_none() {
        let params = params::with_cursor(request.params(), None);
        for (place, page) in first_pages(request, kind, from, params).await {
            let Some(upstream) = upstreams.get(place) else { continue };
            if !merged.take(place, &page) {
                break;
            }
            kind.add_routes(request, &upstream.spec().name, &page.items, true);
            if merged.next.is_some() {
                break;
            }
        }
    }
    merged.outcome(request, kind).await
}

#[derive(Deserialize)]
struct Params {
    #[serde(default)]
    cursor: Option<String>,
}

/// The first page of each upstream from this position on that returns one, in order. Requested in parallel, so that a slow
/// server does not delay the others.
async fn first_pages(
    request: HostRequest<'_>,
    kind: ListKind,
    from: usize,
    params: Option<Box<RawValue>>,
) -> Vec<(usize, Page)> {
    let mut fetching = JoinSet::new();
    for (place, upstream) in request.session.upstreams().enumerate().skip(from) {
        // The list of a server that was never started is unknown; the host is notified once it is known.
        if !is_reachable(upstream) || upstream.capabilities().is_none() {
            kind.leave_out(&request.session.routes, upstream);
            continue;
        }
        if !kind.is_offered(upstream) {
            continue;
        }
        let Some(fetch) = ListFetch::new(request, upstream, kind.method()) else { continue };
        let params = params.clone();
        fetching.spawn(async move {
            let page = fetch.page(kind.member(), params.as_deref()).await;
            if let Err(failed) = &page {
                let name = &fetch.upstream.spec().name;
                tracing::debug!(name, list = kind.member(), reason = ?failed, "a list is left out");
                kind.leave_out(&fetch.session.routes, &fetch.upstream);
            }
            (place, page)
        });
    }
    let mut pages: Vec<(usize, Page)> = Vec::new();
    while let Some(fetched) = fetching.join_next().await {
        if let Ok((place, Ok(page))) = fetched {
            pages.push((place, page));
        }
    }
    pages.sort_unstable_by_key(|(place, _)| *place);
    pages
}

/// A request for a list of one upstream: the caller and its permit.
pub(super) struct ListFetch {
    session: Arc<Session>,
    call: Arc<Call<Principal>>,
    upstream: Arc<Upstream>,
    method: &'static str,
    what: String,
    permit: Permit,
}

impl ListFetch {
    /// `None` if this list of the upstream is denied.
    pub(super) fn new(
        request: HostRequest<'_>,
        upstream: &Arc<Upstream>,
        method: &'static str,
    ) -> Option<Self> {
        let permit = permit(&request.broker.config, request.session, upstream, method)?;
        let (session, call) = (Arc::clone(request.session), Arc::clone(request.call));
        let what = policy::Kind::Method.name(method);
        Some(Self { session, call, upstream: Arc::clone(upstream), method, what, permit })
    }

    pub(super) fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    /// Fetches one page with the upstream's parameters. A failure must reach a host through [`outcome_for_host`] only.
    pub(super) async fn page(&self, member: &str, params: Option<&RawValue>) -> Result<Page, CallResult> {
        let Self { session, call, upstream, method, what, permit } = self;
        let spec = upstream.spec();
        let link = match upstream.lease().await {
            Ok(link) => link,
            Err(away) => return Err(CallResult::Unavailable(away.to_string())),
        };
        let limit = PAGE.min(spec.call_timeout);
        let trip = UpstreamCall { session, upstream: &spec.name, what, link: &link, call, limit, permit };
        // A server that sends progress for ever counts as hanging.
        let carried = timeout(2 * limit, call_upstream(trip, OutgoingCall { method, params })).await;
        match carried.unwrap_or(CallResult::TimedOut) {
            CallResult::Answered(Outcome::Result(result)) => {
                let mut page = read(&result, member).ok_or_else(|| {
                    let words = format!("`{}` answers `{method}` with something else", spec.name);
                    CallResult::Answered(failure(code::INTERNAL_ERROR, words))
                })?;
                page.items.retain(|item| is_visible(upstream, member, item));
                Ok(page)
            }
            failed => Err(failed),
        }
    }
}

/// Whether the upstream may have this item and exposes it. An item without a name cannot be requested.
fn is_visible(upstream: &Upstream, member: &str, item: &RawValue) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Item<'a> {
        #[serde(borrow, default)]
        uri: Option<Cow<'a, str>>,
        #[serde(borrow, default)]
        uri_template: Option<Cow<'a, str>>,
        #[serde(borrow, default)]
        name: Option<Cow<'a, str>>,
    }
    let Ok(item) = serde_json::from_str::<Item<'_>>(item.get()) else { return true };
    let (kind, name) = match member {
        "resources" => (policy::Kind::Resource, item.uri),
        "resourceTemplates" => (policy::Kind::Resource, item.uri_template),
        "prompts" => (policy::Kind::Prompt, item.name),
        _ => return true,
    };
    name.is_none_or(|name| is_listed(upstream, kind, &name))
}

fn read(result: &RawValue, member: &str) -> Option<Page> {
    let Members(members) = serde_json::from_str(result.get()).ok()?;
    let find = |name: &str| members.iter().rev().find(|(known, _)| known == name).map(|(_, value)| *value);
    let items: Vec<&RawValue> = serde_json::from_str(find(member)?.get()).ok()?;
    let next: Option<String> = find("nextCursor").and_then(|next| serde_json::from_str(next.get()).ok()?);
    // Common hosts treat an empty cursor as the end.
    let next = next.filter(|next| !next.is_empty() && next.len() <= LONGEST);
    Some(Page { items: items.into_iter().map(ToOwned::to_owned).collect(), next })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_read_as_it_is_written() {
        let text = r#"{ "x":1, "resources" : [ {"uri":"a", "n":1.0} , 7 ], "nextCursor":"c" }"#;
        let page = read(&RawValue::from_string(text.to_owned()).unwrap(), "resources").unwrap();
        let items: Vec<&str> = page.items.iter().map(|item| item.get()).collect();
        assert_eq!(items, [r#"{"uri":"a", "n":1.0}"#, "7"]);
        assert_eq!(page.next.as_deref(), Some("c"));
        for text in ["[]", "{}", r#"{"resources":{}}"#, "null"] {
            assert!(read(&RawValue::from_string(text.to_owned()).unwrap(), "resources").is_none(), "{text}");
        }
        for text in [
            r#"{"resources":[]}"#,
            r#"{"resources":[],"nextCursor":""}"#,
            r#"{"resources":[],"nextCursor":null}"#,
        ] {
            assert!(
                read(&RawValue::from_string(text.to_owned()).unwrap(), "resources").unwrap().next.is_none()
            );
        }
    }
}
