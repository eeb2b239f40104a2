//! Runs `kaos-operator policy plan` as a user does.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support::{Folder, Ran, binary, finish, full, run, run_into, unread};
use kaos_operator::embedded;
use serde_json::Value;

fn team(agents: usize) -> String {
    let agent = |number: usize| {
        format!(
            "---\napiVersion: kaos.tools/v1alpha1\nkind: Agent\nmetadata: {{name: a{number}, namespace: n{}}}\n\
             spec: {{modelAPI: llm, model: gpt}}\n",
            number % 2
        )
    };
    let llm = |namespace: usize| {
        format!(
            "---\napiVersion: kaos.tools/v1alpha1\nkind: ModelAPI\nmetadata: {{name: llm, namespace: n{namespace}}}\n\
             spec: {{mode: Proxy, proxyConfig: {{models: ['*'], apiKey: {{value: topsecret}}}}}}\n\
             status: {{phase: Ready, ready: true, endpoint: 'http://llm.example:8000'}}\n"
        )
    };
    (0..2).map(llm).chain((0..agents).map(agent)).collect()
}

/// Runs `policy plan` with settings, for a team of six Agents.
fn plan(folder: &Folder, settings: &str, more: &[&str]) -> Ran {
    let settings = folder.write("settings.yaml", settings);
    let objects = folder.write("team.yaml", team(6));
    run(["policy", "plan", "--settings", &settings, "-f", &objects].iter().copied().chain(more.iter().copied()), "")
}

#[test]
fn plan_shows_a_changed_image_with_old_and_new_value() {
    let folder = Folder::new("plan-image");
    let ran = plan(&folder, "image: registry.example/agent:2\n", &["--for", "agent", "-o", "json"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    let told = ran.json();
    assert_eq!((&told["objects"], &told["changed"], &told["rolls"]), (&6.into(), &6.into(), &6.into()));
    let change = &told["changes"][0];
    assert_eq!(change["object"]["kind"], "Agent");
    let child = change["children"].as_array().unwrap().iter().find(|child| child["child"]["kind"] == "Deployment");
    let child = child.unwrap();
    let image = child["fields"].as_array().unwrap().iter().find(|f| f["path"].as_str().unwrap().ends_with("].image"));
    assert_eq!(image.unwrap()["after"], "registry.example/agent:2");
    assert!(image.unwrap()["before"].is_string());
    assert_eq!((&child["change"], &child["rolls"]), (&"changed".into(), &true.into()));
    assert!(change["before"]["fuel"].as_u64().unwrap() > 0 && change["after"]["fuel"].as_u64().unwrap() > 0);
}

#[test]
fn plan_compares_with_the_settings_of_the_operator_config() {
    let folder = Folder::new("plan-config");
    let config = "---\napiVersion: v1\nkind: ConfigMap\n\
        metadata: {name: kaos-operator-config, namespace: kaos-system}\ndata: {DEFAULT_AGENT_IMAGE: 'x:1'}\n";
    let objects = folder.write("team.yaml", team(1) + config);
    for (image, code) in [("x:1", 0), ("x:2", 2)] {
        let settings = folder.write("settings.yaml", format!("image: {image}\n"));
        let ran = run(["policy", "plan", "--settings", &settings, "--for", "agent", "-f", &objects], "");
        assert_eq!(ran.code, code, "{image}: {}{}", ran.stdout, ran.stderr);
        assert_eq!(ran.stdout.contains("x:1"), code == 2, "{image}: {}", ran.stdout);
    }
}

#[test]
fn plan_table_merges_equal_changes_of_many_objects() {
    let folder = Folder::new("plan-table");
    let ran = plan(&folder, "image: registry.example/agent:2\n", &["--for", "agent"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stdout.starts_with("OBJECT"), "{}", ran.stdout);
    assert_eq!(ran.stdout.matches("registry.example/agent:2").count(), 1, "{}", ran.stdout);
    assert!(ran.stdout.contains("6 Agents, such as n0/a0"), "{}", ran.stdout);
    assert!(
        ran.stdout.contains("Objects that change: 6 of 6. Workloads whose pods are replaced: 6."),
        "{}",
        ran.stdout
    );
}

#[test]
fn plan_changes_only_objects_in_scope() {
    let folder = Folder::new("plan-scope");
    let more = ["--for", "agent", "--scope", "n1", "-o", "json"];
    let ran = plan(&folder, "image: registry.example/agent:2\n", &more);
    assert_eq!((ran.code, &ran.json()["objects"], &ran.json()["changed"]), (2, &3.into(), &3.into()), "{}", ran.stderr);
}

#[test]
fn package_in_another_namespace_holds_there_and_refuses_another_scope() {
    let folder = Folder::new("plan-into");
    let image = "image: registry.example/agent:2\n";
    let ran = plan(&folder, image, &["--for", "agent", "--into", "n1", "-o", "json"]);
    assert_eq!((ran.code, &ran.json()["objects"], &ran.json()["changed"]), (2, &3.into(), &3.into()), "{}", ran.stderr);
    let ran = plan(&folder, image, &["--for", "agent", "--into", "n1", "--scope", "n0"]);
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    assert!(ran.stderr.contains("scope.namespaces: a policy in namespace n1 can apply only in this"), "{}", ran.stderr);
}

#[test]
fn plan_uses_the_namespace_of_a_packed_file() {
    let folder = Folder::new("plan-packed");
    let objects = folder.write("team.yaml", team(6));
    let plan = |place: &str, more: &[&str]| {
        let text = format!(
            "apiVersion: v1\nkind: ConfigMap\n\
             metadata: {{name: policy-agent-settings, {place} labels: {{kaos.tools/policy: package}}}}\n\
             data:\n  policy.yaml: |\n    name: agent\n    settings: {{image: 'x:2'}}\n"
        );
        let packed = folder.write("packed.yaml", text);
        let plan = ["policy", "plan", &packed, "-f", &objects, "-o", "json"];
        run(plan.iter().copied().chain(more.iter().copied()), "")
    };
    let cases: [(&str, &[&str], u32); 4] = [
        ("namespace: n1,", &[], 3),
        ("namespace: n1,", &["--into", "n1"], 3),
        ("", &["--into", "n1"], 3),
        ("", &[], 6),
    ];
    for (place, more, count) in cases {
        let ran = plan(place, more);
        assert_eq!((ran.code, &ran.json()["objects"]), (2, &count.into()), "{place} {more:?}: {}", ran.stderr);
    }
    let ran = plan("namespace: n1,", &["--into", "n0"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
    assert!(ran.stderr.contains("--into n0: the file was packed for namespace n1"), "{}", ran.stderr);
}

#[test]
fn plan_of_a_default_policy_with_another_default_shows_exactly_this_change() {
    let folder = Folder::new("plan-default");
    let agent = embedded::DEFAULTS.iter().find(|policy| policy.manifest.starts_with("name: agent\n")).unwrap();
    // Change the default in the component's bytes: they contain the schema of the settings as text, and the new default
    // has the same length.
    let (old, new) = (br#""default":"INFO""#, br#""default":"WARN""#);
    let mut component = agent.component.to_vec();
    let places: Vec<usize> = (0..component.len()).filter(|&at| component[at..].starts_with(old)).collect();
    assert_eq!(places.len(), 1, "the default is not once in the component");
    component[places[0]..places[0] + new.len()].copy_from_slice(new);
    folder.write("policy.yaml", agent.manifest);
    let component = folder.write("agent.wasm", component);
    let objects = folder.write("team.yaml", team(2));
    let ran = run(["policy", "plan", &component, "-f", &objects, "-o", "json"], "");
    assert_eq!(ran.code, 2, "{}{}", ran.stdout, ran.stderr);
    let told = ran.json();
    assert_eq!((&told["objects"], &told["changed"]), (&2.into(), &2.into()), "{told}");
    for change in told["changes"].as_array().unwrap() {
        let [child] = &change["children"].as_array().unwrap()[..] else { panic!("{change}") };
        assert_eq!((&child["change"], &child["child"]["kind"]), (&"changed".into(), &"Deployment".into()), "{change}");
        let [field] = &child["fields"].as_array().unwrap()[..] else { panic!("{change}") };
        assert_eq!((&field["before"], &field["after"]), (&"INFO".into(), &"WARN".into()), "{change}");
    }
}

#[test]
fn plan_of_the_policy_in_force_changes_nothing() {
    let folder = Folder::new("plan-same");
    for policy in embedded::DEFAULTS {
        folder.write("policy.yaml", policy.manifest);
        let component = folder.write("a.wasm", policy.component);
        let objects = folder.write("team.yaml", team(2));
        let ran = run(["policy", "plan", &component, "-f", &objects], "");
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.starts_with("Nothing changes for "), "{}", ran.stdout);
        // A plan with the packed form of the same component also shows no changes.
        let packed = folder.write("packed.yaml", run(["policy", "pack", &component], "").stdout);
        assert_eq!(run(["policy", "plan", &packed, "-f", &objects], "").code, 0);
    }
}

#[test]
fn plan_prints_no_secret() {
    let folder = Folder::new("plan-secret");
    for form in ["text", "json"] {
        let ran = plan(
            &folder,
            "labels: {tier: one}\nproxyImage: registry.example/proxy:2\n",
            &["--for", "modelapi", "-o", form],
        );
        assert!(!format!("{}{}", ran.stdout, ran.stderr).contains("topsecret"), "{}", ran.stdout);
    }
}

#[test]
fn plan_that_cannot_be_made_ends_with_1() {
    let folder = Folder::new("plan-wrong");
    let ran = plan(&folder, "imagge: x\n", &["--for", "agent"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
    assert!(ran.stderr.contains("imagge"), "{}", ran.stderr);
    let settings = folder.write("settings.yaml", "image: x\n");
    let ran = run(["policy", "plan", "--settings", &settings, "--for", "agent", "-f", "/nowhere.yaml"], "");
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert_eq!(run(["policy", "plan", "--nonsense"], "").code, 1);
    let nothing = folder.write("nothing.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}");
    let ran = run(["policy", "plan", "--settings", &settings, "--for", "agent", "-f", &nothing], "");
    assert!(ran.code == 1 && ran.stderr.contains("nothing to plan for"), "{}", ran.stderr);
}

#[test]
fn plan_exit_code_survives_a_closed_pipe_and_is_1_on_a_full_disk() {
    let folder = Folder::new("plan-unread");
    let settings = folder.write("settings.yaml", "image: registry.example/agent:2\n");
    let objects = folder.write("team.yaml", team(2));
    for form in ["text", "json"] {
        let plan = ["policy", "plan", "--settings", &settings, "--for", "agent", "-f", &objects, "-o", form];
        let ran = run_into(unread(), plan);
        assert_eq!(ran.code, 2, "{form}: {}", ran.stderr);
        assert!(!ran.stderr.contains("error: "), "{form}: {}", ran.stderr);
        let ran = run_into(full(), plan);
        assert_eq!(ran.code, 1, "{form}: {}", ran.stderr);
        let told = "error: standard output: No space left on device";
        assert_eq!(ran.stderr.matches(told).count(), 1, "{form}: {}", ran.stderr);
    }
}

#[test]
fn plan_of_settings_for_an_unknown_policy_ends_with_1() {
    let folder = Folder::new("plan-misspelt");
    for (name, told) in [
        ("agnet", "there is no policy agnet: did you mean agent?"),
        ("kite", "there is no policy kite: name one of agent, authorization, mcpserver, memorystore, modelapi"),
    ] {
        let ran = plan(&folder, "image: x:2\n", &["--for", name]);
        assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{name}: {}", ran.stderr);
        assert!(ran.stderr.contains(told) && !ran.stderr.contains("is not a default policy"), "{}", ran.stderr);
    }
}

#[test]
fn plan_counts_each_of_a_thousand_objects_once() {
    let folder = Folder::new("plan-thousand");
    let settings = folder.write("settings.yaml", "image: registry.example/agent:2\n");
    let objects = folder.write("team.yaml", team(1000));
    let ran = run(["policy", "plan", "--settings", &settings, "--for", "agent", "-f", &objects, "-o", "json"], "");
    let told: Value = ran.json();
    assert_eq!((ran.code, &told["objects"], &told["changed"]), (2, &1000.into(), &1000.into()), "{}", ran.stderr);
}

#[test]
fn plan_fails_for_settings_that_exceed_grantable_privileges() {
    let folder = Folder::new("plan-capped");
    let power = "securityContext: {privileged: true}\n";
    let planned = |more: &[&str]| plan(&folder, power, &[&["--for", "agent"][..], more].concat());
    let enough: [&[&str]; 2] = [&[], &["--grantable-privileges", "hostPath,privileged"]];
    for more in enough {
        let ran = planned(more);
        assert_eq!(ran.code, 2, "{more:?}: {}{}", ran.stdout, ran.stderr);
    }
    let told = "--grantable-privileges does not allow installed policies and settings to raise privilege privileged";
    for listed in ["none", "hostPath"] {
        let ran = planned(&["--grantable-privileges", listed]);
        assert_eq!(ran.code, 1, "{listed}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains("failed: Agent n0/a0: ") && ran.stderr.contains(told), "{}", ran.stderr);
    }
    // Set the limit with the environment variable of the operator's flag.
    let (settings, objects) = (folder.write("settings.yaml", power), folder.write("team.yaml", team(1)));
    let mut command = binary();
    command.args(["policy", "plan", "--settings", &settings, "--for", "agent", "-f", &objects]);
    let ran = finish(command.env("GRANTABLE_PRIVILEGES", "none"), "");
    assert!(ran.code == 1 && ran.stderr.contains(told), "{}{}", ran.stdout, ran.stderr);
    let ran = planned(&["--grantable-privileges", "hostPaths"]);
    assert!(ran.code == 1 && ran.stderr.contains("; write `none` to allow"), "{}", ran.stderr);
}

#[test]
fn plan_refuses_a_policy_that_exceeds_the_operators_limits() {
    let folder = Folder::new("plan-refused");
    let own = embedded::DEFAULTS.iter().find(|it| it.manifest.contains("name: modelapi\n")).unwrap();
    let component = folder.write("a.wasm", own.component);
    folder.write("policy.yaml", "grants: {privileges: [hostPath]}\n");
    let objects = folder.write("team.yaml", team(1));
    let planned = |cap: &str| run(["policy", "plan", &component, "-f", &objects, cap], "");
    assert_ne!(planned("--grantable-privileges=hostPath").code, 1);
    for (cap, told) in [
        (
            "--grantable-privileges=none",
            "grants.privileges: hostPath is not allowed: the operator's --grantable-privileges allows nothing",
        ),
        ("--grantable-emits=none", "is not allowed: the operator's --grantable-emits allows nothing"),
    ] {
        let ran = planned(cap);
        assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{cap}: {}", ran.stderr);
        assert!(ran.stderr.contains(told), "{cap}: {}", ran.stderr);
    }
}

#[test]
fn plan_refuses_settings_that_break_the_samples() {
    let folder = Folder::new("plan-broken");
    for settings in ["resources: {limit: {memory: 1Gi}}\n", "securityContext: {foo: 1}\n"] {
        let ran = plan(&folder, settings, &["--for", "agent"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{}", ran.stderr);
        let told = ["sample minimal of Agent: ", "it comes from the setting agent."];
        assert!(told.iter().all(|told| ran.stderr.contains(told)), "{}", ran.stderr);
    }
}

#[test]
fn plan_names_the_settings_that_a_policy_with_another_name_leaves_behind() {
    let folder = Folder::new("plan-left");
    let script = |name: &str| {
        format!(
            "export function describe() {{
  return {{name: '{name}', version: '1.0.0', claims: [{{
    primary: {{apiVersion: 'kaos.tools/v1alpha1', kind: 'Agent'}},
    emits: [{{apiVersion: 'v1', kind: 'ConfigMap'}}],
    samples: [{{name: 'one', object: {{apiVersion: 'kaos.tools/v1alpha1', kind: 'Agent',
      metadata: {{name: 'sample', namespace: 'default'}}, spec: {{modelAPI: 'llm', model: 'gpt'}}}}}}],
  }}]}};
}}
export function translate({{object}}) {{
  const {{name, namespace}} = object.metadata;
  return {{manifests: [{{apiVersion: 'v1', kind: 'ConfigMap', metadata: {{name, namespace}}}}]}};
}}
"
        )
    };
    let settings = "---\napiVersion: v1\nkind: ConfigMap\n\
        metadata: {name: own, namespace: kaos-system, labels: {kaos.tools/policy: package}}\n\
        data:\n  policy.yaml: |\n    name: agent\n    settings: {logLevel: WARN}\n";
    let objects = folder.write("team.yaml", team(1) + settings);
    let planned = |name: &str| {
        let script = folder.write("policy.js", script(name));
        run(["policy", "plan", &script, "-f", &objects], "").stderr
    };
    let told = planned("red-agent");
    for part in ["red-agent would answer instead of agent", "ConfigMap kaos-system/own", "name your policy agent too"] {
        assert!(told.contains(part), "{told}");
    }
    let told = planned("agent");
    assert!(!told.contains("would answer instead"), "{told}");
}
