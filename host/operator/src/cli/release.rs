//! `release`: takes the operator's finalizers off, before it goes for good.

use std::{path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use clap::Args;
use kaos_policy::{contract::ResourceType, policy::Policy};
use kube::Client;
use serde_json::{Value, json};

use super::{
    Form, HELD_BACK,
    connection::{Connection, on_cluster},
    output::{Output, complain},
    policy::kept,
    rbac::scope,
};
use crate::{
    lead::{LEASE, seize},
    policies::{Loader, sample_cluster},
    release::{Event, finalizers, release},
};

/// For so long nobody else has the Lease: until the operator's pods are gone.
const HELD: Duration = Duration::from_mins(10);

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
        let mut known: Vec<Arc<Policy>> = loader.load(&policies)?.into_iter().map(|loaded| loaded.policy).collect();
        let (scope, mut events) = (scope(&namespaces), Vec::new());
        on_cluster(connection, async |client| {
            if !(keep_lease || dry_run) {
                stop_writers(&client, &operator_namespace).await;
            }
            known.extend(installed(&client, &operator_namespace, &loader).await);
            let finalizers = finalizers(known.iter().map(|policy| &**policy), &further);
            Ok(release(&client, &finalizers, &scope, dry_run, |event| events.push(event)).await?)
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
        Ok(None) => {}
        Ok(Some(before)) => {
            let minutes = HELD.as_secs() / 60;
            let holder = if before.is_empty() { "nobody".to_owned() } else { before };
            let what =
                format_args!("Lease {namespace}/{LEASE} from {holder}, for {minutes} minutes: no operator writes");
            complain("took", what);
        }
        Err(error) => complain(
            "warning",
            format_args!("Lease {namespace}/{LEASE}: {error}: an operator that runs may put finalizers on again"),
        ),
    }
}

/// The policies that were installed. What cannot be loaded is told, and the rest counts.
async fn installed(client: &Client, namespace: &str, loader: &Loader) -> Vec<Arc<Policy>> {
    let (policies, failed) = match kept(client.clone(), namespace, loader).await {
        Ok(kept) => kept,
        // Nobody ever installed one.
        Err(error) if is_unserved(&error) => return Vec::new(),
        Err(error) => (Vec::new(), vec![error]),
    };
    for error in failed {
        complain("warning", format_args!("{error:#}: its finalizers are not known, name them with --finalizer"));
    }
    policies
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
