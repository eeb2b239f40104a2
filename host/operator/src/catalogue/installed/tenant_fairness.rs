//! Chooses the namespace whose package is checked next. A check uses processors for up to half a minute, and only one
//! check runs at a time. Packages of the operator's namespace come first. From all other namespaces together, each
//! round checks only one package. These namespaces take turns by the total time of their checks. A namespace with slow
//! packages waits until the checks of the other namespaces took the same time in total. So a package of one tenant
//! delays other tenants by at most one check.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use kaos_crds::PolicySource;

/// Counts the turns of the namespaces, and chooses the next namespace.
#[derive(Debug)]
pub(super) struct TenantFairness {
    home: String,
    rounds: u64,
    had: BTreeMap<String, Had>,
    /// The total time of the namespace that had the last turn, measured at the start of that turn. The operator treats
    /// a namespace with a smaller total time as if its total time were this time.
    now: Duration,
    is_taken: bool,
}

/// The turns of one namespace so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Had {
    /// The total time of the namespace's checks. If a namespace had no checks recently, the operator raises this time
    /// to the level of the other namespaces.
    time: Duration,
    /// The round of the namespace's last check.
    round: u64,
}

impl TenantFairness {
    /// Starts without any turns. `home` is the operator's namespace.
    pub(super) fn new(home: &str) -> Self {
        Self { home: home.to_owned(), rounds: 0, had: BTreeMap::new(), now: Duration::ZERO, is_taken: false }
    }

    /// Starts a round for these packages, which are sorted by age. Returns the indexes of the packages in the order in
    /// which the caller handles them.
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

    /// Records the check of a package. For a namespace other than the operator's, the check uses up the turn of this
    /// round.
    pub(super) fn take(&mut self, namespace: &str) {
        if namespace != self.home {
            self.is_taken = true;
            self.give(namespace);
        }
    }

    /// Records that this process loads a policy that served before the process started. The load counts as a turn of
    /// the policy's namespace, but does not use up the turn of this round. The operator's namespace takes no turns.
    pub(super) fn give(&mut self, namespace: &str) {
        if namespace == self.home {
            return;
        }
        let had = self.had(namespace);
        self.now = had.time;
        self.had.insert(namespace.to_owned(), Had { round: self.rounds, ..had });
    }

    /// Records the duration of a check.
    pub(super) fn took(&mut self, namespace: &str, time: Duration) {
        if let Some(had) = self.had.get_mut(namespace) {
            had.time = had.time.saturating_add(time);
        }
    }

    /// Returns a value for the order of turns: the namespace with the smallest value comes first.
    pub(super) fn had(&self, namespace: &str) -> Had {
        let had = self.had.get(namespace).copied().unwrap_or_default();
        Had { time: had.time.max(self.now), ..had }
    }

    /// Returns whether a namespace took the turn of this round. Then the round ends.
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

    /// Returns the namespaces of the packages that one round checks if every package needs a check.
    fn checked(turns: &mut TenantFairness, sources: &[PolicySource]) -> Vec<String> {
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
        let mut turns = TenantFairness::new("home");
        let all = [source("a", "1"), source("a", "2"), source("b", "1"), source("home", "1"), source("home", "2")];
        for expected in ["a", "b", "a"] {
            assert_eq!(checked(&mut turns, &all), ["home", "home", expected]);
        }
        let more = [&all[..], &[source("c", "1")]].concat();
        assert_eq!(checked(&mut turns, &more), ["home", "home", "c"], "a namespace without earlier turns comes first");
    }

    #[test]
    fn loads_for_the_operators_namespace_take_no_turns_of_other_namespaces() {
        let mut turns = TenantFairness::new("home");
        let all = [source("slow", "1"), source("quick", "1")];
        assert_eq!(checked(&mut turns, &all[1..]), ["quick"]);
        turns.took("quick", Duration::from_secs(10));
        turns.give("home");
        turns.took("home", Duration::from_hours(1));
        turns.give("home");
        assert!(turns.had("slow") < turns.had("quick"), "the time of the operator's namespace does not count");
    }

    #[test]
    fn a_namespace_whose_checks_take_long_waits_until_others_had_as_much() {
        let mut turns = TenantFairness::new("home");
        let all = [source("slow", "1"), source("quick", "1")];
        let mut next = || {
            let tenant = checked(&mut turns, &all).remove(0);
            turns.took(&tenant, Duration::from_secs(if tenant == "slow" { 25 } else { 10 }));
            tenant
        };
        let order: Vec<String> = (0..8).map(|_| next()).collect();
        assert_eq!(order, ["slow", "quick", "quick", "quick", "slow", "quick", "quick", "slow"]);
        // A namespace that used much time long ago must not wait until the other namespaces have used as much time.
        let mut turns = TenantFairness::new("home");
        assert_eq!(checked(&mut turns, &all[1..]), ["quick"]);
        turns.took("quick", Duration::from_hours(1));
        assert_eq!(checked(&mut turns, &all[1..]), ["quick"]);
        assert_eq!(checked(&mut turns, &all), ["slow"]);
        assert_eq!(checked(&mut turns, &all), ["quick"], "a late namespace begins with the time of the others");
    }
}
