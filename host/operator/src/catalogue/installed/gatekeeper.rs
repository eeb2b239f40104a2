//! Every step from a package to a policy, off the threads that passes run on.

use std::sync::Arc;

use kaos_policy::{
    clock::SystemClock,
    compile::Compile,
    contract::Cluster,
    engine::Engine,
    gate::{AtOnce, Bounds, Candidate, Gate, LoadError},
    limits::Limits,
    policy::Policy,
    settings::Origin,
};

use crate::{blocking::off_thread, kinds, package::Package};

/// What lets policies in.
#[derive(Clone)]
pub struct Gatekeeper(Arc<Inner>);

struct Inner {
    engine: Engine,
    compiler: Box<dyn Compile>,
    cluster: Cluster,
    clock: SystemClock,
}

impl Gatekeeper {
    /// Policies that run on `engine`, with the facts of this cluster, compiled by a step that can be trusted with
    /// anybody's bytes.
    pub fn new(engine: Engine, compiler: Box<dyn Compile>, cluster: Cluster) -> Self {
        Self(Arc::new(Inner { engine, compiler, cluster, clock: SystemClock::start() }))
    }

    /// The policy of a package with a component.
    pub(super) async fn check(&self, package: &Package) -> Result<Arc<Policy>, LoadError> {
        let candidate = Candidate {
            bytes: package.component.clone().unwrap_or_default(),
            file: package.file.clone(),
            settings_from: Some(Origin::ClusterPolicy(package.name.clone())),
        };
        let inner = Arc::clone(&self.0);
        off_thread(move || {
            let Inner { engine, compiler, cluster, clock } = &*inner;
            let gate = Gate {
                engine,
                compiler: &**compiler,
                built_in: &[],
                cache: None,
                bounds: Bounds::default(),
                limits: Limits::default(),
                kinds: &kinds::SERVED,
                cluster: cluster.clone(),
                clock,
                turns: &AtOnce,
            };
            gate.load(&candidate)
        })
        .await
    }
}
