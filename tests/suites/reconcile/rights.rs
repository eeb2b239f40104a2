//! G3, G7: the operator's rights. E3: which other objects a policy can read for an object. E8: requests that the
//! operator has no right to send.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kaos_cluster::faults::{Attempt, Entry};
use kaos_operator::rbac::Scope;
use kaos_policy::guard::UserPrivileges;
use kaos_tests::gadget::gadget;
use kaos_tests::harness::faults::OPERATOR;
use kaos_tests::harness::read::text;
use kaos_tests::harness::samples::{agent, mcp_server, memory_store, model_api};
use kaos_tests::harness::{Scenario, World, condition, is_ready, is_true, play, reason};
use serde_json::{Value, json};

use crate::support::{CHILDREN, image, may_change_all_but, web, web_with};

/// Returns the operator's rejected requests if `refused` is true, and its accepted requests otherwise.
fn asked(w: &World, refused: bool) -> BTreeSet<(String, String, String)> {
    let entries = w.embedded().journal().entries();
    let fits = |entry: &&Entry| {
        entry.attempt.user == OPERATOR && !entry.attempt.resource.is_empty() && (entry.code == 403) == refused
    };
    let of = |entry: &Entry| {
        let Attempt { group, resource, subresource, .. } = &entry.attempt;
        let slash = if subresource.is_empty() { "" } else { "/" };
        (entry.attempt.verb.name().to_owned(), group.clone(), format!("{resource}{slash}{subresource}"))
    };
    entries.iter().filter(fits).map(of).collect()
}

/// Creates, changes and deletes objects that have finalizers of an earlier operator. Also makes the operator change,
/// repair and prune children.
async fn live(w: &World) {
    let kaos = |kind: &str, name: &str, spec: Value| json!({"apiVersion": "kaos.tools/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec});
    let (staff, resource) = (json!([{"kind": "Group", "name": "staff"}]), json!([{"kind": "Agent", "name": "a"}]));
    let objects = [
        kaos("AccessGrant", "readers", json!({"subjects": staff, "resources": resource})),
        kaos("AuthorizationPolicy", "kaos-authz", json!({"namespaces": [w.namespace]})),
        web(),
        model_api("llm"),
        mcp_server("echo"),
        memory_store("notes", "llm"),
        agent("a", "llm", &json!({"mcpServers": ["echo"]})),
    ];
    for mut object in objects {
        let kind = object["kind"].as_str().unwrap().to_lowercase();
        if kind != "gadget" {
            object["metadata"]["finalizers"] = json!([format!("kaos.tools/{kind}-finalizer")]);
        }
        w.apply(&object).await;
    }
    // Without a decision point, an AccessGrant is never ready.
    w.until("the grant is stalled", "AccessGrant/readers", |it| is_true(it, "Stalled")).await;
    let all = [
        "AuthorizationPolicy/kaos-authz",
        "Gadget/web",
        "ModelAPI/llm",
        "MCPServer/echo",
        "MemoryStore/notes",
        "Agent/a",
    ];
    w.until_all("all objects are ready", &all, |all| all.iter().all(is_ready)).await;
    store_lives(w).await;
    w.delete("Deployment/web").await;
    w.apply(&web_with(&json!({"leaveOut": ["Service"], "image": "registry.example/gadget:2"}))).await;
    w.until_gone("Service/web").await;
    w.until_ready("Gadget/web").await;
    w.delete("Gadget/web").await;
    w.until_gone("Gadget/web").await;
    w.until_all("the children of the Gadget are gone", &CHILDREN, |all| all.iter().all(Value::is_null)).await;
}

/// Gives a `MemoryStore` a volume claim that is not in its plan, and waits until the operator has pruned this volume
/// claim. Then makes the store use an external database, and scales it to one pod.
async fn store_lives(w: &World) {
    let store = w.look("MemoryStore/notes").await;
    let owner = json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "MemoryStore", "name": "notes", "controller": true,
        "uid": store["metadata"]["uid"]});
    let labels = json!({"app.kubernetes.io/managed-by": "kaos-operator"});
    let metadata = json!({"name": "stray", "labels": labels, "ownerReferences": [owner]});
    let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    w.apply(&json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec})).await;
    w.until_gone("PersistentVolumeClaim/stray").await;
    let secret = json!({"name": "pg", "key": "dsn"});
    let storage = json!({"type": "external", "local": null, "external": {"connectionSecretRef": secret}});
    w.patch("MemoryStore/notes", &json!({"spec": {"storage": storage}})).await;
    w.until("the MemoryStore has a PodDisruptionBudget", "PodDisruptionBudget/memorystore-notes", Value::is_object)
        .await;
    w.patch("MemoryStore/notes", &json!({"spec": {"replicas": 1}})).await;
    w.until_gone("PodDisruptionBudget/memorystore-notes").await;
    w.until_ready("MemoryStore/notes").await;
}

#[test]
fn g3_the_printed_rights_suffice() {
    play(Scenario::embedded("the test decides access by stored roles").idle(), async |w| {
        w.grant_what_is_printed().await;
        w.start().await;
        live(w).await;
        assert_eq!(asked(w, true), BTreeSet::new(), "the operator sent requests without a right");
    });
}

#[test]
fn g3_every_printed_right_is_used() {
    // Make the operator behave as on an API server without streaming lists.
    let scenario = Scenario::embedded("the test decides access by stored roles").idle();
    play(scenario.tuned(|options| options.streaming_lists = false), async |w| {
        let rights = w.grant_what_is_printed().await;
        w.start().await;
        live(w).await;
        let used = asked(w, false);
        // Leave out rights for which the journal may contain no request. The API server checks some of these rights as
        // a part of another request. The operator uses the other ones only if a watch does not deliver an object.
        let implied = |verb: &str, resource: &str| {
            resource.ends_with("/finalizers") || ["get", "create"].contains(&verb) || resource == "events"
        };
        let mut idle = Vec::new();
        for rule in rights.working.iter().chain(&rights.operator) {
            let rule = rule.manifest();
            let list = |field: &str| -> Vec<String> {
                rule[field].as_array().unwrap().iter().map(|item| item.as_str().unwrap().to_owned()).collect()
            };
            for group in list("apiGroups") {
                for resource in list("resources") {
                    for verb in list("verbs") {
                        if !implied(&verb, &resource)
                            && !used.contains(&(verb.clone(), group.clone(), resource.clone()))
                        {
                            idle.push(format!("{verb} {resource}.{group}"));
                        }
                    }
                }
            }
        }
        // Leave out rights that the function `live` does not need: it creates no routes and no protection, and installs
        // no policies. Another suite tests these rights.
        let elsewhere = ["networking.k8s.io", "gateway.envoyproxy.io", "policyrevisions"];
        idle.retain(|right| !elsewhere.iter().any(|it| right.contains(it)));
        assert_eq!(idle, Vec::<String>::new());
    });
}

#[test]
fn g7_roles_in_the_listed_namespaces_suffice() {
    let listed = |options: &mut kaos_operator::operator::Options| {
        options.namespaces = Scope::Listed(BTreeSet::from(["test".to_owned()]));
    };
    play(
        Scenario::embedded("the test decides access by stored roles").idle().within("test").tuned(listed),
        async |w| {
            w.grant_what_is_printed().await;
            w.start().await;
            live(w).await;
            assert_eq!(asked(w, true), BTreeSet::new(), "the operator sent requests without a right");
            let mut elsewhere = model_api("elsewhere");
            elsewhere["metadata"]["namespace"] = json!("default");
            w.apply(&elsewhere).await;
            w.pass_time(Duration::from_mins(1)).await;
            assert_eq!(
                w.look("default:ModelAPI/elsewhere").await["status"],
                json!({"observedGeneration": -1, "ready": false})
            );
        },
    );
}

/// Returns `count` Gadgets, whose image has the tag `image`.
fn gadgets(count: usize, image: u32) -> Vec<Value> {
    let image = format!("registry.example/gadget:{image}");
    (0..count).map(|at| gadget(&format!("g-{at}"), &json!({"image": image}))).collect()
}

async fn all_have(w: &World, wanted: u32) -> bool {
    let wanted = format!("registry.example/gadget:{wanted}");
    w.list("Deployment").await.iter().all(|deployment| image(deployment) == wanted)
}

#[test]
fn e8_all_objects_and_watches_use_restored_rights_at_once() {
    play(Scenario::embedded("the test revokes rights"), async |w| {
        w.apply_all(&gadgets(30, 1)).await;
        w.until_true("all Deployments exist", async || w.list("Deployment").await.len() == 30).await;
        w.quiet().await;
        for (edit, reads) in [(10, true), (20, false)] {
            // Open watches continue without the right, as on a real API server. In the second round, the API server
            // also rejects reads, and the test cuts the watches.
            w.embedded().authorise(move |attempt| {
                attempt.user != OPERATOR || (reads && !attempt.verb.is_write()) || attempt.resource == "leases"
            });
            if !reads {
                w.embedded().cut_watches();
            }
            for more in 0..5 {
                w.pass_time(Duration::from_secs(8)).await;
                w.apply_all(&gadgets(30, edit + more)).await;
            }
            w.pass_time(Duration::from_mins(4)).await;
            if reads {
                assert_eq!(w.probe().denied(), 30);
            } else {
                let missing = w.probe().ready().unwrap_err();
                assert!(
                    missing.iter().any(|it| it.contains("Gadget: the operator lacks the right to read")),
                    "{missing:?}"
                );
            }
            w.embedded().allow_everything();
            // Wait for the longest backoff. If only writes were rejected, this is the backoff of the one object with
            // which the operator tries whether writes work again. Otherwise, it is the backoff of a watch.
            w.pass_time(Duration::from_secs(if reads { 35 } else { 65 })).await;
            assert!(all_have(w, edit + 4).await, "{:?}", w.probe().queue());
            assert_eq!((w.probe().denied(), w.probe().ready()), (0, Ok(())));
        }
    });
}

#[test]
fn e3_a_revoked_privilege_is_reported_with_its_field_and_pods_keep_running() {
    static REFUSED: AtomicBool = AtomicBool::new(false);
    let scenario = Scenario::default().tuned(|options| {
        if REFUSED.load(Ordering::Relaxed) {
            options.user_privileges = UserPrivileges::Forbidden;
        }
    });
    play(scenario, async |w| {
        let mut server = mcp_server("echo");
        server["spec"]["podSpec"] = json!({"hostNetwork": true});
        w.apply(&server).await;
        w.until_ready("MCPServer/echo").await;
        REFUSED.store(true, Ordering::Relaxed);
        w.restart().await;
        let told = w
            .until("MCPServer/echo has the reason InvalidSpec for Accepted", "MCPServer/echo", |it| {
                reason(it, "Accepted") == "InvalidSpec"
            })
            .await;
        let accepted = condition(&told, "Accepted");
        let message = accepted["message"].as_str().unwrap();
        assert!(message.starts_with("spec.podSpec.hostNetwork: asks for privilege hostNetwork, but "), "{message}");
        assert!(
            message.contains("--user-privileges=refused") && message.contains("that have the privilege keep running"),
            "{message}"
        );
        let runs = w.look("Deployment/mcpserver-echo").await;
        assert_eq!(runs["spec"]["template"]["spec"]["hostNetwork"], true);
        w.patch("MCPServer/echo", &json!({"spec": {"podSpec": null}})).await;
        let gone = |it: &Value| it["spec"]["template"]["spec"].get("hostNetwork").is_none_or(|on| *on != true);
        w.until("the pods run without the privilege", "Deployment/mcpserver-echo", gone).await;
        w.until_ready("MCPServer/echo").await;
    });
}

#[test]
fn e8_a_forbidden_request_is_reported_retried_and_heals() {
    play(Scenario::embedded("the test revokes rights"), async |w| {
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        w.embedded().authorise(|attempt| attempt.verb.name() != "patch" || attempt.resource != "deployments");
        w.apply(&web_with(&json!({"image": "registry.example/gadget:2"}))).await;
        let told = w
            .until("Gadget/web has the reason NotPermitted for Applied", "Gadget/web", |gadget| {
                reason(gadget, "Applied") == "NotPermitted"
            })
            .await;
        assert!(is_true(&told, "Accepted"), "{told:#}");
        assert!(text(&condition(&told, "Applied")["message"]).contains("deployments"), "{told:#}");
        w.embedded().allow_everything();
        w.until("Deployment/web heals", "Deployment/web", |now| image(now) == "registry.example/gadget:2").await;
        w.until_ready("Gadget/web").await;
    });
}

#[test]
fn e8_a_forbidden_deletion_of_a_child_is_reported_and_retried() {
    play(Scenario::embedded("the test revokes rights"), async |w| {
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        w.embedded().authorise(|attempt| attempt.verb.name() != "delete" || attempt.resource != "services");
        w.apply(&web_with(&json!({"leaveOut": ["Service", "Secret"]}))).await;
        let told = w
            .until("Gadget/web has the reason NotPermitted for Applied", "Gadget/web", |gadget| {
                reason(gadget, "Applied") == "NotPermitted"
            })
            .await;
        assert_eq!(told["status"]["observedGeneration"], told["metadata"]["generation"]);
        assert!(text(&condition(&told, "Applied")["message"]).contains("services"), "{told:#}");
        w.until_gone("Secret/web").await;
        w.embedded().allow_everything();
        w.until_gone("Service/web").await;
        w.until_ready("Gadget/web").await;
    });
}

#[test]
fn no_child_is_deleted_while_its_type_is_not_watched() {
    play(Scenario::embedded("the test revokes rights"), async |w| {
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        w.quiet().await;
        w.embedded()
            .authorise(|attempt| attempt.user != OPERATOR || attempt.verb.is_write() || attempt.resource != "services");
        w.embedded().cut_watches();
        for (wait, image) in [(Duration::from_secs(5), "gadget:2"), (Duration::from_mins(3), "gadget:3")] {
            w.pass_time(wait).await;
            w.apply(&web_with(&json!({"leaveOut": ["Service"], "image": image}))).await;
            let follows = |it: &Value| it["spec"]["template"]["spec"]["containers"][0]["image"] == image;
            w.until("the Deployment follows the new plan", "Deployment/web", follows).await;
            w.pass_time(Duration::from_secs(30)).await;
            assert!(w.look("Service/web").await.is_object(), "{image}");
            let known = w.probe().explain("gadgets", &w.namespace, "web").await.unwrap();
            let stays = "Service web stays although it is no longer in the plan";
            assert!(known["last"]["decisions"].to_string().contains(stays), "{known:#}");
        }
        w.embedded().allow_everything();
        w.until_gone("Service/web").await;
        w.until_ready("Gadget/web").await;
    });
}

#[test]
fn e8_a_forbidden_change_of_finalizers_is_reported_and_heals() {
    let mut api = model_api("llm");
    api["metadata"]["finalizers"] = json!(["kaos.tools/modelapi-finalizer"]);
    // The policy of Gadgets gives the Gadget a finalizer. The ModelAPI has a finalizer that an earlier operator left.
    for (object, resource, at, child) in [
        (web(), "gadgets", "Gadget/web", "Deployment/web"),
        (api, "modelapis", "ModelAPI/llm", "Deployment/modelapi-llm"),
    ] {
        play(Scenario::embedded("the test revokes rights"), async |w| {
            w.embedded().authorise(move |attempt| may_change_all_but(resource, attempt));
            w.apply(&object).await;
            let told = w
                .until("the condition Applied has the reason NotPermitted", at, |object| {
                    reason(object, "Applied") == "NotPermitted"
                })
                .await;
            assert!(is_true(&told, "Accepted"), "{told:#}");
            assert!(text(&condition(&told, "Applied")["message"]).contains(resource), "{told:#}");
            assert!(w.look(child).await.is_null(), "no child may exist before the finalizer");
            w.embedded().allow_everything();
            w.until_ready(at).await;
        });
    }
}
