//! Turns a package into a policy. The checks of the gate run on other threads than the passes. Checks and passes wait
//! for the same processors.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use kaos_policy::{
    clock::SystemClock,
    compile::Compile,
    contract::Cluster,
    digest::Digest,
    engine::Engine,
    gate::{Candidate, Gate, LoadError, Server, SizeClass, Turn, Turns, try_settings},
    limits::Limits,
    policy::Policy,
    settings::{Layer, Origin},
};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::timed_compiler::TimedCompiler;
use crate::{
    embedded, kinds,
    locking::lock,
    metrics::Metrics,
    package::Package,
    processors::{Permit, Processors},
    server::TargetServer,
};

/// Checks packages at the gate.
#[derive(Clone)]
pub struct Gatekeeper(Arc<Inner>);

struct Inner {
    engine: Engine,
    compiler: Arc<dyn Compile>,
    cluster: Cluster,
    clock: SystemClock,
    size: SizeClass,
    prepared: Arc<Mutex<PreparedPolicies>>,
}

/// The policies that this process loaded while another replica held the Lease, by the digests of their packages. The
/// digest suffices as the key, because a user's ConfigMap and the stored bytes of the same package give the same
/// policy.
type PreparedPolicies = BTreeMap<Digest, Arc<Policy>>;

/// The resources that a check shares with other work.
pub(super) struct Share {
    pub(super) processors: Processors,
    /// Whether the check is for a package of a namespace other than the operator's.
    pub(super) is_local: bool,
    /// The check ends when the caller cancels this token.
    pub(super) ends: CancellationToken,
    /// The API server that validates plans.
    pub(super) server: TargetServer,
}

/// Makes a check take turns with passes. Blocks the thread of the check until it is the check's turn.
struct Waiting(Share, Handle);

impl Turns for Waiting {
    fn next(&self) -> Option<Turn> {
        let Self(Share { processors, is_local, ends, .. }, runtime) = self;
        let permit = runtime.block_on(ends.run_until_cancelled(processors.permit(*is_local)))?;
        Some(Box::new(permit))
    }

    fn is_over(&self) -> bool {
        self.0.ends.is_cancelled()
    }
}

impl Gatekeeper {
    /// Creates a gatekeeper. The checked policies run on `engine` and see the facts in `cluster`. `compiler` must be
    /// safe for untrusted bytes. `size` is the largest size class that the gatekeeper accepts.
    pub fn new(engine: Engine, compiler: Box<dyn Compile>, cluster: Cluster, size: SizeClass) -> Self {
        let compiler = compiler.into();
        let prepared = Arc::default();
        Self(Arc::new(Inner { engine, compiler, cluster, clock: SystemClock::start(), size, prepared }))
    }

    /// Returns a gatekeeper that records its compilations in the metrics.
    pub(crate) fn measured(&self, metrics: &Arc<Metrics>) -> Self {
        let Inner { engine, compiler, cluster, clock, size, prepared } = &*self.0;
        let (compiler, metrics) = (Arc::clone(compiler), Arc::clone(metrics));
        let compiler = Arc::new(TimedCompiler { compiler, metrics });
        let (engine, cluster, prepared) = (engine.clone(), cluster.clone(), Arc::clone(prepared));
        Self(Arc::new(Inner { engine, compiler, cluster, clock: *clock, size: *size, prepared }))
    }

    /// Loads the policy of a package before this process needs it. The first call of [`check`](Self::check) for the
    /// same package returns the loaded policy.
    pub(super) async fn prepare(&self, package: &Package, share: Share) -> Result<Arc<Policy>, LoadError> {
        let policy = self.load(package, share).await?;
        lock(&self.0.prepared).insert(package.digest(), Arc::clone(&policy));
        Ok(policy)
    }

    /// Drops the prepared policies of all packages that are not in `packages`.
    pub(super) fn keep_prepared(&self, packages: &BTreeSet<Digest>) {
        lock(&self.0.prepared).retain(|package, _| packages.contains(package));
    }

    /// Checks a package with code, and returns its policy.
    pub(super) async fn check(&self, package: &Package, share: Share) -> Result<Arc<Policy>, LoadError> {
        let prepared = (!lock(&self.0.prepared).is_empty()).then(|| package.digest());
        if let Some(policy) = prepared.and_then(|digest| lock(&self.0.prepared).remove(&digest)) {
            return Ok(policy);
        }
        self.load(package, share).await
    }

    async fn load(&self, package: &Package, share: Share) -> Result<Arc<Policy>, LoadError> {
        let (form, bytes) =
            package.component.clone().map(|code| (code.form, code.bytes.into_owned())).unwrap_or_default();
        let candidate = Candidate {
            form,
            bytes,
            file: package.file.clone(),
            settings_from: Some(Origin::ClusterPolicy(package.name.clone())),
        };
        let server = share.server.clone();
        let (inner, turns) = (Arc::clone(&self.0), Waiting(share, Handle::current()));
        let check = move |server: &dyn Server| {
            let Inner { engine, compiler, cluster, clock, size, prepared: _ } = &*inner;
            let gate = Gate {
                engine,
                compiler: &**compiler,
                built_in: &[],
                script_engine: embedded::script_engine(),
                cache: None,
                bounds: size.bounds(),
                limits: Limits::default(),
                kinds: &kinds::SERVED,
                cluster: cluster.clone(),
                clock,
                turns: &turns,
                server,
            };
            gate.load(&candidate)
        };
        server.check(check).await
    }

    /// Checks that a policy's plans are valid with these settings. The check keeps its permit for a processor until the
    /// check ends, even if the caller stops waiting.
    pub(super) async fn try_settings(
        &self,
        policy: Arc<Policy>,
        settings: Vec<Layer>,
        server: &TargetServer,
        permit: Permit,
    ) -> Result<(), LoadError> {
        let inner = Arc::clone(&self.0);
        let check = move |server: &dyn Server| {
            let _keeps = &permit;
            try_settings(&policy, &settings, &inner.cluster, server)
        };
        server.check(check).await
    }
}
