//! What a policy may say of itself.

mod power;

use std::collections::BTreeSet;

use crate::{
    code::World,
    contract::{Claim, Descriptor, ResourceType, Sample},
    cut::{VALUE, cut},
    json,
    manifest::PolicyFile,
    settings::{Schema, SchemaError},
};

pub use power::{is_built_in, is_cluster_power};

/// Claims of one policy.
const CLAIMS: usize = 32;
/// Types in one list of a claim, and samples.
const LISTED: usize = 64;
/// Bytes of a version, which stands in the status of every object.
const VERSION: usize = 128;

/// Why a description cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DescribeError {
    /// The name is not one.
    #[error("`{0}` is not a policy name: use at most 40 lower-case letters, digits and hyphens, a letter first")]
    Name(String),
    /// The version is not one.
    #[error("`{version}` is not a semantic version: {reason}")]
    Version {
        /// What was given.
        version: String,
        /// Why it is none.
        reason: String,
    },
    /// The file beside it speaks of another policy.
    #[error(
        "policy.yaml says {field} {wanted}, and the component {found}: leave {field} out, which the component says"
    )]
    Mismatch {
        /// `name` or `version`.
        field: &'static str,
        /// In the file.
        wanted: String,
        /// In the component.
        found: String,
    },
    /// It answers for nothing.
    #[error("it claims no kind: a policy must claim at least one")]
    NoClaims,
    /// Nobody could tell which claim holds.
    #[error("it claims {0} twice: one kind has one claim")]
    ClaimedTwice(ResourceType),
    /// A list is longer than it may be.
    #[error("{what} has {count} entries: at most {limit}")]
    TooMany {
        /// Which list.
        what: String,
        /// Its length.
        count: usize,
        /// What it may be.
        limit: usize,
    },
    /// A type is not one.
    #[error("{path} `{of}` is not a type: {reason}")]
    NotAType {
        /// Which list of which claim.
        path: String,
        /// What was given.
        of: ResourceType,
        /// Why it is none.
        reason: &'static str,
    },
    /// A kind that is served is written in other capitals: no object is of that, and people who write kinds in small letters
    /// could mean either.
    #[error("{path} names {of}, but the kind that is served is {served}: write it so")]
    OtherCapitals {
        /// Which list of which claim.
        path: String,
        /// What was given.
        of: ResourceType,
        /// The kind as it is served.
        served: String,
    },
    /// It would hold power over the cluster.
    #[error("{path} names {of}, which is cluster-scoped, grants rights or redirects traffic: no policy may have it")]
    ClusterPower {
        /// Which claim.
        path: String,
        /// The type.
        of: ResourceType,
    },
    /// It would be handed objects that are not made for policies, Secrets among them.
    #[error("{path} names {of}, which is part of Kubernetes: claim a kind of your own group")]
    BuiltIn {
        /// Which claim.
        path: String,
        /// The type.
        of: ResourceType,
    },
    /// It would emit a kind that it answers for, and from one object could come others without end.
    #[error("{path} names {of}, a kind that the policy answers for: nothing that a policy emits is an object for one")]
    EmitsClaimed {
        /// Which claim.
        path: String,
        /// The type.
        of: ResourceType,
    },
    /// Wishes are about what is used.
    #[error("{path} wishes for {of}, which is neither in emits nor in reads")]
    IdleWish {
        /// Which claim.
        path: String,
        /// The type.
        of: ResourceType,
    },
    /// An overlay emits nothing.
    #[error("{0} emits manifests, but an environment overlay has none")]
    OverlayEmits(String),
    /// A finalizer is not one.
    #[error("{path} `{finalizer}` is not a finalizer: write it as domain/name")]
    Finalizer {
        /// Which claim.
        path: String,
        /// What was given.
        finalizer: String,
    },
    /// A finalizer is somebody else's.
    #[error(
        "{path} `{finalizer}` is not of the claimed kind's group {group}: list it in grants.finalizers of policy.yaml"
    )]
    ForeignFinalizer {
        /// Which claim.
        path: String,
        /// The finalizer.
        finalizer: String,
        /// The group of the claimed kind.
        group: String,
    },
    /// Nothing can be evaluated.
    #[error("{0} has no samples: the gate must see at least one plan")]
    NoSamples(String),
    /// A text has more in it than the host reads.
    #[error("{path} has more than {limit} values of JSON: say less, or in longer texts")]
    TooManyValues {
        /// Which text, or which texts together.
        path: String,
        /// How many there may be.
        limit: usize,
    },
    /// A text that must be a JSON object is not.
    #[error("{0} is not a JSON object")]
    NotAnObject(String),
    /// The settings schema is not usable.
    #[error(transparent)]
    Schema(#[from] SchemaError),
}

/// Checks a description and returns the schema of its settings.
pub fn check(descriptor: &Descriptor, world: World, file: &PolicyFile) -> Result<Schema, DescribeError> {
    let Descriptor { name, version, claims, settings_schema, extra } = descriptor;
    if !is_policy_name(name) {
        return Err(DescribeError::Name(name.clone()));
    }
    if version.len() > VERSION {
        let (version, reason) = (cut(version, VALUE).into_owned(), format!("it has more than {VERSION} characters"));
        return Err(DescribeError::Version { version, reason });
    }
    if let Err(error) = semver::Version::parse(version) {
        return Err(DescribeError::Version { version: version.clone(), reason: error.to_string() });
    }
    same("name", file.name.as_ref(), name)?;
    same("version", file.version.as_ref(), version)?;
    if claims.is_empty() {
        return Err(DescribeError::NoClaims);
    }
    bounded("claims", claims.len(), CLAIMS)?;
    object("extra", extra)?;
    let mut kinds = BTreeSet::new();
    for (i, claim) in claims.iter().enumerate() {
        check_claim(&format!("claims[{i}]"), claim, world, file)?;
        if !kinds.insert(claim.primary.group_kind()) {
            return Err(DescribeError::ClaimedTwice(claim.primary.clone()));
        }
    }
    for (i, claim) in claims.iter().enumerate() {
        if let Some(of) = claim.emits.iter().find(|of| kinds.contains(&of.group_kind())) {
            return Err(DescribeError::EmitsClaimed { path: format!("claims[{i}].emits"), of: of.clone() });
        }
    }
    Ok(Schema::parse(settings_schema)?)
}

/// A type that one of these claims emits although another answers for it, with the claim that emits it. Each policy
/// may be sound by itself and two of them still feed each other for ever: whoever puts policies into service asks
/// this of all claims that would be in service together.
pub fn emitted_primary<'a>(claims: &[&'a Claim]) -> Option<(&'a Claim, &'a ResourceType)> {
    let primaries: BTreeSet<_> = claims.iter().map(|claim| claim.primary.group_kind()).collect();
    claims.iter().find_map(|claim| {
        let of = claim.emits.iter().find(|of| primaries.contains(&of.group_kind()))?;
        Some((*claim, of))
    })
}

/// Checks that claims write these kinds, which are served, as they are written.
pub fn check_capitals(claims: &[Claim], served: &[ResourceType]) -> Result<(), DescribeError> {
    for (i, Claim { primary, emits, reads, wishes, .. }) in claims.iter().enumerate() {
        let primary = std::slice::from_ref(primary);
        let [emits, reads, wishes] = [emits, reads, wishes].map(Vec::as_slice);
        for (list, types) in [("primary", primary), ("emits", emits), ("reads", reads), ("wishes", wishes)] {
            for of in types {
                let is_it =
                    |served: &&ResourceType| served.group() == of.group() && served.kind.eq_ignore_ascii_case(&of.kind);
                if let Some(served) = served.iter().find(is_it).filter(|served| served.kind != of.kind) {
                    let (path, served) = (format!("claims[{i}].{list}"), served.kind.clone());
                    return Err(DescribeError::OtherCapitals { path, of: of.clone(), served });
                }
            }
        }
    }
    Ok(())
}

fn check_claim(path: &str, claim: &Claim, world: World, file: &PolicyFile) -> Result<(), DescribeError> {
    let Claim { primary, emits, reads, wishes, finalizer, retired_finalizers, samples, extra } = claim;
    is_type(&format!("{path}.primary"), primary)?;
    if is_cluster_power(primary) {
        return Err(DescribeError::ClusterPower { path: format!("{path}.primary"), of: primary.clone() });
    }
    if is_built_in(primary) {
        return Err(DescribeError::BuiltIn { path: format!("{path}.primary"), of: primary.clone() });
    }
    for (list, types) in [("emits", emits), ("reads", reads), ("wishes", wishes)] {
        bounded(&format!("{path}.{list}"), types.len(), LISTED)?;
        for of in types {
            is_type(&format!("{path}.{list}"), of)?;
        }
    }
    for of in emits {
        if is_cluster_power(of) {
            return Err(DescribeError::ClusterPower { path: format!("{path}.emits"), of: of.clone() });
        }
    }
    if let Some(of) = wishes.iter().find(|of| !emits.contains(of) && !reads.contains(of)) {
        return Err(DescribeError::IdleWish { path: path.to_owned(), of: of.clone() });
    }
    if world == World::EnvironmentOverlay && !emits.is_empty() {
        return Err(DescribeError::OverlayEmits(path.to_owned()));
    }
    bounded(&format!("{path}.retiredFinalizers"), retired_finalizers.len(), LISTED)?;
    for finalizer in finalizer.iter().chain(retired_finalizers) {
        let (path, finalizer) = (path.to_owned(), finalizer.clone());
        if !is_finalizer(&finalizer) {
            return Err(DescribeError::Finalizer { path, finalizer });
        }
        let group = primary.group();
        if !is_of_group(&finalizer, group) && !file.grants.finalizers.contains(&finalizer) {
            return Err(DescribeError::ForeignFinalizer { path, finalizer, group: group.to_owned() });
        }
    }
    bounded(&format!("{path}.samples"), samples.len(), LISTED)?;
    if samples.is_empty() {
        return Err(DescribeError::NoSamples(path.to_owned()));
    }
    for (i, sample) in samples.iter().enumerate() {
        readable(&format!("{path}.samples[{i}]"), texts(sample))?;
        object(&format!("{path}.samples[{i}].object"), &sample.object)?;
        bounded(&format!("{path}.samples[{i}].beside"), sample.beside.len(), LISTED)?;
        for beside in &sample.beside {
            object(&format!("{path}.samples[{i}].beside"), beside)?;
        }
    }
    object(&format!("{path}.extra"), extra)
}

fn same(field: &'static str, wanted: Option<&String>, found: &str) -> Result<(), DescribeError> {
    match wanted.filter(|wanted| *wanted != found) {
        Some(wanted) => Err(DescribeError::Mismatch { field, wanted: wanted.clone(), found: found.to_owned() }),
        None => Ok(()),
    }
}

fn bounded(what: &str, count: usize, limit: usize) -> Result<(), DescribeError> {
    if count > limit {
        return Err(DescribeError::TooMany { what: what.to_owned(), count, limit });
    }
    Ok(())
}

/// The texts of a sample, which are read together.
fn texts(sample: &Sample) -> impl Iterator<Item = &str> + Clone {
    std::iter::once(&sample.object).chain(&sample.beside).map(String::as_str)
}

fn readable<'a>(path: &str, texts: impl Iterator<Item = &'a str> + Clone) -> Result<(), DescribeError> {
    if json::is_bounded(texts) {
        return Ok(());
    }
    Err(DescribeError::TooManyValues { path: path.to_owned(), limit: json::VALUES })
}

fn object(path: &str, text: &str) -> Result<(), DescribeError> {
    readable(path, std::iter::once(text))?;
    match serde_json::from_str(text) {
        Ok(serde_json::Value::Object(_)) => Ok(()),
        _ => Err(DescribeError::NotAnObject(path.to_owned())),
    }
}

fn is_type(path: &str, of: &ResourceType) -> Result<(), DescribeError> {
    let wrong = |reason| Err(DescribeError::NotAType { path: path.to_owned(), of: of.clone(), reason });
    let (group, version) = of.api_version.rsplit_once('/').unwrap_or(("", &of.api_version));
    if !crate::names::is_kind(&of.kind) {
        return wrong("a kind is one CamelCase word");
    }
    if version.len() > 63
        || !version.starts_with('v')
        || !version.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
    {
        return wrong("an API version is v1, v1beta1, or group/v1");
    }
    if !group.is_empty() && !crate::names::is_subdomain(group) || of.api_version.starts_with('/') {
        return wrong("an API group is a DNS name");
    }
    Ok(())
}

/// Whether a policy can have this name.
pub fn is_policy_name(name: &str) -> bool {
    name.len() <= 40 && name.starts_with(|c: char| c.is_ascii_lowercase()) && crate::names::is_label(name)
}

/// Whether a text is a finalizer with a domain before it.
pub(crate) fn is_finalizer(name: &str) -> bool {
    name.split_once('/').is_some_and(|(domain, name)| {
        crate::names::is_subdomain(domain) && crate::names::is_label_value(name) && !name.is_empty()
    })
}

/// Whether a finalizer belongs to a group or to a domain below it.
pub(crate) fn is_of_group(finalizer: &str, group: &str) -> bool {
    let domain = finalizer.split_once('/').map_or("", |(domain, _)| domain);
    domain.strip_suffix(group).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}
