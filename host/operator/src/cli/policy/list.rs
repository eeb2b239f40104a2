//! `policy list`: what became of every policy that somebody shipped.

use std::process::ExitCode;

use clap::Args;
use kaos_crds::{PolicyRevisionSpec, PolicyRevisionStatus};
use serde_json::{Value, json};

use super::{
    Form,
    connection::Connection,
    output::Output,
    revisions::{Revision, Revisions, name, shown, status},
    table::Table,
};

/// Arguments of `policy list`.
#[derive(Debug, Args)]
pub(super) struct List {
    #[command(flatten)]
    connection: Connection,
    /// Namespace that the operator runs in
    #[arg(short, long, env = "SYSTEM_NAMESPACE", default_value = super::HOME, value_parser = super::namespace)]
    namespace: String,
    /// Form of the output
    #[arg(short, long, value_enum, default_value_t)]
    output: Form,
}

impl List {
    /// Lists the revisions, the oldest first.
    pub(super) fn run(self, out: &mut Output) -> anyhow::Result<ExitCode> {
        let Self { connection, namespace, output } = self;
        let all = super::on_cluster(connection, async |client| Revisions::new(client, &namespace).all().await)?;
        match output {
            Form::Json => out.json(&all.iter().map(document).collect::<Vec<Value>>())?,
            Form::Text if all.is_empty() => {
                let who = "if one runs there, those of its own binary answer; -n names another namespace";
                out.text(&format!("No policies were shipped to an operator in namespace {namespace}: {who}.\n"))?;
            }
            Form::Text => {
                let mut table = Table::new(&[
                    "REVISION", "SOURCE", "POLICY", "VERSION", "STATE", "REASON", "OBJECTS", "SINCE", "KINDS",
                ]);
                for revision in &all {
                    table.row(row(revision));
                }
                out.text(&table.to_string())?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn row(revision: &Revision) -> [String; 9] {
    let status = status(revision);
    let text = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let objects = match (status.objects, status.outstanding) {
        (Some(objects), Some(outstanding)) if outstanding > 0 => {
            format!("{objects} of {}", objects.saturating_add(outstanding))
        }
        (objects, _) => text(objects.map(|objects| objects.to_string())),
    };
    [
        name(revision).to_owned(),
        shown(&revision.spec.source),
        text(status.policy),
        text(status.version),
        status.state.name().to_owned(),
        text(status.reason),
        objects,
        text(status.since),
        status.kinds.join(", "),
    ]
}

fn document(revision: &Revision) -> Value {
    let PolicyRevisionSpec { source, package_digest, digest, scope } = &revision.spec;
    let status: PolicyRevisionStatus = status(revision);
    json!({
        "revision": name(revision), "source": source, "packageDigest": package_digest, "digest": digest, "scope": scope,
        "status": status,
    })
}
