//! `policy list`: lists installed policies and their states. Lists finished revisions only on request.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::ExitCode,
};

use clap::Args;
use jiff::Timestamp;
use kaos_crds::{PolicyRevisionSpec, PolicyRevisionStatus, PolicyScope, PolicySource, RevisionState};
use kube::{Api, Client};
use serde::Serialize;

use super::{
    chunks,
    connection::Connection,
    facts::Home,
    format::{Format, FormatParser},
    output::{Output, complain},
    revisions::{Revision, Revisions, is_passing, name, read, shown, state, status},
    table::Table,
};

/// Arguments of `policy list`.
#[derive(Debug, Args)]
pub(super) struct List {
    #[command(flatten)]
    connection: Connection,
    /// List only policies with a ConfigMap in this namespace
    #[arg(short, long, value_parser = super::namespace)]
    namespace: Option<String>,
    #[command(flatten)]
    home: Home,
    /// Also list finished revisions: replaced revisions, and refused or quarantined revisions that no ConfigMap
    /// contains any more
    #[arg(short, long)]
    all: bool,
    /// Format of the output; wide adds the messages
    #[arg(short, long, value_name = "FORMAT", value_parser = FormatParser::all(), default_value = "text")]
    output: Format,
}

/// A revision in the answer for programs.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(in crate::cli) struct RevisionAnswer {
    /// The name of the PolicyRevision.
    revision: String,
    source: PolicySource,
    /// The digest of the whole package.
    package_digest: String,
    /// The digest of the component; null for a package with only settings.
    digest: Option<String>,
    scope: PolicyScope,
    status: PolicyRevisionStatus,
}

impl List {
    /// Lists the revisions, the oldest first.
    pub(super) fn run(self, out: &mut Output) -> anyhow::Result<ExitCode> {
        let Self { connection, namespace, home: Home { operator_namespace: home }, all: with_over, output } = self;
        let (listed, over, left) = super::on_cluster(connection, async |client| {
            let mut all = Revisions::new(client.clone(), &home).all().await?;
            all.retain(|revision| namespace.as_ref().is_none_or(|only| revision.spec.source.namespace == *only));
            let left = left_over(&client, namespace.as_ref().unwrap_or(&home), &all).await?;
            let holds = if with_over { BTreeMap::new() } else { holds(&client, &all).await? };
            let (over, listed): (Vec<_>, Vec<_>) =
                all.into_iter().partition(|revision| !with_over && is_over(revision, &holds));
            Ok((listed, over.len(), left))
        })?;
        match &output {
            Format::Text | Format::Wide if listed.is_empty() && over == 0 => {
                let from = namespace.map(|only| format!(" from namespace {only}")).unwrap_or_default();
                let hint = "if an operator runs there, its default policies answer; --operator-namespace names \
                            another operator";
                out.text(&format!("No policies{from} are installed for an operator in namespace {home}: {hint}.\n"))?;
            }
            Format::Text | Format::Wide if listed.is_empty() => out.text("All policy revisions are finished.\n")?,
            Format::Text | Format::Wide => {
                let is_wide = output == Format::Wide;
                let mut heading =
                    vec!["REVISION", "SOURCE", "POLICY", "VERSION", "STATE", "REASON", "OBJECTS", "SINCE", "KINDS"];
                let has_rollouts = listed.iter().any(|revision| status(revision).open_rollout().is_some());
                heading.extend(has_rollouts.then_some("ROLLOUT"));
                heading.extend(is_wide.then_some("MESSAGE"));
                let mut table = Table::new(&heading);
                for revision in &listed {
                    let mut cells = row(revision).to_vec();
                    cells.extend(has_rollouts.then(|| rollout(revision)));
                    cells.extend(is_wide.then(|| status(revision).message.unwrap_or_default()));
                    table.row(cells);
                }
                out.text(&table.to_string())?;
            }
            _ => {
                let answer: Vec<RevisionAnswer> = listed.iter().map(RevisionAnswer::of).collect();
                output.write(
                    out,
                    &answer,
                    listed.iter().map(|it| format!("policyrevision.kaos.tools/{}", name(it))),
                )?;
            }
        }
        out.flush()?;
        if over > 0 {
            complain("note", format_args!("finished revisions: {over}; --all lists them too"));
        }
        for (namespace, chunks) in left {
            let remedy = format!("kubectl delete configmap -n {namespace} {}", chunks.join(" "));
            let what = format_args!("namespace {namespace} has chunks that no package lists any more");
            complain("note", format_args!("{what}: delete them with {remedy}"));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The current content of a revision's ConfigMap.
enum Holds {
    /// The ConfigMap does not contain a package.
    Nothing,
    /// The package with this digest.
    Package(String),
    /// The user has no right to read the ConfigMap, or the content of the ConfigMap is invalid.
    Unknown,
}

/// Reads the ConfigMaps of revisions that are neither admitted nor superseded.
async fn holds(client: &Client, all: &[Revision]) -> anyhow::Result<BTreeMap<PolicySource, Holds>> {
    let open = |revision: &&Revision| !state(revision).is_let_in() && !state(revision).is_replaced();
    let sources: BTreeSet<&PolicySource> = all.iter().filter(open).map(|revision| &revision.spec.source).collect();
    let mut holds = BTreeMap::new();
    for source in sources {
        let found = match read(&Api::namespaced(client.clone(), &source.namespace), &source.config_map).await {
            Ok(None) => Holds::Nothing,
            Ok(Some(package)) => Holds::Package(package.digest().to_string()),
            Err(error) if is_passing(&error) => return Err(error),
            Err(_) => Holds::Unknown,
        };
        holds.insert(source.clone(), found);
    }
    Ok(holds)
}

/// Returns whether a revision is finished: it will not serve again without a rollback.
fn is_over(revision: &Revision, holds: &BTreeMap<PolicySource, Holds>) -> bool {
    match (state(revision), holds.get(&revision.spec.source)) {
        (RevisionState::Superseded, _) | (_, Some(Holds::Nothing)) => !state(revision).is_let_in(),
        (state, Some(Holds::Package(digest))) => !state.is_let_in() && *digest != revision.spec.package_digest,
        (_, Some(Holds::Unknown) | None) => false,
    }
}

/// Returns the chunks that no package lists any more, by namespace. Looks into the namespace `first` and into the
/// namespaces of the revisions.
async fn left_over(client: &Client, first: &str, all: &[Revision]) -> anyhow::Result<BTreeMap<String, Vec<String>>> {
    let mut namespaces: BTreeSet<&str> = all.iter().map(|revision| revision.spec.source.namespace.as_str()).collect();
    namespaces.insert(first);
    let now = Timestamp::now();
    let mut left = BTreeMap::new();
    for namespace in namespaces {
        let chunks = chunks::left_over(client, namespace, now).await?;
        if !chunks.is_empty() {
            left.insert(namespace.to_owned(), chunks);
        }
    }
    Ok(left)
}

/// Formats the progress of a revision's rollout.
fn rollout(revision: &Revision) -> String {
    status(revision).open_rollout().map_or_else(|| "-".to_owned(), |rollout| rollout.summary.clone())
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

impl RevisionAnswer {
    fn of(revision: &Revision) -> Self {
        let PolicyRevisionSpec { source, package_digest, digest, scope } = revision.spec.clone();
        Self { revision: name(revision).to_owned(), source, package_digest, digest, scope, status: status(revision) }
    }
}
