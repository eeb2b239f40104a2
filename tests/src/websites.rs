//! Checks that the templates of `policy new` in two languages give the same answers, byte for byte. Also builds the
//! objects for this check.

use std::sync::Arc;

use kaos_operator::policies::{Candidate, ComponentOrigin, Loader, sample_cluster};
use kaos_policy::code::Code;
use kaos_policy::contract::{
    Child, Cluster, EnvVar, Found, Observation, Outcome, Plan, Reference, Refusal, Report, Subject,
};
use kaos_policy::digest::canonical;
use kaos_policy::gate::{self, CodeForm};
use kaos_policy::limits::Limits;
use kaos_policy::policy::Policy;
use serde_json::{Value, json};

/// Loads a component or a script as the operator does.
///
/// # Panics
///
/// Fails the test if the gate refuses the code.
#[allow(clippy::unwrap_used, reason = "a test without its policy has failed")]
pub fn load(form: CodeForm, bytes: Vec<u8>) -> Arc<Policy> {
    let inner = gate::Candidate { form, bytes, ..gate::Candidate::default() };
    // Declare the component as embedded, so that the loader compiles it in this process instead of in a compile child.
    let origin = ComponentOrigin::Embedded;
    Loader::cached(sample_cluster()).unwrap().accepting_all().check(&Candidate { origin, inner }).result.unwrap()
}

/// Returns the subject for a Website with this metadata and spec.
pub fn subject(metadata: &Value, spec: &Value) -> Subject {
    let object = json!({"apiVersion": "example.com/v1", "kind": "Website", "metadata": metadata, "spec": spec});
    Subject {
        object: canonical(&object),
        found: Vec::new(),
        settings: canonical(&json!({"image": "nginx:test", "port": 8080})),
        cluster: Cluster::default(),
        applied: false,
        extra: "{}".to_owned(),
    }
}

/// Returns the metadata of most Websites in the tests.
pub fn blog() -> Value {
    json!({"name": "blog", "namespace": "default"})
}

/// Returns valid and invalid Websites.
fn subjects() -> Vec<Subject> {
    let specs = [
        json!({}),
        json!({"title": "Hello"}),
        json!({"title": "$(HOME) is “here” & <there>\n", "replicas": 3}),
        json!({"title": "Hello", "env": [{"name": "SITE_TITLE", "value": "Mine"}, {"name": "B"}]}),
        json!({"env": [
            {"name": "A", "value": "$(B)"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "C", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": true}}},
            {"name": "D", "valueFrom": {"configMapKeyRef": {"name": "s", "key": "k"}}},
            {"name": "E", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
        ]}),
        json!({"env": [{"value": "no name"}]}),
        json!({"title": " "}),
    ];
    let mut subjects: Vec<Subject> = specs.iter().map(|spec| subject(&blog(), spec)).collect();
    subjects.push(subject(&json!({"name": "my.site", "namespace": "default"}), &json!({"title": "\t"})));
    subjects
}

/// The answers of a policy to the functions `map-env` and `translate`.
pub type Planned = Result<(Vec<EnvVar>, Result<Plan, Refusal>), Refusal>;

/// Asks a policy for the mapping and the plan.
///
/// # Panics
///
/// Fails the test if the policy fails, or has a need.
#[allow(clippy::unwrap_used, reason = "a test whose policy fails has failed")]
pub fn planned(code: &dyn Code, subject: &Subject) -> Planned {
    let mut sandbox = code.open(&Limits::default()).unwrap();
    sandbox.begin(subject).unwrap();
    assert_eq!(sandbox.needs(&Vec::<Found>::new()).unwrap(), []);
    let env = sandbox.map_env(Vec::new()).unwrap()?;
    let plan = sandbox.translate(env.clone()).unwrap();
    Ok((env, plan))
}

#[allow(clippy::unwrap_used, reason = "a test whose policy fails has failed")]
fn assessed(code: &dyn Code, outcome: &Outcome, live: Option<&Value>) -> Report {
    let mut sandbox = code.open(&Limits::default()).unwrap();
    sandbox.begin(&subject(&blog(), &json!({}))).unwrap();
    let identity = Reference {
        api_version: "apps/v1".into(),
        kind: "Deployment".into(),
        namespace: Some("default".into()),
        name: "blog".into(),
    };
    let children = vec![Child { identity, live: live.map(canonical) }];
    let (gates, env, notes) = (Vec::new(), Vec::new(), Vec::new());
    let seen = Observation { outcome: outcome.clone(), children, gates, env, notes, extra: "{}".to_owned() };
    sandbox.assess(&seen).unwrap()
}

/// Checks that both implementations give the same mappings, plans and refusals.
///
/// # Panics
///
/// Fails the test at the first difference.
pub fn same_plans(one: &dyn Code, other: &dyn Code) {
    for subject in subjects() {
        assert_eq!(planned(one, &subject), planned(other, &subject), "{}", subject.object);
    }
}

/// Checks that both implementations give the same reports.
///
/// # Panics
///
/// Fails the test at the first difference.
pub fn same_reports(one: &dyn Code, other: &dyn Code) {
    let live = |status: Value| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "blog", "generation": 2},
               "status": status})
    };
    let up = live(json!({"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}));
    let old = live(json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 1, "availableReplicas": 1}));
    let unseen = live(json!({"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}));
    let outcomes = [
        Outcome::Applied,
        Outcome::Gated,
        Outcome::Failed("no".into()),
        Outcome::Refused(Refusal::Unsupported("no".into())),
    ];
    for live in [None, Some(&up), Some(&old), Some(&unseen)] {
        for outcome in &outcomes {
            assert_eq!(assessed(one, outcome, live), assessed(other, outcome, live), "{outcome:?} {live:?}");
        }
    }
}
