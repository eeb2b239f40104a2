//! From bytes to a policy: every step that stands between somebody's upload and an object.
//!
//! The steps go from cheap to dear, and nothing is done with bytes that an earlier step did not vouch for.

mod beneath;
mod bytes;
mod conformance;
mod error;
mod inspect;
mod server;
mod step;
mod turns;

use std::{sync::Arc, time::Duration};

use serde::Serialize;

pub use bytes::decompress as unpacked;
pub use error::LoadError;
pub use inspect::{Bounds, InspectError, Inspection, Part, inspect};
pub use server::{Known, Server, is_newer};
pub use step::Step;
pub use turns::{AtOnce, Turn, Turns};

use crate::{
    cache::Cache,
    clock::Clock,
    code::Code,
    compile::{Compilation, Compile, Order},
    contract::{Cluster, ResourceType},
    describe::check_capitals,
    digest::Digest,
    engine::{BuiltIn, Compiled, Engine, WasmCode},
    limits::Limits,
    manifest::PolicyFile,
    policy::Policy,
    settings::{Layer, Origin},
};

/// What is to become a policy.
#[derive(Debug, Clone, Default)]
pub struct Candidate {
    /// A component, gzipped or not.
    pub bytes: Vec<u8>,
    /// What stands beside it.
    pub file: PolicyFile,
    /// Where the settings in that were written, for messages; unless it is said, in a ConfigMap of the policy's name.
    pub settings_from: Option<Origin>,
}

/// A step that was taken, and how long it took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Taken {
    /// Which.
    pub step: Step,
    /// How long.
    pub time: Duration,
    /// What was found, for people; what went wrong if it is the last one of a failed check.
    pub outcome: String,
    /// Whether it passed.
    pub passed: bool,
}

/// Every step up to the first that failed, and what came of it.
#[derive(Debug)]
pub struct Check {
    /// The steps, in order.
    pub steps: Vec<Taken>,
    /// What its bytes show, where they were looked into and are a policy's.
    pub inspection: Option<Inspection>,
    /// What it says of itself, where it was asked and that can be; also of one that failed a later step.
    pub described: Option<Arc<Policy>>,
    /// The policy, or why there is none.
    pub result: Result<Arc<Policy>, LoadError>,
}

/// Everything that the gate needs and does not decide.
pub struct Gate<'a> {
    /// Where the policy will run.
    pub engine: &'a Engine,
    /// The compile step.
    pub compiler: &'a dyn Compile,
    /// Code that came with this program.
    pub built_in: &'a [BuiltIn],
    /// Where compiled code is kept, if anywhere.
    pub cache: Option<&'a Cache>,
    /// Bounds of a component.
    pub bounds: Bounds,
    /// Bounds of a pass, which a policy's own may not exceed.
    pub limits: Limits,
    /// Kinds that are served for certain, which claims must write as they are written.
    pub kinds: &'a [ResourceType],
    /// Facts of the cluster, for the samples.
    pub cluster: Cluster,
    /// What steps are timed with.
    pub clock: &'a dyn Clock,
    /// When it may compute.
    pub turns: &'a dyn Turns,
    /// The API server that is to take what the policy plans.
    pub server: &'a dyn Server,
}

/// Whether what a policy plans for its own samples can be with these settings: what a schema does not tell of a value,
/// Kubernetes may refuse.
pub fn try_settings(
    policy: &Arc<Policy>,
    settings: &[Layer],
    cluster: &Cluster,
    server: &dyn Server,
) -> Result<(), LoadError> {
    conformance::with_settings(policy, settings, cluster, server)
}

impl Gate<'_> {
    /// A policy from a candidate.
    pub fn load(&self, candidate: &Candidate) -> Result<Arc<Policy>, LoadError> {
        self.check(candidate).result
    }

    /// The same, with every step told.
    pub fn check(&self, candidate: &Candidate) -> Check {
        let (steps, began) = (Vec::new(), self.clock.now());
        let mut run = Run { gate: self, steps, began, inspection: None, described: None };
        let result = run.all(candidate);
        if let Err(error) = &result {
            run.taken(error.step(), error.to_string(), false);
        }
        let Run { steps, inspection, described, .. } = run;
        Check { steps, inspection, described, result }
    }
}

/// A check under way.
struct Run<'a> {
    gate: &'a Gate<'a>,
    steps: Vec<Taken>,
    began: Duration,
    inspection: Option<Inspection>,
    described: Option<Arc<Policy>>,
}

impl Run<'_> {
    fn all(&mut self, candidate: &Candidate) -> Result<Arc<Policy>, LoadError> {
        let Gate { bounds, limits, .. } = *self.gate;
        let file = &candidate.file;
        bytes::size(&candidate.bytes, &bounds)?;
        self.passed(Step::Size, format!("{} bytes", candidate.bytes.len()));
        let component = bytes::decompress(&candidate.bytes, &bounds)?;
        self.passed(Step::Decompress, format!("{} bytes", component.len()));
        let digest = bytes::digest(&component, &candidate.bytes, file.sha256)?;
        self.passed(Step::Digest, digest.to_string());
        let code = self.code(digest, &component)?;
        let limits = file.limits.unwrap_or(limits).at_most(limits);
        let turn = turns::next(self.gate.turns)?;
        drop(code.open(&limits).map_err(LoadError::Instantiate)?);
        self.passed(Step::Instantiate, format!("world {}", code.world().name()));
        let policy = self.describe(code, digest, file)?;
        self.described = Some(Arc::clone(&policy));
        let layers = Self::layers(&policy, candidate);
        self.settings(&policy, &layers)?;
        drop(turn);
        let terms = conformance::Terms {
            fuel: self.gate.limits.fuel,
            cluster: &self.gate.cluster,
            turns: self.gate.turns,
            server: self.gate.server,
        };
        let conformance::Told { outcome, dropped, newer } = conformance::run(&policy, &layers, &terms)?;
        self.passed(Step::Conformance, outcome);
        let above = file.limits.map(|limits| limits.above(&self.gate.limits));
        policy.remark(above.into_iter().flatten().chain(dropped).chain(newer).collect());
        Ok(policy)
    }

    /// The component's code: what came with the program or is in the cache, if it can be loaded, and else compiled.
    ///
    /// Bytes that nobody vouched for are looked into where they are compiled. Those of this program, and those of which an
    /// earlier run kept the code, have been: looking into them takes no longer than it did then.
    fn code(&mut self, digest: Digest, component: &[u8]) -> Result<WasmCode, LoadError> {
        let Gate { engine, built_in, cache, compiler, bounds, turns, .. } = *self.gate;
        let fingerprint = engine.fingerprint();
        let built_in = built_in.iter().find_map(|it| it.of(&digest)).map(|code| (code, "compiled with this program"));
        let cached = || Some((cache?.load(&digest, &fingerprint)?, "from the cache"));
        for (compiled, outcome) in built_in.into_iter().chain(std::iter::once_with(cached).flatten()) {
            let inspection = inspect(component, &bounds)?;
            if let Ok(code) = engine.load(&compiled, inspection.world) {
                self.inspected(inspection, None);
                self.passed(Step::Compile, outcome.to_owned());
                return Ok(code);
            }
        }
        let is_wanted = || !turns.is_over();
        let order = Order { component, bounds, is_wanted: &is_wanted };
        let Compilation { inspection, inspecting, code } = compiler.compile(&order)?;
        let (world, mut outcome) = (inspection.world, format!("{} bytes of code", code.len()));
        self.inspected(inspection, Some(inspecting));
        if let Some(cache) = cache {
            // A cache that cannot be written costs time at the next start and nothing else.
            if let Err(error) = cache.store(&digest, &fingerprint, &code) {
                outcome = format!("{outcome}, not cached: {error}");
            }
        }
        self.passed(Step::Compile, outcome);
        Ok(engine.load(&Compiled::from_compile_step(code), world)?)
    }

    /// The bytes are a policy's, and looking into them took so long; if that is not known, until now.
    fn inspected(&mut self, inspection: Inspection, time: Option<Duration>) {
        let outcome = format!("world {}, contract {}", inspection.world.name(), inspection.contract);
        let now = self.gate.clock.now();
        let time = time.unwrap_or(now).min(now.saturating_sub(self.began));
        self.steps.push(Taken { step: Step::Inspect, time, outcome, passed: true });
        self.began = self.began.saturating_add(time);
        self.inspection = Some(inspection);
    }

    fn describe(&mut self, code: WasmCode, digest: Digest, file: &PolicyFile) -> Result<Arc<Policy>, LoadError> {
        let policy = Arc::new(Policy::admit(Arc::new(code), digest, file, self.gate.limits)?);
        check_capitals(&policy.descriptor().claims, self.gate.kinds)?;
        let kinds: Vec<_> = policy.descriptor().claims.iter().map(|claim| claim.primary.kind.as_str()).collect();
        self.passed(Step::Describe, format!("{} claims {}", policy.id(), kinds.join(", ")));
        Ok(policy)
    }

    fn settings(&mut self, policy: &Policy, layers: &[Layer]) -> Result<(), LoadError> {
        let settings = policy.schema().resolve(&policy.id().name, layers)?;
        self.passed(Step::Settings, format!("{} values", settings.sources().count()));
        Ok(())
    }

    /// The settings that come with the policy; those of the cluster are not the policy's doing.
    fn layers(policy: &Policy, candidate: &Candidate) -> Vec<Layer> {
        let name = &policy.id().name;
        let tree = Some(&candidate.file.settings).filter(|tree| !tree.is_null()).cloned();
        let origin = || candidate.settings_from.clone().unwrap_or_else(|| Origin::ClusterPolicy(name.clone()));
        tree.map(|tree| Layer::tree(origin(), name, tree)).into_iter().collect()
    }

    fn passed(&mut self, step: Step, outcome: String) {
        self.taken(step, outcome, true);
    }

    fn taken(&mut self, step: Step, outcome: String, passed: bool) {
        let now = self.gate.clock.now();
        self.steps.push(Taken { step, time: now.saturating_sub(self.began), outcome, passed });
        self.began = now;
    }
}
