//! `render`: prints the children for objects in files, without a cluster.

mod hidden;
mod json;
mod table;
mod yaml;

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context, anyhow};
use clap::{Args, ValueEnum};
use kaos_policy::{
    contract::{Note, Outcome, ResourceType, Scopes, Severity},
    kubernetes::Checks,
    render::{Message, Refused, Verdict},
};

use super::{
    HELD_BACK, UNUSABLE,
    compatibility::Compatibility,
    facts::ClusterFacts,
    grantable::GrantableFlags,
    objects::{catalogue, claim, documents, warn_of_strangers},
    origins,
    output::{Output, complain},
    policy::{Beside, Installed},
    settings, variables,
};
use crate::{
    catalogue::{Catalogue, try_settings},
    input::{Document, InputPaths},
    offline::{Brought, Entry, Started, StoredObjects, World},
    policies::{Loader, select},
};
use hidden::HiddenTypes;

/// Arguments of `render`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 = all objects were rendered; 1 = an object was refused or waits for another object, or \
                  its policy failed; 2 = the input is invalid."
)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(super) struct Render {
    /// File or directory with objects in YAML or JSON, or - for standard input; can be given several times
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR|-", required = true)]
    filenames: Vec<String>,
    /// Read the subdirectories of a directory too
    #[arg(short = 'R', long)]
    recursive: bool,
    /// Namespace of objects that name no namespace
    #[arg(short = 'n', long, default_value = "default", value_parser = super::namespace)]
    namespace: String,
    /// Component of a policy, which replaces the default policy for the kinds that it claims; an overlay is added to
    /// the default policy. The command also reads a policy.yaml in the same directory
    #[arg(long = "policy", value_name = "X.wasm")]
    policies: Vec<PathBuf>,
    /// CRDs of further kinds
    #[arg(long, value_name = "FILE|DIR|-")]
    crds: Vec<String>,
    /// File with settings as YAML: a section for each policy, or settings for every policy that declares them
    #[arg(long, value_name = "FILE")]
    settings: Option<String>,
    /// One setting; the path can start with a policy's name
    #[arg(long = "set", value_name = "PATH=VALUE")]
    set: Vec<String>,
    #[command(flatten)]
    compatibility: Compatibility,
    /// A type that policies read or optionally use; the command assumes that the cluster does not serve this type
    #[arg(long, value_name = "[GROUP/VERSION/]KIND")]
    unserved: Vec<String>,
    /// A type that policies read; the command assumes that the operator may not read this type. Needs of Secrets get
    /// this answer from an operator that does not look at Secrets
    #[arg(long, value_name = "[GROUP/VERSION/]KIND")]
    forbidden: Vec<String>,
    /// Format of the output; default: yaml, with --env a table
    #[arg(short, long, value_enum)]
    output: Option<ChildrenForm>,
    /// Print the origin of each environment variable's value, as a table; -o json always contains the variables
    #[arg(long)]
    env: bool,
    /// Print the origin of each value in each child, as a table; -o json always contains the origins
    #[arg(long, conflicts_with = "env")]
    explain: bool,
    /// Also print the status that each object would get; with --env, print its phase and message
    #[arg(long, overrides_with = "status")]
    status: bool,
    #[command(flatten)]
    facts: ClusterFacts,
    /// Also use packages in the files from namespaces other than the operator's
    #[arg(long, env = "NAMESPACE_POLICIES")]
    namespace_policies: bool,
    #[command(flatten)]
    grantable: GrantableFlags,
    /// Namespaces that the default policies may read when they answer for objects in the operator's namespace, such as
    /// an AuthorizationPolicy
    #[arg(long, env = "READ_NAMESPACES", value_delimiter = ',', value_name = "A,B", value_parser = super::one_namespace)]
    read_namespaces: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ChildrenForm {
    /// The manifests that the operator would apply
    Yaml,
    /// All results, with one entry for each object
    Json,
    /// One line for each object
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
            compatibility,
            unserved,
            forbidden,
            output,
            env,
            explain,
            status,
            facts,
            namespace_policies,
            grantable,
            read_namespaces,
        } = self;
        let show = Show { form: Shown::of(output, env, explain)?, status };
        let Some(mut catalogue) = catalogue(&crds)? else { return Ok(ExitCode::from(UNUSABLE)) };
        let cluster = facts.cluster();
        let loader = Loader::cached(cluster.clone())?.accepting(grantable.size()).reading(read_namespaces);
        let policies = loader.load(&policies)?;
        claim(&mut catalogue, policies.iter().map(|loaded| &loaded.policy));
        let sources = InputPaths { paths: &filenames, recursive, namespace: &namespace };
        let Some(documents) = documents(sources, &catalogue) else { return Ok(ExitCode::from(UNUSABLE)) };
        let mut layers = settings::layers(&policies, settings.as_deref(), &set)?;
        layers.extend(settings::held(&documents, &cluster.operator_namespace, &policies)?);
        let layers = compatibility.over(layers)?;
        let stacks = select(&policies)?;
        let hidden = HiddenTypes::new(unserved, forbidden, &stacks)?;
        drop(Catalogue::new(&stacks, &layers)?);
        try_settings(&stacks, &layers, &cluster, &loader.server())
            .context("the cluster-wide settings do not fit the policies")?;
        let (grantable, home) = (grantable.grantable(), &*cluster.operator_namespace);
        let beside =
            Beside { loader: &loader, own: &policies, home, grantable: &grantable, in_namespaces: namespace_policies };
        let standing = beside.standing(&documents, &layers, None)?;
        let Installed { snapshot, conflicts } = standing.install(&Catalogue::default())?;
        for (package, why) in &conflicts {
            complain("warning", format_args!("ConfigMap {package} does not serve: {why}"));
        }
        let (is_served, objects) = (|of: &ResourceType| !hidden.is_unserved(of), documents.iter().map(|it| &it.object));
        let started = Started { cluster, grantable: grantable.privileges, checks: Checks::Fields };
        let brought = Brought::of(snapshot, &started, is_served, objects)?;
        warn_of_strangers(&documents, &catalogue, &brought.kinds().collect::<Vec<_>>());
        show.all(&documents, catalogue.scopes(), &brought, &hidden, out)
    }
}

/// The results to print for each object, and whether to print the status.
struct Show {
    form: Shown,
    status: bool,
}

/// The results to print: all results in an output format, only the variables, or only the origins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    All(ChildrenForm),
    Variables,
    Origins,
}

impl Shown {
    fn of(form: Option<ChildrenForm>, env: bool, explain: bool) -> anyhow::Result<Self> {
        let (table, flag, contained) = match (env, explain) {
            (false, false) => return Ok(Self::All(form.unwrap_or(ChildrenForm::Yaml))),
            (true, _) => (Self::Variables, "--env", "variables"),
            (false, true) => (Self::Origins, "--explain", "origins"),
        };
        match form {
            None | Some(ChildrenForm::Table) => Ok(table),
            Some(ChildrenForm::Json) => {
                Err(anyhow!("{flag} prints a table: leave out {flag}; -o json contains the {contained} anyway"))
            }
            Some(ChildrenForm::Yaml) => Err(anyhow!("{flag} prints a table: leave out {flag} or -o yaml")),
        }
    }
}

impl Show {
    fn all(
        &self,
        documents: &[Document],
        scopes: &Scopes,
        brought: &Brought,
        hidden: &HiddenTypes,
        out: &mut Output,
    ) -> anyhow::Result<ExitCode> {
        let hidden = |of: &ResourceType| hidden.answer(of);
        let stored = StoredObjects::new(documents, scopes);
        let world = World::new(&stored, brought, &hidden);
        let (mut rendered, mut held_back) = (0_usize, false);
        let mut list = json::JsonList::default();
        let mut table = table::Objects::default();
        for (position, document) in documents.iter().enumerate() {
            let Some(entry) = world.entry(position) else { continue };
            let Document { origin, identity, .. } = document;
            let entry = entry.with_context(|| format!("{origin}: {identity}"))?;
            rendered += 1;
            held_back |= tell(document, &entry, self.form == Shown::All(ChildrenForm::Json));
            match self.form {
                Shown::Variables => variables::write(out, document, &entry, self.status)?,
                Shown::Origins => origins::write(out, document, &entry, self.status)?,
                Shown::All(ChildrenForm::Yaml) => yaml::write(out, document, &entry, self.status)?,
                Shown::All(ChildrenForm::Json) => list.write(out, &entry)?,
                Shown::All(ChildrenForm::Table) => table.add(document, &entry, self.status),
            }
        }
        if rendered == 0 {
            let kinds: Vec<_> = brought.kinds().map(ToString::to_string).collect();
            return Err(anyhow!(
                "nothing to render: no object is of a kind that a policy claims ({})",
                sorted(kinds).join(", ")
            ));
        }
        match self.form {
            Shown::Variables | Shown::Origins | Shown::All(ChildrenForm::Yaml) => {}
            Shown::All(ChildrenForm::Json) => list.finish(out)?,
            Shown::All(ChildrenForm::Table) => out.text(&table.to_string())?,
        }
        Ok(if held_back { ExitCode::from(HELD_BACK) } else { ExitCode::SUCCESS })
    }
}

fn sorted(mut texts: Vec<String>) -> Vec<String> {
    texts.sort_unstable();
    texts
}

/// Prints messages about an object on standard error. Returns whether the object is refused, waits or failed.
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
