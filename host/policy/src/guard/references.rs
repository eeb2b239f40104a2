//! Secrets and PersistentVolumeClaims that pods use: the user named them, the settings do, they are granted by name,
//! or the same plan brings them.

use std::{collections::BTreeSet, fmt};

use serde_json::Value;

use super::{Rule, breaches::Breaches, plan::Rules, privilege::Seen};
use crate::{contract::ResourceType, pods};

/// What is referred to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Secret,
    Claim,
}

impl Kind {
    /// Whether a field of this name can hold such a reference.
    fn is_plausible(self, field: &str) -> bool {
        let field = field.to_ascii_lowercase();
        match self {
            Self::Secret => field.contains("secret"),
            Self::Claim => field.contains("claim") || field.contains("pvc"),
        }
    }

    fn grant(self) -> &'static str {
        match self {
            Self::Secret => "secrets",
            Self::Claim => "persistentVolumeClaims",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Secret => "Secret",
            Self::Claim => "PersistentVolumeClaim",
        })
    }
}

pub(super) fn check<'a>(plan: &[Seen<'a>], rules: &Rules<'a>, breaches: &mut Breaches) {
    let mut used = Vec::new();
    for Seen { path, specs, .. } in plan {
        for (at, spec) in specs {
            of_pod(spec, &mut |kind, field, name| used.push((path, at, field, kind, name)));
        }
    }
    if used.is_empty() {
        return;
    }
    let mut allowed = BTreeSet::new();
    for text in [&rules.object["spec"], rules.annotated, rules.settings] {
        names(text, &mut allowed);
    }
    for Seen { manifest, .. } in plan {
        let of = ResourceType::of_object(manifest);
        let claim = of.group().is_empty() && of.kind == "PersistentVolumeClaim";
        if let (true, Some(name)) = (claim || of.is_secret(), manifest["metadata"]["name"].as_str()) {
            allowed.insert((if claim { Kind::Claim } else { Kind::Secret }, name));
        }
    }
    let granted = |kind, name: &str| {
        let mut grants = std::iter::once(rules.grants).chain(rules.overlay_grants.iter().copied());
        grants.any(|grants| match kind {
            Kind::Secret => grants.secrets.contains(name),
            Kind::Claim => grants.persistent_volume_claims.contains(name),
        })
    };
    for (path, at, field, kind, name) in used {
        if !allowed.contains(&(kind, name)) && !granted(kind, name) {
            let message = format_args!(
                "uses {kind} {name}, which is neither named in the object's own spec nor in the settings: grant it in \
                 grants.{}",
                kind.grant()
            );
            breaches.add(Rule::NamedReferences, format_args!("{path} {at}.{field}"), message);
        }
        if breaches.is_full() {
            return;
        }
    }
}

/// Everything that a pod refers to, with the field that does.
fn of_pod<'a>(spec: &'a Value, found: &mut impl FnMut(Kind, &'static str, &'a str)) {
    let mut note = |kind, field, name: &'a Value| {
        if let Some(name) = name.as_str().filter(|name| !name.is_empty()) {
            found(kind, field, name);
        }
    };
    for secret in list(&spec["imagePullSecrets"]) {
        note(Kind::Secret, "imagePullSecrets", &secret["name"]);
    }
    for volume in list(&spec["volumes"]) {
        note(Kind::Secret, "volumes", &volume["secret"]["secretName"]);
        note(Kind::Claim, "volumes", &volume["persistentVolumeClaim"]["claimName"]);
        for source in list(&volume["projected"]["sources"]) {
            note(Kind::Secret, "volumes", &source["secret"]["name"]);
        }
    }
    for (_, container) in pods::containers(spec) {
        for source in list(&container["envFrom"]) {
            note(Kind::Secret, "envFrom", &source["secretRef"]["name"]);
        }
        for variable in list(&container["env"]) {
            note(Kind::Secret, "env", &variable["valueFrom"]["secretKeyRef"]["name"]);
        }
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Every name that stands where a reference can stand: in a field whose name says so, as a text, as the name within,
/// or in a list of these.
fn names<'a>(value: &'a Value, allowed: &mut BTreeSet<(Kind, &'a str)>) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                for kind in [Kind::Secret, Kind::Claim].into_iter().filter(|kind| kind.is_plausible(field)) {
                    let items = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
                    let named = items.iter().filter_map(|item| item.as_str().or_else(|| item["name"].as_str()));
                    allowed.extend(named.map(|name| (kind, name)));
                }
                names(value, allowed);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| names(item, allowed)),
        _ => {}
    }
}
