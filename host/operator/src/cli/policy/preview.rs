//! `policy preview`: prints the effect that a package will have. The operator has computed the effect before the
//! package serves.

use std::{collections::BTreeSet, process::ExitCode};

use anyhow::bail;
use clap::Args;
use kaos_crds::{PolicyPreview, PolicyRevisionStatus, PreviewExample, PreviewPath, RevisionState};
use serde_json::json;

use super::{
    OutputFormat,
    facts::Home,
    named::{NamedRevision, Only, recorded},
    output::{Output, complain},
    revisions::{Revision, Revisions, name, state, status},
    table::Table,
};

/// Arguments of `policy preview`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 = the effect was printed; 2 = no package has this name, the operator computed no \
                  effect for the package, or the cluster cannot be reached."
)]
pub(super) struct Preview {
    #[command(flatten)]
    revision: NamedRevision,
    /// Format of the output
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

impl Preview {
    /// Prints the effect of the newest revision whose effect the operator computed.
    pub(super) fn run(self, out: &mut Output) -> anyhow::Result<ExitCode> {
        let Self { revision, output } = self;
        let NamedRevision { name: named, connection, only, home: Home { operator_namespace: home } } = revision;
        super::on_cluster(connection, async |client| {
            let all = Revisions::new(client, &home).all().await?;
            let revision = newest(&all, &named, &only, &home, |revision| status(revision).preview.is_some())?;
            let Some(revision) = revision else {
                bail!(
                    "{named}: the operator computed no effect of this package: set limits in `rollout` of policy.yaml, \
                     or with the operator's --rollout-gate; `policy plan` computes the effect of a package in a file"
                );
            };
            let status = status(revision);
            let preview = status.preview.clone().unwrap_or_default();
            match output {
                OutputFormat::Json => {
                    let PolicyRevisionStatus { state, reason, message, approved, .. } = &status;
                    out.json(&json!({
                        "revision": name(revision), "source": revision.spec.source, "state": state, "reason": reason,
                        "message": message, "approved": approved, "preview": preview,
                    }))?;
                }
                OutputFormat::Text => {
                    out.text(&format!("PolicyRevision {} is {}\n\n", name(revision), status.state.name()))?;
                    out.text(&shown(&preview))?;
                    out.flush()?;
                    if let Some(message) = status.message.filter(|_| status.state == RevisionState::Held) {
                        complain("held", message);
                    }
                }
            }
            Ok(ExitCode::SUCCESS)
        })
    }
}

/// Returns the newest revision of the named package for which `fits` returns true. If `named` is the name of a
/// revision, returns this revision, or `None` if `fits` returns false.
pub(super) fn newest<'a>(
    all: &'a [Revision],
    named: &str,
    only: &Only,
    home: &str,
    fits: impl Fn(&Revision) -> bool,
) -> anyhow::Result<Option<&'a Revision>> {
    if let Some(revision) = all.iter().find(|revision| name(revision) == named) {
        return Ok(Some(revision).filter(|revision| fits(revision)));
    }
    let source = only.meant(named, home, &recorded(all))?;
    let of_source = all.iter().filter(|revision| revision.spec.source == source && fits(revision));
    // Prefers a held revision, because a held revision always has the current content: the operator deletes a held
    // revision when the ConfigMap gets other content. An active revision can have older content, but a later time in
    // the field `since`.
    Ok(of_source.max_by_key(|revision| (state(revision) == RevisionState::Held, status(revision).since)))
}

fn shown(preview: &PolicyPreview) -> String {
    let mut text = String::new();
    if !preview.paths.is_empty() {
        let mut table = Table::new(&["CHILDREN", "KIND", "CHILD", "FIELD", "CHANGE", "BEFORE", "AFTER", "SUCH AS"]);
        for path in &preview.paths {
            table.row(line(path));
        }
        text += &format!("{table}\n");
    }
    let more = |many: i64, what: &str| if many > 0 { format!("… and {many} more {what}\n") } else { String::new() };
    text += &more(preview.more_paths, "changes");
    if !preview.problems.is_empty() {
        let mut table = Table::new(&["OBJECT", "PROBLEM", "MESSAGE"]);
        for it in &preview.problems {
            table.row([it.object.clone(), it.problem.clone(), it.message.clone()]);
        }
        text += &format!("{table}\n");
    }
    text += &more(preview.more_problems, "objects with problems");
    let (fuel, inputs) = (preview.fuel, &preview.inputs);
    let at = inputs.at.as_deref().unwrap_or("an unknown time");
    text += &format!("{}.\n", preview.summary);
    text += &format!(
        "Fuel of a pass: {} -> {} (median), {} -> {} (most).\n",
        fuel.median_before, fuel.median_after, fuel.max_before, fuel.max_after
    );
    text += &format!("Computed at {at} from the objects of the cluster");
    if inputs.repeated > 0 {
        text += &format!("; the operator computed {} again, because they changed", inputs.repeated);
    }
    if !inputs.together.is_empty() {
        text += &format!("; together with {}", inputs.together.join(", "));
    }
    if inputs.outdated > 0 {
        text += &format!("; {} changed again afterwards", inputs.outdated);
    }
    text + ".\n"
}

fn line(path: &PreviewPath) -> [String; 8] {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let values: BTreeSet<_> = path.examples.iter().map(|it| (&it.before, &it.after)).collect();
    let first = path.examples.first().cloned().unwrap_or_default();
    let PreviewExample { object, before, after, .. } = first;
    // If the examples have different values, the table shows only the first example.
    let mark = if values.len() > 1 { " …" } else { "" };
    let value = |value: Option<String>| value.map_or_else(|| "-".to_owned(), |value| format!("{value}{mark}"));
    [
        path.count.to_string(),
        path.kind.clone(),
        text(&path.child),
        text(&path.path),
        path.change.clone(),
        value(before),
        value(after),
        object,
    ]
}
