//! Which session a stateless request belongs to: on a pipe, the session of that pipe; over HTTP, all requests of one client
//! with one token, in whichever process they arrive.

use embody_store::Principal;
use embody_wire::InitializeParams;
use embody_wire::Secret;
use embody_wire::server::Host;
use serde_json::Value;
use serde_json::value::RawValue;

/// The session id, a digest: a host's client info is not secret, but not a name either.
pub(super) fn session_id(host: &Host<Principal>) -> String {
    let token = host.bearer().map(Secret::expose);
    digest(&host.principal, &host.initialize_params(), host.connection.as_deref(), token)
}

fn digest(
    principal: &Principal,
    params: &InitializeParams,
    connection: Option<&str>,
    token: Option<&str>,
) -> String {
    let Principal { scope, channel, shared_conversation: conversation, may_approve, .. } = principal;
    // The same members in another order, or with other whitespace, mean the same host.
    let alike = |raw: &Option<Box<RawValue>>| {
        let value = raw.as_deref().and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
        value.unwrap_or_default().to_string()
    };
    let (client, capabilities) = (alike(&params.client_info), alike(&params.capabilities));
    let (conversation, connection) =
        (conversation.as_deref().unwrap_or_default(), connection.unwrap_or_default());
    let mut hasher = blake3::Hasher::new();
    for part in [
        scope.user(),
        scope.agent(),
        channel,
        conversation,
        &client,
        &capabilities,
        connection,
        token.unwrap_or_default(),
    ] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.update(&[u8::from(*may_approve)]);
    let digest = hasher.finalize().to_hex();
    let digest = digest.as_str().get(..32).unwrap_or_default();
    session_of(&if connection.is_empty() { format!("{HTTP_PREFIX}{digest}") } else { digest.to_owned() })
}

const PREFIX: &str = "stateless-";
/// The prefix of the id of an HTTP session.
pub(super) const OVER_HTTP: &str = "stateless-http-";
/// The prefix of the key of such a session.
const HTTP_PREFIX: &str = "http-";

pub(super) fn session_of(key: &str) -> String {
    format!("{PREFIX}{key}")
}

pub(super) fn key_of(session: &str) -> &str {
    session.strip_prefix(PREFIX).unwrap_or(session)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(client: &str, capabilities: &str) -> InitializeParams {
        let raw = |text: &str| Some(RawValue::from_string(text.to_owned()).unwrap());
        InitializeParams { client_info: raw(client), capabilities: raw(capabilities), log_level: None }
    }

    #[test]
    fn a_session_key_belongs_to_exactly_one_host() {
        let ann = Principal::host("ann", "assistant").unwrap();
        let known =
            digest(&ann, &params(r#"{"name":"h","version":"1"}"#, r#"{"elicitation":{}}"#), None, None);
        let same = params(r#"{ "version":"1", "name":"h" }"#, r#"{"elicitation": {}}"#);
        assert_eq!(digest(&ann, &same, None, None), known);
        assert_ne!(digest(&ann, &same, None, Some("token")), known, "each token has its own");
        let on_a_pipe = digest(&ann, &same, Some("pipe"), None);
        assert_ne!(on_a_pipe, known, "another pipe is another conversation");
        assert!(known.starts_with(OVER_HTTP) && !on_a_pipe.starts_with(OVER_HTTP));
        assert_eq!(session_of(key_of(&known)), known);
        let louder = InitializeParams { log_level: Some("debug".to_owned()), ..same.clone() };
        assert_eq!(
            digest(&ann, &louder, None, None),
            known,
            "how much it wants to hear changes from request to request"
        );
        for (principal, params) in [
            (Principal::host("bob", "assistant").unwrap(), same.clone()),
            (Principal::host("ann", "other").unwrap(), same.clone()),
            (ann.clone().in_shared_conversation("r"), same.clone()),
            (Principal { may_approve: true, ..ann.clone() }, same.clone()),
            (ann.clone(), params(r#"{"name":"i","version":"1"}"#, r#"{"elicitation":{}}"#)),
            (ann.clone(), params(r#"{"name":"h","version":"1"}"#, "{}")),
        ] {
            assert_ne!(digest(&principal, &params, None, None), known);
        }
    }
}
