//! Prompts: listed and requested under their own names, or as `UPSTREAM__NAME` where two upstreams have the same name. And
//! `completion/complete`, which is forwarded to the owner of the prompt or resource.
//!
//! Duplicate names are known only when all lists are: the lists are collected completely and returned without a cursor.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use embody_wire::Outcome;
use embody_wire::server::{code, failure};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::lists::ListFetch;
use super::resources::Scheme;
use super::route::{HostRequest, declares, first_not_started, is_reachable, not_started};
use super::{printable, resources};
use crate::catalogue::{NameRequest, assign_names};
use crate::params;
use crate::pipeline::respond::raw;
use crate::policy::Kind;
use crate::session::Session;
use crate::upstream::Upstream;

/// Limits for one upstream's list: pages, prompts and bytes. Anything beyond is not listed.
const PAGES: usize = 64;
const PROMPTS_MAX: usize = 2_000;
const BYTES: usize = 2 * 1024 * 1024;
const ALL: Duration = Duration::from_secs(15);

/// The prompts of every mind; reserved also while the mind is unavailable and its list unknown.
const RESERVED: [&str; 1] = ["get_system_prompt"];

#[derive(Debug, Default)]
struct Names {
    mind: String,
    listed: HashMap<(String, String), String>,
}

pub(super) async fn list(request: HostRequest<'_>) -> Outcome {
    #[derive(Deserialize)]
    struct Params {
        #[serde(default)]
        cursor: Option<String>,
    }
    match params::read("prompts/list", request.params()) {
        Ok(Params { cursor: None }) => {}
        Ok(Params { cursor: Some(cursor) }) => {
            let cursor = printable(&cursor);
            return failure(code::INVALID_PARAMS, format!("unknown cursor `{cursor}`"));
        }
        Err(outcome) => return outcome,
    }
    let lists = collect(request, request.params()).await;
    let names = Names::of(request.session);
    let mut items = Vec::new();
    for (upstream, prompts) in &lists {
        let mut seen = HashSet::new();
        for prompt in prompts {
            items.extend(listed(&names, upstream, prompt, &mut seen));
        }
    }
    request.session.routes.record_listed_prompts(items.iter().filter_map(|item| name(item)));
    let items: Vec<&RawValue> = items.iter().map(AsRef::as_ref).collect();
    let text = items.iter().map(|item| item.get()).collect::<Vec<_>>().join(",");
    let text = format!("{{\"prompts\":[{text}]}}");
    Outcome::Result(RawValue::from_string(text).unwrap_or_else(|_| raw(&Value::Null)))
}

pub(super) async fn get(request: HostRequest<'_>) -> Outcome {
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow)]
        name: &'a RawValue,
    }
    match params::read("prompts/get", request.params()) {
        Ok(Params { name }) => send(request, name).await,
        Err(outcome) => outcome,
    }
}

/// Sends the request to the owner of the prompt. `part` is the name within the parameters.
pub(super) async fn send(request: HostRequest<'_>, part: &RawValue) -> Outcome {
    let Ok(name) = serde_json::from_str::<String>(part.get()) else {
        return failure(code::INVALID_PARAMS, "the name of a prompt must be a string");
    };
    if let Err(outcome) = params::check_length("the name of the prompt", &name) {
        return outcome;
    }
    let mind = &request.session.mind.spec().name;
    // A body's prompt with a reserved name must not be used: wait for the mind's list.
    let is_mind_known = request.session.routes.has_prompts(mind);
    let mut found = Names::of(request.session).find(&name);
    let is_minds = is_mind_known && found.as_ref().is_ok_and(|(upstream, _)| upstream == mind);
    let is_settled = request.session.routes.is_listed_prompt(&name) || RESERVED.contains(&&*name);
    if !is_settled && !is_minds {
        let item = Kind::Prompt.name(&name);
        if let Some(body) = holder_not_started(request.session, &name).await {
            return not_started(body, &item);
        }
    }
    if found.is_err() || !is_mind_known || !(is_settled || is_minds || are_known(request)) {
        collect(request, None).await;
        found = Names::of(request.session).find(&name);
    }
    let (upstream, own) = match found {
        Ok(found) => found,
        Err(reason) => return failure(code::INVALID_PARAMS, format!("{reason}{}", request.absent().await)),
    };
    let Some(upstream) = request.session.upstream(&upstream) else {
        return failure(code::INTERNAL_ERROR, "the server of this prompt is no longer configured");
    };
    let spliced = match request.params() {
        Some(params) if own != name => params::replace_text(params, part, &own),
        _ => None,
    };
    request.read(upstream, &Kind::Prompt.name(&own), spliced.as_deref().or(request.params())).await
}

/// Waits for the bodies that are still starting and may have a prompt of this name; returns one that was never connected. If
/// the name begins with names of bodies, only those count: several, if one is `a` and another `a__b`.
async fn holder_not_started<'a>(session: &'a Session, name: &str) -> Option<&'a Arc<Upstream>> {
    let own = |body: &Upstream| name.strip_prefix(&*body.spec().name)?.strip_prefix("__");
    let is_prefixed = session.bodies.iter().any(|body| own(body).is_some());
    let name_at = |body: &Upstream| {
        let own = if is_prefixed { own(body) } else { Some(name) };
        own.map(|own| Kind::Prompt.name(own))
    };
    first_not_started(session, name_at).await
}

fn are_known(request: HostRequest<'_>) -> bool {
    let mut with = request.with("prompts").into_iter().filter(|upstream| is_reachable(upstream));
    with.all(|upstream| request.session.routes.has_prompts(&upstream.spec().name))
}

/// Collects the prompts of all available upstreams, in order, and remembers their names. The names of an unavailable upstream
/// are kept, so that the names of the others do not change.
async fn collect(request: HostRequest<'_>, params: Option<&RawValue>) -> Vec<(String, Vec<Box<RawValue>>)> {
    let _one_at_a_time = request.session.routes.collecting.lock().await;
    request.wait_settled().await;
    let mut collecting = JoinSet::new();
    for (position, upstream) in request.session.upstreams().enumerate() {
        // Until it has listed its prompts, the host's list lacks them.
        request.session.routes.note_listed(&upstream.spec().name, "prompts", false);
        if !is_reachable(upstream) || !declares(upstream, "prompts") {
            continue;
        }
        let Some(fetch) = ListFetch::new(request, upstream, "prompts/list") else { continue };
        let (name, params) = (upstream.spec().name.clone(), params.map(ToOwned::to_owned));
        collecting.spawn(async move { (position, name, all_pages(&fetch, params).await) });
    }
    let mut lists = Vec::new();
    while let Some(collected) = collecting.join_next().await {
        let Ok((position, upstream, Some(prompts))) = collected else { continue };
        let names = prompts.iter().filter_map(|prompt| name(prompt)).collect();
        request.session.routes.set_prompts(&upstream, names);
        request.session.routes.note_listed(&upstream, "prompts", true);
        lists.push((position, upstream, prompts));
    }
    lists.sort_unstable_by_key(|(position, ..)| *position);
    lists.into_iter().map(|(_, upstream, prompts)| (upstream, prompts)).collect()
}

/// Returns `None` if the first page fails.
async fn all_pages(fetch: &ListFetch, params: Option<Box<RawValue>>) -> Option<Vec<Box<RawValue>>> {
    let until = Instant::now() + ALL;
    let mut prompts: Vec<Box<RawValue>> = Vec::new();
    let (mut bytes, mut cursor) = (0, None);
    for number in 0..PAGES {
        let params = params::with_cursor(params.as_deref(), cursor.as_deref());
        let page = match fetch.page("prompts", params.as_deref()).await {
            Ok(page) => page,
            Err(_) if number == 0 => return None,
            Err(_) => break,
        };
        for prompt in page.items {
            bytes += prompt.get().len();
            if bytes > BYTES || prompts.len() >= PROMPTS_MAX {
                let upstream = &fetch.upstream().spec().name;
                tracing::warn!(upstream, "not all of its prompts are listed");
                return Some(prompts);
            }
            prompts.push(prompt);
        }
        if page.next.is_none() || page.next == cursor || Instant::now() > until {
            break;
        }
        cursor = page.next;
    }
    Some(prompts)
}

#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow)]
    name: &'a RawValue,
}

fn name(prompt: &RawValue) -> Option<String> {
    let named: Named<'_> = serde_json::from_str(prompt.get()).ok()?;
    serde_json::from_str(named.name.get()).ok()
}

/// The prompt under its listed name; no other byte changes. `None` if it has no usable name.
fn listed(
    names: &Names,
    upstream: &str,
    prompt: &RawValue,
    seen: &mut HashSet<String>,
) -> Option<Box<RawValue>> {
    let own = name(prompt).filter(|own| seen.insert(own.clone()))?;
    let listed = names.listed.get(&(upstream.to_owned(), own.clone()))?;
    if *listed == own {
        return Some(prompt.to_owned());
    }
    let named: Named<'_> = serde_json::from_str(prompt.get()).ok()?;
    params::replace_text(prompt, named.name, listed)
}

impl Names {
    fn of(session: &Session) -> Self {
        let known = session.routes.prompts();
        let pairs =
            known.iter().flat_map(|(upstream, names)| names.iter().map(|name| (&**upstream, &**name)));
        // A prompt that is listed twice counts once.
        let pairs: BTreeSet<(&str, &str)> = pairs.collect();
        // The mind's names are reserved: a body's prompt with the same name is renamed.
        let mind = &*session.mind.spec().name;
        let (minds, bodies): (Vec<_>, Vec<_>) = pairs.iter().partition(|(upstream, _)| *upstream == mind);
        let mut taken: HashSet<String> = RESERVED.map(str::to_owned).into();
        let upstreams: BTreeSet<&str> = pairs.iter().map(|(upstream, _)| *upstream).collect();
        let mut listed = HashMap::new();
        for (pairs, is_mind) in [(minds, true), (bodies, false)] {
            let requests: Vec<_> =
                pairs.iter().map(|(upstream, tool)| NameRequest { upstream, tool }).collect();
            let names = if is_mind {
                assign_names(&upstreams, &requests, &HashSet::new())
            } else {
                assign_names(&upstreams, &requests, &taken)
            };
            for ((upstream, own), name) in pairs.iter().zip(names) {
                let Some(name) = name else { continue };
                taken.insert(name.clone());
                listed.insert(((*upstream).to_owned(), (*own).to_owned()), name);
            }
        }
        Self { mind: mind.to_owned(), listed }
    }

    /// Resolves the listed name, or a name from an older list.
    fn find(&self, name: &str) -> Result<(String, String), String> {
        let exact = self.listed.iter().find(|(_, listed)| **listed == name);
        if let Some((key, _)) = exact {
            return Ok(key.clone());
        }
        // The mind is unavailable, and no body answers for it.
        if RESERVED.contains(&name) {
            return Ok((self.mind.clone(), name.to_owned()));
        }
        let is_it = |upstream: &str, own: &str| {
            own == name || name.strip_prefix(upstream).and_then(|rest| rest.strip_prefix("__")) == Some(own)
        };
        let mut found = self.listed.iter().filter(|((upstream, own), _)| is_it(upstream, own));
        match (found.next(), found.next()) {
            (Some((key, _)), None) => Ok(key.clone()),
            (None, _) => Err(format!("Unknown prompt: {}", printable(name))),
            (Some((_, one)), Some((_, other))) => {
                let mut both = [one, other];
                both.sort_unstable();
                let [one, other] = both;
                Err(format!("several servers have a prompt `{}`: `{one}`, `{other}`", printable(name)))
            }
        }
    }
}

#[derive(Deserialize)]
struct CompletionParams<'a> {
    #[serde(borrow, rename = "ref")]
    reference: Reference<'a>,
}

#[derive(Deserialize)]
struct Reference<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(default)]
    uri: Option<String>,
}

pub(super) async fn complete(request: HostRequest<'_>) -> Outcome {
    let given: CompletionParams<'_> = match params::read(&request.call.request.method, request.params()) {
        Ok(given) => given,
        Err(outcome) => return outcome,
    };
    match (&*given.reference.kind, given.reference.name, given.reference.uri) {
        ("ref/prompt", Some(name), None) => send(request, name).await,
        ("ref/resource", None, Some(uri)) => {
            if let Err(outcome) = params::check_length("the URI", &uri) {
                return outcome;
            }
            let item = Kind::Resource.name(&uri);
            match (resources::owner(request, &uri), Scheme::of(&uri)) {
                (Some(owner), _) => request.read(owner, &item, request.params()).await,
                (None, None) => complete_anywhere(request, &item).await,
                (None, Some(_)) => not_completed(request).await,
            }
        }
        // A server might read another member than the one that was checked.
        _ => failure(
            code::INVALID_PARAMS,
            "`ref` is neither `ref/prompt` with a `name` nor `ref/resource` with a `uri` alone",
        ),
    }
}

async fn complete_anywhere(request: HostRequest<'_>, item: &str) -> Outcome {
    if let Err(outcome) = request.wait_started(item).await {
        return outcome;
    }
    match &*request.with("completions") {
        [only] => request.read(only, item, request.params()).await,
        several => match request.read_in_turn(several, item, request.params()).await {
            Some((outcome, _)) => outcome,
            None => not_completed(request).await,
        },
    }
}

async fn not_completed(request: HostRequest<'_>) -> Outcome {
    failure(code::INVALID_PARAMS, format!("no server completes this{}", request.absent().await))
}
