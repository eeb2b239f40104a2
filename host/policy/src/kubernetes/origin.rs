//! Who wrote what an API server would refuse: the user, at a path of the object, or whoever owns the settings or the
//! policy.
//!
//! Of a variable the mapping says where it comes from. Of anything else the host sees only that the same value stands in
//! the object, or in the settings, below the same names.

use serde_json::{Value, json};

use super::{Checks, Finding, check};
use crate::{
    contract::{EnvVar, Violation},
    failure::Failure,
    guard::{Breach, Rule, Step, Stop, of_the_user, written},
    settings::{Effective, Origin, Path},
};

/// What a plan was made of.
pub(crate) struct Origins<'a> {
    /// The object as the user wrote it.
    pub(crate) object: &'a Value,
    /// The mapping that the manifests carry.
    pub(crate) env: &'a [EnvVar],
    /// The settings of each layer, by the name of its policy.
    pub(crate) layers: &'a [(&'a str, &'a Effective)],
}

/// Lets manifests pass that an API server would take. Otherwise the user is told what in the object is wrong; if nothing in
/// it is, the plan is the policy's failure.
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
        // What the user can mend comes first.
        (false, _) => Err(Stop::User(violations)),
        (true, false) => Err(Stop::Policy(Failure::Guard(breaches))),
    }
}

/// Whose word a value is that no user wrote into the spec.
enum Given {
    /// This annotation of the object.
    Annotation(String),
    /// This setting, for a person.
    Setting(String),
}

impl Origins<'_> {
    /// The path in the object of what stands in a manifest; of something that is missing, where it would be.
    fn in_object(&self, manifest: &Value, path: &[Step], value: &Value) -> Option<String> {
        let variable = self.variable(manifest, path);
        // An item of a list in the object, which the mapping tells exactly.
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

    /// Where the variable comes from that a path leads into, and the rest of the path.
    fn variable<'p>(&self, manifest: &Value, path: &'p [Step]) -> Option<(&str, &'p [Step])> {
        let env = path.iter().position(|step| *step == Step::Name("env".to_owned()))?;
        let (above, rest) = (&path[..env], path.get(env + 2..)?);
        let container = at(manifest, above)["name"].as_str()?;
        let name = at(manifest, path.get(..env + 2)?)["name"].as_str().unwrap_or_default();
        let is_it = |variable: &&EnvVar| variable.container == container && variable.name == name;
        Some((self.env.iter().find(is_it)?.origin.as_str(), rest))
    }

    /// The setting that has the same value below the same names, and who gave it.
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

fn name_of(step: &Step) -> Option<&str> {
    if let Step::Name(name) = step { Some(name) } else { None }
}

/// A path in words, with further steps.
fn joined(path: &str, rest: &[Step]) -> String {
    let rest = written(rest);
    if rest.is_empty() { path.to_owned() } else { format!("{path}.{rest}") }
}

/// What stands at a path; null if nothing does.
fn at<'a>(value: &'a Value, path: &[Step]) -> &'a Value {
    path.iter().fold(value, |value, step| match step {
        Step::Name(name) => &value[name],
        Step::Index(index) => &value[index],
    })
}
