//! The flag that chooses a preset.

use clap::Args;
use kaos_policy::settings::{Layer, Origin};

use crate::presets::{Preset, PresetError};

/// The `--compatibility` flag.
#[derive(Debug, Clone, Args)]
pub(super) struct Compatibility {
    /// Preset with the defaults for all settings that the user does not set: kaos-0.1, kaos-0.8, or a file. The chart
    /// and install.yaml start the operator with kaos-0.8. Without a preset, the policies' own defaults apply, which
    /// equal kaos-0.1. So if you change a default in a policy, no preset hides the change
    #[arg(long, value_name = "PRESET|FILE")]
    compatibility: Option<String>,
}

impl Compatibility {
    /// Creates the flag from the name of a preset.
    pub(super) fn of(compatibility: Option<String>) -> Self {
        Self { compatibility }
    }

    /// Returns the preset that the user named, or `None` without the flag.
    pub(super) fn name(&self) -> Option<&str> {
        self.compatibility.as_deref()
    }

    /// Replaces the preset in `layers` by the preset that the user named. Without the flag, returns the layers
    /// unchanged.
    pub(super) fn over(&self, mut layers: Vec<Layer>) -> Result<Vec<Layer>, PresetError> {
        if let Some(name) = &self.compatibility {
            layers.retain(|layer| !matches!(layer.origin, Origin::Preset(_)));
            layers.extend(Preset::named(name)?.layers());
        }
        Ok(layers)
    }
}
