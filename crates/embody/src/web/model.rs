//! `/api/model`: shows which model is configured, and lets the owner set one. A model is saved only after it has answered a request:
//! into `embody.toml`, and a key that was entered into a file of its own. The key never comes back.

use std::fs;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Query, Request, State};
use axum::http::StatusCode;
use embody_agent::model::Provider;
use embody_wire::Secret;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::WebState;
use super::auth::{self, ApiCaller};
use super::error::ApiError;
use crate::config::edit::{self, ConfigFile, NewValue};
use crate::config::{Config, Inputs, env};
use crate::error::CliError;
use crate::model_check::{self, FoundServer, TestedModel};
use crate::model_key::{self, ModelKey};
use crate::settings::Settings;

const MAX_BODY_BYTES: usize = 32 * 1024;
const MAX_TEXT_BYTES: usize = 2048;
const MAX_KEY_BYTES: usize = 8192;
/// A test can take a minute, and the file has one new content.
static CHANGE: Semaphore = Semaphore::const_new(1);

#[derive(Deserialize)]
pub(super) struct ShowQuery {
    /// Whether to look for model servers on this machine.
    discover: Option<u8>,
}

pub(super) async fn show(
    State(web): State<Arc<WebState>>,
    caller: ApiCaller,
    Query(query): Query<ShowQuery>,
) -> Result<Json<Value>, ApiError> {
    if caller.require_operator()? != web.scope.user() {
        return Err(ApiError::forbidden("only the owner can see the model's configuration"));
    }
    let settings = web.prompts.settings();
    let model = &settings.config.model;
    let mut value = json!({
        "configured": web.agent.has_model(),
        "provider": model.provider,
        "base_url": model.base_url.to_string(),
        "model": model.model,
        "key": model_key::source_json(model),
    });
    if query.discover.is_some_and(|discover| discover != 0)
        && let Some(members) = value.as_object_mut()
    {
        let found = model_check::discover().await;
        members.insert("found".to_owned(), found.iter().map(FoundServer::json).collect());
    }
    Ok(Json(value))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewModel {
    provider: Provider,
    /// Without one the provider's own.
    base_url: Option<String>,
    model: String,
    api_key: Option<Secret>,
    api_key_env: Option<String>,
    /// The name of the new file for `api_key`.
    #[serde(skip)]
    key_file: Option<String>,
}

pub(super) async fn set(
    State(web): State<Arc<WebState>>,
    caller: ApiCaller,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    // A model's address and key decide where every prompt goes, and what of the environment is sent there.
    if !caller.is_owner {
        let message = "only the owner can set the model, in a browser that is signed in with a link; `embody open` prints one";
        return Err(ApiError::forbidden(message));
    }
    let new: NewModel = auth::json_up_to(request, MAX_BODY_BYTES).await?;
    let new = Arc::new(new.checked()?);
    let Ok(_change) = CHANGE.try_acquire() else {
        return Err(ApiError::conflict("another model is being tested").hint("try again in a minute"));
    };
    let before = web.prompts.settings();
    let config = {
        let new = Arc::clone(&new);
        with_settings(&web, move |settings| new.preview(settings)).await?
    };
    if let Some(overridden) = model_check::env_override(&config) {
        return Err(ApiError::conflict(overridden));
    }
    let key = match &new.api_key {
        Some(key) => ModelKey::entered(key),
        None => ModelKey::configured(&config.model).map_err(|failure| api_error(&failure))?,
    };
    let tested = model_check::test(&config, key, &before.config.model).await.map_err(|failure| {
        // Not 401, even if the model's server says so: that would sign the page out.
        ApiError::from_cli_error(StatusCode::UNPROCESSABLE_ENTITY, &failure)
    })?;
    let mut value = tested.json();
    let (config, file) = with_settings(&web, move |settings| new.save(settings, &tested)).await?;
    let state = web.reloader.reload().await;
    if let Some(members) = value.as_object_mut() {
        members.extend([
            ("provider".to_owned(), json!(config.model.provider)),
            ("base_url".to_owned(), json!(config.model.base_url.to_string())),
            ("model".to_owned(), json!(config.model.model)),
            ("key".to_owned(), model_key::source_json(&config.model)),
            ("file".to_owned(), json!(file)),
            ("applied".to_owned(), json!(state.problem.is_none() && web.agent.has_model())),
        ]);
    }
    Ok(Json(value))
}

/// Works on the file, for which it may have to wait. It finishes even if the browser disconnects.
async fn with_settings<T: Send + 'static>(
    web: &Arc<WebState>,
    work: impl FnOnce(&Settings) -> Result<T, CliError> + Send + 'static,
) -> Result<T, ApiError> {
    let web = Arc::clone(web);
    let done = tokio::task::spawn_blocking(move || work(&web.prompts.settings())).await;
    let done =
        done.map_err(|_| ApiError::unavailable("internal error: the configuration was not changed"))?;
    done.map_err(|failure| api_error(&failure))
}

/// A wrong value is the caller's mistake; anything else is this machine's.
fn api_error(failure: &CliError) -> ApiError {
    let status = if failure.is_usage() { StatusCode::BAD_REQUEST } else { StatusCode::SERVICE_UNAVAILABLE };
    ApiError::from_cli_error(status, failure)
}

/// The text of a field that was filled in.
fn filled(text: Option<String>) -> Option<String> {
    text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

impl NewModel {
    fn checked(self) -> Result<Self, ApiError> {
        let new = Self {
            provider: self.provider,
            base_url: filled(self.base_url),
            model: self.model.trim().to_owned(),
            api_key: self.api_key.filter(|key| !key.expose().trim().is_empty()),
            api_key_env: filled(self.api_key_env),
            key_file: None,
        };
        let key_file = new.api_key.as_ref().map(|_| model_key::new_name()).transpose();
        let new = Self { key_file: key_file.map_err(|failure| api_error(&failure))?, ..new };
        if new.model.is_empty() {
            return Err(
                ApiError::bad_request("`model` is empty").hint("write the server's name of the model")
            );
        }
        if new.api_key.is_some() && new.api_key_env.is_some() {
            return Err(ApiError::bad_request("both `api_key` and `api_key_env` are given")
                .hint("give the key, or the name of the variable that holds it"));
        }
        let texts = [Some(&new.model), new.base_url.as_ref(), new.api_key_env.as_ref()];
        let is_long = texts.into_iter().flatten().any(|text| text.len() > MAX_TEXT_BYTES);
        if is_long || new.api_key.as_ref().is_some_and(|key| key.expose().len() > MAX_KEY_BYTES) {
            return Err(ApiError::bad_request(format!(
                "a key may have {MAX_KEY_BYTES} bytes, other values {MAX_TEXT_BYTES}"
            )));
        }
        Ok(new)
    }

    /// The keys of `[model]`. What the form leaves empty is removed.
    fn values(&self) -> Vec<NewValue<'static>> {
        let text = |text: &Option<String>| text.as_deref().map(toml::Value::from);
        let is_default = self.provider == Provider::default();
        vec![
            ("provider", (!is_default).then(|| self.provider.name().into())),
            ("base_url", text(&self.base_url)),
            ("model", Some(self.model.as_str().into())),
            ("api_key_env", text(&self.api_key_env)),
            ("api_key_file", text(&self.key_file)),
        ]
    }

    /// The configuration with this model, which is not in the file yet.
    fn preview(&self, settings: &Settings) -> Result<Config, CliError> {
        let file = ConfigFile::lock(settings)?;
        let text = edit::set_keys(&file.text, "model", &self.values()).map_err(|error| file.error(&error))?;
        file.config(&text, inputs(settings))
    }

    /// Returns the configuration and its file. The file may have changed since the test began: its other keys stay.
    fn save(&self, settings: &Settings, tested: &TestedModel) -> Result<(Config, String), CliError> {
        let file = ConfigFile::lock(settings)?;
        let mut values = self.values();
        let set =
            |values: &[_]| edit::set_keys(&file.text, "model", values).map_err(|error| file.error(&error));
        // Nothing is written if the configuration would be wrong.
        let config = file.config(&set(&values)?, inputs(settings))?;
        values.extend(tested.native_tools_change(&config.model));
        let text = set(&values)?;
        let Some((key, new_file)) = self.api_key.as_ref().zip(config.model.api_key_file.as_ref()) else {
            return Ok((file.write(&text, inputs(settings))?, file.shown()));
        };
        let old_file = file.config(&file.text, inputs(settings)).ok().and_then(|old| old.model.api_key_file);
        let written = model_key::write(new_file, key).and_then(|()| file.write(&text, inputs(settings)));
        let unused = if written.is_ok() { old_file.as_ref() } else { Some(new_file) };
        if let Some(unused) = unused.filter(|unused| model_key::is_own(&settings.workspace, unused))
            && let Err(error) = fs::remove_file(unused)
        {
            tracing::warn!(file = %unused.display(), reason = %error, "a key file that is no longer used could not be removed");
        }
        Ok((written?, file.shown()))
    }
}

/// The sources of the configuration of this process but for flags, none of which is about the model.
fn inputs(settings: &Settings) -> Inputs {
    Inputs {
        file: settings.config.file.clone(),
        workspace: settings.workspace.clone(),
        env: env::of_process(),
        overrides: Vec::new(),
    }
}
