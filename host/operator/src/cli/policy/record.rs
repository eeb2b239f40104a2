//! `policy record`: writes a decision of the policies about one object into a file, as a case for `policy replay`.

use std::{fs, path::PathBuf, process::ExitCode, sync::Arc};

use anyhow::{Context as _, bail};
use clap::Args;
use k8s_openapi::ByteString;
use kaos_policy::{
    kubernetes::Checks,
    printable::printable_json,
    render::{DecisionId, LayerInputs},
};
use kube::{Client, Config};
use serde::Deserialize;

use super::{
    ObjectWord,
    connection::Connection,
    facts::{ClusterFacts, OperatorPolicies},
    grantable::GrantablePrivileges,
    live_object::LiveObject,
    object_word,
    output::{Output, complain},
    rendered::{RenderedObject, rendered},
    revisions::{Revisions, name},
    table::Table,
};
use crate::{
    offline::Started,
    package::PolicyCode,
    policies::Loader,
    record::{Case, MaskEffect, Masked, RecordedPass, Why},
    replay::masked,
};

/// The file name with which the command writes to standard output.
const STANDARD_OUTPUT: &str = "-";

/// Arguments of `policy record`.
#[derive(Debug, Args)]
#[command(
    after_help = "The case contains no secret values: the command masks them, and says whether the masks change the \
                  answer. Exit codes: 0 = the case was written; 2 = the object or the decision does not exist, or the \
                  cluster cannot be reached."
)]
pub(super) struct Record {
    /// The object, such as agent/writer
    #[arg(value_name = "KIND/NAME", value_parser = object_word, required_unless_present_any = ["decision", "list"])]
    object: Option<ObjectWord>,
    /// File for the case, or - for standard output
    #[arg(short, long, value_name = "FILE|-", default_value = STANDARD_OUTPUT)]
    output: PathBuf,
    /// Take the newest decision about the object from the flight recorder of the running operator. The address is the
    /// operator's --debug-bind-address, which `kubectl port-forward` brings to this machine
    #[arg(
        long,
        value_name = "ADDRESS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "127.0.0.1:8082"
    )]
    from_operator: Option<String>,
    /// Id of the decision, from a log line, an Event or --list; default: the newest decision about the object
    #[arg(long, value_name = "ID", requires = "from_operator")]
    decision: Option<DecisionId>,
    /// Print the decisions in the flight recorder, and write no case
    #[arg(long, requires = "from_operator", conflicts_with = "decision")]
    list: bool,
    /// Put the code of installed policies into the case, so that a replay needs no other file
    #[arg(long)]
    with_policy: bool,
    #[command(flatten)]
    connection: Connection,
    /// Namespace of the object
    #[arg(short, long, default_value = "default", value_parser = super::namespace)]
    namespace: String,
    #[command(flatten)]
    facts: ClusterFacts,
    #[command(flatten)]
    own: OperatorPolicies,
    #[command(flatten)]
    grantable: GrantablePrivileges,
}

/// A decision in the list of the flight recorder.
#[derive(Debug, Deserialize)]
struct Listed {
    decision: DecisionId,
    object: kaos_policy::contract::Reference,
    at: String,
    why: Why,
    answer: String,
}

impl Record {
    /// Writes the case.
    pub(super) fn run(self, out: &mut Output) -> anyhow::Result<ExitCode> {
        let Self {
            object,
            output,
            from_operator,
            decision,
            list,
            with_policy,
            connection,
            namespace,
            facts,
            own,
            grantable,
        } = self;
        let cluster = facts.cluster();
        let home = cluster.operator_namespace.clone();
        let mut case = if let Some(address) = from_operator {
            let door = Door::new(&address)?;
            let listed = match (decision, &object) {
                (Some(_), _) => Vec::new(),
                (None, Some(object)) => door.list_of(object, &namespace)?,
                (None, None) => door.list()?,
            };
            if list {
                let mut table = Table::new(&["DECISION", "TIME", "WHY", "OBJECT", "ANSWER"]);
                for Listed { decision, object, at, why, answer } in &listed {
                    table.row([
                        decision.to_string(),
                        at.clone(),
                        format!("{why:?}"),
                        object.to_string(),
                        answer.clone(),
                    ]);
                }
                out.text(&table.to_string())?;
                return Ok(ExitCode::SUCCESS);
            }
            let Some(decision) = decision.or_else(|| listed.last().map(|newest| newest.decision)) else {
                bail!(
                    "the flight recorder has no decision about this object in namespace {namespace}: leave out \
                     --from-operator to record the live object"
                );
            };
            door.case(decision)?
        } else {
            let Some(ObjectWord { kind, name }) = object else { bail!("name an object as KIND/NAME") };
            let started = Started { cluster, grantable: grantable.listed(), checks: Checks::Values };
            let loader = Loader::cached(started.cluster.clone())?.accepting_all();
            let asked = super::on_cluster(connection.clone(), async |client| {
                let word = (kind.as_str(), namespace.as_str(), name.as_str());
                let mut live = LiveObject::find(client, &loader, &started, &own.policies, word).await?;
                rendered(&mut live.gathered, &live.snapshot, &started, &live.identity, None).await
            })?;
            live_case(&asked)
        };
        if with_policy {
            super::on_cluster(connection, async |client| pack(&mut case, client, &home).await)?;
        }
        let text = printable_json(&serde_json::to_string_pretty(&case)?).into_owned() + "\n";
        if output.as_os_str() == STANDARD_OUTPUT {
            out.verbatim(&text)?;
        } else {
            fs::write(&output, text).with_context(|| output.display().to_string())?;
        }
        out.flush()?;
        tell(&case);
        Ok(ExitCode::SUCCESS)
    }
}

fn live_case(asked: &RenderedObject) -> Case {
    let RenderedObject { entry, kind, renderer, without, scopes, .. } = asked;
    let is_cluster_scoped =
        |of: &kaos_policy::contract::ResourceType| scopes.is_cluster_scoped(&of.api_version, &of.kind);
    let pass = RecordedPass {
        at: jiff::Timestamp::now(),
        why: Why::Requested,
        renderer,
        rendered: &entry.rendered,
        kind,
        without,
        is_cluster_scoped: &is_cluster_scoped,
    };
    let find = |layer: &LayerInputs| {
        renderer.layers().map(|(policy, _)| policy).find(|policy| *policy.id() == layer.policy).map(Arc::clone)
    };
    masked(pass.case(), &find)
}

/// Puts the code of installed policies into a case.
async fn pack(case: &mut Case, client: Client, home: &str) -> anyhow::Result<()> {
    let revisions = Revisions::new(client, home);
    let all = revisions.all().await?;
    for source in &mut case.policies {
        let Some(named) = &source.revision else { continue };
        let Some(revision) = all.iter().find(|revision| name(revision) == named) else {
            bail!("PolicyRevision {named} does not exist any more, so its code cannot be put into the case");
        };
        let package = revisions.package(revision).await?.with_context(|| format!("PolicyRevision {named}"))?;
        if let Some(PolicyCode { form, bytes }) = package.component {
            source.form = form;
            source.code = Some(ByteString(bytes.into_owned()));
        }
    }
    Ok(())
}

/// Prints the facts that the reader of the case must know.
fn tell(case: &Case) {
    for (severity, message) in told(case) {
        complain(severity, message);
    }
}

/// Returns the facts that the reader of the case must know: for each, the severity and the message.
pub(super) fn told(case: &Case) -> Vec<(&'static str, String)> {
    let mut told =
        vec![("recorded", format!("{}: decision {}, {}", case.object, case.decision, case.answer.verdict.word()))];
    if let Some(why) = &case.incomplete {
        told.push(("note", format!("the case cannot be replayed: {why}")));
    }
    let elsewhere = case.policies.iter().filter(|source| source.revision.is_some() && source.code.is_none());
    for source in elsewhere {
        let remedy = "record with --with-policy, or give the component to `policy replay` with --component";
        told.push(("note", format!("a replay needs the code of {}: {remedy}", source.from)));
    }
    let Some(Masked { values, paths, effect }) = &case.masked else { return told };
    let effect = match effect {
        MaskEffect::Nothing => "the masks do not change the answer".to_owned(),
        MaskEffect::Fuel { before } => {
            format!("the masks change only the fuel: {before} without masks, {} with masks", case.answer.fuel)
        }
        MaskEffect::Answer { before, what } => {
            format!("the masks change the answer: {what}; fuel {before} without masks, {}", case.answer.fuel)
        }
        MaskEffect::Unknown => {
            "the masks may change the answer: this program lacks the policies, so it could not repeat the pass with the \
             masks"
                .to_owned()
        }
    };
    let many = if *values == 1 { "1 value".to_owned() } else { format!("{values} values") };
    let first = paths.first().map_or("", String::as_str);
    told.push(("masked", format!("{many}, such as {first}: {effect}")));
    told
}

/// The debug pages of a running operator.
struct Door {
    client: Client,
    runtime: tokio::runtime::Runtime,
    address: String,
}

impl Door {
    fn new(address: &str) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let url = address.strip_prefix("http://").unwrap_or(address);
        let uri = format!("http://{url}").parse::<http::Uri>().with_context(|| format!("--from-operator {address}"))?;
        let _inside = runtime.enter();
        let client = Client::try_from(Config::new(uri))?;
        Ok(Self { client, runtime, address: address.to_owned() })
    }

    fn list(&self) -> anyhow::Result<Vec<Listed>> {
        Ok(serde_json::from_str(&self.page("/debug/decisions")?)?)
    }

    /// Returns the decisions about one object, the oldest first. The operator itself finds the kind, from the user's
    /// word such as `agents`.
    fn list_of(&self, ObjectWord { kind, name }: &ObjectWord, namespace: &str) -> anyhow::Result<Vec<Listed>> {
        Ok(serde_json::from_str(&self.page(&format!("/debug/objects/{kind}/{namespace}/{name}/decisions"))?)?)
    }

    fn case(&self, decision: DecisionId) -> anyhow::Result<Case> {
        Ok(Case::parse(&self.page(&format!("/debug/decisions/{decision}"))?)?)
    }

    fn page(&self, path: &str) -> anyhow::Result<String> {
        let request = http::Request::get(path).body(Vec::new())?;
        self.runtime.block_on(self.client.request_text(request)).map_err(|error| match error {
            kube::Error::Api(answer) => anyhow::anyhow!("{}", answer.message.trim()),
            error => anyhow::Error::from(error).context(format!(
                "no operator answers at {}: forward the operator's debug port with `kubectl port-forward`",
                self.address
            )),
        })
    }
}
