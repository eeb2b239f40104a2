//! Reads the active revisions from a cluster, and the settings of the operator's own ConfigMap.

use std::{collections::BTreeSet, path::PathBuf};

use anyhow::Context;
use k8s_openapi::api::core::v1::ConfigMap;
use kaos_crds::PolicyRevisionStatus;
use kaos_policy::{
    contract::ResourceType,
    gate,
    settings::{Layer, Origin},
};
use kube::{Api, Client};

use super::{
    answering::{PolicySet, Shipped},
    output::complain,
    revisions::{Revision, Revisions, name, shown, state, status},
};
use crate::{
    catalogue::{
        installed::{is_default, moved_objects},
        operator_config,
    },
    config_maps::{FITTED_CONFIG, OPERATOR_CONFIG},
    package::PolicyCode,
    policies::{Candidate, ComponentOrigin, Loaded, Loader},
    presets::{COMPATIBILITY, Preset},
    server::is_newer,
    timestamps::parsed,
};

/// Returns all policies and settings that are in effect: the default policies, the active packages and their
/// predecessors. If the settings in the operator's own ConfigMap do not fit the policies, uses the last good settings,
/// and prints a note.
pub(super) async fn standing(
    client: &Client,
    loader: &Loader,
    own: &[Loaded],
    namespace: &str,
) -> anyhow::Result<PolicySet> {
    if is_newer(client).await? {
        loader.expect_newer();
    }
    let revisions = Revisions::new(client.clone(), namespace);
    let preset = preset(client, namespace).await?;
    let config = settings(client, namespace, OPERATOR_CONFIG).await?;
    let shared = preset.iter().cloned().chain(config).collect();
    let mut standing = PolicySet::new(own, shared, namespace)?;
    let all = revisions.all().await?;
    standing.shipped = in_force(&revisions, &all, own, loader).await?;
    standing.before = before(&revisions, &all, &standing.shipped, loader).await?;
    let Some(why) = standing.misfit() else { return Ok(standing) };
    let fitted = settings(client, namespace, FITTED_CONFIG).await?;
    let with_fitted = |fitted| standing.under(preset.iter().cloned().chain([fitted]).collect());
    let Some(fitted) = fitted.map(with_fitted).filter(|it| it.misfit().is_none()) else {
        return Ok(standing);
    };
    let so = "the last good settings apply, and the operator activates no package";
    complain("note", format_args!("ConfigMap {namespace}/{OPERATOR_CONFIG} does not fit the policies, so {so}: {why}"));
    Ok(fitted)
}

/// Reads the settings in one of the operator's ConfigMaps. Returns `None` if the ConfigMap does not exist.
async fn settings(client: &Client, namespace: &str, name: &str) -> anyhow::Result<Option<Layer>> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let config = api.get_opt(name).await.with_context(|| format!("ConfigMap {namespace}/{name}"))?;
    Ok(config.as_ref().map(operator_config))
}

/// Reads the layers of the preset from the ConfigMap that the chart installs.
async fn preset(client: &Client, namespace: &str) -> anyhow::Result<Vec<Layer>> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let named = || format!("ConfigMap {namespace}/{COMPATIBILITY}");
    let Some(config) = api.get_opt(COMPATIBILITY).await.with_context(named)? else { return Ok(Vec::new()) };
    Ok(Preset::of_config(&config)?.layers())
}

/// Loads all admitted packages from the bytes that the operator stored, including packages that wait because of a
/// conflict. Leaves out packages that cannot be loaded, and prints a warning for each.
async fn in_force(
    revisions: &Revisions,
    all: &[Revision],
    own: &[Loaded],
    loader: &Loader,
) -> anyhow::Result<Vec<Shipped>> {
    let mut found = Vec::new();
    let is_own = |revision: &&Revision| {
        let is_it = |own: &Loaded| revision.spec.digest == Some(own.policy.id().digest.to_string());
        is_default(&revision.spec.source) && own.iter().any(is_it)
    };
    // Without an open rollout, skip the record of a default policy that this program also contains: the policy answers
    // without its record.
    let let_in = all.iter().filter(|revision| state(revision).is_let_in());
    for revision in let_in.filter(|it| status(it).open_rollout().is_some() || !is_own(it)) {
        match shipped(revisions, revision, loader).await? {
            Ok(shipped) => found.push(shipped),
            Err(why) => {
                let left_out =
                    "is left out of the comparison, because an operator could not load the revision after a restart";
                complain("warning", format_args!("PolicyRevision {} {left_out}: {why}", name(revision)));
            }
        }
    }
    Ok(found)
}

/// Loads the predecessors of the packages, if the operator still stores their bytes.
async fn before(
    revisions: &Revisions,
    all: &[Revision],
    serving: &[Shipped],
    loader: &Loader,
) -> anyhow::Result<Vec<Shipped>> {
    let mut found: Vec<Shipped> = Vec::new();
    let mut wanted: Vec<String> = serving.iter().filter_map(|shipped| shipped.predecessor.clone()).collect();
    while let Some(next) = wanted.pop() {
        let revision = all.iter().find(|revision| name(revision) == next);
        let is_new =
            |revision: &&Revision| serving.iter().chain(&found).all(|known| *known.revision != *name(revision));
        let Some(revision) = revision.filter(is_new) else { continue };
        // Leave out a revision whose bytes are gone: without its bytes, the revision cannot answer as a fallback.
        if let Ok(earlier) = shipped(revisions, revision, loader).await? {
            wanted.extend(earlier.predecessor.clone());
            found.push(earlier);
        }
    }
    Ok(found)
}

/// Returns the kinds that installed policies answer for, or answered for earlier.
pub(in crate::cli) async fn claimed(client: Client, namespace: &str) -> anyhow::Result<BTreeSet<ResourceType>> {
    let all = Revisions::new(client, namespace).all().await?;
    Ok(kinds(all.iter()).collect())
}

/// Returns the kinds that these revisions answer for, or answered for earlier.
pub(super) fn kinds<'a>(revisions: impl Iterator<Item = &'a Revision>) -> impl Iterator<Item = ResourceType> {
    let kinds = revisions.flat_map(|revision| status(revision).kinds);
    kinds.filter_map(|kind| kind.split_once(' ').map(|(version, kind)| ResourceType::new(version, kind)))
}

/// Loads a revision from the bytes that the operator stored. If the revision cannot be loaded, returns a message with
/// the reason and the remedy.
async fn shipped(
    revisions: &Revisions,
    revision: &Revision,
    loader: &Loader,
) -> anyhow::Result<Result<Shipped, String>> {
    let named = || format!("PolicyRevision {}", name(revision));
    let package = match revisions.package(revision).await? {
        Ok(package) => package,
        Err(lost) => return Ok(Err(format!("{lost}: apply ConfigMap {} again", shown(&revision.spec.source)))),
    };
    let policy = match package.component {
        None => None,
        Some(PolicyCode { form, bytes }) => {
            let settings_from = Some(Origin::ClusterPolicy(revision.spec.source.config_map.clone()));
            let inner = gate::Candidate { form, bytes: bytes.into_owned(), file: package.file.clone(), settings_from };
            let candidate = Candidate { origin: ComponentOrigin::File(PathBuf::from(named())), inner };
            match loader.check(&candidate).result {
                Ok(policy) => Some(policy),
                Err(error) if error.is_lasting() => {
                    return Ok(Err(format!("{error}: use the version of kaos-operator that runs in the cluster")));
                }
                Err(error) => return Err(error).with_context(named),
            }
        }
    };
    let source = revision.spec.source.clone();
    let stage = moved_objects(&status(revision));
    let PolicyRevisionStatus { since, predecessor, .. } = status(revision);
    Ok(Ok(Shipped {
        revision: name(revision).into(),
        source: (source.namespace, source.config_map),
        policy,
        file: package.file,
        written_in: None,
        age: revisions.age(revision).await?,
        since: parsed(since.as_deref()),
        predecessor,
        stage,
    }))
}
