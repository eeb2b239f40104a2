//! Runs `kaos-operator policy …` and `crds` as a user does.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _};

use crate::support::{Folder, run, run_into, unread};
use kaos_operator::embedded;
use kaos_policy::engine::ScriptEngine;

#[test]
fn crds_prints_all_definitions_ready_to_apply() {
    let ran = run(["crds"], "");
    assert_eq!(ran.code, 0);
    let crds: Vec<serde_json::Value> = serde_saphyr::from_multiple_with_options(
        &ran.stdout,
        serde_saphyr::options! { budget: serde_saphyr::budget! { max_depth: 256 } },
    )
    .expect("YAML");
    assert_eq!(crds.len(), 7);
    assert!(crds.iter().all(|crd| crd["kind"] == "CustomResourceDefinition"));
}

#[test]
fn every_default_policy_passes_the_gate() {
    let folder = Folder::new("gate");
    for (number, policy) in embedded::DEFAULTS.iter().enumerate() {
        let file = folder.write(&format!("{number}.wasm"), policy.component);
        folder.write(&format!("{number}.yaml"), policy.manifest);
        let ran = run(["policy", "check", &file, "-o", "json"], "");
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        assert_eq!(ran.json()["digest"], format!("sha256:{}", policy.digest));
    }
}

#[test]
fn check_warns_of_limits_above_the_operators() {
    let folder = Folder::new("limits");
    let policy = &embedded::DEFAULTS[0];
    let file = folder.write("a.wasm", policy.component);
    folder.write("policy.yaml", "limits: {fuel: 900000000}\n");
    let ran = run(["policy", "check", &file], "");
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let told = "warning: ".to_owned() + &file;
    let remark = "limits.fuel of policy.yaml is 900,000,000, but the operator allows at most 500,000,000 in a pass";
    assert_eq!(ran.stderr, format!("{told}: {remark}\n"));
    let ran = run(["policy", "check", &file, "-o", "json"], "");
    assert_eq!(ran.json()["remarks"], serde_json::json!([remark]), "{}", ran.stdout);
}

#[test]
fn check_names_the_setting_that_makes_a_pod_invalid() {
    let folder = Folder::new("gate-settings");
    let policy = embedded::DEFAULTS.iter().find(|policy| policy.manifest.contains("name: agent")).unwrap();
    let file = folder.write("agent.wasm", policy.component);
    let beside = folder.write("policy.yaml", "name: agent\nsettings: {securityContext: {foo: 1}}\n");
    let ran = run(["policy", "check", &file], "");
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    let told = [
        "sample minimal of Agent: ",
        "containers[0].securityContext.foo: Kubernetes 1.36 has no field",
        &format!("it comes from the setting agent.securityContext.foo (file {beside})"),
    ];
    assert!(told.iter().all(|told| ran.stderr.contains(told)), "{}", ran.stderr);
}

#[test]
fn compile_embedded_writes_code_for_each_default_policy_and_the_script_engine() {
    let folder = Folder::new("compiled");
    let ran = run(["compile-embedded", &folder.path()], "");
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{}", ran.stderr);
    for policy in embedded::DEFAULTS {
        assert!(std::fs::exists(format!("{}/{}.code", folder.path(), policy.digest)).unwrap());
    }
    let engine = ScriptEngine::shipped().unwrap();
    assert!(std::fs::exists(format!("{}/{}.code", folder.path(), engine.packed_digest.hex())).unwrap());
    // The binary under test contains no compiled code of policies.
    let ran = run(["compile-embedded"], "");
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert_eq!(ran.stdout.matches("compiled at each start").count(), embedded::DEFAULTS.len() + 1, "{}", ran.stdout);
}

#[test]
fn inspect_shows_digest_size_world_claims_and_schema() {
    let folder = Folder::new("inspect");
    let policy = &embedded::DEFAULTS[0];
    let file = folder.write("a.wasm", policy.component);
    let ran = run(["policy", "inspect", &file, "-o", "json"], "");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let shown = ran.json();
    assert_eq!(shown["digest"], format!("sha256:{}", policy.digest));
    assert_eq!(shown["size"], policy.component.len());
    assert_eq!(shown["world"], "policy");
    assert!(shown["claims"][0]["primary"]["kind"].is_string());
    assert!(shown["settingsSchema"].is_object());
}

#[test]
fn inspect_reads_gzip_and_shows_grants() {
    let folder = Folder::new("inspect-packed");
    let policy = &embedded::DEFAULTS[0];
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packer, policy.component).unwrap();
    let file = folder.write("a.wasm.gz", packer.finish().unwrap());
    folder.write("policy.yaml", "grants: {secrets: [regcred], privileges: [hostPath]}\n");
    let ran = run(["policy", "inspect", &file], "");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for shown in ["regcred", "hostPath"] {
        assert!(ran.stdout.contains(shown), "{shown}: {}", ran.stdout);
    }
}

#[test]
fn inspect_shows_a_component_that_fails_the_gate() {
    let folder = Folder::new("inspect-failing");
    let file = folder.write("a.wasm", embedded::DEFAULTS[0].component);
    folder.write("policy.yaml", "limits: {fuel: 200000}\n");
    let ran = run(["policy", "inspect", &file, "-o", "json"], "");
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("fuel") && ran.json()["size"].is_number(), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn unknown_setting_is_reported_with_its_file() {
    let folder = Folder::new("check-settings");
    let file = folder.write("a.wasm", embedded::DEFAULTS[0].component);
    let beside = folder.write("policy.yaml", "settings: {prot: 1}\n");
    let ran = run(["policy", "check", &file], "");
    let told = format!(".prot, given by file {beside}, does not exist");
    assert!(ran.code == 1 && ran.stderr.contains(&told), "{}", ran.stderr);
    let settings = folder.write("mine.yaml", "prot: 1\n");
    let ran = run(["policy", "pack", &file, "--settings", &settings], "");
    let told = format!(".prot, given by file {settings}, does not exist");
    assert!(ran.code == 2 && ran.stderr.contains(&told), "{}", ran.stderr);
}

#[test]
fn check_reports_grants_and_claims_beyond_the_operators_limits() {
    let folder = Folder::new("check-capped");
    let file = folder.write("a.wasm", embedded::DEFAULTS[0].component);
    folder.write("policy.yaml", "grants: {privileges: [hostPath]}\n");
    for (cap, told) in [
        (
            "--grantable-privileges=none",
            "grants.privileges: hostPath is not allowed: the operator's --grantable-privileges allows nothing",
        ),
        ("--grantable-emits=none", "is not allowed: the operator's --grantable-emits allows nothing"),
    ] {
        let ran = run(["policy", "check", &file, cap, "-o", "json"], "");
        assert_eq!(ran.code, 1, "{cap}: {}", ran.stdout);
        assert!(ran.stderr.contains(told), "{cap}: {}", ran.stderr);
        let shown = ran.json();
        let last = shown["steps"].as_array().unwrap().last().unwrap();
        assert_eq!((&last["step"], &last["passed"]), (&"grantable".into(), &false.into()), "{cap}");
        assert_eq!((&shown["passed"], &shown["error"]), (&false.into(), &last["outcome"]), "{cap}");
    }
    let ran = run(["policy", "check", &file, "--grantable-privileges=hostPath"], "");
    assert!(
        ran.code == 0 && ran.stdout.contains("the operator permits all grants and claims"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
}

#[test]
fn missing_file_is_reported_once() {
    let ran = run(["policy", "check", "nope.wasm"], "");
    assert_eq!((ran.code, ran.stderr.matches("No such file").count()), (2, 1), "{}", ran.stderr);
}

#[test]
fn check_and_inspect_fail_for_files_that_are_no_component() {
    let folder = Folder::new("none");
    for (name, bytes) in
        [("text.wasm", "(component)".as_bytes()), ("core.wasm", b"\0asm\x01\0\0\0"), ("empty.wasm", b"")]
    {
        let file = folder.write(name, bytes);
        for verb in ["check", "inspect"] {
            let ran = run(["policy", verb, &file], "");
            assert_ne!(ran.code, 0, "{verb} {name}: {}", ran.stdout);
        }
    }
}

#[test]
fn check_fails_even_without_a_reader() {
    let folder = Folder::new("unread");
    let file = folder.write("core.wasm", b"\0asm\x01\0\0\0");
    let ran = run_into(unread(), ["policy", "check", &file]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("error: ").count(), 1, "{}", ran.stderr);
}

#[test]
fn argument_that_is_not_utf8_is_an_error() {
    let ran = run([OsStr::from_bytes(b"\xff")], "");
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{}", ran.stderr);
    assert!(ran.stderr.starts_with("error: ") && !ran.stderr.contains("panicked"), "{}", ran.stderr);
}

#[test]
fn unusable_policy_yaml_is_an_error() {
    let folder = Folder::new("beside");
    let component = folder.write("a.wasm", embedded::DEFAULTS[0].component);
    let file = format!("{}/policy.yaml", folder.path());
    let refused = |why: &str| {
        for verb in ["check", "inspect", "pack"] {
            let ran = run(["policy", verb, &component], "");
            assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{verb}: {}", ran.stderr);
            assert!(ran.stderr.contains(&format!("{file}: {why}")), "{verb}: {}", ran.stderr);
        }
    };
    std::os::unix::fs::symlink("nowhere", &file).unwrap();
    refused("No such file");
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    refused("Is a directory");
    std::fs::remove_dir(&file).unwrap();
    // The policy file can be empty, because a shell creates an empty file if a command with redirected output fails.
    std::fs::write(&file, "").unwrap();
    refused("is empty");
    std::fs::write(&file, "{}").unwrap();
    // The policy file must have the name `policy.yaml`. A file with a similar name is an error, because the program
    // would ignore it.
    assert_eq!(run(["policy", "pack", &component], "").code, 0);
    folder.write("a.policy.yaml", "");
    let ran = run(["policy", "pack", &component], "");
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("a.policy.yaml: the program does not read this file"), "{}", ran.stderr);
}

#[test]
fn policy_from_a_file_replaces_the_default_policy() {
    let folder = Folder::new("replace");
    let policy = &embedded::DEFAULTS[0];
    let file = folder.write("mine.wasm", policy.component);
    let twice = folder.write("again.wasm", policy.component);
    let input = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
    let ran = run(["render", "-f", "-", "--policy", &file], input);
    assert!(ran.stderr.contains("nothing to render"), "{}", ran.stderr);
    let ran = run(["render", "-f", "-", "--policy", &file, "--policy", &twice], input);
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr.contains("again.wasm: this policy and ") && ran.stderr.contains("name only one of the two"),
        "{}",
        ran.stderr
    );
}

#[test]
fn build_refuses_a_module_with_imports_and_names_the_import_and_the_remedy() {
    let folder = Folder::new("imports");
    let output = format!("{}/out.wasm", folder.path());
    let module = |of: &str, name: &str| {
        let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
        let section = |id: u8, content: Vec<u8>| [vec![id, u8::try_from(content.len()).unwrap()], content].concat();
        let imports = section(2, [vec![1], text(of), text(name), vec![0, 0]].concat());
        [b"\0asm\x01\0\0\0".to_vec(), section(0, text("component-type:p")), imports].concat()
    };
    for (of, name, told, remedy) in [
        (
            "wasi_snapshot_preview1",
            "path_open",
            "imports wasi_snapshot_preview1.path_open, but a policy has no files",
            "pass --stub-wasi",
        ),
        (
            "wasi_snapshot_preview1",
            "thread_spawn",
            "imports wasi_snapshot_preview1.thread_spawn, but a policy cannot use this",
            "remove the code that declares the import",
        ),
        (
            "env",
            "now",
            "imports env.now, but a policy must import nothing: remove the code that declares the import",
            "--target wasm32-unknown-unknown",
        ),
    ] {
        let file = folder.write("module.wasm", module(of, name));
        let ran = run(["policy", "build", &file, "-o", &output], "");
        assert_ne!(ran.code, 0);
        assert!(ran.stderr.contains(told), "{}", ran.stderr);
        assert!(ran.stderr.contains(remedy), "{}", ran.stderr);
    }
}

#[test]
fn a_component_of_the_large_class_needs_the_flag_of_the_operator() {
    let folder = Folder::new("large");
    let mut component = b"\0asm\x0d\0\x01\0".to_vec();
    component.resize(9 << 20, 0);
    let file = folder.write("large.wasm", component);
    let ran = run(["policy", "check", &file], "");
    assert!(ran.code != 0 && ran.stdout.contains("limit is 8388608"), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("--large-policies"), "{}", ran.stdout);
    let ran = run(["policy", "check", "--large-policies", &file], "");
    assert!(ran.code != 0 && ran.stdout.contains("not a valid component"), "{}{}", ran.stdout, ran.stderr);
}
