//! Tries the operator's own ConfigMap on the samples of the policies for the cluster before it takes effect.

use std::{collections::BTreeSet, sync::Arc};

use kaos_policy::{
    gate::LoadError,
    policy::Policy,
    settings::{Layer, Origin},
};

use super::{Lifecycle, Trial};
use crate::catalogue::{Arranged, installed::roster::Unfit, lasting};

impl Lifecycle {
    /// Tries the content of the operator's own ConfigMap, if it changed. An error counts against the ConfigMap only if
    /// the samples pass without it. The same content is tried once.
    pub(super) async fn try_config(
        &mut self,
        config: Option<&Layer>,
        serving: &BTreeSet<String>,
        arranged: &Arranged,
    ) -> Result<(), Unfit> {
        let holds = self.installed.as_ref().is_some_and(|(_, before)| before.as_ref() == config);
        if holds || config.is_none() {
            return Ok(());
        }
        let is_known = |trial: &&Trial| trial.config.as_ref() == config && trial.serving == *serving;
        if let Some(trial) = self.trial.as_ref().filter(is_known) {
            return trial.unfit.clone().map_or(Ok(()), Err);
        }
        let mut unfit = None;
        for (policy, layers) in concerned(arranged) {
            if let Some(error) = self.breaks(&policy, layers).await {
                unfit = Some(Unfit::of_settings(error.to_string()));
                break;
            }
        }
        self.trial = Some(Trial { config: config.cloned(), serving: serving.clone(), unfit: unfit.clone() });
        unfit.map_or(Ok(()), Err)
    }

    /// Returns why the plans for the policy's samples are not valid under these settings, if they are valid without the
    /// operator's own ConfigMap.
    async fn breaks(&self, policy: &Arc<Policy>, layers: Vec<Layer>) -> Option<LoadError> {
        let home = &self.tools.duties.operator_namespace;
        let mut others = layers.clone();
        others.retain(|layer| layer.origin != Origin::OperatorConfig);
        let error = lasting(self.checks.try_settings(Arc::clone(policy), layers, home).await.err()?)?;
        let without = self.checks.try_settings(Arc::clone(policy), others, home).await.map_err(lasting);
        (!matches!(without, Err(Some(_)))).then_some(error)
    }
}

/// Returns the policies that answer for the cluster, each once with its settings. Policies of single namespaces do not
/// count here.
fn concerned(arranged: &Arranged) -> Vec<(Arc<Policy>, Vec<Layer>)> {
    let mut concerned: Vec<(Arc<Policy>, Vec<Layer>)> = Vec::new();
    for kind in arranged.answers.values().filter_map(|answers| answers.of_cluster()) {
        for policy in kind.policies() {
            if !concerned.iter().any(|(known, layers)| known.id() == policy.id() && *layers == kind.layers()) {
                concerned.push((Arc::clone(policy), kind.layers().to_vec()));
            }
        }
    }
    concerned
}
