//! From components to policies that can be asked: the gate, with what it needs on a laptop.

use std::{
    ffi::OsString,
    io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use kaos_policy::{
    cache::Cache,
    clock::SystemClock,
    compile::{ChildCompiler, Compilation, Compile, CompileError, CompileLimits, InProcessCompiler, Order},
    contract::Cluster,
    engine::{BuiltIn, Engine, EngineError},
    gate::{AtOnce, Bounds, Check, Gate, Known},
    limits::Limits,
    policy::Policy,
};
use serde_json::Value;

use super::{COMPILE_CHILD, Candidate, Origin, PolicyError};
use crate::{
    catalogue::Gatekeeper,
    embedded::{DEFAULTS, EmbeddedPolicy},
    kinds,
};

/// A policy that passed the gate.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// Where it comes from.
    pub origin: Origin,
    /// The policy.
    pub policy: Arc<Policy>,
    /// The settings of its policy file; null when it has none.
    pub settings: Value,
}

/// A cluster as a new user has it.
pub fn sample_cluster() -> Cluster {
    Cluster::default()
}

/// The engine that policies run on, and the facts of the cluster that their samples are tried with.
#[derive(Debug)]
pub struct Loader {
    engine: Engine,
    pub(crate) cluster: Cluster,
    clock: SystemClock,
    built_in: Vec<BuiltIn>,
    in_children: bool,
    cache: Option<Cache>,
    /// Whether the API server that policies are for has fields that this program does not know.
    newer: AtomicBool,
}

impl Loader {
    /// A loader of its own engine.
    pub fn new(cluster: Cluster) -> Result<Self, EngineError> {
        let built_in = DEFAULTS.iter().filter_map(EmbeddedPolicy::built_in).collect();
        let (engine, clock) = (Engine::new()?, SystemClock::start());
        Ok(Self { engine, cluster, clock, built_in, in_children: false, cache: None, newer: AtomicBool::new(false) })
    }

    /// Compiles what this build embedded, and has not compiled, in processes of their own as well: one that runs for months
    /// is not to keep the memory that a compiler needs.
    #[must_use]
    pub fn in_children(self) -> Self {
        Self { in_children: true, ..self }
    }

    /// A loader for a short run, of which compiling is most of the time: what an earlier one compiled is taken from the
    /// user's cache directory. Without one, or where it cannot be trusted or written, everything is compiled.
    pub fn cached(cluster: Cluster) -> Result<Self, EngineError> {
        let cache = cache_directory(|name| std::env::var_os(name)).and_then(|place| Cache::open(place).ok());
        Ok(Self { cache, ..Self::new(cluster)? })
    }

    /// Has policies be for an API server that is newer than this program, from now on.
    pub(crate) fn expect_newer(&self) {
        self.newer.store(true, Ordering::Relaxed);
    }

    /// The API server that policies are for, as far as it is known.
    pub(crate) fn server(&self) -> Known {
        Known { is_newer: self.newer.load(Ordering::Relaxed) }
    }

    /// The embedded policies and those of files, in this order.
    pub fn load(&self, files: &[PathBuf]) -> Result<Vec<Loaded>, PolicyError> {
        let mut candidates = Candidate::embedded()?;
        for file in files {
            candidates.push(Candidate::read(file)?);
        }
        // Compiling is most of the time of a short run.
        thread::scope(|scope| {
            let admitted: Vec<_> =
                candidates.into_iter().map(|candidate| scope.spawn(|| self.admit(candidate))).collect();
            admitted
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        })
    }

    fn admit(&self, candidate: Candidate) -> Result<Loaded, PolicyError> {
        let Check { result, .. } = self.check(&candidate);
        let Candidate { origin, inner } = candidate;
        match result {
            Ok(policy) => Ok(Loaded { origin, policy, settings: inner.file.settings }),
            Err(source) => Err(PolicyError::Rejected { origin, source: Box::new(source) }),
        }
    }

    /// The whole gate. What this build embedded is compiled here unless the loader says otherwise; a stranger's component
    /// in a process of its own, or not at all.
    pub fn check(&self, candidate: &Candidate) -> Check {
        let compiler = self.compiler(&candidate.origin, std::env::current_exe());
        let gate = Gate {
            engine: &self.engine,
            compiler: &*compiler,
            built_in: if candidate.origin == Origin::Embedded { &self.built_in } else { &[] },
            cache: self.cache.as_ref(),
            bounds: Bounds::default(),
            limits: Limits::default(),
            kinds: &kinds::SERVED,
            cluster: self.cluster.clone(),
            clock: &self.clock,
            turns: &AtOnce,
            server: &self.server(),
        };
        gate.check(&candidate.inner)
    }

    /// What lets in the policies that somebody installs while the process runs.
    pub fn gatekeeper(&self) -> Gatekeeper {
        let compiler = self.compiler(&Origin::File(PathBuf::new()), std::env::current_exe());
        Gatekeeper::new(self.engine.clone(), compiler, self.cluster.clone())
    }

    fn compiler(&self, origin: &Origin, program: io::Result<PathBuf>) -> Box<dyn Compile> {
        match origin {
            Origin::Embedded if !self.in_children => Box::new(InProcessCompiler(self.engine.clone())),
            Origin::Embedded | Origin::File(_) => match program {
                Ok(program) => {
                    let arguments = vec![COMPILE_CHILD.into()];
                    Box::new(ChildCompiler::new(program, arguments, CompileLimits::of_this_container(), self.clock))
                }
                Err(error) => Box::new(NoProgram(error.to_string())),
            },
        }
    }
}

/// Where compiled code is kept: by the rules of the desktop, or nowhere.
fn cache_directory(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let place = |name| variable(name).map(PathBuf::from).filter(|place| place.is_absolute());
    let caches = place("XDG_CACHE_HOME").or_else(|| Some(place("HOME")?.join(".cache")))?;
    Some(caches.join("kaos-operator"))
}

/// There is no program for the child to run: then nothing is compiled.
struct NoProgram(String);

impl Compile for NoProgram {
    fn compile(&self, _: &Order<'_>) -> Result<Compilation, CompileError> {
        Err(CompileError::NotRun(format!("this program's own file is not found: {}", self.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiled_code_is_kept_where_caches_are() {
        let place = |known: &[(&str, &str)]| {
            cache_directory(|name| known.iter().find(|(it, _)| *it == name).map(|(_, value)| value.into()))
        };
        assert_eq!(place(&[("HOME", "/h"), ("XDG_CACHE_HOME", "/c")]), Some("/c/kaos-operator".into()));
        assert_eq!(place(&[("HOME", "/h"), ("XDG_CACHE_HOME", "")]), Some("/h/.cache/kaos-operator".into()));
        assert_eq!(place(&[("HOME", "relative")]), None);
    }

    #[test]
    fn a_strangers_component_is_never_compiled_in_this_process() {
        let loader = Loader::new(sample_cluster()).unwrap();
        let lost = || Err(io::ErrorKind::NotFound.into());
        let component = DEFAULTS[0].component;
        let stranger = loader.compiler(&Origin::File("x.wasm".into()), lost()).compile(&Order::new(component));
        assert!(matches!(stranger, Err(CompileError::NotRun(_))), "{stranger:?}");
    }
}
