//! The journal: one JSON object per line, on disk before the response, from every process with the same file.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use serde_json::Value;
use serde_json::value::RawValue;

pub(super) struct Journal(File);

impl Journal {
    pub(super) fn open(path: &Path) -> Self {
        Self(OpenOptions::new().create(true).append(true).open(path).unwrap())
    }

    pub(super) fn note(&self, event: &Value) {
        self.write(&event.to_string());
    }

    /// A call that is executed now, with its arguments as received.
    pub(super) fn call(&self, tool: &str, params: Option<&RawValue>) {
        let tool = Value::from(tool);
        let (process, params) = (std::process::id(), params.map_or("null", RawValue::get));
        self.write(&format!(r#"{{"event":"call","tool":{tool},"pid":{process},"params":{params}}}"#));
    }

    /// One write, so that lines of several processes do not mix, and a leading line break after a partial line of a killed
    /// process.
    fn write(&self, line: &str) {
        (&self.0).write_all(format!("\n{line}\n").as_bytes()).unwrap();
        self.0.sync_data().unwrap();
    }
}
