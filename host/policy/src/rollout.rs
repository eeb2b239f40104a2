//! `rollout` in `policy.yaml`: the limits for the effect of a package, and the steps in which the package starts to
//! serve. The operator compares the effect with the limits before the package serves.

mod increase;
mod share;
mod steps;

use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, de};

pub use self::{
    increase::Increase,
    share::Share,
    steps::{RolloutSteps, RolloutUnit, Wait},
};
use crate::{cut::cut, yaml};

/// The maximum number of paths in `frozenPaths`.
const MAX_FROZEN_PATHS: usize = 50;
/// The maximum length of a path in `frozenPaths`, in bytes.
const MAX_FROZEN_PATH: usize = 300;

/// How a package starts to serve.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Rollout {
    /// Whether the package serves at once or in steps, or only shows its effect. `None` for the operator's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<RolloutMode>,
    /// The total number of objects that have moved by the end of each step: numbers, or percentages of all objects.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "steps::shares")]
    pub steps: Option<Vec<Share>>,
    /// The minimum duration of a step. The shortest possible value is 30 seconds.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "steps::pause")]
    pub pause: Option<Wait>,
    /// How long the operator waits until a moved object is ready again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patience: Option<Wait>,
    /// Whether a step moves single objects or namespaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<RolloutUnit>,
    /// The maximum number of pods of moved objects that are not ready at the same time. A percentage refers to the pods
    /// of all objects that the package concerns.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "steps::max_unavailable")]
    pub max_unavailable: Option<Share>,
    /// The limits for the effect.
    #[serde(skip_serializing_if = "RolloutGate::is_open")]
    pub gate: RolloutGate,
}

/// Whether a package serves at once, in steps, or only after an approval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RolloutMode {
    /// The package serves as soon as it has passed the gate.
    #[default]
    Now,
    /// The package serves more objects in each step.
    Staged,
    /// The operator computes the effect of the package. If the package would replace pods, it serves in steps.
    /// Otherwise it serves at once.
    Auto,
    /// The operator shows the effect of the package. The package serves only after an approval.
    Shadow,
}

/// The limits for the effect of a package. The operator holds a package that exceeds a limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct RolloutGate {
    /// The maximum number of objects that change: a number, or a percentage of the objects that the package concerns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_objects_changed: Option<Share>,
    /// The maximum number of pods that Kubernetes replaces or deletes: a number, or a percentage of the pods of the
    /// objects that the package concerns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_pods_replaced: Option<Share>,
    /// The maximum increase of the fuel of a pass. The limit applies to the median and to the maximum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_fuel_increase: Option<Increase>,
    /// Whether the package must not refuse an object that the policies accept now.
    #[serde(skip_serializing_if = "is_false")]
    pub none_refused: bool,
    /// Whether the package must not fail on an object on which the policies do not fail now.
    #[serde(skip_serializing_if = "is_false")]
    pub none_failed: bool,
    /// Paths of fields in the manifests of children. The values of these fields must not change. A path covers all
    /// fields below it. If a path does not name an item of a list, the path covers all items of this list.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "frozen_paths")]
    pub frozen_paths: Vec<String>,
    /// Whether a person has to approve the package.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
}

/// The approval of a package by a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Approval {
    /// The package serves only after an approval.
    Required,
}

impl Rollout {
    /// Returns whether no field of `rollout` is set.
    pub fn is_unset(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether no effect can hold the package back: the package has no limits, and its mode is not `Shadow`.
    pub fn is_open(&self) -> bool {
        self.mode != Some(RolloutMode::Shadow) && self.gate.is_open()
    }

    /// Returns the mode of the package. The mode of the package wins over the operator's `defaults`.
    pub fn mode(&self, defaults: &Self) -> RolloutMode {
        self.mode.or(defaults.mode).unwrap_or_default()
    }

    /// Returns the steps of the package, or `None` if the package serves at once. The fields of the package win over
    /// the operator's `defaults`. `replaces_pods` says whether the package would replace pods.
    pub fn steps(&self, defaults: &Self, replaces_pods: impl FnOnce() -> bool) -> Option<RolloutSteps> {
        match self.mode(defaults) {
            RolloutMode::Staged => {}
            RolloutMode::Auto if replaces_pods() => {}
            RolloutMode::Auto | RolloutMode::Now | RolloutMode::Shadow => return None,
        }
        let built_in = RolloutSteps::default();
        Some(RolloutSteps {
            shares: self.steps.clone().or_else(|| defaults.steps.clone()).unwrap_or(built_in.shares),
            pause: self.pause.or(defaults.pause).unwrap_or(built_in.pause),
            patience: self.patience.or(defaults.patience).unwrap_or(built_in.patience),
            by: self.by.or(defaults.by).unwrap_or(built_in.by),
            max_unavailable: self.max_unavailable.or(defaults.max_unavailable).unwrap_or(built_in.max_unavailable),
        })
    }

    /// Parses the operator's defaults for packages. Returns an error if the text contains limits or the mode `shadow`.
    /// Limits are not defaults: every package must be within them.
    pub fn defaults(text: &str) -> Result<Self, String> {
        let defaults: Self = text.parse()?;
        if defaults.is_open() {
            Ok(defaults)
        } else {
            Err("the defaults must contain neither gate nor mode shadow: set limits with --rollout-gate".to_owned())
        }
    }
}

impl FromStr for Rollout {
    type Err = String;

    /// Parses a rollout that is written as in `policy.yaml`. An empty text sets nothing.
    fn from_str(text: &str) -> Result<Self, String> {
        parse(text)
    }
}

impl RolloutGate {
    /// Returns whether the gate has no limits.
    pub fn is_open(&self) -> bool {
        *self == Self::default()
    }
}

impl FromStr for RolloutGate {
    type Err = String;

    /// Parses a gate that is written as in `policy.yaml`. An empty text is a gate without limits.
    fn from_str(text: &str) -> Result<Self, String> {
        parse(text)
    }
}

fn parse<T: Default + de::DeserializeOwned>(text: &str) -> Result<T, String> {
    if text.trim().is_empty() {
        return Ok(T::default());
    }
    serde_saphyr::from_str(text).map_err(|error| yaml::told(error.without_snippet(), 0))
}

/// Reads paths. Refuses a path that can never match a field, and an empty path, which would match all fields.
fn frozen_paths<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let paths = Vec::<String>::deserialize(deserializer)?;
    if paths.len() > MAX_FROZEN_PATHS {
        return Err(de::Error::custom(format!("frozenPaths: more than {MAX_FROZEN_PATHS} paths")));
    }
    match paths.iter().find(|path| path.len() > MAX_FROZEN_PATH || !is_path(path)) {
        Some(path) => Err(de::Error::custom(format!(
            "frozenPaths: {:?} is not valid: write a path such as spec.template.spec.containers[NAME].image, with at \
             most {MAX_FROZEN_PATH} bytes",
            cut(path, 60)
        ))),
        None => Ok(paths),
    }
}

/// Returns whether a text is a path: keys with dots between them, and brackets after a key for an item or for a quoted
/// key.
fn is_path(path: &str) -> bool {
    let (mut rest, mut after_key) = (path, false);
    loop {
        if let Some(inner) = rest.strip_prefix('[').filter(|_| after_key) {
            let Some(end) = end_of_bracket(inner) else { return false };
            rest = &inner[end..];
        } else {
            let key = if after_key { rest.strip_prefix('.') } else { Some(rest) };
            let Some(key) = key else { return false };
            let end = key.find(['.', '[']).unwrap_or(key.len());
            if end == 0 || key[..end].contains(|c: char| c.is_whitespace() || c == ']') {
                return false;
            }
            (rest, after_key) = (&key[end..], true);
        }
        if rest.is_empty() {
            return true;
        }
    }
}

/// Returns the length of the text in brackets, including the closing bracket. Returns `None` if the brackets are empty
/// or not closed.
fn end_of_bracket(inner: &str) -> Option<usize> {
    if let Some(quoted) = inner.strip_prefix('"') {
        let end = quoted.find("\"]").filter(|end| *end > 0)?;
        return Some(end + 3);
    }
    inner.find(']').filter(|end| *end > 0).map(|end| end + 1)
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde requires this signature")]
fn is_false(value: &bool) -> bool {
    !*value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::{PolicyFile, PolicyFileError};

    #[test]
    fn a_policy_file_contains_the_limits_of_the_rollout() -> Result<(), PolicyFileError> {
        let file = PolicyFile::parse(concat!(
            "rollout:\n  mode: shadow\n  gate: {maxObjectsChanged: 10, maxPodsReplaced: 5%, noneRefused: true,\n",
            "    frozenPaths: [spec.selector], approval: required}\n",
        ))?;
        let RolloutGate { max_objects_changed, max_pods_replaced, none_refused, approval, .. } = file.rollout.gate;
        assert_eq!(file.rollout.mode, Some(RolloutMode::Shadow));
        assert_eq!((max_objects_changed, max_pods_replaced), (Some(Share::Number(10)), Some(Share::Percent(5))));
        assert!(none_refused && approval == Some(Approval::Required));
        Ok(())
    }

    #[test]
    fn a_file_without_a_rollout_has_the_same_text_as_before() -> Result<(), serde_json::Error> {
        let text = serde_json::to_value(PolicyFile::default())?;
        assert!(text.get("rollout").is_none(), "the digests of existing packages stay: {text}");
        Ok(())
    }

    #[test]
    fn a_gate_is_read_from_a_line_and_a_misspelt_limit_is_an_error() {
        let gate: RolloutGate = "{maxPodsReplaced: 10%, noneRefused: true}".parse().unwrap();
        assert_eq!((gate.max_pods_replaced, gate.none_refused), (Some(Share::Percent(10)), true));
        assert_eq!("".parse(), Ok(RolloutGate::default()));
        let refused = "{maxPods: 10%}".parse::<RolloutGate>().unwrap_err();
        assert!(refused.contains("maxPods"), "{refused}");
    }

    #[test]
    fn a_frozen_path_that_matches_nothing_or_everything_is_an_error() {
        let gate = |path: &str| format!("{{frozenPaths: [{}]}}", serde_json::json!(path)).parse::<RolloutGate>();
        for path in ["spec", "spec.selector", "spec.containers[web].env", "metadata.labels[\"a.b/c\"].x", "a[0][1]"] {
            assert!(gate(path).is_ok(), "{path}");
        }
        for path in ["", " ", ".spec", "spec.", "spec..a", "[a]", "spec[", "spec[]", "spec]", "spec a", "spec[a]b"] {
            assert!(gate(path).is_err(), "{path}");
        }
        assert!(gate(&"x".repeat(301)).is_err());
        let many = format!("{{frozenPaths: [{}]}}", vec!["spec"; 51].join(", "));
        assert!(many.parse::<RolloutGate>().unwrap_err().contains("more than 50 paths"));
    }

    #[test]
    fn a_share_is_a_number_or_a_percentage_and_is_written_as_it_was_read() -> Result<(), serde_json::Error> {
        for (text, share) in [("7", Share::Number(7)), (r#""7""#, Share::Number(7)), (r#""100%""#, Share::Percent(100))]
        {
            assert_eq!(serde_json::from_str::<Share>(text)?, share);
            assert_eq!(serde_json::from_str::<Share>(&serde_json::to_string(&share)?)?, share);
        }
        for wrong in ["-1", r#""101%""#, r#""few""#, "1.5", "true"] {
            assert!(serde_json::from_str::<Share>(wrong).is_err(), "{wrong}");
        }
        assert_eq!((Share::Percent(5).of(30), Share::Percent(1).of(99), Share::Number(4).of(0)), (1, 0, 4));
        Ok(())
    }
}
