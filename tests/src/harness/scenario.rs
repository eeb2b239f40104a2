//! The requirements of a test.

use std::collections::BTreeMap;
use std::path::PathBuf;

use kaos_operator::operator::Options;

use crate::case;

/// The operator's namespace.
pub const SYSTEM: &str = kaos_policy::contract::HOME;

/// The cluster that a test needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Needs {
    Either,
    Embedded,
    Real,
}

/// The form in which the operator runs the default policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Native code in the process of the test.
    Native,
    /// Components in sandboxes.
    Components,
}

/// The requirements of a test.
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
    pub(super) form: Form,
    pub(super) reads: &'static [&'static str],
}

impl Default for Scenario {
    /// Returns a scenario for an embedded or a real cluster, with the CustomResourceDefinitions of all kinds and a
    /// running operator.
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
            form: Form::Native,
            reads: &[],
        }
    }
}

impl Scenario {
    /// Returns a scenario that requires the embedded cluster. `why` is the reason.
    pub fn embedded(why: &'static str) -> Self {
        Self { needs: Needs::Embedded, why, ..Self::default() }
    }

    /// Returns a scenario that requires a real control plane. `why` is the reason.
    pub fn real(why: &'static str) -> Self {
        Self { needs: Needs::Real, why, ..Self::default() }
    }

    /// Starts no operator. The test itself starts an operator.
    #[must_use]
    pub fn idle(mut self) -> Self {
        self.idle = true;
        self
    }

    /// Installs no CustomResourceDefinitions, and starts no operator.
    #[must_use]
    pub fn bare(mut self) -> Self {
        self.bare = true;
        self.idle = true;
        self
    }

    /// Serves the type `HTTPRoute`.
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

    /// Sets the name of the test's namespace on an embedded cluster.
    #[must_use]
    pub fn within(mut self, namespace: &'static str) -> Self {
        self.namespace = Some(namespace);
        self
    }

    /// Sets the seed of all random values on an embedded cluster.
    #[must_use]
    pub fn seeded(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Makes the operator install policies from ConfigMaps in its own namespace. If `in_namespaces` is true, the
    /// operator also installs policies from other namespaces.
    #[must_use]
    pub fn installing(mut self, in_namespaces: bool) -> Self {
        self.installing = Some(in_namespaces);
        self
    }

    /// Uses the default policies as components. Without this call, the default policies are native code.
    #[must_use]
    pub fn components(mut self) -> Self {
        self.form = Form::Components;
        self
    }

    /// Lets the default policies read objects in `namespaces` when they answer for an object in the operator's
    /// namespace.
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

/// Returns whether tests run on a real control plane.
pub fn is_real() -> bool {
    kubeconfig().is_some()
}
