//! What happened, on disk before anybody is told: one JSON object a line, from every process that got the same file.

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

    /// A call that is executed now, with its arguments as they came.
    pub(super) fn call(&self, tool: &str, params: Option<&RawValue>) {
        let tool = Value::from(tool);
        let (process, params) = (std::process::id(), params.map_or("null", RawValue::get));
        self.write(&format!(r#"{{"event":"call","tool":{tool},"pid":{process},"params":{params}}}"#));
    }

    /// In one write, so that lines of several processes do not mix; and on a line of its own, also after one of which a process
    /// that was killed has written half.
    fn write(&self, line: &str) {
        (&self.0).write_all(format!("\n{line}\n").as_bytes()).unwrap();
        self.0.sync_data().unwrap();
    }
}
