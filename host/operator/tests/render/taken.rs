//! Tests that `render` refuses the objects that an API server refuses, and names the field or setting to correct.

use super::{Folder, LLM, READY, render, writer};

fn with(more: &str) -> String {
    let agent = writer("writer").replace("model: gpt}", &format!("model: gpt, {more}}}"));
    format!("{LLM}{READY}---\n{agent}")
}

#[test]
fn render_refuses_invalid_pod_fields_with_their_path_in_the_object() {
    for (more, path) in [
        ("podSpec: {nodeSelecter: {a: b}}", "podSpec.nodeSelecter"),
        ("podSpec: {hostname: A_B}", "podSpec.hostname"),
        ("podSpec: {containers: [{name: A B, image: i}]}", "podSpec.containers[0].name"),
        (
            "podSpec: {containers: [{name: b, image: i, ports: [{containerPort: 65536}]}]}",
            "podSpec.containers[0].ports[0].containerPort",
        ),
        ("podSpec: {volumes: [{name: a, secret: {}}]}", "podSpec.volumes[0].secret.secretName"),
        ("container: {env: [{name: é, value: x}]}", "container.env[0].name"),
        ("container: {env: [{name: A, valueFrom: {}}]}", "container.env[0].valueFrom"),
        (
            "container: {env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: a b}}}]}",
            "container.env[0].valueFrom.secretKeyRef.key",
        ),
        ("container: {resources: {limits: {memory: -1Gi}}}", "container.resources.limits.memory"),
        ("container: {securityContext: {foo: 1}}", "container.securityContext.foo"),
        ("container: {volumeMounts: [{name: nowhere, mountPath: /a}]}", "container.volumeMounts[0].name"),
    ] {
        let ran = render(&with(more), &[]);
        assert_eq!(ran.code, 1, "{more}: {}{}", ran.stdout, ran.stderr);
        let told = format!("refused: -: document 2: Agent default/writer: spec.{path}: ");
        assert!(ran.stderr.contains(&told), "{more}: {}", ran.stderr);
    }
}

#[test]
fn render_accepts_valid_pod_fields() {
    let more = "container: {env: [{name: a b.c, value: x}], resources: {limits: {cpu: 1, a.b/gpu: 2}}}";
    let ran = render(&with(more), &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[test]
fn render_names_setting_and_file_of_an_invalid_pod_field() {
    let folder = Folder::new("taken");
    let settings = folder.write("settings.yaml", "agent: {resources: {limit: {memory: 1Gi}}}\n");
    let ran = render(&with("waitForDependencies: false"), &["--settings", &settings]);
    // Settings with this error are invalid input (exit code 2): the operator would not start with them.
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{}", ran.stderr);
    let field = "containers[0].resources.limit: Kubernetes 1.36 has no field \"limit\" here: did you mean limits?";
    let from = format!("it comes from the setting agent.resources.limit (file {settings})");
    assert!(ran.stderr.contains(field) && ran.stderr.contains(&from), "{}", ran.stderr);
}
