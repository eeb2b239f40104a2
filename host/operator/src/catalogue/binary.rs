//! What answers when nobody installed anything: the policies of the binary, under the settings of the process.

use std::ffi::OsString;

use kaos_policy::{
    contract::Cluster,
    engine::EngineError,
    settings::{Layer, Origin, SettingsErrors},
};

use super::Catalogue;
use crate::policies::{Loader, PolicyError};

/// Why there is no catalogue.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    /// No policy can run here.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A policy of the binary is not in order.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The settings do not fit.
    #[error(transparent)]
    Settings(#[from] SettingsErrors),
}

impl Catalogue {
    /// The policies of the binary. Their samples are tried with the facts of this cluster.
    pub fn embedded(cluster: Cluster, layers: &[Layer]) -> Result<Self, CatalogueError> {
        Ok(Self::new(&Loader::new(cluster)?.embedded()?, layers)?)
    }
}

/// Environment variables as a layer of settings. What is no text feeds no setting.
pub fn environment(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Layer {
    let text = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    Layer::env(Origin::Environment, variables.into_iter().filter_map(text))
}
