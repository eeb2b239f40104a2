//! The fates of pods, which tests set.

use std::{collections::BTreeMap, time::Duration};

/// The fate of a pod after its creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodFate {
    /// The pod runs, and becomes ready after this time.
    ReadyAfter(Duration),
    /// The pod runs but never becomes ready.
    NotReady,
    /// The containers crash repeatedly.
    CrashLoop,
    /// The image cannot be pulled.
    ImagePullBackOff,
    /// No node accepts the pod.
    Unschedulable,
}

/// The fate of the pods of single Deployments, and the fate of all other pods.
#[derive(Debug, Clone)]
pub(crate) struct Fates {
    general: PodFate,
    of_deployments: BTreeMap<(String, String), PodFate>,
}

impl Default for Fates {
    fn default() -> Self {
        Self { general: PodFate::ReadyAfter(Duration::ZERO), of_deployments: BTreeMap::new() }
    }
}

impl Fates {
    pub(crate) fn set_general(&mut self, fate: PodFate) {
        self.general = fate;
    }

    pub(crate) fn set(&mut self, namespace: &str, deployment: &str, fate: Option<PodFate>) {
        let key = (namespace.to_owned(), deployment.to_owned());
        match fate {
            Some(fate) => drop(self.of_deployments.insert(key, fate)),
            None => drop(self.of_deployments.remove(&key)),
        }
    }

    pub(crate) fn of(&self, namespace: &str, deployment: &str) -> PodFate {
        self.of_deployments.get(&(namespace.to_owned(), deployment.to_owned())).copied().unwrap_or(self.general)
    }
}
