//! Stores the last good settings in a second ConfigMap: the last valid content of the operator's own ConfigMap. If the
//! current content is invalid when a process starts, the process uses the stored content.

use k8s_openapi::api::core::v1::ConfigMap;
use kaos_policy::settings::{Content, Layer};
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use serde_json::json;

use super::{StepError, records::MANAGER};
use crate::{
    catalogue::operator_config,
    config_maps::{FITTED_CONFIG, OPERATOR_CONFIG},
};

/// The description in the second ConfigMap, for users who read this ConfigMap.
const ABOUT: &str = "The last valid content of kaos-operator-config. The operator writes this copy, and uses it while \
    the current content is invalid.";

pub(super) struct LastGoodSettings {
    api: Api<ConfigMap>,
    is_read: bool,
    kept: Option<Layer>,
}

impl LastGoodSettings {
    pub(super) fn new(client: Client, namespace: &str) -> Self {
        Self { api: Api::namespaced(client, namespace), is_read: false, kept: None }
    }

    /// Returns the last good settings. The settings are empty if the operator's own ConfigMap did not exist when the
    /// operator stored the settings. Returns `None` if the operator stored no settings yet. Reads the second ConfigMap
    /// only once, because only the operator writes it.
    pub(super) async fn get(&mut self) -> Result<Option<Layer>, StepError> {
        if !self.is_read {
            let kept = self.api.get_opt(FITTED_CONFIG).await;
            let kept = kept.map_err(|error| StepError::new(format!("read ConfigMap {FITTED_CONFIG}"), &error))?;
            self.kept = kept.as_ref().map(operator_config);
            self.is_read = true;
        }
        Ok(self.kept.clone())
    }

    /// Stores the current content if it differs from the stored content.
    pub(super) async fn keep(&mut self, config: Option<&Layer>) -> Result<(), StepError> {
        let fits = config.cloned().unwrap_or_else(|| operator_config(&ConfigMap::default()));
        if self.get().await?.as_ref() == Some(&fits) {
            return Ok(());
        }
        // The layer of a ConfigMap always contains variables.
        let Content::Env(data) = &fits.content else { return Ok(()) };
        let metadata = json!({
            "name": FITTED_CONFIG,
            "labels": {"app.kubernetes.io/name": "kaos-operator"},
            "annotations": {"kubernetes.io/description": ABOUT},
        });
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data});
        let parameters = PatchParams::apply(MANAGER).force();
        let kept = self.api.patch(FITTED_CONFIG, &parameters, &Patch::Apply(&body)).await;
        let what = || format!("store the last good settings of {OPERATOR_CONFIG} in ConfigMap {FITTED_CONFIG}");
        kept.map_err(|error| StepError::new(what(), &error))?;
        self.kept = Some(fits);
        Ok(())
    }
}
