//! Checks a policy's description of itself.

mod power;

use std::collections::BTreeSet;

use crate::{
    code::World,
    contract::{Claim, Descriptor, ResourceType, Sample},
    cut::{VALUE, cut},
    extra, json,
    manifest::PolicyFile,
    settings::{Schema, SchemaError},
};

pub use power::{is_built_in, is_cluster_power, is_protection, opens_a_namespace};

/// The maximum number of claims in the description of one policy.
const CLAIMS: usize = 32;
/// The maximum number of types in one list of a claim, of samples of a claim, and of other objects in a sample.
const LISTED: usize = 64;
/// The maximum length of a version in bytes. The status of every object contains the version.
const VERSION: usize = 128;

/// A reason why a description is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DescribeError {
    /// The name is not a policy name.
    #[error("`{0}` is not a policy name: use at most 40 lower-case letters, digits and hyphens, a letter first")]
    Name(String),
    /// The version is not a semantic version.
    #[error("`{version}` is not a semantic version: {reason}")]
    Version {
        /// The version in the description.
        version: String,
        /// The reason why the text is invalid.
        reason: String,
    },
    /// `policy.yaml` is for another policy.
    #[error("`{field}` is {wanted} in policy.yaml, but {found} in the component: remove `{field}` from policy.yaml")]
    Mismatch {
        /// `name` or `version`.
        field: &'static str,
        /// The value in `policy.yaml`.
        wanted: String,
        /// The value in the component.
        found: String,
    },
    /// The policy claims no kind.
    #[error("the policy claims no kind: claim at least one kind")]
    NoClaims,
    /// The policy claims one kind twice, so the host cannot know which of the two claims applies.
    #[error("the policy claims {0} twice: claim each kind once")]
    ClaimedTwice(ResourceType),
    /// A list is too long.
    #[error("{what} has {count} entries, but the limit is {limit}: remove entries")]
    TooMany {
        /// The name of the list.
        what: String,
        /// The number of entries.
        count: usize,
        /// The maximum number of entries.
        limit: usize,
    },
    /// A type is invalid.
    #[error("{path} `{of}` is not a type: {reason}")]
    NotAType {
        /// The path of the list that names the type.
        path: String,
        /// The type in the description.
        of: ResourceType,
        /// The reason why the type is invalid.
        reason: &'static str,
    },
    /// A claim names a kind that differs from a served kind only in upper and lower case. No object of the cluster has
    /// the kind in this spelling.
    #[error("{path} names {of}, but the cluster spells this kind {served}: use the cluster's spelling")]
    OtherCapitals {
        /// The path of the list that names the type.
        path: String,
        /// The type in the description.
        of: ResourceType,
        /// The kind as the cluster serves it.
        served: String,
    },
    /// A claim names a type whose objects have power over the cluster.
    #[error(
        "{path} names {of}, but no policy may claim or emit a type that is cluster-scoped, grants rights or redirects \
         traffic"
    )]
    ClusterPower {
        /// The path of the list that names the type.
        path: String,
        /// The type in the list.
        of: ResourceType,
    },
    /// The policy claims a kind of Kubernetes itself, such as Secrets. Policies must not answer for objects of
    /// Kubernetes' own kinds.
    #[error("{path} names {of}, which is part of Kubernetes: claim a kind of your own group")]
    BuiltIn {
        /// The path of the list that names the type.
        path: String,
        /// The type in the list.
        of: ResourceType,
    },
    /// The policy emits a kind that it claims, so one object could create more objects without end.
    #[error(
        "{path} names {of}, but a claim of this policy is for the same kind: a policy must not emit objects of a kind \
         that it claims"
    )]
    EmitsClaimed {
        /// The path of the list that names the type.
        path: String,
        /// The type in the list.
        of: ResourceType,
    },
    /// An `extra` of the description has a member that this host does not know.
    #[error("{path}: {}", extra::not_known(.key))]
    UnknownMember {
        /// The path of the `extra`.
        path: String,
        /// The name of the member.
        key: String,
    },
    /// The claim wishes for a type that it neither emits nor reads.
    #[error("{path}.wishes names {of}, but neither `emits` nor `reads` does: add the type to one of these lists")]
    IdleWish {
        /// The path of the claim.
        path: String,
        /// The type in the list.
        of: ResourceType,
    },
    /// An overlay declares a finalizer, which only the policy below may have.
    #[error("{path} has the finalizer `{finalizer}`, but an overlay must not have a finalizer: remove it")]
    OverlayFinalizer {
        /// The path of the claim.
        path: String,
        /// The finalizer.
        finalizer: String,
    },
    /// A text is not a finalizer.
    #[error("{path} has the finalizer `{finalizer}`, which is not valid: write a finalizer as domain/name")]
    Finalizer {
        /// The path of the claim.
        path: String,
        /// The text that is not a finalizer.
        finalizer: String,
    },
    /// A finalizer is outside the group of the claimed kind, and no grant lists it.
    #[error(
        "{path} has the finalizer `{finalizer}`, which is not in the group {group} of the claimed kind: list the \
         finalizer in grants.finalizers of policy.yaml"
    )]
    ForeignFinalizer {
        /// The path of the claim.
        path: String,
        /// The finalizer.
        finalizer: String,
        /// The group of the claimed kind.
        group: String,
    },
    /// A claim has no samples, so the gate cannot evaluate the policy.
    #[error("{0} has no samples: add a sample for which the policy returns a plan")]
    NoSamples(String),
    /// A text has more JSON values than the host accepts.
    #[error("{path} has more than {limit} JSON values: use fewer values")]
    TooManyValues {
        /// The path of the text. If one limit applies to several texts together, the path of these texts.
        path: String,
        /// The maximum number of values.
        limit: usize,
    },
    /// A text must be a JSON object but is not.
    #[error("{0} is not a JSON object")]
    NotAnObject(String),
    /// The settings schema is invalid.
    #[error(transparent)]
    Schema(#[from] SchemaError),
}

/// Checks a description and returns its settings schema.
pub fn check(descriptor: &Descriptor, world: World, file: &PolicyFile) -> Result<Schema, DescribeError> {
    let Descriptor { name, version, claims, settings_schema, extra } = descriptor;
    if !is_policy_name(name) {
        return Err(DescribeError::Name(name.clone()));
    }
    if version.len() > VERSION {
        let (version, reason) = (
            cut(version, VALUE).into_owned(),
            format!(
                "the version has more than {VERSION} \
            characters"
            ),
        );
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
    nothing_extra("extra", extra)?;
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

/// Finds a type that one of these claims emits, and that one of these claims (perhaps the same) answers for. Returns
/// the emitting claim and the type, or `None` if there is no such type. Two policies that are valid alone could
/// together create objects for each other without end. So the catalogue calls this function with all claims that would
/// serve together.
pub fn emitted_primary<'a>(claims: &[&'a Claim]) -> Option<(&'a Claim, &'a ResourceType)> {
    let primaries: BTreeSet<_> = claims.iter().map(|claim| claim.primary.group_kind()).collect();
    claims.iter().find_map(|claim| {
        let of = claim.emits.iter().find(|of| primaries.contains(&of.group_kind()))?;
        Some((*claim, of))
    })
}

/// Checks that claims spell the kinds with the same upper and lower case as the cluster.
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
    let Claim { primary, emits, reads, wishes, finalizer, samples, extra } = claim;
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
        if is_cluster_power(of) || opens_a_namespace(of) {
            return Err(DescribeError::ClusterPower { path: format!("{path}.emits"), of: of.clone() });
        }
    }
    if let Some(of) = wishes.iter().find(|of| !emits.contains(of) && !reads.contains(of)) {
        return Err(DescribeError::IdleWish { path: path.to_owned(), of: of.clone() });
    }
    if let Some(finalizer) = finalizer {
        let (path, finalizer) = (path.to_owned(), finalizer.clone());
        if world == World::Overlay {
            return Err(DescribeError::OverlayFinalizer { path, finalizer });
        }
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
    nothing_extra(&format!("{path}.extra"), extra)
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

/// Returns the JSON texts of a sample. One limit applies to the number of values in all texts of a sample together.
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

/// Checks that an `extra` is an object without members. This version of the contract defines no members.
fn nothing_extra(path: &str, text: &str) -> Result<(), DescribeError> {
    object(path, text)?;
    match extra::unknown(text) {
        Some(key) => Err(DescribeError::UnknownMember { path: path.to_owned(), key }),
        None => Ok(()),
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

/// Returns whether a text is a valid name of a policy.
pub fn is_policy_name(name: &str) -> bool {
    name.len() <= 40 && name.starts_with(|c: char| c.is_ascii_lowercase()) && crate::names::is_label(name)
}

/// Returns whether a text is a valid finalizer with a domain.
pub(crate) fn is_finalizer(name: &str) -> bool {
    name.split_once('/').is_some_and(|(domain, name)| {
        crate::names::is_subdomain(domain) && crate::names::is_label_value(name) && !name.is_empty()
    })
}

/// Returns whether a finalizer's domain is an API group or a subdomain of the group.
pub(crate) fn is_of_group(finalizer: &str, group: &str) -> bool {
    let domain = finalizer.split_once('/').map_or("", |(domain, _)| domain);
    domain.strip_suffix(group).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}
