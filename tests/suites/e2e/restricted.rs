//! Namespaces that enforce the Pod Security Standard `restricted`.

use kaos_tests::harness::condition;
use kaos_tests::harness::samples::{agent, mcp_server, model_api};
use serde_json::{Value, json};

use crate::support::{Release, until_active, until_ready};

const VALUES: &str = "../docs/examples/settings/restricted-values.yaml";

fn team() -> Vec<Value> {
    let mut hosted = model_api("own");
    hosted["spec"] = json!({"mode": "Hosted", "hostedConfig": {"model": "smollm2:135m"}});
    vec![hosted, model_api("llm"), mcp_server("echo"), agent("a", "llm", &json!({"mcpServers": ["echo"]}))]
}

#[tokio::test]
async fn a_restricted_namespace_names_its_standard_and_example_values_satisfy_it() {
    let release = Release::install(&[]).await;
    let world = release.world("strict-team").await;
    let enforced = json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
    world.patch("Namespace/strict-team", &enforced).await;
    {
        let _operator = release.working_operator().await;
        world.apply_all(&team()).await;
        // No pod exists, so only the object's status can show the reason.
        let told = |object: &Value| condition(object, "Ready")["message"].to_string().contains("violates PodSecurity");
        world.until("the status names the violated standard", "ModelAPI/llm", told).await;
    }
    release.helm("upgrade", &["--values", VALUES]).expect();
    let _operator = release.working_operator().await;
    for package in ["restricted-agents", "restricted-servers", "restricted-models"] {
        until_active(&release, package).await;
    }
    until_ready(&world, &team()).await;
}
