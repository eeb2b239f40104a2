//! Runs `kaos-operator policy new` as a user does. `tests/run wasm` checks that the new project builds and passes its
//! tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;

use crate::support::{Folder, Ran, run};

const SDK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../guest-policies/sdk");
const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn new(more: &[&str]) -> Ran {
    run(["policy", "new", "kite", "--kind", "Kite", "--api-version", "sky.io/v1"].iter().chain(more), "")
}

#[test]
fn new_project_is_in_the_given_folder_and_finds_its_sdk() {
    let folder = Folder::new("new");
    for (at, sdk) in [("a", SDK), ("b", REPOSITORY)] {
        let dir = format!("{}/{at}/kite", folder.path());
        let ran = new(&["--dir", &dir, "--sdk", sdk]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let read = |name: &str| fs::read_to_string(format!("{dir}/{name}")).unwrap();
        let sdk = fs::canonicalize(SDK).unwrap();
        assert!(read("Cargo.toml").contains(&format!("path = \"{}\"", sdk.display())), "{}", read("Cargo.toml"));
        assert!(read("src/lib.rs").contains("sky.io/v1"));
        for file in ["policy.yaml", ".github/workflows/policy.yml"] {
            serde_saphyr::from_str::<serde_json::Value>(&read(file)).unwrap();
        }
        assert!(read("README.md").contains("policy push kite.wasm"));
        assert!(read(".cargo/config.toml").contains("test-runner"));
    }
}

#[test]
fn a_new_script_project_passes_its_tests_and_its_check_with_this_program_alone() {
    let folder = Folder::new("new-script");
    let dir = format!("{}/kite", folder.path());
    let ran = new(&["--dir", &dir, "--language", "javascript"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("run `sh test.sh` there"), "{}", ran.stderr);
    let tests = || {
        let program = env!("CARGO_BIN_EXE_kaos-operator");
        std::process::Command::new("sh")
            .arg("test.sh")
            .current_dir(&dir)
            .env("KAOS_OPERATOR", program)
            .output()
            .unwrap()
    };
    for _ in ["writes the expected manifests", "compares them"] {
        let passed = tests();
        assert!(passed.status.success(), "{passed:?}");
    }
    let script = fs::read_to_string(format!("{dir}/policy.js")).unwrap();
    fs::write(format!("{dir}/policy.js"), script.replace("protocol: 'TCP'", "protocol: 'UDP'")).unwrap();
    let failed = tests();
    assert!(!failed.status.success() && String::from_utf8_lossy(&failed.stdout).contains("UDP"), "{failed:?}");
    let ran = run(["policy", "pack", &format!("{dir}/policy.js")], "");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("policy.js: |") && !ran.stdout.contains("sha256"), "{}", ran.stdout);
}

#[test]
fn a_new_go_project_contains_its_library_and_says_how_to_test_it() {
    let folder = Folder::new("new-go");
    let dir = format!("{}/kite", folder.path());
    let ran = new(&["--dir", &dir, "--language", "go"]);
    assert!(ran.code == 0 && ran.stderr.contains("run `go test ./...` there"), "{}", ran.stderr);
    let read = |name: &str| fs::read_to_string(format!("{dir}/{name}")).unwrap();
    assert!(read("policy.go").contains("\"kite-policy/kaos/policy\""), "{}", read("policy.go"));
    assert!(read("kaos/policy/pass.go").contains("\"kite-policy/kaos\""), "{}", read("kaos/policy/pass.go"));
    for file in ["policy.yaml", ".github/workflows/policy.yml", "crd.yaml"] {
        serde_saphyr::from_str::<serde_json::Value>(&read(file)).unwrap();
    }
    assert!(read("README.md").contains("policy push kite.wasm"));
}

#[test]
fn the_ci_file_installs_the_operator_from_the_named_source() {
    let folder = Folder::new("new-ci");
    let ci = |name: &str, more: &[&str]| {
        let dir = format!("{}/{name}", folder.path());
        let ran = new(&[&["--dir", &dir], more].concat());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        (fs::read_to_string(format!("{dir}/.github/workflows/policy.yml")).unwrap(), ran.stderr)
    };
    let (text, told) = ci("release", &["--language", "javascript"]);
    assert!(text.contains("--tag v") && told.contains("name another source with --operator"), "{told}");
    let (text, told) = ci("url", &["--language", "go", "--operator", "https://x.io/y#v2"]);
    assert!(text.contains("cargo install --locked --git https://x.io/y --tag v2 kaos-operator --features"), "{text}");
    assert!(!told.contains("--operator"), "{told}");
    let (text, _) = ci("path", &["--language", "python", "--operator", "vendor/operator"]);
    assert!(text.contains("cargo install --locked --path vendor/operator/host/operator --features"), "{text}");
    let (text, told) = ci("sdk", &["--sdk", "https://x.io/y"]);
    assert!(text.contains("--git https://x.io/y kaos-operator") && !told.contains("--operator"), "{text}{told}");
    let ran = new(&["--language", "go", "--operator", "/home/me/operator"]);
    assert!(ran.code == 2 && ran.stderr.contains("is a directory of this machine"), "{}", ran.stderr);
}

#[test]
fn a_script_needs_no_sdk_and_a_default_policy_is_no_script() {
    let ran = new(&["--language", "javascript", "--sdk", SDK]);
    assert!(ran.code == 2 && ran.stderr.contains("--sdk is only for a policy in Rust"), "{}", ran.stderr);
    let ran = run(["policy", "new", "own", "--from", "agent", "--language", "javascript"], "");
    assert!(ran.code == 2 && ran.stderr.contains("the default policies are written in Rust"), "{}", ran.stderr);
    let ran = new(&["--language", "rust"]);
    assert!(ran.code == 2 && ran.stderr.contains("--sdk is missing"), "{}", ran.stderr);
}

#[test]
fn new_refuses_a_folder_that_is_not_empty() {
    let folder = Folder::new("new-twice");
    folder.write("precious", "mine");
    let ran = new(&["--dir", &folder.path(), "--sdk", SDK]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("not empty") && ran.stderr.contains("--dir"), "{}", ran.stderr);
}

#[test]
fn new_explains_invalid_names_kinds_and_sdks() {
    for (arguments, told) in [
        (["Kite", "--kind", "Kite", "--api-version", "sky.io/v1", "--sdk", SDK], "lower-case"),
        (
            [
                "a-policy-name-that-the-gate-will-not-take1",
                "--kind",
                "Kite",
                "--api-version",
                "sky.io/v1",
                "--sdk",
                SDK,
            ],
            "at most 40",
        ),
        (["kite", "--kind", "kite", "--api-version", "sky.io/v1", "--sdk", SDK], "like Website"),
        (["kite", "--kind", "Kite", "--api-version", "v1", "--sdk", SDK], "like example.com/v1"),
        (["kite", "--kind", "Kite", "--api-version", "sky.io/v1", "--sdk", "/nowhere"], "kaos-policy-sdk"),
        (["kite", "--kind", "Kite", "--api-version", "sky.io/v1", "--sdk", "/"], "guest-policies/sdk"),
    ] {
        let ran = run(["policy", "new"].iter().chain(&arguments), "");
        assert_eq!(ran.code, 2, "{arguments:?}");
        assert!(ran.stderr.contains(told), "{}", ran.stderr);
    }
}

#[test]
fn new_creates_an_overlay_for_all_default_policies_or_for_one_kind() {
    let folder = Folder::new("new-overlay");
    let made = |dir: &str, more: &[&str]| {
        let dir = format!("{}/{dir}", folder.path());
        let ran = run(["policy", "new", "near", "--overlay", "--dir", &dir, "--sdk", SDK].iter().chain(more), "");
        (ran, fs::read_to_string(format!("{dir}/src/lib.rs")).unwrap_or_default())
    };
    let (ran, code) = made("all", &[]);
    assert!(ran.code == 0 && code.contains("\"near\"") && code.contains("\"MCPServer\""), "{}{code}", ran.stderr);
    let (ran, code) = made("one", &["--kind", "Kite", "--api-version", "sky.io/v1"]);
    assert!(ran.code == 0 && code.contains("(\"sky.io/v1\", \"Kite\")"), "{}{code}", ran.stderr);
    assert!(!code.contains("MCPServer"), "{code}");
    let (ran, code) = made("of-agent", &["--for", "agent"]);
    assert!(ran.code == 0 && code.contains("(\"kaos.tools/v1alpha1\", \"Agent\")"), "{}{code}", ran.stderr);
    assert!(!code.contains("MCPServer"), "{code}");
    let (ran, _) = made("of-nothing", &["--for", "agnt"]);
    assert!(ran.code == 2 && ran.stderr.contains("--for agnt: ") && ran.stderr.contains("agent,"), "{}", ran.stderr);
    for (more, told) in [(["--kind", "Kite"], "--api-version"), (["--from", "agent"], "cannot be used with")] {
        let (ran, _) = made("not", &more);
        assert!(ran.code == 2 && ran.stderr.contains(told), "{}", ran.stderr);
    }
}

#[test]
fn overlays_in_go_and_python_are_whole_projects_for_the_same_kinds() {
    let folder = Folder::new("new-overlay-languages");
    for (language, tests, files) in [
        ("go", "go test ./...", ["policy.go", "policy_test.go", "go.mod"]),
        ("python", "sh test.sh", ["policy.py", "tests/test_policy.py", "wit/policy.wit"]),
    ] {
        let dir = format!("{}/{language}", folder.path());
        let ran =
            run(["policy", "new", "near", "--overlay", "--for", "agent", "--language", language, "--dir", &dir], "");
        assert!(ran.code == 0 && ran.stderr.contains(&format!("run `{tests}` there")), "{}", ran.stderr);
        let read = |name: &str| fs::read_to_string(format!("{dir}/{name}")).unwrap();
        assert!(read(files[0]).contains("Agent") && !read(files[0]).contains("MCPServer"), "{}", read(files[0]));
        for file in files.into_iter().chain(["README.md", "build.sh", "settings.schema.json"]) {
            assert!(!read(file).is_empty());
        }
        for file in ["policy.yaml", ".github/workflows/policy.yml"] {
            serde_saphyr::from_str::<serde_json::Value>(&read(file)).unwrap();
        }
    }
}

#[test]
fn tests_of_an_overlay_in_javascript_show_what_it_changes() {
    let folder = Folder::new("new-overlay-tests");
    let dir = format!("{}/near", folder.path());
    let ran = run(["policy", "new", "near", "--overlay", "--language", "javascript", "--dir", &dir], "");
    assert!(ran.code == 0 && ran.stderr.contains("run `sh test.sh` there"), "{}", ran.stderr);
    for _ in ["writes the expected answers", "compares them"] {
        let (passed, told) = tests_of(&dir);
        assert!(passed, "{told}");
    }
    for kind in ["agent", "mcpserver", "memorystore", "modelapi"] {
        let expected = fs::read_to_string(format!("{dir}/tests/{kind}.expected.yaml")).unwrap();
        assert!(expected.contains("image: registry.example.com/hub/"), "{kind}: {expected}");
        assert!(!expected.contains("\nrefused: ") && !expected.starts_with("refused: "), "{kind}: {expected}");
    }
    let script = fs::read_to_string(format!("{dir}/policy.js")).unwrap();
    let broken = script.replace("kaos.onRegistry(container.image, registry)", "`${registry}/one`");
    fs::write(format!("{dir}/policy.js"), broken).unwrap();
    let (passed, told) = tests_of(&dir);
    assert!(!passed && told.contains("tests/agent.yaml: the answer differs"), "{told}");
    assert!(told.contains("> ") && told.contains("registry.example.com/hub/one"), "{told}");

    let foreign = format!("{}/foreign", folder.path());
    let kind = ["--kind", "Kite", "--api-version", "sky.io/v1", "--dir", &foreign];
    let ran = run(["policy", "new", "near", "--overlay", "--language", "javascript"].iter().chain(&kind), "");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let (passed, told) = tests_of(&foreign);
    assert!(passed && told.ends_with("passed\n"), "{told}");
}

#[test]
fn an_overlay_in_javascript_is_checked_and_amends_what_render_prints() {
    let folder = Folder::new("new-overlay-script");
    let dir = format!("{}/near", folder.path());
    let ran = run(["policy", "new", "near", "--overlay", "--language", "javascript", "--dir", &dir], "");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let script = format!("{dir}/policy.js");
    let ran = run(["policy", "check", &script], "");
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let ran = run(["policy", "conform", &script], "");
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let ran = run(["policy", "inspect", &script], "");
    assert!(ran.code == 0 && ran.stdout.contains("overlay"), "{}{}", ran.stdout, ran.stderr);
    fs::write(format!("{dir}/policy.yaml"), "settings: {registry: registry.example.com/hub}").unwrap();
    let objects = "apiVersion: kaos.tools/v1alpha1\nkind: MCPServer\nmetadata: {name: tools}\nspec: \
        {runtime: python-string, params: 'def a(): pass'}\n";
    let images = |more: &[&str]| {
        let ran = run(["render", "-f", "-"].iter().chain(more), objects);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.stdout.lines().filter(|line| line.contains("image:")).map(str::to_owned).collect::<Vec<_>>()
    };
    let (before, after) = (images(&[]), images(&["--policy", &script]));
    assert!(!before.is_empty() && before.len() == after.len(), "{before:?} {after:?}");
    assert!(after.iter().all(|image| image.contains("registry.example.com/hub/")), "{after:?}");
    let ran = run(["render", "--explain", "-f", "-", "--policy", &script], objects);
    assert!(ran.code == 0 && ran.stdout.contains("near"), "the overlay set the image: {}{}", ran.stdout, ran.stderr);
}

#[test]
fn new_starts_from_a_policy_that_the_operator_ships() {
    let folder = Folder::new("new-from");
    let dir = format!("{}/own", folder.path());
    let ran = run(["policy", "new", "red-agent", "--from", "agent", "--dir", &dir, "--sdk", REPOSITORY], "");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let read = |name: &str| fs::read_to_string(format!("{dir}/{name}")).unwrap();
    assert!(read("src/lib.rs").contains("name: \"red-agent\".to_owned()"));
    assert!(read("Cargo.toml").contains("guest-policies/workload\""), "{}", read("Cargo.toml"));
    assert!(read("README.md").contains("replace each `path` with a version"), "{}", read("README.md"));
    assert!(read("samples/plans/minimal.json").contains("Deployment"));
    assert!(read("README.md").contains("policy push red-agent.wasm"));
    assert!(ran.stderr.contains("presets and settings for agent do not apply to red-agent"), "{}", ran.stderr);

    let same = format!("{}/same", folder.path());
    let ran = run(["policy", "new", "--from", "agent", "--dir", &same, "--sdk", REPOSITORY], "");
    assert!(ran.code == 0 && !ran.stderr.contains("settings"), "{}", ran.stderr);
    let read = |name: &str| fs::read_to_string(format!("{same}/{name}")).unwrap();
    assert!(read("src/lib.rs").contains("name: \"agent\".to_owned()"));
    assert!(read("Cargo.toml").contains("name = \"agent-policy\""), "{}", read("Cargo.toml"));

    let other = format!("{}/other", folder.path());
    let ran = run(["policy", "new", "own", "--from", "agnt", "--dir", &other, "--sdk", SDK], "");
    assert!(ran.code == 2 && ran.stderr.contains("use one of agent, authorization, mcpserver"), "{}", ran.stderr);
    let ran = run(["policy", "new", "own", "--from", "agent", "--kind", "Agent", "--sdk", SDK], "");
    assert!(ran.code == 2 && ran.stderr.contains("cannot be used with"), "{}", ran.stderr);
    let kind = ["--kind", "Agent", "--api-version", "kaos.tools/v1alpha1", "--dir", &other, "--sdk", SDK];
    let ran = run(["policy", "new", "own"].iter().chain(&kind), "");
    let start = format!("`policy new --from agent --sdk {SDK}`");
    assert!(ran.code == 0 && ran.stderr.contains(&start), "{}", ran.stderr);
    let ran = run(["policy", "new", "--dir", &other, "--sdk", SDK], "");
    assert!(ran.code == 2 && ran.stderr.contains("<NAME>"), "{}", ran.stderr);
}

/// Runs `test.sh` of a project.
fn tests_of(dir: &str) -> (bool, String) {
    let program = env!("CARGO_BIN_EXE_kaos-operator");
    let ran = std::process::Command::new("sh").arg("test.sh").current_dir(dir).env("KAOS_OPERATOR", program).output();
    let output = ran.unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

#[test]
fn tests_of_a_script_project_compare_objects_that_are_refused_with_their_status() {
    let folder = Folder::new("new-refused");
    let dir = format!("{}/kite", folder.path());
    assert_eq!(new(&["--dir", &dir, "--language", "javascript"]).code, 0);
    let kite = "apiVersion: sky.io/v1\nkind: Kite\nmetadata: {name: a, namespace: team}\nspec: {title: ' '}\n";
    fs::write(format!("{dir}/tests/blank.yaml"), kite).unwrap();
    fs::write(format!("{dir}/tests/blank.flags"), "--status --cluster-domain example.org\n").unwrap();
    for _ in ["writes the expected answers", "compares them"] {
        let (passed, told) = tests_of(&dir);
        assert!(passed, "{told}");
    }
    let expected = fs::read_to_string(format!("{dir}/tests/blank.expected.yaml")).unwrap();
    let first = "refused: tests/blank.yaml: document 1: Kite team/a: spec.title: must not be blank";
    assert!(expected.starts_with(first) && expected.contains("  phase: Failed\n"), "{expected}");
    assert!(!expected.contains("digest: sha256:"), "{expected}");
    let script = fs::read_to_string(format!("{dir}/policy.js")).unwrap();
    fs::write(format!("{dir}/policy.js"), script.replace("must not be blank", "must have a text")).unwrap();
    let (passed, told) = tests_of(&dir);
    assert!(!passed && told.contains("> refused: ") && told.contains("must have a text"), "{told}");
    assert!(told.contains("tests/blank.yaml: the answer differs from tests/blank.expected.yaml"), "{told}");
    fs::write(format!("{dir}/tests/blank.yaml"), "kind: nonsense\n").unwrap();
    let (passed, told) = tests_of(&dir);
    assert!(!passed && told.contains("error: ") && !told.contains("passed\n"), "{told}");
}

#[test]
fn flags_of_a_test_hide_a_type_from_the_policy() {
    let folder = Folder::new("new-case");
    let dir = format!("{}/kite", folder.path());
    assert_eq!(new(&["--dir", &dir, "--language", "javascript"]).code, 0);
    let script = fs::read_to_string(format!("{dir}/policy.js")).unwrap();
    let reads = "reads: [{ apiVersion: 'v1', kind: 'Secret' }],\n      samples: [{";
    let needs = "export function needs() {
  return [{ id: 'login', target: { tag: 'named', val: { apiVersion: 'v1', kind: 'Secret', name: 'login' } } }];
}
";
    let seen = "annotations: { seen: subject.found[0].answer.tag }, labels };\n  const deployment";
    let script = script.replace("samples: [{", reads).replace("labels };\n  const deployment", seen) + needs;
    assert!(script.contains("annotations: { seen"), "{script}");
    fs::write(format!("{dir}/policy.js"), script).unwrap();
    let kite = "apiVersion: sky.io/v1\nkind: Kite\nmetadata: {name: a, namespace: team}\nspec: {title: T}\n";
    fs::write(format!("{dir}/tests/secret.yaml"), kite).unwrap();
    fs::write(format!("{dir}/tests/secret.flags"), "--forbidden v1/Secret\n").unwrap();
    let (passed, told) = tests_of(&dir);
    assert!(passed, "{told}");
    let expected = fs::read_to_string(format!("{dir}/tests/secret.expected.yaml")).unwrap();
    assert!(expected.contains("seen: forbidden"), "{expected}");
    let expected = fs::read_to_string(format!("{dir}/tests/minimal.expected.yaml")).unwrap();
    assert!(expected.contains("seen: secret"), "{expected}");
    let ran = run(["render", "-f", &format!("{dir}/tests/minimal.yaml"), "--forbidden", "Secert"], "");
    assert!(ran.code == 2 && ran.stderr.contains("--forbidden Secert: no policy reads"), "{}", ran.stderr);
}
