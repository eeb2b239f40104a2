//! `release`: takes the operator's finalizers off, before it goes for good.

use std::{collections::BTreeSet, convert::Infallible, path::PathBuf, process::ExitCode, time::Duration};

use clap::Args;
use k8s_openapi::api::core::v1::ConfigMap;
use kaos_crds::API_VERSION;
use kaos_policy::contract::ResourceType;
use kube::{Api, Client, api::DeleteParams};
use serde_json::{Value, json};

use super::{
    Form, HELD_BACK,
    connection::{Connection, on_cluster},
    output::{Output, complain},
    policy::claimed,
    rbac::scope,
};
use crate::{
    catalogue::FITTED_CONFIG,
    lead::{LEASE, seize},
    policies::{Loader, sample_cluster},
    release::{Event, finalizers, release},
};

/// For so long nobody else has the Lease, from the last time that it was taken: until the operator's pods are gone. One
/// that is installed anew waits no longer.
const HELD: Duration = Duration::from_secs(30);

/// Who has it meanwhile: whatever releases, since that is nobody who would write on.
const HOLDER: &str = "kaos-operator-release";

/// Arguments of `release`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 nothing holds objects back any more; 1 some objects could not be released; 2 the \
    cluster cannot be asked."
)]
pub(super) struct Release {
    #[command(flatten)]
    connection: Connection,
    /// Namespace that the operator runs in: of its Lease, and of the policies that were installed
    #[arg(short = 'n', long, env = "SYSTEM_NAMESPACE", default_value = "kaos-system", value_parser = super::namespace)]
    operator_namespace: String,
    /// Leave the Lease to the operator that runs, which puts finalizers of installed policies on again
    #[arg(long)]
    keep_lease: bool,
    /// Only in these namespaces
    #[arg(long, env = "WATCH_NAMESPACES", value_delimiter = ',', value_name = "A,B")]
    namespaces: Vec<String>,
    /// A policy's component whose claims count, too
    #[arg(long = "policy", value_name = "X.wasm")]
    policies: Vec<PathBuf>,
    /// A further finalizer to take off, such as one that settings name
    #[arg(long = "finalizer", value_name = "NAME")]
    further: Vec<String>,
    /// Say what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Form of the output
    #[arg(short, long, value_enum, default_value_t)]
    output: Form,
}

impl Release {
    /// Releases everything.
    pub(super) fn run(self, out: &mut Output) -> anyhow::Result<ExitCode> {
        let Self { connection, operator_namespace, keep_lease, namespaces, policies, further, dry_run, output } = self;
        let loader = Loader::cached(sample_cluster())?;
        let loaded = loader.load(&policies)?;
        let mut finalizers = finalizers(loaded.iter().map(|loaded| &*loaded.policy), &further);
        let (scope, mut events) = (scope(&namespaces), Vec::new());
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
                if takes_lease {
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
        let failures = events.iter().filter(|event| matches!(event, Event::Failed { .. })).count();
        match output {
            Form::Json => out.json(&events.iter().map(shown).collect::<Vec<Value>>())?,
            Form::Text => {
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

/// Has the operator that runs write no more. Where that cannot be done, finalizers go all the same.
async fn stop_writers(client: &Client, namespace: &str) {
    match seize(client.clone(), namespace, HOLDER, HELD).await {
        Ok(None) => complain(
            "warning",
            format_args!("no Lease {namespace}/{LEASE}: an operator that runs without one may put finalizers on again"),
        ),
        Ok(Some(before)) => {
            let (holder, seconds) = (if before.is_empty() { "nobody" } else { &before }, HELD.as_secs());
            let what = format_args!(
                "Lease {namespace}/{LEASE} from {holder}: until {seconds} s after this no operator writes"
            );
            complain("took", what);
        }
        Err(error) => complain(
            "warning",
            format_args!("Lease {namespace}/{LEASE}: {error}: an operator that runs may put finalizers on again"),
        ),
    }
}

/// Keeps the Lease for as long as this is asked. Whoever may not was told so when it was taken.
async fn hold_on(client: &Client, namespace: &str) -> Infallible {
    loop {
        tokio::time::sleep(HELD / 3).await;
        drop(seize(client.clone(), namespace, HOLDER, HELD).await);
    }
}

/// Removes the settings that the operator kept for the next one: nobody else would.
async fn forget(client: &Client, namespace: &str) {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    match api.delete(FITTED_CONFIG, &DeleteParams::default()).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.is_not_found() => {}
        Err(error) => complain("warning", format_args!("ConfigMap {namespace}/{FITTED_CONFIG} is left: {error}")),
    }
}

/// The kinds of installed policies.
async fn installed(client: &Client, namespace: &str) -> anyhow::Result<BTreeSet<ResourceType>> {
    match claimed(client.clone(), namespace).await {
        // Nobody ever installed one.
        Err(error) if is_unserved(&error) => Ok(BTreeSet::new()),
        claimed => claimed,
    }
}

fn unlisted(error: &anyhow::Error) -> Event {
    Event::Failed {
        of: ResourceType::new(API_VERSION, "PolicyRevision"),
        object: "the kinds of installed policies are not known".to_owned(),
        because: format!("{error:#}"),
    }
}

fn is_unserved(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(kube::Error::Api(status)) if status.is_not_found())
}

fn say(event: &Event, dry_run: bool, out: &mut Output) -> anyhow::Result<()> {
    match event {
        Event::Unserved(ResourceType { kind, .. }) => out.text(&format!("no {kind} here: the type is not served\n"))?,
        Event::Released { of, object, finalizers } => {
            let word = if dry_run { "would release" } else { "released" };
            out.text(&format!("{word} {} {object}: {}\n", of.kind, finalizers.join(", ")))?;
        }
        Event::Failed { of, object, because } => {
            out.flush()?;
            complain("error", format_args!("{} {object}: {because}", of.kind));
        }
    }
    Ok(())
}

fn shown(event: &Event) -> Value {
    match event {
        Event::Unserved(of) => json!({"type": of, "unserved": true}),
        Event::Released { of, object, finalizers } => json!({"type": of, "object": object, "released": finalizers}),
        Event::Failed { of, object, because } => json!({"type": of, "object": object, "error": because}),
    }
}
