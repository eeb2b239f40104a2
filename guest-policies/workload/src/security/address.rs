//! Addresses of Services inside of the cluster.

/// A Service, with its port.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ServiceAddress<'a> {
    pub(super) name: &'a str,
    pub(super) namespace: &'a str,
    pub(super) port: u16,
}

/// Returns the host and the port of a URL. The scheme and the port are optional.
fn host(url: &str) -> (&str, Option<&str>) {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    authority.rsplit_once(':').map_or((authority, None), |(host, port)| (host, Some(port)))
}

/// Parses `name.namespace.svc:port`. `.svc` is optional. The text can also have a scheme and the rest of the DNS name.
pub(super) fn service(url: &str) -> Option<ServiceAddress<'_>> {
    let (host, port) = host(url);
    let mut labels = host.split('.');
    let (name, namespace) = (labels.next()?, labels.next()?);
    let is_service = labels.next().is_none_or(|label| label == "svc");
    let port = port?.parse().ok()?;
    (is_service && !name.is_empty() && !namespace.is_empty()).then_some(ServiceAddress { name, namespace, port })
}

/// Returns the namespace in the URL of a Service. Returns `None` for the URL of a host outside of the cluster.
pub(super) fn namespace(url: &str) -> Option<&str> {
    let mut labels = host(url).0.split('.');
    let (_, namespace, svc) = (labels.next()?, labels.next()?, labels.next()?);
    (svc == "svc" && !namespace.is_empty()).then_some(namespace)
}

/// Returns the namespace in the address of a Service. The address can lack `.svc` or the port.
pub(super) fn namespace_of_service(address: &str) -> Option<&str> {
    service(address).map(|service| service.namespace).or_else(|| namespace(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_read_with_and_without_a_scheme_and_a_domain() {
        let pdp = ServiceAddress { name: "pdp", namespace: "ns", port: 9191 };
        for url in ["pdp.ns:9191", "pdp.ns.svc:9191", "grpc://pdp.ns.svc.cluster.local:9191/"] {
            assert_eq!(service(url).as_ref(), Some(&pdp), "{url}");
        }
        for url in [
            "",
            "pdp",
            "pdp.ns",
            "pdp:9191",
            "pdp.ns.svc:",
            "pdp.ns.svc:x",
            "pdp.ns.svc:70000",
            ".ns.svc:1",
            "a.b.example.com:1",
        ] {
            assert_eq!(service(url), None, "{url}");
        }
    }

    #[test]
    fn only_services_have_a_namespace() {
        assert_eq!(namespace("http://keycloak.kaos-system.svc.cluster.local:8080/realms/kaos"), Some("kaos-system"));
        assert_eq!(namespace("https://user@keycloak.auth.svc/realms"), Some("auth"));
        for url in ["https://login.example.com/realms", "https://login", "", "https://a..svc/x"] {
            assert_eq!(namespace(url), None, "{url}");
        }
    }

    #[test]
    fn the_address_of_a_service_needs_no_svc() {
        for address in ["pdp.ns:9191", "pdp.ns.svc:9191", "https://pdp.ns.svc"] {
            assert_eq!(namespace_of_service(address), Some("ns"), "{address}");
        }
        assert_eq!(namespace_of_service("pdp.example.com:9191"), None);
    }
}
