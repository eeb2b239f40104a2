//! The settings of both kinds: the identities that the decision point trusts.
//!
//! `Default` is the only source of the values. A test generates `settings.schema.json` from this type.

use alloc::{borrow::ToOwned, string::String};

use kaos_policy_sdk::Decode;
use serde_json::{Map, Value};
#[cfg(feature = "schema")]
use {schemars::JsonSchema, serde::Serialize};

/// The settings.
#[derive(Clone, Debug, PartialEq, Decode)]
#[cfg_attr(feature = "schema", derive(Serialize, JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Settings {
    /// Whether the operator's decision point authorizes the requests at the gateway.
    #[cfg_attr(feature = "schema", schemars(extend("x-env" = "SECURITY_PDP_ENABLED")))]
    pub enabled: bool,
    /// Address of another decision point, which authorizes the requests at the gateway instead.
    #[cfg_attr(feature = "schema", schemars(extend("x-env" = "SECURITY_AGENT_AUTH_EXT_AUTHZ_URL")))]
    pub authorizer: String,
    /// The identity of Agents.
    pub agents: AgentIdentity,
    /// The identity of users.
    pub users: UserIdentity,
}

/// The identity of Agents.
#[derive(Clone, Debug, PartialEq, Decode)]
#[cfg_attr(feature = "schema", derive(Serialize, JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentIdentity {
    /// Provider of the identity. The decision point knows only Agents with a ServiceAccount.
    #[cfg_attr(feature = "schema", schemars(extend("x-env" = "SECURITY_AGENT_AUTH_IDENTITY_PROVIDER")))]
    pub provider: Provider,
    /// Issuer of the Agents' tokens: the issuer of the cluster's ServiceAccounts. If empty, the decision point knows no
    /// Agents.
    #[cfg_attr(feature = "schema", schemars(extend("x-env" = "SECURITY_AGENT_AUTH_SERVICE_ACCOUNT_ISSUER")))]
    pub issuer: String,
    /// Audience of the Agents' tokens.
    #[cfg_attr(
        feature = "schema",
        schemars(length(min = 1), extend("x-env" = "SECURITY_AGENT_AUTH_SERVICE_ACCOUNT_AUDIENCE"))
    )]
    pub audience: String,
    /// Keys of the issuer, as the text of a JSON Web Key Set. If empty, the decision point knows no Agents.
    #[cfg_attr(feature = "schema", schemars(extend("x-env" = "SECURITY_AGENT_AUTH_SERVICE_ACCOUNT_JWKS")))]
    pub jwks: String,
}

/// Provider of the identity of Agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Decode)]
#[cfg_attr(feature = "schema", derive(Serialize, JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Provider {
    /// A ServiceAccount for each Agent.
    #[serde(rename = "serviceaccount")]
    ServiceAccount,
    /// A client at an OpenID provider for each Agent.
    Oidc,
    /// A client at the identity broker for each Agent.
    Aib,
}

/// The identity of users.
#[derive(Clone, Debug, PartialEq, Decode)]
#[cfg_attr(feature = "schema", derive(Serialize, JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UserIdentity {
    /// Issuer of the users' tokens. If empty, the decision point knows no users.
    #[cfg_attr(feature = "schema", schemars(extend("x-env" = "SECURITY_USER_AUTH_ISSUER")))]
    pub issuer: String,
    /// Audience of the users' tokens. If empty, the decision point knows no users.
    #[cfg_attr(feature = "schema", schemars(extend("x-env" = "SECURITY_USER_AUTH_AUDIENCE")))]
    pub audience: String,
    /// Keys of the issuer, as the text of a JSON Web Key Set. If empty, the decision point knows no users.
    #[cfg_attr(feature = "schema", schemars(extend("x-env" = "SECURITY_USER_AUTH_JWKS")))]
    pub jwks: String,
}

impl Default for Settings {
    fn default() -> Self {
        let none = String::new;
        Self {
            enabled: false,
            authorizer: none(),
            agents: AgentIdentity {
                provider: Provider::ServiceAccount,
                issuer: none(),
                audience: "kaos-gateway".to_owned(),
                jwks: none(),
            },
            users: UserIdentity { issuer: none(), audience: none(), jwks: none() },
        }
    }
}

impl Settings {
    /// Returns whether a decision point authorizes the requests at the gateway.
    pub(crate) const fn is_on(&self) -> bool {
        self.enabled || !self.authorizer.is_empty()
    }
}

impl AgentIdentity {
    /// Returns whether the decision point can identify Agents.
    pub(crate) fn is_known(&self) -> bool {
        self.provider == Provider::ServiceAccount && !self.issuer.is_empty() && !self.jwks.is_empty()
    }
}

impl UserIdentity {
    /// Returns whether the decision point can identify users. Without an audience, the decision point would accept
    /// tokens for any other service.
    pub(crate) fn is_known(&self) -> bool {
        ![&self.issuer, &self.audience, &self.jwks].into_iter().any(String::is_empty)
    }
}

/// Reads a JSON Web Key Set. Keeps only the public parts of RSA keys. Returns an error with the reason if the set has
/// no RSA key.
pub(crate) fn keys(jwks: &str) -> Result<Value, &'static str> {
    let set: Value = serde_json::from_str(jwks).map_err(|_| "must be the JSON text of a JSON Web Key Set")?;
    let keys = set.get("keys").and_then(Value::as_array).ok_or("must have a list `keys`")?;
    let public = |key: &Value| {
        let key = key.as_object().filter(|key| key.get("kty").and_then(Value::as_str) == Some("RSA"))?;
        let of = |name: &&str| Some(((*name).to_owned(), key.get(*name)?.clone()));
        Some(Value::Object(["alg", "e", "kid", "kty", "n", "use"].iter().filter_map(of).collect::<Map<_, _>>()))
    };
    let keys: alloc::vec::Vec<Value> = keys.iter().filter_map(public).collect();
    if keys.is_empty() { Err("has no RSA key: the decision point accepts RS256 only") } else { Ok(json(keys)) }
}

fn json(keys: alloc::vec::Vec<Value>) -> Value {
    let mut set = Map::new();
    set.insert("keys".to_owned(), Value::Array(keys));
    Value::Object(set)
}

#[cfg(feature = "schema")]
impl Settings {
    /// Generates the text of `settings.schema.json`.
    pub fn schema_text() -> String {
        // Users of a namespace must not decide whom the decision point trusts.
        kaos_workload::schema::text::<Self>(&kaos_workload::schema::Extras {
            env: &[],
            annotations: &[],
            owned: &["enabled", "authorizer", "agents", "users"],
            rare: &[],
        })
    }
}
