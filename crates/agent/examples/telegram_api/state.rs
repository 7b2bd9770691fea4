//! The state of the fake Bot API: pending updates, accepted messages, and injected faults.

use std::collections::VecDeque;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::html::{self, units};

/// The bot that every token belongs to.
pub const BOT_ID: i64 = 42;
pub const BOT_NAME: &str = "embody_bot";

#[derive(Default)]
pub struct State {
    updates: VecDeque<(i64, Value)>,
    last_update: i64,
    last_message: i64,
    /// Calls that had an effect, in order: `{"method", …its parameters, "message_id", "visible", "entities"}`.
    pub sent: Vec<Value>,
    /// The number of polls; a new poll ends the previous one.
    pub polls: u64,
    /// The highest offset that was requested.
    pub offset: i64,
    pub faults: Vec<Fault>,
    pub webhook: bool,
}

/// An injected fault.
#[derive(Debug, Clone, Deserialize)]
pub struct Fault {
    /// The method that fails.
    pub method: String,
    /// Only for this chat.
    pub chat: Option<i64>,
    /// How many times; always if absent.
    pub times: Option<u32>,
    /// After this many successful calls.
    #[serde(default)]
    pub after: u32,
    /// The status of the response.
    pub status: Option<u16>,
    pub description: Option<String>,
    /// Seconds to wait, with 429.
    pub retry_after: Option<u64>,
    /// `before`: the connection closes before the call is executed. `after`: it is executed, and the response is lost.
    pub cut: Option<String>,
}

pub enum End {
    Done(Value),
    Error { status: u16, description: String, retry_after: Option<u64> },
}

impl State {
    /// Adds an update with the next id.
    pub fn add(&mut self, mut update: Value) -> i64 {
        self.last_update = self.last_update.max(1000) + 1;
        update["update_id"] = self.last_update.into();
        self.updates.push_back((self.last_update, update));
        self.last_update
    }

    /// The number of unconfirmed updates.
    pub fn waiting(&self) -> usize {
        self.updates.len()
    }

    /// `getUpdates`: confirms and drops all before the offset; a negative offset counts from the end.
    pub fn updates(&mut self, offset: i64, limit: usize) -> Vec<Value> {
        let offset = if offset < 0 {
            let left = usize::try_from(-offset).unwrap_or(usize::MAX).min(self.updates.len());
            self.updates.get(self.updates.len() - left).map_or(0, |(id, _)| *id)
        } else {
            offset
        };
        self.offset = self.offset.max(offset);
        self.updates.retain(|(id, _)| *id >= offset);
        self.updates.iter().take(limit).map(|(_, update)| update.clone()).collect()
    }

    /// The fault for this call, if any; it is counted.
    pub fn fault(&mut self, method: &str, params: &Value) -> Option<Fault> {
        let chat = params["chat_id"].as_i64();
        let met = self.faults.iter_mut().find(|fault| {
            fault.method == method
                && fault.chat.is_none_or(|wanted| chat == Some(wanted))
                && fault.times != Some(0)
        })?;
        if met.after > 0 {
            met.after -= 1;
            return None;
        }
        met.times = met.times.map(|times| times - 1);
        Some(met.clone())
    }

    /// Any other method.
    pub fn call(&mut self, method: &str, params: &Value) -> End {
        let result = match method {
            "getMe" => {
                Ok(json!({ "id": BOT_ID, "is_bot": true, "first_name": "Embody", "username": BOT_NAME }))
            }
            "deleteWebhook" => {
                self.webhook = false;
                Ok(json!(true))
            }
            "sendMessage" => self.send(params),
            "editMessageText" => self.edit(params),
            "editMessageReplyMarkup" | "deleteMessage" | "answerCallbackQuery" | "sendChatAction" => {
                let mut kept = params.clone();
                kept["method"] = method.into();
                self.sent.push(kept);
                Ok(json!(true))
            }
            _ => return End::Error { status: 404, description: "Not Found".to_owned(), retry_after: None },
        };
        match result {
            Ok(result) => End::Done(result),
            Err(why) => {
                End::Error { status: 400, description: format!("Bad Request: {why}"), retry_after: None }
            }
        }
    }

    fn send(&mut self, params: &Value) -> Result<Value, String> {
        let chat = params["chat_id"].as_i64().ok_or("chat_id is empty")?;
        let (visible, entities) = read(params)?;
        self.last_message += 1;
        let mut kept = params.clone();
        kept["method"] = "sendMessage".into();
        kept["message_id"] = self.last_message.into();
        kept["visible"] = visible.as_str().into();
        kept["entities"] = entities.into();
        self.sent.push(kept);
        Ok(json!({ "message_id": self.last_message, "date": 0, "chat": { "id": chat }, "text": visible }))
    }

    fn edit(&mut self, params: &Value) -> Result<Value, String> {
        let id = params["message_id"].as_i64().ok_or("message to edit not found")?;
        let (visible, entities) = read(params)?;
        let is_it = |kept: &Value| kept["method"] == "sendMessage" && kept["message_id"] == id;
        if !self.sent.iter().any(is_it) {
            return Err("message to edit not found".to_owned());
        }
        let before = self.sent.iter().rev().find(|kept| kept["message_id"] == id);
        if before.is_some_and(|before| {
            before["visible"] == visible && before["reply_markup"] == params["reply_markup"]
        }) {
            return Err(
                "message is not modified: specified new message content and reply markup are exactly \
                        the same as a current content and reply markup of the message"
                    .to_owned(),
            );
        }
        let mut kept = params.clone();
        kept["method"] = "editMessageText".into();
        kept["visible"] = visible.into();
        kept["entities"] = entities.into();
        self.sent.push(kept);
        Ok(json!({ "message_id": id }))
    }
}

/// The visible text, checked against the limits.
fn read(params: &Value) -> Result<(String, Vec<Value>), String> {
    let text = params["text"].as_str().ok_or("message text is empty")?;
    let (visible, entities) = match params["parse_mode"].as_str() {
        None => (text.to_owned(), Vec::new()),
        Some("HTML") => {
            let parsed = html::parse(text).map_err(|why| format!("can't parse entities: {why}"))?;
            (parsed.text, parsed.entities)
        }
        Some(_) => return Err("unsupported parse_mode".to_owned()),
    };
    if visible.trim().is_empty() {
        return Err("message text is empty".to_owned());
    }
    if units(&visible) > 4096 {
        return Err("message is too long".to_owned());
    }
    let rows = params["reply_markup"]["inline_keyboard"].as_array().cloned().unwrap_or_default();
    for button in rows.iter().filter_map(Value::as_array).flatten() {
        let data = button["callback_data"].as_str().unwrap_or_default();
        if data.is_empty() || data.len() > 64 {
            return Err("BUTTON_DATA_INVALID".to_owned());
        }
    }
    Ok((visible, entities))
}
