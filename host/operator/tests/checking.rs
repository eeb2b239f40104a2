//! Tests what `kaos-operator policy check` prints about a policy that passes the gate: warnings about origins that are
//! probably wrong, and about manifests of custom kinds.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::json;

use crate::conform::{CRD, Project, with_sky};
use crate::support::run;

#[test]
fn an_origin_with_a_wrong_path_or_place_gives_a_warning() {
    let warnings = |project: &Project| {
        let ran = run(["policy", "check", &project.script], "");
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        ran.stderr
    };
    let project = Project::new("", "");
    assert_eq!(warnings(&project), "", "no sample has replicas");
    let script = std::fs::read_to_string(&project.script).unwrap();
    let with_replicas = script.replace("spec: {title: 'Above", "spec: {replicas: 2, title: 'Above");
    for (wrong, told) in [
        ("path: 'spec.replica', from: 'spec.replicas'", "the origin of spec.replica of the Deployment"),
        ("path: 'spec.replicas', from: 'spec.sizes'", "from spec.sizes, covers no value in any sample"),
    ] {
        let right = "path: 'spec.replicas', from: 'spec.replicas'";
        std::fs::write(&project.script, with_replicas.replace(right, wrong)).unwrap();
        let warnings = warnings(&project);
        assert!(warnings.contains(told) && warnings.matches("warning: ").count() == 1, "{warnings}");
    }
    std::fs::write(&project.script, &with_replicas).unwrap();
    assert_eq!(warnings(&project), "");
}

#[test]
fn a_place_that_cannot_exist_gives_a_warning_although_no_sample_has_the_value() {
    let project = Project::new("", "");
    let warnings = |crds: &[&str]| {
        let ran = run([&["policy", "check", &project.script], crds].concat(), "");
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        ran.stderr
    };
    let known = ["--crds", project.crd.as_str()];
    assert_eq!(warnings(&known), "", "no sample has replicas");
    let script = std::fs::read_to_string(&project.script).unwrap();
    let right = "path: 'spec.replicas', from: 'spec.replicas'";
    for (from, why) in [
        ("spec.sizes", "the Kite has no field spec.sizes"),
        ("spec.tags[0].name", ""),
        ("settings.sizes", "the policy has no setting sizes"),
        ("metadata.labls", "the Kite has no field metadata.labls"),
        ("metadata.labels.size", ""),
    ] {
        std::fs::write(&project.script, script.replace(right, &format!("path: 'spec.replicas', from: '{from}'")))
            .unwrap();
        let told =
            format!("the origin of spec.replicas of the Deployment, from {from}, covers no value: {why}: correct");
        let warnings = warnings(&known);
        if why.is_empty() {
            assert_eq!(warnings, "", "{from}");
        } else {
            assert!(warnings.contains(&told) && warnings.matches("warning: ").count() == 1, "{from}: {warnings}");
        }
    }
    std::fs::write(&project.script, script.replace(right, "path: 'spec.replicas', from: 'spec.sizes'")).unwrap();
    assert_eq!(warnings(&[]), "", "without the CRD, the fields of the kind are unknown");

    std::fs::write(&project.script, script.replace("'none', 'spec.title')", "'none', 'spec.titel')")).unwrap();
    let told = "the origin of the variable TITLE of the container web, spec.titel, is no place: the Kite has no field \
                spec.titel: correct the origin";
    assert!(warnings(&known).contains(told), "{}", warnings(&known));
}

#[test]
fn check_names_the_same_kinds_with_unknown_fields_as_conform() {
    let project = with_sky();
    let told = "the check does not know the fields of sky.io/v1 Sky: name the CRD with --crds";
    let ran = run(["policy", "check", &project.script], "");
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains(&format!("note: {}: {told}\n", project.script)), "{}", ran.stderr);
    let conformed = project.conform(&[]);
    assert!(conformed.stdout.contains(told), "{}", conformed.stdout);
    let found = run(["policy", "check", &project.script, "-o", "json"], "").json();
    assert_eq!(found["unchecked"], json!([{"apiVersion": "sky.io/v1", "kind": "Sky"}]));
    assert_eq!(found["unchecked"], project.conform(&["-o", "json"]).json()["unchecked"]);
}

#[test]
fn check_and_conform_refuse_an_unknown_field_of_a_kind_with_a_known_crd() {
    let project = with_sky();
    let sky = CRD.replace("kites", "skies").replace("kite", "sky").replace("Kite", "Sky");
    let sky = project.folder.write("sky.yaml", sky.replace("title: {type: string}", "colour: {type: string}"));
    let told = "manifests[0] (Sky) spec.colur: unknown field";
    let ran = run(["policy", "check", &project.script, "--crds", &sky], "");
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains(&format!("sample minimal: {told}")), "{}", ran.stderr);
    assert!(project.conform(&["--crds", &sky]).stdout.contains(told));
    let ran = run(["policy", "check", &project.script, "--crds", "nowhere.yaml"], "");
    assert!(ran.code == 2 && ran.stderr.contains("nowhere.yaml"), "{}{}", ran.stdout, ran.stderr);
}
