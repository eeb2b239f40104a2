//! Whose packages are checked next. A check takes processors for up to seconds, and one is made at a time: those of the
//! operator's namespace come first, and of all others one in a round, the namespaces taking turns. So whatever a tenant
//! ships, everybody else waits for one check of it.

use std::collections::{BTreeMap, BTreeSet};

use kaos_crds::PolicySource;

/// Who had a turn, and who has one now.
#[derive(Debug)]
pub(super) struct Turns {
    home: String,
    rounds: u64,
    /// The round in which a package of a namespace was checked last.
    last: BTreeMap<String, u64>,
    is_taken: bool,
}

impl Turns {
    /// Nobody had a turn yet. The operator's namespace is `home`.
    pub(super) fn new(home: &str) -> Self {
        Self { home: home.to_owned(), rounds: 0, last: BTreeMap::new(), is_taken: false }
    }

    /// Begins a round among what there is, the oldest first. Gives in which order to look at it.
    pub(super) fn begin(&mut self, sources: &[&PolicySource]) -> Vec<usize> {
        self.rounds += 1;
        self.is_taken = false;
        let namespaces: BTreeSet<&String> = sources.iter().map(|source| &source.namespace).collect();
        self.last.retain(|namespace, _| namespaces.contains(namespace));
        let mut order: Vec<usize> = (0..sources.len()).collect();
        order.sort_by_key(|at| {
            let namespace = &sources[*at].namespace;
            (*namespace != self.home, self.last.get(namespace).copied())
        });
        order
    }

    /// A package of a namespace is checked. Unless it is the operator's, that was the turn of this round.
    pub(super) fn take(&mut self, namespace: &str) {
        if namespace != self.home {
            self.is_taken = true;
            self.last.insert(namespace.to_owned(), self.rounds);
        }
    }

    /// Whether somebody had the turn of this round, which ends it.
    pub(super) fn is_taken(&self) -> bool {
        self.is_taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(namespace: &str, name: &str) -> PolicySource {
        PolicySource { namespace: namespace.to_owned(), config_map: name.to_owned() }
    }

    /// Who is checked in a round in which everybody has something to check.
    fn checked(turns: &mut Turns, sources: &[PolicySource]) -> Vec<String> {
        let sources: Vec<&PolicySource> = sources.iter().collect();
        let order = turns.begin(&sources);
        let mut checked = Vec::new();
        for at in order {
            turns.take(&sources[at].namespace);
            checked.push(sources[at].namespace.clone());
            if turns.is_taken() {
                break;
            }
        }
        checked
    }

    #[test]
    fn the_operators_own_come_first_and_of_the_others_one_a_round_in_turn() {
        let mut turns = Turns::new("home");
        let all = [source("a", "1"), source("a", "2"), source("b", "1"), source("home", "1"), source("home", "2")];
        for expected in ["a", "b", "a"] {
            assert_eq!(checked(&mut turns, &all), ["home", "home", expected]);
        }
        let more = [&all[..], &[source("c", "1")]].concat();
        assert_eq!(checked(&mut turns, &more), ["home", "home", "c"], "who had none yet comes first");
    }
}
