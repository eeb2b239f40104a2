use super::{Problem, Schema, container, merge, pod_spec};
use serde_json::{Value, json};

/// What Go's `strategicpatch` makes of many bases and patches; `tests/data/go` prints it.
const VECTORS: &str = include_str!("../../tests/data/strategic-merge.json");

/// Cases where Go drops the content of a directive, see the module's documentation.
const BETTER: [&str; 0] = [];

/// `value` as Go would have it without the directives and nulls that it leaves behind.
fn tidy(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, member| !key.starts_with('$') && !member.is_null());
            map.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}

#[test]
fn every_vector_of_go_gives_the_same_result() {
    let vectors: Vec<Value> = serde_json::from_str(VECTORS).unwrap();
    assert!(vectors.len() > 100);
    for vector in vectors {
        let name = vector["name"].as_str().unwrap();
        if BETTER.contains(&name) {
            continue;
        }
        let schema = match vector["schema"].as_str().unwrap() {
            "PodSpec" => Schema::PodSpec,
            "Container" => Schema::Container,
            "Deployment" => Schema::Deployment,
            _ => Schema::Service,
        };
        match merge(vector["base"].clone(), &vector["patch"], schema) {
            Ok(merged) => {
                let mut wanted = vector["merged"].clone();
                tidy(&mut wanted);
                assert_eq!(merged, wanted, "{name}");
            }
            Err(error) => assert_eq!(vector["fails"], json!(true), "{name}: {error}"),
        }
    }
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
        (json!([]), "", Problem::NotAnObject),
    ];
    for (patch, path, wanted) in cases {
        assert_eq!(problem(base.clone(), &patch), (path.to_owned(), wanted));
    }
}

#[test]
fn a_replacement_of_nothing_puts_its_content_there() {
    let merged = merge(json!({}), &json!({"securityContext": {"$patch": "replace", "fsGroup": 1}}), Schema::PodSpec);
    assert_eq!(merged.unwrap(), json!({"securityContext": {"fsGroup": 1}}));
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
