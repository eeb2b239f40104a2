//! Finds the package that the user names. Searches the packages in the cluster, and the packages that exist only in
//! records.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, bail};
use clap::Args;
use k8s_openapi::api::core::v1::ConfigMap;
use kaos_crds::PolicySource;
use kube::{Api, Client, api::ListParams};

use super::{
    connection::Connection,
    facts::Home,
    revisions::{Revision, shown, status},
};
use crate::{
    catalogue::installed::is_default,
    package::{CHUNK, LABEL, policy_file},
};

/// The policy name and the scope of a package, from its ConfigMap, or from its newest record if the ConfigMap does not
/// exist.
#[derive(Debug, Default)]
pub(super) struct NamedPackage {
    policy: Option<String>,
    scope: BTreeSet<String>,
}

/// Arguments that distinguish packages with the same name.
#[derive(Debug, Args)]
pub(super) struct Only {
    /// Namespace of the ConfigMap; default: the command searches the operator's namespace first, then all other
    /// namespaces
    #[arg(short, long, value_parser = super::namespace)]
    namespace: Option<String>,
    /// Namespaces of the package; chooses among several ConfigMaps of one policy
    #[arg(long, value_delimiter = ',', value_name = "A,B", value_parser = super::namespace)]
    scope: Vec<String>,
}

/// Arguments that name a revision of a package.
#[derive(Debug, Args)]
pub(super) struct NamedRevision {
    /// PolicyRevision, ConfigMap of the policy as NAME or NAMESPACE/NAME, or name of the policy
    pub(super) name: String,
    #[command(flatten)]
    pub(super) connection: Connection,
    #[command(flatten)]
    pub(super) only: Only,
    #[command(flatten)]
    pub(super) home: Home,
}

/// Packages by their source ConfigMaps.
pub(super) type Packages = BTreeMap<PolicySource, NamedPackage>;

/// Returns the packages that the records describe.
///
/// `all` contains the records, the oldest first. So the policy name comes from the newest record that has one.
pub(super) fn recorded(all: &[Revision]) -> Packages {
    let mut recorded = Packages::new();
    for revision in all {
        let entry = recorded.entry(revision.spec.source.clone()).or_default();
        entry.policy = status(revision).policy.or(entry.policy.take());
        entry.scope = revision.spec.scope.namespaces.iter().cloned().collect();
    }
    recorded
}

/// Returns all packages of a namespace, and the packages of the records.
pub(super) async fn known(client: &Client, namespace: &str, all: &[Revision]) -> anyhow::Result<Packages> {
    let mut known = recorded(all);
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let indexes = ListParams::default().labels(&format!("{LABEL},{LABEL}!={CHUNK}"));
    let listed = api.list(&indexes).await.with_context(|| format!("ConfigMaps of namespace {namespace}"))?;
    for index in listed.items {
        let config_map = index.metadata.name.clone().unwrap_or_default();
        let entry = known.entry(PolicySource { namespace: namespace.to_owned(), config_map }).or_default();
        if let Ok(file) = policy_file(&index) {
            entry.policy = file.name.or(entry.policy.take());
            entry.scope = file.scope.namespaces.into_iter().collect();
        }
    }
    Ok(known)
}

/// Fails if a package is a default policy, which has no ConfigMap.
pub(super) fn packaged(source: PolicySource) -> anyhow::Result<PolicySource> {
    if is_default(&source) {
        bail!(
            "{}: this is a default policy, which comes with the operator: install another version of the operator, or \
             steer its rollout with `policy return`, `promote`, `pause` and `resume`",
            shown(&source)
        );
    }
    Ok(source)
}

impl Only {
    /// Returns the namespace that the user gave before the name (`namespace/name`) or with the flag, or `None` if the
    /// user gave no namespace.
    pub(super) fn namespace_of<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        name.split_once('/').map(|(namespace, _)| namespace).or(self.namespace.as_deref())
    }

    /// Returns the package with the given name. The name may be `NAME` or `NAMESPACE/NAME` of its ConfigMap, or the
    /// name of its policy. If several packages have this name, prefers packages in the operator's namespace `home`.
    /// Fails if no package or more than one package has the name.
    pub(super) fn meant(&self, name: &str, home: &str, known: &Packages) -> anyhow::Result<PolicySource> {
        let scope: BTreeSet<String> = self.scope.iter().cloned().collect();
        let fits = |(source, known): &(&PolicySource, &NamedPackage)| {
            self.namespace.as_ref().is_none_or(|said| source.namespace == *said)
                && (scope.is_empty() || known.scope == scope)
        };
        let fitting: Vec<(&PolicySource, &NamedPackage)> = known.iter().filter(fits).collect();
        let is_source = |source: &PolicySource| source.config_map == name || shown(source) == name;
        let of_source = fitting.iter().filter(|(source, _)| is_source(source)).map(|(source, _)| *source);
        let of_source: Vec<&PolicySource> = of_source.collect();
        let is_policy = |(_, known): &&(&PolicySource, &NamedPackage)| known.policy.as_deref() == Some(name);
        let of_default: Vec<&PolicySource> =
            fitting.iter().filter(is_policy).map(|(source, _)| *source).filter(|source| is_default(source)).collect();
        // A package of a user comes before the default policy of the same name.
        let of_policy = fitting.iter().filter(is_policy).filter(|(source, _)| !is_default(source));
        let of_policy: Vec<&PolicySource> = of_policy.map(|(source, _)| *source).collect();
        let at_home = |of: &[&PolicySource]| -> Vec<PolicySource> {
            of.iter().filter(|source| source.namespace == home).map(|source| (*source).clone()).collect()
        };
        let all = |of: &[&PolicySource]| of.iter().map(|source| (*source).clone()).collect::<Vec<_>>();
        let orders = [at_home(&of_source), at_home(&of_policy), all(&of_source), all(&of_policy), all(&of_default)];
        let found = orders.into_iter().find(|found| !found.is_empty()).unwrap_or_default();
        match found.as_slice() {
            [] => bail!("{name}: no ConfigMap or PolicyRevision of a policy has this name: see `policy list --all`"),
            [one] => Ok(one.clone()),
            several => {
                let names = several.iter().map(|source| match known.get(source) {
                    Some(known) if !known.scope.is_empty() => {
                        format!("{} (in {})", shown(source), known.scope.iter().cloned().collect::<Vec<_>>().join(", "))
                    }
                    _ => shown(source),
                });
                let names: Vec<String> = names.collect();
                bail!(
                    "{name}: several ConfigMaps contain a policy with this name: name one of {}, or choose with \
                     --scope",
                    names.join(", ")
                )
            }
        }
    }
}
