//! Finds the origin of a value that an API server would refuse: a path in the user's object, a setting, or the policy
//! itself.
//!
//! For a variable, the plan's mapping contains the origin. For any other value, the host searches the object and the
//! settings for the same value below the same names.

use serde_json::{Value, json};

use super::{Checks, Finding, check};
use crate::{
    contract::{EnvVar, Violation},
    failure::Failure,
    guard::{Breach, PathStep, Rule, Stop, of_the_user, written},
    settings::{Effective, Origin, Path},
};

/// The sources from which a value of a plan can come.
pub(crate) struct Origins<'a> {
    /// The object in the form that the user wrote.
    pub(crate) object: &'a Value,
    /// The plan's mapping of variables.
    pub(crate) env: &'a [EnvVar],
    /// The effective settings of each layer of the stack, with the name of the layer's policy.
    pub(crate) layers: &'a [(&'a str, &'a Effective)],
}

/// Accepts manifests that an API server would accept. If an API server would refuse a value that comes from the user's
/// object, returns a refusal with these values. If no refused value comes from the user's object, returns a failure of
/// the policy.
pub(crate) fn judge(manifests: &[Value], checks: Checks, origins: &Origins<'_>) -> Result<(), Stop> {
    let (mut violations, mut breaches) = (Vec::new(), Vec::new());
    for (i, manifest) in manifests.iter().enumerate() {
        for finding in check(manifest, checks) {
            let value = at(manifest, &finding.path);
            if let Some(path) = origins.in_object(manifest, &finding.path, value) {
                violations.push(Violation { path, message: finding.message });
                continue;
            }
            let what = |field: &str| manifest.pointer(field).and_then(Value::as_str).unwrap_or_default();
            let (kind, name) = (what("/kind"), what("/metadata/name"));
            let path = format!("manifests[{i}] ({kind} {name}) {}", written(&finding.path));
            match origins.in_settings(&finding, value) {
                Some(Given::Annotation(key)) => {
                    violations
                        .push(Violation { path: format!("metadata.annotations[\"{key}\"]"), message: finding.message });
                }
                Some(Given::Setting(given)) => {
                    let message = format!("{}; it comes from {given}", finding.message);
                    breaches.push(Breach { rule: Rule::FitsKind, path, message });
                }
                None => breaches.push(Breach { rule: Rule::FitsKind, path, message: finding.message }),
            }
        }
    }
    violations.dedup();
    match (violations.is_empty(), breaches.is_empty()) {
        (true, true) => Ok(()),
        // First report the problems that the user can correct.
        (false, _) => Err(Stop::User(violations)),
        (true, false) => Err(Stop::Policy(Failure::Guard(breaches))),
    }
}

/// The origin of a value that does not come from the object's spec.
enum Given {
    /// The annotation with this key.
    Annotation(String),
    /// A setting, described for people.
    Setting(String),
}

impl Origins<'_> {
    /// Finds a manifest's value in the object, and returns the value's path in the object. For a missing value, returns
    /// the path where the value would be.
    fn in_object(&self, manifest: &Value, path: &[PathStep], value: &Value) -> Option<String> {
        let variable = self.variable(manifest, path);
        // A variable can come from a list item in the object. The mapping contains the exact path of this item.
        if let Some((origin, rest)) = variable
            && origin.starts_with("spec.")
            && origin.ends_with(']')
        {
            return Some(joined(origin, rest));
        }
        let found = if value.is_null() {
            let (last, above) = path.split_last()?;
            let found = of_the_user(self.object, above, at(manifest, above));
            found.map(|above| [above, vec![last.clone()]].concat())
        } else {
            of_the_user(self.object, path, value)
        };
        let told = found.map(|path| written(&path));
        told.or_else(|| variable.filter(|(origin, _)| origin.starts_with("spec.")).map(|(origin, _)| origin.to_owned()))
    }

    /// Returns the origin of the variable at the beginning of a path, and the rest of the path. `None` if the path does
    /// not lead to a variable of the mapping.
    fn variable<'p>(&self, manifest: &Value, path: &'p [PathStep]) -> Option<(&str, &'p [PathStep])> {
        let env = path.iter().position(|step| *step == PathStep::Name("env".to_owned()))?;
        let (above, rest) = (&path[..env], path.get(env + 2..)?);
        let container = at(manifest, above)["name"].as_str()?;
        let name = at(manifest, path.get(..env + 2)?)["name"].as_str().unwrap_or_default();
        let is_it = |variable: &&EnvVar| variable.container == container && variable.name == name;
        Some((self.env.iter().find(is_it)?.origin.as_str(), rest))
    }

    /// Returns the setting or annotation that contains the same value below the same names, or `None` if no setting
    /// does.
    fn in_settings(&self, Finding { path, .. }: &Finding, value: &Value) -> Option<Given> {
        self.layers.iter().find_map(|(policy, settings)| {
            let tree = json!({"spec": settings.tree()});
            let steps = of_the_user(&tree, path, value)?;
            let names: Vec<&str> = steps.iter().skip(1).map_while(name_of).collect();
            let setting = names.iter().fold(Path::default(), |path, name| path.then(name));
            let source = settings.source(&setting)?;
            Some(match (&source.origin, &source.via) {
                (Origin::Annotation, Some(key)) => Given::Annotation(key.clone()),
                _ => Given::Setting(format!("the setting {policy}.{setting} ({source})")),
            })
        })
    }
}

fn name_of(step: &PathStep) -> Option<&str> {
    if let PathStep::Name(name) = step { Some(name) } else { None }
}

/// Appends steps to a path that is already a text.
fn joined(path: &str, rest: &[PathStep]) -> String {
    let rest = written(rest);
    if rest.is_empty() { path.to_owned() } else { format!("{path}.{rest}") }
}

/// Returns the value at a path; null if the path does not exist.
fn at<'a>(value: &'a Value, path: &[PathStep]) -> &'a Value {
    path.iter().fold(value, |value, step| match step {
        PathStep::Name(name) => &value[name],
        PathStep::Index(index) => &value[index],
    })
}
