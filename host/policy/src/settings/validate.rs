//! Errors of the JSON Schema validator in terms of settings, layers and remedies.

use jsonschema::error::ValidationErrorKind;

use super::{Effective, Path, Schema, SettingsError};
use crate::{
    cut::{VALUE, cut},
    digest::canonical,
};

/// Errors told at once; the rest shows when these are mended.
const TOLD: usize = 20;

impl Schema {
    pub(super) fn violations(&self, settings: &Effective) -> Vec<SettingsError> {
        self.validator.iter_errors(&settings.tree).flat_map(|error| self.explain(&error, settings)).take(TOLD).collect()
    }

    fn explain(&self, error: &jsonschema::ValidationError<'_>, settings: &Effective) -> Vec<SettingsError> {
        let path = from_pointer(error.instance_path().as_str());
        if let ValidationErrorKind::AdditionalProperties { unexpected } = error.kind() {
            let known = self.names(&path).join(", ");
            return unexpected
                .iter()
                .map(|name| {
                    let path = path.then(name);
                    let message = format!("does not exist: remove it, or use one of {known}");
                    SettingsError { policy: String::new(), source: settings.source(&path).cloned(), path, message }
                })
                .collect();
        }
        let instance = canonical(error.instance());
        let shown = cut(&instance, VALUE);
        let reason = error.masked_with("it");
        let remedy = match self.default_at(&path) {
            Some(default) => format!("correct it, or remove it to get the default {default}"),
            None => "correct it".to_owned(),
        };
        let message = format!("is {shown}, but {reason}: {remedy}");
        vec![SettingsError { policy: String::new(), source: settings.source(&path).cloned(), path, message }]
    }

    fn default_at(&self, path: &Path) -> Option<String> {
        let value = path.names().iter().try_fold(self.defaults(), |value, name| value.get(name))?;
        Some(cut(&canonical(value), VALUE).into_owned())
    }
}

fn from_pointer(pointer: &str) -> Path {
    pointer.split('/').skip(1).map(|name| name.replace("~1", "/").replace("~0", "~")).collect()
}
