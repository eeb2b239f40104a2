//! Finds variables that a policy drops. The mapping that a policy gets also contains variables of the user and of other
//! layers, so the policy must return all variables.

use std::collections::BTreeSet;

use serde_json::Value;

use super::beneath::CONTAINER;
use crate::{
    code::World,
    contract::{EnvSource, EnvVar},
    failure::Failure,
    pods,
    policy::Policy,
    render::Rendered,
};

/// The name of the variable that stands for a variable of another layer.
const OTHER: &str = "KAOS_CONFORM";

/// Returns the variables that the policy or the overlay dropped, as `container NAME`. `rendered` is the result of a
/// pass with only this policy, or with only this overlay. This function adds the variable `KAOS_CONFORM`, which stands
/// for a variable of another layer. All calls together can use twice the fuel of one pass.
pub fn dropped_variables(policy: &Policy, rendered: &Rendered) -> Result<Vec<String>, Failure> {
    let mut sandbox = policy.code().open(&policy.limits().doubled())?;
    let is_whole = policy.world() == World::Policy;
    let overlays = rendered.subject_of_overlay(0);
    let Some(subject) = (if is_whole { Some(rendered.subject()) } else { overlays.as_ref() }) else {
        return Ok(Vec::new());
    };
    sandbox.begin(subject)?;
    sandbox.needs(&[])?;
    let base = if is_whole { Vec::new() } else { vec![other(CONTAINER)] };
    let Ok(mut given) = sandbox.map_env(base.clone())? else { return Ok(Vec::new()) };
    if !is_whole {
        // Compare only containers and names, because an overlay may change the value of a variable.
        let returned: BTreeSet<_> = given.iter().map(key).collect();
        return Ok(base.iter().filter(|variable| !returned.contains(&key(variable))).map(shown).collect());
    }
    let containers: BTreeSet<String> = given.iter().map(|variable| variable.container.clone()).collect();
    given.extend(containers.iter().map(|container| other(container)));
    let Ok(plan) = sandbox.translate(given.clone())? else { return Ok(Vec::new()) };
    let manifests: Vec<Value> = plan.manifests.iter().filter_map(|text| serde_json::from_str(text).ok()).collect();
    let carried = carried(&manifests);
    let is_kept = |variable: &&EnvVar| plan.env.contains(variable) && carried.contains(&key(variable));
    Ok(given.iter().filter(|variable| !is_kept(variable)).map(shown).collect())
}

fn other(container: &str) -> EnvVar {
    let source = EnvSource::Literal("1".to_owned());
    EnvVar { container: container.to_owned(), name: OTHER.to_owned(), source, origin: "metadata.name".to_owned() }
}

fn key(variable: &EnvVar) -> (&str, &str) {
    (&variable.container, &variable.name)
}

fn shown(variable: &EnvVar) -> String {
    format!("{} {}", variable.container, variable.name)
}

/// Returns the variables in the manifests, by the names of their containers.
fn carried(manifests: &[Value]) -> BTreeSet<(&str, &str)> {
    let mut carried = BTreeSet::new();
    for manifest in manifests {
        for (_, spec) in pods::specs(manifest, false) {
            for (_, container) in pods::containers(spec) {
                let names = container["env"].as_array().into_iter().flatten().filter_map(|it| it["name"].as_str());
                carried.extend(names.filter_map(|name| Some((container["name"].as_str()?, name))));
            }
        }
    }
    carried
}
