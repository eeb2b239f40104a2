//! Replays the recorded cases that need a running operator. In these cases, pods become ready, a user applies an object
//! again, a user edits a child, or a child has no owner.

use std::time::Duration;

use kaos_cluster::PodFate;
use kaos_tests::case::{self, Case};
use kaos_tests::harness::kinds::At;
use kaos_tests::harness::{Scenario, World, condition, play, reason};
use kaos_tests::{normalize, play as played};
use serde_json::{Map, Value, json};

use crate::support::image;

const STRANGER: &str = "agent-adopt-foreign-same-labels";

fn scenario(case: &Case) -> Scenario {
    let scenario =
        Scenario::embedded("the test decides the fate of pods").within("parity").environment(&case.environment);
    if case.environment.contains_key("GATEWAY_API_ENABLED") { scenario.gateway() } else { scenario }
}

async fn make_ready(w: &World, pods: &[case::Ready]) {
    for case::Ready { deployment, .. } in pods {
        w.pods_of(deployment, PodFate::ReadyAfter(Duration::ZERO));
    }
    w.quiet().await;
}

/// Applies the update of a case: changes children as another client, and all other objects as the user.
async fn update(w: &World, case: &Case) {
    for object in &case.update {
        let at = At::of(object, &w.namespace).to_string();
        let is_child = !w.look(&at).await["metadata"]["ownerReferences"].is_null();
        if is_child {
            let mut patch = object.clone();
            patch["metadata"].as_object_mut().unwrap().retain(|key, _| key == "labels" || key == "annotations");
            w.patch(&at, &patch).await;
        } else {
            w.apply(object).await;
        }
        w.quiet().await;
    }
}

/// In the Deployment's conditions, masks the values that differ between runs.
fn masked(mut status: Value) -> Value {
    let conditions = status["deployment"].get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten().filter(|condition| condition["type"] == "Progressing") {
        let fields = condition.as_object_mut().unwrap();
        fields.remove("message");
        if fields["reason"] == "NewReplicaSetCreated" || fields["reason"] == "ReplicaSetUpdated" {
            fields.insert("reason".to_owned(), json!("<NewReplicaSetCreated|ReplicaSetUpdated>"));
        }
    }
    if status["deployment"].is_null() {
        status.as_object_mut().map(|status| status.remove("deployment"));
    }
    status
}

async fn outcome(w: &World, case: &Case, wanted: &Value) -> Value {
    let mut children = Vec::new();
    let also = case.about.also_record.iter().filter_map(|name| played::owner_of_recorded(name, wanted));
    let looked_at: Vec<String> =
        case.about.primary.iter().cloned().chain(also.map(|(kind, name)| format!("{kind}/{name}"))).collect();
    for owner in &looked_at {
        let kinds = ["Deployment", "Service", "ConfigMap", "PersistentVolumeClaim", "PodDisruptionBudget", "HTTPRoute"];
        for kind in kinds {
            for child in w.owned(owner, kind).await {
                children.push(played::recorded_form(child));
            }
        }
    }
    children.sort_by_key(kaos_tests::stage::key);
    children.dedup();
    let mut ours = Map::new();
    ours.insert("children".to_owned(), json!(children));
    let status = async |at: &str| masked(normalize::status(&w.look(at).await["status"]));
    ours.insert("status".to_owned(), status(&case.about.primary[0]).await);
    if case.about.primary.len() > 1 {
        let mut statuses = Map::new();
        for primary in &case.about.primary {
            statuses.insert(primary.clone(), status(primary).await);
        }
        ours.insert("statuses".to_owned(), Value::Object(statuses));
    }
    Value::Object(ours)
}

fn with_masks(mut wanted: Value) -> Value {
    wanted["status"] = masked(wanted["status"].take());
    for status in wanted.get_mut("statuses").and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut) {
        *status = masked(status.take());
    }
    wanted
}

/// Removes the numbers of replicas from the outcome of a case that deviates from its recording. In such a case, this
/// operator may cause a rollout that the recording lacks, and old and new pods run at the same time.
fn without_surge(case: &Case, outcome: &mut Value) {
    if case.about.desired.is_some()
        && let Some(deployment) = outcome["status"]["deployment"].as_object_mut()
    {
        deployment.remove("replicas");
    }
}

async fn run(w: &World, case: &Case) -> Option<String> {
    let mut wanted = with_masks(case.wanted().unwrap());
    without_surge(case, &mut wanted);
    w.pods(PodFate::NotReady);
    w.apply_all(&case.input).await;
    w.quiet().await;
    make_ready(w, &case.readiness.before).await;
    update(w, case).await;
    make_ready(w, &case.readiness.after).await;
    let mut ours = outcome(w, case, &wanted).await;
    played::without_additions(&mut ours, &wanted);
    without_surge(case, &mut ours);
    let pretty = |value: &Value| serde_json::to_string_pretty(value).unwrap();
    let (wanted, ours) = (pretty(&wanted), pretty(&ours));
    let diff = similar::TextDiff::from_lines(&wanted, &ours);
    (wanted != ours).then(|| diff.unified_diff().context_radius(4).header("wanted", "ours").to_string())
}

#[test]
fn every_case_with_pods_or_a_second_apply_ends_as_recorded_or_desired() {
    let needs_operator = |case: &Case| {
        case.name != STRANGER
            && (!case.update.is_empty() || !case.readiness.before.is_empty() || !case.readiness.after.is_empty())
    };
    let cases: Vec<Case> = case::all().unwrap().into_iter().filter(needs_operator).collect();
    assert!(cases.len() >= 17, "only {} cases are left", cases.len());
    let mut differing = Vec::new();
    for case in &cases {
        play(scenario(case), async |w| {
            if let Some(diff) = run(w, case).await {
                let desired = case.about.desired.as_deref().unwrap_or("as recorded");
                differing.push(format!("=== {} ({desired})\n{diff}", case.name));
            }
        });
    }
    assert!(differing.is_empty(), "{} of {} cases differ\n{}", differing.len(), cases.len(), differing.join("\n"));
}

#[test]
fn a_foreign_deployment_with_labels_of_the_operator_stays_untouched() {
    let case = case::all().unwrap().into_iter().find(|case| case.name == STRANGER).unwrap();
    play(scenario(&case), async |w| {
        w.apply_all(&case.input).await;
        let told = w
            .until("Agent/a has the reason OwnershipConflict for Applied", "Agent/a", |agent| {
                reason(agent, "Applied") == "OwnershipConflict"
            })
            .await;
        assert!(condition(&told, "Applied")["message"].as_str().unwrap().contains("agent-a"), "{told:#}");
        w.quiet().await;
        let stranger = w.look("Deployment/agent-a").await;
        assert_eq!((image(&stranger), &stranger["metadata"]["ownerReferences"]), ("foreign:1", &Value::Null));
        assert!(w.look("Agent/a").await["status"]["ready"] != true);
    });
}
