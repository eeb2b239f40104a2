//! Limits the fuel and the passes for the objects of one kind in one namespace. Without limits, objects that change all
//! the time use the processors of the operator all the time.
//!
//! Each kind has a budget of its own in each namespace. If the budget is used up, an object gets a turn: the time at
//! which the object may have its pass. New turns come after all older turns, so an object with many events does not
//! displace other objects.
//!
//! A pass never waits if its object is being deleted, or if a proof lets the operator skip the policies. The operator
//! counts fuel as soon as a policy has used it, also if the pass fails. The operator does not count the fuel for the
//! effect of a candidate, because it computes the effect at low priority.

mod account;
mod limits;
mod meter;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use kaos_policy::contract::ResourceType;
use tokio::time::Instant;

use self::account::Account;
pub(crate) use self::limits::Admission;
pub use self::limits::BudgetLimits;
use crate::{locking::lock, watch::ObjectKey};

/// The time between two removals of unused accounts.
const SWEEP: Duration = Duration::from_mins(2);

/// The fuel and the passes that the objects of one kind in one namespace used in the last minute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spending {
    /// The kind of the objects.
    pub of: ResourceType,
    /// The namespace of the objects.
    pub namespace: String,
    /// The fuel of the policies.
    pub fuel: u64,
    /// The number of passes.
    pub passes: u64,
}

/// The budgets of all kinds in all namespaces.
#[derive(Debug, Default)]
pub struct Budgets {
    limits: BudgetLimits,
    accounts: Mutex<Accounts>,
}

#[derive(Debug, Default)]
struct Accounts {
    /// The accounts by namespace and kind.
    open: BTreeMap<String, BTreeMap<ResourceType, Account>>,
    swept: Option<Instant>,
}

impl Budgets {
    /// Creates unused budgets.
    pub fn new(limits: BudgetLimits) -> Self {
        Self { limits, accounts: Mutex::default() }
    }

    /// Asks whether a pass may begin.
    ///
    /// `answering` contains the revisions of the policies that answer, and `None` for a policy of the process.
    pub(crate) fn begin<'a>(
        &self,
        key: &ObjectKey,
        answering: impl Iterator<Item = Option<&'a Arc<str>>>,
        now: Instant,
    ) -> Admission {
        let mut accounts = lock(&self.accounts);
        accounts.sweep(now);
        accounts.of(key, now).begin(&key.name, answering, now, self.limits)
    }

    /// Counts fuel that a policy used for an object.
    pub(crate) fn pay(&self, key: &ObjectKey, now: Instant, fuel: u64) {
        lock(&self.accounts).of(key, now).pay(now, fuel, self.limits);
    }

    /// Takes the turn away from an object that is gone or is being deleted.
    pub(crate) fn forget(&self, key: &ObjectKey) {
        if let Some(account) = lock(&self.accounts).find(key) {
            account.forget(&key.name);
        }
    }

    /// Returns whether an object waits for its turn.
    pub(crate) fn has_turn(&self, key: &ObjectKey, now: Instant) -> bool {
        lock(&self.accounts).find(key).is_some_and(|account| account.has_turn(&key.name, now))
    }

    /// Returns the number of objects that wait for their turns.
    pub fn waiting(&self, now: Instant) -> usize {
        lock(&self.accounts).all().map(|(_, _, account)| account.waiting(now)).sum()
    }

    /// Returns the use of the budgets in the last minute, the largest use of fuel first.
    pub fn largest(&self, now: Instant, count: usize) -> Vec<Spending> {
        let accounts = lock(&self.accounts);
        let spending = |(namespace, of, account): (&String, &ResourceType, &Account)| Spending {
            of: of.clone(),
            namespace: namespace.clone(),
            fuel: account.fuel_in_last_minute(now),
            passes: account.passes_in_last_minute(now),
        };
        let mut all: Vec<Spending> = accounts.all().map(spending).filter(|it| it.fuel > 0 || it.passes > 0).collect();
        all.sort_by_key(|it| std::cmp::Reverse((it.fuel, it.passes)));
        all.truncate(count);
        all
    }

    /// Returns the kinds and namespaces whose objects wait, by the revision that answers for these objects. The key is
    /// `None` for a policy of the process. The result includes objects that waited until a short time ago.
    pub(crate) fn used_up(&self, now: Instant) -> BTreeMap<Option<Arc<str>>, Vec<(ResourceType, String)>> {
        let mut used_up: BTreeMap<Option<Arc<str>>, Vec<(ResourceType, String)>> = BTreeMap::new();
        for (namespace, of, account) in lock(&self.accounts).all() {
            for revision in account.waiting_for(now) {
                used_up.entry(revision.clone()).or_default().push((of.clone(), namespace.clone()));
            }
        }
        used_up
    }

    pub(crate) fn have_limits(&self) -> bool {
        self.limits != BudgetLimits::default()
    }

    /// Describes the limits, for an Event.
    pub(crate) fn described(&self) -> String {
        let BudgetLimits { fuel, passes } = self.limits;
        let fuel = fuel.map(|fuel| format!("{fuel} units of fuel"));
        let passes = passes.map(|passes| format!("{passes} passes"));
        [fuel, passes].into_iter().flatten().collect::<Vec<_>>().join(" and ")
    }
}

impl Accounts {
    fn find(&mut self, key: &ObjectKey) -> Option<&mut Account> {
        self.open.get_mut(&key.namespace)?.get_mut(&key.of)
    }

    fn of(&mut self, key: &ObjectKey, now: Instant) -> &mut Account {
        let kinds = self.open.entry(key.namespace.clone()).or_default();
        kinds.entry(key.of.clone()).or_insert_with(|| Account::new(now))
    }

    fn all(&self) -> impl Iterator<Item = (&String, &ResourceType, &Account)> {
        self.open.iter().flat_map(|(namespace, kinds)| kinds.iter().map(move |(of, account)| (namespace, of, account)))
    }

    /// Removes the accounts that no object used for some time.
    fn sweep(&mut self, now: Instant) {
        if self.swept.is_some_and(|swept| now.saturating_duration_since(swept) < SWEEP) {
            return;
        }
        self.swept = Some(now);
        self.open.retain(|_, kinds| {
            kinds.retain(|_, account| !account.is_unused(now));
            !kinds.is_empty()
        });
    }
}
