//! `embody model test`: asks the model one small thing, or finds model servers on this machine, and with `--save` writes the model
//! into `embody.toml`.

use std::fmt::Write;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{Context, inputs};
use crate::config::edit::{self, ConfigFile, NewValue};
use crate::config::{Config, Override};
use crate::error::CliError;
use crate::model_check::{self, FoundServer, TestedModel};
use crate::model_key::{self, ModelKey};
use crate::output::{self, printable};
use crate::{app, store};

const OK: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();
const HINT: Style = AnsiColor::Cyan.on_default();
/// Models of one server that are named.
const NAMED: usize = 8;

const EXAMPLES: &str = "Examples:
  embody model test                        test the configured model, or find servers on this machine
  embody model test --base-url http://127.0.0.1:11434/v1 --model qwen3 --save
  embody model test --provider anthropic --model claude-sonnet-4-5 --api-key-env ANTHROPIC_API_KEY --save";

#[derive(Subcommand, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) enum ModelCommand {
    /// Send the model one small request; without a model list the servers on this machine
    Test(TestArgs),
}

/// Flags override the configuration for this test.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TestArgs {
    /// The provider whose API format the model uses
    #[arg(long, value_parser = ["openai", "anthropic"])]
    provider: Option<String>,
    /// The URL of the model's API: for `openai` it ends with `/v1`, for `anthropic` without
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// The model's name
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// The environment variable that holds the key
    #[arg(long, value_name = "VARIABLE")]
    api_key_env: Option<String>,
    /// Write what the flags say into embody.toml if the model answers
    #[arg(long, requires = "model")]
    save: bool,
}

impl TestArgs {
    fn keys(&self) -> [(&'static str, &'static str, Option<&String>); 4] {
        [
            ("provider", "--provider", self.provider.as_ref()),
            ("base_url", "--base-url", self.base_url.as_ref()),
            ("model", "--model", self.model.as_ref()),
            ("api_key_env", "--api-key-env", self.api_key_env.as_ref()),
        ]
    }
}

pub(crate) fn run(command: &ModelCommand, context: &Context) -> Result<ExitCode, CliError> {
    let ModelCommand::Test(args) = command;
    let config = with_flags(args, context)?;
    if config.model.model.is_some() {
        return test(args, &config, context);
    }
    // A model without its name is a mistake, not a new user.
    match app::missing_model_name(&config) {
        Some(error) => Err(error),
        None => discover(context),
    }
}

/// The configuration as if the flags were in it.
fn with_flags(args: &TestArgs, context: &Context) -> Result<Config, CliError> {
    let mut inputs = inputs(&context.global)?;
    let given = args.keys().into_iter().filter_map(|(key, flag, value)| {
        let value = value?.clone().into();
        Some(Override { key: format!("model.{key}"), value, flag: flag.to_owned() })
    });
    inputs.overrides.extend(given);
    Ok(Config::load(inputs)?)
}

fn test(args: &TestArgs, config: &Config, context: &Context) -> Result<ExitCode, CliError> {
    let model = config.model.model.clone().unwrap_or_default();
    let at = format!("{model} at {} ({})", config.model.base_url, config.model.provider.name());
    let mut value = json!({
        "configured": true,
        "provider": config.model.provider.name(),
        "base_url": config.model.base_url.to_string(),
        "model": model,
        "key": model_key::source_json(&config.model),
    });
    let key = ModelKey::configured(&config.model);
    let tested = key.and_then(|key| store::block_on(model_check::test(config, key, &context.config.model)));
    let tested = match tested {
        Ok(tested) => tested,
        Err(failure) => {
            let (message, hint) = failure.summary();
            extend(&mut value, json!({ "ok": false, "message": message, "hint": hint }));
            context.print(&value, || failed_text(&at, &message, &hint))?;
            return Ok(output::exit_code(false));
        }
    };
    let saved = if args.save { Some(save(args, &tested, context)?) } else { None };
    extend(&mut value, tested.json());
    extend(&mut value, json!({ "ok": true, "saved": saved }));
    context.print(&value, || ok_text(&at, &tested, saved.as_deref()))
}

fn extend(value: &mut Value, more: Value) {
    if let (Some(members), Value::Object(more)) = (value.as_object_mut(), more) {
        members.extend(more);
    }
}

fn failed_text(at: &str, message: &str, hint: &str) -> String {
    let mut out = format!("{BAD}FAIL{BAD:#}  {}: {}\n", printable(at), printable(message));
    if !hint.is_empty() {
        let _ = writeln!(out, "      {HINT}hint:{HINT:#} {}", printable(hint));
    }
    out
}

fn ok_text(at: &str, tested: &TestedModel, saved: Option<&str>) -> String {
    let tokens = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), |count| count.to_string());
    let mut out = format!(
        "{OK}ok{OK:#}    {}: answered in {:.1} s, {} tokens in, {} out\n",
        printable(at),
        tested.took.as_secs_f64(),
        tokens(tested.usage.input),
        tokens(tested.usage.output),
    );
    if !tested.native_tools {
        out.push_str("      It takes no tools in its own format: `native_tools = false` explains them in the prompt.\n");
    }
    if let Some(file) = saved {
        let _ = writeln!(
            out,
            "saved to {file}\nNext: embody run 'Hello', or embody up; one that runs uses it from the next turn"
        );
    }
    out
}

/// Writes the flags, and what the test found out. Returns the file.
fn save(args: &TestArgs, tested: &TestedModel, context: &Context) -> Result<String, CliError> {
    let file = ConfigFile::lock(context)?;
    let given =
        args.keys().into_iter().filter_map(|(key, _, value)| Some((key, Some(value?.clone().into()))));
    let mut values: Vec<NewValue<'_>> = given.collect();
    if args.api_key_env.is_some() {
        values.push(("api_key_file", None));
    }
    values.extend(tested.native_tools_change(&context.config.model));
    let changed = edit::set_keys(&file.text, "model", &values).map_err(|error| file.error(&error))?;
    let config = file.write(&changed, inputs(&context.global)?)?;
    if let Some(overridden) = model_check::env_override(&config) {
        output::hint(&overridden);
    }
    Ok(file.shown())
}

fn discover(context: &Context) -> Result<ExitCode, CliError> {
    let found = store::block_on(async { Ok(model_check::discover().await) })?;
    let choice = found.iter().find_map(|server| Some((server, server.models.first()?)));
    let offer = choice.map(|(server, model)| Offer::new(server, model));
    let value = json!({
        "ok": !found.is_empty(),
        "configured": false,
        "found": found.iter().map(FoundServer::json).collect::<Vec<_>>(),
        "section": offer.as_ref().map(|offer| &offer.section),
        "command": offer.as_ref().map(|offer| &offer.command),
    });
    context.print(&value, || found_text(&found, offer.as_ref(), &config_file(context)))?;
    Ok(output::exit_code(!found.is_empty()))
}

fn config_file(context: &Context) -> String {
    let file = context.config.file.clone();
    file.unwrap_or_else(|| context.workspace.join(crate::config::FILE_NAME)).display().to_string()
}

/// What makes a found model the configured one.
struct Offer {
    section: String,
    command: String,
}

impl Offer {
    fn new(server: &FoundServer, model: &str) -> Self {
        let quoted = |text: &str| toml::Value::from(text).to_string();
        let section =
            format!("[model]\nbase_url = {}\nmodel = {}\n", quoted(&server.base_url), quoted(model));
        let name = shlex::try_quote(model).map_or_else(|_| "NAME".to_owned(), std::borrow::Cow::into_owned);
        let command = format!("embody model test --base-url {} --model {name} --save", server.base_url);
        Self { section, command }
    }
}

fn found_text(found: &[FoundServer], offer: Option<&Offer>, file: &str) -> String {
    if found.is_empty() {
        return format!(
            "{BAD}FAIL{BAD:#}  no model is configured, and no model server answers on this machine\n      \
             {HINT}hint:{HINT:#} start one (Ollama, llama.cpp, LM Studio, vLLM), or name another:\n        \
             embody model test --base-url https://api.openai.com/v1 --model NAME --api-key-env OPENAI_API_KEY --save\n"
        );
    }
    let mut out = "No model is configured. On this machine:\n".to_owned();
    for server in found {
        let named: Vec<_> = server.models.iter().take(NAMED).map(|name| printable(name)).collect();
        let more = if server.models.len() > NAMED { ", …" } else { "" };
        let models = if named.is_empty() { "no models".to_owned() } else { named.join(", ") + more };
        let _ = writeln!(out, "  {} ({}): {models}", server.base_url, server.name);
    }
    match offer {
        Some(Offer { section, command }) => {
            let lines: String = section.lines().map(|line| format!("  {}\n", printable(line))).collect();
            let _ = write!(out, "\nTo use one:\n  {command}\nThis tests it and adds to {file}:\n{lines}");
        }
        None => out.push_str("\nLoad a model there, and try again.\n"),
    }
    out
}
