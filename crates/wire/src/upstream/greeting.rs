//! Builds the parameters of `initialize` and reads its result. Pure.

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::ClientInfo;
use crate::client::Implementation;
use crate::error::Error;
use crate::message::{ErrorObject, Outcome};
use crate::secret::Redactor;
use crate::version::Version;

pub(super) fn params(client_info: &ClientInfo) -> Result<Box<RawValue>, Error> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Params<'a> {
        protocol_version: &'a str,
        capabilities: &'a RawValue,
        client_info: &'a Implementation,
    }
    let unwritable = |_| Error::Protocol("the client's identity cannot be written");
    let nothing = RawValue::from_string("{}".to_owned()).map_err(unwritable)?;
    to_raw_value(&Params {
        protocol_version: Version::LATEST.as_str(),
        capabilities: client_info.capabilities.as_deref().unwrap_or(&nothing),
        client_info: &client_info.implementation,
    })
    .map_err(unwritable)
}

/// The version in the server's `initialize` result.
pub(super) fn version(greeting: &RawValue, redactor: &Redactor) -> Result<Version, Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Agreed {
        protocol_version: String,
    }
    let Agreed { protocol_version } = serde_json::from_str(greeting.get())
        .map_err(|_| Error::Protocol("the answer to `initialize` names no protocol version"))?;
    Version::parse(&protocol_version)
        .ok_or_else(|| Error::Version { version: redactor.quote(&protocol_version) })
}

/// The result, or the error response as an [`Error`].
pub(crate) fn into_result(outcome: Outcome, redactor: &Redactor) -> Result<Box<RawValue>, Error> {
    let object = match outcome {
        Outcome::Result(result) => return Ok(result),
        Outcome::Error(object) => object,
    };
    match serde_json::from_str::<ErrorObject>(object.get()) {
        Ok(ErrorObject { code, message }) => Err(Error::Rpc { code, message: redactor.quote(&message) }),
        Err(_) => Err(Error::Protocol("the server answered with an error that has no code")),
    }
}
