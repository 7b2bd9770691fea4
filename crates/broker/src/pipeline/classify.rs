//! Classify: determines the class of a call and evaluates the operator's rules. Pure.

use embody_wire::off_runtime;

use crate::arguments::Arguments;
use crate::builtin_tools;
use crate::catalogue::CatalogTool;
use crate::policy::{Annotations, Facts, Policy, Ruling};
use crate::session::Session;
use crate::upstream::{Role, Upstream};

/// Large arguments are evaluated with `block_in_place`, so that they do not block the runtime.
pub(crate) fn classify(
    policy: &Policy,
    session: &Session,
    tool: &CatalogTool,
    upstream: &Upstream,
    arguments: &Arguments,
) -> Ruling {
    let facts = Facts {
        tool: &tool.tool,
        body: &tool.upstream,
        args: arguments.value(),
        has_extra: arguments.has_extra(),
        channel: &session.host.principal.channel,
        user: session.scope.user(),
        session: &session.id,
    };
    off_runtime(arguments.canonical().len(), || match &upstream.spec().role {
        Role::Body(body) => policy.rule(&facts, tool.annotations, body.trust_annotations),
        // The tools of a mind have known names.
        Role::Mind => {
            let ruling = policy.rule(&facts, Annotations::of_mind(&tool.tool), true);
            let is_private = session.host.principal.shared_conversation.is_some()
                && !builtin_tools::is_mind_tool_shareable(&tool.tool);
            if is_private { ruling.denied(builtin_tools::SHARED_CONVERSATION) } else { ruling }
        }
    })
}
