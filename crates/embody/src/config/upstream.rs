//! Checks `[mind]` and `[[body]]`: one command or one URL each, a matching transport, and unique names. Connects to nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use embody_broker::upstream::{BodyUsers, IdleShutdown};
use embody_wire::Secret;

use super::check::Checks;
use super::choices::{self, Transport};
use super::error::quoted;
use super::raw;
use super::resolved::{Body, Dialect, Mind, Roots, Upstream};
use super::tree::KeyPath;

const NOT_A_BODY: [&str; 2] = ["embody", "mind"];

pub(super) fn mind(raw: raw::Mind, checks: &mut Checks<'_>) -> Mind {
    let path = KeyPath::dotted("mind");
    let endpoint = Endpoint {
        url: raw.url,
        command: raw.command,
        transport: raw.transport,
        token_command: raw.token_command,
    };
    let embedded = endpoint.url.is_none() && endpoint.command.is_none();
    let upstream = if embedded {
        let stray = if endpoint.transport.is_some() {
            Some("transport")
        } else {
            endpoint.token_command.is_some().then_some("token_command")
        };
        if let (Some(key), false) = (stray, target_is_bad(&path, checks)) {
            let message = format!("`mind.{key}` is set, but neither `mind.url` nor `mind.command` is");
            checks.fail(
                &path.key(key),
                message,
                Some("say where the mind is, or remove the key for the embedded one"),
            );
        }
        None
    } else {
        upstream(&path, endpoint, checks)
    };
    Mind { upstream, observe_timeout: Duration::from_millis(raw.observe_timeout_ms.into()) }
}

pub(super) fn bodies(raw: Vec<raw::Body>, checks: &mut Checks<'_>) -> Vec<Body> {
    let path = KeyPath::dotted("body");
    let mut seen = BTreeMap::new();
    let bodies: Vec<Option<Body>> = (raw.into_iter().enumerate())
        .map(|(index, raw)| {
            let path = path.index(index);
            let name = name(&path, raw.name.clone(), &mut seen, checks);
            body(&path, name, raw, checks)
        })
        .collect();
    bodies.into_iter().flatten().collect()
}

fn name(
    body: &KeyPath,
    name: Option<String>,
    seen: &mut BTreeMap<String, KeyPath>,
    checks: &mut Checks<'_>,
) -> Option<String> {
    let path = body.key("name");
    let Some(name) = name else {
        checks.fail(&path, format!("`{body}` has no `name`"), Some("add `name = \"…\"` to the `[[body]]`"));
        return None;
    };
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
    if name.is_empty() || name.len() > 32 || !name.chars().all(good) {
        let message = format!("`{path}` is {}, which cannot be a body's name", quoted(&name));
        checks.fail(&path, message, Some("a body's name has 1 to 32 of a to z, 0 to 9, `_` and `-`"));
        return None;
    }
    if NOT_A_BODY.contains(&name.as_str()) {
        let message = format!("`{path}` is `{name}`, which is not a body's but the runtime's own name");
        checks.fail(&path, message, Some("give the body another name"));
        return None;
    }
    if let Some(first) = seen.get(&name) {
        let message = format!("`{path}` is `{name}`, but `{first}` is called that already");
        checks.fail(&path, message, Some("give each body its own name"));
        return None;
    }
    seen.insert(name.clone(), path);
    Some(name)
}

fn body(path: &KeyPath, name: Option<String>, raw: raw::Body, checks: &mut Checks<'_>) -> Option<Body> {
    let endpoint = Endpoint {
        url: raw.url,
        command: raw.command,
        transport: raw.transport,
        token_command: raw.token_command,
    };
    let upstream = upstream(path, endpoint, checks);
    for key in raw.env.keys().filter(|key| key.is_empty() || key.contains(['=', '\0'])) {
        let place = path.key("env").key(key);
        checks.fail(&place, format!("`{place}` is not the name of an environment variable"), None);
    }
    let cwd = checks.filled(&path.key("cwd"), raw.cwd);
    checks.all_filled(&path.key("allow"), &raw.allow);
    checks.all_filled(&path.key("deny"), &raw.deny);
    checks.all_filled(&path.key("forward_methods"), &raw.forward_methods);
    let roots = roots(&path.key("roots"), raw.roots, checks);
    let users = users(&path.key("users"), raw.users, checks);
    let upstream = upstream?;
    Some(Body {
        name: name?,
        trust_annotations: raw.trust_annotations.unwrap_or(matches!(upstream, Upstream::Stdio { .. })),
        upstream,
        env: raw.env.into_iter().map(|(key, value)| (key, Secret::new(value))).collect(),
        cwd: cwd.map(|cwd| checks.workspace.join(cwd)),
        allow: raw.allow,
        deny: raw.deny,
        observes: raw.observes,
        arguments_max_bytes: usize::try_from(raw.arguments_max_bytes).unwrap_or(usize::MAX),
        forward_methods: raw.forward_methods,
        sampling: raw.sampling,
        roots,
        instructions: raw.instructions,
        users,
        idle_shutdown: IdleShutdown {
            start: raw.start.into(),
            idle_stop: (raw.idle_stop_s > 0).then(|| Duration::from_secs(raw.idle_stop_s.into())),
        },
    })
}

/// Folders must be absolute: a relative path would differ between the body and its client.
fn roots(path: &KeyPath, raw: raw::RootsOrFolders, checks: &mut Checks<'_>) -> Roots {
    let folders = match raw {
        raw::RootsOrFolders::Host(roots) => return Roots::Host(roots),
        raw::RootsOrFolders::Folders(folders) => folders,
    };
    for (index, folder) in folders.iter().enumerate().filter(|(_, folder)| !Path::new(folder).is_absolute()) {
        let place = path.index(index);
        let message = format!("`{place}` is {}, which is not an absolute path", quoted(folder));
        checks.fail(&place, message, Some("write the whole path of the folder, as in `/srv/files`"));
    }
    Roots::Folders(folders.into_iter().map(PathBuf::from).collect())
}

fn users(path: &KeyPath, raw: raw::UsersOrNames, checks: &mut Checks<'_>) -> BodyUsers {
    match raw {
        raw::UsersOrNames::Group(choices::Users::Owner) => BodyUsers::Owner,
        raw::UsersOrNames::Group(choices::Users::All) => BodyUsers::All,
        raw::UsersOrNames::Names(names) => {
            checks.all_filled(path, &names);
            if names.is_empty() {
                let hint = Some("name the users, write `\"all\"`, or remove the key for the owner alone");
                checks.fail(path, format!("`{path}` names no user"), hint);
            }
            BodyUsers::Named(names)
        }
    }
}

struct Endpoint {
    url: Option<String>,
    command: Option<Vec<String>>,
    transport: Option<Transport>,
    token_command: Option<Vec<String>>,
}

fn upstream(path: &KeyPath, endpoint: Endpoint, checks: &mut Checks<'_>) -> Option<Upstream> {
    let token_command = checks.command(&path.key("token_command"), endpoint.token_command);
    match (endpoint.command, endpoint.url) {
        (Some(command), None) => {
            transport_fits(path, "command", endpoint.transport, &[Transport::Stdio], checks);
            Some(Upstream::Stdio { command: checks.command(&path.key("command"), Some(command))? })
        }
        (None, Some(url)) => {
            transport_fits(path, "url", endpoint.transport, &[Transport::Http, Transport::Sse], checks);
            let dialect = match endpoint.transport {
                Some(Transport::Sse) => Dialect::Sse,
                Some(_) => Dialect::Http,
                None if ends_in_sse(&url) => Dialect::Sse,
                None => Dialect::Guessed,
            };
            let url = checks.http(&path.key("url"), &url)?;
            Some(Upstream::Remote { url, dialect, token_command })
        }
        (Some(_), Some(_)) => {
            let message = format!("`{path}` has both `command` and `url`");
            checks.fail(&path.key("url"), message, Some("remove one of `command` and `url`"));
            None
        }
        (None, None) => {
            if !target_is_bad(path, checks) {
                let message = format!("`{path}` has neither `command` nor `url`");
                checks.fail(
                    &path.key("command"),
                    message,
                    Some("add `command = [\"…\"]` or `url = \"http://…\"`"),
                );
            }
            None
        }
    }
}

fn target_is_bad(path: &KeyPath, checks: &Checks<'_>) -> bool {
    checks.report.is_bad(&path.key("command")) || checks.report.is_bad(&path.key("url"))
}

fn transport_fits(
    path: &KeyPath,
    target: &str,
    transport: Option<Transport>,
    legal: &[Transport],
    checks: &mut Checks<'_>,
) {
    let Some(transport) = transport.filter(|transport| !legal.contains(transport)) else { return };
    let path = path.key("transport");
    let legal: Vec<String> = legal.iter().map(|transport| format!("`{transport}`")).collect();
    let message = format!("`{path}` is `{transport}`, which does not go with a `{target}`");
    checks.fail(&path, message, Some(&format!("with a `{target}` it can be {}", legal.join(" or "))));
}

fn ends_in_sse(url: &str) -> bool {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    path.trim_end_matches('/').ends_with("/sse")
}

#[cfg(test)]
mod tests {
    use super::super::choices;
    use super::super::tests::{error_text, load};
    use super::*;

    const BODY: &str = "[[body]]\nname = \"a\"\nurl = \"http://h\"\n";

    #[test]
    fn roots_are_a_choice_or_folders_in_the_file_and_in_the_environment() {
        let folders = || Roots::Folders(vec!["/a".into(), "/b c".into()]);
        let read = |line: &str, env: &[(&str, &str)]| {
            load(&format!("{BODY}{line}"), env).unwrap().bodies.remove(0).roots
        };
        assert_eq!(read("", &[]), Roots::Host(choices::Roots::Auto));
        assert_eq!(read("roots = \"forward\"", &[]), Roots::Host(choices::Roots::Forward));
        assert_eq!(read("roots = [\"/a\", \"/b c\"]", &[]), folders());
        let env = |value| read("", &[("EMBODY_BODY__0__ROOTS", value)]);
        assert_eq!(env("withhold"), Roots::Host(choices::Roots::Withhold));
        assert_eq!(env("['/a', '/b c']"), folders());
    }

    #[test]
    fn the_users_of_a_body_are_a_group_or_names() {
        let read = |line: &str, env: &[(&str, &str)]| {
            load(&format!("{BODY}{line}"), env).unwrap().bodies.remove(0).users
        };
        let named = || BodyUsers::Named(vec!["ann".into(), "owner".into()]);
        assert_eq!(read("", &[]), BodyUsers::Owner);
        assert_eq!(read("users = \"owner\"", &[]), BodyUsers::Owner);
        assert_eq!(read("users = \"all\"", &[]), BodyUsers::All);
        assert_eq!(read("users = [\"ann\", \"owner\"]", &[]), named());
        assert_eq!(read("", &[("EMBODY_BODY__0__USERS", "['ann', 'owner']")]), named());
        let wrong = error_text(&format!("{BODY}users = []"), &[]);
        assert!(wrong.contains("`body[0].users` names no user"), "{wrong}");
    }

    #[test]
    fn wrong_values_are_reported_with_line_key_and_hint() {
        for (line, answer) in [
            (
                "users = 3",
                "error: embody.toml:4: `body[0].users` is `3`, but must be one of owner, all or a list of names\nhint: write names as a list like `[\"one\", \"two\"]`, or `\"owner\"` or `\"all\"`",
            ),
            (
                "users = \"ann\"",
                "error: embody.toml:4: `body[0].users` is `ann`, but must be one of owner, all or a list of names\nhint: write names as a list: `[\"ann\"]`",
            ),
            (
                "users = { ann = true }",
                "error: embody.toml:4: `body[0].users` is a table, but must be one of owner, all or a list of names\nhint: write names as a list like `[\"one\", \"two\"]`, or `\"owner\"` or `\"all\"`",
            ),
            (
                "users = [\"ann\", 3]",
                "error: embody.toml:4: `body[0].users[1]` is `3`, but must be text\nhint: put `body[0].users[1]` in quotes",
            ),
            (
                "roots = true",
                "error: embody.toml:4: `body[0].roots` is `true`, but must be one of auto, forward, withhold or a list of folders\nhint: write folders as a list like `[\"one\", \"two\"]`, or `\"auto\"` or `\"forward\"` or `\"withhold\"`",
            ),
            (
                "instructions = 3",
                "error: embody.toml:4: `body[0].instructions` is `3`, but must be one of rules, data, drop\nhint: write one of these words in quotes, as in `\"rules\"`",
            ),
            (
                "allow = 3",
                "error: embody.toml:4: `body[0].allow` is `3`, but must be a list\nhint: write `body[0].allow` as a list like `[\"one\", \"two\"]`",
            ),
            (
                "allow = \"mail\"",
                "error: embody.toml:4: `body[0].allow` is `\"mail\"`, but must be a list\nhint: write `body[0].allow` as a list like `[\"one\", \"two\"]`",
            ),
            (
                "roots = \"withold\"",
                "error: embody.toml:4: `body[0].roots` is `withold`, but must be one of auto, forward, withhold or a list of folders\nhint: write folders as a list: `[\"withold\"]`, or did you mean `withhold`?",
            ),
            (
                "roots = [\"/a\", \"data/b\"]",
                "error: embody.toml:4: `body[0].roots[1]` is `data/b`, which is not an absolute path\nhint: write the whole path of the folder, as in `/srv/files`",
            ),
            (
                "roots = [1]",
                "error: embody.toml:4: `body[0].roots[0]` is `1`, but must be text\nhint: put `body[0].roots[0]` in quotes",
            ),
        ] {
            assert_eq!(error_text(&format!("{BODY}{line}"), &[]), answer, "{line}");
        }
    }
}
