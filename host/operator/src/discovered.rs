//! How an API server serves one type, asked for once.

use kaos_policy::contract::ResourceType;
use kube::{
    Client,
    core::GroupVersionKind,
    discovery::{ApiCapabilities, ApiResource, pinned_kind},
};

/// How it is served; none if it is not.
pub(crate) async fn served(
    client: &Client,
    of: &ResourceType,
) -> Result<Option<(ApiResource, ApiCapabilities)>, kube::Error> {
    let version = of.api_version.rsplit('/').next().unwrap_or_default();
    match pinned_kind(client, &GroupVersionKind::gvk(of.group(), version, &of.kind)).await {
        Ok(served) => Ok(Some(served)),
        Err(kube::Error::Discovery(_)) => Ok(None),
        // Of a group that it does not have a server says so in plain text.
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error),
    }
}
