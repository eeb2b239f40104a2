//! Writes a case as a test for a project with a script. If `render` can give the recorded answer from files, the test
//! has the objects that the policy saw, the flags of `render`, and the manifests. If the policy failed, the test has no
//! manifests. In all other cases, the test is the case itself.

use std::{collections::BTreeSet, path::Path};

use kaos_policy::{
    contract::{Reference, ResourceType},
    render::{AnsweredNeed, LayerInputs, RecordedAnswer},
    settings::Origin,
};
use serde_json::{Value, json};

use super::project::{put, put_case};
use crate::{
    kinds::SERVED,
    merged::merge,
    plan_gates::let_through,
    record::{Case, CaseVerdict},
    yaml,
};

/// Writes the test. Returns the path of the test.
pub(super) fn write(project: &Path, name: &str, case: &Case) -> anyhow::Result<String> {
    let path = format!("tests/{name}.yaml");
    let Cluster { objects, flags, is_exact } = Cluster::of(case);
    let expected = match &case.answer.verdict {
        CaseVerdict::Planned(planned) if is_exact && let_through(planned, case.inputs.applied) => {
            Some(&planned.manifests)
        }
        // The case has no manifests to compare with: a person has to correct the policy first, and look at its new
        // answer.
        CaseVerdict::Failed(_) => None,
        CaseVerdict::Planned(_) | CaseVerdict::Refused(_) => return put_case(project, name, case),
    };
    put(project, &path, &documents(&objects)?)?;
    if !flags.is_empty() {
        let flags: Vec<String> = flags.into_iter().collect();
        put(project, &format!("tests/{name}.flags"), &(flags.join(" ") + "\n"))?;
    }
    if let Some(manifests) = expected {
        put(project, &format!("tests/{name}.expected.yaml"), &format!("---\n{}", documents(manifests)?))?;
    }
    Ok(path)
}

fn documents(objects: &[Value]) -> anyhow::Result<String> {
    Ok(objects.iter().map(yaml::text).collect::<Result<Vec<_>, _>>()?.join("---\n"))
}

/// Files and flags with which `render` gives the recorded answers to the needs.
struct Cluster {
    /// The object of the case, and then the objects that the needs found.
    objects: Vec<Value>,
    flags: BTreeSet<String>,
    /// Whether `render` gives exactly the recorded inputs to the policy.
    is_exact: bool,
}

impl Cluster {
    fn of(case: &Case) -> Self {
        let mut object = case.inputs.object.clone();
        if case.inputs.applied {
            object["status"] = json!({"appliedGeneration": 1});
        }
        let mut cluster = Self { objects: vec![object], flags: BTreeSet::new(), is_exact: true };
        for LayerInputs { settings, needs, .. } in &case.inputs.layers {
            // `render` gets only settings from the annotations in the object's file. Other settings are only in the
            // cluster.
            cluster.is_exact &= settings.sources.iter().all(|it| it.source.origin == Origin::Annotation);
            for need in needs {
                cluster.answer(need);
            }
        }
        cluster
    }

    fn answer(&mut self, AnsweredNeed { need, answer, .. }: &AnsweredNeed) {
        let of = need.target.of();
        let flag = |flag: &str| format!("--{flag} {}/{}", of.api_version, of.kind);
        match answer {
            RecordedAnswer::Objects(objects) => objects.iter().for_each(|found| self.add(found)),
            // The case has no values of Secrets, so a Secret in a file would have another digest.
            RecordedAnswer::Secret(facts) => self.is_exact &= !facts.present,
            RecordedAnswer::Unserved => drop(self.flags.insert(flag("unserved"))),
            RecordedAnswer::Forbidden(_) => drop(self.flags.insert(flag("forbidden"))),
        }
    }

    /// Adds an object. Several needs may have found different fields of the same object.
    fn add(&mut self, found: &Value) {
        // If `SERVED` contains the object's kind, `render` would also print the children of this object.
        self.is_exact &= !SERVED.contains(&ResourceType::of_object(found));
        let of = Reference::of_object(found);
        match self.objects.iter_mut().find(|known| Reference::of_object(known) == of) {
            Some(known) => merge(known, found),
            None => self.objects.push(found.clone()),
        }
    }
}
