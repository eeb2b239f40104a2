//! The settings with which a world starts its operators.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use anyhow::Result;
use kaos_operator::catalogue::{DefaultPolicy, Defaults, Gatekeeper, Installing, Offer};
use kaos_operator::operator::{Clock, Compute, Options};
use kaos_operator::watch::Scope;
use kaos_policy::contract::ResourceType;
use kaos_policy::engine::Engine;
use kaos_policy::gate::SizeClass;
use kaos_policy::policy::{Policy, Stack};
use kaos_policy::settings::{Layer, Origin};
use kube::Config;

use super::compiler::{Held, Hindered, Mortal, lock};
use super::once::Once;
use super::scenario::{Form, SYSTEM, Scenario};
use crate::gadget::{self, Edition};
use crate::policies;

/// The settings with which a world starts its operators.
pub(super) struct Setting {
    pub(super) environment: RefCell<BTreeMap<String, String>>,
    pub(super) edition: Cell<Edition>,
    clock: Clock,
    seed: u64,
    tune: fn(&mut Options),
    pub(super) installing: Option<bool>,
    form: Form,
    reads: &'static [&'static str],
    pub(super) only: Option<(BTreeSet<String>, Config)>,
    pub(super) hindered: Hindered,
    pub(super) held: Held,
    /// The default policies for which the operator writes revisions.
    ///
    /// For their kinds, these policies replace the test's other policies.
    pub(super) brought: RefCell<Defaults>,
    /// The number of replicas that have started so far.
    pub(super) lives: Cell<u32>,
}

impl Setting {
    pub(super) fn new(scenario: &Scenario, clock: Clock) -> Self {
        let Scenario { environment, seed, tune, installing, form, reads, .. } = scenario;
        Self {
            environment: RefCell::new(environment.clone()),
            edition: Cell::new(Edition::First),
            clock,
            seed: *seed,
            tune: *tune,
            installing: *installing,
            form: *form,
            reads,
            only: None,
            hindered: Hindered::default(),
            held: Held::default(),
            brought: RefCell::default(),
            lives: Cell::new(0),
        }
    }

    /// Restricts the operator to its test's namespace, because tests share the real cluster.
    pub(super) fn only_in(&mut self, namespace: &str, config: Config) {
        self.only = Some((BTreeSet::from([namespace.to_owned()]), config));
    }

    pub(super) fn options(&self) -> Options {
        let mut options = Options { operator_namespace: SYSTEM.to_owned(), seed: self.seed + 1, ..Options::default() };
        match &self.only {
            None => {
                // Use the clock of this world, so that the cluster and all of its operators have the same time.
                options.compute = Compute::Inline;
                options.clock = self.clock;
            }
            Some((namespaces, _)) => options.namespaces = Scope::Listed(namespaces.clone()),
        }
        (self.tune)(&mut options);
        options
    }

    /// If the compiler has not yet returned the error that the test planned, returns a description of this error.
    /// Otherwise returns `None`.
    pub(super) fn spared(&self) -> Option<String> {
        let hindered = lock(&self.hindered);
        let spared = hindered.as_ref().filter(|hindrance| hindrance.hits == 0);
        spared.map(|hindrance| {
            format!("the compiler fails on components with {text}: {why}", text = hindrance.text, why = hindrance.why)
        })
    }

    pub(super) fn layers(&self) -> Vec<Layer> {
        let mut layers = vec![Layer::env(Origin::Environment, self.environment.borrow().clone())];
        for DefaultPolicy { policy, package } in &self.brought.borrow().policies {
            let (name, settings) = (&policy.id().name, &package.file.settings);
            if !settings.is_null() {
                layers.push(Layer::tree(Origin::PolicyFile(name.clone()), name, settings.clone()));
            }
        }
        layers
    }

    /// Returns the policy for each kind of object.
    pub(super) fn stacks(&self) -> Result<BTreeMap<ResourceType, Stack>> {
        let mut stacks = BTreeMap::new();
        for policy in self.policies()? {
            for claim in &policy.descriptor().claims {
                stacks.insert(claim.primary.clone(), Stack::single(Arc::clone(&policy))?);
            }
        }
        Ok(stacks)
    }

    /// Returns the services that an operator needs to install policies.
    pub(super) fn installing(&self, in_namespaces: bool) -> Result<Installing> {
        let engine = Engine::new()?;
        let (hindered, held) = (Arc::clone(&self.hindered), Arc::clone(&self.held));
        let compiler = Box::new(Mortal { compiler: Once::new(engine.clone()), hindered, held });
        let cluster = kaos_policy::contract::Cluster { operator_namespace: SYSTEM.to_owned(), ..Default::default() };
        let own = self.stacks()?.iter().flat_map(|(of, stack)| Offer::of_process(of, stack)).collect();
        let gatekeeper = Gatekeeper::new(engine, compiler, cluster, SizeClass::default());
        let defaults = self.brought.borrow().clone();
        Ok(Installing { own, settings: self.layers(), defaults, gatekeeper, in_namespaces })
    }

    pub(super) fn policies(&self) -> Result<Vec<Arc<Policy>>> {
        static NATIVE: OnceLock<Vec<Arc<Policy>>> = OnceLock::new();
        static COMPONENTS: OnceLock<Vec<Arc<Policy>>> = OnceLock::new();
        let (kept, load): (_, fn() -> _) = match self.form {
            Form::Native => (&NATIVE, policies::native),
            Form::Components => (&COMPONENTS, policies::wasm),
        };
        let mut policies = if !self.reads.is_empty() {
            policies::native_reading(self.reads)?
        } else if let Some(kept) = kept.get() {
            kept.clone()
        } else {
            let loaded = load()?;
            kept.get_or_init(|| loaded).clone()
        };
        policies.push(gadget::policy(self.edition.get())?);
        for DefaultPolicy { policy, .. } in &self.brought.borrow().policies {
            policies
                .retain(|other| policy.descriptor().claims.iter().all(|claim| other.claim(&claim.primary).is_none()));
            policies.push(Arc::clone(policy));
        }
        Ok(policies)
    }
}
