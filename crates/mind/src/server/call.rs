//! A tool call: parses the arguments, calls the tool's function, returns the result as data and as text.

use embody_mcp::{CallToolParams, ElicitOutcome, RequestContext, RequestError, ToolResult, read_arguments};
use embody_store::Principal;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{MindHandler, RpcResult};
use crate::{
    BootstrapSession, Caller, Confirmation, Error, ForgetMemory, GetContext, GetSystemPrompt,
    ListMemoryFiles, Observe, ReadMemory, Recall, Reflect, SaveMemory, Tool, UpdateInstructions,
    UpdateOutcome, UpdatedInstructions, ZonedNow, json_text,
};

/// The key of the owner's answer from a host of the stateless era.
const CONFIRM: &str = "confirm";
/// The broker's idempotency key for an observation, in `_meta`. Observations without it come from its host and train nothing.
const KEY: &str = "embody/idempotencyKey";
/// In `_meta`: the broker asks what the owner would have to approve; the owner has approved, for this version.
const PREVIEW: &str = "embody/preview";
const APPROVED: &str = "embody/approved";

impl MindHandler {
    /// Calls a tool. An error inside it is a result that the model can read; only an unknown tool is a protocol error.
    pub(super) async fn call(
        &self,
        caller: &Caller,
        now: &ZonedNow,
        call: CallToolParams,
        context: &RequestContext<Principal>,
    ) -> RpcResult {
        let Some(tool) = Tool::from_name(&call.name) else {
            let name: String = call.name.chars().take(64).collect();
            return Err(RequestError::InvalidParams(format!("unknown tool `{name}`")));
        };
        let given = Value::Object(call.arguments);
        macro_rules! run {
            ($method:ident) => {
                match arguments(tool, &given) {
                    Ok(args) => result(self.mind.$method(caller, args, now).await),
                    Err(refused) => Err(refused),
                }
            };
        }
        let called = match tool {
            Tool::BootstrapSession => run!(bootstrap_session),
            Tool::SaveMemory => run!(save_memory),
            Tool::ReadMemory => run!(read_memory),
            Tool::ForgetMemory => run!(forget_memory),
            Tool::Recall => run!(recall),
            Tool::ListMemoryFiles => run!(list_memory_files),
            Tool::GetSystemPrompt => match arguments(tool, &given) {
                Ok(args) => match self.mind.get_system_prompt(caller, args, now).await {
                    Ok(text) => Ok(ToolResult::data_as(json!({ "text": text }), text)),
                    Err(error) => Err(error_result(&error)),
                },
                Err(refused) => Err(refused),
            },
            Tool::UpdateInstructions => match arguments(tool, &given) {
                Ok(args) => return self.update(caller, now, args, context).await,
                Err(refused) => Err(refused),
            },
            Tool::Observe => match arguments::<Observe>(tool, &given) {
                Ok(args) => {
                    let key = context.meta(KEY).and_then(Value::as_str).map(str::to_owned);
                    result(self.mind.observe(caller, Observe { key, ..args }, now).await)
                }
                Err(refused) => Err(refused),
            },
            Tool::Reflect => run!(reflect),
            Tool::Context => run!(context),
        };
        if matches!(tool, Tool::SaveMemory | Tool::ForgetMemory) && called.is_ok() {
            self.memories_changed(context);
        }
        self.background_tasks.record_call(&caller.scope, tool == Tool::SaveMemory);
        Ok(called.unwrap_or_else(|refused| refused).into())
    }

    async fn update(
        &self,
        caller: &Caller,
        now: &ZonedNow,
        args: UpdateInstructions,
        context: &RequestContext<Principal>,
    ) -> RpcResult {
        let text = args.instructions.clone();
        if caller.trains && context.meta(PREVIEW).is_some() {
            let confirmation = self.mind.preview_instructions(caller, &args).await;
            return Ok(confirmation
                .map_or_else(|error| error_result(&error), |confirmation| success_result(&confirmation))
                .into());
        }
        if let Some(version) = context.meta(APPROVED).and_then(Value::as_i64).filter(|_| caller.trains) {
            let written = self.mind.confirm_instructions(caller, text, version).await;
            return Ok(self.confirmation_result(written, context).into());
        }
        let confirmation = match self.mind.update_instructions(caller, args, now).await {
            Ok(UpdateOutcome::Written(written)) => {
                self.instructions_changed(context);
                return Ok(success_result(&written).into());
            }
            Ok(UpdateOutcome::NeedsConfirmation(confirmation)) => confirmation,
            Err(error) => return Ok(error_result(&error).into()),
        };
        // The broker asks the owner itself: a form through it would not be bound to the people who may approve.
        if caller.trains || !context.can_show_forms() {
            return Ok(self.propose(caller, now, text, &confirmation).await.into());
        }
        // An approval is valid for this text and this version only: what the owner saw is what is written.
        let shown = format!("{}:{}", confirmation.base_version, blake3::hash(text.as_bytes()).to_hex());
        if context.input(CONFIRM).is_some() && context.state() != Some(&*shown) {
            return Ok(refusal_result(&confirmation, "the owner was shown another change").into());
        }
        let answer = match context.ask(CONFIRM, "elicitation/create", elicitation_params(&confirmation)).await
        {
            Ok(answer) => answer,
            Err(_) => return Ok(refusal_result(&confirmation, "the host did not show the form").into()),
        };
        match answer {
            ElicitOutcome::InputRequired(mut result) => {
                result.insert("requestState".into(), shown.into());
                Ok(result)
            }
            ElicitOutcome::Answer(answer)
                if answer.get("action").and_then(Value::as_str) == Some("accept") =>
            {
                let written = self.mind.confirm_instructions(caller, text, confirmation.base_version).await;
                Ok(self.confirmation_result(written, context).into())
            }
            ElicitOutcome::Answer(_) => {
                Ok(refusal_result(&confirmation, "the owner did not accept it").into())
            }
        }
    }

    fn confirmation_result(
        &self,
        written: Result<UpdatedInstructions, Error>,
        context: &RequestContext<Principal>,
    ) -> ToolResult {
        if written.is_ok() {
            self.instructions_changed(context);
        }
        written.map_or_else(|error| error_result(&error), |written| success_result(&written))
    }

    async fn propose(
        &self,
        caller: &Caller,
        now: &ZonedNow,
        text: String,
        confirmation: &Confirmation,
    ) -> ToolResult {
        match self.mind.propose_instructions(caller, text, confirmation, now).await {
            Ok(Some(proposal)) => ToolResult::error(format!(
                "the instructions were not changed: {}. The change is now the proposal `{}`, which only the owner can \
                 accept (`embody instructions proposals`). Tell them so",
                confirmation.reason, proposal.id
            ))
            .with(json!({"needs_confirmation": confirmation, "proposal": proposal.id})),
            Ok(None) => refusal_result(confirmation, "too many proposals are open already"),
            Err(error) => error_result(&error),
        }
    }
}

fn elicitation_params(confirmation: &Confirmation) -> Value {
    json!({
        "mode": "form",
        "message": format!("Change the agent's standing instructions? {}\n\n{}", confirmation.reason, confirmation.diff),
        "requestedSchema": {"type": "object", "properties": {}},
    })
}

fn refusal_result(confirmation: &Confirmation, why: &str) -> ToolResult {
    ToolResult::error(format!(
        "the instructions were not changed: {}, and {why}. Tell them what you would change; only they can do it",
        confirmation.reason
    ))
    .with(json!({"needs_confirmation": confirmation}))
}

fn arguments<T: DeserializeOwned + JsonSchema>(tool: Tool, given: &Value) -> Result<T, ToolResult> {
    read_arguments(tool.name(), given).map_err(|error| error_result(&error.into()))
}

fn result<T: Serialize>(done: Result<T, Error>) -> Result<ToolResult, ToolResult> {
    done.map(|value| success_result(&value)).map_err(|error| error_result(&error))
}

fn success_result(value: &impl Serialize) -> ToolResult {
    match (serde_json::to_value(value), json_text(value)) {
        (Ok(data), Ok(text)) => ToolResult::data_as(data, text),
        _ => ToolResult::error("the result cannot be written"),
    }
}

/// The error of a call whose arguments cannot be read.
pub(super) fn argument_error(tool: Tool, given: &Value) -> Option<String> {
    fn error<T: DeserializeOwned + JsonSchema>(tool: Tool, given: &Value) -> Option<String> {
        read_arguments::<T>(tool.name(), given).err().map(|error| error_text(&error.into()))
    }
    match tool {
        Tool::BootstrapSession => error::<BootstrapSession>(tool, given),
        Tool::SaveMemory => error::<SaveMemory>(tool, given),
        Tool::ReadMemory => error::<ReadMemory>(tool, given),
        Tool::ForgetMemory => error::<ForgetMemory>(tool, given),
        Tool::Recall => error::<Recall>(tool, given),
        Tool::ListMemoryFiles => error::<ListMemoryFiles>(tool, given),
        Tool::GetSystemPrompt => error::<GetSystemPrompt>(tool, given),
        Tool::UpdateInstructions => error::<UpdateInstructions>(tool, given),
        Tool::Observe => error::<Observe>(tool, given),
        Tool::Reflect => error::<Reflect>(tool, given),
        Tool::Context => error::<GetContext>(tool, given),
    }
}

fn error_text(error: &Error) -> String {
    match error.advice() {
        Some(advice) => format!("{error}; {advice}"),
        None => error.to_string(),
    }
}

fn error_result(error: &Error) -> ToolResult {
    let refused = ToolResult::error(error_text(error));
    match error.details() {
        Some(details) => refused.with(details),
        None => refused,
    }
}
