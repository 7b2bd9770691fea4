//! Merges the lists of all upstreams into one: items unchanged, in the order of upstreams, with a cursor that holds the
//! position and the upstream's own cursor.
//!
//! An unavailable or failing upstream is left out; its error is returned only to a host that continues the list of that
//! upstream. An upstream's own cursor is signed: a server receives only cursors that it returned itself, to the same principal
//! and for the same list. All processes on the store verify the same signatures.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use embody_store::Principal;
use embody_wire::Outcome;
use embody_wire::server::{Call, code, failure};
use embody_wire::upstream::OutgoingCall;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::read_gate::{denied, is_listed, permit};
use super::resources::status_resource;
use super::route::{HostRequest, declares, is_reachable, outcome_for_host};
use super::{RoutingTable, printable};
use crate::gate::Permit;
use crate::json::Members;
use crate::params;
use crate::pipeline::respond::raw;
use crate::pipeline::send::{CallResult, UpstreamCall, call_upstream};
use crate::policy;
use crate::session::Session;
use crate::stateless::{sign_parts, verify_parts};
use crate::upstream::Upstream;

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
    fn take(&mut self, position: usize, page: &Page) -> bool {
        let bytes: usize = page.items.iter().map(|item| item.get().len()).sum();
        if self.bytes > 0 && self.bytes + bytes > ANSWER {
            self.next = Some(Cursor { position, upstream_cursor: None });
            return false;
        }
        self.bytes += bytes;
        self.items.extend(page.items.iter().cloned());
        self.next = page
            .next
            .clone()
            .map(|upstream_cursor| Cursor { position, upstream_cursor: Some(upstream_cursor) });
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
    let is_of = |position: usize| cursor.as_ref().is_none_or(|cursor| cursor.position == position);
    match (kind, &*offering) {
        // The broker adds nothing to this list: forward the list of the only upstream that has it.
        (ListKind::Tasks, [(position, only)]) if is_of(*position) => {
            forward_only(request, (*position, only), cursor).await
        }
        _ => merge(request, kind, cursor).await,
    }
}

/// The tasks of the only upstream that lists any. Only the bytes of the cursor change.
async fn forward_only(
    request: HostRequest<'_>,
    (position, only): (usize, &Arc<Upstream>),
    cursor: Option<Cursor>,
) -> Result<Outcome, Outcome> {
    let upstream_cursor = cursor.and_then(|cursor| cursor.upstream_cursor);
    let params = params::with_cursor(request.params(), upstream_cursor.as_deref());
    let item = policy::Kind::Method.name(ListKind::Tasks.method());
    let sent = request.ask(only, params.as_deref()).await;
    let result = match request.outcome(only, &item, sent).await {
        Outcome::Result(result) => result,
        error @ Outcome::Error(_) => return Ok(error),
    };
    let Some(page) = read_page(&result, ListKind::Tasks.member()) else { return Ok(Outcome::Result(result)) };
    ListKind::Tasks.add_routes(request, &only.spec().name, &page.items, false);
    let Ok(Members(members)) = serde_json::from_str(result.get()) else { return Ok(Outcome::Result(result)) };
    let Some((_, part)) = members.iter().rev().find(|(name, _)| name == "nextCursor") else {
        return Ok(Outcome::Result(result));
    };
    let next = match page.next {
        Some(upstream_cursor) => {
            Cursor { position, upstream_cursor: Some(upstream_cursor) }
                .print(request, ListKind::Tasks)
                .await?
        }
        None if part.get() == "null" => return Ok(Outcome::Result(result)),
        // Common hosts treat an empty cursor as the end.
        None => String::new(),
    };
    let forwarded = params::replace_text(&result, part, &next);
    Ok(Outcome::Result(forwarded.unwrap_or_else(|| raw(&Value::Null))))
}

async fn merge(request: HostRequest<'_>, kind: ListKind, cursor: Option<Cursor>) -> Result<Outcome, Outcome> {
    let method = &request.call.request.method;
    let upstreams: Vec<&Arc<Upstream>> = request.session.upstreams().collect();
    let mut merged = Merged::default();
    let mut from = cursor.as_ref().map_or(0, |cursor| cursor.position);
    if cursor.is_none() {
        request.wait_settled().await;
        if kind == ListKind::Resources {
            merged.items.push(status_resource());
        }
    }
    if let Some(Cursor { position, upstream_cursor: Some(upstream_cursor) }) = cursor {
        let Some(upstream) = upstreams.get(position) else { return merged.outcome(request, kind).await };
        let params = params::with_cursor(request.params(), Some(&upstream_cursor));
        let fetch =
            ListFetch::new(request, upstream, kind.method()).ok_or_else(|| denied(upstream, method))?;
        let mut page = match fetch.page(kind.member(), params.as_deref()).await {
            Ok(page) => page,
            Err(failed) => return Err(outcome_for_host(request.session, upstream, &fetch.item, failed).await),
        };
        // A server that returns the same cursor again would loop.
        page.next = page.next.filter(|next| *next != upstream_cursor);
        merged.take(position, &page);
        kind.add_routes(request, &upstream.spec().name, &page.items, false);
        from = position + 1;
    }
    if merged.next.is_none() {
        let params = params::with_cursor(request.params(), None);
        for (position, page) in first_pages(request, kind, from, params).await {
            let Some(upstream) = upstreams.get(position) else { continue };
            if !merged.take(position, &page) {
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
    for (position, upstream) in request.session.upstreams().enumerate().skip(from) {
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
                tracing::debug!(name, list = kind.member(), reason = ?failed, "a list is incomplete: one server did not return its part");
                kind.leave_out(&fetch.session.routes, &fetch.upstream);
            }
            (position, page)
        });
    }
    let mut pages: Vec<(usize, Page)> = Vec::new();
    while let Some(fetched) = fetching.join_next().await {
        if let Ok((position, Ok(page))) = fetched {
            pages.push((position, page));
        }
    }
    pages.sort_unstable_by_key(|(position, _)| *position);
    pages
}

/// A request for a list of one upstream: the caller and its permit.
pub(super) struct ListFetch {
    session: Arc<Session>,
    call: Arc<Call<Principal>>,
    upstream: Arc<Upstream>,
    method: &'static str,
    item: String,
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
        let item = policy::Kind::Method.name(method);
        Some(Self { session, call, upstream: Arc::clone(upstream), method, item, permit })
    }

    pub(super) fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    /// Fetches one page with the upstream's parameters. A failure must reach a host through [`outcome_for_host`] only.
    pub(super) async fn page(&self, member: &str, params: Option<&RawValue>) -> Result<Page, CallResult> {
        let Self { session, call, upstream, method, item, permit } = self;
        let spec = upstream.spec();
        let link = match upstream.lease().await {
            Ok(link) => link,
            Err(away) => return Err(CallResult::Unavailable(away.to_string())),
        };
        let limit = PAGE.min(spec.call_timeout);
        let call = UpstreamCall { session, upstream, item, link: &link, call, limit, permit };
        // A server that sends progress for ever counts as hanging.
        let result = timeout(2 * limit, call_upstream(call, OutgoingCall { method, params })).await;
        match result.unwrap_or(CallResult::TimedOut) {
            CallResult::Answered(Outcome::Result(result)) => {
                let mut page = read_page(&result, member).ok_or_else(|| {
                    let message = format!("`{}` returned an invalid result for `{method}`", spec.name);
                    CallResult::Answered(failure(code::INTERNAL_ERROR, message))
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

fn read_page(result: &RawValue, member: &str) -> Option<Page> {
    let Members(members) = serde_json::from_str(result.get()).ok()?;
    let find = |name: &str| members.iter().rev().find(|(known, _)| known == name).map(|(_, value)| *value);
    let items: Vec<&RawValue> = serde_json::from_str(find(member)?.get()).ok()?;
    let next: Option<String> = find("nextCursor").and_then(|next| serde_json::from_str(next.get()).ok()?);
    // Common hosts treat an empty cursor as the end.
    let next = next.filter(|next| !next.is_empty() && next.len() <= CURSOR_BYTES);
    Some(Page { items: items.into_iter().map(ToOwned::to_owned).collect(), next })
}

/// The longest cursor of an upstream, in bytes. A list with a longer cursor ends there.
const CURSOR_BYTES: usize = 4_096;
/// The longest prefix, in bytes: list, position and signature.
const PREFIX_BYTES: usize = 160;
const FORM: &str = "cursor 1";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cursor {
    pub(super) position: usize,
    /// The upstream's own cursor; `None` for its first page.
    upstream_cursor: Option<String>,
}

impl Cursor {
    pub(super) async fn print(&self, request: HostRequest<'_>, kind: ListKind) -> Result<String, Outcome> {
        let Some(upstream_cursor) = &self.upstream_cursor else { return Ok(self.written(kind, "")) };
        let parts = [kind.method(), self.upstream(request), upstream_cursor];
        let signature = sign_parts(request.broker, &request.call.host.principal, FORM, &parts).await?;
        Ok(self.written(kind, &signature))
    }

    pub(super) async fn read(request: HostRequest<'_>, text: &str, kind: ListKind) -> Result<Self, Outcome> {
        let count = request.session.upstreams().count();
        let (cursor, signature) = Self::parse(text, kind, count).ok_or_else(|| foreign(text))?;
        if let Some(upstream_cursor) = &cursor.upstream_cursor {
            let parts = [kind.method(), cursor.upstream(request), upstream_cursor];
            if !verify_parts(request.broker, &request.call.host.principal, FORM, &parts, signature).await? {
                return Err(foreign(text));
            }
        }
        Ok(cursor)
    }

    fn upstream<'a>(&self, request: HostRequest<'a>) -> &'a str {
        request.session.upstreams().nth(self.position).map_or("", |upstream| &upstream.spec().name)
    }

    fn written(&self, kind: ListKind, signature: &str) -> String {
        let (letter, position) = (kind.letter(), self.position);
        match &self.upstream_cursor {
            Some(upstream_cursor) => format!("{letter}{position}:{signature}:{upstream_cursor}"),
            None => format!("{letter}{position}"),
        }
    }

    fn parse(text: &str, kind: ListKind, count: usize) -> Option<(Self, &str)> {
        let rest = text.strip_prefix(kind.letter()).filter(|_| text.len() <= CURSOR_BYTES + PREFIX_BYTES)?;
        let mut parts = rest.splitn(3, ':');
        let (position, signature, upstream_cursor) = (parts.next()?, parts.next(), parts.next());
        let is_number = !position.is_empty() && position.bytes().all(|byte| byte.is_ascii_digit());
        let position = position.parse().ok().filter(|position| is_number && *position < count)?;
        match (signature, upstream_cursor) {
            (None, None) => Some((Self { position, upstream_cursor: None }, "")),
            (Some(signature), Some(upstream_cursor)) => {
                Some((Self { position, upstream_cursor: Some(upstream_cursor.to_owned()) }, signature))
            }
            _ => None,
        }
    }
}

fn foreign(text: &str) -> Outcome {
    failure(code::INVALID_PARAMS, format!("unknown cursor `{}`", printable(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_read_as_it_is_written() {
        let text = r#"{ "x":1, "resources" : [ {"uri":"a", "n":1.0} , 7 ], "nextCursor":"c" }"#;
        let page = read_page(&RawValue::from_string(text.to_owned()).unwrap(), "resources").unwrap();
        let items: Vec<&str> = page.items.iter().map(|item| item.get()).collect();
        assert_eq!(items, [r#"{"uri":"a", "n":1.0}"#, "7"]);
        assert_eq!(page.next.as_deref(), Some("c"));
        for text in ["[]", "{}", r#"{"resources":{}}"#, "null"] {
            assert!(
                read_page(&RawValue::from_string(text.to_owned()).unwrap(), "resources").is_none(),
                "{text}"
            );
        }
        for text in [
            r#"{"resources":[]}"#,
            r#"{"resources":[],"nextCursor":""}"#,
            r#"{"resources":[],"nextCursor":null}"#,
        ] {
            assert!(
                read_page(&RawValue::from_string(text.to_owned()).unwrap(), "resources")
                    .unwrap()
                    .next
                    .is_none()
            );
        }
    }

    #[test]
    fn a_cursor_comes_back_as_it_went() {
        for cursor in [
            Cursor { position: 0, upstream_cursor: None },
            Cursor { position: 2, upstream_cursor: Some("a:b\u{1F600}\"".to_owned()) },
            Cursor { position: 1, upstream_cursor: Some(String::new()) },
        ] {
            let text = cursor.written(ListKind::Resources, "k.p");
            let signature = if cursor.upstream_cursor.is_some() { "k.p" } else { "" };
            assert_eq!(Cursor::parse(&text, ListKind::Resources, 3), Some((cursor, signature)));
            assert_eq!(Cursor::parse(&text, ListKind::Templates, 3), None, "it is of another list");
        }
        let long = format!("r0:m:{}", "x".repeat(CURSOR_BYTES + PREFIX_BYTES));
        for text in [
            "",
            "r",
            "r:",
            "r1:x",
            "r3",
            "r3:m:x",
            "r-1",
            "r+1",
            "r 1",
            "0",
            "x",
            "r99999999999999999999999",
            &long,
        ] {
            assert_eq!(Cursor::parse(text, ListKind::Resources, 3), None, "{text}");
        }
    }
}
