//! Checks that the LiteLLM proxy loads the configuration of every ModelAPI in the recorded cases. The proxy must list
//! the models that the object configures, except the models in [`UNSERVED`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::Result;
use kaos_policy::contract::Cluster;
use kaos_policy::kubernetes::Checks;
use kaos_policy::policy::Stack;
use kaos_policy::render::Renderer;
use kaos_policy::settings::{Layer, Origin};
use kaos_tests::case::{self, Case};
use kaos_tests::policies;
use kaos_tests::stage::Stage;
use serde_json::{Value, json};

use crate::node::Node;
use crate::pod::{Objects, list};
use crate::warm::Warm;

/// For each case, the models that LiteLLM does not serve, sorted by name. LiteLLM leaves out a model if it cannot
/// derive an existing provider from the model's name. Some recorded names, such as `a`, have no such provider.
const UNSERVED: [(&str, &[&str]); 8] = [
    ("modelapi-drift-configmap", &["a"]),
    ("modelapi-drift-service-deleted", &["a"]),
    ("modelapi-provider-special-chars", &["m"]),
    ("modelapi-proxy-apikey-both", &["m1"]),
    ("modelapi-proxy-apikey-configmap", &["m1"]),
    ("modelapi-proxy-apikey-empty", &["m1"]),
    ("modelapi-proxy-models-doubtful", &["*/*", "gpt-*"]),
    ("modelapi-proxy-models-update", &["a", "b"]),
];

/// Returns a renderer for each kind, with a setting that permits proxies to run without a master key: otherwise LiteLLM
/// would not start.
fn renderers(environment: BTreeMap<String, String>) -> Result<BTreeMap<String, Renderer>> {
    let keyless = json!({"proxyConfig": {"withoutMasterKey": true}});
    let layers = [Layer::tree(Origin::CommandLine, "modelapi", keyless), Layer::env(Origin::Environment, environment)];
    let mut renderers = BTreeMap::new();
    for policy in policies::native()? {
        for claim in &policy.descriptor().claims {
            let stack = Stack::single(Arc::clone(&policy))?;
            let renderer = Renderer::new(&stack, &layers, Cluster::default())?.with_checks(Checks::Fields);
            renderers.insert(claim.primary.kind.clone(), renderer);
        }
    }
    Ok(renderers)
}

/// Returns the Deployment, the children and the object of each proxy in a case.
fn proxies(case: &Case) -> Vec<(Value, Vec<Value>, Value)> {
    let mut stage = Stage::new(renderers(case.environment.clone()).unwrap());
    let objects: Vec<Value> = case.input.iter().chain(&case.update).cloned().collect();
    for object in &objects {
        stage.apply(object);
    }
    stage.settle().unwrap();
    // The list contains the objects of the case's update after the original objects, so the map contains each updated
    // object instead of the original object.
    let apis: BTreeMap<String, &Value> = objects
        .iter()
        .filter(|object| object["kind"] == "ModelAPI")
        .map(|object| (object["metadata"]["name"].to_string(), object))
        .collect();
    let mut proxies = Vec::new();
    for api in apis.into_values() {
        let children = stage.children_of(&kaos_tests::stage::key(api));
        let runs_litellm = |child: &&Value| {
            let image = &child["spec"]["template"]["spec"]["containers"][0]["image"];
            // Skip a Deployment in which the user replaces the command of the image.
            let is_own = child["spec"]["template"]["spec"]["containers"][0]["command"].is_null();
            child["kind"] == "Deployment" && is_own && image.as_str().is_some_and(|image| image.contains("litellm"))
        };
        if let Some(deployment) = children.iter().find(runs_litellm).cloned() {
            let given = objects.iter().filter(|object| object["kind"] != "ModelAPI").cloned();
            proxies.push((deployment, given.chain(children).collect(), api.clone()));
        }
    }
    proxies
}

/// Returns the Secrets and ConfigMaps with keys of providers to which a Deployment refers.
///
/// The recorded cases do not contain these objects.
fn keys(deployment: &Value) -> Vec<Value> {
    let variables = list(&deployment["spec"]["template"]["spec"]["containers"][0]["env"]).iter();
    let references = variables.flat_map(|variable| {
        let from = &variable["valueFrom"];
        [("Secret", "stringData", &from["secretKeyRef"]), ("ConfigMap", "data", &from["configMapKeyRef"])]
    });
    references
        .filter(|(.., reference)| reference.is_object())
        .map(|(kind, field, reference)| {
            let key = reference["key"].as_str().unwrap();
            json!({"kind": kind, "metadata": {"name": reference["name"]}, field: {key: "a-key"}})
        })
        .collect()
}

/// Returns the models that a ModelAPI must serve: the models in the field `configYaml`, or in the field `models` if
/// `configYaml` is missing.
fn wanted(api: &Value, config: &str) -> BTreeSet<String> {
    let proxy = &api["spec"]["proxyConfig"];
    if proxy["configYaml"].is_null() {
        let models = list(&proxy["models"]).iter().filter_map(Value::as_str);
        return models.map(str::trim).filter(|model| !model.is_empty()).map(str::to_owned).collect();
    }
    let config: Value = serde_saphyr::from_str(config).unwrap();
    list(&config["model_list"]).iter().filter_map(|entry| entry["model_name"].as_str()).map(str::to_owned).collect()
}

#[test]
fn the_proxy_loads_every_configuration_of_the_recorded_cases_and_lists_its_models() {
    let mut warm = Warm::new().unwrap();
    let mut node = Node::new("proxies").unwrap();
    let mut seen = BTreeSet::new();
    let mut wrong = Vec::new();
    for case in case::all().unwrap() {
        for (deployment, objects, api) in proxies(&case) {
            let container = &deployment["spec"]["template"]["spec"]["containers"][0];
            let config = objects.iter().find_map(|object| object["data"]["config.yaml"].as_str()).unwrap_or_default();
            if !seen.insert(json!([config, container["env"], container["args"], container["command"]]).to_string()) {
                continue;
            }
            let all = objects.iter().cloned().chain(keys(&deployment)).collect();
            let objects = Objects { all, ..Objects::default() };
            node.start_in(&mut warm, &case.name, &deployment["spec"]["template"]["spec"], &objects).unwrap();
            let pod = node.until_ready(&case.name).unwrap();
            let listed = pod.ask("/v1/models?return_wildcard_routes=true", &[], None).unwrap().json().unwrap();
            let listed: BTreeSet<String> =
                list(&listed["data"]).iter().filter_map(|model| model["id"].as_str()).map(str::to_owned).collect();
            let config = pod.file("/etc/litellm/config.yaml").unwrap();
            let wanted = wanted(&api, &config);
            println!("  {} lists {wanted:?}", case.name);
            // Ignore models that match a wanted pattern: for a pattern such as `openai/*`, LiteLLM also lists all
            // models that it knows for this pattern.
            let is_of =
                |model: &String| wanted.iter().any(|of| of.strip_suffix('*').is_some_and(|of| model.starts_with(of)));
            let unserved: BTreeSet<String> = wanted.difference(&listed).cloned().collect();
            let expected = UNSERVED.iter().find(|(name, _)| *name == case.name).map_or(&[][..], |(_, models)| *models);
            let as_expected = unserved.iter().eq(expected.iter());
            if !as_expected || !listed.difference(&wanted).all(is_of) {
                wrong.push(format!("{}: {listed:?} instead of {wanted:?}", case.name));
            }
            node.end(&case.name);
            warm.end().unwrap();
        }
    }
    assert!(seen.len() > 15, "{} configurations", seen.len());
    assert_eq!(wrong, Vec::<String>::new());
}
