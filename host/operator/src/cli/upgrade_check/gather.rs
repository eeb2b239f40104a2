//! Reads the objects that the check needs from a running cluster.

use kaos_crds::API_VERSION;
use kaos_policy::contract::{Reference, ResourceType, Target};
use kube::Client;

use super::{
    check::{UpgradeTarget, open},
    gateway::{self, GATEWAY},
    report::{Sort, UpgradeFinding},
    rolls::workloads,
    secured,
    values::Values,
};
use crate::{config_maps::OPERATOR_CONFIG, error_text::with_causes, live::Gathered, presets::COMPATIBILITY};

/// Types whose objects no policy answers for. The check reads them only to report the effect of the upgrade on them.
const BESIDE: [(&str, &str); 7] = [
    (API_VERSION, "AccessGrant"),
    ("networking.k8s.io/v1", "NetworkPolicy"),
    ("gateway.envoyproxy.io/v1alpha1", "SecurityPolicy"),
    ("gateway.envoyproxy.io/v1alpha1", "EnvoyExtensionPolicy"),
    ("gateway.envoyproxy.io/v1alpha1", "Backend"),
    GATEWAY,
    ("gateway.networking.k8s.io/v1beta1", "ReferenceGrant"),
];

/// Reads the objects from which the chart finds the time of the takeover and the address of the Gateway.
pub(super) async fn begun(client: Client, values: &Values, home: &str) -> anyhow::Result<Gathered> {
    let mut gathered = Gathered::new(client);
    let config = ResourceType::new("v1", "ConfigMap");
    for name in [OPERATOR_CONFIG, COMPATIBILITY] {
        gathered.object(&config, home, name).await?;
    }
    gathered.list(&ResourceType::new(API_VERSION, "ModelAPI"), None).await?;
    gathered.list(&workloads(), None).await?;
    let (namespace, name) = gateway::place(values, home);
    // Ignore an error: the function `checked` reads all Gateways, and reports the error.
    let _unread = gathered.object(&ResourceType::new(GATEWAY.0, GATEWAY.1), &namespace, &name).await;
    Ok(gathered)
}

/// Returns the findings about the cluster, and the number of objects for which a policy answers.
pub(super) async fn checked(
    mut gathered: Gathered,
    check: &UpgradeTarget<'_>,
) -> anyhow::Result<(Vec<UpgradeFinding>, usize)> {
    let claims = || check.snapshot.kinds().flat_map(|(_, answers)| answers.claims());
    for of in check.snapshot.kinds().map(|(of, _)| of).chain(claims().flat_map(|claim| &claim.reads)) {
        gathered.list(of, None).await?;
    }
    for of in claims().flat_map(|claim| &claim.wishes) {
        gathered.serves(of).await?;
    }
    let mut unread = Vec::new();
    if secured::config(&gathered.documents(), check.home).is_none() {
        unread.push(secured::without_earlier(check.home, Sort::Open));
    }
    for (api_version, kind) in BESIDE {
        let of = ResourceType::new(api_version, kind);
        if let Err(error) = gathered.list(&of, None).await {
            unread.push(open(&of, &with_causes(&error)));
        }
    }
    loop {
        let documents = gathered.documents();
        let hidden = |of: &ResourceType| gathered.hidden(of);
        let (mut findings, mut needs) = check.of(&documents, &gathered.scopes(), &hidden)?;
        // Also read the ConfigMaps that pods refer to, if KAOS's operator created the workload.
        let named = documents.iter().filter(|document| document.identity.kind == workloads().kind);
        needs.extend(named.flat_map(|document| config_maps(&document.object)));
        if !gathered.read(needs).await? {
            findings.extend(unread);
            return Ok((findings, check.claimed(&documents)));
        }
    }
}

/// Returns the ConfigMaps that a workload of a KAOS object refers to.
fn config_maps(workload: &serde_json::Value) -> Vec<Target> {
    let metadata = &workload["metadata"];
    let is_of_kaos = kaos_policy::stamp::owners(workload).iter().any(|owner| owner["apiVersion"] == API_VERSION);
    let spec = &workload["spec"]["template"]["spec"];
    let named = kaos_policy::stamp::references(spec);
    let reference = |(_, name): (&str, &str)| {
        Target::Named(Reference {
            api_version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            namespace: metadata["namespace"].as_str().map(str::to_owned),
            name: name.to_owned(),
        })
    };
    let config_maps = named.into_iter().filter(|(kind, _)| is_of_kaos && *kind == "ConfigMap");
    config_maps.map(reference).collect()
}
