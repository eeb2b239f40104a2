//! Checks what the chart records about the upgrade from KAOS's operator: the time, the preset and the images.

use kaos_tests::harness::read::{entries, text};
use serde_json::json;

use crate::support::{Release, SYSTEM};

/// Makes the release look like a release of KAOS: no ConfigMap contains a preset, and the Helm values name neither a
/// preset nor images.
pub(crate) async fn is_forgotten(release: &Release) {
    let system = release.over(SYSTEM);
    system.delete("ConfigMap/kaos-operator-compatibility").await;
    let unrecorded = json!({"kaos.tools/compatibility": null, "kaos.tools/default-images": null});
    system.patch("ConfigMap/kaos-operator-config", &json!({"metadata": {"annotations": unrecorded}})).await;
}

/// Upgrades the release twice. The chart must record the time of the first upgrade, which is after the creation of
/// every ModelAPI with a proxy, and must keep this time in the second upgrade. The chart must also record the preset
/// and the images, and keep both although the second upgrade does not name them.
pub(crate) async fn is_recorded(release: &Release) {
    let system = release.over(SYSTEM);
    let time = async || text(&system.look("ConfigMap/kaos-operator-config").await["data"]["TAKEOVER_TIME"]).to_owned();
    // The chart requires the value `security.acceptUnserved`, because the upgrade does not delete the NetworkPolicies
    // of KAOS's operator.
    let accept = ["--set", "security.acceptUnserved={NetworkPolicy}", "--set", "gatewayAPI.enabled=true"];
    let pinned = ["--set", "compatibility=kaos-0.8", "--set", "defaultImages.mcpSlack=zencoderai/slack-mcp:latest"];
    release.helm("upgrade", &[&accept[..], &pinned].concat()).expect();
    let recorded = time().await;
    let times = "jsonpath={.items[?(@.spec.mode=='Proxy')].metadata.creationTimestamp}";
    let created = release.cluster.kubectl(&["get", "modelapis", "--all-namespaces", "-o", times]).expect();
    assert!(created.split_whitespace().count() > 5, "{created}");
    assert!(created.split_whitespace().all(|created| created < recorded.as_str()), "{recorded:?}: {created}");
    release.helm("upgrade", &accept).expect();
    assert_eq!(time().await, recorded);
    let config = system.look("ConfigMap/kaos-operator-config").await;
    let annotations = entries(&config, "annotations");
    assert_eq!(annotations["kaos.tools/compatibility"], "kaos-0.8");
    assert!(text(&annotations["kaos.tools/default-images"]).contains("zencoderai/slack-mcp:latest"), "{config:#}");
    assert!(!annotations.contains_key("kaos.tools/compared"), "the chart sees the cluster");
}
