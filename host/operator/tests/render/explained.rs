//! Tests `render --explain`, which shows the origin of each value in each child.

use super::{LLM, READY, binary, finish, render, words, writer};

fn agent() -> String {
    let pod = "model: gpt, container: {image: 'mine/agent:1'}, podSpec: {priorityClassName: fast, \
               imagePullSecrets: [{name: mine}]}";
    format!("{LLM}{READY}---\n{}", writer("writer").replace("model: gpt", pod))
}

#[test]
fn each_value_of_a_child_has_its_place_and_its_layer() {
    let ran = finish(binary().args(["render", "-f", "-", "--explain"]).env("DEFAULT_LOG_LEVEL", "DEBUG"), &agent());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let of = |field: &str| {
        let lines = ran.stdout.lines().map(words);
        let line = lines.filter(|line| line.starts_with("Deployment/agent-writer ")).find(|line| line.contains(field));
        line.unwrap_or_else(|| panic!("{field}: {}", ran.stdout)).rsplit_once(field).unwrap().1.to_owned()
    };
    let pod = "spec.template.spec";
    for (field, from) in [
        (".priorityClassName ", "spec.podSpec.priorityClassName"),
        (".imagePullSecrets[0].name ", "spec.podSpec.imagePullSecrets[0].name"),
        (".containers[0].image ", "spec.container.image"),
        (".containers[0].imagePullPolicy ", "settings.imagePullPolicy, "),
        (".containers[0].livenessProbe.periodSeconds ", "settings.livenessProbe.periodSeconds, "),
        (".containers[0].name ", "the policy"),
    ] {
        let told = of(&format!("{pod}{field}"));
        assert!(told.starts_with(from), "{field}: {told}");
    }
    assert_eq!(of("metadata.namespace "), "the operator");
    assert!(
        ran.stdout.contains("spec.model\n") && ran.stdout.contains("ModelAPI/llm status.endpoint\n"),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains("settings.logLevel"), "{}", ran.stdout);
}

#[test]
fn json_always_contains_the_origins_and_the_table_excludes_other_forms() {
    let list = render(&agent(), &["-o", "json"]).json();
    let origins = list[1]["origins"].as_array().expect("a list");
    let image = origins.iter().find(|it| it["path"] == "spec.template.spec.containers[0].image").expect("the image");
    assert_eq!((&image["child"], &image["from"]), (&"Deployment/agent-writer".into(), &"spec.container.image".into()));
    for (form, told) in [("json", "-o json contains the origins"), ("yaml", "leave out --explain or -o yaml")] {
        let ran = render(&agent(), &["--explain", "-o", form]);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{form}");
        assert!(ran.stderr.contains(told), "{}", ran.stderr);
    }
    assert_eq!(render(&agent(), &["--explain", "--env"]).code, 2);
}
