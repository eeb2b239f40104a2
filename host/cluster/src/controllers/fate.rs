//! The fates of pods, which tests set.

use std::{collections::BTreeMap, time::Duration};

use serde_json::Value;

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

/// The fate of the pods of single Deployments, the fate of pods with certain images, and the fate of all other pods.
#[derive(Debug, Clone)]
pub(crate) struct Fates {
    general: PodFate,
    of_deployments: BTreeMap<(String, String), PodFate>,
    of_images: BTreeMap<String, PodFate>,
}

impl Default for Fates {
    fn default() -> Self {
        Self {
            general: PodFate::ReadyAfter(Duration::ZERO),
            of_deployments: BTreeMap::new(),
            of_images: BTreeMap::new(),
        }
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

    pub(crate) fn set_image(&mut self, image: &str, fate: PodFate) {
        self.of_images.insert(image.to_owned(), fate);
    }

    /// Returns the fate of a pod of this Deployment.
    pub(crate) fn of(&self, namespace: &str, deployment: &str, pod: &Value) -> PodFate {
        let of_deployment = self.of_deployments.get(&(namespace.to_owned(), deployment.to_owned()));
        of_deployment.or_else(|| self.of_image(pod)).copied().unwrap_or(self.general)
    }

    fn of_image(&self, pod: &Value) -> Option<&PodFate> {
        let mut containers = pod["spec"]["containers"].as_array().into_iter().flatten();
        containers.find_map(|container| self.of_images.get(container["image"].as_str()?))
    }
}
