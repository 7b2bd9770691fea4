//! Finds out before a call whether it is certain to fail, with the validation of the tools themselves. It changes nothing.

use embody_mcp::read_arguments;
use serde_json::Value;

use crate::outgoing::check_text;
use crate::tasks::check_title;
use crate::{
    Body, Caller, CreateTask, Error, ListTasks, NotifyUser, ReadMessages, ReadSkill, Result, ScheduleRun,
    SendMessage, Tool, UpdateTask, Whoami,
};

impl Body {
    /// The error that a call with these arguments is certain to end with.
    pub async fn check(&self, caller: &Caller, tool: Tool, given: &Value) -> Result<()> {
        let name = tool.name();
        match tool {
            Tool::Whoami => read_arguments::<Whoami>(name, given).map(drop)?,
            Tool::ReadMessages => read_arguments::<ReadMessages>(name, given).map(drop)?,
            Tool::ListTasks => read_arguments::<ListTasks>(name, given).map(drop)?,
            Tool::ReadSkill => read_arguments::<ReadSkill>(name, given).map(drop)?,
            Tool::SendMessage => self.check_message(&read_arguments::<SendMessage>(name, given)?)?,
            Tool::NotifyUser => check_text(tool, &read_arguments::<NotifyUser>(name, given)?.text)?,
            Tool::CreateTask => {
                check_title(tool, &read_arguments::<CreateTask>(name, given)?.title)?;
            }
            Tool::UpdateTask => {
                let args = read_arguments::<UpdateTask>(name, given)?;
                caller.require_private(tool)?;
                args.title.as_deref().map(|title| check_title(tool, title)).transpose()?;
                match self.task(caller, &args.id).await {
                    // The store may answer when the call is made.
                    Err(Error::Store(_)) => {}
                    found => drop(found?),
                }
            }
            Tool::ScheduleRun => {
                self.schedule_time(caller, &read_arguments::<ScheduleRun>(name, given)?)?;
            }
        }
        Ok(())
    }
}
