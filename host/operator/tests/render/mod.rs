//! Runs `kaos-operator render` as a user does.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod differs;
mod drawn;
mod ends;
mod explained;
mod held;
mod input;
mod large;
mod taken;
mod written;

use crate::support::{Folder, Ran, binary, finish, run};

const LLM: &str = "apiVersion: kaos.tools/v1alpha1
kind: ModelAPI
metadata: {name: llm}
spec:
  mode: Proxy
  proxyConfig:
    models: ['*']
    apiKey: {value: s3cret}
";
const READY: &str = "status: {phase: Ready, ready: true, endpoint: 'http://llm.example:8000'}\n";

fn writer(name: &str) -> String {
    format!(
        "apiVersion: kaos.tools/v1alpha1\nkind: Agent\nmetadata: {{name: {name}}}\nspec: {{modelAPI: llm, model: gpt}}\n"
    )
}

fn render(input: &str, more: &[&str]) -> Ran {
    run(["render", "-f", "-"].iter().chain(more), input)
}

fn env<'a>(entry: &'a serde_json::Value, name: &str) -> &'a serde_json::Value {
    let variables = entry["env"].as_array().expect("a list");
    variables.iter().find(|variable| variable["name"] == name).unwrap_or(&serde_json::Value::Null)
}

/// Returns the words of a table's line with single spaces between them.
fn words(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn yaml_manifests_follow_a_comment_with_object_and_policy() {
    let ran = render(&format!("{LLM}{READY}---\n{}", writer("writer")), &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("# ModelAPI default/llm: policy modelapi 0.1.0 ("), "{}", ran.stdout);
    assert!(ran.stdout.contains("# Agent default/writer: policy agent 0.1.0 ("), "{}", ran.stdout);
    let manifests: Vec<serde_json::Value> = serde_saphyr::from_multiple(&ran.stdout).expect("YAML");
    let names: Vec<_> =
        manifests.iter().map(|m| format!("{}/{}", m["kind"], m["metadata"]["name"]).replace('"', "")).collect();
    assert!(names.contains(&"Deployment/agent-writer".to_owned()), "{names:?}");
    assert!(manifests.iter().all(|m| m["metadata"]["annotations"]["kaos.tools/applied-digest"].is_string()));
}

#[test]
fn waiting_object_is_rendered_and_ends_with_1() {
    let ran = render(&format!("{LLM}---\n{}", writer("writer")), &[]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.stderr.contains("waiting: -: document 2: Agent default/writer: ModelAPI is not ready"),
        "{}",
        ran.stderr
    );
    assert!(ran.stdout.contains("name: agent-writer"), "{}", ran.stdout);
}

#[test]
fn object_waits_for_a_reference_with_the_longest_name() {
    let long = [&*"a".repeat(62); 4].join(".");
    let ran = render(&writer("writer").replace("llm", &long), &[]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("waiting: -: document 1: Agent default/writer: "), "{}", ran.stderr);
}

#[test]
fn refused_object_is_reported_with_file_document_and_path() {
    let folder = Folder::new("refused");
    let file =
        folder.write("a.yaml", LLM.replace("  proxyConfig:\n    models: ['*']\n    apiKey: {value: s3cret}\n", ""));
    let ran = run(["render", "-f", &file], "");
    assert_eq!(ran.code, 1);
    assert!(
        ran.stderr.contains(&format!("refused: {file}: document 1: ModelAPI default/llm: spec.proxyConfig: ")),
        "{}",
        ran.stderr
    );
}

#[test]
fn json_has_one_complete_entry_for_each_object() {
    let ran = render(&format!("{LLM}{READY}---\n{}", writer("writer")), &["-o", "json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let list = ran.json();
    let entry = &list[1];
    let mut fields: Vec<_> = entry.as_object().expect("an object").keys().map(String::as_str).collect();
    fields.sort_unstable();
    assert_eq!(
        fields,
        ["env", "fuel", "gates", "manifests", "notes", "object", "origins", "policy", "refused", "status"]
    );
    assert_eq!(
        entry["object"],
        serde_json::json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "Agent", "namespace": "default", "name": "writer"})
    );
    assert_eq!(entry["policy"]["name"], "agent");
    assert!(entry["policy"]["digest"].as_str().expect("a text").starts_with("sha256:"));
    assert!(entry["fuel"].as_u64().expect("a number") > 10_000);
    assert!(entry["refused"].is_null());
    assert_eq!(env(entry, "MODEL_API_URL")["value"], "http://llm.example:8000");
    assert_eq!(env(entry, "MODEL_API_URL")["container"], "agent");
    assert_eq!(entry["status"]["phase"], "Pending");
    assert_eq!(entry["status"]["policy"]["name"], "agent");
    let accepted = &entry["status"]["conditions"][0];
    assert_eq!((&accepted["type"], &accepted["status"]), (&"Accepted".into(), &"True".into()));
}

#[test]
fn plan_gates_are_listed_and_do_not_change_the_manifests() {
    let input = format!("{LLM}---\n{}", writer("writer"));
    let waiting = render(&input, &["-o", "json"]).json();
    assert_eq!(waiting[1]["gates"][0]["on"]["name"], "llm");
    assert_eq!(waiting[0]["gates"], serde_json::json!([]));

    // All planned children exist now, so the plan gate no longer holds back the plan.
    let there: Vec<String> =
        waiting[1]["manifests"].as_array().expect("a list").iter().map(|it| format!("---\n{it}\n")).collect();
    let ran = render(&format!("{input}{}", there.concat()), &["-o", "json"]);
    let started = ran.json();
    assert_eq!((ran.code, &started[1]["gates"]), (0, &serde_json::json!([])), "{}", ran.stderr);
    assert_eq!(started[1]["manifests"], waiting[1]["manifests"]);
}

#[test]
fn json_contains_the_reason_of_a_refusal() {
    let list = render(&writer("writer"), &["-o", "json"]).json();
    assert_eq!(list[0]["refused"]["reason"], "Waiting");
    assert!(list[0]["refused"]["messages"][0]["message"].as_str().expect("a text").contains("llm not found"));
    assert_eq!(list[0]["manifests"], serde_json::json!([]));
}

#[test]
fn object_without_a_status_is_seen_with_its_first_status() {
    let list = render(&format!("{}---\n{LLM}", writer("writer")), &["-o", "json"]).json();
    assert_eq!(env(&list[0], "MODEL_API_URL")["value"], "http://modelapi-llm.default.svc.cluster.local:8000");
}

#[test]
fn objects_in_a_circle_of_needs_see_each_other() {
    let circle = |name: &str, peer: &str| {
        format!(
            "---\n{}",
            writer(name).replace("model: gpt", &format!("model: gpt, agentNetwork: {{access: [{peer}]}}"))
        )
    };
    let input = format!("{LLM}{READY}{}{}{}", circle("a", "b"), circle("b", "c"), circle("c", "a"));
    let list = render(&input, &["-o", "json"]).json();
    for (position, peer) in [(1, "b"), (2, "c"), (3, "a")] {
        assert_eq!(env(&list[position], "PEER_AGENTS")["value"], peer, "{position}");
    }
}

#[test]
fn long_chain_of_needs_is_rendered_to_its_end() {
    let mut input = LLM.to_owned() + READY;
    for number in 0..200 {
        let access = format!("model: gpt, agentNetwork: {{access: [a{}]}}", number + 1);
        input += &format!("---\n{}", writer(&format!("a{number}")).replace("model: gpt", &access));
    }
    input += &format!("---\n{}", writer("a200"));
    let ran = render(&input, &["-o", "json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let list = ran.json();
    assert_eq!(env(&list[1], "PEER_AGENTS")["value"], "a1");
    assert_eq!(env(&list[200], "PEER_AGENTS")["value"], "a200");
}

#[test]
fn env_table_shows_origins_and_masks_secrets() {
    let input = format!("{LLM}{READY}---\n{}", writer("writer"));
    let ran = finish(binary().args(["render", "-f", "-", "--env"]).env("DEFAULT_LOG_LEVEL", "DEBUG"), &input);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let line = |name: &str| words(ran.stdout.lines().find(|line| line.contains(name)).unwrap_or_default());
    assert!(line("PROXY_API_KEY").contains("********"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("s3cret"), "{}", ran.stdout);
    assert!(
        line(" LOG_LEVEL").contains("DEBUG settings.logLevel, DEFAULT_LOG_LEVEL of the environment"),
        "{}",
        ran.stdout
    );
    assert!(line("MODEL_NAME").contains("spec.model"), "{}", ran.stdout);
}

#[test]
fn env_table_combines_with_status_but_not_with_json_or_yaml() {
    let input = format!("{LLM}---\n{}", writer("writer"));
    let plain = render(&input, &["--env"]);
    assert_eq!(render(&input, &["--env", "-o", "table"]).stdout, plain.stdout);
    let told = render(&input, &["--env", "--status"]);
    assert_eq!(told.stdout.lines().count(), plain.stdout.lines().count());
    assert!(told.stdout.contains("\nAgent default/writer: Waiting: ModelAPI is not ready\n"), "{}", told.stdout);
    for (form, told) in [("json", "-o json contains the variables"), ("yaml", "leave out --env or -o yaml")] {
        let ran = render(&input, &["--env", "-o", form]);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{form}");
        assert!(ran.stderr.contains(told), "{}", ran.stderr);
    }
}

#[test]
fn command_line_settings_win_over_file_and_file_over_environment() {
    let folder = Folder::new("settings");
    let file = folder.write("settings.yaml", "logLevel: INFO\nagent: {image: 'from.example/file'}\n");
    let input = format!("{LLM}{READY}---\n{}", writer("writer"));
    let mut command = binary();
    command.args(["render", "-f", "-", "-o", "json", "--settings", &file, "--set", "agent.logLevel=WARNING"]);
    let list =
        finish(command.env("DEFAULT_LOG_LEVEL", "DEBUG").env("DEFAULT_AGENT_IMAGE", "env.example/image"), &input)
            .json();
    assert_eq!(env(&list[1], "LOG_LEVEL")["value"], "WARNING");
    assert_eq!(env(&list[0], "LITELLM_LOG")["value"], "INFO");
    let deployment =
        list[1]["manifests"].as_array().expect("a list").iter().find(|m| m["kind"] == "Deployment").expect("one");
    assert_eq!(deployment["spec"]["template"]["spec"]["containers"][0]["image"], "from.example/file");
}

#[test]
fn unknown_setting_is_an_error() {
    for arguments in [["--set", "logLevle=DEBUG"], ["--set", "agent.nothing=1"], ["--set", "novalue"]] {
        let ran = render(LLM, &arguments);
        assert_eq!(ran.code, 2, "{arguments:?}: {}", ran.stdout);
        assert!(ran.stderr.starts_with("error: setting"), "{}", ran.stderr);
    }
}

#[test]
fn refused_setting_is_reported_with_the_allowed_values() {
    for (set, told) in [
        ("imagePullPolicy=Foo", "must be one of \"Always\", \"IfNotPresent\", \"Never\": correct it"),
        ("agent.colour=red", "does not exist: use one of "),
        ("colour=red", "see docs/reference/settings.md"),
    ] {
        let ran = render(LLM, &["--set", set]);
        assert!(ran.code == 2 && ran.stderr.contains(told), "{set}: {}", ran.stderr);
    }
    // If the schema allows any content for a setting, `--set` accepts a path below this setting, as a settings file
    // does.
    let ran = render(&format!("{LLM}{READY}"), &["--set", "modelapi.proxy.resources.limits.memory=77Mi"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("memory: 77Mi"), "{}", ran.stdout);
}

#[test]
fn render_leaves_out_types_that_are_not_served() {
    let with = ["--set", "gateway.enabled=true", "--set", "gateway.name=gw", "--set", "gateway.namespace=gw"];
    let input = format!("{LLM}{READY}");
    assert!(render(&input, &with).stdout.contains("kind: HTTPRoute\n"));
    for named in ["HTTPRoute", "gateway.networking.k8s.io/v1/HTTPRoute"] {
        let without: Vec<_> = with.iter().copied().chain(["--unserved", named]).collect();
        assert!(!render(&input, &without).stdout.contains("kind: HTTPRoute\n"));
    }
    for (named, told) in [("Nonsense", "name one of "), ("HttpRoutes", "did you mean HTTPRoute?")] {
        let ran = render(&input, &["--unserved", named]);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{named}");
        assert!(ran.stderr.contains(&format!("--unserved {named}: ")) && ran.stderr.contains(told), "{}", ran.stderr);
    }
}

#[test]
fn env_table_prints_values_in_full_and_escapes_control_characters() {
    let long = "x".repeat(300);
    let object = writer("writer").replace(
        "model: gpt",
        &format!(
            "model: gpt, container: {{env: [{{name: LONG, value: {long}}}, {{name: TURNED, value: \"a\\u202Eb\"}}]}}"
        ),
    );
    let ran = render(&format!("{LLM}{READY}---\n{object}"), &["--env"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains(&long) && ran.stdout.contains("a\\u{202e}b"), "{}", ran.stdout);
    assert!(!ran.stdout.contains('\u{202e}'));
}

#[test]
fn empty_environment_variable_counts_as_unset() {
    let input = format!("{LLM}{READY}---\n{}", writer("writer"));
    let mut command = binary();
    command.env("SYSTEM_NAMESPACE", "").env("KUBERNETES_CLUSTER_DOMAIN", "");
    let ran = finish(command.args(["render", "-f", "-", "-o", "json"]), &input);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.json()[0]["status"]["endpoint"], "http://modelapi-llm.default.svc.cluster.local:8000");
}

#[test]
fn table_has_one_line_for_each_object() {
    let ran = render(&format!("{LLM}{READY}---\n{}", writer("writer")), &["-o", "table", "--status"]);
    let lines: Vec<_> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{}", ran.stdout);
    assert!(lines[0].starts_with("OBJECT") && lines[0].ends_with("MESSAGE"), "{}", ran.stdout);
    let writer = "Agent default/writer agent 0.1.0 rendered Deployment/agent-writer, Service/agent-writer Pending ";
    assert!(words(lines[2]).starts_with(writer), "{}", ran.stdout);
}

#[test]
fn render_handles_a_thousand_objects() {
    let mut input = LLM.to_owned() + READY;
    for number in 0..1_000 {
        input += &format!("---\n{}", writer(&format!("a{number}")));
    }
    let ran = render(&input, &["-o", "json"]);
    assert_eq!(ran.json().as_array().expect("a list").len(), 1_001);
}

#[test]
fn control_characters_of_an_object_are_escaped() {
    let server = "apiVersion: kaos.tools/v1alpha1\nkind: MCPServer\nmetadata: {name: m}\nspec: {runtime: \"\\e[2J\"}\n";
    let ran = render(server, &[]);
    assert!(ran.stderr.contains("u{1b}") && !ran.stderr.contains('\u{1b}'), "{:?}", ran.stderr);
}

#[test]
fn hidden_characters_of_an_object_are_escaped_in_yaml() {
    let hidden = "a\u{202e}b\u{200b}c";
    let variable = format!("container: {{env: [{{name: X, value: \"{hidden}\"}}]}}");
    let object = writer("writer").replace("model: gpt", &format!("model: gpt, {variable}"));
    let ran = render(&format!("{LLM}{READY}---\n{object}"), &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains(r#""a\u202Eb\u200Bc""#), "{}", ran.stdout);
    assert!(!ran.stdout.contains(['\u{202e}', '\u{200b}']));
    let manifests: Vec<serde_json::Value> = serde_saphyr::from_multiple(&ran.stdout).expect("YAML");
    assert!(manifests.iter().any(|manifest| manifest.to_string().contains(hidden)));
}

#[test]
fn status_messages_are_cut_to_a_limit() {
    let variables = "{name: A=B, value: x}, ".repeat(500);
    let object = writer("writer").replace("model: gpt", &format!("model: gpt, container: {{env: [{variables}]}}"));
    let list = render(&format!("{LLM}{READY}---\n{object}"), &["-o", "json"]).json();
    assert_eq!(list[1]["refused"]["messages"].as_array().map(Vec::len), Some(500));
    let (status, mut messages) = (&list[1]["status"], Vec::new());
    messages.extend(status["message"].as_str());
    messages.extend(status["conditions"].as_array().into_iter().flatten().filter_map(|it| it["message"].as_str()));
    assert!(messages.iter().all(|message| message.len() <= 4000), "{messages:?}");
    assert!(messages[0].ends_with('…') && messages[1].ends_with('…'), "{messages:?}");
}
