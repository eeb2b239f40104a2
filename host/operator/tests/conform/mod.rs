//! Tests `policy conform` and `policy bench` with scripts, because a script needs no build. Each bad script breaks
//! exactly one rule.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod project;

use kaos_operator::embedded;
use serde_json::{Value, json};

pub(crate) use self::project::{CRD, Project, with_sky};
use crate::support::{Folder, run};

/// Returns the names of the failed checks.
fn failed(findings: &Value) -> Vec<&str> {
    let checks = findings["checks"].as_array().expect("a list");
    checks.iter().filter(|check| check["result"] == "failed").map(|check| check["check"].as_str().unwrap()).collect()
}

fn check<'a>(findings: &'a Value, name: &str) -> &'a Value {
    findings["checks"].as_array().unwrap().iter().find(|check| check["check"] == name).expect("the check")
}

/// Changes the good script, and asserts that it then fails only the check with this name. Returns the result of this
/// check.
fn fails_only(name: &str, (place, code): (&str, &str)) -> Value {
    let project = Project::new(place, code);
    let ran = project.conform(&["-o", "json"]);
    assert_eq!((ran.code, failed(&ran.json())), (1, vec![name]), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.ends_with(&format!("1 of 8 checks failed: {name}\n")), "{}", ran.stderr);
    check(&ran.json(), name).clone()
}

#[test]
fn a_policy_without_problems_passes_all_checks() {
    let project = Project::new("", "");
    let ran = project.conform(&[]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(ran.stdout.matches(" passed ").count(), 8, "{}", ran.stdout);
    assert!(ran.stdout.contains("seed 0, 41 objects: ") && ran.stdout.contains("2 of 2 settings have an effect"));
    assert_eq!(project.conform(&[]).stdout, ran.stdout, "equal seeds give equal findings");
    let ran = project.conform(&["--seed", "5", "-o", "json"]);
    let findings = ran.json();
    assert_eq!((ran.code, &findings["seed"], &findings["objects"]), (0, &json!(5), &json!(41)), "{}", ran.stdout);
    let fuel = |percentile: &str| findings["fuel"][percentile].as_u64().unwrap();
    assert!(fuel("p50") <= fuel("p99") && fuel("p99") <= fuel("most"), "{}", findings["fuel"]);
    let ends: u64 = findings["ends"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(ends, 41, "{}", findings["ends"]);
    assert!(findings["ends"]["invalid"].as_u64() > Some(0), "a random title is blank: {}", findings["ends"]);
}

#[test]
fn a_failed_pass_fails_the_check_with_the_smallest_object() {
    let result = fails_only("answers", ("translation", "if (spec.mode === 'odd') throw new TypeError('odd');"));
    let counterexample = &result["counterexample"];
    assert!(counterexample["message"].as_str().unwrap().contains("odd"), "{counterexample}");
    let metadata = &counterexample["object"]["metadata"];
    assert_eq!(counterexample["object"]["spec"], json!({"mode": "odd"}), "{counterexample}");
    assert_eq!(metadata.as_object().unwrap().keys().collect::<Vec<_>>(), ["name", "namespace"]);
}

#[test]
fn a_refusal_that_names_a_field_that_the_kind_does_not_have_fails() {
    let code = "if (spec.mode === 'odd') throw kaos.invalid('spec.mdoe', 'is odd');";
    let result = fails_only("answers", ("translation", code));
    assert!(result["found"].as_str().unwrap().contains("names the path `spec.mdoe`"), "{result}");
}

#[test]
fn a_plan_that_changes_after_the_apply_fails() {
    let result = fails_only("idempotence", ("translation", "if (applied) deployment.spec.paused = true;"));
    assert!(result["found"].as_str().unwrap().contains("manifests[0].spec.paused"), "{result}");
    assert!(result["failures"].as_u64() > Some(1), "{result}");
}

#[test]
fn a_setting_without_an_effect_fails() {
    let result = fails_only("settings", ("settings", "unused: {type: 'string', default: 'a'},"));
    assert!(
        result["found"].as_str().unwrap().starts_with("settings without an effect on any object: unused: "),
        "{result}"
    );
}

#[test]
fn a_setting_that_breaks_the_policy_fails_with_the_setting() {
    let project = Project::new("settings", "list: {type: 'array', items: {type: 'string'}, default: ['a']},");
    let code = std::fs::read_to_string(&project.script).unwrap();
    let uses = "deployment.metadata.annotations = {list: settings.list[0].trim()};";
    std::fs::write(&project.script, code.replace("/* translation */", uses)).unwrap();
    let ran = project.conform(&[]);
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.ends_with("1 of 8 checks failed: answers\n"), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("with these settings:\n  list: []\n"), "{}", ran.stdout);
}

#[test]
fn a_mapped_variable_that_no_container_has_fails() {
    let code = "if (spec?.mode === 'odd') env.set('side', 'DROPPED', 'a', 'spec.mode');";
    let result = fails_only("variables", ("mapping", code));
    assert!(result["found"].as_str().unwrap().contains("DROPPED"), "{result}");
    assert_eq!(result["counterexample"]["object"]["spec"], json!({"mode": "odd"}), "{result}");
}

#[test]
fn a_manifest_that_kubernetes_refuses_fails() {
    let result =
        fails_only("manifests", ("translation", "if (spec.mode === 'odd') container.imagePullPolcy = 'Always';"));
    assert!(result["found"].as_str().unwrap().contains("imagePullPolcy"), "{result}");
}

#[test]
fn a_pass_that_uses_almost_all_fuel_fails() {
    let project = Project::new("", "");
    let most = project.conform(&["-o", "json"]).json()["fuel"]["most"].as_u64().unwrap();
    project.folder.write("policy.yaml", format!("limits: {{fuel: {}}}\n", most + most / 10));
    let ran = project.conform(&["-o", "json"]);
    assert_eq!((ran.code, failed(&ran.json())), (1, vec!["fuel"]), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn a_policy_that_does_not_pass_the_gate_fails_the_first_check_and_skips_the_others() {
    let project = Project::new("translation", "throw new TypeError('always');");
    let ran = project.conform(&["-o", "json"]);
    let findings = ran.json();
    assert_eq!((ran.code, failed(&findings)), (1, vec!["gate"]), "{}{}", ran.stdout, ran.stderr);
    let skipped = |check: &&Value| check["result"] == "skipped";
    assert_eq!(findings["checks"].as_array().unwrap().iter().filter(skipped).count(), 7, "{}", ran.stdout);
}

#[test]
fn the_printed_command_repeats_a_failure_on_one_object() {
    let project = Project::new("translation", "if (spec.mode === 'odd') throw new TypeError('odd');");
    let ran = project.conform(&["--seed", "3"]);
    let command = ran.stdout.lines().find_map(|line| line.strip_prefix("repeat: kaos-operator ")).expect("a command");
    assert!(command.contains("--seed 3 --only "), "{command}");
    let again = run(command.split(' '), "");
    assert_eq!(again.code, 1, "{}{}", again.stdout, again.stderr);
    assert!(again.stdout.contains("1 of 1 objects fail: "), "{}", again.stdout);
    let from = |text: &str| text[text.find("\nanswers: ").expect("the object")..].to_owned();
    assert_eq!(from(&again.stdout), from(&ran.stdout));
}

#[test]
fn the_junit_report_has_a_case_for_each_check() {
    let project = Project::new("translation", "if (spec.mode === 'odd') throw new TypeError('<odd> & \"even\"');");
    let ran = project.conform(&["-o", "junit"]);
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    let report = &ran.stdout;
    assert!(
        report.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites tests=\"8\" failures=\"1\""),
        "{report}"
    );
    assert!(report.contains("<testsuite name=\"policy conform kite 0.1.0\" tests=\"8\" failures=\"1\""), "{report}");
    for name in ["gate", "answers", "determinism", "idempotence", "settings", "variables", "manifests", "fuel"] {
        assert!(report.contains(&format!("name=\"{name}\">")), "{name}: {report}");
    }
    assert!(report.contains("&lt;odd&gt; &amp; &quot;even&quot;") && !report.contains("<odd>"), "{report}");
    assert!(report.contains("<failure message=") && report.contains("smallest failing object:\n"), "{report}");
    for element in ["testsuites", "testsuite", "testcase", "failure", "system-out"] {
        let opened = report.matches(&format!("<{element} ")).count() + report.matches(&format!("<{element}>")).count();
        assert_eq!(opened, report.matches(&format!("</{element}>")).count(), "{element}: {report}");
    }
}

#[test]
fn without_a_schema_the_samples_are_varied_and_objects_from_files_are_used() {
    let project = Project::new("", "");
    let kite = "apiVersion: sky.io/v1\nkind: Kite\nmetadata: {name: mine}\nspec: {title: T, replicas: 2, tags: [a]}\n";
    let file = project.folder.write("kite.yaml", kite);
    let ran = run(["policy", "conform", &project.script, "-f", &file, "--objects", "20"], "");
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(
        ran.stdout.contains("sky.io/v1 Kite has no known schema") && ran.stdout.contains("22 objects"),
        "{}",
        ran.stdout
    );
    // The command checks an object from a file in the same way as a sample.
    let bad = Project::new("translation", "if (name === 'mine') container.image = 7;");
    let ran = run(["policy", "conform", &bad.script, "-f", &file, "--objects", "0", "-o", "json"], "");
    assert_eq!((ran.code, failed(&ran.json())), (1, vec!["manifests"]), "{}{}", ran.stdout, ran.stderr);
    assert!(check(&ran.json(), "manifests")["counterexample"]["case"].as_str().unwrap().contains("kite.yaml"));
}

#[test]
fn unusable_input_ends_with_code_2_and_names_the_file() {
    let project = Project::new("", "");
    let settings = project.folder.write("settings.yaml", "prot: 1\n");
    for (more, told) in [
        (["--settings", settings.as_str()], "settings.yaml"),
        (["--settings", "nope.yaml"], "nope.yaml"),
        (["--crds", "nope.yaml"], "nope.yaml"),
        (["-f", "nope.yaml"], "nope.yaml"),
        (["--objects", "many"], "--objects"),
    ] {
        let ran = run(["policy", "conform", &project.script].iter().chain(&more), "");
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{more:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(told), "{more:?}: {}", ran.stderr);
    }
    let ran = run(["policy", "conform", "nope.js"], "");
    assert!(ran.code == 2 && ran.stderr.contains("nope.js"), "{}", ran.stderr);
}

#[test]
fn default_policies_pass_all_checks_that_do_not_concern_settings() {
    let folder = Folder::new("conform-default");
    for (number, policy) in embedded::DEFAULTS.iter().enumerate() {
        let file = folder.write(&format!("{number}/policy.wasm"), policy.component);
        folder.write(&format!("{number}/policy.yaml"), policy.manifest);
        let ran = run(["policy", "conform", &file, "--objects", "20", "-o", "json"], "");
        let findings = ran.json();
        let others: Vec<&str> = failed(&findings).into_iter().filter(|name| *name != "settings").collect();
        assert_eq!(others, [""; 0], "{}{}", ran.stdout, ran.stderr);
        assert_eq!(findings["kinds"][0]["hasSchema"], true, "{}", findings["kinds"]);
    }
}

#[test]
fn a_setting_can_have_an_effect_only_with_another_setting_and_can_be_accepted_without_an_effect() {
    let title = "title: {type: 'object', properties: {shown: {type: 'boolean', default: false}, suffix: {type: 'string', default: ''}}},";
    let project = Project::new("settings", title);
    let code = std::fs::read_to_string(&project.script).unwrap();
    let uses = "if (settings.title.shown) deployment.metadata.annotations = {title: `a${settings.title.suffix}`};";
    std::fs::write(&project.script, code.replace("/* translation */", uses)).unwrap();
    let ran = project.conform(&[]);
    assert!(ran.code == 0 && ran.stdout.contains("4 of 4 settings have an effect"), "{}{}", ran.stdout, ran.stderr);

    let project = Project::new("settings", "unused: {type: 'string', default: 'a'},");
    let ran = project.conform(&["--without-effect", "unused"]);
    assert!(ran.code == 0 && ran.stdout.contains("2 of 3 settings have an effect"), "{}{}", ran.stdout, ran.stderr);
    let ran = project.conform(&["--without-effect", "unsued"]);
    assert!(ran.code == 2 && ran.stderr.contains("did you mean unused?"), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn bench_measures_time_fuel_memory_and_sizes() {
    let folder = Folder::new("bench");
    let policy = &embedded::DEFAULTS[0];
    let file = folder.write("policy.wasm", policy.component);
    folder.write("policy.yaml", policy.manifest);
    let ran = run(["policy", "bench", &file, "--passes", "3", "-o", "json"], "");
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let figures = ran.json();
    let number =
        |path: &str| figures.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("{path}: {figures}"));
    let whole =
        |path: &str| figures.pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("{path}: {figures}"));
    assert!(whole("/objects") >= 1 && whole("/passes") == 3 * whole("/objects"), "{figures}");
    for measured in ["passNanoseconds", "fuel", "memoryBytes"] {
        let at = |percentile: &str| number(&format!("/{measured}/{percentile}"));
        assert!(at("p50") > 0.0 && at("p50") <= at("p90") && at("p90") <= at("p99") && at("p99") <= at("most"));
    }
    assert!(number("/memoryBytes/most") <= number("/memoryLimit") && number("/fuel/most") <= number("/fuelLimit"));
    assert!(whole("/sizeBytes") == policy.component.len() as u64 && number("/compiledBytes") > 0.0, "{figures}");
    assert!(number("/compileMilliseconds") > 0.0, "{figures}");
    let ran = run(["policy", "bench", &file, "--passes", "1"], "");
    for told in ["time of a pass", "fuel of a pass", "memory of a pass", "compilation", "bytes of compiled code"] {
        assert!(ran.code == 0 && ran.stdout.contains(told), "{told}: {}{}", ran.stdout, ran.stderr);
    }
}

#[test]
fn bench_refuses_unusable_input() {
    let project = Project::new("translation", "throw new TypeError('always');");
    let ran = run(["policy", "bench", &project.script], "");
    assert!(ran.code == 1 && ran.stderr.contains("always") && ran.stdout.is_empty(), "{}", ran.stderr);
    let ran = run(["policy", "bench", &project.script, "--passes", "0"], "");
    assert!(ran.code == 2 && ran.stderr.contains("--passes"), "{}", ran.stderr);
    let ran = run(["policy", "bench", "nope.js"], "");
    assert!(ran.code == 2 && ran.stderr.contains("nope.js"), "{}", ran.stderr);
}

#[test]
fn kinds_of_children_with_unknown_fields_are_named() {
    let project = with_sky();
    let ran = project.conform(&[]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let told = "does not know the fields of sky.io/v1 Sky: name the CRD with --crds";
    assert!(ran.stdout.contains(told), "{}", ran.stdout);
    let findings = project.conform(&["-o", "json"]).json();
    assert_eq!(findings["unchecked"], json!([{"apiVersion": "sky.io/v1", "kind": "Sky"}]));
}

#[test]
fn fields_of_children_with_a_known_crd_are_checked() {
    let project = with_sky();
    let sky = CRD.replace("kites", "skies").replace("kite", "sky").replace("Kite", "Sky");
    let sky = project.folder.write("sky.yaml", sky.replace("title: {type: string}", "colour: {type: string}"));
    let ran = project.conform(&["--crds", &sky, "-o", "json"]);
    assert_eq!((ran.code, failed(&ran.json())), (1, vec!["manifests"]), "{}{}", ran.stdout, ran.stderr);
    let found = check(&ran.json(), "manifests")["found"].as_str().unwrap().to_owned();
    assert!(found.contains("(Sky) spec.colur: unknown field") && found.contains("did you mean colour?"), "{found}");
}

#[test]
fn unknown_fields_of_other_workloads_fail_too() {
    let code = "deployment.kind = 'StatefulSet'; deployment.spec.serviceNam = name;";
    let project = Project::new("translation", code);
    let script = std::fs::read_to_string(&project.script).unwrap();
    std::fs::write(&project.script, script.replace("kind: 'Deployment'}]", "kind: 'StatefulSet'}]")).unwrap();
    let ran = run(["policy", "check", &project.script], "");
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("has no field \"serviceNam\" here: did you mean serviceName?"), "{}", ran.stderr);
}

#[test]
fn the_most_frequent_refusals_are_listed() {
    let project =
        Project::new("translation", "if (spec.mode !== 'odd') throw kaos.invalid('spec.mode', 'must be odd');");
    project.folder.write("policy.yaml", "grants: {}\n");
    let script = std::fs::read_to_string(&project.script).unwrap();
    std::fs::write(&project.script, script.replace("spec: {title: 'Above", "spec: {mode: 'odd', title: 'Above"))
        .unwrap();
    let ran = project.conform(&[]);
    assert!(ran.stdout.contains("spec.mode: must be odd"), "{}{}", ran.stdout, ran.stderr);
    let findings = project.conform(&["-o", "json"]).json();
    let refusals = findings["refusals"].as_array().unwrap();
    let objects = |refusal: &Value| refusal["objects"].as_u64().unwrap();
    assert!(refusals.is_sorted_by_key(|refusal| std::cmp::Reverse(objects(refusal))), "{refusals:#?}");
    let of_mode = refusals.iter().find(|refusal| refusal["about"] == "spec.mode").expect("the refusal");
    assert_eq!((&of_mode["end"], &of_mode["message"]), (&json!("invalid"), &json!("must be odd")));
    assert!(objects(of_mode) > 1 && Some(objects(of_mode)) <= findings["ends"]["invalid"].as_u64(), "{findings:#}");
}
