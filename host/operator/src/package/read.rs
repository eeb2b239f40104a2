//! Reads the ConfigMaps of a package.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kaos_policy::{
    gate::CodeForm,
    manifest::{Grants, PolicyFile},
    names::is_subdomain,
    near::nearest,
};

use super::{
    CHUNK, CHUNKS, COMPONENT, FILE, GZIPPED, INDEX_ANNOTATION, LABEL, PART, PackageError, PolicyCode, Problem, SCRIPT,
    shown,
};

/// The maximum size of `policy.yaml` in bytes. This file and the component must fit into one ConfigMap, which has at
/// most one mebibyte.
const WORDS: usize = 256 << 10;
/// The maximum number of chunks. Without a limit, an index could make the operator send any number of requests, because
/// the operator reads each chunk separately. The largest component needs only a tenth of this number.
pub(super) const MAX_CHUNKS: usize = 100;

const ANY_COMPONENT: &str = "write policy.wasm, policy.wasm.gz or policy.js, or remove the key to ship only settings";

/// Returns whether the metadata belongs to the index of a package.
pub fn is_index(metadata: &ObjectMeta) -> bool {
    label(metadata).is_some_and(|value| value != CHUNK)
}

/// Returns whether the metadata belongs to a chunk of a component.
pub fn is_chunk(metadata: &ObjectMeta) -> bool {
    label(metadata) == Some(CHUNK)
}

/// Returns the names of the chunks that an index lists, in order. Returns an empty list if the component is not in
/// chunks.
pub fn chunk_names(index: &ConfigMap) -> Result<Vec<String>, PackageError> {
    listed(index).map_err(|problem| PackageError::new(shown(index), problem))
}

/// Returns the `policy.yaml` of an index, and ignores all other keys.
pub fn policy_file(index: &ConfigMap) -> Result<PolicyFile, PackageError> {
    file(index).map_err(|problem| PackageError::new(shown(index), problem))
}

/// Checks that each key is allowed in a package, is in the right field, and that at most one key has or lists code.
pub(super) fn keys(index: &ConfigMap) -> Result<(), Problem> {
    let (texts, bytes): (BTreeSet<&str>, BTreeSet<&str>) = (texts(index).collect(), binaries(index).collect());
    if texts.is_empty() && bytes.is_empty() {
        return Err(Problem::Empty);
    }
    if bytes.contains(SCRIPT) && !texts.contains(SCRIPT) {
        return Err(Problem::NotText { key: SCRIPT });
    }
    for (key, here, there, field) in [
        (FILE, &texts, &bytes, "data"),
        (CHUNKS, &texts, &bytes, "data"),
        (COMPONENT, &bytes, &texts, "binaryData"),
        (GZIPPED, &bytes, &texts, "binaryData"),
    ] {
        if there.contains(key) && !here.contains(key) {
            return Err(Problem::WrongField { key, field });
        }
    }
    let known = [FILE, COMPONENT, GZIPPED, CHUNKS, SCRIPT];
    // Report a misspelled key: otherwise the operator would read the package as if the key were missing.
    if let Some(key) = texts.union(&bytes).find(|key| key.starts_with("policy") && !known.contains(key)) {
        return Err(Problem::UnknownKey { key: (*key).to_owned(), hint: nearest(key, known) });
    }
    let components: Vec<_> =
        known[1..].iter().copied().filter(|key| texts.contains(key) || bytes.contains(key)).collect();
    if components.len() > 1 {
        return Err(Problem::SeveralComponents(components));
    }
    Ok(())
}

/// Parses `policy.yaml`. A script needs no `policy.yaml`: without this file, the policy applies in the whole cluster
/// and has no grants.
pub(super) fn file(index: &ConfigMap) -> Result<PolicyFile, Problem> {
    let remedy = "write the name and the scope of the policy, or at least `{}`";
    if text(index, SCRIPT).is_some() && text(index, FILE).is_none() {
        return Ok(PolicyFile::default());
    }
    let text = text(index, FILE).ok_or(Problem::MissingKey { key: FILE, remedy })?;
    if text.trim().is_empty() {
        return Err(Problem::EmptyKey { key: FILE, remedy });
    }
    if text.len() > WORDS {
        let remedy = "keep settings short, and put large files into ConfigMaps of their own";
        return Err(Problem::TooLarge { key: FILE, bytes: text.len(), limit: WORDS, remedy });
    }
    Ok(PolicyFile::parse(text)?)
}

/// Returns the component or the script that is in the index itself.
pub(super) fn whole(index: &ConfigMap) -> Result<Option<PolicyCode>, Problem> {
    if let Some(script) = text(index, SCRIPT) {
        if script.trim().is_empty() {
            return Err(Problem::EmptyKey { key: SCRIPT, remedy: "write the policy's functions, or remove the key" });
        }
        return Ok(Some(PolicyCode { form: CodeForm::Script, bytes: script.to_owned().into_bytes().into() }));
    }
    for key in [COMPONENT, GZIPPED] {
        match binary(index, key) {
            Some([]) => return Err(Problem::EmptyKey { key, remedy: ANY_COMPONENT }),
            Some(bytes) => return Ok(Some(PolicyCode::component(bytes.to_vec()))),
            None => {}
        }
    }
    Ok(None)
}

fn listed(index: &ConfigMap) -> Result<Vec<String>, Problem> {
    let Some(text) = text(index, CHUNKS) else { return Ok(Vec::new()) };
    let (mut names, mut seen) = (Vec::new(), BTreeSet::new());
    for (line, name) in
        (1..).zip(text.lines()).map(|(line, name)| (line, name.trim())).filter(|(_, name)| !name.is_empty())
    {
        let wrong = |problem| Problem::BadChunkName { line, name: name.chars().take(80).collect(), problem };
        if !is_subdomain(name) {
            return Err(wrong("is not the name of a ConfigMap"));
        }
        if !seen.insert(name) {
            return Err(wrong("occurs twice"));
        }
        if names.len() == MAX_CHUNKS {
            return Err(Problem::TooManyChunks { limit: MAX_CHUNKS });
        }
        names.push(name.to_owned());
    }
    if names.is_empty() {
        return Err(Problem::EmptyKey { key: CHUNKS, remedy: "list the ConfigMaps of the component's chunks" });
    }
    Ok(names)
}

/// Returns the bytes of a chunk. Fails if the chunk belongs to another index.
pub(super) fn part<'a>(index: &ConfigMap, chunk: &'a ConfigMap) -> Result<&'a [u8], Problem> {
    let (of, annotated) = (index.metadata.name.as_deref(), annotated(chunk));
    if annotated.is_none() || annotated != of {
        let index = of.unwrap_or_default().to_owned();
        return Err(Problem::ForeignChunk { index, annotated: annotated.map(str::to_owned) });
    }
    let remedy = "write a piece of the component under binaryData, as `policy pack` does";
    match binary(chunk, PART) {
        None if text(chunk, PART).is_some() => Err(Problem::WrongField { key: PART, field: "binaryData" }),
        None => Err(Problem::MissingKey { key: PART, remedy }),
        Some([]) => Err(Problem::EmptyKey { key: PART, remedy }),
        Some(bytes) => Ok(bytes),
    }
}

/// Checks the policy file of a package without code. The file must name the policy whose settings it changes, and must
/// not contain fields that require a component.
pub(super) fn settings_alone(file: &PolicyFile) -> Result<(), Problem> {
    let PolicyFile { name, version, sha256, scope: _, settings, limits, grants, on_refusal: _, rollout: _ } = file;
    for (present, field) in [
        (sha256.is_some(), "sha256"),
        (version.is_some(), "version"),
        (limits.is_some(), "limits"),
        (*grants != Grants::default(), "grants"),
    ] {
        if present {
            return Err(Problem::WithoutComponent(field));
        }
    }
    if settings.is_null() {
        return Err(Problem::Nothing);
    }
    if name.as_deref().is_none_or(|name| name.trim().is_empty()) { Err(Problem::NoName) } else { Ok(()) }
}

fn label(metadata: &ObjectMeta) -> Option<&str> {
    Some(metadata.labels.as_ref()?.get(LABEL)?.as_str())
}

fn annotated(chunk: &ConfigMap) -> Option<&str> {
    let name = chunk.metadata.annotations.as_ref()?.get(INDEX_ANNOTATION)?.as_str();
    Some(name).filter(|name| !name.is_empty())
}

fn text<'a>(config_map: &'a ConfigMap, key: &str) -> Option<&'a str> {
    Some(config_map.data.as_ref()?.get(key)?.as_str())
}

fn binary<'a>(config_map: &'a ConfigMap, key: &str) -> Option<&'a [u8]> {
    Some(config_map.binary_data.as_ref()?.get(key)?.0.as_slice())
}

fn texts(config_map: &ConfigMap) -> impl Iterator<Item = &str> {
    config_map.data.iter().flat_map(BTreeMap::keys).map(String::as_str)
}

fn binaries(config_map: &ConfigMap) -> impl Iterator<Item = &str> {
    config_map.binary_data.iter().flat_map(BTreeMap::keys).map(String::as_str)
}
