//! Finds the package that the user names, among those in the cluster and those that only records mention.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, bail};
use k8s_openapi::api::core::v1::ConfigMap;
use kaos_crds::PolicySource;
use kube::{Api, Client, api::ListParams};

use super::revisions::{Revision, shown, status};
use crate::package::{CHUNK, LABEL, policy_file};

/// A package as its ConfigMap describes it. If there is no ConfigMap, as its newest record does.
#[derive(Debug, Default)]
pub(super) struct Known {
    policy: Option<String>,
    scope: BTreeSet<String>,
}

/// The user's name for a package.
pub(super) struct Named<'a> {
    /// Its ConfigMap, with or without namespace, or its policy.
    pub(super) name: &'a str,
    /// The namespace of its ConfigMap, if given.
    pub(super) namespace: Option<&'a str>,
    /// The namespaces in which it holds, if given.
    pub(super) scope: &'a BTreeSet<String>,
    /// The operator's namespace, which is searched first.
    pub(super) home: &'a str,
}

/// Returns all packages of a namespace, and the packages that records mention.
pub(super) async fn known(
    client: &Client,
    namespace: &str,
    all: &[Revision],
) -> anyhow::Result<BTreeMap<PolicySource, Known>> {
    let mut known: BTreeMap<PolicySource, Known> = BTreeMap::new();
    // Revisions are sorted by age, so the newest record wins.
    for revision in all {
        let scope = revision.spec.scope.namespaces.iter().cloned().collect();
        let entry = known.entry(revision.spec.source.clone()).or_default();
        *entry = Known { policy: status(revision).policy, scope };
    }
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

/// Returns the one package that fits the name. Fails if none fits, or several.
pub(super) fn meant(
    known: &BTreeMap<PolicySource, Known>,
    Named { name, namespace, scope, home }: &Named<'_>,
) -> anyhow::Result<PolicySource> {
    let fits = |(source, known): &(&PolicySource, &Known)| {
        namespace.is_none_or(|said| source.namespace == said) && (scope.is_empty() || known.scope == **scope)
    };
    let fitting: Vec<(&PolicySource, &Known)> = known.iter().filter(fits).collect();
    let is_source = |source: &PolicySource| source.config_map == *name || shown(source) == *name;
    let of_source = fitting.iter().filter(|(source, _)| is_source(source)).map(|(source, _)| *source);
    let of_source: Vec<&PolicySource> = of_source.collect();
    let of_policy = fitting.iter().filter(|(_, known)| known.policy.as_deref() == Some(*name));
    let of_policy: Vec<&PolicySource> = of_policy.map(|(source, _)| *source).collect();
    let at_home = |of: &[&PolicySource]| -> Vec<PolicySource> {
        of.iter().filter(|source| source.namespace == *home).map(|source| (*source).clone()).collect()
    };
    let all = |of: &[&PolicySource]| of.iter().map(|source| (*source).clone()).collect::<Vec<_>>();
    let orders = [at_home(&of_source), at_home(&of_policy), all(&of_source), all(&of_policy)];
    let found = orders.into_iter().find(|found| !found.is_empty()).unwrap_or_default();
    match found.as_slice() {
        [] => bail!("{name}: there is no policy ConfigMap or record of this name here: see `policy list --all`"),
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
                "{name}: several ConfigMaps have a policy of this name: name one of {}, or say --scope",
                names.join(", ")
            )
        }
    }
}
