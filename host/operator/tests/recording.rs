//! Runs `policy record` and `policy replay` as a user does: on an embedded cluster with and without a running operator,
//! and without a cluster.

use std::{fs, time::Duration};

use kaos_operator::{
    package::{Package, PolicyCode},
    record::Case,
};
use kaos_policy::{gate::CodeForm, manifest::PolicyFile};
use serde_json::{Value, json};

use crate::stage::{HOME, Process, Stage, edition, package, team};
use crate::support::{Folder, PROGRAM, Ran, finish, isolated, run};

/// The secret value in the objects of [`team`].
const CANARY: &str = "topsecret";

fn replay(arguments: &[&str]) -> Ran {
    run([&["policy", "replay"], arguments].concat(), "")
}

/// Records the live Agent `a`. Returns the path of the case, and the output of the command.
async fn recorded(stage: &Stage, more: &[&str]) -> (String, Ran) {
    let file = format!("{}/a.kaos", stage.folder.path());
    let ran = stage.policy(&[&["record", "agent/a", "-n", "team", "-o", &file], more].concat()).await;
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    (file, ran)
}

fn case(file: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_live_object_is_recorded_without_secrets_and_repeated_without_a_cluster() {
    let stage = Stage::start("record").await;
    team(&stage);
    let secret = json!({"token": "Y2FuYXJ5LTQ3MTE="});
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "team"}, "data": secret});
    stage.cluster.plant("", "secrets", secret);
    let (file, ran) = recorded(&stage, &[]).await;
    assert!(ran.stderr.contains("recorded: Agent team/a: decision "), "{}", ran.stderr);
    assert!(ran.stderr.contains("masked: ") && ran.stderr.contains("the masks "), "{}", ran.stderr);
    let text = fs::read_to_string(&file).unwrap();
    for hidden in [CANARY, "Y2FuYXJ5LTQ3MTE=", "canary-4711"] {
        assert!(!text.contains(hidden), "{text}");
    }
    let case = Case::parse(&text).unwrap();
    assert!(case.policies[0].from.contains("a default policy"), "{:?}", case.policies);

    let ran = replay(&[&file]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let ran_json = replay(&[&file, "-o", "json"]);
    let answer = &ran_json.json()[0];
    assert_eq!(answer["result"], "same", "{answer:#}");
    assert_eq!(answer["recorded"], answer["replayed"]);
    for told in [&case.decision.to_string(), "Agent team/a", "same"] {
        assert!(ran.stdout.contains(told), "{told}: {}", ran.stdout);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_answer_is_shown_path_by_path() {
    let stage = Stage::start("replay-differs").await;
    team(&stage);
    let (file, _) = recorded(&stage, &[]).await;
    let mut other = case(&file);
    other["inputs"]["layers"][0]["settings"]["values"]["image"] = json!("registry.example/other:2");
    let file = stage.folder.write("other.kaos", other.to_string());
    let ran = replay(&[&file]);
    assert_eq!(ran.code, 2, "{}{}", ran.stdout, ran.stderr);
    for told in ["differs", "digest: ", "spec.template.spec.containers[agent].image", "registry.example/other:2"] {
        assert!(ran.stdout.contains(told), "{told}: {}", ran.stdout);
    }
    for (text, told) in [("{}", "is not a case"), ("{\"format\": \"kaos-case/2\"}", "use a newer kaos-operator")] {
        let ran = replay(&[&stage.folder.write("wrong.kaos", text)]);
        assert!(ran.code == 1 && ran.stderr.contains(told), "{}", ran.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_candidate_is_compared_with_the_recorded_answers_as_in_a_plan() {
    let stage = Stage::start("replay-candidate").await;
    team(&stage);
    let folder = Folder::new("cases");
    for agent in ["a", "b", "c"] {
        let file = format!("{}/{agent}.kaos", folder.path());
        let ran = stage.policy(&["record", &format!("agent/{agent}"), "-n", "team", "-o", &file]).await;
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    let own = kaos_operator::embedded::DEFAULTS.iter().find(|it| it.manifest.contains("name: agent\n")).unwrap();
    let candidate = Folder::new("candidate");
    let component = candidate.write("agent.wasm", edition(1, "{}").component.unwrap().bytes);
    candidate.write("policy.yaml", own.manifest);
    let ran = replay(&[&folder.path(), "--policy", &component]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("Nothing changes for 3 objects."), "{}", ran.stdout);

    let settings = "settings:\n  image: registry.example/agent:9\n";
    candidate.write("policy.yaml", format!("{}\n{settings}", own.manifest));
    let ran = replay(&[&folder.path(), "--policy", &component, "-o", "json"]);
    assert_eq!(ran.code, 2, "{}{}", ran.stdout, ran.stderr);
    let of_replay = ran.json();
    assert_eq!((&of_replay["objects"], &of_replay["changed"]), (&json!(3), &json!(3)));
    let packed = candidate.write("image.yaml", "image: registry.example/agent:9\n");
    let ran = stage.policy(&["plan", "--settings", &packed, "--for", "agent", "-o", "json"]).await;
    let of_plan = ran.json();
    for field in ["objects", "changed", "rolls", "refused", "failed"] {
        assert_eq!(of_replay[field], of_plan[field], "{of_replay:#}\n{of_plan:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_case_of_an_installed_policy_needs_its_code() {
    let stage = Stage::start("record-installed").await;
    team(&stage);
    let (kinds, edition) = (json!(["kaos.tools/v1alpha1 Agent"]), edition(2, "{}"));
    let serves =
        json!({"state": "Active", "policy": "agent", "kinds": kinds, "claimed": "2026-01-01T00:00:00.000001Z"});
    stage.revision("agents-1", &edition, 1, &serves);
    let (file, ran) = recorded(&stage, &[]).await;
    assert!(ran.stderr.contains("record with --with-policy"), "{}", ran.stderr);
    let ran = replay(&[&file]);
    assert!(
        ran.code == 1 && ran.stderr.contains("PolicyRevision agents-1: name its file with --component"),
        "{}",
        ran.stderr
    );
    let component = stage.folder.write("agents.wasm", edition.component.unwrap().bytes);
    let ran = replay(&[&file, "--component", &component]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let (file, ran) = recorded(&stage, &["--with-policy"]).await;
    assert!(!ran.stderr.contains("needs the code"), "{}", ran.stderr);
    let ran = replay(&[&file]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
}

/// Returns the template's script, changed so that `translate` fails for the title `Crash`, and `assess` for the title
/// `Sad`.
fn script() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../guest-policies/template/javascript/policy.js");
    let text = fs::read_to_string(path).unwrap();
    let place = "  const labels = { app: 'website', 'website': name };\n";
    assert!(text.contains(place));
    let assess = "  const { tag } = seen.outcome;\n";
    assert!(text.contains(assess));
    let sad = "  if (subject.object.spec.title === 'Sad') throw new Error('cannot look at this site');\n";
    text.replace(place, &format!("  if (spec.title === 'Crash') throw new Error('crashed on purpose');\n{place}"))
        .replace(assess, &format!("{sad}{assess}"))
}

fn site(stage: &Stage, name: &str, title: &str) {
    let env = json!([{"name": "SITE_TOKEN", "value": CANARY}]);
    let site = json!({
        "apiVersion": "example.com/v1", "kind": "Website", "metadata": {"name": name, "namespace": "team"},
        "spec": {"title": title, "env": env},
    });
    stage.cluster.plant("example.com", "websites", site);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_in_a_running_operator_is_repeated_elsewhere_to_the_unit_of_fuel() {
    let stage = Stage::start("record-failure").await;
    let definition = concat!(env!("CARGO_MANIFEST_DIR"), "/../../guest-policies/template/crd.yaml");
    let definition: Value = serde_saphyr::from_str(&fs::read_to_string(definition).unwrap()).unwrap();
    stage.cluster.plant("apiextensions.k8s.io", "customresourcedefinitions", definition);
    stage.cluster.settled().await;
    let (_operator, address, log) = Process::with_debug_pages(&stage).await;
    let script = stage.folder.write("policy.js", script());
    let ran = stage.policy(&["push", &script, "--timeout", "0"]).await;
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    site(&stage, "good", "Hello");
    site(&stage, "bad", "Crash");
    site(&stage, "sad", "Sad");
    let door = format!("--from-operator={address}");
    let file = format!("{}/bad.kaos", stage.folder.path());
    for attempt in 0.. {
        let ran = stage.policy(&["record", "website/bad", "-n", "team", &door, "--with-policy", "-o", &file]).await;
        if ran.code == 0 {
            break;
        }
        assert!(attempt < 300, "{}{}", ran.stdout, ran.stderr);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let text = fs::read_to_string(&file).unwrap();
    assert!(!text.contains(CANARY), "{text}");
    let case = Case::parse(&text).unwrap();
    let shown = serde_json::to_value(&case.answer).unwrap();
    assert_eq!(shown["verdict"]["failed"]["category"], "ScriptError", "{shown:#}");
    assert!(case.answer.fuel > 0);

    let ran = replay(&[&file, "-o", "json"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let answer = &ran.json()[0];
    assert_eq!((&answer["result"], &answer["recorded"]), (&json!("same"), &answer["replayed"]));

    // If the policy fails while it assesses the live children, the operator records this failure as a decision of its
    // own.
    let file = format!("{}/sad.kaos", stage.folder.path());
    for attempt in 0.. {
        let ran = stage.policy(&["record", "website/sad", "-n", "team", &door, "--with-policy", "-o", &file]).await;
        if ran.code == 0 && Case::parse(&fs::read_to_string(&file).unwrap()).unwrap().assessed.is_some() {
            break;
        }
        assert!(attempt < 300, "{}{}", ran.stdout, ran.stderr);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("cannot look at this site") && !text.contains(CANARY), "{text}");
    let ran = replay(&[&file]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);

    // The log, the Event and the recorded decision have the same id.
    let id = case.decision.to_string();
    for attempt in 0.. {
        let events = stage.cluster.objects("", "events");
        let is_told = events.iter().any(|event| event["metadata"]["annotations"]["kaos.tools/decision"] == *id);
        if is_told && fs::read_to_string(&log).unwrap().contains(&id) {
            break;
        }
        assert!(attempt < 300, "{id}: {events:#?}\n{}", fs::read_to_string(&log).unwrap());
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let ran = stage.policy(&["record", &door, "--list"]).await;
    assert!(
        ran.code == 0 && ran.stdout.contains(&id) && ran.stdout.contains("Failure"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
    assert!(ran.stdout.contains("Website team/good") && ran.stdout.contains("Change"), "{}", ran.stdout);
    let ran = stage.policy(&["record", &door, "--decision", &id, "-o", "-"]).await;
    assert!(ran.code == 0 && ran.stdout.contains(&id) && !ran.stdout.contains(CANARY), "{}", ran.stderr);
    for kind in ["websites.example.com", "Website", "websites"] {
        let ran = stage.policy(&["record", &format!("{kind}/bad"), "-n", "team", &door, "--list"]).await;
        assert!(ran.code == 0 && ran.stdout.contains("Website team/bad"), "{kind}: {}{}", ran.stdout, ran.stderr);
        assert!(!ran.stdout.contains("team/good"), "{}", ran.stdout);
    }
    let ran = stage.policy(&["record", "nonsense/bad", "-n", "team", &door]).await;
    assert!(ran.code == 2 && ran.stderr.contains("no policy answers for this kind"), "{}", ran.stderr);
    let ran = stage.policy(&["record", "website/bad", "-n", "elsewhere", &door]).await;
    assert!(ran.code == 2 && ran.stderr.contains("in namespace elsewhere"), "{}", ran.stderr);
    let ran = stage.policy(&["record", &door, "--decision", "0000000000000000"]).await;
    assert!(ran.code == 2 && ran.stderr.contains("has no decision 0000000000000000"), "{}", ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_case_becomes_a_test_in_the_form_of_the_project() {
    let stage = Stage::start("as-test").await;
    team(&stage);
    let (file, _) = recorded(&stage, &[]).await;
    let project = Folder::new("project");
    project.write("Cargo.toml", "[package]\nname = \"own-agents-policy\"\n");
    project.write("src/lib.rs", "kaos_policy_sdk::export_policy!(Agent, no_std);\n");
    let ran = replay(&[&file, "--as-test", &project.path()]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let made = ran.stderr.split("made: ").nth(1).unwrap().trim();
    let test: Value = serde_json::from_str(&fs::read_to_string(made).unwrap()).unwrap();
    let manifests = test["expected"]["manifests"].as_array().unwrap();
    assert!(manifests.iter().any(|manifest| manifest["kind"] == "Deployment"), "{test:#}");
    assert!(manifests.iter().all(|manifest| manifest["metadata"]["ownerReferences"].is_null()), "{test:#}");
    let harness = fs::read_to_string(format!("{}/tests/cases.rs", project.path())).unwrap();
    assert!(harness.contains("use own_agents_policy::Agent;") && harness.contains("plan::<Agent>"), "{harness}");

    let project = Folder::new("script");
    project.write("policy.js", "");
    let ran = replay(&[&file, "--as-test", &project.path()]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    // For this project, `policy replay --as-test` stores the case as a test. A test that runs `render` could not repeat
    // the case, because `render` would also print the children of the ModelAPI that the Agent needs.
    let made = ran.stderr.split("made: ").nth(1).unwrap().trim();
    assert!(made.contains("/tests/cases/agent-a-"), "{made}");
    assert!(Case::parse(&fs::read_to_string(made).unwrap()).is_ok());
    let nothing = Folder::new("nothing");
    let ran = replay(&[&file, "--as-test", &nothing.path()]);
    assert!(ran.code == 1 && ran.stderr.contains("is not a project of `policy new`"), "{}", ran.stderr);
}

/// Returns a package with a script that has a Secret as a need.
fn needing_a_secret() -> Package {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../guest-policies/template/javascript/policy.js");
    let script = fs::read_to_string(path).unwrap();
    let reads = "reads: [{ apiVersion: 'v1', kind: 'Secret' }],\n      samples: [{";
    let seen = "annotations: { seen: subject.found[0].answer.tag }, labels };\n  const deployment";
    let needs = "export function needs() {
  return [{ id: 'login', target: { tag: 'named', val: { apiVersion: 'v1', kind: 'Secret', name: 'login' } } }];
}
";
    let script = script.replace("samples: [{", reads).replace("labels };\n  const deployment", seen) + needs;
    let component = Some(PolicyCode { form: CodeForm::Script, bytes: script.into_bytes().into() });
    Package { name: "sites".into(), namespace: HOME.into(), file: PolicyFile::default(), component }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_case_with_a_secret_that_the_verb_did_not_read_becomes_a_test_that_passes() {
    let stage = Stage::start("as-test-secret").await;
    let definition = concat!(env!("CARGO_MANIFEST_DIR"), "/../../guest-policies/template/crd.yaml");
    let definition: Value = serde_saphyr::from_str(&fs::read_to_string(definition).unwrap()).unwrap();
    stage.cluster.plant("apiextensions.k8s.io", "customresourcedefinitions", definition);
    stage.cluster.settled().await;
    let (kinds, package) = (json!(["example.com/v1 Website"]), needing_a_secret());
    let serves =
        json!({"state": "Active", "policy": "website", "kinds": kinds, "claimed": "2026-01-01T00:00:00.000001Z"});
    stage.revision("sites-1", &package, 1, &serves);
    site(&stage, "good", "Hello");
    let file = format!("{}/good.kaos", stage.folder.path());
    let ran = stage.policy(&["record", "website/good", "-n", "team", "--with-policy", "-o", &file]).await;
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(fs::read_to_string(&file).unwrap().contains("this command does not read Secrets"));

    let project = Folder::new("secret-project");
    project.write("policy.js", package.component.unwrap().bytes);
    let template = concat!(env!("CARGO_MANIFEST_DIR"), "/../../guest-policies/template");
    project.write("test.sh", fs::read(format!("{template}/javascript/test.sh")).unwrap());
    project.write("crd.yaml", fs::read(format!("{template}/crd.yaml")).unwrap());
    let ran = replay(&[&file, "--as-test", &project.path()]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let made = ran.stderr.split("made: ").nth(1).unwrap().trim();
    assert_eq!(fs::read_to_string(made.replace(".yaml", ".flags")).unwrap(), "--forbidden v1/Secret\n");
    let expected = fs::read_to_string(made.replace(".yaml", ".expected.yaml")).unwrap();
    assert!(expected.contains("seen: forbidden"), "{expected}");
    let mut tests = isolated("sh");
    tests.arg("test.sh").current_dir(project.path()).env("KAOS_OPERATOR", PROGRAM);
    let ran = finish(&mut tests, "");
    assert!(ran.code == 0 && ran.stdout.ends_with("passed\n"), "{}{}", ran.stdout, ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_does_not_exist_is_not_recorded() {
    let stage = Stage::start("record-none").await;
    stage.revision("agent-1", &package("x:1"), 1, &json!({"state": "Active", "policy": "agent"}));
    let ran = stage.policy(&["record", "agent/nobody", "-n", "team", "--operator-namespace", HOME]).await;
    assert!(ran.code == 2 && ran.stderr.contains("Agent team/nobody does not exist"), "{}", ran.stderr);
}
