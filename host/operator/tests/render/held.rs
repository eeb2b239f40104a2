//! Tests `render` with the operator's own ConfigMaps among its input: the settings, and the registries of runtimes.

use super::{Folder, LLM, READY, render};

fn config(namespace: &str, data: &str) -> String {
    format!(
        "{LLM}---\napiVersion: v1\nkind: ConfigMap\n\
         metadata: {{name: kaos-operator-config, namespace: {namespace}}}\ndata: {{{data}}}\n"
    )
}

#[test]
fn operator_config_counts_only_in_the_operators_namespace() {
    let image = "image: registry.example/litellm:2\n";
    let input = config("kaos-system", "DEFAULT_LITELLM_IMAGE: 'registry.example/litellm:2'");
    let cases: [(&[&str], bool); 3] = [
        (&[], true),
        (&["--set", "modelapi.proxy.image=registry.example/litellm:3"], false),
        (&["--operator-namespace", "elsewhere"], false),
    ];
    for (more, counts) in cases {
        let ran = render(&input, more);
        assert_eq!(ran.code, 0, "{more:?}: {}", ran.stderr);
        assert_eq!(ran.stdout.contains(image), counts, "{more:?}: {}", ran.stdout);
    }
}

#[test]
fn render_names_the_invalid_variable_of_the_operator_config() {
    let ran = render(&config("kaos-system", "GATEWAY_API_ENABLED: maybe"), &[]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("GATEWAY_API_ENABLED of ConfigMap kaos-operator-config"), "{}", ran.stderr);
    let ran = render(&config("kaos-system", "GATEWAY_API_ENABLED: true"), &[]);
    assert_eq!(ran.code, 2, "{}", ran.stdout);
    assert!(ran.stderr.contains("ConfigMap kaos-system/kaos-operator-config"), "{}", ran.stderr);
}

#[test]
fn registry_in_the_operators_namespace_defines_a_runtime() {
    let registry = "---\napiVersion: v1\nkind: ConfigMap\n\
        metadata: {name: kaos-mcp-runtimes, namespace: kaos-system}\ndata:\n  runtimes.yaml: |\n    \
        runtimes:\n      mine: {type: python, image: 'registry.example/mine:1', description: mine}\n";
    let server =
        "---\napiVersion: kaos.tools/v1alpha1\nkind: MCPServer\nmetadata: {name: own}\nspec: {runtime: mine}\n";
    let ran = render(server, &[]);
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    assert!(ran.stderr.contains("unknown runtime: mine"), "{}", ran.stderr);
    let ran = render(&format!("{server}{registry}"), &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("image: registry.example/mine:1\n"), "{}", ran.stdout);
}

#[test]
fn server_with_a_known_runtime_needs_no_registry() {
    let resolved = |runtime: &str, code: i32| {
        let server = format!(
            "apiVersion: kaos.tools/v1alpha1\nkind: MCPServer\nmetadata: {{name: own}}\n\
             spec: {{runtime: {runtime}, params: 'def a(): return 1'}}\n"
        );
        let ran = render(&server, &["-o", "json"]);
        assert_eq!(ran.code, code, "{}", ran.stderr);
        let conditions = ran.json()[0]["status"]["conditions"].as_array().unwrap().clone();
        conditions.into_iter().find(|condition| condition["type"] == "Resolved").unwrap()
    };
    assert_eq!(resolved("python-string", 0)["status"], "True");
    // The settings do not contain the runtime `mine`, so the policy needs the ConfigMap `kaos-mcp-runtimes`, which is
    // missing.
    let missing = resolved("mine", 1);
    assert_eq!((&missing["status"], &missing["reason"]), (&"False".into(), &"NotFound".into()));
    assert!(missing["message"].as_str().unwrap().contains("kaos-mcp-runtimes"), "{missing}");
}

#[test]
fn grantable_privileges_do_not_limit_the_operators_own_flags() {
    let folder = Folder::new("capped");
    let power = "modelapi: {proxy: {securityContext: {privileged: true}}}\n";
    let settings = folder.write("settings.yaml", power);
    let input = format!("{LLM}{READY}");
    let ran = render(&input, &["--settings", &settings, "--grantable-privileges", "none"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("privileged: true"), "{}", ran.stdout);
    let ran = render(&input, &["--grantable-privileges", "hostPaths"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("--grantable-privileges") && ran.stderr.contains("; write `none` to allow"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_forbidden_type_has_its_own_answer_and_condition() {
    let writer = super::writer("writer");
    let ran = render(&writer, &["-o", "json", "--forbidden", "ModelAPI"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let conditions = ran.json()[0]["status"]["conditions"].as_array().unwrap().clone();
    let resolved = conditions.into_iter().find(|condition| condition["type"] == "Resolved").unwrap();
    assert_eq!(resolved["reason"], "NotPermitted", "{resolved}");
    let ran = render(&writer, &["--forbidden", "Modelapi"]);
    let told = "--forbidden Modelapi: no policy reads this type or optionally uses it: did you mean ModelAPI?";
    assert!(ran.code == 2 && ran.stderr.contains(told), "{}", ran.stderr);
}
