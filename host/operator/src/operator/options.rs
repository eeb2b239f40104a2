//! The options of the operator.

use std::time::Duration;

use kaos_policy::{
    contract::HOME,
    guard::UserPrivileges,
    rollout::{Rollout, RolloutGate},
};

use crate::{
    budgets::BudgetLimits,
    catalogue::{CodeShare, Grantable},
    clock::Clock,
    decision_point::DecisionPoint,
    left_out::LeftOut,
    masking::Hidden,
    processors::Compute,
    queue::Backoff,
    watch::{Scope, WatchOptions},
};

/// The default size limit of the flight recorder, in bytes.
pub const RECORD: usize = 16 << 20;

/// The options of the operator. The defaults are suitable for a cluster.
#[derive(Debug, Clone)]
pub struct Options {
    /// The namespace that the operator runs in.
    pub operator_namespace: String,
    /// The DNS domain of Services.
    pub cluster_domain: String,
    /// The namespaces in which the operator reconciles.
    pub namespaces: Scope,
    /// The number of concurrent passes.
    pub workers: usize,
    /// The maximum duration of a pass.
    pub pass_deadline: Duration,
    /// The time after which an object gets a pass even if nothing changed.
    pub resync: Duration,
    /// The maximum time for which cleanup delays the deletion of an object.
    pub cleanup: Duration,
    /// The time that running passes have to finish at shutdown.
    pub grace: Duration,
    /// The delays after failures.
    pub backoff: Backoff,
    /// The minimum time between the starts of two passes that a swap causes.
    pub pace: Duration,
    /// Whether the operator reads Secrets. It then stores only the names of each Secret's keys, and a digest of the
    /// values.
    pub secrets: bool,
    /// The key for the digests of Secrets.
    pub secret_key: Hidden,
    /// Whether fields that a user wrote in an object may raise the privileges of its pods.
    pub user_privileges: UserPrivileges,
    /// The limits for the grants and claims of installed policies.
    pub grantable: Grantable,
    /// The limits that the effect of an installed package must not exceed.
    pub rollout_gate: RolloutGate,
    /// The defaults for the steps in which packages start to serve.
    pub rollout_defaults: Rollout,
    /// The limits for the compiled code of tenants' policies.
    pub code_share: CodeShare,
    /// Optional types of claims that the operator neither watches nor applies.
    pub left_out: LeftOut,
    /// The options for the gateway's decision point. `None` if the operator writes no objects for it.
    pub decision_point: Option<DecisionPoint>,
    /// Whether to use streaming lists if the API server supports them.
    pub streaming_lists: bool,
    /// The name of this process among its replicas.
    pub instance: String,
    /// The threads on which policies run: separate threads, or the thread of the pass.
    pub compute: Compute,
    /// The clock.
    pub clock: Clock,
    /// The seed for random delays and orders.
    pub seed: u64,
    /// The limits for the fuel and the passes of each kind in each namespace, per minute.
    pub budget: BudgetLimits,
    /// The size limit of the cache for answers, in bytes.
    pub memo: usize,
    /// The size limit of the flight recorder, in bytes; 0 switches it off.
    pub record: usize,
    /// Whether to record which objects are settled, so that the operator asks no policy about them after a restart.
    pub proofs: bool,
    /// The secret key for the digests that are the ids of decisions. Without a key, the ids are the same in every
    /// process.
    pub decision_key: Hidden,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            operator_namespace: HOME.to_owned(),
            cluster_domain: "cluster.local".to_owned(),
            namespaces: Scope::All,
            workers: 8,
            pass_deadline: Duration::from_mins(1),
            resync: Duration::from_hours(10),
            cleanup: Duration::from_mins(5),
            grace: Duration::from_secs(20),
            backoff: Backoff::default(),
            pace: Duration::ZERO,
            secrets: false,
            secret_key: Hidden::default(),
            user_privileges: UserPrivileges::default(),
            grantable: Grantable::default(),
            rollout_gate: RolloutGate::default(),
            rollout_defaults: Rollout::default(),
            code_share: CodeShare::default(),
            left_out: LeftOut::default(),
            decision_point: None,
            streaming_lists: true,
            instance: "kaos-operator".to_owned(),
            compute: Compute::default(),
            clock: Clock::default(),
            seed: 0,
            budget: BudgetLimits::default(),
            memo: 3 << 20,
            record: RECORD,
            proofs: false,
            decision_key: Hidden::default(),
        }
    }
}

impl Options {
    /// Returns a text that differs if the options let a pass see other objects.
    pub(super) fn seen(&self) -> String {
        let Self { secrets, left_out, operator_namespace, .. } = self;
        format!("{secrets} {left_out:?} {operator_namespace}")
    }

    pub(super) fn watch(&self) -> WatchOptions {
        WatchOptions {
            scope: self.namespaces.clone(),
            home: self.operator_namespace.clone(),
            secrets: self.secrets,
            digest_key: self.secret_key.0.clone(),
            streaming_lists: self.streaming_lists,
            seed: self.seed,
            ..WatchOptions::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_printed_without_the_key() {
        let options = Options { secret_key: Hidden(b"open sesame".to_vec()), ..Options::default() };
        let printed = format!("{options:?}");
        assert!(printed.contains("secret_key: ********"), "{printed}");
        assert!(!printed.contains("sesame") && !printed.contains("111, 112"), "{printed}");
    }
}
