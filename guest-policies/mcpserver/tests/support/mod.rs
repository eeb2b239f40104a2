//! Loads recorded cases, for tests that run a policy as native code. A case consists of environment variables for the
//! settings, the applied objects, and the recorded result.
#![allow(dead_code, clippy::panic, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use kaos_policy_sdk::types::{Outcome, Plan, Refusal, Report, Subject};
use kaos_policy_sdk::{Policy, testing, yaml};
use serde_json::{Value, json};

#[allow(unreachable_pub, clippy::unnecessary_lazy_evaluations)]
#[path = "../../../../tests/src/normalize.rs"]
mod normalize;

/// A recorded case.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) recorded: Value,
    /// Whether the policy deviates from the recorded result on purpose.
    pub(crate) deviates: bool,
    object: Value,
    beside: Vec<Value>,
    environment: BTreeMap<String, String>,
}

/// Returns the cases with names that begin with `prefix`. Each case is about an object of the kind `kind`.
pub(crate) fn cases(prefix: &str, kind: &str) -> Vec<Case> {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    let profiles = yaml::parse(&fs::read_to_string(golden.join("profiles.yaml")).unwrap()).unwrap();
    let mut folders: Vec<PathBuf> =
        fs::read_dir(golden.join("cases")).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.retain(|folder| folder.file_name().unwrap().to_string_lossy().starts_with(prefix));
    folders.sort();
    assert!(!folders.is_empty(), "no case begins with {prefix}");
    folders.iter().map(|folder| load(folder, kind, &profiles, &golden)).collect()
}

fn load(folder: &Path, kind: &str, profiles: &Value, golden: &Path) -> Case {
    let about = documents(&folder.join("case.yaml")).remove(0);
    let mut objects = documents(&golden.join("runtimes.yaml"));
    // If the case has its own ConfigMap of runtimes, it replaces the ConfigMap that all cases share.
    let of_the_case = documents(&folder.join("input.yaml"));
    objects.retain(|one| of_the_case.iter().all(|other| other["metadata"]["name"] != one["metadata"]["name"]));
    objects.extend(of_the_case);
    let update = folder.join("update.yaml");
    if update.exists() {
        objects.extend(documents(&update));
    }
    let object = objects.iter().rfind(|object| object["kind"] == kind).unwrap().clone();
    let mut environment: BTreeMap<String, Value> = serde_json::from_value(profiles["base"].clone()).unwrap();
    let profile = &profiles["profiles"][about["profile"].as_str().unwrap()];
    environment.extend(serde_json::from_value::<BTreeMap<String, Value>>(profile.clone()).unwrap());
    Case {
        name: folder.file_name().unwrap().to_string_lossy().into_owned(),
        recorded: serde_json::from_str(&fs::read_to_string(folder.join("expected.json")).unwrap()).unwrap(),
        deviates: !about["desired"].is_null(),
        object,
        beside: objects,
        environment: environment.into_iter().filter_map(|(k, v)| Some((k, v.as_str()?.to_owned()))).collect(),
    }
}

fn documents(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.split("\n---\n").map(|text| yaml::parse(text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))).collect()
}

/// Returns the settings. Values come from the environment, or else from the defaults in the schema.
pub(crate) fn settings(schema: &Value, environment: &BTreeMap<String, String>) -> Value {
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        return properties.iter().map(|(name, schema)| (name.clone(), settings(schema, environment))).collect();
    }
    let text = schema.get("x-env").and_then(Value::as_str).and_then(|name| environment.get(name));
    match (text, schema["type"].as_str()) {
        (Some(text), Some("string")) => json!(text),
        (Some(text), Some(_)) => serde_json::from_str(text).unwrap(),
        _ => schema["default"].clone(),
    }
}

/// Returns the default settings of `P`.
pub(crate) fn default_settings<P: Policy>() -> Value {
    settings(&schema::<P>(), &BTreeMap::new())
}

/// Returns the schema of the settings of `P`.
pub(crate) fn schema<P: Policy>() -> Value {
    serde_json::from_str(&P::describe().settings_schema).unwrap()
}

impl Case {
    /// Returns the input for the policy.
    pub(crate) fn subject<P: Policy>(&self) -> Subject {
        let builder = testing::subject(&self.object).settings(&settings(&schema::<P>(), &self.environment));
        builder.serves("gateway.networking.k8s.io/v1", "HTTPRoute").beside::<P>(&self.beside).build()
    }

    /// Returns the recorded children, without the fields that the host adds.
    pub(crate) fn recorded_children(&self) -> Vec<Value> {
        comparable(self.recorded["children"].as_array().unwrap().clone())
    }

    /// Checks that the answer is a refusal, and that the report on this refusal matches the recorded status.
    pub(crate) fn assert_refused<P: Policy>(&self, subject: &Subject, answer: &Result<Plan, Refusal>) {
        let refused = answer.as_ref().err().unwrap_or_else(|| panic!("{}: not refused", self.name));
        let report = P::assess(subject, &testing::observation(Outcome::Refused(refused.clone())).build());
        let recorded = &self.recorded["status"];
        assert_eq!((&json!(report.phase), &json!(report.message)), (&recorded["phase"], &recorded["message"]));
    }

    /// Checks that `plan` and the first report on `plan` match the recording. If they differ, the failing test prints
    /// both.
    pub(crate) fn assert_same<P: Policy>(&self, subject: &Subject, plan: &Result<Plan, Refusal>) {
        let plan = plan.as_ref().unwrap_or_else(|refused| panic!("{}: refused: {refused:?}", self.name));
        let (ours, theirs) = (children(plan), self.recorded_children());
        assert_eq!(ours.len(), theirs.len(), "{}", self.name);
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert_eq!(format!("{ours:#}"), format!("{theirs:#}"), "{}", self.name);
        }
        let (report, recorded) = (first_report::<P>(subject, plan), &self.recorded["status"]);
        let fields: Value = serde_json::from_str(&report.fields).unwrap();
        assert_eq!(fields["endpoint"], recorded["endpoint"], "{}", self.name);
        if recorded["phase"] == "Pending" {
            assert_eq!((json!(report.phase), json!(report.message)), (json!("Pending"), recorded["message"].clone()));
        }
    }
}

/// Returns the manifests of a plan, in a form that a test can compare with the recording.
pub(crate) fn children(plan: &Plan) -> Vec<Value> {
    comparable(testing::manifests(plan).iter().map(|manifest| manifest.value().clone()).collect())
}

fn comparable(children: Vec<Value>) -> Vec<Value> {
    let mut children: Vec<Value> = children.into_iter().map(normalize::stripped).collect();
    for child in &mut children {
        child["metadata"].as_object_mut().unwrap().remove("ownerReferences");
        if let Some(metadata) = child.pointer_mut("/spec/template/metadata").and_then(Value::as_object_mut) {
            metadata.remove("annotations");
        }
    }
    children.sort_by_key(|child| child["kind"].as_str().unwrap().to_owned());
    children
}

/// Returns the report on a plan that the operator has just applied.
pub(crate) fn first_report<P: Policy>(subject: &Subject, plan: &Plan) -> Report {
    P::assess(subject, &testing::observation(Outcome::Applied).plan(plan).build())
}

/// Returns the main container of the Deployment.
pub(crate) fn main_container(children: &[Value], name: &str) -> Value {
    let deployment = children.iter().find(|child| child["kind"] == "Deployment").unwrap();
    let containers = deployment["spec"]["template"]["spec"]["containers"].as_array().unwrap();
    containers.iter().find(|container| container["name"] == name).unwrap().clone()
}

/// Returns path and message of the first violation.
pub(crate) fn violation(refusal: &Refusal) -> (&str, &str) {
    match refusal {
        Refusal::Invalid(violations) => (&violations[0].path, &violations[0].message),
        other => panic!("not invalid: {other:?}"),
    }
}
