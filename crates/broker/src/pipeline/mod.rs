//! The path of one tool call, one stage per file:
//!
//! parse → resolve → classify → observe → gate → approve → record → send → record → respond
//!
//! All tool calls of hosts pass through here, and nothing is sent without a [`gate::Permit`]. A request that is not a tool
//! call enters at the gate ([`run_request`]). A stage is a function of the call and the parts of the broker that it needs;
//! large or rare branches are boxed, because they would enlarge the future of every call.

mod approve;
pub(crate) mod classify;
pub mod gate;
pub(crate) mod observe;
pub(crate) mod parse;
pub(crate) mod record;
mod resolve;
pub(crate) mod respond;
pub(crate) mod send;

use std::sync::Arc;

use embody_store::Principal;
use embody_store::audit::AuditOutcome;
use embody_wire::Outcome;
use embody_wire::server::{Call, code};
use serde_json::value::RawValue;

use self::observe::MindView;
use self::parse::CallParams;
use self::resolve::Target;
use self::respond::CallRefusal;
use self::send::CallResult;
use crate::arguments::Arguments;
use crate::builtin_tools::{self, BuiltinTool};
use crate::catalogue::CatalogTool;
use crate::meter::{self, Timing, trace};
use crate::policy::{Class, Ruling};
use crate::session::Session;
use crate::session::untrusted_reads::{self, LastingWrite};
use crate::upstream::{ConnectionLease, Upstream};
use crate::{Broker, BrokerSettings};

const TOOLS_CALL: &str = "tools/call";

/// A call whose tool, arguments and class are known; the input of every stage after `classify`.
pub(crate) struct ToolCall<'a> {
    pub(crate) id: String,
    pub(crate) began: tokio::time::Instant,
    pub(crate) session: &'a Arc<Session>,
    pub(crate) request: &'a Arc<Call<Principal>>,
    pub(crate) tool: &'a CatalogTool,
    pub(crate) upstream: &'a Arc<Upstream>,
    pub(crate) link: Result<ConnectionLease, String>,
    /// `tools/call`, or the method of another request; `tool` is then the item that it reads.
    pub(crate) method: &'a str,
    /// The parameters that are sent, with the upstream's own name of the tool.
    pub(crate) params: Option<&'a RawValue>,
    pub(crate) wants_task: bool,
    pub(crate) arguments: Arc<Arguments>,
    pub(crate) ruling: Ruling,
    /// The version in force when the call was classified: it decides the whole call.
    pub(crate) settings: Arc<BrokerSettings>,
    /// Set if the call needs approval because the agent has read untrusted text.
    pub(crate) lasting: Option<LastingWrite>,
    pub(crate) meter: &'a meter::Body,
    pub(crate) timing: Timing,
}

impl ToolCall<'_> {
    fn is_tool_call(&self) -> bool {
        self.method == TOOLS_CALL
    }

    fn is_read(&self) -> bool {
        self.ruling.class == Class::Read
    }

    /// Identifies a repeated call: server, tool and arguments.
    fn digest(&self) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new();
        for part in [&*self.tool.upstream, &self.tool.tool, self.arguments.canonical()] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        hasher.finalize()
    }
}

/// Answers `tools/call` for a builtin tool or a tool of the mind or a body.
pub(crate) async fn handle(
    broker: &Broker,
    session: &Arc<Session>,
    request: &Arc<Call<Principal>>,
) -> Outcome {
    let config = &broker.config;
    let params = match CallParams::parse(request.request.params.as_deref()) {
        Ok(params) => params,
        Err(outcome) => {
            config.meter.rejected.add(1);
            return outcome;
        }
    };
    let Some(tool) = BuiltinTool::named(&params.name) else {
        return run(broker, session, request, params).await;
    };
    config.meter.count_builtin(tool);
    trace::record_builtin(&params.name);
    if tool == BuiltinTool::BodyTool {
        return match params.inner() {
            Ok(inner) if BuiltinTool::named(&inner.name).is_some() => {
                let message = format!("`{}` is not a tool of a body", inner.name);
                respond::rejected(config, code::INVALID_PARAMS, message)
            }
            Ok(inner) => run(broker, session, request, inner).await,
            Err(outcome) => outcome,
        };
    }
    Box::pin(builtin_tools::call(broker, session, request, tool, &params)).await
}

/// Runs one call of a tool of the mind or a body.
pub(crate) async fn run(
    broker: &Broker,
    session: &Arc<Session>,
    request: &Arc<Call<Principal>>,
    params: CallParams,
) -> Outcome {
    let config = &broker.config;
    let Some(Target { catalogue, upstream, link }) = resolve::target(config, session, &params).await else {
        return respond::unknown_tool(config, session, &params.name);
    };
    let Some(tool) = resolve::tool(&catalogue, upstream, &params) else {
        return respond::unknown_tool(config, session, &params.name);
    };
    let arguments = match params.arguments_with_extra(upstream.spec().role.arguments_max_bytes()) {
        Ok(arguments) => arguments,
        Err(error) => return respond::rejected(config, code::INVALID_PARAMS, error.to_string()),
    };
    if let Some(message) = resolve::header_mismatch(request, tool, &arguments) {
        return respond::rejected(config, code::HEADER_MISMATCH, message);
    }
    let settings = config.settings();
    let ruling = classify::classify(&settings.policy, session, tool, upstream, &arguments);
    let (ruling, lasting) = if untrusted_reads::is_lasting(tool, upstream) {
        Box::pin(untrusted_reads::guard_lasting(session, upstream, &arguments, ruling)).await
    } else {
        (ruling, None)
    };
    let sent_params = params.for_upstream(&tool.tool);
    let call = ToolCall {
        id: uuid::Uuid::now_v7().simple().to_string(),
        began: tokio::time::Instant::from_std(params.began),
        session,
        request,
        tool,
        upstream,
        link,
        method: TOOLS_CALL,
        params: Some(&*sent_params),
        wants_task: params.wants_task,
        arguments,
        ruling,
        settings,
        lasting,
        meter: config.meter.body(&tool.upstream),
        timing: Timing::since(params.began),
    };
    trace::record_call(&call);
    execute(broker, &call).await
}

async fn execute(broker: &Broker, call: &ToolCall<'_>) -> Outcome {
    let (config, session) = (&broker.config, call.session);
    // Log lines about this call carry the same id as its audit record.
    tracing::debug!(
        call = call.id,
        session = session.id,
        body = &*call.tool.upstream,
        tool = call.tool.tool,
        class = call.ruling.class.name(),
        "tool call"
    );
    if !call.is_read() {
        Box::pin(session.refresh_delivery(config)).await;
    }
    if session.needs_bootstrap() {
        let booting = session.bootstrap_before_call(config, call.is_read());
        call.timing.exclude_wait(Box::pin(booting)).await;
    }
    let view = observe::before(broker, call).await;
    match authorize_and_send(broker, call, &view).await {
        Ok((result, outcome)) => {
            let response = respond::forward(call, result);
            respond::count_end(call, Some(outcome));
            response
        }
        Err(refusal) => Box::pin(respond::refuse(broker, call, refusal)).await,
    }
}

/// Sends a request that is not a tool call if the gate permits it; otherwise returns the refusal. It is decided, approved and
/// recorded like a tool call.
pub(crate) async fn run_request(broker: &Broker, call: &ToolCall<'_>) -> Result<CallResult, Outcome> {
    // The mind observes tool reads only.
    let view = if call.is_read() {
        MindView::unasked(call.session)
    } else {
        Box::pin(call.session.refresh_delivery(&broker.config)).await;
        observe::before(broker, call).await
    };
    match authorize_and_send(broker, call, &view).await {
        Ok((result, outcome)) => {
            respond::count_end(call, Some(outcome));
            Ok(result)
        }
        Err(refusal) => Err(Box::pin(respond::refuse(broker, call, refusal)).await),
    }
}

/// gate → approve → record → send → record.
async fn authorize_and_send(
    broker: &Broker,
    call: &ToolCall<'_>,
    view: &MindView,
) -> Result<(CallResult, AuditOutcome), CallRefusal> {
    let situation = gate::situation(&broker.config, call, view).await?;
    let (permit, approval) = match gate::decide(&situation) {
        gate::Decision::Permit(permit) => (permit, None),
        gate::Decision::Ask(reason) => {
            approve::refuse_certain_failure(call).await?;
            let decided = Box::pin(approve::ask_and_decide(broker, call, view, situation, reason)).await;
            let (permit, id) = decided.map_err(|refusal| refusal.after_reading(call.lasting.as_ref()))?;
            (permit, Some(id))
        }
        decision => return Err(Box::pin(respond::refusal(broker, call, &decision, view, &[])).await),
    };
    if call.is_read() && !permit.uses_approval() {
        let (result, _) = send::send(broker, call, permit).await;
        return Ok(record::read(broker, call, result).await);
    }
    Box::pin(async {
        let _open_write = record::OpenWrite::new(call.session);
        if call.request.is_cancelled() {
            return Err(CallRefusal::cancelled());
        }
        // Recorded before it is sent, together with the use of the approval.
        let approval = approval.filter(|_| permit.uses_approval());
        let intent = record::intent(&broker.config, call, approval).await?;
        let (result, task) = send::send(broker, call, permit).await;
        Ok(record::write(broker, call, intent, result, task).await)
    })
    .await
}
