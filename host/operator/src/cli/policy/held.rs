//! Activates the packages in files that represent a cluster. A simulated operator activates each package that passes
//! the operator's checks.

use std::{path::PathBuf, sync::Arc};

use anyhow::{Context, bail};
use k8s_openapi::api::core::v1::ConfigMap;
use kaos_policy::{
    contract::Claim,
    gate,
    settings::{Layer, Origin},
};

use super::{
    answering::{PolicySet, Shipped},
    output::complain,
};
use crate::{
    catalogue::{Age, Grantable, reach},
    input::Document,
    package::{Package, PolicyCode, is_chunk, is_index, unpack},
    policies::{Candidate, ComponentOrigin, Loaded, Loader},
};

/// The simulated operator. The commands compute how this operator would activate packages.
pub(in crate::cli) struct Beside<'a> {
    /// The loader for components.
    pub(in crate::cli) loader: &'a Loader,
    /// The default policies of the simulated operator, and the policies of `--policy`.
    pub(in crate::cli) own: &'a [Loaded],
    /// The namespace of the simulated operator.
    pub(in crate::cli) home: &'a str,
    /// The limits for grants of packages.
    pub(in crate::cli) grantable: &'a Grantable,
    /// Whether namespaces other than the operator's may have policies.
    pub(in crate::cli) in_namespaces: bool,
}

impl Beside<'_> {
    /// Returns all policies and settings of a cluster that contains these objects. Activates the packages one by one,
    /// the oldest first. Prints a warning with the reason for each package that an operator would not activate. Leaves
    /// out the package whose ConfigMap has the namespace and name in `but`.
    pub(in crate::cli) fn standing(
        &self,
        documents: &[Document],
        shared: &[Layer],
        but: Option<&(String, String)>,
    ) -> anyhow::Result<PolicySet> {
        let mut standing = PolicySet::new(self.own, shared.to_vec(), self.home)?;
        let config_maps = packed(documents)?;
        let mut indexes: Vec<(Age, &Document, &ConfigMap)> = config_maps
            .iter()
            .filter(|(_, map)| is_index(&map.metadata))
            .map(|(document, map)| (age(map), *document, map))
            .filter(|(age, ..)| but.is_none_or(|(namespace, name)| (namespace, name) != (&age.namespace, &age.name)))
            .collect();
        indexes.sort_by(|(one, ..), (other, ..)| one.cmp(other));
        for (age, document, index) in indexes {
            if age.namespace != self.home && !self.in_namespaces {
                let why = "ignored, since packages outside of the operator's namespace need --namespace-policies";
                complain("note", format_args!("{}: {}: {why}", document.origin, document.identity));
                continue;
            }
            let chunk = |name: &str| {
                let is_it = |map: &ConfigMap| {
                    is_chunk(&map.metadata)
                        && map.metadata.name.as_deref() == Some(name)
                        && map.metadata.namespace == index.metadata.namespace
                };
                config_maps.iter().map(|(_, map)| map).find(|map| is_it(map))
            };
            let taken = unpack(index, chunk)
                .map_err(anyhow::Error::from)
                .and_then(|package| self.shipped(package, age))
                .and_then(|new| standing.let_in(new, self.loader));
            match taken {
                Ok(with) => standing = with,
                Err(why) => {
                    let what = "left out, since an operator would not activate this package";
                    complain("warning", format_args!("{}: {}: {what}: {why:#}", document.origin, document.identity));
                }
            }
        }
        Ok(standing)
    }

    /// Checks a package alone, without the packages that already serve.
    fn shipped(&self, package: Package, age: Age) -> anyhow::Result<Shipped> {
        let Package { name, namespace, file, component } = package;
        self.grantable.covers_grants(&file.grants)?;
        reach(&file, &namespace, self.home)?;
        let policy = match component {
            None => None,
            Some(PolicyCode { form, bytes }) => {
                let settings_from = Some(Origin::ClusterPolicy(name.clone()));
                let inner = gate::Candidate { form, bytes: bytes.into_owned(), file: file.clone(), settings_from };
                let origin = ComponentOrigin::File(PathBuf::from(format!("ConfigMap {namespace}/{name}")));
                let policy = self.loader.check(&Candidate { origin, inner }).result?;
                let claims = &policy.descriptor().claims;
                self.grantable.covers_policy(claims, namespace == self.home, claims_of(self.own))?;
                Some(policy)
            }
        };
        if policy.is_none() && file.name.is_none() {
            bail!("policy.yaml has no `name`: a package without a component must name the policy of its settings");
        }
        let since = age.claimed;
        let revision = format!("{namespace}/{name}").into();
        let source = (namespace, name);
        Ok(Shipped { revision, source, policy, file, written_in: None, age, since, predecessor: None, stage: None })
    }
}

pub(super) fn claims_of(policies: &[Loaded]) -> impl Iterator<Item = &Claim> {
    policies.iter().flat_map(|loaded| &loaded.policy.descriptor().claims)
}

impl PolicySet {
    /// Returns a copy of this set with one more package. Fails if the policies could not serve together, or if settings
    /// do not fit their policy.
    fn let_in(&self, new: Shipped, loader: &Loader) -> anyhow::Result<Self> {
        self.has_policy_for(&new)?;
        let revision = Arc::clone(&new.revision);
        let with = self.with(new);
        if let Some(why) = with.misfit_with(&revision) {
            bail!("{why}");
        }
        with.try_package(&revision, loader)?;
        Ok(with)
    }
}

/// Returns the age of a package. If the file contains the creation time of the package's ConfigMap, the policy claims
/// its place from this time.
fn age(map: &ConfigMap) -> Age {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    let created = map.metadata.creation_timestamp.as_ref();
    let age = Age::new(created, text(&map.metadata.namespace), text(&map.metadata.name));
    Age { claimed: created.map(|time| time.0), ..age }
}

/// Returns the ConfigMaps of packages, with their documents.
fn packed(documents: &[Document]) -> anyhow::Result<Vec<(&Document, ConfigMap)>> {
    let mut found = Vec::new();
    for document in documents {
        let identity = &document.identity;
        if !identity.group.is_empty() || identity.kind != "ConfigMap" {
            continue;
        }
        if document.object["metadata"]["labels"][crate::package::LABEL].is_null() {
            continue;
        }
        let map: ConfigMap = serde_json::from_value(document.object.clone())
            .with_context(|| format!("{}: {identity}", document.origin))?;
        found.push((document, map));
    }
    Ok(found)
}
