//! Who may speak to the bot, under which name, and who decides about whose calls.

use std::collections::BTreeMap;

use super::place::Place;

/// Everybody who is on the list.
#[derive(Debug, Clone)]
pub(super) struct People {
    names: BTreeMap<i64, String>,
    owner: String,
}

impl People {
    pub(super) fn new(allowed: &[i64], users: &BTreeMap<i64, String>, owner: &str) -> Self {
        let named = |id: &i64| (*id, users.get(id).cloned().unwrap_or_else(|| unnamed(*id)));
        Self { names: allowed.iter().map(named).collect(), owner: owner.to_owned() }
    }

    /// The user that this person is; none: a stranger.
    pub(super) fn user(&self, person: i64) -> Option<&str> {
        self.names.get(&person).map(String::as_str)
    }

    pub(super) fn is_owner(&self, user: &str) -> bool {
        user == self.owner
    }

    /// Who decides about calls of this user: the person who is that user, else the owner. Nobody decides about the calls of
    /// somebody else who is here.
    pub(super) fn deciders(&self, user: &str) -> Vec<i64> {
        let of = |wanted: &str| -> Vec<i64> {
            self.names.iter().filter(|(_, name)| *name == wanted).map(|(id, _)| *id).collect()
        };
        let own = of(user);
        if own.is_empty() { of(&self.owner) } else { own }
    }

    /// The private chats of those who decide about calls of this user.
    pub(super) fn places(&self, user: &str) -> Vec<Place> {
        self.deciders(user).into_iter().map(Place::private).collect()
    }
}

/// The user that somebody without a name of the operator's is.
pub(super) fn unnamed(person: i64) -> String {
    format!("telegram:{person}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_decides_about_their_own_calls_and_the_owner_for_those_who_are_not_here() {
        let users = BTreeMap::from([(1, "owner".to_owned()), (3, "ann".to_owned()), (9, "eve".to_owned())]);
        let people = People::new(&[1, 2, 3], &users, "owner");
        assert_eq!(
            (people.user(1), people.user(2), people.user(3)),
            (Some("owner"), Some("telegram:2"), Some("ann"))
        );
        // Named, but not on the list.
        assert_eq!(people.user(9), None);
        assert_eq!((people.deciders("owner"), people.deciders("telegram:2")), (vec![1], vec![2]));
        assert_eq!((people.deciders("ann"), people.deciders("web-guest")), (vec![3], vec![1]));
        assert!(People::new(&[2], &BTreeMap::new(), "owner").deciders("owner").is_empty());
    }
}
