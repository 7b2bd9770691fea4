//! Which roots a body receives. Servers that read roots from their client use them instead of the folders on their command
//! line.

use std::collections::BTreeMap;
use std::path::PathBuf;

use embody_wire::Url;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Roots {
    #[default]
    Forward,
    /// The body receives an empty list.
    Withhold,
    Replace(Vec<PathBuf>),
}

impl Roots {
    /// The host's capabilities as this body sees them; `None` if they cannot be parsed.
    pub(super) fn capabilities(&self, host: Option<&RawValue>) -> Option<Box<RawValue>> {
        if matches!(self, Self::Forward) {
            return host.map(ToOwned::to_owned);
        }
        let mut members: BTreeMap<String, &RawValue> = match host {
            Some(host) => serde_json::from_str(host.get()).ok()?,
            None => BTreeMap::new(),
        };
        // Without `listChanged`: these roots do not change.
        let own = to_raw_value(&serde_json::Map::new()).ok()?;
        let had_roots = members.remove("roots").is_some();
        match self {
            Self::Replace(_) => _ = members.insert("roots".to_owned(), &own),
            _ if !had_roots => return host.map(ToOwned::to_owned),
            _ => {}
        }
        to_raw_value(&members).ok()
    }

    /// The result of `roots/list`, unless the host must answer.
    pub(crate) fn list(&self) -> Option<Box<RawValue>> {
        #[derive(Serialize)]
        struct Listed {
            roots: Vec<Root>,
        }
        #[derive(Serialize)]
        struct Root {
            uri: String,
            #[serde(skip_serializing_if = "Option::is_none")]
            name: Option<String>,
        }
        let Self::Replace(folders) = self else { return None };
        let root = |folder: &PathBuf| {
            let uri = Url::from_file_path(folder).ok()?.into();
            let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
            Some(Root { uri, name })
        };
        to_raw_value(&Listed { roots: folders.iter().filter_map(root).collect() }).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn a_body_is_told_of_roots_only_where_it_may_ask_for_them() {
        let capabilities = |roots: &Roots, host: Option<&str>| {
            let host = host.map(raw);
            roots.capabilities(host.as_deref()).map(|capabilities| capabilities.get().to_owned())
        };
        let all = r#"{ "roots":{"listChanged":true}, "x":1.0}"#;
        let replace = Roots::Replace(vec!["/a".into()]);
        assert_eq!(capabilities(&Roots::Forward, Some(all)).as_deref(), Some(all));
        assert_eq!(capabilities(&Roots::Withhold, Some(all)).as_deref(), Some(r#"{"x":1.0}"#));
        assert_eq!(capabilities(&replace, Some(all)).as_deref(), Some(r#"{"roots":{},"x":1.0}"#));
        let none = r#"{ "x":1.0 }"#;
        assert_eq!(capabilities(&Roots::Withhold, Some(none)).as_deref(), Some(none));
        assert_eq!(capabilities(&replace, None).as_deref(), Some(r#"{"roots":{}}"#));
        assert_eq!(
            (capabilities(&Roots::Withhold, None), capabilities(&Roots::Withhold, Some("[]"))),
            (None, None)
        );
    }

    #[test]
    fn folders_are_listed_as_encoded_file_uris_with_their_last_component_as_the_name() {
        let roots =
            Roots::Replace(["/srv/files", "/home/ann/Ünïcode & 100% #1?", "/"].map(Into::into).into());
        let listed = roots.list().unwrap();
        assert_eq!(
            listed.get(),
            concat!(
                r#"{"roots":[{"uri":"file:///srv/files","name":"files"},"#,
                r#"{"uri":"file:///home/ann/%C3%9Cn%C3%AFcode%20&%20100%25%20%231%3F","name":"Ünïcode & 100% #1?"},"#,
                r#"{"uri":"file:///"}]}"#
            )
        );
        assert!(Roots::Forward.list().is_none() && Roots::Withhold.list().is_none());
    }
}
