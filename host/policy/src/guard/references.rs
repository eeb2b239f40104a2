//! Checks the Secrets and PersistentVolumeClaims that pods use. A reference is valid if the plan itself contains the
//! referenced object. Otherwise, the name must come from the user's spec or from the settings, or a grant must list it.
//!
//! For the data source of a PersistentVolumeClaim, it is not enough that the plan contains the referenced object.
//! Kubernetes copies the data at once, and another user's object may already have the planned name. So the name must
//! come from the spec or from the settings, or a grant must list it.

use std::{collections::BTreeSet, fmt};

use serde_json::Value;

use super::{GuardedManifest, Rule, breaches::Breaches, filled, reason, rules::Rules};
use crate::{
    contract::ResourceType,
    cut::{VALUE, cut},
    json::list,
    manifest::Grants,
    origins::{Author, OriginPlace, PathStep, steps},
    pods,
    settings::Origin,
};

/// The kind of a referenced object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Secret,
    Claim,
    /// A data source other than a PersistentVolumeClaim: a snapshot, or another type from which an add-on can copy
    /// data.
    Source,
}

impl Kind {
    /// Returns whether a field with the name `field` can contain a reference to an object of this kind. So a policy
    /// cannot declare another text of the object as the origin of a Secret's name.
    fn is_plausible(self, field: &str) -> bool {
        let field = field.to_ascii_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| field.contains(word));
        match self {
            Self::Secret => has(&["secret"]),
            Self::Claim => has(&["claim", "pvc", "datasource"]),
            Self::Source => has(&["snapshot", "datasource"]),
        }
    }

    /// Describes the condition of [`Self::is_plausible`] in words.
    fn rule(self) -> &'static str {
        match self {
            Self::Secret => {
                "the last name of the path, before `.name`, must contain `secret`, as in \
                 spec.passwordFrom.secretKeyRef.name"
            }
            Self::Claim => {
                "the last name of the path, before `.name`, must contain `claim`, `pvc` or `dataSource`, as in \
                 spec.storage.claimName"
            }
            Self::Source => {
                "the last name of the path, before `.name`, must contain `snapshot` or `dataSource`, as in \
                 spec.storage.dataSource.name"
            }
        }
    }

    fn grant(self) -> &'static str {
        match self {
            Self::Secret => "secrets",
            Self::Claim | Self::Source => "persistentVolumeClaims",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Secret => "Secret",
            Self::Claim => "PersistentVolumeClaim",
            Self::Source => "data source",
        })
    }
}

/// A reference to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Named<'a> {
    kind: Kind,
    /// The namespace of the referenced object. `None` if the policy's object is in the same namespace.
    elsewhere: Option<&'a str>,
    name: &'a str,
}

/// A reference, and the path of the field in the manifest that contains the reference.
struct Used<'a, 'b> {
    /// The path of the spec that contains the field; `None` if the field is at the top of the manifest.
    at: Option<&'b String>,
    field: FieldPath,
    named: Named<'a>,
    /// Whether the reference names the data source of a PersistentVolumeClaim.
    is_source: bool,
    /// The name of the container and the name of the variable that contain the reference.
    within: Within<'a>,
}

/// The name of the container and the name of the variable that contain a reference. `None` if no container or no
/// variable contains the reference.
type Within<'a> = (Option<&'a str>, Option<&'a str>);

/// The path of a field: up to two list items, and the names after the last item.
#[derive(Debug, Clone, Copy)]
struct FieldPath([Option<(&'static str, usize)>; 2], &'static str);

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (list, index) in self.0.iter().flatten() {
            write!(f, "{list}[{index}].")?;
        }
        f.write_str(self.1)
    }
}

pub(super) fn check(plan: &[GuardedManifest<'_, '_>], rules: &Rules<'_>, breaches: &mut Breaches) {
    let own = rules.owner.namespace.as_str();
    let claims: Vec<_> =
        plan.iter().map(|GuardedManifest { manifest, specs, .. }| filled::claims(manifest, specs)).collect();
    let mut used: Vec<(&GuardedManifest<'_, '_>, Used<'_, '_>)> = Vec::new();
    for (stage, claims) in plan.iter().zip(&claims) {
        let uses = of_manifest(stage.manifest, &stage.specs, claims, own);
        let Some((kept, specs)) = &stage.kept else {
            used.extend(uses.into_iter().map(|used| (stage, used)));
            continue;
        };
        let claims = filled::claims(kept, specs);
        let before: BTreeSet<_> = of_manifest(kept, specs, &claims, own).iter().map(Used::key).collect();
        used.extend(uses.into_iter().filter(|used| !before.contains(&used.key())).map(|used| (stage, used)));
    }
    if used.is_empty() {
        return;
    }
    let mut brought = BTreeSet::new();
    for GuardedManifest { manifest, .. } in plan {
        let of = ResourceType::of_object(manifest);
        let claim = of.group().is_empty() && of.kind == "PersistentVolumeClaim";
        if let (true, Some(name)) = (claim || of.is_secret(), manifest["metadata"]["name"].as_str()) {
            let kind = if claim { Kind::Claim } else { Kind::Secret };
            brought.insert(Named { kind, elsewhere: None, name });
        }
    }
    let granted = |Named { kind, elsewhere, name }: Named<'_>, grants: &Grants| {
        elsewhere.is_none()
            && match kind {
                Kind::Secret => grants.secrets.contains(name),
                Kind::Claim | Kind::Source => grants.persistent_volume_claims.contains(name),
            }
    };
    // Returns the overlay that set the variable with the reference, and the overlay's grants. Returns `None` if no
    // overlay set the variable: the layer that returned the plan is then the author of the reference.
    let author = |within: Within<'_>| {
        let (mapped, container, name) = (rules.mapped?, within.0?, within.1?);
        mapped.overlay_of(container, name)
    };
    for (stage, used) in used {
        let (layer, grants) = author(used.within).unwrap_or((0, rules.grants));
        let Named { kind, elsewhere, name } = used.named;
        if (!used.is_source && brought.contains(&used.named)) || granted(used.named, grants) {
            continue;
        }
        let Err(reason) = used.is_the_authors(stage) else { continue };
        let path = format_args!("{} {}", stage.path, used.path());
        let name = cut(name, VALUE);
        match elsewhere {
            None => {
                let message = format_args!(
                    "uses {kind} {name}, but neither the object's own spec nor the settings name it: {reason}, or add \
                     the name to grants.{}",
                    kind.grant()
                );
                breaches.add_of(layer, Rule::NamedReferences, path, message);
            }
            Some(namespace) => {
                let namespace = cut(namespace, VALUE);
                let message = format_args!(
                    "uses {kind} {name} of namespace {namespace}, but neither the object's own spec nor the settings \
                     name it, and no grant can allow another namespace: {reason}"
                );
                breaches.add_of(layer, Rule::NamedReferences, path, message);
            }
        }
        if breaches.is_full() {
            return;
        }
    }
}

impl<'a> Used<'a, '_> {
    /// Returns the reference, and its container and variable. Leaves out the path, because an overlay can change
    /// indices.
    fn key(&self) -> (Named<'a>, bool, Within<'a>) {
        (self.named, self.is_source, self.within)
    }

    /// Returns the path of the field in the manifest.
    fn path(&self) -> String {
        let (at, dot) = self.at.map_or(("", ""), |at| (at.as_str(), "."));
        format!("{at}{dot}{}", self.field)
    }

    /// Accepts a name if the user or the operator's owner wrote it into a field for such names. Otherwise, returns the
    /// reason as an error.
    fn is_the_authors(&self, stage: &GuardedManifest<'_, '_>) -> Result<(), String> {
        let Named { kind, elsewhere, name } = self.named;
        let name = Value::from(name);
        let mut path = steps(&self.path()).unwrap_or_default();
        if self.is_source {
            path.push(PathStep::Name("name".to_owned()));
        }
        let places = stage.origins.places(stage.index, stage.manifest, &path);
        let is_its = |place: &OriginPlace<'_>| {
            let mut names = place.path.iter().rev().filter_map(PathStep::name);
            let named = names.next().filter(|last| *last != "name").or_else(|| names.next());
            named.is_some_and(|field| kind.is_plausible(field))
                && elsewhere.is_none_or(|namespace| place.above["namespace"] == namespace)
        };
        if places.iter().any(|place| *place.value == name && is_its(place) && is_trusted(place)) {
            return Ok(());
        }
        Err(reason::of(stage, &path, &places, &name, is_its, kind.rule()))
    }
}

/// Returns whether a user or the operator's owner wrote the value in the place that an origin names.
fn is_trusted(place: &OriginPlace<'_>) -> bool {
    match place.author {
        Author::Object => place.is_of_the_spec(),
        Author::Setting(_, source) => {
            source.origin == Origin::Annotation || (source.origin.is_of_operator() && !place.is_below)
        }
        Author::Found(_) => false,
    }
}

/// Returns every reference in a manifest. `specs` are its pod specs, and `claims` its PersistentVolumeClaims.
fn of_manifest<'a, 'b>(
    manifest: &'a Value,
    specs: &'b [(String, &'a Value)],
    claims: &'b [(String, &'a Value)],
    own: &str,
) -> Vec<Used<'a, 'b>> {
    let mut used = Vec::new();
    for (at, spec) in specs {
        of_pod(spec, &mut |kind, field, name, within| {
            let named = Named { kind, elsewhere: None, name };
            used.push(Used { at: Some(at), field, named, is_source: false, within });
        });
    }
    of_account(manifest, &mut |field, name| {
        let named = Named { kind: Kind::Secret, elsewhere: None, name };
        used.push(Used { at: None, field, named, is_source: false, within: (None, None) });
    });
    for (at, spec) in claims {
        for field in filled::SOURCES {
            let named = of_source(&spec[field], own);
            let field = FieldPath([None; 2], field);
            let of_field = |named| Used { at: Some(at), field, named, is_source: true, within: (None, None) };
            used.extend(named.map(of_field));
        }
    }
    used
}

/// Returns the reference in a data source of a PersistentVolumeClaim.
fn of_source<'a>(source: &'a Value, own: &str) -> Option<Named<'a>> {
    let name = source["name"].as_str().filter(|name| !name.is_empty())?;
    let kind = if filled::is_claim(source) { Kind::Claim } else { Kind::Source };
    Some(Named { kind, elsewhere: elsewhere(source, own), name })
}

/// Returns the namespace of a reference, or `None` if the reference names no namespace or the object's own namespace.
fn elsewhere<'a>(reference: &'a Value, own: &str) -> Option<&'a str> {
    reference["namespace"].as_str().filter(|namespace| !namespace.is_empty() && *namespace != own)
}

/// Finds the Secrets of a ServiceAccount. Every pod of the ServiceAccount gets these Secrets, although no pod spec
/// names them.
fn of_account<'a>(manifest: &'a Value, found: &mut impl FnMut(FieldPath, &'a str)) {
    if manifest["apiVersion"] != "v1" || manifest["kind"] != "ServiceAccount" {
        return;
    }
    for field in ["imagePullSecrets", "secrets"] {
        for (i, secret) in list(&manifest[field]).enumerate() {
            if let Some(name) = secret["name"].as_str().filter(|name| !name.is_empty()) {
                found(FieldPath([Some((field, i)), None], "name"), name);
            }
        }
    }
}

/// Calls `found` for every Secret and PersistentVolumeClaim to which a pod refers. The arguments are the kind, the
/// field with the reference, the name, and the container and variable with the reference.
fn of_pod<'a>(spec: &'a Value, found: &mut impl FnMut(Kind, FieldPath, &'a str, Within<'a>)) {
    let mut note_in = |names, kind, within, item, field, name: &'a Value| {
        if let Some(name) = name.as_str().filter(|name| !name.is_empty()) {
            found(kind, FieldPath([within, Some(item)], field), name, names);
        }
    };
    let mut note = |kind, within, item, field, name| note_in((None, None), kind, within, item, field, name);
    for (i, secret) in list(&spec["imagePullSecrets"]).enumerate() {
        note(Kind::Secret, None, ("imagePullSecrets", i), "name", &secret["name"]);
    }
    for (i, volume) in list(&spec["volumes"]).enumerate() {
        let item = ("volumes", i);
        note(Kind::Secret, None, item, "secret.secretName", &volume["secret"]["secretName"]);
        let claim = &volume["persistentVolumeClaim"]["claimName"];
        note(Kind::Claim, None, item, "persistentVolumeClaim.claimName", claim);
        for (j, source) in list(&volume["projected"]["sources"]).enumerate() {
            note(Kind::Secret, Some(item), ("projected.sources", j), "secret.name", &source["secret"]["name"]);
        }
    }
    for containers in pods::CONTAINERS {
        for (i, container) in list(&spec[containers]).enumerate() {
            let (within, container_name) = (Some((containers, i)), container["name"].as_str());
            for (j, source) in list(&container["envFrom"]).enumerate() {
                let name = &source["secretRef"]["name"];
                note_in((container_name, None), Kind::Secret, within, ("envFrom", j), "secretRef.name", name);
            }
            for (j, variable) in list(&container["env"]).enumerate() {
                let name = &variable["valueFrom"]["secretKeyRef"]["name"];
                let names = (container_name, variable["name"].as_str());
                note_in(names, Kind::Secret, within, ("env", j), "valueFrom.secretKeyRef.name", name);
            }
        }
    }
}
