//! The machine, the request and the sandbox as `key=value` lines, and how commands are routed.

use crate::audience::{Visible, VisibleInput};
use crate::block::Block;
use crate::input::Sandbox;
use crate::section::{CacheClass, Frame, Kind, Section};
use crate::{HostFacts, Value};

pub(crate) static RUNTIME: Section = Section {
    cache_class: CacheClass::Volatile,
    when: |view| host(view).next().is_some() || sandbox(view).next().is_some(),
    write,
    ..Section::new(Kind::Runtime, Frame::Heading("Runtime"))
};

const ROUTING: &str = "Execution routing:
- A command goes where the Sandbox line says: inside while it shows enabled=true, on the host otherwise or when there is no such line.
- What a command wrote inside the sandbox is on the host only if the workspace is mounted writable.
- Say where a command ran when it matters, and never leave the sandbox to get around a refusal.";

fn write<'a>(view: &VisibleInput<'a>, block: &mut Block<'a>) {
    let mut host = host(view).peekable();
    let has_host = host.peek().is_some();
    for (index, fact) in host.enumerate() {
        pair(block, if index == 0 { "Host: " } else { " | " }, fact.key);
        block.fact(fact.value, fact.volatile);
    }
    for (index, (key, value)) in sandbox(view).enumerate() {
        let line = if has_host { "\nSandbox(exec): " } else { "Sandbox(exec): " };
        pair(block, if index == 0 { line } else { " | " }, key);
        block.fact(value, false);
    }
    if view.all(&view.input().tools).next().is_some() {
        block.text("\n\n");
        block.text(ROUTING);
    }
}

fn pair(block: &mut Block<'_>, before: &'static str, key: &'static str) {
    block.text(before);
    block.text(key);
    block.text("=");
}

struct Fact<'a> {
    key: &'static str,
    value: Visible<'a, str>,
    volatile: bool,
}

fn host<'a>(view: &VisibleInput<'a>) -> impl Iterator<Item = Fact<'a>> {
    let HostFacts {
        host,
        os,
        arch,
        shell,
        provider,
        model,
        session,
        sudo_non_interactive,
        sudo_status,
        timezone,
        accept_language,
        remote_ip,
        location,
    } = &view.input().host;
    let rows: [(&'static str, &'a Option<Value<String>>, bool); 13] = [
        ("host", host, false),
        ("os", os, false),
        ("arch", arch, false),
        ("shell", shell, false),
        ("provider", provider, false),
        ("model", model, false),
        ("session", session, true),
        ("sudo_non_interactive", sudo_non_interactive, false),
        ("sudo_status", sudo_status, false),
        ("timezone", timezone, false),
        ("accept_language", accept_language, true),
        ("remote_ip", remote_ip, true),
        ("location", location, false),
    ];
    rows.into_iter()
        .filter_map(|(key, value, volatile)| Some(Fact { key, value: view.text(value)?, volatile }))
}

fn sandbox<'a>(view: &VisibleInput<'a>) -> impl Iterator<Item = (&'static str, Visible<'a, str>)> {
    let rows = view.reveal_optional(&view.input().sandbox).map(|sandbox| {
        let field = |part: fn(&Sandbox) -> &Option<String>| sandbox.text(|value| part(value).as_deref());
        [
            ("enabled", sandbox.text(|value| value.enabled.map(|on| if on { "true" } else { "false" }))),
            ("mode", field(|value| &value.mode)),
            ("backend", field(|value| &value.backend)),
            ("scope", field(|value| &value.scope)),
            ("image", field(|value| &value.image)),
            ("workspace_mount", field(|value| &value.workspace_mount)),
            ("network", field(|value| &value.network)),
            ("session_override", field(|value| &value.session_override)),
        ]
    });
    rows.into_iter().flatten().filter_map(|(key, value)| Some((key, value?)))
}
