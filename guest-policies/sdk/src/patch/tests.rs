use super::directive::is_directive;
use super::{Problem, Schema, container, merge, pod_spec};
use serde_json::{Value, json};

/// The results of Go's `strategicpatch` for many bases and patches. The program in `tests/data/go` wrote these
/// results.
const VECTORS: &str = include_str!("../../tests/data/strategic-merge.json");

/// Removes the directives and nulls that Go leaves in `value`.
fn tidy(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, member| !is_directive(key) && !member.is_null());
            map.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}

#[test]
fn every_vector_gives_the_result_of_go_except_for_listed_deviations() {
    let vectors: Vec<Value> = serde_json::from_str(VECTORS).unwrap();
    assert!(vectors.len() > 100);
    let mut differ = Vec::new();
    for vector in vectors {
        let name = vector["name"].as_str().unwrap();
        let schema = match vector["schema"].as_str().unwrap() {
            "PodSpec" => Schema::PodSpec,
            "Container" => Schema::Container,
            "Deployment" => Schema::Deployment,
            _ => Schema::Service,
        };
        let ours = merge(vector["base"].clone(), &vector["patch"], schema).ok();
        let mut gos = vector.get("merged").cloned();
        assert_ne!(gos.is_some(), vector.get("fails").is_some(), "{name}: Go merges or fails");
        gos.iter_mut().for_each(tidy);
        let deviates = vector.get("deviation").is_some();
        let wanted = if deviates { vector.get("ours").cloned() } else { gos.clone() };
        if ours != wanted || deviates != (ours != gos) {
            differ.push(format!("{name}: {ours:?}, Go: {gos:?}"));
        }
    }
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}

fn problem(base: Value, patch: &Value) -> (String, Problem) {
    let error = merge(base, patch, Schema::PodSpec).unwrap_err();
    (error.path().to_string(), error.problem().clone())
}

#[test]
fn mistakes_are_named_with_their_path() {
    let base = json!({"containers": [{"name": "a", "env": [{"name": "A"}]}]});
    let cases = [
        (json!({"containers": [{"image": "x"}]}), "containers[0]", Problem::NoMergeKey("name")),
        (json!({"containers": ["x"]}), "containers[0]", Problem::NotAnObject),
        (
            json!({"containers": [{"name": "a", "env": [{"value": "x"}]}]}),
            "containers[0].env[0]",
            Problem::NoMergeKey("name"),
        ),
        (json!({"containers": [{"name": "a", "$patch": "x"}]}), "containers[0].$patch", Problem::UnknownDirective),
        (json!({"$retainKeys": ["a"], "b": 1}), "$retainKeys", Problem::NotRetained("b".to_owned())),
        (json!({"dnsConfig": {"$patch": "remove"}}), "dnsConfig.$patch", Problem::UnknownDirective),
        (json!({"containers": [{"name": "a", "$patch": "merge"}]}), "containers[0]", Problem::MergeInList("name")),
        (json!([]), "", Problem::NotAnObject),
    ];
    for (patch, path, wanted) in cases {
        assert_eq!(problem(base.clone(), &patch), (path.to_owned(), wanted));
    }
}

#[test]
fn for_a_policy_members_that_exclude_each_other_replace_each_other() {
    let base = json!({
        "env": [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
        "livenessProbe": {"httpGet": {"path": "/", "port": 1}, "periodSeconds": 3},
        "readinessProbe": {"httpGet": {"path": "/", "port": 1}, "periodSeconds": 3},
        "lifecycle": {"preStop": {"exec": {"command": ["x"]}}},
        "securityContext": {"seccompProfile": {"type": "Localhost", "localhostProfile": "x"}},
    });
    let patch = json!({
        "env": [
            {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
        ],
        "livenessProbe": {"tcpSocket": {"port": 2}},
        "readinessProbe": {"httpGet": {"path": "/ready"}},
        "lifecycle": {"preStop": {"sleep": {"seconds": 1}}},
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
    });
    let wanted = json!({
        "env": [
            {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
        ],
        "livenessProbe": {"tcpSocket": {"port": 2}, "periodSeconds": 3},
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 1}, "periodSeconds": 3},
        "lifecycle": {"preStop": {"sleep": {"seconds": 1}}},
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
    });
    assert_eq!(container(base, &patch).unwrap(), wanted);
}

#[test]
fn for_a_policy_two_members_that_exclude_each_other_are_refused_in_one_patch() {
    let exec = json!({"command": ["x"]});
    let get = json!({"port": 1});
    let main = |container: Value| json!({"containers": [container]});
    let env = |var: Value| main(json!({"name": "main", "env": [var]}));
    let from = json!({"fieldRef": {"fieldPath": "metadata.name"}});
    let two = json!({"fieldRef": {"fieldPath": "metadata.name"}, "secretKeyRef": {"name": "s", "key": "k"}});
    let cases = [
        (
            main(json!({"name": "main", "livenessProbe": {"exec": exec, "httpGet": get}})),
            "containers[0].livenessProbe.httpGet",
            "exec",
        ),
        (
            main(json!({"name": "new", "lifecycle": {"preStop": {"exec": exec, "tcpSocket": get}}})),
            "containers[0].lifecycle.preStop.tcpSocket",
            "exec",
        ),
        (env(json!({"name": "A", "value": "1", "valueFrom": from})), "containers[0].env[0].valueFrom", "value"),
        (env(json!({"name": "A", "valueFrom": two})), "containers[0].env[0].valueFrom.secretKeyRef", "fieldRef"),
        (
            json!({"volumes": [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}]}),
            "volumes[0].hostPath",
            "emptyDir",
        ),
    ];
    let base = json!({"containers": [{"name": "main"}]});
    for (patch, path, beside) in cases {
        let error = pod_spec(base.clone(), &patch, "main").unwrap_err();
        assert_eq!((error.path().as_str(), error.problem()), (path, &Problem::NotBeside(beside.to_owned())));
        // As in Go, the merge accepts a patch that sets both fields.
        assert!(merge(base.clone(), &patch, Schema::PodSpec).is_ok(), "only the API server rejects both together");
    }
}

#[test]
fn for_a_policy_an_empty_member_excludes_no_other() {
    let from = json!({"fieldRef": {"fieldPath": "metadata.name"}});
    for patch in [
        json!({"livenessProbe": {"exec": null, "httpGet": {"port": 1}}}),
        json!({"env": [{"name": "A", "value": "", "valueFrom": from}]}),
        json!({"env": [{"name": "A", "$patch": "delete", "value": "1", "valueFrom": from}]}),
    ] {
        assert!(container(json!({}), &patch).is_ok(), "{patch}");
    }
}

#[test]
fn for_a_policy_a_volume_has_one_source() {
    let base = json!({"volumes": [{"name": "data", "emptyDir": {}}, {"name": "other", "emptyDir": {}}]});
    let patch = json!({"volumes": [
        {"name": "data", "persistentVolumeClaim": {"claimName": "models"}},
        {"name": "other", "emptyDir": {"sizeLimit": "1Gi"}},
    ]});
    let merged = pod_spec(base, &patch, "main").unwrap();
    assert_eq!(merged["volumes"], patch["volumes"]);
}

#[test]
fn for_a_policy_its_container_stays_first_unless_the_patch_names_it() {
    let base = json!({"containers": [{"name": "main", "image": "i"}]});
    let order = |patch: Value| -> Vec<String> {
        let merged = pod_spec(base.clone(), &patch, "main").unwrap();
        let containers = merged["containers"].as_array().unwrap();
        containers.iter().map(|container| container["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(order(json!({"containers": [{"name": "one"}, {"name": "two"}]})), ["main", "one", "two"]);
    assert_eq!(order(json!({"containers": [{"name": "one"}, {"name": "main"}]})), ["one", "main"]);
    assert_eq!(order(json!({"containers": [{"name": "main"}, {"name": "one"}]})), ["main", "one"]);
    assert_eq!(order(json!({"nodeSelector": {"a": "b"}})), ["main"]);
    assert_eq!(order(Value::Null), ["main"]);
}
