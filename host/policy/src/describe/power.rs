//! Determines from the name of a type how much power over the cluster the type's objects have.

use crate::contract::ResourceType;

/// Returns whether a type is part of Kubernetes. The types of Kubernetes are in the core group, in groups without a
/// domain, and in the groups of the Kubernetes project's own domains. Policies must not claim such a type: the policy
/// would answer for all its objects, but only Kubernetes' own controllers may act on these objects.
pub fn is_built_in(of: &ResourceType) -> bool {
    let group = of.group();
    let owned = |domain: &str| group == domain || group.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'));
    !group.contains('.') || owned("k8s.io") || owned("kubernetes.io")
}

/// Returns whether the name of a type shows that its objects are cluster-scoped, grant rights, or redirect traffic of
/// other workloads. A policy must neither create objects of such a type nor answer for them.
pub fn is_cluster_power(of: &ResourceType) -> bool {
    const GROUPS: [&str; 10] = [
        "rbac.authorization.k8s.io",
        "authorization.k8s.io",
        "authentication.k8s.io",
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "certificates.k8s.io",
        "discovery.k8s.io",
        "scheduling.k8s.io",
        "storage.k8s.io",
    ];
    const CORE: [&str; 6] = ["Namespace", "Node", "PersistentVolume", "ComponentStatus", "Binding", "Endpoints"];
    const ELSEWHERE: [&str; 14] = [
        "RuntimeClass",
        "IngressClass",
        "GatewayClass",
        "FlowSchema",
        "PriorityLevelConfiguration",
        "IPAddress",
        "ServiceCIDR",
        "DeviceClass",
        "ResourceSlice",
        "StorageVersion",
        "PodSecurityPolicy",
        "PolicyRevision",
        "VolumeSnapshotClass",
        "VolumeSnapshotContent",
    ];
    let group = of.group();
    GROUPS.contains(&group)
        || (group.is_empty() && CORE.contains(&of.kind.as_str()))
        || (!group.is_empty() && (ELSEWHERE.contains(&of.kind.as_str()) || of.kind.starts_with("Cluster")))
}

/// Returns whether the name of a type shows that its objects open their namespace to other namespaces. A policy must
/// not create objects of such a type. A policy can answer for such objects that users create.
pub fn opens_a_namespace(of: &ResourceType) -> bool {
    const KINDS: [&str; 2] = ["ReferenceGrant", "AccessGrant"];
    !of.group().is_empty() && KINDS.contains(&of.kind.as_str())
}

/// Returns whether objects of a type decide which requests reach pods and routes. If several such objects select the
/// same pods, each object can allow requests that the other objects block.
pub fn is_protection(of: &ResourceType) -> bool {
    !of.group().is_empty() && (of.kind.ends_with("NetworkPolicy") || of.kind == "SecurityPolicy")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_types_are_distinguished_from_added_ones() {
        for group in ["", "apps/", "batch/", "networking.k8s.io/", "gateway.networking.k8s.io/", "x.kubernetes.io/"] {
            assert!(is_built_in(&ResourceType::new(format!("{group}v1"), "Thing")), "{group}");
        }
        for group in ["kaos.tools/", "example.com/", "notk8s.io/"] {
            assert!(!is_built_in(&ResourceType::new(format!("{group}v1"), "Thing")), "{group}");
        }
    }

    #[test]
    fn types_with_power_beyond_the_namespace_are_recognized() {
        for (group, kind) in [("gateway.networking.k8s.io/", "ReferenceGrant"), ("kaos.tools/", "AccessGrant")] {
            let of = ResourceType::new(format!("{group}v1"), kind);
            assert!(opens_a_namespace(&of) && !is_cluster_power(&of), "{kind}");
        }
        assert!(!opens_a_namespace(&ResourceType::new("kaos.tools/v1", "Agent")));
        for (group, kind) in [
            ("", "Endpoints"),
            ("discovery.k8s.io/", "EndpointSlice"),
            ("snapshot.storage.k8s.io/", "VolumeSnapshotClass"),
        ] {
            assert!(is_cluster_power(&ResourceType::new(format!("{group}v1"), kind)), "{kind}");
        }
        assert!(!is_cluster_power(&ResourceType::new("gateway.networking.k8s.io/v1", "HTTPRoute")));
    }

    #[test]
    fn types_that_protect_pods_and_routes_are_recognized() {
        let of = |api_version: &str, kind: &str| is_protection(&ResourceType::new(api_version, kind));
        assert!(of("networking.k8s.io/v1", "NetworkPolicy") && of("cilium.io/v2", "CiliumNetworkPolicy"));
        assert!(of("gateway.envoyproxy.io/v1alpha1", "SecurityPolicy"));
        assert!(!of("gateway.networking.k8s.io/v1", "HTTPRoute") && !of("policy/v1", "PodDisruptionBudget"));
    }
}
