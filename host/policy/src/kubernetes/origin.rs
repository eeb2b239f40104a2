//! Finds the origin of a value that an API server would refuse: a path in the user's object, a setting, or the policy
//! itself. The plan declares the origins.

use serde_json::Value;

use super::{Checks, check};
use crate::{
    contract::Violation,
    failure::Failure,
    guard::{Breach, Rule, Stop},
    origins::{Author, OriginPlace, Origins, PathStep, nearest, setting, written},
    settings::Origin,
};

/// Accepts manifests that an API server would accept. If the server would refuse values from the user's object, returns
/// a refusal with these values. If the server would refuse only other values, returns a failure of the policy.
pub(crate) fn judge(manifests: &[Value], checks: Checks, origins: &Origins<'_>) -> Result<(), Stop> {
    let (mut violations, mut breaches) = (Vec::new(), Vec::new());
    for (i, manifest) in manifests.iter().enumerate() {
        for finding in check(manifest, checks) {
            let what = |field: &str| manifest.pointer(field).and_then(Value::as_str).unwrap_or_default();
            let (kind, name) = (what("/kind"), what("/metadata/name"));
            let path = format!("manifests[{i}] ({kind} {name}) {}", written(&finding.path));
            let computed = || origins.of_variable(manifest, &finding.path).map(Given::Object);
            match given(origins, (i, manifest), &finding.path).or_else(computed) {
                Some(Given::Object(path)) => violations.push(Violation { path, message: finding.message }),
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

/// The origin of a value that comes from the user's object or from a setting.
enum Given {
    /// A path in the object.
    Object(String),
    /// A setting, described for people.
    Setting(String),
}

/// Returns the origin of a value. For a missing value, returns the path or the setting that would contain the value.
fn given(origins: &Origins<'_>, (index, manifest): (usize, &Value), path: &[PathStep]) -> Option<Given> {
    let value = path.iter().try_fold(manifest, |value, step| step.of(value)).filter(|value| !value.is_null());
    let (value, path, missing) = match (value, path.split_last()) {
        (Some(value), _) => (value, path, None),
        (None, Some((last, above))) => {
            (above.iter().try_fold(manifest, |value, step| step.of(value))?, above, Some(last.clone()))
        }
        (None, None) => return None,
    };
    let places = origins.places(index, manifest, path);
    let users = places.iter().filter(|place| place.is_of_the_spec());
    let settings = places.iter().filter(|place| matches!(place.author, Author::Setting(..)));
    let place = nearest(users, value).or_else(|| nearest(settings, value))?;
    let at = [place.path.as_slice(), missing.as_slice()].concat();
    Some(match place {
        OriginPlace { author: Author::Setting(policy, source), .. } => match (&source.origin, &source.via) {
            (Origin::Annotation, Some(key)) => Given::Object(format!("metadata.annotations[\"{key}\"]")),
            _ => Given::Setting(format!("the setting {policy}.{} ({source})", setting(&at))),
        },
        _ => Given::Object(written(&at)),
    })
}
