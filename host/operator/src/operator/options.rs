//! How an operator behaves.

use std::time::Duration;

use kaos_policy::{contract::HOME, guard::UserPrivileges};

use crate::{
    catalogue::Grantable,
    masking::Hidden,
    processors::Compute,
    queue::Backoff,
    reconcile::Clock,
    watch::{Scope, WatchOptions},
};

/// How an operator behaves. The defaults are good for a cluster.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where the operator lives.
    pub operator_namespace: String,
    /// The DNS domain of Services.
    pub cluster_domain: String,
    /// Where it reconciles.
    pub namespaces: Scope,
    /// Passes at a time.
    pub workers: usize,
    /// How long a pass may take.
    pub pass_deadline: Duration,
    /// How long until an object is looked at again although nothing happened.
    pub resync: Duration,
    /// How long cleanup may hold an object that is being deleted.
    pub cleanup: Duration,
    /// How long passes may go on after the operator was told to stop.
    pub grace: Duration,
    /// Waits after failures.
    pub backoff: Backoff,
    /// The least time between two passes that a policy swap leads to.
    pub pace: Duration,
    /// Whether Secrets are looked at: names of keys and a digest.
    pub secrets: bool,
    /// What Secrets are digested with.
    pub secret_key: Hidden,
    /// Whether a user's own spec may raise privilege.
    pub user_privileges: UserPrivileges,
    /// What policies that somebody installs are given at most.
    pub grantable: Grantable,
    /// Whether lists are streamed where the server does that.
    pub streaming_lists: bool,
    /// What this process is called among its replicas.
    pub instance: String,
    /// Where policies run.
    pub compute: Compute,
    /// Time of day.
    pub clock: Clock,
    /// What waits and orders are drawn from.
    pub seed: u64,
    /// Bytes of answers that are remembered.
    pub memo: usize,
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
            streaming_lists: true,
            instance: "kaos-operator".to_owned(),
            compute: Compute::default(),
            clock: Clock::default(),
            seed: 0,
            memo: 6 << 20,
        }
    }
}

impl Options {
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
