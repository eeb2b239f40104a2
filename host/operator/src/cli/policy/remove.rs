//! `policy remove`: prints which policies would serve without a package, and removes the package from the cluster.
//!
//! The records of the package's revisions and the stored bytes stay for `policy rollback`, unless the user gives
//! `--with-history`.

use std::{collections::BTreeSet, process::ExitCode, sync::Arc, time::Duration};

use anyhow::{Context as _, bail};
use clap::Args;
use k8s_openapi::api::core::v1::ConfigMap;
use kaos_crds::{PolicySource, RevisionState};
use kaos_policy::kubernetes::Checks;
use kube::{
    Api, Client,
    api::{DeleteParams, Preconditions},
};
use tokio::time::{Instant, sleep};

use super::{
    HELD_BACK, OutputFormat,
    answering::PolicySet,
    chunks::{self, Chunk, Fate},
    connection::Connection,
    facts::ClusterFacts,
    gone::needed,
    grantable::GrantablePrivileges,
    in_force::standing,
    named::{Only, known, packaged},
    output::{Output, complain},
    plan::{PlanScope, Sides, compared, tell},
    revisions::{LOOK, Revision, Revisions, name, shown, state, status},
};
use crate::{offline::Started, package::is_index, policies::Loader};

/// Annotation of objects that a Helm release installed.
const HELM: &str = "meta.helm.sh/release-name";

/// Arguments of `policy remove`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 = the policy was removed, and the operator noticed; 1 = the operator did not notice in \
                  time, or a record stays; 2 = there is nothing to remove, or the command cannot find out which \
                  policies would serve afterwards."
)]
pub(super) struct Remove {
    /// ConfigMap of the policy, as NAME or NAMESPACE/NAME, or the name of the policy
    name: String,
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    only: Only,
    /// Also remove the records of the policy and the bytes that the operator stored; after that, no rollback is
    /// possible
    #[arg(long)]
    with_history: bool,
    /// Print what the command would remove and which policies would serve afterwards, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Seconds to wait until the operator notices the removal; 0 does not wait
    #[arg(long, default_value_t = 120, value_name = "SECONDS")]
    timeout: u64,
    #[command(flatten)]
    facts: ClusterFacts,
    #[command(flatten)]
    grantable: GrantablePrivileges,
}

/// The objects that a removal deletes.
struct Going {
    source: PolicySource,
    index: Option<ConfigMap>,
    chunks: Vec<Chunk>,
    /// The revisions of the package that serve, and the revisions that wait because another revision serves the same
    /// place.
    serving: BTreeSet<Arc<str>>,
    /// The records to delete. `kept` has the names of the records that stay because other revisions fall back to them.
    records: Vec<Revision>,
    kept: Vec<String>,
}

impl Remove {
    /// Prints the effects of the removal, and removes the package.
    pub(super) fn run(self, out: &mut Output) -> anyhow::Result<ExitCode> {
        let Self { name: named, connection, only, with_history, dry_run, timeout, facts, grantable } = self;
        let started = Started { cluster: facts.cluster(), grantable: grantable.listed(), checks: Checks::Fields };
        let home = started.cluster.operator_namespace.clone();
        let loader = Loader::cached(started.cluster.clone())?.accepting_all();
        let own = loader.load(&[])?;
        super::on_cluster(connection, async |client| {
            let revisions = Revisions::new(client.clone(), &home);
            let all = revisions.all().await?;
            let place = only.namespace_of(&named).unwrap_or(&home);
            let source = packaged(only.meant(&named, &home, &known(&client, place, &all).await?)?)?;
            let going = Going::of(&client, &revisions, source, &all, with_history).await?;
            going.tell(&all, out)?;
            let standing = standing(&client, &loader, &own, &home).await?;
            let sides = Sides::without(&standing, going.serving.clone())?;
            for line in going.then(&standing, &sides, &home) {
                out.text(&format!("{line}\n"))?;
            }
            let everywhere = PlanScope { started, namespace: None };
            tell(&compared(client.clone(), &sides, &everywhere).await?, OutputFormat::Text, out)?;
            out.flush()?;
            if dry_run {
                complain("note", "dry run: nothing was changed");
                return Ok(ExitCode::SUCCESS);
            }
            going.remove(&client).await?;
            let patience = Duration::from_secs(timeout);
            if !until_noticed(&revisions, &going, patience).await? {
                complain("error", unnoticed(&home, with_history));
                return Ok(ExitCode::from(HELD_BACK));
            }
            let mut code = ExitCode::SUCCESS;
            for record in &going.records {
                let record_name = name(record);
                match revisions.forget(record).await? {
                    Ok(()) => complain("removed", format_args!("PolicyRevision {home}/{record_name}")),
                    Err(why) => {
                        complain("error", format_args!("PolicyRevision {home}/{record_name} stays: {why}"));
                        code = ExitCode::from(HELD_BACK);
                    }
                }
            }
            out.text(&format!("{}\n", going.way_back(&all, &home, with_history)))?;
            Ok(code)
        })
    }
}

impl Going {
    async fn of(
        client: &Client,
        revisions: &Revisions,
        source: PolicySource,
        all: &[Revision],
        with_history: bool,
    ) -> anyhow::Result<Self> {
        let api: Api<ConfigMap> = Api::namespaced(client.clone(), &source.namespace);
        let index = api.get_opt(&source.config_map).await.with_context(|| format!("ConfigMap {}", shown(&source)))?;
        let index = index.filter(|index| is_index(&index.metadata));
        let chunks = chunks::of_namespace(client, &source.namespace).await?;
        let chunks = chunks.get(&source.config_map).cloned().unwrap_or_default();
        let serving = serving_of(revisions, &source, all).await?;
        let of_source = all.iter().filter(|revision| with_history && revision.spec.source == source);
        let needed = needed(all, |other| *other != source);
        let (kept, records): (Vec<_>, Vec<_>) = of_source.cloned().partition(|record| needed.contains(name(record)));
        let kept = kept.iter().map(|record| name(record).to_owned()).collect();
        let going = Self { source, index, chunks, serving, records, kept };
        if going.index.is_none() && going.chunks.is_empty() && going.records.is_empty() {
            let stays = all.iter().filter(|it| it.spec.source == going.source).find(|it| state(it).is_let_in());
            match stays.map(|revision| (name(revision), status(revision).message.unwrap_or_default())) {
                Some((serves, why)) => bail!(
                    "ConfigMap {} was deleted, but PolicyRevision {serves} still serves ({why}): remove the policy for \
                     which this revision is the fallback",
                    shown(&going.source)
                ),
                None if !going.kept.is_empty() => bail!(
                    "ConfigMap {} is already deleted, and its records stay because other policies fall back to them: {}",
                    shown(&going.source),
                    going.kept.join(", ")
                ),
                None => {
                    bail!("ConfigMap {} is already deleted: --with-history removes its records", shown(&going.source))
                }
            }
        }
        Ok(going)
    }

    /// Prints the objects that the command will delete, and the Helm release that would restore them.
    fn tell(&self, all: &[Revision], out: &mut Output) -> anyhow::Result<()> {
        let namespace = &self.source.namespace;
        if self.index.is_some() {
            let of_source = all.iter().filter(|revision| revision.spec.source == self.source);
            let states = of_source.filter(|revision| !state(revision).is_replaced());
            let states: Vec<String> = states.map(|it| format!("{} is {}", name(it), state(it).name())).collect();
            let states =
                if states.is_empty() { "no operator has recorded the package".to_owned() } else { states.join(", ") };
            out.text(&format!("to remove: ConfigMap {} ({states})\n", shown(&self.source)))?;
        }
        for chunk in &self.chunks {
            out.text(&format!("to remove: ConfigMap {namespace}/{} (a chunk)\n", chunk.name))?;
        }
        for record in &self.records {
            out.text(&format!("to remove: PolicyRevision {}, with its stored bytes\n", name(record)))?;
        }
        for record in &self.kept {
            complain("note", format_args!("PolicyRevision {record} stays: another policy falls back to it"));
        }
        let annotations = self.index.as_ref().and_then(|index| index.metadata.annotations.as_ref());
        if let Some(release) = annotations.and_then(|all| all.get(HELM)) {
            let remedy = "remove the policy from the chart's values, or the next upgrade restores the ConfigMap";
            complain(
                "note",
                format_args!("ConfigMap {} belongs to the Helm release {release}: {remedy}", shown(&self.source)),
            );
        }
        Ok(())
    }

    /// Returns lines that name the policies that will serve after the removal. If the package applies in listed
    /// namespaces, each namespace gets its own lines.
    fn then(&self, standing: &PolicySet, sides: &Sides, home: &str) -> Vec<String> {
        let mut places: BTreeSet<Option<&str>> = BTreeSet::new();
        for shipped in standing.shipped.iter().filter(|shipped| self.serving.contains(&shipped.revision)) {
            let scope = shipped.file.scope.namespaces.iter().map(|place| Some(place.as_str()));
            match shipped.source.0.as_str() {
                own if own != home => drop(places.insert(Some(own))),
                _ if shipped.file.scope.namespaces.is_empty() => drop(places.insert(None)),
                _ => places.extend(scope),
            }
        }
        let then: Vec<String> = places.into_iter().flat_map(|place| sides.then_answers(place)).collect();
        if then.is_empty() {
            vec!["the policy answers for no kind now".to_owned()]
        } else {
            then.iter().map(|line| format!("then: {line}")).collect()
        }
    }

    /// Deletes the index, then its chunks.
    async fn remove(&self, client: &Client) -> anyhow::Result<()> {
        let api: Api<ConfigMap> = Api::namespaced(client.clone(), &self.source.namespace);
        if let Some(index) = &self.index {
            let (uid, resource_version) = (index.metadata.uid.clone(), index.metadata.resource_version.clone());
            // Fails if the ConfigMap changed after the command read it: the author of the change may want to keep the
            // ConfigMap.
            let preconditions = Some(Preconditions { uid, resource_version });
            delete(&api, &self.source, DeleteParams { preconditions, ..DeleteParams::default() }).await?;
        }
        let PolicySource { namespace, config_map } = &self.source;
        for chunk in &self.chunks {
            let place = format!("ConfigMap {namespace}/{}", chunk.name);
            match chunks::remove(client, namespace, config_map, chunk).await? {
                Fate::Gone => complain("removed", place),
                Fate::Listed => complain("note", format_args!("{place} stays: ConfigMap {config_map} lists it")),
                Fate::Changed => complain("note", format_args!("{place} stays: another client changed it meanwhile")),
            }
        }
        Ok(())
    }

    /// Explains how to undo the removal.
    fn way_back(&self, all: &[Revision], home: &str, with_history: bool) -> String {
        let served = |revision: &&Revision| {
            let served = state(revision) == RevisionState::Active || state(revision).is_replaced();
            served && revision.spec.source == self.source
        };
        if with_history || !all.iter().any(|revision| served(&revision)) {
            return "To restore the policy, install it again.".to_owned();
        }
        let home = if home == super::HOME { String::new() } else { format!(" -n {home}") };
        format!("To restore the policy: kaos-operator policy rollback {}{home}", shown(&self.source))
    }
}

/// Returns the revisions that stop serving when a user deletes the source. These are the revisions of the source. A
/// revision of another, deleted source also stops if it serves instead of a quarantined revision of this source.
async fn serving_of(
    revisions: &Revisions,
    source: &PolicySource,
    all: &[Revision],
) -> anyhow::Result<BTreeSet<Arc<str>>> {
    let mut before: BTreeSet<String> = BTreeSet::new();
    let aside = all.iter().filter(|it| it.spec.source == *source && state(it) == RevisionState::Quarantined);
    let mut next: Vec<String> = aside.filter_map(|revision| status(revision).predecessor).collect();
    while let Some(one) = next.pop() {
        let revision = all.iter().find(|revision| name(revision) == one);
        if before.insert(one) {
            next.extend(revision.and_then(|revision| status(revision).predecessor));
        }
    }
    let mut serving = BTreeSet::new();
    for revision in all.iter().filter(|revision| state(revision).is_let_in()) {
        let of = &revision.spec.source;
        if of == source || (before.contains(name(revision)) && !revisions.is_there(of).await?) {
            serving.insert(name(revision).into());
        }
    }
    Ok(serving)
}

async fn delete(api: &Api<ConfigMap>, source: &PolicySource, parameters: DeleteParams) -> anyhow::Result<()> {
    let name = shown(source);
    match api.delete(&source.config_map, &parameters).await {
        Ok(_) => complain("removed", format_args!("ConfigMap {name}")),
        Err(kube::Error::Api(answer)) if answer.code == 404 => {}
        Err(kube::Error::Api(answer)) if answer.is_conflict() => {
            bail!("another client changed ConfigMap {name} meanwhile: run the command again")
        }
        Err(error) => return Err(error).with_context(|| format!("ConfigMap {name}")),
    }
    Ok(())
}

/// Waits until the records show that no removed revision serves any more. Returns whether the operator noticed the
/// removal within `patience`. If the operator did not notice, the caller must keep the records.
async fn until_noticed(revisions: &Revisions, going: &Going, patience: Duration) -> anyhow::Result<bool> {
    let begun = Instant::now();
    loop {
        let serves = |revision: &Revision| going.serving.contains(name(revision)) && state(revision).is_let_in();
        if !revisions.all().await?.iter().any(serves) {
            return Ok(true);
        }
        if begun.elapsed() >= patience {
            return Ok(patience.is_zero() && going.records.is_empty());
        }
        sleep(LOOK).await;
    }
}

fn unnoticed(home: &str, with_history: bool) -> String {
    let what = format!("no operator in namespace {home} has noticed the removal yet: is an operator running there?");
    if with_history {
        format!("{what} The records stay until the operator notices the removal: then run the command again")
    } else {
        what
    }
}
