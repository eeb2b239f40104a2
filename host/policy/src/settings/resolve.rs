//! Resolves layers to effective settings. Starts with the defaults, merges the layers from weak to strong, merges the
//! annotations, and validates the result.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Content, Effective, Layer, Origin, Path, Schema, SettingsError, SettingsErrors, Source, merge};

/// The prefix of an annotation that overrides a setting. The path of the setting follows the prefix.
pub const ANNOTATION_PREFIX: &str = "settings.kaos.tools/";
/// The number of bytes of settings that the host can merge and convert to text in the time of one validation step.
const WRITTEN: usize = 8;

impl Schema {
    /// Returns a policy's effective settings. Starts with the schema's defaults, and merges each layer for this policy
    /// over the defaults. Sorts the layers by the precedence of their origins.
    pub fn resolve(&self, policy: &str, layers: &[Layer]) -> Result<Effective, SettingsErrors> {
        let mut merged = merge::Merged::new(self.defaults());
        let mut errors = Vec::new();
        let mut ordered: Vec<&Layer> = layers.iter().filter(|layer| layer.concerns(policy)).collect();
        ordered.sort_by_key(|layer| layer.origin.rank());
        for layer in ordered {
            match &layer.content {
                // A preset contains all settings of one version of KAOS. The policy may lack some of these settings, so
                // drop unknown settings.
                Content::Tree(tree) if matches!(layer.origin, Origin::Preset(_)) => {
                    let known = self.known(tree, &Path::default());
                    merged.tree(&known, &Source { origin: layer.origin.clone(), via: None });
                }
                Content::Tree(tree) if matches!(layer.origin, Origin::NamespacePolicy(_)) => {
                    let source = Source { origin: layer.origin.clone(), via: None };
                    errors.extend(self.owned(tree, &Path::default()).map(|path| SettingsError {
                        policy: String::new(),
                        path,
                        source: Some(source.clone()),
                        message: "must not be set for a namespace: ask the operator's owner to set it".to_owned(),
                    }));
                    merged.tree(tree, &source);
                }
                Content::Tree(tree) => merged.tree(tree, &Source { origin: layer.origin.clone(), via: None }),
                Content::Env(variables) => self.feed(&mut merged, &layer.origin, variables, &mut errors),
            }
        }
        self.finish(policy, merged, errors).0
    }

    /// Merges an object's annotations over the settings. Ignores annotations for settings that this schema does not
    /// have: such an annotation is for the policy of another layer. Also returns the number of steps of this work.
    pub(crate) fn annotated(
        &self,
        policy: &str,
        settings: &Effective,
        annotations: &BTreeMap<&str, &str>,
    ) -> (Result<Effective, SettingsErrors>, usize) {
        let mut merged = merge::Merged::from(settings.clone());
        let mut errors = Vec::new();
        for (key, value) in annotations {
            let Some(path) = key.strip_prefix(ANNOTATION_PREFIX).map(Path::parse) else { continue };
            if !self.has(&path) {
                continue;
            }
            let source = Source { origin: Origin::Annotation, via: Some((*key).to_owned()) };
            if !self.annotatable(&path) {
                let message = "must not be set by an annotation: ask the owner of the policy's settings".to_owned();
                errors.push(SettingsError { policy: policy.to_owned(), path, source: Some(source), message });
                continue;
            }
            match self.convert(&path, value) {
                Ok(value) => merged.leaf(&path, value, &source),
                Err(message) => {
                    errors.push(SettingsError { policy: policy.to_owned(), path, source: Some(source), message });
                }
            }
        }
        self.finish(policy, merged, errors)
    }

    fn feed(
        &self,
        merged: &mut merge::Merged,
        origin: &Origin,
        variables: &BTreeMap<String, String>,
        errors: &mut Vec<SettingsError>,
    ) {
        for (variable, path) in self.variables() {
            let Some(text) = variables.get(variable).filter(|text| !text.is_empty()) else { continue };
            let source = Source { origin: origin.clone(), via: Some(variable.clone()) };
            match self.convert_variable(path, text) {
                Ok(value) => merged.leaf(path, value, &source),
                Err(message) => errors.push(SettingsError {
                    policy: String::new(),
                    path: path.clone(),
                    source: Some(source),
                    message,
                }),
            }
        }
    }

    /// Returns the first setting in a tree that only the operator's owner is allowed to set. `None` if the tree
    /// contains no such setting.
    fn owned(&self, tree: &Value, at: &Path) -> Option<Path> {
        if self.is_owners(at) {
            return Some(at.clone());
        }
        // A setting without named fields, such as a map, contains no further settings.
        let fields = tree.as_object().filter(|_| !self.names(at).is_empty())?;
        fields.iter().find_map(|(name, value)| self.owned(value, &at.then(name)))
    }

    /// Returns those settings of the tree that this schema defines.
    fn known(&self, tree: &Value, at: &Path) -> Value {
        // A setting without named fields, such as a map, accepts any content.
        let Some(fields) = tree.as_object().filter(|_| !self.names(at).is_empty()) else { return tree.clone() };
        let known = fields.iter().filter_map(|(name, value)| {
            let path = at.then(name);
            self.has(&path).then(|| (name.clone(), self.known(value, &path)))
        });
        Value::Object(known.collect())
    }

    fn finish(
        &self,
        policy: &str,
        merged: merge::Merged,
        mut errors: Vec<SettingsError>,
    ) -> (Result<Effective, SettingsErrors>, usize) {
        let settings = merged.finish();
        let (violations, steps) = self.violations(&settings);
        let steps = steps.saturating_add(settings.text.len() / WRITTEN);
        errors.extend(violations);
        if errors.is_empty() {
            return (Ok(settings), steps);
        }
        for error in &mut errors {
            policy.clone_into(&mut error.policy);
        }
        (Err(SettingsErrors(errors)), steps)
    }
}
