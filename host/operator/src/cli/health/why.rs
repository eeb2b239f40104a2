//! `why`: prints the root causes for which an object is not ready, each with its remedy and with the objects on the way
//! to the cause.

use std::process::ExitCode;

use clap::Args;

use super::{
    super::{
        HELD_BACK,
        arguments::{ObjectWord, object_word},
        connection::on_cluster,
        format::{Format, FormatParser},
        output::Output,
    },
    answer::{WhyAnswer, short},
    object_health::{Health, HealthState},
    place::{ClusterFlags, NamespaceFlag},
    read::{FollowedObjects, StateReader},
    trace::{Chain, Tracer},
};
use crate::input::Identity;

/// Arguments of `why`.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 = the object is ready; 1 = the object is not ready; 2 = the command could not \
                        answer.")]
pub(in crate::cli) struct Why {
    /// The object, such as agent/writer
    #[arg(value_name = "KIND/NAME", value_parser = object_word)]
    object: ObjectWord,
    #[command(flatten)]
    access: ClusterFlags,
    #[command(flatten)]
    namespace: NamespaceFlag,
    /// Format of the output
    #[arg(short, long, value_name = "FORMAT", value_parser = FormatParser::without(&["wide"]), default_value = "text")]
    output: Format,
}

/// An object with the causes for which it is not ready.
struct Explained {
    object: Identity,
    health: Health,
    causes: Vec<Chain>,
}

impl Why {
    /// Prints the causes.
    pub(in crate::cli) fn run(self, out: &mut Output) -> anyhow::Result<ExitCode> {
        let Self { object: ObjectWord { kind, name }, access, namespace, output } = self;
        let (connection, operator) = access.split();
        let home = operator.cluster.operator_namespace.clone();
        on_cluster(connection, async |client| {
            let place = namespace.or_of_context(&client);
            let mut reader = StateReader::start(client, operator).await?;
            let object = reader.object(&kind, &place, &name).await?;
            // A ready object may use objects that are not ready.
            reader.uses(FollowedObjects::All).await?;
            reader.explain().await?;
            let (graph, missing) = (reader.graph(), reader.missing());
            let tracer = Tracer { graph: &graph, home: &home, is_partial: !missing.is_empty() };
            let health = graph.health(&object);
            let causes = match health.state {
                HealthState::Ready => tracer.causes_in_uses(&object),
                _ => tracer.causes(&object),
            };
            let explained = Explained { object, health, causes };
            if output == Format::Text {
                out.text(&explained.text())?;
                out.flush()?;
                reader.tell_missing();
            } else {
                let answer = WhyAnswer {
                    object: (&explained.object).into(),
                    state: explained.health.state,
                    message: explained.health.line.clone(),
                    causes: explained.causes.iter().map(Into::into).collect(),
                    missing_rights: missing,
                };
                let last = explained.causes.iter().filter_map(|chain| chain.steps.last());
                output.write(out, &answer, last.map(|step| short(&step.object)))?;
            }
            Ok(if explained.health.state == HealthState::Ready { ExitCode::SUCCESS } else { ExitCode::from(HELD_BACK) })
        })
    }
}

impl Explained {
    fn text(&self) -> String {
        let Self { object, health, causes } = self;
        let mut text = match (health.state, causes.is_empty()) {
            (HealthState::Ready, true) => format!("{object} is ready.\n"),
            (HealthState::Ready, false) => format!("{object} is ready, but uses objects that are not ready.\n"),
            _ => format!("{object} is not ready.\n"),
        };
        for Chain { steps, cause } in causes {
            text.push('\n');
            for (depth, step) in steps.iter().enumerate() {
                let (indent, uses) = ("  ".repeat(depth), step.relation.word());
                let line = step.health.line.replace('\n', " ");
                let line = if line.is_empty() { step.health.state.word() } else { &line };
                text += &format!("{indent}{uses}{}: {line}\n", step.object);
            }
            text += &format!("cause: {cause}\nremedy: {}\n", cause.remedy());
        }
        text
    }
}
