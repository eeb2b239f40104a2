//! The flags about the decision point of the gateway. Their environment variables have the same names as in the Go
//! operator.

use clap::{ArgAction, Args, builder::FalseyValueParser};
use kaos_crds::access::{AuthorizationPolicySpec, DataSource};
use kaos_policy::manifest::EVERY_NAMESPACE;

use crate::decision_point::DecisionPoint;

/// The objects that the operator keeps for the decision point.
#[derive(Debug, Clone, Args)]
pub(super) struct DecisionPointFlags {
    /// ConfigMap for the rules and the data of the gateway's decision point; with this flag, the operator creates and
    /// updates the AuthorizationPolicy kaos-authz in its own namespace; empty for none
    #[arg(long, env = "AUTHZ_POLICY_CONFIGMAP_NAME", value_name = "NAME", default_value = "", value_parser = name_or_none)]
    authorization_config_map: String,
    /// Namespaces of the AuthorizationPolicy kaos-authz; the default policies get the permission to read these
    /// namespaces; empty for all namespaces with objects
    #[arg(long, env = "AUTHZ_PROJECTION_NAMESPACES", value_delimiter = ',', value_name = "A,B", value_parser = namespace_or_none)]
    authorization_namespaces: Vec<String>,
    /// Author of the data in the ConfigMap of --authorization-config-map: automated or manual; empty for automated
    #[arg(long, env = "SECURITY_AUTHORIZATION_POLICY_DATA_SOURCE", value_name = "AUTHOR", default_value = "", value_parser = data_source)]
    authorization_data_source: DataSource,
    /// Do not write the rules into the ConfigMap of --authorization-config-map; the user writes the rules
    #[arg(long, env = "SECURITY_AUTHORIZATION_POLICY_REGO_OVERRIDE", action = ArgAction::SetTrue, value_parser = FalseyValueParser::new())]
    authorization_rego_override: bool,
    #[arg(
        help = "Create and update a ReferenceGrant for each namespace, so that the SecurityPolicies of the namespace can refer to the Service kaos-pdp; needs --authorization-config-map",
        long, env = "SECURITY_PDP_ENABLED", action = ArgAction::SetTrue, value_parser = FalseyValueParser::new()
    )]
    decision_point: bool,
}

impl DecisionPointFlags {
    /// Returns the objects that the operator writes for the decision point; `None` if it writes no such objects.
    pub(super) fn decision_point(&self) -> Option<DecisionPoint> {
        let spec = AuthorizationPolicySpec {
            namespaces: self.namespaces().collect(),
            config_map: self.authorization_config_map.clone(),
            data_source: self.authorization_data_source,
            rego_override: self.authorization_rego_override,
        };
        (!spec.config_map.is_empty()).then_some(DecisionPoint { spec, is_served: self.decision_point })
    }

    /// Returns the namespaces that the default policies can read for the AuthorizationPolicy.
    pub(super) fn read(&self) -> Vec<String> {
        if self.authorization_config_map.is_empty() {
            return Vec::new();
        }
        let listed: Vec<String> = self.namespaces().collect();
        if listed.is_empty() { vec![EVERY_NAMESPACE.to_owned()] } else { listed }
    }

    fn namespaces(&self) -> impl Iterator<Item = String> {
        self.authorization_namespaces.iter().filter(|namespace| !namespace.is_empty()).cloned()
    }
}

/// Like `name`, but accepts an empty text, because variables of the Go operator can be empty.
fn name_or_none(text: &str) -> Result<String, String> {
    if text.is_empty() { Ok(String::new()) } else { super::name(text) }
}

/// Like `one_namespace`, but accepts an empty text.
fn namespace_or_none(text: &str) -> Result<String, String> {
    if text.trim().is_empty() { Ok(String::new()) } else { super::one_namespace(text) }
}

fn data_source(text: &str) -> Result<DataSource, String> {
    match text {
        "" | "automated" => Ok(DataSource::Automated),
        "manual" => Ok(DataSource::Manual),
        _ => Err("write automated or manual".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::{Command, FromArgMatches as _};

    use super::*;

    fn given(flags: &[&str]) -> DecisionPointFlags {
        let command = DecisionPointFlags::augment_args(Command::new("run").no_binary_name(true));
        DecisionPointFlags::from_arg_matches(&command.try_get_matches_from(flags).unwrap()).unwrap()
    }

    #[test]
    fn without_a_config_map_the_operator_keeps_nothing_and_policies_read_no_further_namespace() {
        for flags in [&["--decision-point"][..], &["--authorization-config-map=", "--authorization-namespaces=a"]] {
            let given = given(flags);
            assert_eq!((given.decision_point(), given.read()), (None, Vec::new()), "{flags:?}");
        }
    }

    #[test]
    fn the_policies_read_the_listed_namespaces_or_all() {
        let listed = given(&["--authorization-config-map=rules", "--authorization-namespaces=a, b"]);
        assert_eq!(listed.read(), ["a", "b"]);
        assert_eq!(listed.decision_point().unwrap().spec.namespaces, ["a", "b"]);
        let all = given(&["--authorization-config-map=rules", "--authorization-namespaces="]);
        assert_eq!(all.read(), ["*"]);
        assert_eq!(all.decision_point().unwrap().spec.namespaces, [""; 0]);
    }

    #[test]
    fn the_author_of_the_data_is_the_operator_by_default() {
        let source =
            |text: &str| given(&["--authorization-config-map=x", text]).decision_point().unwrap().spec.data_source;
        assert_eq!(source("--authorization-data-source="), DataSource::Automated);
        assert_eq!(source("--authorization-data-source=manual"), DataSource::Manual);
    }
}
