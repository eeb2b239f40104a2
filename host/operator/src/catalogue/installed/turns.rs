//! Whose packages are checked next. A check takes processors for up to seconds, and one is made at a time: those of the
//! operator's namespace come first, and of all others one in a round, the namespaces taking turns. So whatever a tenant
//! ships, everybody else waits for one check of it.

use std::collections::{BTreeMap, BTreeSet};

use kaos_crds::PolicySource;

/// Packages of a namespace other than the operator's that are taken: the bytes of what serves are kept beside the
/// operator, where no quota of the namespace counts them.
pub(super) const MOST: usize = 16;

/// Who had a turn, and who has one now.
#[derive(Debug)]
pub(super) struct Turns {
    home: String,
    rounds: u64,
    /// The round in which a package of a namespace was checked last.
    last: BTreeMap<String, u64>,
    is_taken: bool,
    beyond: BTreeSet<PolicySource>,
}

impl Turns {
    /// Nobody had a turn yet. The operator's namespace is `home`.
    pub(super) fn new(home: &str) -> Self {
        Self { home: home.to_owned(), rounds: 0, last: BTreeMap::new(), is_taken: false, beyond: BTreeSet::new() }
    }

    /// Begins a round among what there is, the oldest first. Gives in which order to look at it.
    pub(super) fn begin(&mut self, sources: &[&PolicySource]) -> Vec<usize> {
        self.rounds += 1;
        self.is_taken = false;
        self.beyond.clear();
        let mut many: BTreeMap<&str, usize> = BTreeMap::new();
        for source in sources.iter().filter(|source| source.namespace != self.home) {
            let count = many.entry(&source.namespace).or_default();
            *count += 1;
            if *count > MOST {
                self.beyond.insert((*source).clone());
            }
        }
        self.last.retain(|namespace, _| many.contains_key(namespace.as_str()));
        let mut order: Vec<usize> = (0..sources.len()).collect();
        order.sort_by_key(|at| {
            let namespace = &sources[*at].namespace;
            (*namespace != self.home, self.last.get(namespace).copied())
        });
        order
    }

    /// Whether a package of a namespace may be checked in this round; if so, that was its turn.
    pub(super) fn take(&mut self, namespace: &str) -> bool {
        if namespace == self.home {
            return true;
        }
        if std::mem::replace(&mut self.is_taken, true) {
            return false;
        }
        self.last.insert(namespace.to_owned(), self.rounds);
        true
    }

    /// Whether its namespace has too many that are older.
    pub(super) fn is_beyond(&self, source: &PolicySource) -> bool {
        self.beyond.contains(source)
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
        let looked_at = order.into_iter().map(|at| &sources[at].namespace);
        looked_at.filter(|namespace| turns.take(namespace)).cloned().collect()
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

    #[test]
    fn a_namespace_has_so_many_and_the_operators_as_many_as_it_likes() {
        let mut turns = Turns::new("home");
        let many = |namespace| (0..=MOST).map(move |number| source(namespace, &number.to_string()));
        let all: Vec<PolicySource> = many("home").chain(many("a")).collect();
        turns.begin(&all.iter().collect::<Vec<_>>());
        let beyond: Vec<&PolicySource> = all.iter().filter(|source| turns.is_beyond(source)).collect();
        assert_eq!(beyond, [&source("a", &MOST.to_string())]);
    }
}
