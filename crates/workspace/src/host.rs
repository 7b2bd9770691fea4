//! Facts about the machine. Cheap ones only: nothing is run to find them out.

use embody_prompt::{Audience, HostFacts, Source, Value};

/// The model that will be called, as configured.
#[derive(Clone, Debug, Default)]
pub struct ModelFacts {
    /// Who provides it.
    pub provider: Option<String>,
    /// Its name.
    pub model: Option<String>,
}

/// What this machine is.
pub(crate) fn facts(model: &ModelFacts, audience: Audience) -> HostFacts {
    let machine = Source::fixed("machine");
    let config = Source::fixed("config [model]");
    let value =
        |text: Option<String>, source: &Source| text.map(|text| Value::new(text, source.clone(), audience));
    let root = rustix::process::geteuid().is_root();
    HostFacts {
        host: value(rustix::system::uname().nodename().to_str().ok().map(str::to_owned), &machine),
        os: value(Some(std::env::consts::OS.into()), &machine),
        arch: value(Some(std::env::consts::ARCH.into()), &machine),
        shell: value(shell(), &machine),
        provider: value(model.provider.clone(), &config),
        model: value(model.model.clone(), &config),
        sudo_non_interactive: value(root.then(|| "true".into()), &machine),
        sudo_status: value(root.then(|| "root".into()), &machine),
        ..HostFacts::default()
    }
}

fn shell() -> Option<String> {
    let shell = std::env::var_os("SHELL")?;
    Some(std::path::Path::new(&shell).file_name()?.to_str()?.to_owned())
}
