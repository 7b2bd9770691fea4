//! A workspace on disk, and what the reader makes of it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use embody_prompt::{Audience, Budget, Layout, assemble, render};
use embody_workspace::{AgentName, Audiences, LoadRequest, LoadedWorkspace, ModelFacts, StoredValues, load};
use tempfile::TempDir;

pub(crate) struct TestWorkspace(TempDir);

impl TestWorkspace {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("workspace")).unwrap();
        Self(root)
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.0.path().join("workspace")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.workspace().join(name)
    }

    /// A path beside the workspace.
    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) {
        write(&self.path(name), content);
    }

    pub(crate) fn file_outside(&self, name: &str, content: impl AsRef<[u8]>) {
        write(&self.outside(name), content);
    }

    pub(crate) fn link(&self, name: &str, target: impl AsRef<Path>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
    }

    pub(crate) fn request(&self) -> LoadRequest {
        request(self.workspace(), "mailer")
    }

    pub(crate) fn load(&self) -> LoadedWorkspace {
        load(&self.request()).unwrap()
    }
}

fn write(path: &Path, content: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// The notes, each as `kind SOURCE:LINE message`.
pub(crate) fn notes(loaded: &LoadedWorkspace) -> Vec<String> {
    let shown = |note: &embody_prompt::Note| format!("{} {} {}", note.kind.name(), note.source, note.message);
    loaded.input.notes.iter().map(shown).collect()
}

/// The one note there is.
pub(crate) fn only_note(loaded: &LoadedWorkspace) -> String {
    let mut notes = notes(loaded);
    assert_eq!(notes.len(), 1, "{notes:#?}");
    notes.remove(0)
}

pub(crate) fn text(loaded: &LoadedWorkspace, layout: Layout) -> String {
    render(&assemble(&loaded.input, &layout)).text
}

pub(crate) fn body(loaded: &LoadedWorkspace) -> String {
    loaded.input.body.iter().flat_map(|body| &body.parts).map(|part| part.text.as_str()).collect()
}

/// A request with defaults.
pub(crate) fn request(workspace: PathBuf, agent: &str) -> LoadRequest {
    LoadRequest {
        workspace,
        body: PathBuf::from("prompts/agent_system.md"),
        agent: AgentName::new(agent).unwrap(),
        is_for_owner: true,
        audience: Audience::Owner,
        audiences: Audiences::default(),
        channel: None,
        task: None,
        background: false,
        now: None,
        timezone: None,
        project: None,
        facts: embody_prompt::RequestFacts::default(),
        model: ModelFacts::default(),
        native_tools: true,
        sandbox: None,
        tools: Vec::new(),
        instructions: None,
        stored: StoredValues::default(),
        budget: Budget::default(),
    }
}
