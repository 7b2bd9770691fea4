//! Resolve: finds the tool and the upstream of a call, and checks that the tool still matches its pin. Waits for an upstream
//! that is starting.

use std::sync::Arc;

use embody_store::Principal;
use embody_wire::param_headers;
use embody_wire::server::Call;
use serde_json::Value;

use super::parse::CallParams;
use crate::BrokerConfig;
use crate::arguments::Arguments;
use crate::catalogue::{CatalogTool, Catalogue};
use crate::session::Session;
use crate::upstream::{ConnectionLease, Upstream};

pub(super) struct Target<'a> {
    pub(super) catalogue: Catalogue,
    pub(super) upstream: &'a Arc<Upstream>,
    pub(super) link: Result<ConnectionLease, String>,
}

/// Returns `None` if no upstream has a tool of this name.
pub(super) async fn target<'a>(
    config: &BrokerConfig,
    session: &'a Arc<Session>,
    params: &CallParams,
) -> Option<Target<'a>> {
    let catalogue = session.catalogue_for(config, params).await;
    let upstream = params.find(&catalogue).and_then(|tool| session.upstream(&tool.upstream))?;
    upstream.wait_started().await;
    let link = upstream.lease().await.map_err(|away| away.to_string());
    // A restarted server may define its tools differently.
    let catalogue = session.catalogue_after_listing(config, upstream).await;
    let link = link.and_then(|hold| upstream.ensure_listed(hold).map_err(|away| away.to_string()));
    let link = link.and_then(|hold| match session.has_compared(upstream) {
        true => Ok(hold),
        false => Err("its tools could not be compared with their pins".to_owned()),
    });
    // The catalogue is of the server that replaced it.
    let link = link.and_then(|hold| match upstream.is_retired() {
        true => Err("its configuration has just changed; repeat the call".to_owned()),
        false => Ok(hold),
    });
    Some(Target { catalogue, upstream, link })
}

/// The tool as this upstream defines it now.
pub(super) fn tool<'a>(
    catalogue: &'a Catalogue,
    upstream: &Upstream,
    params: &CallParams,
) -> Option<&'a CatalogTool> {
    params.find(catalogue).filter(|tool| *tool.upstream == *upstream.spec().name)
}

/// Describes a header that contradicts the argument that it mirrors; a proxy may have relied on the header.
pub(super) fn header_mismatch(
    request: &Call<Principal>,
    tool: &CatalogTool,
    arguments: &Arguments,
) -> Option<String> {
    let headers = request.param_headers.as_ref()?;
    let definition: Value = serde_json::from_str(tool.definition.get()).ok()?;
    param_headers::mismatch(definition.get("inputSchema")?, arguments.value(), headers)
}
