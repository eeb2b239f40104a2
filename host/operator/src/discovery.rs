//! Finds the kind that a user names on the command line, with the names that the API server serves.

use std::collections::BTreeSet;

use kaos_policy::contract::ResourceType;
use kube::Client;

pub(crate) use kaos_kube_io::watch::discover_type as served;

use crate::{
    kinds::{self, KindError},
    watch::discover,
};

/// Advice for the error message that no policy claims a kind.
///
/// A command sees only the policies in the cluster, but the operator may have others from its flag `--policy`.
pub(crate) const NOT_VISIBLE: &str =
    "a policy that the operator got with --policy is not visible in the cluster: pass --policy X.wasm";

/// The error for a word from which the command cannot find a kind.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MeantError {
    /// The word names no kind, or several kinds.
    #[error("{0}{remedy}", remedy = remedy(.0))]
    Kind(#[source] KindError),
    /// The word names no kind or several kinds, and the list of kinds is incomplete.
    ///
    /// Discovery failed for a group version. The kind that the user means may be in this group version.
    #[error("{kind}; could not ask the API server for the kinds of {version}: {why}")]
    Unasked {
        /// The error of the search in all other group versions.
        kind: KindError,
        /// The group version for which discovery failed.
        version: String,
        /// The error of the discovery.
        why: String,
    },
}

fn remedy(error: &KindError) -> String {
    match error {
        KindError::Unknown { .. } => format!("; {NOT_VISIBLE}"),
        KindError::Several { .. } => String::new(),
    }
}

/// Returns the kind in `kinds` that the user's word names.
pub(crate) async fn meant(
    client: &Client,
    kinds: &BTreeSet<ResourceType>,
    word: &str,
) -> Result<ResourceType, MeantError> {
    let (found, failed) = discover(client, kinds).await;
    match (kinds::meant(word, kinds, |of| found.get(of).cloned().flatten()), failed.into_iter().next()) {
        (Ok(of), _) => Ok(of.clone()),
        (Err(kind), None) => Err(MeantError::Kind(kind)),
        (Err(kind), Some((version, why))) => Err(MeantError::Unasked { kind, version, why }),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
    use kaos_cluster::Cluster;
    use kube::{Api, api::PostParams};
    use serde_json::{from_value, json};

    use super::*;

    #[tokio::test]
    async fn a_kind_is_meant_by_the_names_that_the_cluster_serves_it_under() -> anyhow::Result<()> {
        let cluster = Cluster::builder().start();
        let client = Client::new(cluster.service(), "a");
        let definition = from_value(json!({
            "metadata": {"name": "proxies.net.example"},
            "spec": {"group": "net.example", "scope": "Namespaced",
                "names": {"plural": "proxies", "singular": "proxy", "kind": "Proxy", "shortNames": ["px"]},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object"}}}]}
        }))?;
        Api::<CustomResourceDefinition>::all(client.clone()).create(&PostParams::default(), &definition).await?;
        cluster.settled().await;
        let proxy = ResourceType::new("net.example/v1", "Proxy");
        let kinds = BTreeSet::from([proxy.clone(), ResourceType::new("unserved.example/v1", "Kite")]);
        for word in ["proxies", "proxy", "Proxy", "px", "proxies.net.example"] {
            assert_eq!(meant(&client, &kinds, word).await?, proxy, "{word}");
        }
        let unknown = meant(&client, &kinds, "proxys").await.unwrap_err().to_string();
        let told = "proxys: no policy answers for this kind, only for Proxy, Kite; a policy that the operator got with";
        assert!(unknown.starts_with(told) && unknown.ends_with("pass --policy X.wasm"), "{unknown}");
        Ok(())
    }
}
