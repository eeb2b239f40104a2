//! Loads policies: runs the gate for components, without a cluster.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    io,
    path::{Path, PathBuf},
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
    gate::{AtOnce, Check, Gate, KnownServer, SizeClass},
    limits::Limits,
    policy::Policy,
};
use serde_json::Value;

use super::{COMPILE_CHILD, Candidate, ComponentOrigin, PolicyError};
use crate::{
    catalogue::Gatekeeper,
    embedded::{self, DEFAULTS, EmbeddedPolicy},
    kinds,
};

/// A policy that passed the gate.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The origin of the component.
    pub origin: ComponentOrigin,
    /// The policy.
    pub policy: Arc<Policy>,
    /// The settings of the policy file. Null if the policy file has no settings.
    pub settings: Value,
}

/// Returns the facts of a typical cluster, for commands that read no cluster.
pub fn sample_cluster() -> Cluster {
    Cluster::default()
}

/// Loads policies: owns the engine that runs them, and the facts of the cluster with which the gate evaluates samples.
#[derive(Debug)]
pub struct Loader {
    engine: Engine,
    pub(crate) cluster: Cluster,
    clock: SystemClock,
    built_in: Vec<BuiltIn>,
    in_children: bool,
    /// The largest size class that the loader accepts.
    size: SizeClass,
    /// Namespaces whose objects the embedded policies may read when they answer for an object in the operator's
    /// namespace.
    namespaces: BTreeSet<String>,
    cache: Option<Cache>,
    /// Whether the API server may have fields that this program does not know.
    newer: AtomicBool,
}

impl Loader {
    /// Creates a loader with its own engine.
    pub fn new(cluster: Cluster) -> Result<Self, EngineError> {
        let built_in = DEFAULTS.iter().filter_map(EmbeddedPolicy::built_in).collect();
        let (engine, clock) = (Engine::new()?, SystemClock::start());
        let (namespaces, newer, size) = (BTreeSet::new(), AtomicBool::new(false), SizeClass::Standard);
        Ok(Self { engine, cluster, clock, built_in, in_children: false, size, namespaces, cache: None, newer })
    }

    /// Lets the embedded policies read these namespaces when they answer for an object in the operator's namespace.
    #[must_use]
    pub fn reading(self, namespaces: impl IntoIterator<Item = String>) -> Self {
        Self { namespaces: namespaces.into_iter().collect(), ..self }
    }

    /// Accepts components up to this size class.
    #[must_use]
    pub fn accepting(self, size: SizeClass) -> Self {
        Self { size, ..self }
    }

    /// Accepts components of all size classes, for commands that do not predict whether an operator accepts a
    /// component.
    #[must_use]
    pub fn accepting_all(self) -> Self {
        self.accepting(SizeClass::Large)
    }

    /// Makes the loader compile embedded components in child processes too, if the binary does not contain their
    /// compiled code. So a long-running process does not keep the memory that a compiler needs.
    #[must_use]
    pub fn in_children(self) -> Self {
        Self { in_children: true, ..self }
    }

    /// Creates a loader for a short run, in which compilation takes most of the time. The loader reuses compiled code
    /// of earlier runs from the user's cache directory. If this directory cannot be created or written, or if other
    /// users can write into it, the loader compiles everything.
    pub fn cached(cluster: Cluster) -> Result<Self, EngineError> {
        let cache = cache_directory(|name| std::env::var_os(name)).and_then(|place| Cache::open(place).ok());
        Ok(Self { cache, ..Self::new(cluster)? })
    }

    /// Creates a loader for a long-running process, which compiles in child processes. A debug build also reuses code
    /// from the cache directory, because its compiler is slow, and tests create such loaders hundreds of times.
    pub fn lasting(cluster: Cluster) -> Result<Self, EngineError> {
        let loader = if cfg!(debug_assertions) { Self::cached(cluster)? } else { Self::new(cluster)? };
        Ok(loader.in_children())
    }

    /// Makes the loader allow fields that this program does not know from now on, because the API server is newer.
    pub(crate) fn expect_newer(&self) {
        self.newer.store(true, Ordering::Relaxed);
    }

    /// Returns the known facts about the API server.
    pub(crate) fn server(&self) -> KnownServer {
        KnownServer { is_newer: self.newer.load(Ordering::Relaxed) }
    }

    /// Loads the embedded policies, then the policies from files. Returns them in this order.
    pub fn load(&self, files: &[PathBuf]) -> Result<Vec<Loaded>, PolicyError> {
        let mut candidates = Candidate::embedded()?;
        for candidate in &mut candidates {
            candidate.inner.file.grants.namespaces.extend(self.namespaces.iter().cloned());
        }
        for file in files {
            candidates.push(Candidate::read(file)?);
        }
        // Compile in parallel, because compilation takes most of the time of a short run.
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

    /// Checks a candidate with the whole gate. Compiles embedded components in this process, unless the caller used
    /// [`Self::in_children`]. Components from files are always compiled in a child process.
    pub fn check(&self, candidate: &Candidate) -> Check {
        let compiler = self.compiler(&candidate.origin, this_program());
        let gate = Gate {
            engine: &self.engine,
            compiler: &*compiler,
            built_in: if candidate.origin == ComponentOrigin::Embedded { &self.built_in } else { &[] },
            script_engine: embedded::script_engine(),
            cache: self.cache.as_ref(),
            bounds: self.size.bounds(),
            limits: Limits::default(),
            kinds: &kinds::SERVED,
            cluster: self.cluster.clone(),
            clock: &self.clock,
            turns: &AtOnce,
            server: &self.server(),
        };
        gate.check(&candidate.inner)
    }

    /// Returns a gatekeeper for the policies that users install while the process runs.
    pub fn gatekeeper(&self) -> Gatekeeper {
        let compiler = self.compiler(&ComponentOrigin::File(PathBuf::new()), this_program());
        Gatekeeper::new(self.engine.clone(), compiler, self.cluster.clone(), self.size)
    }

    fn compiler(&self, origin: &ComponentOrigin, program: io::Result<PathBuf>) -> Box<dyn Compile> {
        match origin {
            ComponentOrigin::Embedded if !self.in_children => Box::new(InProcessCompiler(self.engine.clone())),
            ComponentOrigin::Embedded | ComponentOrigin::File(_) => match program {
                Ok(program) => {
                    let arguments = vec![COMPILE_CHILD.into()];
                    let limits = CompileLimits::of_this_container().up_to(self.size);
                    // A command such as `render` does nothing but wait for the child, so the child gets the priority of
                    // the command.
                    let limits = if self.in_children { limits } else { limits.awaited() };
                    Box::new(ChildCompiler::new(program, arguments, limits, self.clock))
                }
                Err(error) => Box::new(NoProgram(error.to_string())),
            },
        }
    }
}

/// Returns the path of the running program. On Linux, this path is a link to the program, and stays valid after an
/// upgrade has replaced or deleted the program's file.
fn this_program() -> io::Result<PathBuf> {
    let link = Path::new("/proc/self/exe");
    if link.exists() { Ok(link.to_owned()) } else { std::env::current_exe() }
}

/// Returns the directory for compiled code according to the XDG rules. Returns `None` without a home directory.
fn cache_directory(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let place = |name| variable(name).map(PathBuf::from).filter(|place| place.is_absolute());
    let caches = place("XDG_CACHE_HOME").or_else(|| Some(place("HOME")?.join(".cache")))?;
    Some(caches.join("kaos-operator"))
}

/// A compiler that always fails, because the path of this program is unknown, and so no child process can start.
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
    fn only_a_debug_build_uses_the_cache_in_a_process_that_runs_for_long() {
        let lasting = Loader::lasting(sample_cluster()).unwrap();
        let has_cache = Loader::cached(sample_cluster()).unwrap().cache.is_some();
        assert!(lasting.in_children);
        assert_eq!(lasting.cache.is_some(), has_cache && cfg!(debug_assertions));
    }

    #[test]
    fn compiled_code_is_in_the_cache_directory() {
        let place = |known: &[(&str, &str)]| {
            cache_directory(|name| known.iter().find(|(it, _)| *it == name).map(|(_, value)| value.into()))
        };
        assert_eq!(place(&[("HOME", "/h"), ("XDG_CACHE_HOME", "/c")]), Some("/c/kaos-operator".into()));
        assert_eq!(place(&[("HOME", "/h"), ("XDG_CACHE_HOME", "")]), Some("/h/.cache/kaos-operator".into()));
        assert_eq!(place(&[("HOME", "relative")]), None);
    }

    #[test]
    fn a_component_from_a_file_is_never_compiled_in_this_process() {
        let loader = Loader::new(sample_cluster()).unwrap();
        let lost = || Err(io::ErrorKind::NotFound.into());
        let component = DEFAULTS[0].component;
        let stranger = loader.compiler(&ComponentOrigin::File("x.wasm".into()), lost()).compile(&Order::new(component));
        assert!(matches!(stranger, Err(CompileError::NotRun(_))), "{stranger:?}");
    }
}
