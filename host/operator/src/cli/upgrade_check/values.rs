//! Reads the values of a Helm release. Derives the same settings from these values as this operator's chart.

use std::path::Path;

use anyhow::{Context, bail};
use kaos_policy::settings::{Layer, Origin};
use serde_json::{Map, Value, json};

use super::super::{compatibility::Compatibility, output::complain};
use crate::{
    config_maps::OPERATOR_CONFIG,
    input::{self, Document},
    presets::{COMPATIBILITY, Preset},
};

/// The default preset of the chart.
const USUAL: &str = "kaos-0.8";
/// The ConfigMaps with the runtimes of `MCPServer` objects and of harnesses.
const REGISTRIES: [&str; 2] = ["kaos-mcp-runtimes", "kaos-harness-runtimes"];

/// The variables of `kaos-operator-config`, and the values that the chart fills them with.
pub(super) const VARIABLES: [(&str, &str); 29] = [
    ("DEFAULT_AGENT_IMAGE", "defaultImages.agentRuntime"),
    ("DEFAULT_MCP_SERVER_IMAGE", "defaultImages.mcpServer"),
    ("DEFAULT_LITELLM_IMAGE", "defaultImages.litellm"),
    ("DEFAULT_OLLAMA_IMAGE", "defaultImages.ollama"),
    ("DEFAULT_MEMORY_SERVICE_IMAGE", "defaultImages.memoryService"),
    ("GATEWAY_API_ENABLED", "gatewayAPI.enabled"),
    ("GATEWAY_DEFAULT_AGENT_TIMEOUT", "gateway.defaultTimeouts.agent"),
    ("GATEWAY_DEFAULT_MODELAPI_TIMEOUT", "gateway.defaultTimeouts.modelAPI"),
    ("GATEWAY_DEFAULT_MCP_TIMEOUT", "gateway.defaultTimeouts.mcp"),
    ("GATEWAY_DEFAULT_MEMORYSTORE_TIMEOUT", "gateway.defaultTimeouts.memoryStore"),
    ("DEFAULT_TELEMETRY_ENABLED", "telemetry.enabled"),
    ("DEFAULT_TELEMETRY_ENDPOINT", "telemetry.endpoint"),
    ("DEFAULT_LOG_LEVEL", "logLevel"),
    ("SECURITY_AGENT_AUTH_SERVICE_ACCOUNT_AUDIENCE", "security.agentAuth.identity.serviceAccount.audience"),
    (
        "SECURITY_AGENT_AUTH_SERVICE_ACCOUNT_EXPIRATION_SECONDS",
        "security.agentAuth.identity.serviceAccount.expirationSeconds",
    ),
    ("SECURITY_AGENT_AUTH_SERVICE_ACCOUNT_TOKEN_PATH", "security.agentAuth.identity.serviceAccount.tokenPath"),
    ("SECURITY_PDP_ENABLED", "security.pdp.enabled"),
    ("SECURITY_AGENT_AUTH_EXT_AUTHZ_URL", "security.agentAuth.extAuthzUrl"),
    ("SECURITY_AGENT_AUTH_SERVICE_ACCOUNT_ISSUER", "security.agentAuth.identity.serviceAccount.issuer"),
    ("SECURITY_AGENT_AUTH_SERVICE_ACCOUNT_JWKS", "security.agentAuth.identity.serviceAccount.jwks"),
    ("SECURITY_USER_AUTH_ISSUER", "security.userAuth.issuer"),
    ("SECURITY_USER_AUTH_AUDIENCE", "security.userAuth.audience"),
    ("SECURITY_USER_AUTH_JWKS_URI", "security.userAuth.jwksUri"),
    ("SECURITY_USER_AUTH_JWKS", "security.userAuth.jwks"),
    ("SECURITY_GATEWAY_NAMESPACE", "security.gatewayNamespace"),
    ("SECURITY_NETWORK_POLICY_EGRESS_ENABLED", "security.networkPolicy.egress.enabled"),
    ("SECURITY_GATEWAY_ROUTING_ENABLED", "security.gatewayRouting.enabled"),
    ("SECURITY_STRICT_GATEWAY_API_ENABLED", "security.strictGatewayApi.enabled"),
    ("SECURITY_GATEWAY_HOST", "security.gatewayHost"),
];

/// The policies that have the setting `security`.
const PROTECTING: [&str; 4] = ["agent", "mcpserver", "modelapi", "memorystore"];

/// The values with the images of the preset's runtimes.
const IMAGES: [(&str, &str); 5] = [
    ("python-string", "defaultImages.mcpPythonString"),
    ("pctx-codemode", "defaultImages.mcpPctxCodemode"),
    ("fastmcp-codemode", "defaultImages.mcpFastmcpCodemode"),
    ("kubernetes", "defaultImages.mcpKubernetes"),
    ("slack", "defaultImages.mcpSlack"),
];

#[derive(Debug, Default)]
pub(super) struct Values(Value);

impl Values {
    /// Reads files of values. A later file wins. A null in a later file removes a value.
    pub(super) fn read(files: &[String]) -> anyhow::Result<Self> {
        let mut values = Value::Object(Map::new());
        for file in files {
            let read = input::document(Path::new(file))?;
            if !read.is_object() && !read.is_null() {
                bail!("{file}: is not a file of values: write the output of `helm get values NAME -o yaml` into it");
            }
            merge(&mut values, read);
        }
        Ok(Self(values))
    }

    /// Returns the value at a path with dots.
    fn at(&self, path: &str) -> &Value {
        path.split('.').fold(&self.0, |value, name| &value[name])
    }

    /// Returns a value as text. Returns `None` for an empty value and for 0, because the preset's value replaces an
    /// empty value and 0.
    pub(super) fn text(&self, path: &str) -> Option<String> {
        match self.at(path) {
            Value::String(text) => (!text.is_empty()).then(|| text.clone()),
            Value::Number(number) => (number.as_f64() != Some(0.0)).then(|| number.to_string()),
            Value::Bool(is) => Some(is.to_string()),
            _ => None,
        }
    }

    /// Returns whether a value is true.
    pub(super) fn is_on(&self, path: &str) -> bool {
        *self.at(path) == true
    }

    /// Returns the value at `path` in the chart's values, or else the value of `variable` in `extraConfig`. `None` if
    /// both are missing.
    pub(super) fn given(&self, path: &str, variable: &str) -> Option<String> {
        let extra = self.at("extraConfig")[variable].as_str();
        self.text(path).or_else(|| extra.filter(|text| !text.is_empty()).map(str::to_owned))
    }

    /// Returns whether a decision point protects objects.
    pub(super) fn decide(&self) -> bool {
        self.given("security.pdp.enabled", "SECURITY_PDP_ENABLED").as_deref() == Some("true")
            || self.given("security.agentAuth.extAuthzUrl", "SECURITY_AGENT_AUTH_EXT_AUTHZ_URL").is_some()
    }

    /// Returns whether all calls go through the Gateway. If all calls do, objects are protected even without a decision
    /// point.
    pub(super) fn are_strict(&self) -> bool {
        let strict = self.given("security.strictGatewayApi.enabled", "SECURITY_STRICT_GATEWAY_API_ENABLED");
        strict.as_deref() == Some("true")
    }

    /// Returns whether Agents call each other through the Gateway.
    pub(super) fn route(&self) -> bool {
        self.are_strict() || self.is_on("security.gatewayRouting.enabled")
    }

    /// Returns the name of the ConfigMap that the operator writes for a decision point, or `None` without a decision
    /// point.
    pub(super) fn projection(&self) -> Option<String> {
        let named = self.given("security.agentAuth.projection.policyConfigMap.name", "AUTHZ_POLICY_CONFIGMAP_NAME");
        named.or_else(|| self.is_on("security.pdp.enabled").then(|| "kaos-authz-policy".to_owned()))
    }

    /// Returns whether the operator works in a namespace.
    pub(super) fn works_in(&self, namespace: &str) -> bool {
        let listed = self.at("watchNamespaces").as_array();
        listed.is_none_or(|listed| listed.is_empty() || listed.iter().any(|it| it == namespace))
    }

    /// Returns the preset that the chart would write.
    pub(super) fn preset(&self, flag: &Compatibility) -> anyhow::Result<Preset> {
        let named = self.text("compatibility");
        let name = flag.name().or(named.as_deref()).unwrap_or(USUAL);
        let mut preset = Preset::named(name)?;
        let sections = &mut preset.sections;
        if let Some(provider) = self.text("security.agentAuth.identity.provider") {
            sections["agent"]["serviceAccount"]["enabled"] = (provider == "serviceaccount").into();
        }
        if *self.at("security.agentAuth.gatewayJwtOptional") == false {
            for policy in PROTECTING {
                sections[policy]["security"]["jwtOptional"] = false.into();
            }
        }
        Ok(preset)
    }

    /// Returns the settings layers after the upgrade.
    pub(super) fn layers(&self, preset: &Preset) -> Vec<Layer> {
        let mut layers = preset.layers();
        let is_secured = self.decide() || self.route();
        let is_given = |name: &str, text: &str| {
            // The chart writes these variables only for a secured cluster, and leaves out each switch that is off.
            !is_about_security(name) || (is_secured && text != "false")
        };
        let given = VARIABLES.iter().filter_map(|(name, path)| Some(((*name).to_owned(), self.text(path)?)));
        let mut variables: Vec<(String, String)> = given.filter(|(name, text)| is_given(name, text)).collect();
        if is_secured && *self.at("security.networkPolicy.enabled") == false {
            variables.push(("SECURITY_NETWORK_POLICY_DISABLED".to_owned(), "true".to_owned()));
        }
        for (name, value) in self.at("extraConfig").as_object().into_iter().flatten() {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            variables.extend((!value.is_null()).then(|| (name.clone(), text)));
        }
        layers.push(Layer::env(Origin::OperatorConfig, variables));
        for (name, package) in self.at("policies").as_object().into_iter().flatten() {
            let of = package["policy"].as_str().or(package["name"].as_str());
            let is_elsewhere = package["scope"].is_object() || !package["component"].is_null();
            match of.filter(|_| !is_elsewhere && package["file"].is_null()) {
                Some(of) => layers.push(Layer::tree(
                    Origin::ClusterPolicy(name.clone()),
                    of,
                    package.get("settings").cloned().unwrap_or_else(|| json!({})),
                )),
                None if package.is_null() => {}
                None => complain("note", format_args!("the value policies.{name} is not checked")),
            }
        }
        layers
    }

    /// Returns the objects, with the ConfigMaps of the new chart instead of the operator's existing ConfigMaps.
    pub(super) fn applied_to(
        &self,
        documents: &[Document],
        preset: &Preset,
        home: &str,
    ) -> anyhow::Result<Vec<Document>> {
        let is_replaced = |document: &&Document| {
            let identity = &document.identity;
            let names = [&REGISTRIES[..], &[OPERATOR_CONFIG, COMPATIBILITY]].concat();
            identity.kind == "ConfigMap"
                && identity.namespace.as_deref() == Some(home)
                && names.contains(&identity.name.as_str())
        };
        let mut kept: Vec<Document> = documents.iter().filter(|document| !is_replaced(document)).cloned().collect();
        let config_map = |name: &str, runtimes: &Value| {
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": home},
                "data": {"runtimes.yaml": json!({"runtimes": runtimes}).to_string()}})
        };
        let registries =
            [config_map(REGISTRIES[0], &self.runtimes(preset)), config_map(REGISTRIES[1], &self.harnesses())];
        let (made, errors) = input::parse(&"the values".into(), &json!(registries[0]).to_string(), home);
        let (more, wrong) = input::parse(&"the values".into(), &json!(registries[1]).to_string(), home);
        if let Some(error) = errors.into_iter().chain(wrong).next() {
            return Err(error).context("the registries of runtimes");
        }
        kept.extend(made.into_iter().chain(more));
        Ok(kept)
    }

    fn runtimes(&self, preset: &Preset) -> Value {
        let mut runtimes = preset.sections["mcpserver"]["runtimes"].clone();
        for (name, path) in IMAGES {
            if let (Some(image), Some(runtime)) = (self.text(path), runtimes.get_mut(name)) {
                runtime["image"] = image.into();
            }
        }
        self.with_custom(runtimes, "mcpRuntimes.custom")
    }

    fn harnesses(&self) -> Value {
        let image = self.text("defaultImages.harnessPi");
        let image = image.unwrap_or_else(|| "ghcr.io/axsaucedo/kaos-harness-pi:0.1.0".to_owned());
        self.with_custom(json!({"pi": {"driver": "pi", "image": image}}), "harnessRuntimes.custom")
    }

    /// Returns the runtimes with the user's entries. A user's entry replaces the whole entry of the same name.
    fn with_custom(&self, mut runtimes: Value, path: &str) -> Value {
        for (name, runtime) in self.at(path).as_object().into_iter().flatten().filter(|(_, entry)| !entry.is_null()) {
            runtimes[name] = runtime.clone();
        }
        runtimes
    }
}

/// Returns whether a variable concerns protection. Returns false for the variables of the Agents' own tokens.
fn is_about_security(variable: &str) -> bool {
    const TOKENS: [&str; 3] = ["_AUDIENCE", "_EXPIRATION_SECONDS", "_TOKEN_PATH"];
    let account = variable.strip_prefix("SECURITY_AGENT_AUTH_SERVICE_ACCOUNT");
    variable.starts_with("SECURITY_") && !account.is_some_and(|rest| TOKENS.contains(&rest))
}

/// Merges values as Helm does. Maps are merged key by key, a null removes a value, and any other value replaces the
/// earlier value.
fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                if value.is_null() {
                    into.remove(&name);
                } else {
                    merge(into.entry(name).or_insert(Value::Null), value);
                }
            }
        }
        (_, Value::Null) => {}
        (into, from) => *into = from,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(file: &str) -> Value {
        let text = std::fs::read_to_string(format!("{}/../../{file}", env!("CARGO_MANIFEST_DIR"))).unwrap();
        let (documents, errors) = input::parse(&file.into(), &text, "kaos-system");
        assert!(errors.is_empty() || documents.is_empty(), "{errors:?}");
        match &*documents {
            [] => serde_saphyr::from_str(&text).unwrap(),
            all => Value::Array(all.iter().map(|document| document.object.clone()).collect()),
        }
    }

    fn made(name: &str) -> Value {
        let made = read("deploy/install.yaml");
        let is_it = |object: &&Value| object["kind"] == "ConfigMap" && object["metadata"]["name"] == name;
        made.as_array().unwrap().iter().find(is_it).unwrap()["data"].clone()
    }

    #[test]
    fn the_chart_makes_the_same_of_its_own_values() {
        let values = Values(read("deploy/helm/kaos-operator/values.yaml"));
        let preset = values.preset(&Compatibility::of(None)).unwrap();
        let layers = values.layers(&preset);
        let Some(Layer { content: kaos_policy::settings::Content::Env(variables), .. }) = layers.last() else {
            panic!("{layers:?}");
        };
        assert_eq!(json!(variables), made(OPERATOR_CONFIG));
        let chosen: Value = serde_saphyr::from_str(made(COMPATIBILITY)["kaos-0.8.yaml"].as_str().unwrap()).unwrap();
        assert_eq!(preset.sections, chosen);
        let registry =
            |name: &str| -> Value { serde_saphyr::from_str(made(name)["runtimes.yaml"].as_str().unwrap()).unwrap() };
        assert_eq!(json!({"runtimes": values.runtimes(&preset)}), registry(REGISTRIES[0]));
        let mut harnesses = registry(REGISTRIES[1]);
        harnesses["runtimes"]["pi"].as_object_mut().unwrap().remove("description");
        assert_eq!(json!({"runtimes": values.harnesses()}), harnesses);
    }

    #[test]
    fn files_of_values_are_merged_as_helm_merges_them() {
        let mut values = json!({"a": {"b": 1, "c": [1]}, "d": 1});
        merge(&mut values, json!({"a": {"c": [2], "e": 3}, "d": null}));
        assert_eq!(values, json!({"a": {"b": 1, "c": [2], "e": 3}}));
    }
}
