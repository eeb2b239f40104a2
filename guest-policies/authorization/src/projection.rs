//! An AuthorizationPolicy: its fields, its needs and its ConfigMap.

use alloc::borrow::ToOwned;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::{string::String, vec::Vec};
use kaos_crds::API_VERSION;
use kaos_crds::access::{
    AccessGrantSpec, AuthorizationPolicySpec, DataSource, GrantedKind, MAX_NAMESPACES, PROJECTION_NAME, ResourceRef,
};
use kaos_policy_sdk::names::{dns1123_label, is_dns1123_subdomain};
use kaos_policy_sdk::need::{NeedExt as _, labelled_in, named, optional, reference, resource_type};
use kaos_policy_sdk::plan::{self, Child};
use kaos_policy_sdk::types::{EnvVar, Need, Plan, Refusal, Subject};
use kaos_policy_sdk::{Lookup, Object, SubjectExt, Violations, json, refusal};
use serde_json::{Map, Value, json};

use crate::document::{self, Namespace};
use crate::grant;
use crate::ids::GRANT;
use crate::settings::Settings;

/// The rules of the decision point, in Rego.
pub const RULES: &str = include_str!("policy.rego");

/// The kind of the projection, the only child.
pub(crate) const CHILD: &str = "ConfigMap";
/// The id of the need for the existing ConfigMap.
const CONFIG: &str = "config";
/// The key with the rules.
const REGO: &str = "policy.rego";
/// The key with the data.
const DATA: &str = "data.json";
/// The maximum number of needs in a pass. Each namespace causes two needs, and a further need for each kind that the
/// namespace's AccessGrants select by labels. The host accepts 256 needs in all rounds together.
const NEEDS: usize = 250;
/// The maximum size of the rules and the data together, in bytes. A ConfigMap has at most 1 MiB, including its
/// metadata.
const BYTES: usize = 1_000_000;

/// The ConfigMap that an AuthorizationPolicy becomes.
pub(crate) struct Projection {
    /// The AccessGrants in the data, as `namespace/name`, each with its generation.
    pub(crate) grants: BTreeMap<String, i64>,
    /// The name of the ConfigMap.
    pub(crate) config_map: String,
    /// The content of the ConfigMap.
    data: Map<String, Value>,
}

/// Decodes and checks the spec.
fn spec(object: &Object) -> Result<AuthorizationPolicySpec, Refusal> {
    let spec: AuthorizationPolicySpec = object.get("spec")?;
    let mut wrong = Violations::new();
    if object.name() != PROJECTION_NAME {
        let why = format!("must be {PROJECTION_NAME}: AccessGrants look at no other AuthorizationPolicy");
        wrong.add("metadata.name", why);
    }
    wrong.require(!spec.namespaces.is_empty(), "spec.namespaces", "name at least one namespace");
    if spec.namespaces.len() > MAX_NAMESPACES {
        wrong.add(
            "spec.namespaces",
            format!("has {count} namespaces, but the limit is {MAX_NAMESPACES}", count = spec.namespaces.len()),
        );
    }
    let mut seen = BTreeSet::new();
    for (at, namespace) in spec.namespaces.iter().enumerate() {
        let path = format!("spec.namespaces[{at}]");
        wrong.require(dns1123_label(namespace).is_none(), &path, "is not a valid name of a namespace");
        wrong.require(seen.insert(namespace), &path, "is in the list twice");
    }
    wrong.require(is_dns1123_subdomain(&spec.config_map), "spec.configMap", "is not a valid name of a ConfigMap");
    wrong.into_result()?;
    Ok(spec)
}

/// Returns the id of the need for all objects of a kind in a namespace.
fn id(kind: &str, namespace: &str) -> String {
    format!("{kind}/{namespace}")
}

/// Returns the need for all objects of a kind in a namespace. The need lists only the fields that become data, so a
/// change of a status begins no pass.
fn all(kind: &str, namespace: &str) -> Need {
    let fields: &[&str] = match kind {
        "Agent" => &[
            "metadata.labels",
            "spec.agentNetwork.access",
            "spec.config.autonomous.goal",
            "spec.mcpServers",
            "spec.modelAPI",
        ],
        GRANT => &["metadata.generation", "spec"],
        _ => &["metadata.labels"],
    };
    labelled_in(namespace, id(kind, namespace), resource_type(API_VERSION, kind), &[]).fields(fields.iter().copied())
}

/// Returns the kinds of resources that AccessGrants select by labels.
fn selected<'a>(grants: impl Iterator<Item = &'a AccessGrantSpec>) -> BTreeSet<GrantedKind> {
    let by_label = |resource: &&ResourceRef| resource.name().is_none() && resource.selector.is_some();
    grants.flat_map(|grant| &grant.resources).filter(by_label).map(|resource| resource.kind).collect()
}

/// Returns the needs: the Agents and AccessGrants of each namespace, and all objects of the kinds that an AccessGrant
/// selects by labels.
pub(crate) fn needs(subject: &Subject) -> Vec<Need> {
    let Ok(spec) = spec(&subject.object()) else { return Vec::new() };
    let mut needs = Vec::new();
    if spec.data_source == DataSource::Manual || spec.rego_override {
        needs.push(optional(named(CONFIG, reference("v1", CHILD, &spec.config_map))));
    }
    if spec.data_source == DataSource::Manual {
        return needs;
    }
    for namespace in &spec.namespaces {
        needs.push(all("Agent", namespace));
        needs.push(all(GRANT, namespace));
    }
    let selected = selected_needs(subject, &spec);
    // If the object has too many needs, `Projection::read` refuses the object.
    if needs.len() + selected.len() <= NEEDS {
        needs.extend(selected);
    }
    needs
}

/// Returns the needs for the resources that AccessGrants select by labels. Leaves out Agents, because `needs` names all
/// Agents anyway.
fn selected_needs(subject: &Subject, spec: &AuthorizationPolicySpec) -> Vec<Need> {
    let mut needs = Vec::new();
    for namespace in &spec.namespaces {
        if let Lookup::There(found) = subject.list(&id(GRANT, namespace)) {
            let grants: Vec<AccessGrantSpec> = found.iter().filter_map(|object| grant::spec(object).ok()).collect();
            let kinds = selected(grants.iter()).into_iter().filter(|kind| *kind != GrantedKind::Agent);
            needs.extend(kinds.map(|kind| all(kind.as_str(), namespace)));
        }
    }
    needs
}

/// Refuses the object if it has more needs than a pass allows.
fn check_needs(subject: &Subject, spec: &AuthorizationPolicySpec) -> Result<(), Refusal> {
    let (most, kinds) = (NEEDS - 2 * spec.namespaces.len(), selected_needs(subject, spec).len());
    if kinds <= most {
        return Ok(());
    }
    Err(refusal::unsupported(format!(
        "the AccessGrants select by label in {kinds} pairs of kind and namespace, more than the limit of {most} (for \
         {} namespaces): list fewer namespaces in the AuthorizationPolicy, or select resources by name in the \
         AccessGrants",
        spec.namespaces.len()
    )))
}

/// Returns all objects of a kind in a namespace. If the policy cannot read these objects, returns a refusal that waits.
/// With incomplete data, the decision point could deny a request that an AccessGrant allows, or allow a request that no
/// AccessGrant allows any more.
fn list(subject: &Subject, kind: &str, namespace: &str) -> Result<Vec<Object>, Refusal> {
    let mut on = reference(API_VERSION, kind, "*");
    on.namespace = Some(namespace.to_owned());
    subject.list(&id(kind, namespace)).or_wait(on)
}

fn namespace<'a>(subject: &Subject, name: &'a str) -> Result<Namespace<'a>, Refusal> {
    let agents = list(subject, "Agent", name)?;
    let grants: Vec<(Object, AccessGrantSpec)> = list(subject, GRANT, name)?
        .into_iter()
        .filter_map(|object| {
            let spec = grant::spec(&object).ok()?;
            Some((object, spec))
        })
        .collect();
    let mut selectable = BTreeMap::new();
    for kind in selected(grants.iter().map(|(_, spec)| spec)) {
        let objects = if kind == GrantedKind::Agent { agents.clone() } else { list(subject, kind.as_str(), name)? };
        selectable.insert(kind, objects);
    }
    Ok(Namespace { name, agents, grants, selectable })
}

impl Projection {
    /// Builds the rules and data from the objects of all namespaces that the AuthorizationPolicy lists.
    pub(crate) fn of(subject: &Subject) -> Result<&Self, Refusal> {
        subject.once(Self::read)
    }

    fn read(subject: &Subject) -> Result<Self, Refusal> {
        let spec = spec(&subject.object())?;
        let settings: Settings = subject.settings()?;
        let live = subject.one(CONFIG).there();
        let own = |key: &str| live.as_ref().and_then(|live| live.str_at(&["data", key])).map(ToOwned::to_owned);
        let mut grants = BTreeMap::new();
        let document = if spec.data_source == DataSource::Manual {
            own(DATA)
        } else {
            check_needs(subject, &spec)?;
            let mut namespaces = Vec::new();
            for name in &spec.namespaces {
                namespaces.push(namespace(subject, name)?);
            }
            for Namespace { name, grants: found, .. } in &namespaces {
                grants.extend(found.iter().map(|(it, _)| (format!("{name}/{}", it.name()), it.generation())));
            }
            let document = document::of(&namespaces, &settings.agents, &settings.users);
            Some(json::text(&document.map_err(|(path, why)| refusal::invalid(path, why))?))
        };
        let rules = if spec.rego_override { own(REGO) } else { Some(RULES.to_owned()) };
        let texts =
            [(DATA, document), (REGO, rules)].into_iter().filter_map(|(key, text)| Some((key.to_owned(), text?)));
        let texts: BTreeMap<String, String> = texts.collect();
        let bytes: usize = texts.values().map(String::len).sum();
        if bytes > BYTES {
            let message =
                format!("the rules and the data have {bytes} bytes, but the limit is {BYTES}: list fewer namespaces");
            return Err(refusal::unsupported(message));
        }
        let data = texts.into_iter().map(|(key, text)| (key, text.into())).collect();
        Ok(Self { grants, config_map: spec.config_map, data })
    }
}

/// Returns the plan, with the ConfigMap as its only child.
pub(crate) fn translate(subject: &Subject, env: Vec<EnvVar>) -> Result<Plan, Refusal> {
    let projection = Projection::of(subject)?;
    let config = json!({
        "apiVersion": "v1",
        "kind": CHILD,
        "metadata": {
            "name": projection.config_map,
            "namespace": subject.object().namespace(),
            "labels": {"app.kubernetes.io/component": "kaos-operator-authz"},
        },
        "data": projection.data,
    });
    Ok(plan::of(&[Child::new(config).origin("metadata.name", "spec.configMap")], env))
}
