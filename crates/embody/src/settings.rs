//! The workspace folder and its configuration: all that a command passes on to the parts that do the work.

use std::path::PathBuf;

use crate::config::Config;

pub(crate) struct Settings {
    pub(crate) workspace: PathBuf,
    pub(crate) config: Config,
}
