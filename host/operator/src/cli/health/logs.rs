//! `logs`: prints the logs of an object's pods.

use std::{collections::BTreeSet, process::ExitCode};

use anyhow::bail;
use clap::Args;
use futures_util::{
    AsyncBufRead, AsyncBufReadExt as _, Stream, StreamExt as _,
    stream::{BoxStream, select_all, unfold},
};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, api::LogParams};
use serde_json::Value;

use super::{
    super::{
        HELD_BACK,
        arguments::{ObjectWord, object_word},
        connection::on_cluster,
        output::{Output, complain},
        program::Program,
    },
    graph::Graph,
    place::{ClusterFlags, NamespaceFlag},
    read::{FollowedObjects, StateReader},
    rights::MissingRight,
};
use crate::{error_text::with_causes, input::Identity};

/// Arguments of `logs`.
#[derive(Debug, Args)]
#[command(
    after_help = "If there are several containers, each line starts with its pod and container. -f follows the pods \
                  that exist when the command starts. Exit codes: 0 = success; 1 = no container has a log; 2 = the \
                  command could not answer."
)]
pub(in crate::cli) struct Logs {
    /// The object, such as agent/writer
    #[arg(value_name = "KIND/NAME", value_parser = object_word)]
    object: ObjectWord,
    #[command(flatten)]
    access: ClusterFlags,
    #[command(flatten)]
    namespace: NamespaceFlag,
    /// Print only the logs of the containers with this name
    #[arg(short, long, value_name = "NAME")]
    container: Option<String>,
    /// Print new lines until the containers end
    #[arg(short, long)]
    follow: bool,
    /// Print at most this number of the last lines of each container
    #[arg(long, value_name = "LINES")]
    tail: Option<u32>,
    /// For containers that restarted, print the logs of the previous run
    #[arg(short, long, conflicts_with = "follow")]
    previous: bool,
}

/// A container of a pod.
struct LogSource {
    pod: String,
    container: String,
}

impl Logs {
    /// Prints the logs.
    pub(in crate::cli) fn run(self, out: &mut Output) -> anyhow::Result<ExitCode> {
        let Self { object: ObjectWord { kind, name }, access, namespace, container, follow, tail, previous } = self;
        let (connection, operator) = access.split();
        on_cluster(connection, async |client| {
            let place = namespace.or_of_context(&client);
            let mut reader = StateReader::start(client.clone(), operator).await?;
            let object = reader.object(&kind, &place, &name).await?;
            reader.below(FollowedObjects::All).await?;
            reader.tell_missing();
            let sources = sources(&reader.graph(), &object, container.as_deref())?;
            let is_prefixed = sources.len() > 1;
            let api: Api<Pod> = Api::namespaced(client, &place);
            let mut streams: Vec<BoxStream<'_, Vec<u8>>> = Vec::new();
            for LogSource { pod, container } in sources {
                let tail_lines = tail.map(i64::from);
                let parameters = LogParams {
                    container: Some(container.clone()),
                    follow,
                    previous,
                    tail_lines,
                    ..LogParams::default()
                };
                match api.log_stream(&pod, &parameters).await {
                    Ok(log) => {
                        let prefix = if is_prefixed { format!("[{pod}/{container}] ") } else { String::new() };
                        streams.push(lines(log, prefix.into_bytes(), format!("{pod}/{container}")).boxed());
                    }
                    Err(kube::Error::Api(answer)) if answer.code == 403 => {
                        let resource = "pods/log".to_owned();
                        return Err(MissingRight { verb: "get", resource, namespace: Some(place.clone()) }.into());
                    }
                    Err(error) => {
                        complain("note", format_args!("container {container} of pod {pod}: {}", with_causes(&error)));
                    }
                }
            }
            if streams.is_empty() {
                return Ok(ExitCode::from(HELD_BACK));
            }
            if follow {
                let mut all = select_all(streams);
                while let Some(line) = all.next().await {
                    out.log(&line)?;
                    out.flush()?;
                }
            } else {
                for mut stream in streams {
                    while let Some(line) = stream.next().await {
                        out.log(&line)?;
                    }
                }
            }
            Ok(ExitCode::SUCCESS)
        })
    }
}

/// Returns the containers of the pods below an object.
fn sources(graph: &Graph, object: &Identity, only: Option<&str>) -> anyhow::Result<Vec<LogSource>> {
    let below = graph.below(object);
    let mut pods: Vec<_> = below.iter().filter(|document| document.identity.kind == "Pod").collect();
    pods.sort_by_key(|pod| &pod.identity);
    if pods.is_empty() {
        let Identity { kind, name, namespace, .. } = object;
        let place = namespace.as_deref().unwrap_or_default();
        let why = format!("{} why {}/{name} -n {place}", Program::called().command(), kind.to_lowercase());
        bail!("{object} has no pods: `{why}` shows the reason");
    }
    let (mut sources, mut names) = (Vec::new(), BTreeSet::new());
    for pod in pods {
        let spec = &pod.object["spec"];
        let lists = [&spec["initContainers"], &spec["containers"]].into_iter().filter_map(Value::as_array);
        for container in lists.flatten().filter_map(|container| container["name"].as_str()) {
            names.insert(container);
            if only.is_none_or(|only| only == container) {
                sources.push(LogSource { pod: pod.identity.name.clone(), container: container.to_owned() });
            }
        }
    }
    match only.filter(|_| sources.is_empty()) {
        Some(only) => {
            let names: Vec<&str> = names.into_iter().collect();
            bail!("no container {only}: name one of {}", names.join(", "))
        }
        None => Ok(sources),
    }
}

/// Returns the lines of a log, each with a prefix and a line break. A log may contain any bytes.
fn lines(log: impl AsyncBufRead + Send, prefix: Vec<u8>, name: String) -> impl Stream<Item = Vec<u8>> + Send {
    let state = (Box::pin(log), prefix, name);
    unfold(state, async |(mut log, prefix, name)| {
        let mut line = prefix.clone();
        match log.read_until(b'\n', &mut line).await {
            Ok(0) => None,
            Ok(_) => {
                if line.last() != Some(&b'\n') {
                    line.push(b'\n');
                }
                Some((line, (log, prefix, name)))
            }
            Err(error) => {
                complain("note", format_args!("the log of {name} ended early: {}", with_causes(&error)));
                None
            }
        }
    })
}
