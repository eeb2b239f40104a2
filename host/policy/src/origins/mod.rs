//! The origins that a plan declares: for each value of a manifest, the places from which it may come.
//!
//! A policy declares an origin, and the host looks up the value there. The host never searches for values: a value
//! without a declared origin is the policy's own value. A declared origin may be wrong, so the callers compare the
//! value in the declared place with the value in the manifest.

mod declared;
mod idle;
mod leaves;
mod lists;
mod lookup;
mod path;
mod source;

use std::{
    cell::Cell,
    collections::{BTreeMap, HashMap},
};

use serde_json::Value;

pub(crate) use declared::may_have;
pub(crate) use idle::{Coverage, coverage};
pub(crate) use leaves::leaves;
pub(crate) use lookup::{Author, OriginPlace, is_equal, nearest, setting};
pub(crate) use path::{PathStep, Selector, shown, steps, written};
pub(crate) use source::Source;

use crate::{
    contract::{EnvVar, Origin},
    limits::Limits,
    rule::{Breach, Rule},
    settings::Effective,
};
use lists::Lists;

/// The maximum number of steps for looking up the values of one plan. A step takes less than a microsecond.
const STEPS: usize = 2_000_000;

/// The possible sources of the values in a manifest: the object, the settings and the found objects.
#[derive(Clone, Copy)]
pub(crate) struct Places<'a> {
    /// The object in the form that the user wrote.
    pub(crate) object: &'a Value,
    /// The effective settings of each layer, the lowest layer first, with the name of the layer's policy.
    pub(crate) layers: &'a [(&'a str, &'a Effective)],
    /// The number of the layer that returned the plan. 0 is the policy, and 1 is the lowest overlay.
    pub(crate) layer: usize,
    /// The numbers of the overlays that set variables, by container and name. `None` if the host explains a plan, or
    /// checks the plan of an overlay.
    pub(crate) mapped: Option<&'a BTreeMap<(String, String), usize>>,
    /// For each layer, the found objects by the ids of needs. The host uses them only to explain a plan. The guard does
    /// not use them: a value in a found object is never a reason to allow a value.
    pub(crate) found: &'a [BTreeMap<String, Vec<Value>>],
}

/// An origin with an invalid path or source.
pub(crate) struct InvalidOrigin<'a> {
    pub(crate) breach: Breach,
    /// The variable with this origin. `None` if the origin belongs to a manifest.
    pub(crate) variable: Option<&'a EnvVar>,
}

/// The origins of one plan.
pub(crate) struct Origins<'a> {
    within: Places<'a>,
    /// The sources by manifest and path, in the order of the plan.
    declared: HashMap<(usize, String), Vec<Source>>,
    /// The origins of variables, by container and name.
    env: HashMap<&'a str, HashMap<&'a str, Source>>,
    lists: Lists<'a>,
    steps: Cell<usize>,
}

impl<'a> Origins<'a> {
    /// Reads the origins of a plan. Also returns each origin that has an invalid path or source.
    pub(crate) fn read(
        origins: &[Origin],
        env: &'a [EnvVar],
        manifests: &[Value],
        limits: &Limits,
        within: Places<'a>,
    ) -> (Self, Vec<InvalidOrigin<'a>>) {
        let mut invalid = Vec::new();
        let mut breach = |rule, path: String, message: String, variable: Option<&'a EnvVar>| {
            invalid.push(InvalidOrigin { breach: Breach { rule, path, message }, variable });
        };
        let mut declared: HashMap<_, Vec<_>> = HashMap::new();
        if origins.len() > limits.origins {
            let message = format!("the plan has {} origins, but the limit is {}", origins.len(), limits.origins);
            breach(Rule::Bounded, "origins".to_owned(), message, None);
        }
        for (i, Origin { manifest, path, from }) in origins.iter().take(limits.origins).enumerate() {
            let index = *manifest as usize;
            let Some(manifest) = manifests.get(index) else {
                let message = format!("the plan has no manifests[{index}]");
                breach(Rule::ValidOrigins, format!("origins[{i}]"), message, None);
                continue;
            };
            let Some(steps) = path::parse(path).filter(|_| path.len() <= source::TEXT) else {
                let message = format!("`{path}` is not a path");
                breach(Rule::ValidOrigins, format!("origins[{i}].path"), message, None);
                continue;
            };
            let Some(source) = Source::parse(from) else {
                breach(Rule::ValidOrigins, format!("origins[{i}].from"), no_source(from), None);
                continue;
            };
            // Ignore the origin if the path names a list item that the manifest does not have.
            if let Some(steps) = path::resolve(&steps, manifest) {
                declared.entry((index, written(&steps))).or_default().push(source);
            }
        }
        let mut variables: HashMap<&str, HashMap<&str, Source>> = HashMap::new();
        for (i, variable) in env.iter().enumerate() {
            let EnvVar { container, name, origin, .. } = variable;
            match Source::parse(origin) {
                Some(source) => drop(variables.entry(container).or_default().insert(name, source)),
                None => breach(Rule::ValidOrigins, format!("env[{i}].origin"), no_source(origin), Some(variable)),
            }
        }
        let origins = Self { within, declared, env: variables, lists: Lists::default(), steps: Cell::new(STEPS) };
        (origins, invalid)
    }

    /// Returns whether the look-ups have used up all steps. After that, every further look-up finds nothing.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.steps.get() == 0
    }

    /// Uses up this number of the remaining steps. Returns whether any steps remain.
    fn spend(&self, steps: usize) -> bool {
        self.steps.set(self.steps.get().saturating_sub(steps));
        !self.is_exhausted()
    }
}

fn no_source(text: &str) -> String {
    format!(
        "`{text}` is not a place: write spec.… or metadata.… for a field of the object, settings.… for a setting, or \
         the id of a need, a space and a path"
    )
}

#[cfg(test)]
mod tests;
