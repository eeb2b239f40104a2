//! `events`: prints the Events of an object and of everything below it, the oldest first.

use std::{collections::HashMap, process::ExitCode};

use clap::Args;
use jiff::{SignedDuration, Timestamp};

use super::{
    super::{
        arguments::{ObjectWord, object_word},
        connection::on_cluster,
        format::{Format, FormatParser},
        output::{Output, complain},
        table::Table,
    },
    answer::EventAnswer,
    graph::Graph,
    place::{ClusterFlags, NamespaceFlag},
    read::{FollowedObjects, StateReader},
};
use crate::{input::Identity, timestamps::parsed};

/// Arguments of `events`.
#[derive(Debug, Args)]
#[command(after_help = "Kubernetes keeps Events for an hour, unless the cluster is set up otherwise. Exit codes: 0 = \
                        success; 2 = the command could not answer.")]
pub(in crate::cli) struct Events {
    /// The object, such as agent/writer
    #[arg(value_name = "KIND/NAME", value_parser = object_word)]
    object: ObjectWord,
    #[command(flatten)]
    access: ClusterFlags,
    #[command(flatten)]
    namespace: NamespaceFlag,
    /// Format of the output
    #[arg(short, long, value_name = "FORMAT", value_parser = FormatParser::all(), default_value = "text")]
    output: Format,
}

impl Events {
    /// Prints the Events.
    pub(in crate::cli) fn run(self, out: &mut Output) -> anyhow::Result<ExitCode> {
        let Self { object: ObjectWord { kind, name }, access, namespace, output } = self;
        let (connection, operator) = access.split();
        on_cluster(connection, async |client| {
            let place = namespace.or_of_context(&client);
            let mut reader = StateReader::start(client, operator).await?;
            let object = reader.object(&kind, &place, &name).await?;
            reader.below(FollowedObjects::All).await?;
            reader.events(&place).await?;
            let events = found(&reader.graph(), &object);
            if output.is_table() {
                out.text(&table(&events, output == Format::Wide, Timestamp::now()))?;
                out.flush()?;
                if events.is_empty() {
                    complain("note", format_args!("{object} and the objects below it have no Events"));
                }
                reader.tell_missing();
            } else {
                output.write(out, &events, events.iter().map(|event| format!("event/{}", event.name)))?;
            }
            Ok(ExitCode::SUCCESS)
        })
    }
}

/// Returns the Events of an object and of everything below it, the oldest first.
pub(super) fn found(graph: &Graph, top: &Identity) -> Vec<EventAnswer> {
    let below = graph.below(top);
    let by_uid: HashMap<&str, &Identity> = below
        .iter()
        .filter_map(|document| Some((document.object["metadata"]["uid"].as_str()?, &document.identity)))
        .collect();
    let events = graph.events().filter_map(|event| {
        let about = by_uid.get(event["involvedObject"]["uid"].as_str()?)?;
        Some(EventAnswer::of(event, about))
    });
    let mut found: Vec<EventAnswer> = events.collect();
    found.sort_by_cached_key(|event| (parsed(Some(&event.last_seen)), event.name.clone()));
    found
}

fn table(events: &[EventAnswer], is_wide: bool, now: Timestamp) -> String {
    let mut heading = vec!["LAST SEEN", "TYPE", "REASON", "OBJECT", "COUNT", "MESSAGE"];
    if is_wide {
        heading.push("SOURCE");
    }
    let mut table = Table::new(&heading);
    for event in events {
        let age = parsed(Some(&event.last_seen)).map_or_else(String::new, |at| age(now.duration_since(at)));
        let (of, reason, message) = (event.of.clone(), event.reason.clone(), event.message.replace('\n', " "));
        let mut row = vec![age, of, reason, event.about(), event.count.to_string(), message];
        if is_wide {
            row.push(event.source.clone());
        }
        table.row(row);
    }
    if table.is_empty() { String::new() } else { table.to_string() }
}

/// Formats an age as kubectl does: the largest unit, for example `5m`.
fn age(passed: SignedDuration) -> String {
    let seconds = passed.as_secs().max(0);
    match seconds {
        ..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / 60),
        7200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_has_one_unit() {
        let ages = [(-5, "0s"), (119, "119s"), (120, "2m"), (7200, "2h"), (172_800, "2d")];
        for (seconds, expected) in ages {
            assert_eq!(age(SignedDuration::from_secs(seconds)), expected);
        }
    }
}
