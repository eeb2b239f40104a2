//! Whose packages are checked next. A check takes processors for up to half a minute, and one is made at a time: those of the
//! operator's namespace come first, and of all others one in a round. The namespaces take turns, by the time that their
//! checks took: one whose packages take long waits until others had as much. So whatever a tenant ships, everybody else
//! waits for one check of it.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use kaos_crds::PolicySource;

/// Who had a turn, and who has one now.
#[derive(Debug)]
pub(super) struct Turns {
    home: String,
    rounds: u64,
    had: BTreeMap<String, Had>,
    /// How far the one that had the last turn had come when it began: what is behind has no more to wait for than that.
    now: Duration,
    is_taken: bool,
}

/// What a namespace had so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Had {
    /// The time that its checks took. One that had none for long is let off to where the others are.
    time: Duration,
    /// The round in which one of its packages was checked last.
    round: u64,
}

impl Turns {
    /// Nobody had a turn yet. The operator's namespace is `home`.
    pub(super) fn new(home: &str) -> Self {
        Self { home: home.to_owned(), rounds: 0, had: BTreeMap::new(), now: Duration::ZERO, is_taken: false }
    }

    /// Begins a round among what there is, the oldest first. Gives in which order to look at it.
    pub(super) fn begin(&mut self, sources: &[&PolicySource]) -> Vec<usize> {
        self.rounds += 1;
        self.is_taken = false;
        let namespaces: BTreeSet<&String> = sources.iter().map(|source| &source.namespace).collect();
        self.had.retain(|namespace, _| namespaces.contains(namespace));
        let mut order: Vec<usize> = (0..sources.len()).collect();
        order.sort_by_key(|at| {
            let namespace = &sources[*at].namespace;
            (*namespace != self.home, self.had(namespace))
        });
        order
    }

    /// A package of a namespace is checked. Unless it is the operator's, that was the turn of this round.
    pub(super) fn take(&mut self, namespace: &str) {
        if namespace != self.home {
            self.is_taken = true;
            self.give(namespace);
        }
    }

    /// What a namespace had let in before is loaded. That counts as a turn of it, and ends no round.
    pub(super) fn give(&mut self, namespace: &str) {
        let had = self.had(namespace);
        self.now = had.time;
        self.had.insert(namespace.to_owned(), Had { round: self.rounds, ..had });
    }

    /// The check of a package of a namespace took so long.
    pub(super) fn took(&mut self, namespace: &str, time: Duration) {
        if let Some(had) = self.had.get_mut(namespace) {
            had.time = had.time.saturating_add(time);
        }
    }

    /// What a namespace had so far: who had least comes first.
    pub(super) fn had(&self, namespace: &str) -> Had {
        let had = self.had.get(namespace).copied().unwrap_or_default();
        Had { time: had.time.max(self.now), ..had }
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

    #[test]
    fn a_namespace_whose_checks_take_long_waits_until_others_had_as_much() {
        let mut turns = Turns::new("home");
        let all = [source("slow", "1"), source("quick", "1")];
        let mut next = || {
            let tenant = checked(&mut turns, &all).remove(0);
            turns.took(&tenant, Duration::from_secs(if tenant == "slow" { 25 } else { 10 }));
            tenant
        };
        let order: Vec<String> = (0..8).map(|_| next()).collect();
        assert_eq!(order, ["slow", "quick", "quick", "quick", "slow", "quick", "quick", "slow"]);
        // One that had a long time long ago has not to wait for all of it.
        let mut turns = Turns::new("home");
        assert_eq!(checked(&mut turns, &all[1..]), ["quick"]);
        turns.took("quick", Duration::from_hours(1));
        assert_eq!(checked(&mut turns, &all[1..]), ["quick"]);
        assert_eq!(checked(&mut turns, &all), ["slow"]);
        assert_eq!(checked(&mut turns, &all), ["quick"], "who comes later begins where the others are");
    }
}
