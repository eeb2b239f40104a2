//! Keeps the policies of recorded revisions loaded while another replica holds the Lease. Loading a policy compiles its
//! component. Without this preparation, compilations would take most of the time between the takeover of the Lease and
//! the first pass.
//!
//! This task writes nothing. The lifecycle, which writes, starts when the replica holds the Lease. The lifecycle reads
//! all packages and PolicyRevisions again, and uses a loaded policy only if the package is exactly the same.

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    sync::Arc,
    time::Duration,
};

use kaos_policy::{digest::Digest, policy::Policy};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::{
    Gatekeeper, Installing, Tools,
    gatekeeper::Share,
    pace::LOOK_AGAIN,
    records::{Records, Revision},
    sources::{Found, Sources, held_now},
    store::Store,
};
use crate::server::TargetServer;

/// The delay between a change of a PolicyRevision and the next round, because a rollout changes several PolicyRevisions
/// at once.
const CROWD: Duration = Duration::from_secs(1);

/// A package that the standby loads, or could not load.
struct Loaded {
    package: Digest,
    /// `None` if the policy could not be loaded. The lifecycle later finds out why, and records the reason.
    policy: Option<Arc<Policy>>,
}

/// The policies of a replica without the Lease.
struct Standby<'a> {
    tools: &'a Tools,
    gatekeeper: &'a Gatekeeper,
    store: Store,
    /// The loaded packages, by the name of the revision.
    loaded: BTreeMap<String, Loaded>,
}

/// Keeps the policies of recorded revisions loaded. Calls the function `tell` with the policies of the process at
/// first, and after each change with all loaded policies. Never ends.
pub(crate) async fn stand_by(tools: Tools, installing: &Installing, tell: impl Fn(&[Arc<Policy>])) -> Infallible {
    let home = tools.duties.operator_namespace.clone();
    let own: Vec<Arc<Policy>> = installing.own.iter().map(|offer| Arc::clone(&offer.member.policy)).collect();
    tell(&own);
    let mut sources = Sources::follow(&tools.client, &tools.watch, &home, installing.in_namespaces);
    let records = Records::follow(&tools.client, &tools.watch, &home);
    let store = Store::new(tools.client.clone(), &home);
    let mut standby = Standby { tools: &tools, gatekeeper: &installing.gatekeeper, store, loaded: BTreeMap::new() };
    loop {
        let looked = Instant::now();
        if sources.are_known() && records.are_known() {
            let found = sources.packages().await;
            if standby.look(&records.seen(), &found).await {
                let installed = standby.loaded.values().filter_map(|loaded| loaded.policy.clone());
                tell(&own.iter().cloned().chain(installed).collect::<Vec<_>>());
            }
        }
        tokio::select! {
            () = sources.changed() => {}
            () = records.changed() => {}
            () = sleep_until(looked + LOOK_AGAIN) => {}
        }
        sleep_until(looked + CROWD).await;
    }
}

impl Standby<'_> {
    /// Loads the policies that are not loaded yet, and drops the policies that no PolicyRevision needs any more.
    /// Returns whether the loaded policies changed.
    async fn look(&mut self, records: &BTreeMap<String, Arc<Revision>>, found: &[Found]) -> bool {
        let wanted = wanted(records);
        let before = self.loaded.len();
        self.loaded.retain(|name, _| wanted.contains(name));
        let mut changed = self.loaded.len() != before;
        for name in &wanted {
            // Skip a package without a component: it contains only settings, so there is nothing to compile.
            let Some(revision) = records.get(name).filter(|revision| revision.spec.digest.is_some()) else { continue };
            // The map `loaded` also contains failed attempts, so the operator repeats none of them. Another package
            // gets another PolicyRevision.
            if !self.loaded.contains_key(name) && self.load(name, revision, found).await {
                changed = true;
            }
        }
        let packages = self.loaded.values().map(|loaded| loaded.package).collect();
        self.gatekeeper.keep_prepared(&packages);
        changed
    }

    /// Loads the policy of one revision. Returns whether the attempt ended. If the attempt did not end, the next round
    /// tries again.
    async fn load(&mut self, name: &str, revision: &Revision, found: &[Found]) -> bool {
        let package = match held_now(&revision.spec, found) {
            Some(package) => Some(Arc::clone(package)),
            None => match self.store.load(revision).await {
                Ok(package) => package.map(Arc::new),
                Err(error) => {
                    tracing::debug!(%error, revision = name, "a standby cannot read a policy; it tries again");
                    return false;
                }
            },
        };
        let Some(package) = package.filter(|package| package.component.is_some()) else { return false };
        let is_local = package.namespace != self.tools.duties.operator_namespace;
        let share = Share {
            processors: self.tools.processors.clone(),
            is_local,
            ends: CancellationToken::new(),
            server: TargetServer::Running(self.tools.client.clone()),
        };
        let policy = match self.gatekeeper.prepare(&package, share).await {
            Ok(policy) => Some(policy),
            Err(error) if error.is_lasting() => None,
            Err(error) => {
                tracing::debug!(%error, revision = name, "a standby cannot load a policy now; it tries again");
                return false;
            }
        };
        self.loaded.insert(name.to_owned(), Loaded { package: package.digest(), policy });
        true
    }
}

/// Returns the revisions that the lifecycle loads at its start: the admitted revisions, and their predecessors.
fn wanted(records: &BTreeMap<String, Arc<Revision>>) -> BTreeSet<String> {
    let status = |name: &String| records.get(name).and_then(|revision| revision.status.as_ref());
    let is_let_in = |name: &&String| status(name).is_some_and(|status| status.state.is_let_in());
    let mut wanted = BTreeSet::new();
    for admitted in records.keys().filter(is_let_in) {
        let mut next = Some(admitted);
        while let Some(name) = next.filter(|name| records.contains_key(*name) && wanted.insert((*name).clone())) {
            next = status(name).and_then(|status| status.predecessor.as_ref());
        }
    }
    wanted
}
