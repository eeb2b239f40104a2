//! Starts, stops and crashes operators in this process.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use kaos_operator::catalogue::{Catalogue, DefaultPolicy, Defaults, DefaultsRollout};
use kaos_operator::client::{self, CallLayer};
use kaos_operator::leader_election::Fence;
use kaos_operator::metrics::Metrics;
use kaos_operator::operator::{Operator, OperatorError, Probe};
use kaos_policy::compile::CompileError;
use kaos_policy::contract::ResourceType;
use kaos_policy::policy::{Policy, Stack};
use kube::Client;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::World;
use super::compiler::{Hindrance, lock};
use super::faults::{OPERATOR, none_missed};
use super::read::counted;
use super::running::Running;
use super::world::Below;
use crate::gadget::Edition;

/// The operator's time limit for a request. This limit is longer than any test, so it has no effect: the test's own
/// time limit ends a hanging request.
const UNBOUNDED: Duration = Duration::from_hours(24);

impl World {
    /// Starts an operator and waits until its caches are complete.
    ///
    /// # Panics
    /// If the operator does not become ready.
    #[expect(clippy::panic, reason = "that is how a test fails")]
    pub async fn start(&self) {
        self.spawn();
        self.until_true("the operator is ready", async || self.probe().ready().is_ok()).await;
        if let Err(missing) = self.probe().ready() {
            panic!("the operator is not ready: {missing:?}");
        }
    }

    /// Starts an operator.
    ///
    /// # Panics
    /// If the operator cannot be assembled.
    #[expect(clippy::panic, reason = "that is how a test fails")]
    pub fn spawn(&self) {
        let running = self.assemble().unwrap_or_else(|error| panic!("the operator cannot start: {error:#}"));
        self.running.borrow_mut().push(running);
    }

    fn assemble(&self) -> Result<Running> {
        let setting = &self.setting;
        let metrics = Arc::new(Metrics::new());
        let layer = CallLayer { deadline: UNBOUNDED, fence: Fence::open(), metrics: metrics.clone() };
        let client = match (&self.below, &setting.only) {
            (Below::Embedded(cluster), _) => {
                let way = self.crash_point.on(&cluster.service(), OPERATOR);
                Client::new(layer.around(way), self.namespace.clone())
            }
            (Below::Real, Some((_, config))) => client::connect(config.clone(), &layer)?,
            (Below::Real, None) => self.client.clone(),
        };
        let run = |operator: Operator, stop: CancellationToken| tokio::spawn(operator.run(stop));
        self.run(client, metrics, (OPERATOR.to_owned(), String::new()), run)
    }

    /// Builds an operator that uses this client, and starts the operator with the function `run`.
    pub(super) fn run(
        &self,
        client: Client,
        metrics: Arc<Metrics>,
        (user, identity): (String, String),
        run: impl FnOnce(Operator, CancellationToken) -> JoinHandle<Result<(), OperatorError>>,
    ) -> Result<Running> {
        let setting = &self.setting;
        let catalogue = Arc::new(match setting.installing {
            None => Catalogue::new(&setting.stacks()?, &setting.layers())?,
            Some(_) => Catalogue::default(),
        });
        let mut operator = Operator::new(client, Arc::clone(&catalogue), Arc::clone(&metrics), setting.options());
        if let Some(in_namespaces) = setting.installing {
            operator = operator.installing(setting.installing(in_namespaces)?);
        }
        let (probe, stop) = (operator.probe(), CancellationToken::new());
        let task = run(operator, stop.clone());
        Ok(Running { user, identity, probe, metrics, catalogue, stop, task })
    }

    /// Returns the health probe of the most recently started operator.
    ///
    /// # Panics
    /// If no operator runs.
    #[expect(clippy::panic, reason = "the test is wrong")]
    pub fn probe(&self) -> Probe {
        self.try_probe().unwrap_or_else(|| panic!("no operator runs"))
    }

    /// Returns the health probe of the most recently started operator. Returns `None` if no operator runs.
    pub fn try_probe(&self) -> Option<Probe> {
        self.running.borrow().last().map(|running| running.probe.clone())
    }

    /// Returns the metrics page of the most recently started operator.
    pub fn metrics(&self) -> String {
        self.running.borrow().last().map(|running| running.metrics.encode().unwrap_or_default()).unwrap_or_default()
    }

    /// Returns the sum of all samples of `metric` with labels that contain every text in `labels`.
    pub fn counted(&self, metric: &str, labels: &[&str]) -> f64 {
        counted(&self.metrics(), metric, labels)
    }

    /// Stops all operators gracefully.
    ///
    /// # Panics
    /// If an operator ends with an error.
    #[expect(clippy::panic, reason = "that is how a test fails")]
    pub async fn stop_all(&self) {
        let running: Vec<Running> = self.running.borrow_mut().drain(..).collect();
        for operator in running {
            operator.stop.cancel();
            match operator.task.await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => panic!("the operator ended with: {error}"),
                Err(error) if error.is_cancelled() => {}
                Err(error) => panic!("the task of the operator failed: {error}"),
            }
        }
    }

    /// Kills all operators immediately, without a graceful stop.
    pub async fn crash(&self) {
        let running: Vec<Running> = self.running.borrow_mut().drain(..).collect();
        for operator in running {
            operator.task.abort();
            let _cancelled = operator.task.await;
        }
    }

    /// Stops all operators gracefully and starts a new one.
    pub async fn restart(&self) {
        self.stop_all().await;
        self.start().await;
    }

    /// Sets the default policies of operators. The operators write revisions for these policies.
    ///
    /// The change applies to operators that start later.
    pub fn bring(&self, policies: &[DefaultPolicy], rollout: DefaultsRollout) {
        let policies = policies.to_vec();
        *self.setting.brought.borrow_mut() = Defaults { policies, rollout, ..Defaults::default() };
    }

    /// Replaces the policy of Gadgets with another edition.
    ///
    /// # Panics
    /// If the swap fails.
    #[expect(clippy::panic, reason = "that is how a test fails")]
    pub fn swap(&self, edition: Edition) {
        self.setting.edition.set(edition);
        let swapped = self.setting.stacks().and_then(|stacks| self.answer_by(&stacks));
        swapped.unwrap_or_else(|error| panic!("the policies cannot be swapped: {error:#}"));
    }

    /// Removes the policy of a kind. From now on, the objects of the kind have no policy.
    ///
    /// # Panics
    /// If the removal fails.
    #[expect(clippy::panic, reason = "that is how a test fails")]
    pub fn withdraw(&self, kind: &str) {
        let withdrawn = self.setting.stacks().and_then(|mut stacks| {
            stacks.retain(|of, _| of.kind != kind);
            self.answer_by(&stacks)
        });
        withdrawn.unwrap_or_else(|error| panic!("the policy cannot be taken away: {error:#}"));
    }

    /// Makes every running operator use these policies and overlays for the objects of each kind.
    fn answer_by(&self, stacks: &BTreeMap<ResourceType, Stack>) -> Result<()> {
        for running in self.running.borrow().iter() {
            running.catalogue.replace(stacks, &self.setting.layers())?;
        }
        Ok(())
    }

    /// Returns the policies of this world.
    ///
    /// # Panics
    /// If a policy does not describe itself.
    #[expect(clippy::panic, reason = "that is how a test fails")]
    pub fn policies(&self) -> Vec<Arc<Policy>> {
        self.setting.policies().unwrap_or_else(|error| panic!("the policies cannot be used: {error:#}"))
    }

    /// Makes the compiler fail on every component that contains this text, as if the system had killed the compile
    /// child for lack of memory. `None` removes this rule. The test fails if it changes or removes this rule, or ends,
    /// before the compiler got a component with this text.
    pub fn kill_compiler_over(&self, text: Option<&'static str>) {
        self.hinder_compiler(text, CompileError::Killed);
    }

    /// Makes the compiler refuse every component that contains this text, as if a newer build of the operator no longer
    /// accepted this component. `None` removes this rule.
    pub fn refuse_to_compile(&self, text: Option<&'static str>) {
        self.hinder_compiler(text, CompileError::Refused("this build no longer accepts the component".to_owned()));
    }

    fn hinder_compiler(&self, text: Option<&'static str>, why: CompileError) {
        none_missed(self.setting.spared());
        let hindrance = text.map(|text| Hindrance { text, why, hits: 0 });
        *lock(&self.setting.hindered) = hindrance;
    }

    /// Makes the compiler hang on components that contain this text. Another call replaces the text, and `None` ends
    /// the hang. Simulated time stands still while the compiler hangs: see [`Self::until_meanwhile`].
    pub fn hold_compiler_over(&self, text: Option<&'static str>) {
        lock(&self.setting.held).text = text;
    }

    /// Returns the number of components on which the compiler hangs now, and the number of components on which it has
    /// ever hung.
    pub fn held(&self) -> (usize, usize) {
        let held = lock(&self.setting.held);
        (held.now, held.ever)
    }

    /// Changes one variable of the operator's environment. The change applies to operators that start later.
    pub fn set_environment(&self, name: &str, value: &str) {
        self.setting.environment.borrow_mut().insert(name.to_owned(), value.to_owned());
    }
}
