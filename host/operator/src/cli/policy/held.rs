//! Packages among objects from files: these are what the cluster holds, and an operator lets in what it can of them.

use std::path::PathBuf;

use anyhow::{Context, bail};
use k8s_openapi::api::core::v1::ConfigMap;
use kaos_policy::{
    gate,
    settings::{Layer, Origin as Given},
};

use super::{
    answering::{Shipped, Standing},
    output::complain,
};
use crate::{
    catalogue::{Age, Grantable, reach},
    input::Document,
    package::{Package, is_chunk, is_index, unpack},
    policies::{Candidate, Loaded, Loader, Origin},
};

/// The operator that would let packages in.
pub(in crate::cli) struct Beside<'a> {
    /// What loads their components.
    pub(in crate::cli) loader: &'a Loader,
    /// The policies that it brought along.
    pub(in crate::cli) own: &'a [Loaded],
    /// Its namespace.
    pub(in crate::cli) home: &'a str,
    /// What packages may be granted at most.
    pub(in crate::cli) grantable: &'a Grantable,
    /// Whether other namespaces than its own may have policies of their own.
    pub(in crate::cli) in_namespaces: bool,
}

impl Beside<'_> {
    /// What stands where these objects are what the cluster holds, under settings that hold everywhere. Packages come one
    /// after another, the oldest first, and a warning tells which an operator would not let in, and why. `but` is left out,
    /// by its namespace and its name.
    pub(in crate::cli) fn standing(
        &self,
        documents: &[Document],
        shared: Vec<Layer>,
        but: Option<&(String, String)>,
    ) -> anyhow::Result<Standing> {
        let mut standing = Standing::new(self.own, shared.clone(), self.home)?;
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
                let why = "policies of namespaces count with --namespace-policies only, and this one is not read";
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
                .and_then(|new| standing.let_in(new, &shared, self.loader));
            match taken {
                Ok(with) => standing = with,
                Err(why) => {
                    let what = "an operator does not let it in, and it is left out";
                    complain("warning", format_args!("{}: {}: {what}: {why:#}", document.origin, document.identity));
                }
            }
        }
        Ok(standing)
    }

    /// A package as an operator would check it before it looks at what serves beside it.
    fn shipped(&self, package: Package, age: Age) -> anyhow::Result<Shipped> {
        let Package { name, namespace, file, component } = package;
        self.grantable.covers_grants(&file.grants)?;
        reach(&file, &namespace, self.home)?;
        let policy = match component {
            None => None,
            Some(bytes) => {
                let settings_from = Some(Given::ClusterPolicy(name.clone()));
                let inner = gate::Candidate { bytes, file: file.clone(), settings_from };
                let origin = Origin::File(PathBuf::from(format!("ConfigMap {namespace}/{name}")));
                let policy = self.loader.check(&Candidate { origin, inner }).result?;
                self.grantable.covers_claims(&policy.descriptor().claims)?;
                Some(policy)
            }
        };
        if policy.is_none() && file.name.is_none() {
            bail!("policy.yaml: says neither a component nor whose settings it has: add `name`");
        }
        let since = age.claimed;
        let revision = format!("{namespace}/{name}").into();
        Ok(Shipped { revision, source: (namespace, name), policy, file, age, since, predecessor: None })
    }
}

impl Standing {
    /// The same with one more package, if what stands then goes together, and settings fit what they are for.
    fn let_in(&self, new: Shipped, shared: &[Layer], loader: &Loader) -> anyhow::Result<Self> {
        self.has_policy_for(&new)?;
        for (policy, layers) in self.tuned_by(&new, shared) {
            gate::try_settings(&policy, &layers, &loader.cluster, &loader.server())?;
        }
        let with = self.with(new);
        match with.misfit() {
            Some(why) => bail!("{why}"),
            None => Ok(with),
        }
    }
}

/// How old a package is: it claims its place since its ConfigMap was created, as far as a file says when that was.
fn age(map: &ConfigMap) -> Age {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    let created = map.metadata.creation_timestamp.as_ref();
    let age = Age::new(created, text(&map.metadata.namespace), text(&map.metadata.name));
    Age { claimed: created.map(|time| time.0), ..age }
}

/// The ConfigMaps that packages lie in, with the documents that they come from.
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
