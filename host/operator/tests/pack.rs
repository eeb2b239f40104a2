//! Runs `kaos-operator policy pack` as a user does.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support::{Folder, Ran, binary, finish, run};
use kaos_operator::embedded;
use kaos_policy::digest::Digest;
use serde_json::Value;

fn objects(ran: &Ran) -> Vec<Value> {
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    serde_saphyr::from_multiple(&ran.stdout).expect("YAML")
}

fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|object| object["kind"] == kind).collect()
}

fn component(folder: &Folder) -> String {
    folder.write("policy.yaml", embedded::DEFAULTS[0].manifest);
    folder.write("a.wasm", embedded::DEFAULTS[0].component)
}

#[test]
fn a_component_becomes_a_config_map_and_the_rights_that_its_claims_take() {
    let folder = Folder::new("pack");
    let ran = run(["policy", "pack", &component(&folder), "--scope", "a,b"], "");
    let objects = objects(&ran);
    let [index] = *of_kind(&objects, "ConfigMap") else { panic!("{}", ran.stdout) };
    assert_eq!(index["metadata"]["labels"]["kaos.tools/policy"], "package");
    assert_eq!(index["metadata"]["namespace"], "kaos-system");
    let name = index["metadata"]["name"].as_str().unwrap().strip_prefix("policy-").unwrap();
    // The name contains the scope, because each scope gets its own package.
    let name = name.strip_suffix(".a.b").unwrap();
    let file: Value = serde_saphyr::from_str(index["data"]["policy.yaml"].as_str().unwrap()).unwrap();
    assert_eq!((&file["name"], &file["scope"]["namespaces"][1]), (&Value::from(name), &Value::from("b")));
    assert_eq!(file["sha256"], Digest::of(embedded::DEFAULTS[0].component).to_string());
    assert!(index["binaryData"]["policy.wasm.gz"].is_string());
    let [role] = *of_kind(&objects, "ClusterRole") else { panic!("{}", ran.stdout) };
    assert_eq!(role["metadata"]["labels"]["rbac.kaos.tools/aggregate-to-operator"], "true");
    let rules = role["rules"].as_array().unwrap();
    assert!(
        rules.iter().any(|rule| rule["apiGroups"][0] == "kaos.tools" && rule["verbs"].to_string().contains("watch"))
    );
    assert!(!role["rules"].to_string().contains("leases"), "the policy's role has no rights for the operator itself");
    assert_eq!(
        of_kind(&self::objects(&run(["policy", "pack", &component(&folder), "--without-rights"], "")), "ClusterRole")
            .len(),
        0
    );
}

#[test]
fn pack_prints_bound_roles_for_an_operator_of_listed_namespaces() {
    let folder = Folder::new("pack-roles");
    let listed = ["--namespaces", "a,b", "--service-account", "kaos-kaos-operator", "--operator-namespace", "home"];
    let objects = objects(&run([&["policy", "pack", &component(&folder)], &listed[..]].concat(), ""));
    let all = of_kind(&self::objects(&run(["policy", "pack", &component(&folder)], "")), "ClusterRole")[0].clone();
    assert!(of_kind(&objects, "ClusterRole").is_empty());
    for namespace in ["a", "b"] {
        let here = |object: &&&Value| object["metadata"]["namespace"] == namespace;
        let roles = of_kind(&objects, "Role");
        let role = roles.iter().find(here).unwrap();
        assert_eq!(role["rules"], all["rules"]);
        let bindings = of_kind(&objects, "RoleBinding");
        let binding = bindings.iter().find(here).unwrap();
        assert_eq!(binding["roleRef"]["name"], role["metadata"]["name"]);
        let account = serde_json::json!({"kind": "ServiceAccount", "name": "kaos-kaos-operator", "namespace": "home"});
        assert_eq!(binding["subjects"], serde_json::json!([account]));
    }
}

#[test]
fn chart_aggregates_the_printed_rights() {
    let installed = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/install.yaml");
    let installed = std::fs::read_to_string(installed).unwrap();
    let objects: Vec<Value> = serde_saphyr::from_multiple_with_options(
        &installed,
        serde_saphyr::options! { budget: serde_saphyr::budget! { max_depth: 256 } },
    )
    .expect("YAML");
    let label = serde_json::json!({kaos_operator::rbac::AGGREGATED: "true"});
    let takes_up = |object: &&Value| object["aggregationRule"]["clusterRoleSelectors"][0]["matchLabels"] == label;
    assert_eq!(objects.iter().filter(takes_up).count(), 1);
}

#[test]
fn packing_a_packed_file_again_gives_the_same_output() {
    let folder = Folder::new("pack-again");
    let first = run(["policy", "pack", &component(&folder), "--name", "mine", "-n", "home"], "");
    let again = run(["policy", "pack", &folder.write("packed.yaml", &first.stdout), "-n", "home"], "");
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert_eq!(again.stdout, first.stdout);
}

#[test]
fn packed_file_keeps_its_namespace_and_refuses_another() {
    let folder = Folder::new("pack-place");
    let settings = folder.write("settings.yaml", "image: registry.example/agent:2\n");
    let first = run(["policy", "pack", "--settings", &settings, "--for", "agent", "-n", "team"], "");
    assert_eq!(objects(&first)[0]["metadata"]["namespace"], "team");
    let packed = folder.write("packed.yaml", &first.stdout);
    let again = finish(binary().args(["policy", "pack", &packed]).env("SYSTEM_NAMESPACE", "home"), "");
    assert_eq!((again.code, &again.stdout), (0, &first.stdout), "{}", again.stderr);
    let ran = run(["policy", "pack", &packed, "-n", "home"], "");
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    assert!(ran.stderr.contains("--namespace home: the file was packed for namespace team"), "{}", ran.stderr);
    let home = ["policy", "pack", "--settings", &settings, "--for", "agent", "--operator-namespace", "home"];
    assert_eq!(objects(&run(home, ""))[0]["metadata"]["namespace"], "home");
}

#[test]
fn unreadable_packed_file_is_reported_with_document_and_field() {
    let folder = Folder::new("pack-broken");
    let component = component(&folder);
    let with_rights = run(["policy", "pack", &component], "").stdout;
    let alone = run(["policy", "pack", &component, "--without-rights"], "").stdout;
    let broken = |text: &str| text.replacen("metadata:", "metadata: [", 1);
    for (text, told) in [
        (broken(&with_rights), "document 1: is not YAML or JSON: "),
        (broken(&alone), "document 1: is not YAML or JSON: "),
        (alone.split_once("\nmetadata:").unwrap().0.to_owned(), "document 1: metadata.name: missing"),
    ] {
        let ran = run(["policy", "pack", &folder.write("packed.yaml", &text)], "");
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{told}: {}", ran.stderr);
        assert!(ran.stderr.contains(&format!("packed.yaml: {told}")), "{told}: {}", ran.stderr);
    }
}

#[test]
fn packed_settings_without_a_component_name_their_policy() {
    let folder = Folder::new("pack-settings");
    let settings = folder.write("settings.yaml", "image: registry.example/agent:2\n");
    let objects = objects(&run(["policy", "pack", "--settings", &settings, "--for", "agent"], ""));
    assert_eq!(objects.len(), 1);
    assert_eq!(objects[0]["metadata"]["name"], "policy-agent-settings");
    let file: Value = serde_saphyr::from_str(objects[0]["data"]["policy.yaml"].as_str().unwrap()).unwrap();
    assert_eq!(file, serde_json::json!({"name": "agent", "settings": {"image": "registry.example/agent:2"}}));
    let whole = folder.write("settings/policy.yaml", objects[0]["data"]["policy.yaml"].as_str().unwrap());
    assert_eq!(self::objects(&run(["policy", "pack", &whole], "")), objects);
}

#[test]
fn pack_reports_the_path_of_an_unknown_setting() {
    let folder = Folder::new("pack-wrong");
    let settings = folder.write("settings.yaml", "imagge: x\n");
    let ran = run(["policy", "pack", "--settings", &settings, "--for", "agent"], "");
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    assert!(ran.stderr.contains("imagge") && ran.stderr.contains("image"), "{}", ran.stderr);
}

#[test]
fn pack_refuses_packages_that_a_cluster_would_refuse() {
    let folder = Folder::new("pack-refused");
    for (file, content, told) in [
        ("text.yaml", "grants: {privileges: [everything]}", "everything"),
        (
            "broken.wasm",
            "\0asm\x01\0\0\0",
            "core module: convert the module to a component with `kaos-operator policy build`",
        ),
        ("stranger.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}", "kaos.tools/policy"),
    ] {
        let ran = run(["policy", "pack", &folder.write(file, content)], "");
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{file}");
        assert!(ran.stderr.contains(told), "{}", ran.stderr);
    }
    let ran = run(["policy", "pack"], "");
    assert!(ran.code == 2 && ran.stderr.contains("X.wasm"), "{}", ran.stderr);
    let ran = run(["policy", "pack", "--for", "agent"], "");
    assert!(ran.code == 2 && ran.stderr.contains("--settings"), "{}", ran.stderr);
}

#[test]
fn pack_and_the_kustomization_of_a_new_project_name_the_same_config_map() {
    let folder = Folder::new("pack-kustomization");
    let dir = format!("{}/kite", folder.path());
    for more in [vec!["--kind", "Kite", "--api-version", "sky.io/v1"], vec!["--overlay"]] {
        let _ = std::fs::remove_dir_all(&dir);
        let ran = run(["policy", "new", "kite", "--language", "javascript", "--dir", &dir].iter().chain(&more), "");
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let [script, kustomization] = ["policy.js", "kustomization.yaml"].map(|file| format!("{dir}/{file}"));
        let packed = |more: &[&str]| {
            let ran = run(["policy", "pack", &script, "--without-rights"].iter().chain(more), "");
            (objects(&ran)[0]["metadata"]["name"].as_str().unwrap().to_owned(), ran.stderr)
        };
        let named = || -> Value {
            let text = std::fs::read_to_string(&kustomization).unwrap();
            serde_saphyr::from_str::<Value>(&text).unwrap()["configMapGenerator"][0]["name"].take()
        };
        assert_eq!(Value::from(packed(&[]).0), named());
        assert_eq!(named(), "policy-kite");

        let edit = |file: &str, old: &str, new: &str| {
            let text = std::fs::read_to_string(file).unwrap();
            assert!(text.contains(old), "{file}: no {old}");
            std::fs::write(file, text.replace(old, new)).unwrap();
        };
        edit(&script, "name: 'kite'", "name: 'heron'");
        assert_eq!(packed(&[]).0, "policy-kite", "the policy has another name, and the ConfigMap stays the same");
        edit(&kustomization, "name: policy-kite", "name: policy-birds");
        assert_eq!((packed(&[]).0.as_str(), named()), ("policy-birds", "policy-birds".into()));
        assert_eq!(packed(&["--scope", "a"]).0, "policy-heron.a", "each scope has its own package");
        let (name, told) = packed(&["--name", "policy-other"]);
        assert_eq!(name, "policy-other");
        assert!(told.contains("kustomization.yaml: names the ConfigMap policy-birds, so `kubectl apply -k`"), "{told}");
        std::fs::write(&kustomization, "configMapGenerator: [").unwrap();
        let ran = run(["policy", "pack", &script], "");
        assert!(
            ran.code == 2 && ran.stderr.contains("kustomization.yaml: cannot read the name of the package"),
            "{}",
            ran.stderr
        );
        std::fs::remove_file(&kustomization).unwrap();
        assert_eq!(packed(&[]).0, "policy-heron");
    }
}
