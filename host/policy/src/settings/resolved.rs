//! Caches the results of the last settings resolutions of a policy.
//!
//! The host resolves the same layers many times: for each claim of a policy in each place, and for each sample at the
//! gate.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use super::{Effective, Layer, Schema, SettingsErrors};

/// The maximum number of results in the cache. Usually, only a few namespaces have their own settings for a policy.
const KEPT: usize = 4;

type Answer = Result<Arc<Effective>, SettingsErrors>;

/// The last results, the oldest first.
#[derive(Default)]
pub(crate) struct Resolved(Mutex<VecDeque<(Vec<Layer>, Answer)>>);

impl Resolved {
    /// Returns a policy's settings. Resolves the layers if the cache has no result for equal layers.
    pub(crate) fn of(&self, schema: &Schema, policy: &str, layers: &[Layer]) -> Answer {
        let layers = || layers.iter().filter(|layer| layer.concerns(policy));
        let known = |(of, _): &&(Vec<Layer>, Answer)| of.iter().eq(layers());
        if let Some((_, answer)) = self.entries().iter().find(known) {
            return answer.clone();
        }
        let layers: Vec<Layer> = layers().cloned().collect();
        let answer = schema.resolve(policy, &layers).map(Arc::new);
        let mut entries = self.entries();
        while entries.len() >= KEPT {
            entries.pop_front();
        }
        entries.push_back((layers, answer.clone()));
        answer
    }

    fn entries(&self) -> std::sync::MutexGuard<'_, VecDeque<(Vec<Layer>, Answer)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::settings::Origin;

    #[test]
    fn equal_layers_are_resolved_once() {
        let schema = json!({"type": "object", "additionalProperties": false, "properties": {"n": {"type": "integer"}}});
        let schema = Schema::parse(&schema.to_string()).unwrap();
        let layers = |n: i32, other: &str| {
            let of = |policy: &str| Layer::tree(Origin::CommandLine, policy, json!({"n": n}));
            [of("kite"), of(other)]
        };
        let resolved = Resolved::default();
        let of = |layers: &[Layer]| resolved.of(&schema, "kite", layers).unwrap();
        let first = of(&layers(1, "boat"));
        assert!(Arc::ptr_eq(&first, &of(&layers(1, "boat"))));
        assert!(Arc::ptr_eq(&first, &of(&layers(1, "ship"))), "layers of other policies change nothing");
        assert_eq!(of(&layers(2, "boat")).tree(), &json!({"n": 2}));
        assert!(Arc::ptr_eq(&first, &of(&layers(1, "boat"))));
        for n in 2..10 {
            of(&layers(n, "boat"));
        }
        assert!(!Arc::ptr_eq(&first, &of(&layers(1, "boat"))), "only the last results are kept");
        let wrong = [Layer::tree(Origin::CommandLine, "kite", json!({"m": 1}))];
        assert_eq!(resolved.of(&schema, "kite", &wrong), resolved.of(&schema, "kite", &wrong));
    }
}
