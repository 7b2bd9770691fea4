//! The mind's contract, from the workspace and the store, fresh for every session; and the time where the owner is.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use embody_mind::{Contract, ContractSource, Moment};
use embody_store::{Scope, Store};
use embody_workspace::load;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::cli::{Context, Who};
use crate::compose::{self, PromptArgs};
use crate::failure::Failure;
use crate::persona::{self, Fetched};
use crate::stored;

/// How long a remote persona is believed, and how long its absence.
const PERSONA_KEPT: Duration = Duration::from_secs(300);
const ABSENCE_KEPT: Duration = Duration::from_secs(30);

/// Where contracts come from.
pub(crate) struct Voice {
    context: Context,
    store: Store,
    persona: tokio::sync::Mutex<Option<(Instant, Fetched)>>,
    zone: Mutex<TimeZone>,
}

impl Voice {
    pub(crate) fn new(context: Context, store: Store) -> Arc<Self> {
        Arc::new(Self {
            context,
            store,
            persona: tokio::sync::Mutex::default(),
            zone: Mutex::new(TimeZone::system()),
        })
    }

    /// What the mind asks for its contract.
    pub(crate) fn source(self: &Arc<Self>) -> ContractSource {
        let voice = Arc::clone(self);
        ContractSource::new(move |scope: Scope, now: Moment| {
            let voice = Arc::clone(&voice);
            async move { voice.contract(&scope, &now).await.map_err(|failure| failure.in_short().0) }
        })
    }

    /// Now, where the owner is as far as it is known.
    pub(crate) fn now(&self) -> Moment {
        let zone = self.zone.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Moment::new(Timestamp::now(), zone)
    }

    /// Reads the workspace, so that the owner's time zone is known before anybody asks for a contract.
    pub(crate) async fn warm_up(&self, scope: &Scope) {
        let now = self.now();
        if let Err(failure) = self.contract(scope, &now).await {
            tracing::warn!(reason = failure.in_short().0, "the contract cannot be assembled");
        }
    }

    async fn contract(&self, scope: &Scope, now: &Moment) -> Result<Contract, Failure> {
        let who = Who { user: Some(scope.user().to_owned()), agent: Some(scope.agent().to_owned()) };
        let mut args = PromptArgs::plain(who);
        args.now = Timestamp::from_microsecond(now.micros()).ok();
        let mut request = compose::request(self.context.workspace.clone(), &self.context.config, &args)?;
        request.tools = Vec::new();
        stored::fill_from(&mut request, &self.store, scope).await?;
        // Files may be on a slow disk: other calls go on meanwhile.
        let mut loaded = tokio::task::spawn_blocking(move || load(&request))
            .await
            .map_err(|error| Failure::new("the workspace could not be read").because(&error))??;
        if let Ok(zone) = TimeZone::get(&loaded.zone) {
            *self.zone.lock().unwrap_or_else(PoisonError::into_inner) = zone;
        }
        let persona = self.persona().await;
        compose::take_persona(&mut loaded, &self.context.config, persona);
        Ok(Contract::assemble(&loaded.input))
    }

    /// The remote persona. It is data, so it may be kept for a while; the contract is not.
    async fn persona(&self) -> Fetched {
        let mut kept = self.persona.lock().await;
        if let Some((since, fetched)) = &*kept {
            let limit = if matches!(fetched, Fetched::Failed(_)) { ABSENCE_KEPT } else { PERSONA_KEPT };
            if since.elapsed() < limit {
                return fetched.clone();
            }
        }
        let fetched = persona::fetch(&self.context.config.persona).await;
        *kept = Some((Instant::now(), fetched.clone()));
        fetched
    }
}
