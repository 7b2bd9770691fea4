//! Who may write to the bot, as which user, and who decides about calls.

use std::collections::BTreeMap;

#[derive(Debug, Clone)]
pub(super) struct Allowlist {
    names: BTreeMap<i64, String>,
    owner: String,
    deciders: Vec<i64>,
}

impl Allowlist {
    pub(super) fn new(allowed: &[i64], users: &BTreeMap<i64, String>, owner: &str) -> Self {
        let named = |id: &i64| (*id, user_for(*id, users));
        let names: BTreeMap<i64, String> = allowed.iter().map(named).collect();
        let is_owner = |name: &String| name == owner;
        let deciders = if users.values().any(is_owner) {
            names.iter().filter(|(_, name)| is_owner(name)).map(|(id, _)| *id).collect()
        } else {
            allowed.iter().take(1).copied().collect()
        };
        Self { names, owner: owner.to_owned(), deciders }
    }

    /// The user for this Telegram id; `None` if it is not on the list.
    pub(super) fn user(&self, person: i64) -> Option<&str> {
        self.names.get(&person).map(String::as_str)
    }

    /// Whether a person on the list is this user.
    pub(super) fn has(&self, user: &str) -> bool {
        self.names.values().any(|name| name == user)
    }

    pub(super) fn is_owner(&self, user: &str) -> bool {
        user == self.owner
    }

    /// The people who decide about calls of all users: those on the list whom the operator has mapped to the owner, or
    /// the first on the list if no mapping names the owner.
    pub(super) fn deciders(&self) -> &[i64] {
        &self.deciders
    }
}

/// The user for a person on the list: as mapped by the operator, else by Telegram id.
#[must_use]
pub fn user_for(person: i64, users: &BTreeMap<i64, String>) -> String {
    users.get(&person).cloned().unwrap_or_else(|| unnamed(person))
}

/// The user for a person without a mapping.
pub(super) fn unnamed(person: i64) -> String {
    format!("telegram:{person}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_alone_decides() {
        let users = BTreeMap::from([(1, "owner".to_owned()), (3, "ann".to_owned()), (9, "eve".to_owned())]);
        let allowlist = Allowlist::new(&[2, 1, 3], &users, "owner");
        assert_eq!(
            (allowlist.user(1), allowlist.user(2), allowlist.user(3)),
            (Some("owner"), Some("telegram:2"), Some("ann"))
        );
        // Mapped, but not on the list.
        assert_eq!((allowlist.user(9), allowlist.has("eve"), allowlist.has("ann")), (None, false, true));
        assert_eq!(allowlist.deciders(), [1]);
        let two = BTreeMap::from([(1, "owner".to_owned()), (3, "owner".to_owned())]);
        assert_eq!(Allowlist::new(&[3, 2, 1], &two, "owner").deciders(), [1, 3]);
        // No mapping names the owner: the first on the list.
        assert_eq!(Allowlist::new(&[5, 2], &BTreeMap::new(), "owner").deciders(), [5]);
        // The mapped owner was removed from the list, and is not replaced.
        assert_eq!(Allowlist::new(&[2], &users, "owner").deciders(), [0_i64; 0]);
    }
}
