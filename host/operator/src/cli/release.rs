//! `release`: takes the operator's finalizers off, before it goes for good.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use kaos_policy::contract::ResourceType;
use serde_json::{Value, json};

use super::{
    Form, HELD_BACK,
    connection::{Connection, on_cluster},
    output::{Output, complain},
    rbac::scope,
};
use crate::{
    policies::{Loader, sample_cluster},
    release::{Event, finalizers, release},
};

/// Arguments of `release`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 nothing holds objects back any more; 1 some objects could not be released; 2 the \
    cluster cannot be asked."
)]
pub(super) struct Release {
    #[command(flatten)]
    connection: Connection,
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
        let Self { connection, namespaces, policies, further, dry_run, output } = self;
        let loaded = Loader::cached(sample_cluster())?.load(&policies)?;
        let finalizers = finalizers(loaded.iter().map(|loaded| &*loaded.policy), &further);
        let (scope, mut events) = (scope(&namespaces), Vec::new());
        on_cluster(connection, async |client| {
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
