//! A test's requirements.

use std::collections::BTreeMap;
use std::path::PathBuf;

use kaos_operator::operator::Options;

use crate::case;

/// The namespace of the operator.
pub const SYSTEM: &str = kaos_policy::contract::HOME;

/// The clusters on which a test can run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Needs {
    Either,
    Embedded,
    Real,
}

/// A test's requirements.
#[derive(Clone)]
pub struct Scenario {
    pub(super) needs: Needs,
    pub(super) why: &'static str,
    pub(super) idle: bool,
    pub(super) bare: bool,
    pub(super) gateway: bool,
    pub(super) environment: BTreeMap<String, String>,
    pub(super) namespace: Option<&'static str>,
    pub(super) seed: u64,
    pub(super) tune: fn(&mut Options),
    pub(super) installing: Option<bool>,
    pub(super) reads: &'static [&'static str],
}

impl Default for Scenario {
    /// Runs on either cluster, with all kinds and a running operator.
    #[expect(clippy::panic, reason = "that is how a test fails")]
    fn default() -> Self {
        let environment = case::default_environment().unwrap_or_else(|error| panic!("{error:#}"));
        Self {
            needs: Needs::Either,
            why: "",
            idle: false,
            bare: false,
            gateway: false,
            environment,
            namespace: None,
            seed: 0,
            tune: |_| {},
            installing: None,
            reads: &[],
        }
    }
}

impl Scenario {
    /// Runs only on the embedded cluster, for the given reason.
    pub fn embedded(why: &'static str) -> Self {
        Self { needs: Needs::Embedded, why, ..Self::default() }
    }

    /// Runs only on a real control plane, for the given reason.
    pub fn real(why: &'static str) -> Self {
        Self { needs: Needs::Real, why, ..Self::default() }
    }

    /// Starts no operator; the test does.
    #[must_use]
    pub fn idle(mut self) -> Self {
        self.idle = true;
        self
    }

    /// Installs no definitions and starts no operator.
    #[must_use]
    pub fn bare(mut self) -> Self {
        self.bare = true;
        self.idle = true;
        self
    }

    /// Serves `HTTPRoutes`.
    #[must_use]
    pub fn gateway(mut self) -> Self {
        self.gateway = true;
        self
    }

    /// Sets the operator's environment.
    #[must_use]
    pub fn environment(mut self, environment: &BTreeMap<String, String>) -> Self {
        self.environment.clone_from(environment);
        self
    }

    /// Sets the namespace, on an embedded cluster.
    #[must_use]
    pub fn within(mut self, namespace: &'static str) -> Self {
        self.namespace = Some(namespace);
        self
    }

    /// Sets the seed of all random values, on an embedded cluster.
    #[must_use]
    pub fn seeded(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Lets the operator install policies from ConfigMaps in its own namespace, and with `in_namespaces` in other
    /// namespaces, too.
    #[must_use]
    pub fn installing(mut self, in_namespaces: bool) -> Self {
        self.installing = Some(in_namespaces);
        self
    }

    /// Lets the default policies read these namespaces for objects in the operator's namespace.
    #[must_use]
    pub fn reading(mut self, namespaces: &'static [&'static str]) -> Self {
        self.reads = namespaces;
        self
    }

    /// Changes the operator's options.
    #[must_use]
    pub fn tuned(mut self, tune: fn(&mut Options)) -> Self {
        self.tune = tune;
        self
    }
}

pub(super) fn kubeconfig() -> Option<PathBuf> {
    std::env::var_os("KAOS_TEST_KUBECONFIG").map(PathBuf::from)
}

/// Whether tests run on a real control plane.
pub fn is_real() -> bool {
    kubeconfig().is_some()
}
