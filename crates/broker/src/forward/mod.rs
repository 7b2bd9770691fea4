//! stub
use std::sync::Arc;
use embody_wire::{Notification, Outcome};
use embody_wire::serve::{Call, code, failure};
use crate::{Principal, Setup};
use crate::session::Session;
pub(crate) async fn answer(_setup: &Arc<Setup>, _session: &Arc<Session>, call: &Arc<Call<Principal>>) -> Outcome {
    failure(code::METHOD_NOT_FOUND, format!("`{}` is not served", call.request.method))
}
pub(crate) async fn notice(_session: &Arc<Session>, _notification: Notification) {}
pub(crate) async fn heard(_session: &Arc<Session>, _upstream: &str, _notification: Notification) {}
