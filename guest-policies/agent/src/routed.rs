//! Replaces the direct addresses of objects with addresses that lead through the Gateway. The decision point of the
//! Gateway sees only calls through the Gateway.

use alloc::{borrow::ToOwned, string::String};
use kaos_policy_sdk::Violations;

use crate::linked::{Link, Linked};
use crate::memory::Remembering;
use crate::settings::Settings;

/// The setting with the host of the Gateway.
const HOST: &str = "settings.gatewayRouting.host";

/// The Gateway's host, and the namespace of the Agent. All objects that the Agent calls are in this namespace.
pub(crate) struct Routing<'a> {
    host: &'a str,
    namespace: &'a str,
}

impl<'a> Routing<'a> {
    /// Returns the routing if the settings make Agents call through the Gateway. Collects a violation if the Gateway's
    /// host is missing, because a direct address would bypass the decision point.
    pub(crate) fn of(settings: &'a Settings, namespace: &'a str, wrong: &mut Violations) -> Option<Self> {
        let routing = &settings.gateway_routing;
        if !routing.enabled && !settings.security.strict {
            return None;
        }
        let message = "is not set, and agents call through the Gateway: in the settings for the cluster, set it to the \
                       host of the Gateway, for example the output of `kubectl get gateway NAME -o \
                       jsonpath={.status.addresses[0].value}`";
        let is_set = wrong.require(!routing.host.is_empty(), HOST, message);
        is_set.then_some(Self { host: &routing.host, namespace })
    }

    /// Replaces the addresses of the ModelAPI, the MCP servers, the peers and the store with addresses at the Gateway.
    pub(crate) fn lead(&self, linked: &mut Linked, memory: &mut Remembering) {
        let links =
            [("modelapi", linked.model_api.as_mut_slice()), ("mcp", &mut linked.servers), ("agent", &mut linked.peers)];
        for (route, links) in links {
            for Link { name, endpoint, origin } in links {
                (*endpoint, *origin) = self.address(route, name);
            }
        }
        if let (Some(store), Some(endpoint)) = (&memory.store, &mut memory.endpoint) {
            *endpoint = self.address("memorystore", store);
        }
    }

    /// Returns the address of a route, and its origin.
    fn address(&self, route: &str, name: &str) -> (String, String) {
        (format!("http://{}/{}/{route}/{name}", self.host, self.namespace), HOST.to_owned())
    }
}
