//! `release`: removes the operator's finalizers before the operator is uninstalled for good. Also deletes the objects
//! that the operator stored only for itself.

use std::{collections::BTreeSet, convert::Infallible, path::PathBuf, process::ExitCode, time::Duration};

use clap::Args;
use k8s_openapi::api::core::v1::ConfigMap;
use kaos_crds::API_VERSION;
use kaos_policy::contract::ResourceType;
use kube::{Api, Client, api::DeleteParams};
use serde_json::{Value, json};

use super::{
    HELD_BACK, OutputFormat,
    connection::{Connection, is_answered, on_cluster},
    output::{Output, complain},
    policy::{claimed, forget_gone},
    rbac::scope,
};
use crate::{
    config_maps::{FITTED_CONFIG, SETTLED_CONFIG},
    error_text::with_causes,
    leader_election::{LEASE, take_over},
    policies::{Loader, sample_cluster},
    proofs::ProofStore,
    release::{Event, finalizers, release},
    watch::Scope,
};

/// The time for which the Lease of this command stays valid after its last renewal. This time is long enough for the
/// operator's pods to end. A newly installed operator waits at most this long.
const HELD: Duration = Duration::from_secs(30);

/// Holder of the Lease during the release. All runs of this command can use the same name, because this command never
/// reconciles.
const HOLDER: &str = "kaos-operator-release";

/// Arguments of `release`.
#[derive(Debug, Args)]
#[command(
    after_help = "Also deletes the records of policies whose ConfigMap was deleted. With --namespaces and without \
                  --for-good, the command deletes only the records of policies from these namespaces. With \
                  --keep-lease, or if an object was not released, the command keeps all records. If the user can \
                  read no object of a namespace, for example because the namespace was deleted, the command prints a \
                  warning and skips the namespace; this is not a failure. Exit codes: 0 = the finalizers are removed \
                  from all objects that the user can read; 1 = some objects could not be released; 2 = the \
                  cluster cannot be reached."
)]
pub(super) struct Release {
    #[command(flatten)]
    connection: Connection,
    /// Namespace that the operator runs in, with its Lease and the records of installed policies
    #[arg(short = 'n', long, env = "SYSTEM_NAMESPACE", default_value = super::HOME, value_parser = super::namespace)]
    operator_namespace: String,
    /// Leave the Lease to the running operator, which will add finalizers of installed policies again
    #[arg(long)]
    keep_lease: bool,
    /// Namespaces to release objects in; all namespaces if none is given
    #[arg(long, env = "WATCH_NAMESPACES", value_delimiter = ',', value_name = "A,B", value_parser = super::one_namespace)]
    namespaces: Vec<String>,
    /// Also delete the objects that the operator stored for itself; needed only with --namespaces, before the operator
    /// is uninstalled for good
    #[arg(long, conflicts_with = "keep_lease")]
    for_good: bool,
    /// Component of another policy; also releases the objects of the kinds that it claims
    #[arg(long = "policy", value_name = "X.wasm")]
    policies: Vec<PathBuf>,
    /// A further finalizer to remove, such as a finalizer that settings name
    #[arg(long = "finalizer", value_name = "NAME")]
    further: Vec<String>,
    /// Print the changes without making them
    #[arg(long)]
    dry_run: bool,
    /// Format of the output
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

impl Release {
    /// Releases the objects.
    pub(super) fn run(self, out: &mut Output) -> anyhow::Result<ExitCode> {
        let Self {
            connection,
            operator_namespace,
            keep_lease,
            namespaces,
            for_good,
            policies,
            further,
            dry_run,
            output,
        } = self;
        let loader = Loader::cached(sample_cluster())?.accepting_all();
        let loaded = loader.load(&policies)?;
        let mut finalizers = finalizers(loaded.iter().map(|loaded| &*loaded.policy), &further);
        let (scope, mut events) = (scope(&namespaces), Vec::new());
        // If the operator keeps running for other namespaces, release only objects of the listed namespaces.
        let for_good = for_good || namespaces.is_empty();
        let goes = if for_good { Scope::All } else { scope.clone() };
        on_cluster(connection, async |client| {
            let takes_lease = !(keep_lease || dry_run);
            if takes_lease {
                stop_writers(&client, &operator_namespace).await;
            }
            let work = async {
                match installed(&client, &operator_namespace).await {
                    Ok(kinds) => {
                        for of in kinds {
                            finalizers.entry(of).or_default().extend(further.iter().cloned());
                        }
                    }
                    Err(error) => events.push(unlisted(&error)),
                }
                release(&client, &finalizers, &scope, dry_run, |event| events.push(event)).await?;
                // If an object may still have a finalizer, keep the records. The next run, possibly with more rights,
                // reads the kinds to release from these records.
                if !keep_lease && !events.iter().any(is_left) {
                    events.extend(forget_records(&client, &operator_namespace, &goes, dry_run).await);
                }
                if takes_lease && for_good {
                    forget(&client, &operator_namespace).await;
                }
                Ok::<(), kube::Error>(())
            };
            tokio::select! {
                biased;
                released = work => Ok(released?),
                never = hold_on(&client, &operator_namespace), if takes_lease => match never {},
            }
        })?;
        let failures = failures(&events);
        match output {
            OutputFormat::Json => out.json(&events.iter().map(shown).collect::<Vec<Value>>())?,
            OutputFormat::Text => {
                for event in &events {
                    say(event, dry_run, out)?;
                }
                let released = events.iter().filter(|event| matches!(event, Event::Released { .. })).count();
                out.text(&format!("{released} released, {failures} failed\n"))?;
            }
        }
        Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::from(HELD_BACK) })
    }
}

/// Returns whether an object may still have a finalizer.
fn is_left(event: &Event) -> bool {
    matches!(event, Event::Failed { .. } | Event::Barred { .. })
}

fn failures(events: &[Event]) -> usize {
    events.iter().filter(|event| matches!(event, Event::Failed { .. })).count()
}

/// Takes the Lease, so that a running operator stops writing. If the command cannot take the Lease, it prints a
/// warning, and the release continues.
async fn stop_writers(client: &Client, namespace: &str) {
    match take_over(client.clone(), namespace, HOLDER, HELD).await {
        Ok(None) => complain(
            "warning",
            format_args!(
                "no Lease {namespace}/{LEASE}: an operator that runs without a Lease may add finalizers again"
            ),
        ),
        Ok(Some(before)) => {
            let (holder, seconds) = (if before.is_empty() { "nobody" } else { &before }, HELD.as_secs());
            let what = format_args!(
                "Lease {namespace}/{LEASE} from {holder}: no operator writes until {seconds} s after this command ends"
            );
            complain("took", what);
        }
        Err(error) => {
            let so = "a running operator may add finalizers again";
            complain(
                "warning",
                format_args!("could not take Lease {namespace}/{LEASE}: {}: {so}", with_causes(&error)),
            );
        }
    }
}

/// Renews the Lease until the future is dropped. Ignores errors, because [`stop_writers`] already reports an error.
async fn hold_on(client: &Client, namespace: &str) -> Infallible {
    loop {
        tokio::time::sleep(HELD / 3).await;
        drop(take_over(client.clone(), namespace, HOLDER, HELD).await);
    }
}

/// Deletes what the operator stored for the next process: the last good settings, and the proofs that objects are
/// settled. No other step deletes them.
async fn forget(client: &Client, namespace: &str) {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    match api.delete(FITTED_CONFIG, &DeleteParams::default()).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.is_not_found() => {}
        Err(error) => {
            complain(
                "warning",
                format_args!("ConfigMap {namespace}/{FITTED_CONFIG} was not deleted: {}", with_causes(&error)),
            );
        }
    }
    if let Err(error) = ProofStore::new(client.clone(), namespace).delete_all().await {
        let which = format_args!("ConfigMaps {namespace}/{SETTLED_CONFIG}*");
        complain("warning", format_args!("{which} were not deleted: {}", with_causes(&error)));
    }
}

/// Deletes the records of removed policies, with the bytes that the operator stored.
async fn forget_records(client: &Client, namespace: &str, goes: &Scope, dry_run: bool) -> Vec<Event> {
    let of = || ResourceType::new(API_VERSION, "PolicyRevision");
    match forget_gone(client.clone(), namespace, goes, dry_run).await {
        Ok(gone) => {
            gone.iter().map(|name| Event::Removed { of: of(), object: format!("{namespace}/{name}") }).collect()
        }
        Err(error) if [403, 404].into_iter().any(|code| is_answered(&error, code)) => Vec::new(),
        Err(error) => {
            complain(
                "warning",
                format_args!("records of removed policies were not deleted: {}", with_causes(error.as_ref())),
            );
            Vec::new()
        }
    }
}

/// Returns the kinds of installed policies.
async fn installed(client: &Client, namespace: &str) -> anyhow::Result<BTreeSet<ResourceType>> {
    match claimed(client.clone(), namespace).await {
        // The cluster has no CRD of PolicyRevisions, so no policy was ever installed.
        Err(error) if is_answered(&error, 404) => Ok(BTreeSet::new()),
        // If the user has no right to list PolicyRevisions, probably no policy is installed. So a warning suffices.
        Err(error) if is_answered(&error, 403) => {
            let so = "objects of the kinds that installed policies claim are not released";
            complain("warning", format_args!("{}: {so}", with_causes(error.as_ref())));
            Ok(BTreeSet::new())
        }
        claimed => claimed,
    }
}

fn unlisted(error: &anyhow::Error) -> Event {
    Event::Failed {
        of: ResourceType::new(API_VERSION, "PolicyRevision"),
        object: "objects cannot be listed, so the kinds of installed policies are unknown".to_owned(),
        because: with_causes(error.as_ref()),
    }
}

fn say(event: &Event, dry_run: bool, out: &mut Output) -> anyhow::Result<()> {
    match event {
        Event::Unserved(ResourceType { kind, .. }) => {
            out.text(&format!("no {kind}: the cluster does not serve the type\n"))?;
        }
        Event::Released { of, object, finalizers } => {
            let word = if dry_run { "would release" } else { "released" };
            out.text(&format!("{word} {} {object}: {}\n", of.kind, finalizers.join(", ")))?;
        }
        Event::Removed { of, object } => {
            let word = if dry_run { "would remove" } else { "removed" };
            out.text(&format!("{word} {} {object}: its policy was removed\n", of.kind))?;
        }
        Event::Barred { namespace, because } => {
            out.flush()?;
            complain("warning", barred(namespace.as_deref(), because));
        }
        Event::Failed { of, object, because } => {
            out.flush()?;
            complain("error", format_args!("{} {object}: {because}", of.kind));
        }
    }
    Ok(())
}

/// Returns the warning about a namespace, or the cluster, in which the user has no right to read objects. The warning
/// contains a remedy, because such objects may still have finalizers.
fn barred(namespace: Option<&str>, because: &str) -> String {
    let (place, flag) = match namespace {
        Some(namespace) => (format!("in namespace {namespace}"), format!(" --namespaces {namespace}")),
        None => ("anywhere".to_owned(), String::new()),
    };
    format!(
        "no object {place} was released, because this user can read none: {because}; the namespace may be deleted, or \
         the user may lack rights; if an object there still has finalizers, run kaos-operator release \
         --keep-lease{flag} as a user who can read the object"
    )
}

fn shown(event: &Event) -> Value {
    match event {
        Event::Unserved(of) => json!({"type": of, "unserved": true}),
        Event::Released { of, object, finalizers } => json!({"type": of, "object": object, "released": finalizers}),
        Event::Removed { of, object } => json!({"type": of, "object": object, "removed": true}),
        Event::Barred { namespace, because } => json!({"namespace": namespace, "barred": because}),
        Event::Failed { of, object, because } => json!({"type": of, "object": object, "error": because}),
    }
}
