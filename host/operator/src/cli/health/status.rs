//! `status`: prints the objects that are not ready, each with the root cause. With `-w`, prints each change.

use std::{collections::BTreeMap, process::ExitCode};

use anyhow::bail;
use clap::Args;
use kaos_policy::contract::ResourceType;
use kube::Client;

use super::{
    super::{
        HELD_BACK,
        arguments::{KindOrObject, kind_or_object},
        connection::on_cluster,
        facts::OperatorFacts,
        format::{Format, FormatParser},
        output::{Output, complain},
        table::Table,
    },
    answer::{StatusAnswer, StatusItem, short},
    changes::ObjectChanges,
    object_health::{Health, HealthState},
    place::{ClusterFlags, NamespacesFlag},
    read::StateReader,
    rights::MissingRight,
    trace::{Chain, Tracer},
};
use crate::{
    discovery::NOT_VISIBLE,
    input::{Document, Identity},
};

/// Arguments of `status`.
#[derive(Debug, Args)]
#[command(
    after_help = "Prints the objects that are not ready; -o wide prints all objects. Exit codes: 0 = all objects are \
                  ready; 1 = an object is not ready; 2 = the command could not answer."
)]
pub(in crate::cli) struct Status {
    /// A kind, such as agents, or an object, such as agent/writer; default: every kind for which a policy answers
    #[arg(value_name = "KIND[/NAME]", value_parser = kind_or_object)]
    meant: Vec<KindOrObject>,
    #[command(flatten)]
    access: ClusterFlags,
    #[command(flatten)]
    namespaces: NamespacesFlag,
    /// Print each change until the command is interrupted
    #[arg(short, long)]
    watch: bool,
    /// Format of the output
    #[arg(short, long, value_name = "FORMAT", value_parser = FormatParser::all(), default_value = "text")]
    output: Format,
}

/// The states of objects at one time.
struct StatusView {
    objects: BTreeMap<Identity, (Health, Vec<Chain>)>,
    missing: Vec<MissingRight>,
}

impl Status {
    /// Prints the objects that are not ready.
    pub(in crate::cli) fn run(self, out: &mut Output) -> anyhow::Result<ExitCode> {
        let Self { meant, access, namespaces, watch, output } = self;
        let (connection, operator) = access.split();
        on_cluster(connection, async |client| {
            let place = namespaces.of(&client);
            let look = || StatusView::look(client.clone(), operator.clone(), &meant, place.as_deref());
            if !watch {
                let (seen, reader) = look().await?;
                seen.write(out, &output, place.is_none())?;
                out.flush()?;
                if output.is_table() {
                    reader.tell_missing();
                    if seen.objects.is_empty() && operator.policies.is_empty() {
                        complain("note", NOT_VISIBLE);
                    }
                }
                return Ok(if seen.all_ready() { ExitCode::SUCCESS } else { ExitCode::from(HELD_BACK) });
            }
            let mut before: Option<StatusView> = None;
            let mut changes: Option<ObjectChanges> = None;
            loop {
                let (seen, reader) = look().await?;
                let changes = match &mut changes {
                    Some(changes) => changes,
                    none => none.insert(ObjectChanges::watch(&client, &reader.kinds(), place.as_deref()).await?),
                };
                match &before {
                    Some(before) if before.objects == seen.objects => {}
                    Some(before) if output.is_table() => seen.write_changes(before, out)?,
                    _ => seen.write(out, &output, place.is_none())?,
                }
                out.flush()?;
                before = Some(seen);
                changes.next().await?;
            }
        })
    }
}

impl StatusView {
    async fn look(
        client: Client,
        operator: OperatorFacts,
        meant: &[KindOrObject],
        place: Option<&str>,
    ) -> anyhow::Result<(Self, StateReader)> {
        let home = operator.cluster.operator_namespace.clone();
        let mut reader = StateReader::start(client, operator).await?;
        let mut named: Vec<(ResourceType, Option<&str>)> = Vec::new();
        for KindOrObject { kind, name } in meant {
            named.push((reader.meant(kind).await?, name.as_deref()));
        }
        let kinds = match named.as_slice() {
            [] => reader.kinds(),
            named => named.iter().map(|(of, _)| of.clone()).collect(),
        };
        reader.objects(&kinds, place).await?;
        let is_named = |identity: &Identity| {
            let is_it = |(of, name): &(ResourceType, Option<&str>)| {
                of.group_kind() == (identity.group.as_str(), identity.kind.as_str())
                    && name.is_none_or(|name| name == identity.name)
            };
            named.is_empty() || named.iter().any(is_it)
        };
        let listed = reader.graph();
        let meant: Vec<&Document> = listed.documents().iter().filter(|document| is_named(&document.identity)).collect();
        let is_there = |of: &ResourceType, name: &str| {
            meant.iter().any(|it| it.identity.name == name && ResourceType::of_object(&it.object) == *of)
        };
        if let Some((of, name)) =
            named.iter().find_map(|(of, name)| name.filter(|name| !is_there(of, name)).map(|it| (of, it)))
        {
            let (kind, place) = (&of.kind, place.map_or_else(String::new, |place| format!(" in namespace {place}")));
            bail!("{kind} {name} does not exist{place}: `kubectl get {kind} -A` lists the existing ones");
        }
        reader.explain().await?;
        let (graph, missing) = (reader.graph(), reader.missing());
        let tracer = Tracer { graph: &graph, home: &home, is_partial: !missing.is_empty() };
        let objects = meant.into_iter().map(|document| {
            let identity = &document.identity;
            (identity.clone(), (graph.health(identity), tracer.causes(identity)))
        });
        let objects = objects.collect();
        Ok((Self { objects, missing }, reader))
    }

    fn all_ready(&self) -> bool {
        self.objects.values().all(|(health, _)| !health.state.is_open())
    }

    fn ready(&self) -> usize {
        self.objects.values().filter(|(health, _)| health.state == HealthState::Ready).count()
    }

    fn write(&self, out: &mut Output, output: &Format, is_everywhere: bool) -> anyhow::Result<()> {
        if !output.is_table() {
            let open = self.objects.iter().filter(|(_, (health, _))| health.state.is_open());
            return output.write(out, &self.answer(), open.map(|(identity, _)| short(identity)));
        }
        let is_wide = *output == Format::Wide;
        let mut heading = vec!["OBJECT", "STATE", "CAUSE"];
        if is_wide {
            heading.push("REMEDY");
        }
        let mut table = Table::new(&heading);
        for (identity, (health, causes)) in self.objects.iter().filter(|(_, it)| is_wide || it.0.state.is_open()) {
            let mut row = row(identity, health, causes);
            row.extend(is_wide.then(|| causes.first().map_or_else(String::new, |chain| chain.cause.remedy())));
            table.row(row);
        }
        if !table.is_empty() {
            out.text(&table.to_string())?;
        }
        let (ready, total) = (self.ready(), self.objects.len());
        match (total, is_everywhere) {
            (0, true) => out.text("There are no objects.\n")?,
            (0, false) => out.text("There are no objects in this namespace; -A looks into all namespaces.\n")?,
            _ => out.text(&format!("{ready} of {total} objects are ready.\n"))?,
        }
        Ok(())
    }

    /// Prints the objects whose state or cause changed.
    fn write_changes(&self, before: &Self, out: &mut Output) -> anyhow::Result<()> {
        for (identity, now) in self.objects.iter().filter(|(identity, now)| before.objects.get(*identity) != Some(*now))
        {
            let cells = row(identity, &now.0, &now.1);
            out.text(&format!("{}\n", cells.join("   ").trim_end()))?;
        }
        for gone in before.objects.keys().filter(|identity| !self.objects.contains_key(*identity)) {
            out.text(&format!("{gone}   Deleted\n"))?;
        }
        Ok(())
    }

    fn answer(&self) -> StatusAnswer {
        let items = self.objects.iter().map(|(identity, (health, causes))| StatusItem {
            object: identity.into(),
            state: health.state,
            message: health.line.clone(),
            causes: causes.iter().map(Into::into).collect(),
        });
        let (ready, total) = (self.ready(), self.objects.len());
        StatusAnswer { ready, total, items: items.collect(), missing_rights: self.missing.clone() }
    }
}

/// Returns the cells for an object: its name, its state, and the first root cause.
fn row(identity: &Identity, health: &Health, causes: &[Chain]) -> Vec<String> {
    let more = if causes.len() > 1 { format!(" (causes: {})", causes.len()) } else { String::new() };
    let why = causes.first().map_or_else(|| health.line.replace('\n', " "), |chain| chain.told() + &more);
    vec![identity.to_string(), health.state.word().to_owned(), why]
}
