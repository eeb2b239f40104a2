//! C1–C7: which objects the operator changes.

use std::time::Duration;

use kaos_cluster::faults::{EventFate, Failure};
use kaos_cluster::{Controller, PodFate};
use kaos_tests::gadget::gadget;
use kaos_tests::harness::read::{controller, entries, text, uid};
use kaos_tests::harness::requests::Sort;
use kaos_tests::harness::samples::{config_map, deployment, model_api};
use kaos_tests::harness::{Fault, Scenario, condition, is_ready, play, reason};
use serde_json::{Value, json};

use crate::support::{CHILDREN, image, web, web_with};

#[test]
fn c1_every_child_has_its_object_as_controller() {
    play(Scenario::default(), async |w| {
        w.apply(&web()).await;
        let owner = w.until_ready("Gadget/web").await;
        for child in CHILDREN {
            let reference = controller(&w.look(child).await);
            let wanted = json!({"apiVersion": "test.example.com/v1", "kind": "Gadget", "name": "web",
                "uid": uid(&owner), "controller": true, "blockOwnerDeletion": true});
            assert_eq!(reference, wanted, "{child}");
        }
    });
}

#[test]
fn c2_a_child_that_left_the_plan_is_deleted() {
    play(Scenario::default(), async |w| {
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        w.apply(&web_with(&json!({"leaveOut": ["Service", "Secret", "ServiceAccount", "ConfigMap", "Deployment"]})))
            .await;
        w.until_all("all children are gone", &CHILDREN, |all| all.iter().all(Value::is_null)).await;
        w.until_ready("Gadget/web").await;
        w.apply(&web()).await;
        w.until_all("all children are back", &CHILDREN, |all| all.iter().all(|child| !child.is_null())).await;
    });
}

#[test]
fn c2_a_renamed_workload_serves_under_its_old_name_until_the_new_one_does() {
    play(Scenario::embedded("the test decides the fate of pods"), async |w| {
        w.apply(&gadget("web", &json!({}))).await;
        w.until_ready("Gadget/web").await;
        w.pods_of("web-two", PodFate::ImagePullBackOff);
        w.apply(&gadget("web", &json!({"deployment": "web-two"}))).await;
        w.until("the new Deployment exists", "Deployment/web-two", |child| !child.is_null()).await;
        w.quiet().await;
        assert!(!w.look("Deployment/web").await.is_null(), "no other Deployment serves");
        w.pods_of("web-two", PodFate::ReadyAfter(Duration::from_secs(1)));
        let pods = w.list("Pod").await;
        let is_new = |pod: &&Value| text(&pod["metadata"]["name"]).starts_with("web-two-");
        for pod in pods.iter().filter(is_new) {
            w.delete(&format!("Pod/{}", text(&pod["metadata"]["name"]))).await;
        }
        w.until_gone("Deployment/web").await;
        w.until_ready("Gadget/web").await;
        // The operator prunes the old workload when the new workload is ready. It waits only for a limited time,
        // because the new workload may need a resource that the old workload occupies.
        w.pods_of("web-three", PodFate::Unschedulable);
        w.apply(&gadget("web", &json!({"deployment": "web-three"}))).await;
        w.until("the newest Deployment exists", "Deployment/web-three", |child| !child.is_null()).await;
        w.pass_time(Duration::from_mins(9)).await;
        assert!(!w.look("Deployment/web-two").await.is_null());
        w.until_true("an Event reports the handover", async || {
            w.list("Event").await.iter().any(|event| event["reason"] == "HandingOver")
        })
        .await;
        // After a restart, the operator must continue this wait, and not begin a new wait.
        w.restart().await;
        w.pass_time(Duration::from_mins(2)).await;
        assert!(w.look("Deployment/web-two").await.is_null());
    });
}

#[test]
fn c3_a_foreign_object_is_not_deleted_whatever_its_labels() {
    play(Scenario::default(), async |w| {
        let mut stranger = config_map("stranger", &json!({"a": "b"}));
        stranger["metadata"]["labels"] = json!({"app.kubernetes.io/managed-by": "kaos-operator", "gadget-of": "web"});
        stranger["metadata"]["annotations"] = json!({"kaos.tools/applied-digest": "sha256:0"});
        // Create a ConfigMap that has the Gadget as an owner, but not as its controller.
        let owner = w.apply(&web()).await;
        let mut shared = config_map("shared", &json!({"a": "b"}));
        shared["metadata"]["labels"] = stranger["metadata"]["labels"].clone();
        shared["metadata"]["ownerReferences"] = json!([
            {"apiVersion": "test.example.com/v1", "kind": "Gadget", "name": "web", "uid": uid(&owner)}]);
        let before = [w.apply(&stranger).await, w.apply(&shared).await];
        w.until_ready("Gadget/web").await;
        w.apply(&web_with(&json!({"leaveOut": ["ConfigMap"]}))).await;
        w.until_gone("ConfigMap/web").await;
        w.restart().await;
        w.quiet().await;
        for (at, before) in ["ConfigMap/stranger", "ConfigMap/shared"].into_iter().zip(before) {
            assert_eq!(w.look(at).await["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"], "{at}");
        }
        w.delete("Gadget/web").await;
        w.until_gone("Gadget/web").await;
        assert!(!w.look("ConfigMap/stranger").await.is_null());
    });
}

#[test]
fn c4_nothing_is_pruned_while_an_apply_fails() {
    play(Scenario::embedded("the test makes requests fail"), async |w| {
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        w.break_it(Fault::on_writes().of("deployments").fail(Failure::Server(500)));
        w.apply(&web_with(&json!({"image": "registry.example/gadget:2", "leaveOut": ["Service"]}))).await;
        w.until("the condition Applied of Gadget/web is False", "Gadget/web", |gadget| {
            condition(gadget, "Applied")["status"] == "False"
        })
        .await;
        w.pass_time(Duration::from_mins(1)).await;
        assert!(!w.look("Service/web").await.is_null());
        w.mend();
        w.until_gone("Service/web").await;
        w.until_ready("Gadget/web").await;
    });
}

#[test]
fn c5_a_foreign_object_of_the_same_name_is_kept_and_reported() {
    play(Scenario::default(), async |w| {
        let stranger = w.apply(&deployment("web", "stranger:1")).await;
        w.apply(&web()).await;
        let told = w
            .until("Gadget/web has the reason OwnershipConflict for Applied", "Gadget/web", |g| {
                reason(g, "Applied") == "OwnershipConflict"
            })
            .await;
        let message = condition(&told, "Applied")["message"].as_str().unwrap().to_owned();
        assert!(message.contains("Deployment web") || message.contains("Deployment/web"), "{message}");
        w.until_warned("Gadget/web", "OwnershipConflict").await;
        let now = w.look("Deployment/web").await;
        assert_eq!((uid(&now), image(&now), controller(&now)), (uid(&stranger), "stranger:1", Value::Null));
        w.delete("Deployment/web").await;
        w.until_ready("Gadget/web").await;
        assert_eq!(image(&w.look("Deployment/web").await), "registry.example/gadget:1");
    });
}

#[test]
fn c5_a_foreign_object_behind_a_webhook_is_reported_as_foreign() {
    play(Scenario::embedded("the test makes the API server refuse requests"), async |w| {
        // No policy reads Services, so the operator watches only its own Services. So the operator does not see this
        // foreign Service before it applies its own Service of the same name.
        let strangers = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
            "spec": {"ports": [{"name": "http", "port": 81}]}});
        w.apply(&strangers).await;
        w.break_it(Fault::on_writes().of("services").named("web").fail(Failure::Server(400)));
        w.apply(&web()).await;
        w.until("Gadget/web has the reason OwnershipConflict for Applied", "Gadget/web", |gadget| {
            reason(gadget, "Applied") == "OwnershipConflict"
        })
        .await;
        w.mend();
        w.delete("Service/web").await;
        w.until_ready("Gadget/web").await;
    });
}

#[test]
fn c5_a_conflict_without_an_object_is_retried() {
    play(Scenario::embedded("the test makes the API server refuse requests"), async |w| {
        w.break_it(Fault::on_writes().of("deployments").named("web").fail(Failure::Conflict).times(1));
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
    });
}

#[test]
fn c5_a_name_conflict_is_retried_slowly() {
    play(Scenario::embedded("the test counts requests"), async |w| {
        w.apply(&deployment("web", "stranger:1")).await;
        w.apply(&web()).await;
        w.until("Gadget/web has the reason OwnershipConflict for Applied", "Gadget/web", |gadget| {
            reason(gadget, "Applied") == "OwnershipConflict"
        })
        .await;
        w.quiet().await;
        w.forget_requests();
        w.pass_time(Duration::from_mins(10)).await;
        let asked: Vec<_> = [Sort::Read, Sort::Write, Sort::Refused].map(|sort| w.requests(sort).len()).to_vec();
        assert!(asked.iter().sum::<usize>() <= 4, "{asked:?} reads, writes and refused writes in ten minutes");
    });
}

#[test]
fn c5_the_first_of_two_objects_owns_a_shared_child_and_the_second_inherits_it() {
    play(Scenario::default(), async |w| {
        w.apply(&gadget("one", &json!({"deployment": "shared"}))).await;
        let one = w.until_ready("Gadget/one").await;
        w.apply(&gadget("two", &json!({"deployment": "shared"}))).await;
        w.until("Gadget/two has the reason OwnershipConflict for Applied", "Gadget/two", |gadget| {
            reason(gadget, "Applied") == "OwnershipConflict"
        })
        .await;
        assert_eq!(controller(&w.look("Deployment/shared").await)["uid"], uid(&one));
        assert!(is_ready(&w.look("Gadget/one").await));
        w.delete("Gadget/one").await;
        w.until_ready("Gadget/two").await;
    });
}

#[test]
fn c5_one_of_two_simultaneous_objects_owns_the_child_and_the_other_reports_it() {
    play(Scenario::default(), async |w| {
        let [one, two] = ["one", "two"].map(|name| gadget(name, &json!({"deployment": "shared"})));
        tokio::join!(w.apply(&one), w.apply(&two));
        let both = ["Gadget/one", "Gadget/two"];
        let told = |gadget: &Value| reason(gadget, "Applied") == "OwnershipConflict";
        let has = |gadget: &Value| is_ready(gadget) && !told(gadget);
        let all = w
            .until_all("one Gadget owns the child, and the other reports the conflict", &both, |all| {
                all.iter().any(has) && all.iter().any(told)
            })
            .await;
        let owner = all.iter().position(has).unwrap();
        assert_eq!(controller(&w.look("Deployment/shared").await)["uid"], uid(&all[owner]));
        w.quiet().await;
        w.delete(both[owner]).await;
        w.until_ready(both[1 - owner]).await;
    });
}

#[test]
fn c5_a_foreign_object_that_replaced_a_child_unseen_is_not_taken_over() {
    play(Scenario::embedded("the test drops events"), async |w| {
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        w.quiet().await;
        w.break_events("deployments", EventFate::Drop);
        w.delete("Deployment/web").await;
        let stranger = w.apply(&deployment("web", "stranger:1")).await;
        w.apply(&web_with(&json!({"image": "registry.example/gadget:2"}))).await;
        w.until("Gadget/web has the reason OwnershipConflict for Applied", "Gadget/web", |gadget| {
            reason(gadget, "Applied") == "OwnershipConflict"
        })
        .await;
        let now = w.look("Deployment/web").await;
        assert_eq!((uid(&now), image(&now), controller(&now)), (uid(&stranger), "stranger:1", Value::Null));
        assert!(!now["metadata"]["managedFields"].to_string().contains("kaos-operator"), "{now}");
        w.mend();
        w.delete("Deployment/web").await;
        w.until_ready("Gadget/web").await;
    });
}

#[test]
fn c5_children_of_a_deleted_namesake_are_deleted_before_garbage_collection() {
    play(Scenario::embedded("the test stops the garbage collector"), async |w| {
        w.apply(&model_api("llm")).await;
        w.until_ready("ModelAPI/llm").await;
        let children = ["Deployment/modelapi-llm", "Service/modelapi-llm", "ConfigMap/litellm-config-llm"];
        for child in children {
            assert!(!w.look(child).await.is_null(), "{child}");
        }
        w.embedded().send_away(Controller::Garbage);
        w.delete("ModelAPI/llm").await;
        w.until_gone("ModelAPI/llm").await;
        let successor = w.apply(&model_api("llm")).await;
        let history = w.history("ModelAPI/llm").await;
        let ours = |child: &Value| controller(child)["uid"] == uid(&successor);
        let all = w.until_all("the new object owns the children", &children, |all| all.iter().all(ours)).await;
        // Let the garbage collector work again: the new object's pods become ready only after it has deleted the
        // earlier object's children.
        w.embedded().call_back(Controller::Garbage);
        w.until_ready("ModelAPI/llm").await;
        w.quiet().await;
        for (child, before) in children.into_iter().zip(&all) {
            assert_eq!(uid(&w.look(child).await), uid(before), "{child}");
        }
        let clash = history.states().into_iter().find(|api| reason(api, "Applied") == "OwnershipConflict");
        assert_eq!(clash, None);
    });
}

#[test]
fn c5_children_of_an_unseen_successor_are_not_deleted() {
    play(Scenario::embedded("the test drops events, and counts requests"), async |w| {
        w.apply(&model_api("llm")).await;
        w.until_ready("ModelAPI/llm").await;
        w.quiet().await;
        w.embedded().send_away(Controller::Garbage);
        w.break_events("modelapis", EventFate::Drop);
        w.delete("ModelAPI/llm").await;
        let successor = w.apply(&model_api("llm")).await;
        let of_successor = w.look("Service/modelapi-llm").await;
        let mut owner = controller(&of_successor);
        owner["uid"] = successor["metadata"]["uid"].clone();
        w.forget_requests();
        // Make the new object the owner of the Service, as if another replica of the operator had been faster.
        w.patch("Service/modelapi-llm", &json!({"metadata": {"ownerReferences": [owner]}})).await;
        w.pass_time(Duration::from_mins(1)).await;
        assert_eq!(uid(&w.look("Service/modelapi-llm").await), uid(&of_successor));
        assert!(w.requests(Sort::Write).iter().all(|entry| entry.attempt.verb.name() != "delete"), "{:#?}", w.writes());
        w.mend();
        w.embedded().compact();
        w.embedded().cut_watches();
        w.embedded().call_back(Controller::Garbage);
        w.until_ready("ModelAPI/llm").await;
        w.until("the new ModelAPI owns the child", "Deployment/modelapi-llm", |now| {
            controller(now)["uid"] == uid(&successor)
        })
        .await;
    });
}

#[test]
fn c6_an_object_that_just_replaced_a_child_is_not_deleted_in_its_place() {
    play(Scenario::embedded("the test delays requests"), async |w| {
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        w.break_it(Fault::on(&["delete"]).of("configmaps").slow(Duration::from_secs(20)));
        w.apply(&web_with(&json!({"leaveOut": ["ConfigMap"]}))).await;
        w.pass_time(Duration::from_secs(10)).await;
        w.delete("ConfigMap/web").await;
        let stranger = w.apply(&config_map("web", &json!({"mine": "yes"}))).await;
        w.pass_time(Duration::from_mins(1)).await;
        assert_eq!(uid(&w.look("ConfigMap/web").await), uid(&stranger));
        assert!(
            w.requests(Sort::Refused).iter().any(|entry| entry.code == 409),
            "the operator did not try to delete the object"
        );
    });
}

#[test]
fn fields_of_other_managers_are_kept_after_a_rejected_apply() {
    play(Scenario::embedded("the server must validate objects"), async |w| {
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        w.patch("Service/web", &json!({"spec": {"sessionAffinity": "ClientIP"}})).await;
        w.apply(&web_with(&json!({"does": "misspell"}))).await;
        w.until("Gadget/web has the reason ApplyFailed for Applied", "Gadget/web", |gadget| {
            reason(gadget, "Applied") == "ApplyFailed"
        })
        .await;
        w.quiet().await;
        let managed = w.look("Service/web").await["metadata"]["managedFields"].take();
        let theirs = |entry: &&Value| entry["manager"] == "somebody" && entry["operation"] == "Update";
        let theirs = managed.as_array().unwrap().iter().find(theirs).map(|entry| &entry["fieldsV1"]["f:spec"]);
        assert!(theirs.is_some_and(|spec| !spec["f:sessionAffinity"].is_null()), "{managed:#}");
        w.apply(&web_with(&json!({"port": 81}))).await;
        let service =
            w.until("the next port is applied", "Service/web", |now| now["spec"]["ports"][0]["port"] == 81).await;
        assert_eq!(service["spec"]["sessionAffinity"], "ClientIP");
        w.until_ready("Gadget/web").await;
    });
}

#[test]
fn c7_labels_that_left_the_plan_are_removed_and_foreign_ones_stay() {
    play(Scenario::default(), async |w| {
        let both = json!({"labels": {"keep": "1", "drop": "1"}, "annotations": {"keep": "1", "drop": "1"}});
        w.apply(&web_with(&both)).await;
        w.until_ready("Gadget/web").await;
        for child in CHILDREN {
            w.patch(child, &json!({"metadata": {"labels": {"foreign": "1"}, "annotations": {"foreign": "1"}}})).await;
        }
        w.apply(&web_with(&json!({"labels": {"keep": "1"}, "annotations": {"keep": "1"}}))).await;
        w.until_all("the labels are removed", &CHILDREN, |all| {
            let has = |child: &Value, key: &str| {
                ["labels", "annotations"].map(|field| entries(child, field).contains_key(key))
            };
            let good = |child: &Value| {
                has(child, "keep") == [true; 2]
                    && has(child, "foreign") == [true; 2]
                    && has(child, "drop") == [false; 2]
            };
            all.iter().all(good)
        })
        .await;
        w.quiet().await;
        assert_eq!(w.rollouts("web").await, 1);
    });
}
