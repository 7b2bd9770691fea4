//! stub
mod chat;
mod errors;
mod settings;
pub use self::chat::{Answer, Ask, ChatMessage, Delta, Stop, ToolRequest, ToolSpec, Usage};
pub use self::errors::ModelError;
pub use self::settings::{ModelSettings, ModelTimes, Provider};
/// stub
#[derive(Debug, Clone)]
pub struct ChatModel;
impl ChatModel {
    /// stub
    pub fn new(_: ModelSettings) -> Result<Self, ModelError> {
        Ok(Self)
    }
    /// stub
    pub async fn ask(&self, _: Ask<'_>, _: &mut (dyn FnMut(Delta) + Send)) -> Result<Answer, ModelError> {
        Err(ModelError::Settings { why: String::new() })
    }
}
