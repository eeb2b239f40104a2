//! Tests that `kaos-operator upgrade-check` names the proxies that would not start with LiteLLM 1.104.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;

use crate::{
    support::{Folder, run},
    today::sample,
    upgrading::{check, of},
};

const ALL: &str = "{policies: {proxies: {policy: modelapi, settings: {proxyConfig: {withoutMasterKey: true, \
                   withoutMasterKeySince: ''}}}}}";

/// Returns the messages about the master key of the ModelAPI `llm`, each with the finding's `sort`. `more` are further
/// fields of the spec. If `runs` is true, the cluster has the Deployment that the operator plans under the preset.
fn found(more: &str, values: &str, flags: &[&str], runs: bool) -> Vec<(&'static str, String)> {
    let folder = Folder::new("upgrade-keyless");
    let text = fs::read_to_string(sample("20-model.yaml")).unwrap();
    let text = text
        .replace("name: llm,", "name: llm, creationTimestamp: '2026-10-01T00:00:00Z',")
        .replace("spec: {mode: Proxy,", &format!("spec: {{mode: Proxy, {more}"));
    let model = folder.write("model.yaml", text);
    let preset = ["--compatibility", flags.get(1).copied().unwrap_or("kaos-0.8")];
    let rendered = run(["render"].iter().chain(&preset).chain(&["-o", "json", "-f", &model]).copied(), "").json();
    let manifests = rendered[0]["manifests"].as_array().unwrap();
    let deployment = manifests.iter().find(|it| it["kind"] == "Deployment").unwrap().to_string();
    let deployment = folder.write("deployment.json", if runs { deployment } else { "{}".to_owned() });
    let values = folder.write("values.yaml", values);
    let mut arguments = vec!["-f", &model, "--values", &values, "-o", "json"];
    arguments.extend(flags);
    if runs {
        arguments.extend(["-f", &deployment]);
    }
    let ran = check(&arguments);
    let sorts = ["stops", "breaks", "lost", "open", "note"];
    let all = sorts.iter().flat_map(|sort| of(&ran, sort).into_iter().map(|(_, message)| (*sort, message)));
    let found: Vec<_> = all.filter(|(_, message)| message.contains("no master key")).collect();
    let told = ran.json();
    for finding in told["findings"].as_array().unwrap() {
        if finding["message"].as_str().unwrap().contains("no master key") {
            assert_eq!(finding["about"], "ModelAPI today/llm");
            assert!(finding["do"].as_str().unwrap().contains("withoutMasterKeySince: \"\""), "{finding}");
        }
    }
    found
}

#[test]
fn a_proxy_without_a_master_key_is_named_if_its_image_does_not_start_or_can_become_such_an_image() {
    for (image, sort, message) in [
        ("ghcr.io/berriai/litellm:main-stable", "note", "can become such a version"),
        ("mirror/llm-proxy:main-stable", "note", "can become such a version"),
    ] {
        let values = format!("{{defaultImages: {{litellm: '{image}'}}}}");
        // A Deployment with this image runs.
        let found = found(&format!("container: {{image: '{image}'}},"), &values, &[], true);
        assert!(found.len() == 1 && found[0].0 == sort && found[0].1.contains(message), "{image}: {found:?}");
    }
    let new = found("", "{}", &[], false);
    assert!(new.len() == 1 && new[0].0 == "breaks" && new[0].1.contains("the new pods then end"), "{new:?}");
    let replaced = found("", "{defaultImages: {litellm: 'mirror/litellm:latest'}}", &[], true);
    assert!(replaced.len() == 1 && replaced[0].0 == "breaks", "the upgrade replaces the pods: {replaced:?}");
    let later = |flags: &[&str]| found("", "{defaultImages: {litellm: 'mirror/litellm:v1.104.1'}}", flags, true);
    assert_eq!(later(&[]), [], "the new pods get the permission");
    let january = later(&["--compatibility", "kaos-0.1"]);
    assert!(january.len() == 1 && january[0].0 == "breaks" && january[0].1.contains("so its pods end"), "{january:?}");
    let runs = "container: {image: 'ghcr.io/berriai/litellm:main-v1.104.1-stable'},";
    assert_eq!(found(runs, "{}", &[], true), [], "an older proxy with such an image has the permission");
    let kept = found(runs, "{}", &["--compatibility", "kaos-0.1"], true);
    assert!(kept.len() == 1 && kept[0].0 == "note" && kept[0].1.contains("the pods that run now stay"), "{kept:?}");
    for variable in
        ["LITELLM_MASTER_KEY, value: ''", "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY, value: 'false'"]
    {
        let unset = found(&format!("container: {{env: [{{name: {variable}}}]}},"), "{}", &[], true);
        assert!(unset.len() == 1 && unset[0].0 == "note", "{variable}: {unset:?}");
    }
    let january = found("", "{}", &["--compatibility", "kaos-0.1"], true);
    assert!(january.len() == 1 && january[0].0 == "note", "the preset permits no proxy: {january:?}");
}

#[test]
fn a_proxy_with_a_master_key_or_the_permission_or_an_earlier_version_is_not_named() {
    let key = "container: {env: [{name: LITELLM_MASTER_KEY, value: sk-1}]},";
    assert_eq!(found(key, "{}", &[], true), []);
    let earlier = "container: {image: 'ghcr.io/berriai/litellm:v1.103.0-stable'},";
    assert_eq!(found(earlier, "{}", &[], true), []);
    let dated = "container: {image: 'mirror/litellm:2026.11.28-v1.90.0'},";
    assert_eq!(found(dated, "{}", &[], true), []);
    assert_eq!(found("", ALL, &[], false), []);
    assert_eq!(found("", ALL, &["--compatibility", "kaos-0.1"], false), []);
}

#[test]
fn a_proxy_whose_configuration_the_check_cannot_read_is_unknown() {
    let folder = Folder::new("upgrade-keyless-secret");
    let text = fs::read_to_string(sample("20-model.yaml")).unwrap();
    let config = "configYaml: {fromSecretKeyRef: {name: config, key: config.yaml}}, models: [\"*\"]";
    let text = text
        .replace("name: llm,", "name: llm, creationTimestamp: '2026-10-01T00:00:00Z',")
        .replace("models: [\"*\"]", config);
    let model = folder.write("model.yaml", text);
    let ran = check(&["-f", &model, "-o", "json"]);
    let open = of(&ran, "open");
    assert!(open.len() == 1 && open[0].1.contains("unless a Secret"), "{}{}", ran.stdout, ran.stderr);
}
