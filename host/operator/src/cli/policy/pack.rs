//! `policy pack`: prints a policy as ConfigMaps, with the rights that its claims require.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::{
    facts::Home,
    output::{Output, complain},
    scope,
    shipment::{Ready, Shipment, agreed},
};
use crate::{
    left_out::LeftOut,
    policies::{Loader, sample_cluster},
    rbac::{Duties, claimed, further},
    yaml,
};

/// Arguments of `policy pack`.
#[derive(Debug, Args)]
#[command(
    after_help = "A user who applies ClusterRoles and Roles must hold the rights in them. --without-rights omits \
                  these roles."
)]
pub(super) struct Pack {
    #[command(flatten)]
    shipment: Shipment,
    /// Namespace of the ConfigMap; default: the namespace that a packed file names, or the operator's namespace if no
    /// file names one. An operator uses packages in other namespaces only if it runs with --namespace-policies
    #[arg(short, long, value_parser = super::namespace)]
    namespace: Option<String>,
    #[command(flatten)]
    home: Home,
    /// Leave out the rights that the policy's claims need
    #[arg(long)]
    without_rights: bool,
    /// Namespaces of an operator that works only in listed namespaces; the rights are then a Role in each namespace,
    /// bound to the operator's service account
    #[arg(long, env = "WATCH_NAMESPACES", value_delimiter = ',', value_name = "A,B", value_parser = super::one_namespace)]
    namespaces: Vec<String>,
    /// Add the right to read Secrets, if the policy claims to read them
    #[arg(long, conflicts_with = "without_rights")]
    watch_secrets: bool,
    /// The operator's service account
    #[arg(long, default_value = "kaos-operator", value_name = "NAME", value_parser = super::name)]
    service_account: String,
    /// Format of the output
    #[arg(short, long, value_enum, default_value_t)]
    output: PackForm,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum PackForm {
    /// One document for each object
    #[default]
    Yaml,
    /// A List
    Json,
}

impl Pack {
    /// Prints the objects in the order in which a user must apply them.
    pub(super) fn run(self, out: &mut Output) -> anyhow::Result<ExitCode> {
        let Self {
            shipment,
            namespace,
            home: Home { operator_namespace },
            without_rights,
            namespaces,
            watch_secrets,
            service_account,
            output,
        } = self;
        let loader = Loader::cached(sample_cluster())?.accepting_all();
        let elsewhere = namespace.clone().filter(|namespace| *namespace != operator_namespace);
        let place = |packed: Option<&str>| agreed("--namespace", namespace, packed, &operator_namespace);
        let Ready { policy, packed, .. } = shipment.ready(&loader, place)?;
        let mut objects = Vec::new();
        if let Some(loaded) = policy.filter(|_| !without_rights) {
            if let Some(elsewhere) = elsewhere {
                complain(
                    "note",
                    format_args!(
                        "the rights are for an operator in namespace {operator_namespace}: if the operator runs \
                         in {elsewhere}, add --operator-namespace {elsewhere}"
                    ),
                );
            }
            let duties = Duties {
                scope: scope(&namespaces),
                operator_namespace,
                secrets: watch_secrets,
                leader_election: false,
                namespace_policies: false,
                left_out: LeftOut::default(),
                decision_point: false,
            };
            let name = format!("kaos-policy-{}", loaded.policy.id().name);
            objects.extend(further(&claimed(&loaded.policy, &duties), &duties, &name, &service_account));
        }
        let config_maps = packed.config_maps().map(serde_json::to_value).collect::<Result<Vec<Value>, _>>()?;
        objects.extend(config_maps);
        match output {
            PackForm::Json => out.json(&json!({"apiVersion": "v1", "kind": "List", "items": objects}))?,
            PackForm::Yaml => out.verbatim(&yaml::stream(&objects)?)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}
