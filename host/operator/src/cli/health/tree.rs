//! `tree`: prints an object with the objects that it uses, its children and its pods, each with its state in a line.

use std::process::ExitCode;

use clap::Args;

use super::{
    super::{
        arguments::{ObjectWord, object_word},
        connection::on_cluster,
        format::{Format, FormatParser},
        output::Output,
        table::Table,
    },
    answer::{TreeAnswer, short},
    graph::{Graph, Use, UseSight, is_replaced},
    object_health::{Health, HealthState},
    place::{ClusterFlags, NamespaceFlag},
    read::{FollowedObjects, StateReader},
    trace::Relation,
};
use crate::input::Identity;

/// Arguments of `tree`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Tree {
    /// The object, such as agent/writer
    #[arg(value_name = "KIND/NAME", value_parser = object_word)]
    object: ObjectWord,
    #[command(flatten)]
    access: ClusterFlags,
    #[command(flatten)]
    namespace: NamespaceFlag,
    #[arg(
        help = "Format of the output; wide also shows ReplicaSets without pods, and the parts of used objects even if the objects are ready",
        short, long, value_name = "FORMAT", value_parser = FormatParser::all(), default_value = "text"
    )]
    output: Format,
}

impl Tree {
    /// Prints the tree.
    pub(in crate::cli) fn run(self, out: &mut Output) -> anyhow::Result<ExitCode> {
        let Self { object: ObjectWord { kind, name }, access, namespace, output } = self;
        let (connection, operator) = access.split();
        on_cluster(connection, async |client| {
            let place = namespace.or_of_context(&client);
            let mut reader = StateReader::start(client, operator).await?;
            let object = reader.object(&kind, &place, &name).await?;
            reader.uses(FollowedObjects::All).await?;
            reader.below(FollowedObjects::All).await?;
            let graph = reader.graph();
            let is_whole = !matches!(output, Format::Text);
            let drawing = Drawing { graph: &graph, is_whole };
            let tree = drawing.entry(&object, Relation::Top, &mut Vec::new());
            if output.is_table() {
                let mut table = Table::new(&["OBJECT", "STATE", ""]);
                draw(&tree, None, &mut Vec::new(), &mut table);
                out.text(&table.to_string())?;
                out.flush()?;
                reader.tell_missing();
            } else {
                let all = graph.below(&object);
                output.write(out, &tree, all.into_iter().map(|document| short(&document.identity)))?;
            }
            Ok(ExitCode::SUCCESS)
        })
    }
}

/// Builds a tree from a graph.
pub(super) struct Drawing<'a> {
    pub(super) graph: &'a Graph,
    /// Whether to show everything: also `ReplicaSets` without pods, and what is below used objects that are ready.
    pub(super) is_whole: bool,
}

impl Drawing<'_> {
    pub(super) fn entry(&self, object: &Identity, relation: Relation, above: &mut Vec<Identity>) -> TreeAnswer {
        let mut entry = TreeAnswer::new(object, relation, self.graph.health(object));
        let is_quiet = relation == Relation::Used && !self.is_whole && !entry.state.is_open();
        // If the object is already in the tree above, add the object once more with nothing below it, so that a circle
        // ends.
        if above.contains(object) || is_quiet {
            return entry;
        }
        above.push(object.clone());
        entry.below.extend(self.graph.uses(object).iter().map(|used| self.used(used, above)));
        for child in self.graph.children(object) {
            if self.is_whole || !is_replaced(child) {
                entry.below.push(self.entry(&child.identity, Relation::Child, above));
            }
        }
        let claims = self.graph.claims(object).map(|claim| self.entry(&claim.identity, Relation::Used, above));
        let claims: Vec<TreeAnswer> = claims.collect();
        entry.below.extend(claims);
        above.pop();
        entry
    }

    fn used(&self, Use { reference, optional, sight }: &Use, above: &mut Vec<Identity>) -> TreeAnswer {
        let absent = |state, line: &str| TreeAnswer::new(&reference.into(), Relation::Used, Health::new(state, line));
        match sight {
            UseSight::There(other) => self.entry(other, Relation::Used, above),
            UseSight::Absent if *optional => absent(HealthState::Exists, "does not exist, and is optional"),
            UseSight::Absent => absent(HealthState::Missing, "does not exist"),
            UseSight::NotRead if reference.of().is_secret() => {
                absent(HealthState::Unknown, "not checked: the command line reads no Secrets")
            }
            UseSight::NotRead => {
                absent(HealthState::Unknown, "not read: you lack the right, or the cluster does not serve this type")
            }
        }
    }
}

/// Adds an entry and everything below it to the table. `rails` contains, for each level above, whether more entries
/// follow.
fn draw(entry: &TreeAnswer, above: Option<&TreeAnswer>, rails: &mut Vec<bool>, table: &mut Table) {
    let mut prefix = String::new();
    if let Some((last, before)) = rails.split_last() {
        prefix.extend(before.iter().map(|more| if *more { "│  " } else { "   " }));
        prefix.push_str(if *last { "├─ " } else { "└─ " });
    }
    let name = format!("{prefix}{}", entry.named(above));
    table.row([name, entry.state.word().to_owned(), entry.message.replace('\n', " ")]);
    for (position, below) in entry.below.iter().enumerate() {
        rails.push(position + 1 < entry.below.len());
        draw(below, Some(entry), rails, table);
        rails.pop();
    }
}
