//! C8: objects that the Go operator left.

use kaos_cluster::faults::Failure;
use kaos_policy::stamp::{APPLIED_DIGEST, LAST_APPLIED};
use kaos_tests::gadget::gadget;
use kaos_tests::harness::read::{entries, finalizers, hash, text, uid};
use kaos_tests::harness::samples::{agent, model_api};
use kaos_tests::harness::{Fault, Scenario, World, condition, is_ready, is_true, play, reason};
use kube::api::PostParams;
use serde_json::{Value, json};

/// The field manager of the Go operator. The Go operator writes with updates.
const GO: &str = "manager";
const CHILDREN: [&str; 3] = ["Deployment/modelapi-llm", "Service/modelapi-llm", "ConfigMap/litellm-config-llm"];

/// Creates an object as the Go operator does: with a create request, by the Go operator's field manager.
async fn create(w: &World, object: &Value) {
    let params = PostParams { field_manager: Some(GO.to_owned()), ..PostParams::default() };
    w.create(object, &params).await;
}

/// Rewrites a child that this operator created, so that the child looks as if the Go operator had created it.
async fn as_go_left_it(w: &World, at: &str, change: impl Fn(&mut Value)) {
    let mut child = w.look(at).await;
    w.delete(at).await;
    w.until_gone(at).await;
    let metadata = child["metadata"].as_object_mut().unwrap();
    metadata.retain(|key, _| ["name", "namespace", "labels", "ownerReferences"].contains(&key.as_str()));
    metadata.get_mut("labels").unwrap().as_object_mut().unwrap().remove("app.kubernetes.io/managed-by");
    let fields = child.as_object_mut().unwrap();
    fields.remove("status");
    change(&mut child);
    create(w, &child).await;
}

fn go_hash(child: &mut Value) {
    if child["kind"] == "Deployment" {
        child["spec"]["template"]["metadata"]["annotations"]["kaos.tools/pod-spec-hash"] = json!("gohash");
    }
}

#[test]
fn c8_children_of_the_go_operator_are_taken_over_without_restarting_a_pod() {
    play(Scenario::default(), async |w| {
        w.apply(&model_api("llm")).await;
        w.until_ready("ModelAPI/llm").await;
        w.stop_all().await;
        for child in CHILDREN {
            as_go_left_it(w, child, go_hash).await;
        }
        let before = w.look(CHILDREN[0]).await;
        w.start().await;
        w.until_all("the operator owns the children", &CHILDREN, |all| {
            all.iter().all(|child| {
                entries(child, "labels").get("app.kubernetes.io/managed-by").is_some_and(|by| by == "kaos-operator")
            })
        })
        .await;
        w.until_ready("ModelAPI/llm").await;
        w.quiet().await;
        let after = w.look(CHILDREN[0]).await;
        assert_eq!(hash(&after), "gohash");
        assert_eq!(after["spec"], before["spec"], "{:#?}", w.try_embedded().map(|_| w.writes()));
        assert_eq!(uid(&after), uid(&before));
        assert_eq!(w.rollouts("modelapi-llm").await, 1);
        let managers = after["metadata"]["managedFields"].as_array().unwrap().clone();
        assert!(!managers.is_empty() && managers.iter().all(|entry| entry["manager"] != GO), "{managers:#?}");
    });
}

#[test]
fn c8_a_takeover_delayed_by_the_configuration_restarts_no_pod() {
    play(Scenario::embedded("the test makes the API server refuse requests"), async |w| {
        w.apply(&model_api("llm")).await;
        w.until_ready("ModelAPI/llm").await;
        w.stop_all().await;
        for child in CHILDREN {
            as_go_left_it(w, child, go_hash).await;
        }
        w.break_it(Fault::on(&["patch"]).of("deployments").fail(Failure::Server(500)).times(2));
        w.start().await;
        w.until("the operator owns the child", CHILDREN[0], |child| {
            entries(child, "labels").get("app.kubernetes.io/managed-by").is_some_and(|by| by == "kaos-operator")
        })
        .await;
        w.until_ready("ModelAPI/llm").await;
        assert_eq!(hash(&w.look(CHILDREN[0]).await), "gohash");
        assert_eq!(w.rollouts("modelapi-llm").await, 1);
    });
}

#[test]
fn c8_fields_of_the_go_operator_that_left_the_plan_are_removed() {
    play(Scenario::default(), async |w| {
        w.apply(&model_api("llm")).await;
        w.until_ready("ModelAPI/llm").await;
        w.stop_all().await;
        as_go_left_it(w, CHILDREN[0], |child| {
            let container = &mut child["spec"]["template"]["spec"]["containers"][0];
            container["env"].as_array_mut().unwrap().push(json!({"name": "OBSOLETE", "value": "1"}));
            child["metadata"]["labels"]["obsolete"] = json!("1");
        })
        .await;
        w.start().await;
        w.until("the field is gone", CHILDREN[0], |child| {
            !child["spec"].to_string().contains("OBSOLETE") && !entries(child, "labels").contains_key("obsolete")
        })
        .await;
        w.until_ready("ModelAPI/llm").await;
    });
}

#[test]
fn c8_a_child_of_the_go_operator_that_left_the_plan_is_pruned() {
    play(Scenario::default(), async |w| {
        w.apply(&model_api("llm")).await;
        let owner = w.until_ready("ModelAPI/llm").await;
        w.stop_all().await;
        let reference = json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "ModelAPI", "name": "llm", "uid": uid(&owner),
            "controller": true, "blockOwnerDeletion": true});
        let obsolete = json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "obsolete", "ownerReferences": [reference]}, "spec": {"ports": [{"port": 80}]}});
        create(w, &obsolete).await;
        w.start().await;
        w.until_gone("Service/obsolete").await;
    });
}

/// Creates a ModelAPI with a Deployment of the Go operator. Scales the Deployment like a user, and waits for the
/// takeover. Returns the ModelAPI.
async fn scaled_by_hand(w: &World, spec: &Value) -> Value {
    let object = || {
        let mut object = model_api("llm");
        object["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        object
    };
    w.apply(&object()).await;
    w.until_ready("ModelAPI/llm").await;
    w.stop_all().await;
    for child in CHILDREN {
        as_go_left_it(w, child, |child| {
            if child["kind"] == "Deployment" {
                child["spec"]["replicas"] = json!(1);
            }
            go_hash(child);
        })
        .await;
    }
    w.scale(CHILDREN[0], 4).await;
    // The operator's cache removes this annotation from the cached copy of every object, but the operator must not
    // remove the annotation from the object itself.
    let applied = json!({"metadata": {"annotations": {LAST_APPLIED: "{}"}}});
    w.patch("ModelAPI/llm", &applied).await;
    w.start().await;
    w.until("the child is taken over", CHILDREN[0], |child| {
        entries(child, "labels").get("app.kubernetes.io/managed-by").is_some_and(|by| by == "kaos-operator")
    })
    .await;
    w.quiet().await;
    let object = w.until_ready("ModelAPI/llm").await;
    assert_eq!(entries(&object, "annotations")[LAST_APPLIED], "{}");
    object
}

#[test]
fn c8_replicas_set_before_the_takeover_stay_until_the_object_sets_a_number() {
    play(Scenario::default(), async |w| {
        let object = scaled_by_hand(w, &json!({})).await;
        let child = w.look(CHILDREN[0]).await;
        assert_eq!((&child["spec"]["replicas"], hash(&child)), (&json!(4), "gohash"));
        assert_eq!(entries(&object, "annotations")["kaos.tools/replicas"], "external");
        let told = |events: &[Value]| events.iter().any(|event| event["reason"] == "ReplicasLeft");
        w.until_true("an Event reports the kept number of replicas", async || told(&w.list("Event").await)).await;
        w.scale(CHILDREN[0], 3).await;
        w.quiet().await;
        assert_eq!(
            w.look(CHILDREN[0]).await["spec"]["replicas"],
            3,
            "the operator must leave the number of replicas to the other client"
        );
        let ours = json!({"metadata": {"annotations": {"kaos.tools/replicas": null}}, "spec": {"replicas": 2}});
        w.patch("ModelAPI/llm", &ours).await;
        w.until("the Deployment has the number of replicas of the object", CHILDREN[0], |child| {
            child["spec"]["replicas"] == 2
        })
        .await;
    });
}

#[test]
fn c8_replicas_of_the_object_win_over_those_before_the_takeover() {
    play(Scenario::default(), async |w| {
        let object = scaled_by_hand(w, &json!({"replicas": 2})).await;
        assert_eq!(w.look(CHILDREN[0]).await["spec"]["replicas"], 2);
        assert!(object["metadata"]["annotations"]["kaos.tools/replicas"].is_null());
    });
}

#[test]
fn c8_finalizers_of_the_go_operator_are_removed_also_from_deleting_objects() {
    play(Scenario::default().idle(), async |w| {
        let with = |mut object: Value, finalizer: &str| {
            object["metadata"]["finalizers"] = json!([finalizer, "example.com/foreign"]);
            object
        };
        w.apply(&with(model_api("llm"), "kaos.tools/modelapi-finalizer")).await;
        w.apply(&with(agent("a", "llm", &json!({})), "kaos.tools/agent-finalizer")).await;
        w.delete("Agent/a").await;
        w.start().await;
        w.until_all("the finalizers are removed", &["ModelAPI/llm", "Agent/a"], |all| {
            all.iter().all(|object| finalizers(object) == ["example.com/foreign"])
        })
        .await;
        let going = w.look("Agent/a").await;
        assert_ne!(text(&going["metadata"]["deletionTimestamp"]), "");
        w.until("the ModelAPI is ready", "ModelAPI/llm", is_ready).await;
    });
}

#[test]
fn c8_the_finalizer_of_a_client_is_removed_only_from_a_deleting_object_and_reported() {
    play(Scenario::default().idle(), async |w| {
        const CLIENT: &str = "kaos.tools/oidc-client-finalizer";
        let mut object = agent("a", "llm", &json!({}));
        object["metadata"]["finalizers"] = json!(["kaos.tools/agent-finalizer", CLIENT, "example.com/foreign"]);
        w.apply(&object).await;
        w.apply(&model_api("llm")).await;
        w.start().await;
        w.until_ready("Agent/a").await;
        w.quiet().await;
        assert_eq!(finalizers(&w.look("Agent/a").await), [CLIENT, "example.com/foreign"]);
        w.delete("Agent/a").await;
        w.until("the finalizer is removed", "Agent/a", |object| finalizers(object) == ["example.com/foreign"]).await;
        let told =
            |events: &[Value]| events.iter().any(|event| event["reason"] == "ClientLeft" && event["type"] == "Warning");
        w.until_true("an Event reports the removed finalizer", async || told(&w.list("Event").await)).await;
    });
}

#[test]
fn c8_running_children_of_a_refused_object_are_reported() {
    play(Scenario::default().idle(), async |w| {
        let owner = w.apply(&gadget("web", &json!({"does": "refuse"}))).await;
        let reference = json!({"apiVersion": "test.example.com/v1", "kind": "Gadget", "name": "web", "uid": uid(&owner),
            "controller": true, "blockOwnerDeletion": true});
        let service = json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "web", "ownerReferences": [reference]}, "spec": {"ports": [{"port": 80}]}});
        create(w, &service).await;
        w.start().await;
        w.until("the Gadget is refused, and its status names the Service", "Gadget/web", |gadget| {
            reason(gadget, "Accepted") == "InvalidSpec" && is_true(gadget, "ServiceReady")
        })
        .await;
    });
}

/// The type of a condition that another controller writes.
const THEIRS: &str = "Audited";

fn another_condition(of: &str) -> Value {
    json!({"type": of, "status": "True", "reason": "Checked", "message": "somebody looked",
        "lastTransitionTime": "2026-01-01T00:00:00Z"})
}

/// Adds a condition as controllers from kubebuilder do: with an update by the field manager `manager`.
async fn add_condition(w: &World, at: &str, of: &str) {
    let mut conditions = w.look(at).await["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.push(another_condition(of));
    w.patch_status_as(GO, at, &json!({"conditions": conditions})).await;
}

/// Edits an object, and waits until the status shows the new generation. Returns the object.
async fn edited(w: &World, at: &str, replicas: i64) -> Value {
    let generation = w.patch(at, &json!({"spec": {"replicas": replicas}})).await["metadata"]["generation"].clone();
    w.until("the status shows the edit", at, |object| {
        is_ready(object) && object["status"]["observedGeneration"] == generation
    })
    .await
}

#[test]
fn c8_a_condition_of_another_controller_called_manager_stays() {
    play(Scenario::default(), async |w| {
        w.apply(&model_api("llm")).await;
        w.until_ready("ModelAPI/llm").await;
        add_condition(w, "ModelAPI/llm", THEIRS).await;
        let object = edited(w, "ModelAPI/llm", 2).await;
        assert!(!condition(&object, THEIRS).is_null(), "{object:#}");
        w.restart().await;
        let object = edited(w, "ModelAPI/llm", 3).await;
        assert!(!condition(&object, THEIRS).is_null(), "after a restart: {object:#}");
        w.quiet().await;
        assert!(!condition(&w.look("ModelAPI/llm").await, THEIRS).is_null());
    });
}

#[test]
fn c8_status_fields_of_the_go_operator_are_removed_once() {
    play(Scenario::default().idle(), async |w| {
        w.apply(&model_api("llm")).await;
        let left = json!({"phase": "Pending", "message": "old", "conditions": [another_condition("Left")]});
        w.patch_status_as(GO, "ModelAPI/llm", &left).await;
        w.start().await;
        let object = w.until_ready("ModelAPI/llm").await;
        assert!(condition(&object, "Left").is_null(), "{object:#}");
        add_condition(w, "ModelAPI/llm", THEIRS).await;
        let object = edited(w, "ModelAPI/llm", 2).await;
        assert!(!condition(&object, THEIRS).is_null(), "{object:#}");
    });
}

#[test]
fn c8_an_interrupted_takeover_of_a_status_is_finished_after_a_restart() {
    play(Scenario::embedded("the test makes the API server refuse requests").idle(), async |w| {
        w.apply(&model_api("llm")).await;
        let left = json!({"phase": "Pending", "conditions": [another_condition("Left")]});
        w.patch_status_as(GO, "ModelAPI/llm", &left).await;
        w.break_it(Fault::on(&["patch"]).of("modelapis").under("status").fail(Failure::Server(500)));
        w.start().await;
        w.until_hit().await;
        w.crash().await;
        w.mend();
        add_condition(w, "ModelAPI/llm", THEIRS).await;
        w.start().await;
        let object = w.until_ready("ModelAPI/llm").await;
        assert!(condition(&object, "Left").is_null(), "{object:#}");
        assert!(!condition(&object, THEIRS).is_null(), "the condition is newer than the takeover: {object:#}");
    });
}

#[test]
fn c8_a_status_without_conditions_of_the_operator_is_not_taken_over_again() {
    play(Scenario::default(), async |w| {
        w.apply(&model_api("llm")).await;
        w.until_ready("ModelAPI/llm").await;
        let theirs = json!({"policy": null, "conditions": [another_condition(THEIRS)]});
        w.patch_status_as(GO, "ModelAPI/llm", &theirs).await;
        let object = edited(w, "ModelAPI/llm", 2).await;
        assert!(!condition(&object, THEIRS).is_null(), "{object:#}");
        w.stop_all().await;
        w.patch_status_as(GO, "ModelAPI/llm", &theirs).await;
        w.start().await;
        let object = w.until_ready("ModelAPI/llm").await;
        assert!(!condition(&object, THEIRS).is_null(), "after a restart: {object:#}");
    });
}

#[test]
fn c8_a_child_without_digest_is_not_taken_over_again() {
    play(Scenario::default(), async |w| {
        w.apply(&model_api("llm")).await;
        w.until_ready("ModelAPI/llm").await;
        let theirs = json!({"metadata": {"labels": {"theirs": "1"}, "annotations": {APPLIED_DIGEST: null}}});
        w.patch_as(GO, CHILDREN[0], &theirs).await;
        let child = w
            .until("the child has its digest again", CHILDREN[0], |child| {
                entries(child, "annotations").contains_key(APPLIED_DIGEST)
            })
            .await;
        assert_eq!(entries(&child, "labels")["theirs"], "1");
    });
}
