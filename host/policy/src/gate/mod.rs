//! The gate: turns the bytes of a package into a policy, or returns the reason why the bytes are not a policy.
//!
//! The steps are ordered from cheap to costly. Each step reads only bytes that the earlier steps accepted.

mod answers;
mod beneath;
mod bytes;
mod conformance;
mod error;
mod form;
mod server;
mod step;
mod turns;
mod variables;

use std::{sync::Arc, time::Duration};

use serde::Serialize;

pub use beneath::{TrialError, trial_stack};
pub use bytes::decompress as unpacked;
pub use conformance::{Schemas, Survey};
pub use error::LoadError;
pub use form::CodeForm;
pub use server::{KnownServer, Server, is_newer};
pub use step::Step;
pub use turns::{AtOnce, Turn, Turns};
pub use variables::dropped_variables;

pub use crate::inspect::{Bounds, InspectError, Inspection, Part, SizeClass, inspect};

use crate::{
    adapter::Version,
    cache::Cache,
    clock::Clock,
    code::Code,
    compile::{Compilation, Compile, Order},
    contract::{Cluster, ResourceType},
    describe::check_capitals,
    digest::Digest,
    engine::{BuiltIn, Compiled, Engine, EngineError, ScriptCode, ScriptEngine},
    limits::Limits,
    manifest::PolicyFile,
    policy::Policy,
    settings::{Layer, Origin},
};

/// A component or a script with its `policy.yaml`, before the gate checks them.
#[derive(Debug, Clone, Default)]
pub struct Candidate {
    /// The form of `bytes`.
    pub form: CodeForm,
    /// The component, gzipped or not, or the script.
    pub bytes: Vec<u8>,
    /// The `policy.yaml`.
    pub file: PolicyFile,
    /// The origin of the settings in `file`, for messages. `None` means a ConfigMap with the policy's name.
    pub settings_from: Option<Origin>,
}

/// One finished step and its duration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Taken {
    /// The step.
    pub step: Step,
    /// The duration.
    pub time: Duration,
    /// The result of the step, as a text for people. If the step failed, the text is the error.
    pub outcome: String,
    /// Whether the step passed.
    pub passed: bool,
}

/// A check of a candidate: every step up to the first step that failed, and the result.
#[derive(Debug)]
pub struct Check {
    /// The steps, in order.
    pub steps: Vec<Taken>,
    /// The result of the inspection, if the bytes passed it.
    pub inspection: Option<Inspection>,
    /// The policy as its description declares it, even if a later step failed; `None` if the description is invalid.
    pub described: Option<Arc<Policy>>,
    /// The policy, or the reason why the candidate is not a policy.
    pub result: Result<Arc<Policy>, LoadError>,
}

/// The services, limits and facts that the gate uses.
pub struct Gate<'a> {
    /// The engine that will run the policy.
    pub engine: &'a Engine,
    /// The compile step.
    pub compiler: &'a dyn Compile,
    /// The compiled code of the policies that ship with this program.
    pub built_in: &'a [BuiltIn],
    /// The compiled script engine that ships with this program. Without it, the gate compiles the script engine.
    pub script_engine: Option<BuiltIn>,
    /// The cache of compiled code, if there is one.
    pub cache: Option<&'a Cache>,
    /// The bounds of a component.
    pub bounds: Bounds,
    /// The limits of a pass. The gate reduces a policy's own limits to these limits.
    pub limits: Limits,
    /// The kinds that every cluster with this operator serves. A claim must spell the names of these kinds with the
    /// same capitals.
    pub kinds: &'a [ResourceType],
    /// The facts of the cluster that the policy sees when the gate evaluates the samples.
    pub cluster: Cluster,
    /// Measures the time of the steps.
    pub clock: &'a dyn Clock,
    /// Decides when the gate can run a sandbox, and when a check must end.
    pub turns: &'a dyn Turns,
    /// The API server that will receive the children of the policy's plans.
    pub server: &'a dyn Server,
}

/// Checks that the policy's plans for its own samples are valid with these settings. The settings schema alone is not
/// enough: the schema can accept a value that Kubernetes refuses.
pub fn try_settings(
    policy: &Arc<Policy>,
    settings: &[Layer],
    cluster: &Cluster,
    server: &dyn Server,
) -> Result<(), LoadError> {
    conformance::with_settings(policy, settings, cluster, server)
}

/// Evaluates the samples of an admitted policy once more, for remarks that the gate does not make. `schemas` has the
/// schemas of the known custom kinds.
pub fn survey(
    policy: &Arc<Policy>,
    settings: &[Layer],
    cluster: &Cluster,
    schemas: &Schemas<'_>,
) -> Result<Survey, LoadError> {
    conformance::survey_samples(policy, settings, cluster, schemas)
}

impl Gate<'_> {
    /// Checks a candidate, and returns the policy.
    pub fn load(&self, candidate: &Candidate) -> Result<Arc<Policy>, LoadError> {
        self.check(candidate).result
    }

    /// Checks a candidate, and returns the policy together with all steps.
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

/// The loaded code of a component.
struct Coded<C> {
    code: C,
    inspection: Inspection,
    /// The duration of the inspection, if the compile child measured it.
    inspecting: Option<Duration>,
    /// A text for people that tells where the code comes from.
    outcome: String,
}

/// A check that is in progress.
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
        let limits = file.limits.unwrap_or(limits).at_most(limits);
        let (digest, code) = match candidate.form {
            CodeForm::Component => self.component(candidate, &bounds)?,
            CodeForm::Script => self.script(candidate, &bounds, &limits)?,
        };
        let turn = turns::next(self.gate.turns)?;
        drop(code.open(&limits).map_err(LoadError::of_start)?);
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
        let conformance::SampleReport { outcome, dropped, newer, answers } =
            conformance::run(&policy, &layers, &terms)?;
        self.passed(Step::Conformance, outcome);
        let above = file.limits.map(|limits| limits.above(&self.gate.limits));
        policy.answered(answers::digest(policy.descriptor(), file, &answers));
        policy.remark(above.into_iter().flatten().chain(dropped).chain(newer).collect());
        Ok(policy)
    }

    /// Checks the bytes of a component, and returns their digest and the code.
    fn component(&mut self, candidate: &Candidate, bounds: &Bounds) -> Result<(Digest, Arc<dyn Code>), LoadError> {
        let Candidate { bytes, file, .. } = candidate;
        bytes::size(bytes, bounds)?;
        self.passed(Step::Size, format!("{} bytes", bytes.len()));
        let component = bytes::decompress(bytes, bounds)?;
        self.passed(Step::Decompress, format!("{} bytes", component.len()));
        let digest = bytes::digest(&component, bytes, file.sha256)?;
        self.passed(Step::Digest, digest.to_string());
        let engine = self.gate.engine;
        let load = |compiled: &Compiled, inspection: &Inspection| {
            engine.load(compiled, inspection.world, Version::of(&inspection.contract))
        };
        let Coded { code, inspection, inspecting, outcome } =
            self.code(digest, &component, self.gate.built_in, load)?;
        self.inspected(inspection, inspecting);
        self.passed(Step::Compile, outcome);
        Ok((digest, code))
    }

    /// Checks the bytes of a script, and returns their digest and the code. The first script of a process also loads
    /// the script engine.
    fn script(
        &mut self,
        candidate: &Candidate,
        bounds: &Bounds,
        limits: &Limits,
    ) -> Result<(Digest, Arc<dyn Code>), LoadError> {
        let Candidate { bytes, file, .. } = candidate;
        let text = bytes::script(bytes, bounds)?;
        self.passed(Step::Size, format!("{} bytes", bytes.len()));
        let digest = bytes::digest(bytes, bytes, file.sha256)?;
        self.passed(Step::Digest, digest.to_string());
        let engine = ScriptEngine::shipped()?.digest;
        let shared = Arc::clone(&self.gate.engine.scripts);
        let (code, outcome) = if let Some(code) = shared.get() {
            (Arc::clone(code), "the script engine is loaded".to_owned())
        } else {
            let built_in = self.gate.script_engine;
            let load = |compiled: &Compiled, inspection: &Inspection| {
                self.gate.engine.load_component(compiled, inspection.world)
            };
            let Coded { code, outcome, .. } =
                self.code(engine, &ScriptEngine::component()?, built_in.as_slice(), load)?;
            (Arc::clone(shared.get_or_init(|| Arc::new(code))), format!("script engine: {outcome}"))
        };
        self.inspection = Some(Inspection::of_script(digest, bytes.len(), engine));
        self.passed(Step::Compile, outcome);
        let turn = turns::next(self.gate.turns)?;
        let script = ScriptCode::new(code, engine, text.to_owned(), limits).map_err(LoadError::of_start)?;
        drop(turn);
        if let Some(inspection) = &mut self.inspection {
            inspection.world = script.world();
        }
        Ok((digest, Arc::new(script)))
    }

    /// Returns the component's code. Uses built-in or cached code if the engine can load it, otherwise compiles the
    /// component.
    ///
    /// The compile child inspects unknown bytes. If the gate has built-in or cached code for the bytes, an earlier
    /// inspection accepted the bytes. So this process can safely inspect them again: this takes no longer than the
    /// earlier inspection.
    fn code<C>(
        &self,
        digest: Digest,
        component: &[u8],
        built_in: &[BuiltIn],
        load: impl Fn(&Compiled, &Inspection) -> Result<C, EngineError>,
    ) -> Result<Coded<C>, LoadError> {
        let Gate { engine, cache, compiler, bounds, turns, .. } = *self.gate;
        let fingerprint = engine.fingerprint();
        let built_in = built_in.iter().find_map(|it| it.of(&digest)).map(|code| (code, "compiled with this program"));
        let cached = || Some((cache?.load(&digest, &fingerprint)?, "from the cache"));
        for (compiled, outcome) in built_in.into_iter().chain(std::iter::once_with(cached).flatten()) {
            let inspection = inspect(component, &bounds)?;
            if let Ok(code) = load(&compiled, &inspection) {
                return Ok(Coded { code, inspection, inspecting: None, outcome: outcome.to_owned() });
            }
        }
        let is_wanted = || !turns.is_over();
        let order = Order { component, bounds, is_wanted: &is_wanted };
        let Compilation { inspection, inspecting, code } = compiler.compile(&order)?;
        let mut outcome = format!("{} bytes of code", code.len());
        if let Some(cache) = cache {
            // Continue without a cache entry: the only effect is that the next start takes longer.
            if let Err(error) = cache.store(&digest, &fingerprint, &code) {
                outcome = format!("{outcome}, not cached: {error}");
            }
        }
        let code = load(&Compiled::from_compile_step(code), &inspection)?;
        Ok(Coded { code, inspection, inspecting: Some(inspecting), outcome })
    }

    /// Records a passed inspection with its duration. If the duration is unknown, records the time since the end of the
    /// previous step.
    fn inspected(&mut self, inspection: Inspection, time: Option<Duration>) {
        let outcome = format!("world {}, contract {}", inspection.world.name(), inspection.contract);
        let now = self.gate.clock.now();
        let time = time.unwrap_or(now).min(now.saturating_sub(self.began));
        self.steps.push(Taken { step: Step::Inspect, time, outcome, passed: true });
        self.began = self.began.saturating_add(time);
        self.inspection = Some(inspection);
    }

    fn describe(&mut self, code: Arc<dyn Code>, digest: Digest, file: &PolicyFile) -> Result<Arc<Policy>, LoadError> {
        let policy = Arc::new(Policy::admit(code, digest, file, self.gate.limits)?);
        check_capitals(&policy.descriptor().claims, self.gate.kinds)?;
        let kinds: Vec<_> = policy.descriptor().claims.iter().map(|claim| claim.primary.kind.as_str()).collect();
        self.passed(Step::Describe, format!("{} claims {}", policy.id(), kinds.join(", ")));
        Ok(policy)
    }

    fn settings(&mut self, policy: &Policy, layers: &[Layer]) -> Result<(), LoadError> {
        let settings = policy.settings(layers)?;
        self.passed(Step::Settings, format!("{} values", settings.sources().count()));
        Ok(())
    }

    /// Returns the settings in the package. Leaves out all other settings layers, because the policy's author did not
    /// write them.
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
