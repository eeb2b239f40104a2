//! `render`: what would run, for objects in files, without a cluster.

mod env;
mod json;
mod table;
mod yaml;

use std::{collections::HashMap, path::PathBuf, process::ExitCode};

use anyhow::{Context, anyhow};
use clap::{Args, ValueEnum};
use kaos_policy::{
    contract::{Cluster, Note, Outcome, ResourceType, Severity},
    near::nearest,
    render::{Message, Refused, Renderer, Verdict},
};

use super::{
    HELD_BACK, UNUSABLE,
    output::{Output, complain},
    settings,
};
use crate::{
    input::{self, Document, Sources},
    offline::{Entry, World},
    policies::{Loader, select},
    schema::{Admission, Catalogue, Crd, Finding},
};

/// Arguments of `render`.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 everything was rendered; 1 something was refused, waits for something, or its \
    policy failed; 2 the input cannot be used.")]
pub(super) struct Render {
    /// File or directory with objects in YAML or JSON, or - for standard input; may be given several times
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR|-", required = true)]
    filenames: Vec<String>,
    /// Look into the directories below a directory, too
    #[arg(short = 'R', long)]
    recursive: bool,
    /// Namespace of objects that name none
    #[arg(short = 'n', long, default_value = "default", value_parser = super::namespace)]
    namespace: String,
    /// A policy's component, in place of the embedded one for the kinds it claims, or over it when it is an overlay;
    /// its policy.yaml is looked for beside it
    #[arg(long = "policy", value_name = "X.wasm")]
    policies: Vec<PathBuf>,
    /// CRDs of further kinds
    #[arg(long, value_name = "FILE|DIR|-")]
    crds: Vec<String>,
    /// Settings as YAML: a section for each policy, or settings that hold for every policy that has them
    #[arg(long, value_name = "FILE")]
    settings: Option<String>,
    /// One setting; the path may start with a policy's name
    #[arg(long = "set", value_name = "PATH=VALUE")]
    set: Vec<String>,
    /// A type that the cluster does not serve, though a policy wishes for it
    #[arg(long, value_name = "[GROUP/VERSION/]KIND")]
    unserved: Vec<String>,
    /// Form of the output
    #[arg(short, long, value_enum, default_value_t)]
    output: Form,
    /// Show where the value of each environment variable comes from, as a table
    #[arg(long, conflicts_with = "output")]
    env: bool,
    /// Show the status that each object would get, too
    #[arg(long)]
    status: bool,
    /// Namespace that the operator runs in
    #[arg(long, env = "SYSTEM_NAMESPACE", default_value = "kaos-system", value_parser = super::namespace)]
    operator_namespace: String,
    /// DNS domain of the cluster's Services
    #[arg(long, env = "KUBERNETES_CLUSTER_DOMAIN", default_value = "cluster.local", value_parser = super::domain)]
    cluster_domain: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Form {
    /// The manifests, as they would be applied
    #[default]
    Yaml,
    /// Everything, one entry an object
    Json,
    /// One line an object
    Table,
}

impl Render {
    /// Renders every claimed object of the input.
    pub(super) fn run(self, out: &mut Output) -> anyhow::Result<ExitCode> {
        let Self {
            filenames,
            recursive,
            namespace,
            policies,
            crds,
            settings,
            set,
            unserved,
            output,
            env,
            status,
            operator_namespace,
            cluster_domain,
        } = self;
        let Some(catalogue) = catalogue(&crds)? else { return Ok(ExitCode::from(UNUSABLE)) };
        let sources = Sources { paths: &filenames, recursive, namespace: &namespace };
        let Some(documents) = documents(sources, &catalogue) else { return Ok(ExitCode::from(UNUSABLE)) };
        let cluster =
            |served| Cluster { domain: cluster_domain.clone(), operator_namespace: operator_namespace.clone(), served };
        let policies = Loader::new(cluster(vec![]))?.load(&policies)?;
        let layers = settings::layers(&policies, settings.as_deref(), &set)?;
        let stacks = select(&policies)?;
        let unserved = Unserved(unserved);
        let mut renderers = HashMap::new();
        for (of, stack) in stacks {
            let wishes = std::iter::once(stack.base())
                .chain(stack.overlays())
                .filter_map(|policy| policy.claim(&of))
                .flat_map(|claim| claim.wishes.iter());
            let served = wishes.filter(|wish| !unserved.contains(wish)).cloned().collect();
            renderers.insert(of, Renderer::new(&stack, &layers, cluster(served))?);
        }
        warn_of_strangers(&documents, &catalogue, &renderers);
        let show = Show { form: output, env, status };
        show.all(&documents, &renderers, &unserved, out)
    }
}

/// The embedded CRDs and those of files.
fn catalogue(paths: &[String]) -> anyhow::Result<Option<Catalogue>> {
    let mut catalogue = Catalogue::embedded()?;
    let (documents, errors) = input::read(Sources { paths, recursive: false, namespace: "default" });
    for error in &errors {
        complain("error", error);
    }
    for Document { origin, object, .. } in &documents {
        catalogue.add(Crd::new(object).with_context(|| origin.to_string())?);
    }
    Ok(errors.is_empty().then_some(catalogue))
}

/// The objects as an API server would have stored them, unless one cannot be used.
fn documents(sources: Sources<'_>, catalogue: &Catalogue) -> Option<Vec<Document>> {
    let (mut documents, errors) = input::read(sources);
    let mut usable = errors.is_empty();
    for error in &errors {
        complain("error", error);
    }
    for Document { origin, identity, object } in &mut documents {
        let Admission { unknown, violations } = catalogue.admit(&identity.group, &identity.kind, object);
        for Finding { path, message } in unknown {
            complain("warning", format_args!("{origin}: {identity}: {path}: {message}"));
        }
        for Finding { path, message } in violations {
            complain("error", format_args!("{origin}: {identity}: {path}: {message}"));
            usable = false;
        }
    }
    if usable && documents.is_empty() {
        complain("error", "no objects in the input: name files that hold some with -f");
        usable = false;
    }
    usable.then_some(documents)
}

/// Says which objects are of no kind that their group has, which an API server would refuse.
fn warn_of_strangers(documents: &[Document], catalogue: &Catalogue, renderers: &HashMap<ResourceType, Renderer>) {
    for Document { origin, identity, .. } in documents {
        let claimed = renderers.keys().filter(|of| of.group() == identity.group).map(|of| of.kind.as_str());
        let kinds: Vec<&str> = catalogue.kinds(&identity.group).chain(claimed).collect();
        if kinds.is_empty() || kinds.contains(&identity.kind.as_str()) {
            continue;
        }
        let near = nearest(&identity.kind, kinds.iter().copied());
        let hint = near.map_or_else(String::new, |near| format!(": did you mean {near}?"));
        let group = &identity.group;
        complain("warning", format_args!("{origin}: {identity}: {group} has no such kind here, ignored{hint}"));
    }
}

/// Types as the user names them: by kind, or with group and version.
struct Unserved(Vec<String>);

impl Unserved {
    fn contains(&self, of: &ResourceType) -> bool {
        let full = format!("{}/{}", of.api_version, of.kind);
        self.0.iter().any(|named| *named == of.kind || *named == full)
    }
}

/// What to show of every object.
struct Show {
    form: Form,
    env: bool,
    status: bool,
}

impl Show {
    fn all(
        &self,
        documents: &[Document],
        renderers: &HashMap<ResourceType, Renderer>,
        unserved: &Unserved,
        out: &mut Output,
    ) -> anyhow::Result<ExitCode> {
        let not_served = |of: &ResourceType| unserved.contains(of);
        let world = World::new(documents, renderers, &not_served);
        let (mut rendered, mut held_back) = (0_usize, false);
        let mut list = json::List::default();
        let mut table = table::Objects::default();
        for (position, document) in documents.iter().enumerate() {
            let Some(entry) = world.entry(position) else { continue };
            let Document { origin, identity, .. } = document;
            let entry = entry.with_context(|| format!("{origin}: {identity}"))?;
            rendered += 1;
            held_back |= tell(document, &entry, self.form == Form::Json);
            match self.form {
                _ if self.env => env::write(out, document, &entry)?,
                Form::Yaml => yaml::write(out, document, &entry, self.status)?,
                Form::Json => list.write(out, &entry)?,
                Form::Table => table.add(document, &entry, self.status),
            }
        }
        if rendered == 0 {
            let kinds: Vec<_> = renderers.keys().map(ToString::to_string).collect();
            return Err(anyhow!(
                "nothing to render: no object is of a kind that a policy claims ({})",
                sorted(kinds).join(", ")
            ));
        }
        match self.form {
            _ if self.env => {}
            Form::Yaml => {}
            Form::Json => list.finish(out)?,
            Form::Table => out.text(&table.to_string())?,
        }
        Ok(if held_back { ExitCode::from(HELD_BACK) } else { ExitCode::SUCCESS })
    }
}

fn sorted(mut texts: Vec<String>) -> Vec<String> {
    texts.sort_unstable();
    texts
}

/// Says on standard error what the user should know of an object; whether it is refused or waits.
fn tell(document: &Document, entry: &Entry, quiet: bool) -> bool {
    let Document { origin, identity, .. } = document;
    let say = |severity: &str, path: &str, message: &str| {
        let path = if path.is_empty() { String::new() } else { format!("{path}: ") };
        complain(severity, format_args!("{origin}: {identity}: {path}{message}"));
    };
    if !quiet {
        for Note { severity, message, path, .. } in entry.rendered.notes() {
            let severity = match severity {
                Severity::Info => "note",
                Severity::Warning => "warning",
            };
            say(severity, path.as_deref().unwrap_or_default(), message);
        }
    }
    match &entry.rendered.verdict {
        Verdict::Planned(planned) => {
            let gated = entry.outcome == Outcome::Gated;
            for gate in planned.gates.iter().filter(|_| gated) {
                say("waiting", "", &gate.message);
            }
            gated
        }
        Verdict::Refused(refusal) => {
            let Refused { reason, messages } = Refused::of(refusal);
            for Message { path, message } in &messages {
                say(if reason == "Waiting" { "waiting" } else { "refused" }, path, message);
            }
            true
        }
        Verdict::Failed(failure) => {
            say("failed", "", &failure.to_string());
            true
        }
    }
}
