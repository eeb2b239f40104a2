//! `rbac`: prints the minimal rights that the operator needs, ready for `kubectl apply -f -`.

use std::{path::PathBuf, process::ExitCode};

use clap::{Args, ValueEnum};
use kaos_policy::policy::Policy;
use serde_json::json;

use super::output::Output;
use crate::{
    policies::{Loader, sample_cluster},
    rbac::{Duties, Scope, manifests, rules},
    yaml,
};

/// Arguments of `rbac`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(super) struct Rbac {
    /// Namespace that the operator runs in
    #[arg(short = 'n', long = "namespace", env = "SYSTEM_NAMESPACE", default_value = super::HOME, value_parser = super::namespace)]
    namespace: String,
    /// Namespaces to work in, with Roles and without cluster-wide rights
    #[arg(long, env = "WATCH_NAMESPACES", value_delimiter = ',', value_name = "A,B", value_parser = super::one_namespace)]
    namespaces: Vec<String>,
    /// Add the right to hold a Lease
    #[arg(long)]
    leader_elect: bool,
    /// Add the right to read Secrets
    #[arg(long)]
    watch_secrets: bool,
    /// Add the right to read policies in other namespaces than the operator's
    #[arg(long)]
    namespace_policies: bool,
    /// Add the rights to create and update the objects of the gateway's decision point; `run
    /// --authorization-config-map` needs these rights
    #[arg(long)]
    decision_point: bool,
    #[command(flatten)]
    without: super::left_out::Without,
    /// Component of another policy; adds the rights for its claims
    #[arg(long = "policy", value_name = "X.wasm")]
    policies: Vec<PathBuf>,
    /// Name of the service account, and of the roles and bindings that give it rights
    #[arg(long, default_value = "kaos-operator", value_parser = super::name)]
    name: String,
    /// Format of the output
    #[arg(short, long, value_enum, default_value_t)]
    output: RightsForm,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum RightsForm {
    /// One document for each object
    #[default]
    Yaml,
    /// A List
    Json,
    /// Only the rules, grouped by the namespaces in which they apply, for your own templates
    Rules,
}

impl Rbac {
    /// Prints the rights.
    pub(super) fn run(self, out: &mut Output) -> anyhow::Result<ExitCode> {
        let Self {
            namespace,
            namespaces,
            leader_elect,
            watch_secrets,
            namespace_policies,
            decision_point,
            without,
            policies,
            name,
            output,
        } = self;
        let loaded = Loader::cached(sample_cluster())?.accepting_all().load(&policies)?;
        let claiming: Vec<&Policy> = loaded.iter().map(|loaded| &*loaded.policy).collect();
        let duties = Duties {
            scope: scope(&namespaces),
            operator_namespace: namespace,
            secrets: watch_secrets,
            leader_election: leader_elect,
            namespace_policies,
            left_out: without.left_out(),
            decision_point,
        };
        let rights = rules(&claiming, &duties);
        let objects = manifests(&rights, &duties, &name);
        match output {
            RightsForm::Rules => out.verbatim(&serde_saphyr::to_string(&rights.rules())?)?,
            RightsForm::Json => out.json(&json!({"apiVersion": "v1", "kind": "List", "items": objects}))?,
            RightsForm::Yaml => out.verbatim(&yaml::stream(&objects)?)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns the scope of the operator: the listed namespaces, or all namespaces if the list is empty.
pub(super) fn scope(namespaces: &[String]) -> Scope {
    if namespaces.is_empty() { Scope::All } else { Scope::Listed(namespaces.iter().cloned().collect()) }
}
