//! Names that belong to the mind and to the broker, whatever bodies list: these are never looked up among bodies.

/// Who has all resources of a scheme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scheme {
    Mind,
    Broker,
}

impl Scheme {
    /// Of this URI or template; `None` if it may be anybody's. Capital letters do not count in schemes.
    pub(super) fn of(uri: &str) -> Option<Self> {
        let (scheme, _) = uri.split_once(':')?;
        let is = |known: &str| scheme.eq_ignore_ascii_case(known);
        if is("memory") || is("instructions") {
            return Some(Self::Mind);
        }
        is("embody").then_some(Self::Broker)
    }
}

/// The prompts that every mind has: they are its own also while it is away and its list is unknown.
pub(super) const PROMPTS: [&str; 1] = ["get_system_prompt"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheme_is_the_minds_or_the_brokers_however_it_is_written() {
        for (uri, whose) in [
            ("memory://1", Some(Scheme::Mind)),
            ("MEMORY:1", Some(Scheme::Mind)),
            ("instructions://current", Some(Scheme::Mind)),
            ("embody://runtime/status", Some(Scheme::Broker)),
            ("memory://{id}", Some(Scheme::Mind)),
            ("memory", None),
            ("file:///memory://1", None),
            ("{scheme}://x", None),
        ] {
            assert_eq!(Scheme::of(uri), whose, "{uri}");
        }
    }
}
