//! Tests that `kaos-operator upgrade-check` takes the host of the Gateway from the cluster, as the chart does.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::{Value, json};

use crate::{
    stage::Stage,
    support::{Folder, Ran},
    today::sample,
    upgrading::{check, of},
};

/// The values that a secured release needs in addition to `values/secured.yaml`, except the host of the Gateway.
const KEYS: &str = "security: {userAuth: {jwks: '{\"keys\": []}'}, \
                    agentAuth: {identity: {serviceAccount: {issuer: i, jwks: '{\"keys\": []}'}}}}";

fn gateway(name: &str, addresses: &Value) -> Value {
    json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
        "metadata": {"name": name, "namespace": "kaos-system"},
        "spec": {"gatewayClassName": "x", "listeners": [{"name": "http", "protocol": "HTTP", "port": 80}]},
        "status": {"addresses": addresses}})
}

/// Returns the address of the model in the pods that the upgrade creates. `None` if no pod is replaced.
fn model_url(ran: &Ran) -> Option<String> {
    let told = ran.json();
    let mut fields = told["findings"].as_array().unwrap().iter().filter_map(|it| it["fields"].as_array()).flatten();
    let url = fields.find(|field| field["path"].as_str().unwrap().contains("MODEL_API_URL"))?;
    Some(url["after"].to_string())
}

fn asks_for_the_host(ran: &Ran) -> bool {
    of(ran, "open").iter().any(|(about, _)| about == "security.gatewayHost")
}

#[test]
fn without_a_host_in_the_values_the_first_address_of_the_gateway_counts() {
    let folder = Folder::new("upgrade-gateway-host");
    let keys = folder.write("keys.yaml", KEYS);
    let files = ["20-as-found.yaml", "20-model.yaml", "values/secured.yaml"].map(sample);
    let with = |gateway: &Value, further: &str| {
        let (gateway, further) =
            (folder.write("gateway.json", gateway.to_string()), folder.write("further.yaml", further));
        let objects = ["-f", &files[0], "-f", &files[1], "-f", &gateway, "-o", "json"];
        check(&[&objects[..], &["--values", &files[2], "--values", &keys, "--values", &further]].concat())
    };
    let addresses = json!([{"type": "IPAddress", "value": "10.0.0.9"}, {"type": "IPAddress", "value": "10.0.0.8"}]);
    let ran = with(&gateway("kaos-gateway", &addresses), "{}");
    assert!(!asks_for_the_host(&ran), "{}", ran.stdout);
    assert_eq!(of(&ran, "refused"), [], "{}", ran.stdout);
    // Before the upgrade, the Agent of the sample calls its model directly, without the Gateway.
    assert_eq!(model_url(&ran).as_deref(), Some("\"http://10.0.0.9/today/modelapi/llm\""), "{}", ran.stdout);
    let ran = with(&gateway("kaos-gateway", &addresses), "{security: {gatewayHost: gw.example}}");
    assert_eq!(model_url(&ran).as_deref(), Some("\"http://gw.example/today/modelapi/llm\""), "{}", ran.stdout);
    let ran = with(&gateway("other", &addresses), "{gatewayAPI: {gatewayName: other}}");
    assert!(!asks_for_the_host(&ran) && model_url(&ran).is_some(), "{}", ran.stdout);
    for absent in [gateway("kaos-gateway", &json!([])), gateway("other", &addresses)] {
        let ran = with(&absent, "{}");
        assert!(asks_for_the_host(&ran), "{}", ran.stdout);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_address_of_the_gateway_is_read_from_a_running_cluster() {
    let stage = Stage::start("upgrade-gateway-live").await;
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gateways.gateway.networking.k8s.io"},
        "spec": {"group": "gateway.networking.k8s.io", "scope": "Namespaced",
            "names": {"plural": "gateways", "singular": "gateway", "kind": "Gateway", "listKind": "GatewayList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": anything}}]}});
    stage.cluster.plant("apiextensions.k8s.io", "customresourcedefinitions", definition);
    stage.cluster.settled().await;
    let agent = json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "Agent",
        "metadata": {"name": "plain", "namespace": "team", "uid": "u1"}, "spec": {"modelAPI": "llm", "model": "m"}});
    stage.cluster.plant("kaos.tools", "agents", agent);
    let addresses = json!([{"type": "IPAddress", "value": "10.0.0.9"}]);
    stage.cluster.plant("gateway.networking.k8s.io", "gateways", gateway("kaos-gateway", &addresses));
    stage.cluster.settled().await;
    let (values, keys) = (sample("values/secured.yaml"), stage.folder.write("keys.yaml", KEYS));
    let ran = stage.ask(&["upgrade-check", "-o", "json", "--values", &values, "--values", &keys]).await;
    assert!(!asks_for_the_host(&ran), "{}{}", ran.stdout, ran.stderr);
    assert!(!ran.stdout.contains("gatewayRouting.host"), "{}", ran.stdout);
}
