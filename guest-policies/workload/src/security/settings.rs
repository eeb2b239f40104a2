//! The security settings, which all policies for workloads share.

use alloc::string::String;
use kaos_policy_sdk::Decode;
#[cfg(feature = "schema")]
use {schemars::JsonSchema, serde::Serialize};

use crate::rare::LeftOut;

/// Protection of objects at the Gateway and in the network. Objects are protected if `pdp` is true or `authorizer` is
/// set.
#[derive(Clone, Debug, PartialEq, Decode)]
#[cfg_attr(feature = "schema", derive(Serialize, JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools, reason = "each is a setting")]
pub struct SecuritySettings {
    /// Whether HTTPRoutes set the header `x-kaos-target-resource` to the identifier of their object.
    pub target_header: bool,
    /// Whether the Service `kaos-pdp` in the operator's namespace is the decision point for requests at routes.
    #[cfg_attr(feature = "schema", schemars(extend("x-env" = "SECURITY_PDP_ENABLED")))]
    pub pdp: bool,
    /// Address of another Service as decision point, with Envoy's gRPC interface: `name.namespace.svc:port`.
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::shape::any_service", extend("x-env" = "SECURITY_AGENT_AUTH_EXT_AUTHZ_URL")))]
    pub authorizer: String,
    /// Whether requests without a valid token reach the decision point. If false, the Gateway refuses them.
    pub jwt_optional: bool,
    /// The tokens of Agents, from the header `x-agent-authorization`.
    pub agents: AgentTokens,
    /// The tokens of users, from the header `authorization`.
    pub users: UserTokens,
    /// Whether all calls go through the Gateway: all objects except Agents get a NetworkPolicy.
    #[cfg_attr(feature = "schema", schemars(extend("x-env" = "SECURITY_STRICT_GATEWAY_API_ENABLED")))]
    pub strict: bool,
    /// NetworkPolicies.
    pub network_policy: NetworkSettings,
    /// Namespace of the Gateway's pods. Empty selects `envoy-gateway-system`.
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::shape::any_namespace", extend("x-env" = "SECURITY_GATEWAY_NAMESPACE")))]
    pub gateway_namespace: String,
    /// The pods of this namespace can reach all objects. Empty selects the operator's namespace.
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::shape::any_namespace", extend("x-env" = "SECURITY_OPERATOR_NAMESPACE")))]
    pub operator_namespace: String,
}

/// Settings about the tokens of Agents. The cluster issues these tokens.
#[derive(Clone, Debug, PartialEq, Decode)]
#[cfg_attr(feature = "schema", derive(Serialize, JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct AgentTokens {
    /// Issuer: the field `issuer` of `kubectl get --raw /.well-known/openid-configuration`.
    #[cfg_attr(feature = "schema", schemars(extend("x-env" = "SECURITY_AGENT_AUTH_SERVICE_ACCOUNT_ISSUER")))]
    pub issuer: String,
    /// Keys of the issuer: `kubectl get --raw /openid/v1/jwks`.
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::shape::any_jwks", extend("x-env" = "SECURITY_AGENT_AUTH_SERVICE_ACCOUNT_JWKS")))]
    pub jwks: String,
    /// Audience of the tokens. If empty, the policy `agent` uses its setting `serviceAccount.audience`.
    pub audience: String,
}

/// Settings about the tokens of users, and their issuer.
#[derive(Clone, Debug, PartialEq, Decode)]
#[cfg_attr(feature = "schema", derive(Serialize, JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct UserTokens {
    /// Issuer. If empty, requests carry no tokens of users.
    #[cfg_attr(feature = "schema", schemars(extend("x-env" = "SECURITY_USER_AUTH_ISSUER")))]
    pub issuer: String,
    /// Audience of the tokens. If empty, the Gateway does not check the audience.
    #[cfg_attr(feature = "schema", schemars(extend("x-env" = "SECURITY_USER_AUTH_AUDIENCE")))]
    pub audience: String,
    /// URL of the issuer's keys. If empty, the URL that Keycloak has for this issuer.
    #[cfg_attr(feature = "schema", schemars(extend("x-env" = "SECURITY_USER_AUTH_JWKS_URI")))]
    pub jwks_uri: String,
}

/// Settings of NetworkPolicies.
#[derive(Clone, Debug, PartialEq, Decode)]
#[cfg_attr(feature = "schema", derive(Serialize, JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct NetworkSettings {
    /// Whether objects get no NetworkPolicy. With `security.strict`, this setting has no effect.
    #[cfg_attr(feature = "schema", schemars(extend("x-env" = "SECURITY_NETWORK_POLICY_DISABLED")))]
    pub disabled: bool,
    /// Whether NetworkPolicies also limit the connections that pods open.
    #[cfg_attr(feature = "schema", schemars(extend("x-env" = "SECURITY_NETWORK_POLICY_EGRESS_ENABLED")))]
    pub egress: bool,
}

/// The connections that the pods of a workload are allowed to open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Egress {
    /// Connections to the Gateway, the operator's namespace, DNS, the issuer of users' tokens, and the decision point.
    Inside,
    /// Also connections to every IPv4 address, because providers of models are outside of the cluster.
    Anywhere,
}

/// The settings that turn all protection off.
static OFF: SecuritySettings = SecuritySettings::off();

impl LeftOut for SecuritySettings {
    fn left_out() -> &'static Self {
        &OFF
    }
}

impl Default for SecuritySettings {
    fn default() -> Self {
        Self::off()
    }
}

impl Default for AgentTokens {
    fn default() -> Self {
        SecuritySettings::off().agents
    }
}

impl Default for UserTokens {
    fn default() -> Self {
        SecuritySettings::off().users
    }
}

impl Default for NetworkSettings {
    fn default() -> Self {
        SecuritySettings::off().network_policy
    }
}

impl SecuritySettings {
    /// Returns settings that protect no object.
    const fn off() -> Self {
        Self {
            target_header: false,
            pdp: false,
            authorizer: String::new(),
            jwt_optional: true,
            agents: AgentTokens { issuer: String::new(), jwks: String::new(), audience: String::new() },
            users: UserTokens { issuer: String::new(), audience: String::new(), jwks_uri: String::new() },
            strict: false,
            network_policy: NetworkSettings { disabled: false, egress: false },
            gateway_namespace: String::new(),
            operator_namespace: String::new(),
        }
    }

    /// Returns whether the settings turn protection on.
    pub const fn is_on(&self) -> bool {
        self.pdp || !self.authorizer.is_empty()
    }

    /// Returns whether protection is on and the settings name an issuer of users' tokens.
    pub const fn has_users(&self) -> bool {
        self.is_on() && !self.users.issuer.is_empty()
    }

    /// Returns the path of the setting that makes a MemoryStore accept only requests of identified Agents. If the
    /// setting at `path` is true (`own`), returns `path`. Otherwise returns the path of the setting that turns
    /// protection on, or `None` if protection is off.
    pub fn requires_agent(&self, own: bool, path: &'static str) -> Option<&'static str> {
        if own { Some(path) } else { self.is_on().then(|| self.origin()) }
    }

    /// Like [`Self::requires_agent`], but for the setting that makes a MemoryStore accept only requests for identified
    /// users.
    pub fn requires_user(&self, own: bool, path: &'static str) -> Option<&'static str> {
        if own { Some(path) } else { self.has_users().then_some("settings.security.users.issuer") }
    }

    /// Returns the connections that the pods of an object are allowed to open, or `None` if the object gets no
    /// NetworkPolicy.
    pub fn network(&self, egress: Egress) -> Option<Egress> {
        ((self.is_on() && !self.network_policy.disabled) || self.strict).then_some(egress)
    }

    /// Returns the path of the setting that turns protection on.
    const fn origin(&self) -> &'static str {
        if self.pdp { "settings.security.pdp" } else { "settings.security.authorizer" }
    }
}
