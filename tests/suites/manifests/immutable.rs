//! Checks on a real API server which fields of children are immutable. The operator must treat exactly those fields as
//! immutable that the API server refuses to change.

use kaos_operator::plan::refused;
use kaos_tests::control_plane::{ControlPlane, Extent};
use serde_json::{Value, json};

use crate::server::{NAMESPACE, Server};

/// An object, and changes to this object. Each change has a path and a new value.
struct Case {
    object: Value,
    changes: Vec<(&'static str, Value)>,
}

fn case(api_version: &str, kind: &str, spec: &Value, changes: Vec<(&'static str, Value)>) -> Case {
    let metadata = json!({"name": "it", "namespace": NAMESPACE});
    Case { object: json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}), changes }
}

fn cases() -> Vec<Case> {
    let selector = |app: &str| json!({"matchLabels": {"app": app, "more": "x"}});
    let template = |image: &str| {
        let labels = json!({"app": "a", "app2": "b", "more": "x"});
        json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": image}]}})
    };
    let other_selector = json!({"matchLabels": {"app2": "b"}});
    let claim = |size: &str| {
        json!([{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}}}}])
    };
    let workload = || json!({"selector": selector("a"), "template": template("i:1")});
    let mut set = workload();
    set["serviceName"] = json!("s");
    set["volumeClaimTemplates"] = claim("1Gi");
    let mut pod = template("i:1")["spec"].clone();
    pod["restartPolicy"] = json!("Never");
    let job = |pod: &Value| json!({"template": {"spec": pod}, "suspend": true});
    let mut other = pod.clone();
    other["containers"][0]["image"] = json!("i:2");
    let storage = json!({"requests": {"storage": "1Gi"}});
    let volume = json!({"accessModes": ["ReadWriteOnce"], "resources": storage, "storageClassName": "a"});
    let mut settings = case("v1", "ConfigMap", &Value::Null, vec![("/data", json!({"a": "2"}))]);
    settings.object.as_object_mut().unwrap().remove("spec");
    (settings.object["data"], settings.object["immutable"]) = (json!({"a": "1"}), json!(true));
    let mut open = case("v1", "ConfigMap", &Value::Null, vec![("/data", json!({"a": "2"}))]);
    open.object.as_object_mut().unwrap().remove("spec");
    open.object["data"] = json!({"a": "1"});
    vec![
        case(
            "apps/v1",
            "StatefulSet",
            &set,
            vec![
                ("/spec/volumeClaimTemplates", claim("2Gi")),
                ("/spec/serviceName", json!("t")),
                ("/spec/podManagementPolicy", json!("Parallel")),
                ("/spec/podManagementPolicy", json!("OrderedReady")),
                ("/spec/selector", other_selector.clone()),
                ("/spec/replicas", json!(2)),
                ("/spec/template", template("i:2")),
                ("/spec/minReadySeconds", json!(5)),
                ("/spec/revisionHistoryLimit", json!(5)),
                ("/spec/ordinals", json!({"start": 1})),
                ("/spec/updateStrategy", json!({"rollingUpdate": {"partition": 1}})),
                ("/spec/persistentVolumeClaimRetentionPolicy", json!({"whenDeleted": "Delete"})),
            ],
        ),
        case(
            "apps/v1",
            "Deployment",
            &workload(),
            vec![
                ("/spec/selector", other_selector.clone()),
                ("/spec/replicas", json!(2)),
                ("/spec/strategy", json!({"rollingUpdate": {"maxSurge": 2}})),
                ("/spec/progressDeadlineSeconds", json!(60)),
            ],
        ),
        case("apps/v1", "DaemonSet", &workload(), vec![("/spec/selector", other_selector)]),
        case(
            "batch/v1",
            "Job",
            &job(&pod),
            vec![
                ("/spec/template/spec/restartPolicy", json!("OnFailure")),
                ("/spec/completionMode", json!("Indexed")),
                ("/spec/parallelism", json!(2)),
                ("/spec/backoffLimit", json!(2)),
            ],
        ),
        case(
            "v1",
            "PersistentVolumeClaim",
            &volume,
            vec![
                ("/spec/accessModes", json!(["ReadWriteMany"])),
                ("/spec/storageClassName", json!("b")),
                ("/spec/volumeMode", json!("Block")),
                ("/spec/volumeMode", json!("Filesystem")),
            ],
        ),
        settings,
        open,
    ]
}

/// Puts a value at a JSON pointer. Creates the last member of the pointer if this member is missing.
fn put(object: &mut Value, pointer: &str, value: &Value) {
    let (above, name) = pointer.rsplit_once('/').unwrap();
    object.pointer_mut(above).unwrap()[name] = value.clone();
}

#[tokio::test]
async fn the_server_refuses_every_change_that_the_plan_calls_immutable() {
    let cluster = ControlPlane::of(Extent::Api).unwrap();
    let server = Server::over(&cluster).await;
    let mut wrong = Vec::new();
    for Case { object, changes } in cases() {
        server.apply(&object).await.unwrap_or_else(|error| panic!("{object}: {error}"));
        for (pointer, value) in changes {
            let mut changed = object.clone();
            put(&mut changed, pointer, &value);
            let (known, there) = (refused(&object, &changed), server.attempt(&changed).await.err());
            if known.is_some() != there.is_some() {
                wrong.push(format!(
                    "{kind} {pointer} to {value}: the plan reports {known:?}, and the server {there:?}",
                    kind = object["kind"]
                ));
            }
        }
        server.delete(&object).await;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
