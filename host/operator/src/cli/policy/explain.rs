//! `policy explain`: explains one object: which policies answer for the object, the inputs of these policies, and the
//! origin of each variable and of each value in the children.

use std::{process::ExitCode, sync::Arc};

use clap::Args;
use kaos_policy::{
    contract::{Answer, Found, Need, Selector, Target},
    kubernetes::Checks,
    policy::PolicyId,
    render::Verdict,
    settings::{Effective, Origin, Path, Source},
};
use serde_json::{Value, json};

use super::{
    ObjectWord, OutputFormat,
    answering::{PolicySet, Shipped},
    connection::Connection,
    facts::{ClusterFacts, OperatorPolicies},
    grantable::GrantablePrivileges,
    live_object::LiveObject,
    object_word, origins,
    output::Output,
    rendered::{RenderedObject, rendered},
    table::Table,
    variables,
};
use crate::{
    catalogue::{Kind, PIN, Snapshot, Without},
    input::Identity,
    live::Gathered,
    masking::{MASK, Masks, Secrecy},
    offline::{Entry, Started, named_in_vain},
    policies::Loader,
    status::conditions::conditions,
};

/// Arguments of `policy explain`.
#[derive(Debug, Args)]
pub(super) struct Explain {
    /// The object, such as agent/writer
    #[arg(value_name = "KIND/NAME", value_parser = object_word)]
    object: ObjectWord,
    #[command(flatten)]
    connection: Connection,
    /// Namespace of the object
    #[arg(short, long, default_value = "default", value_parser = super::namespace)]
    namespace: String,
    /// Format of the output
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
    #[command(flatten)]
    facts: ClusterFacts,
    #[command(flatten)]
    own: OperatorPolicies,
    #[command(flatten)]
    grantable: GrantablePrivileges,
}

impl Explain {
    /// Renders the object as a pass of the operator does, and prints everything that determined the result.
    pub(super) fn run(self, out: &mut Output) -> anyhow::Result<ExitCode> {
        let Self { object: ObjectWord { kind, name }, connection, namespace, output, facts, own, grantable } = self;
        let started = Started { cluster: facts.cluster(), grantable: grantable.listed(), checks: Checks::Values };
        let loader = Loader::cached(started.cluster.clone())?.accepting_all();
        let told = super::on_cluster(connection, async |client| {
            let word = (kind.as_str(), namespace.as_str(), name.as_str());
            let mut live = LiveObject::find(client, &loader, &started, &own.policies, word).await?;
            explained(&mut live.gathered, &live.standing, &live.snapshot, &started, &live.identity).await
        })?;
        match output {
            OutputFormat::Json => out.json(&told.document())?,
            OutputFormat::Text => out.text(&told.text())?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Renders the object `identity`, which `gathered` already has, and explains the result.
pub(super) async fn explained(
    gathered: &mut Gathered,
    standing: &PolicySet,
    snapshot: &Snapshot,
    started: &Started,
    identity: &Identity,
) -> anyhow::Result<ExplainedObject> {
    let rendered = rendered(gathered, snapshot, started, identity, None).await?;
    let RenderedObject { object, kind, without, entry, .. } = rendered;
    let gone = without.iter().map(|Without { revision, how, .. }| {
        format!("PolicyRevision {revision} serves, but does not answer for this object: {how}")
    });
    let because = gone.chain(because(standing, snapshot, &kind, &object));
    let because: Vec<String> = because.chain(amendments(&entry)).chain(failure(&entry)).collect();
    Ok(ExplainedObject::new(object, entry, because))
}

/// Returns one sentence for each policy and each settings package that determines the answer.
fn because(standing: &PolicySet, snapshot: &Snapshot, kind: &Kind, object: &Value) -> Vec<String> {
    let mut told = Vec::new();
    let revisions: Vec<&str> = kind.revisions().map(|revision| &**revision).collect();
    let shipped = || standing.shipped.iter().chain(&standing.before);
    let answering = || shipped().filter(|shipped| revisions.contains(&&*shipped.revision));
    for policy in kind.policies() {
        let id = policy.id();
        let from = answering().find(|shipped| shipped.policy.as_ref().is_some_and(|policy| policy.id() == id));
        told.push(match from {
            Some(shipped) => format!("policy {id}: {}", shipped.told()),
            None => format!("policy {id}: the operator has this policy at its start, and no package replaces it"),
        });
    }
    told.extend(
        answering().filter(|shipped| shipped.policy.is_none()).map(|shipped| format!("settings: {}", shipped.told())),
    );
    if let Some(pin) = object["metadata"]["annotations"][PIN].as_str() {
        told.push(format!("the object names {pin} in its annotation {PIN}"));
    }
    if let Some(choice) = named_in_vain(snapshot, object) {
        let choice: Vec<String> = choice.iter().map(ToString::to_string).collect();
        told.push(format!(
            "this namespace has no policy of that name, so the operator leaves the children unchanged; without the \
             annotation, the policies above would answer: name one of {}, or remove the annotation",
            choice.join(", ")
        ));
    }
    told
}

/// Returns the children that each overlay changed or added, one sentence for each overlay.
fn amendments(entry: &Entry) -> impl Iterator<Item = String> {
    entry.rendered.amended().map(|(overlay, children)| {
        let children: Vec<String> = children.iter().map(|child| format!("{} {}", child.kind, child.name)).collect();
        format!("overlay {overlay} changes {}", children.join(", "))
    })
}

/// If the answer for the object is a failure of a policy, returns the failure. Otherwise returns `None`.
fn failure(entry: &Entry) -> Option<String> {
    match &entry.rendered.verdict {
        Verdict::Failed(failure) => Some(format!("the policy fails on this object: {failure}")),
        Verdict::Planned(_) | Verdict::Refused(_) => None,
    }
}

impl Shipped {
    fn told(&self) -> String {
        let (namespace, name) = &self.source;
        let namespaces = &self.file.scope.namespaces;
        let place =
            if namespaces.is_empty() { "everywhere".to_owned() } else { format!("in {}", namespaces.join(", ")) };
        format!("PolicyRevision {}, from ConfigMap {namespace}/{name}, applies {place}", self.revision)
    }
}

/// Formats a need for people.
pub(super) fn shown(target: &Target) -> String {
    match target {
        Target::Named(reference) => reference.to_string(),
        Target::Labelled(Selector { of, namespace, labels }) => {
            let labels: Vec<String> = labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
            format!("{} in {} with {}", of.kind, namespace.as_deref().unwrap_or("the cluster"), labels.join(", "))
        }
    }
}

/// All facts about one object that the command prints.
pub(super) struct ExplainedObject {
    pub(super) object: Value,
    pub(super) entry: Arc<Entry>,
    pub(super) because: Vec<String>,
    masks: Masks,
}

impl ExplainedObject {
    /// Explains the result of a pass. Masks secret values in the sentences of the parameter `because`.
    pub(super) fn new(object: Value, entry: Arc<Entry>, because: impl IntoIterator<Item = String>) -> Self {
        let masks = Masks::of_pass(&entry.rendered);
        let because = because.into_iter().map(|line| masks.text(&line)).collect();
        Self { object, entry, because, masks }
    }

    /// Returns the conditions of the object. Masks secret values that a message quotes.
    pub(super) fn conditions(&self) -> Vec<Value> {
        conditions(&self.object).map(|condition| self.masks.value(condition)).collect()
    }

    /// Formats a need for people.
    pub(super) fn need(&self, need: &Need) -> String {
        self.masks.text(&shown(&need.target))
    }

    pub(super) fn needs(&self) -> Vec<(&Need, &'static str)> {
        let rendered = &self.entry.rendered;
        let own = |need: &Need| need.id.strip_prefix(&rendered.policy.name)?.strip_prefix('/').map(str::to_owned);
        let found = |need: &Need| {
            let id = own(need)?;
            rendered.subject().found.iter().find(|found| found.id == id)
        };
        let word = |found: Option<&Found>| match found.map(|found| &found.answer) {
            Some(Answer::Objects(objects)) if objects.is_empty() => "not there",
            Some(Answer::Objects(_)) => "found",
            Some(Answer::Secret(facts)) if facts.present => "found",
            Some(Answer::Secret(_)) => "not there",
            Some(Answer::Unserved) => "its type is not served",
            Some(Answer::Forbidden(_)) => "not read",
            None => "needed by an overlay",
        };
        rendered.needs.iter().map(|need| (need, word(found(need)))).collect()
    }

    /// Returns the settings that do not come from the schema's defaults: policy, path, value and settings layer.
    pub(super) fn settings(&self) -> Vec<[String; 4]> {
        let rendered = &self.entry.rendered;
        let given = |(path, source): (&Path, &Source)| {
            (source.origin != Origin::SchemaDefault).then(|| (path.clone(), source.to_string()))
        };
        let of = |(policy, settings): (&PolicyId, &Arc<Effective>)| {
            settings
                .sources()
                .filter_map(given)
                .map(|(path, source)| {
                    let names = path.names().iter();
                    let secrecy = names.fold(Secrecy::Open, |secrecy, name| secrecy.below(name, false));
                    let value = path.find_in(settings.tree()).map(|value| self.masks.below(value, secrecy));
                    let shown = match value {
                        Some(Value::String(text)) if text == MASK => text,
                        other => other.map(|value| value.to_string()).unwrap_or_default(),
                    };
                    [policy.name.clone(), self.masks.text(&path.to_string()), shown, source]
                })
                .collect::<Vec<_>>()
        };
        // List the policy before its overlays, because the list of settings has the same order.
        let policies = std::iter::once(&rendered.policy).chain(&rendered.overlays);
        policies.zip(&rendered.settings).flat_map(of).collect()
    }

    pub(super) fn text(&self) -> String {
        let cell = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut text = format!("{}\n", self.entry.rendered.object.reference());
        for line in &self.because {
            text += &format!("  {line}\n");
        }
        let mut states = Table::new(&["CONDITION", "STATUS", "REASON", "MESSAGE"]);
        for condition in self.conditions() {
            states.row(["type", "status", "reason", "message"].map(|field| cell(&condition[field])));
        }
        let mut inputs = Table::new(&["INPUT", "", "FIELDS"]);
        for (need, word) in self.needs() {
            let fields = if need.fields.is_empty() { "all".to_owned() } else { need.fields.join(", ") };
            inputs.row([self.need(need), word.to_owned(), fields]);
        }
        let mut settings = Table::new(&["POLICY", "SETTING", "VALUE", "FROM"]);
        for setting in self.settings() {
            settings.row(setting);
        }
        let mut env = Table::new(&["CONTAINER", "VARIABLE", "VALUE", "FROM"]);
        for variable in variables(&self.entry) {
            env.row(variable);
        }
        for table in [states, inputs, settings, env, origins::table(&self.entry)] {
            if !table.is_empty() {
                text += &format!("\n{table}");
            }
        }
        text
    }

    pub(super) fn document(&self) -> Value {
        let rendered = &self.entry.rendered;
        let input = |(need, word): &(&Need, &str)| {
            self.masks.value(&json!({"target": need.target, "found": word, "fields": need.fields}))
        };
        let needs: Vec<Value> = self.needs().iter().map(input).collect();
        let settings: Vec<Value> = self
            .settings()
            .into_iter()
            .map(|[policy, path, value, from]| json!({"policy": policy, "path": path, "value": value, "from": from}))
            .collect();
        let env: Vec<Value> = variables(&self.entry)
            .into_iter()
            .map(|[container, name, value, from]| json!({"container": container, "name": name, "value": value, "from": from}))
            .collect();
        let amended: Vec<Value> =
            rendered.amended().map(|(overlay, children)| json!({"overlay": overlay, "children": children})).collect();
        json!({
            "object": rendered.object.reference(), "policy": rendered.policy, "overlays": rendered.overlays,
            "amended": amended, "because": self.because, "fuel": rendered.fuel, "inputs": needs, "settings": settings,
            "env": env, "origins": self.masks.value(&json!(rendered.explained())), "conditions": self.conditions(),
        })
    }
}
