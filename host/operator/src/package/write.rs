//! Writes a policy into ConfigMaps.
//!
//! The same policy always results in the same bytes. The name of a chunk depends on its content, and a chunk never
//! changes. An update creates new chunks in addition to the old chunks. When the new chunks exist, one write of the
//! index replaces the list of chunks.

use std::{collections::BTreeMap, io::Write};

use flate2::{Compression, write::GzEncoder};
use k8s_openapi::{ByteString, api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kaos_policy::{
    digest::Digest,
    gate::{CodeForm, LoadError, unpacked},
    manifest::PolicyFile,
    names::is_subdomain,
};
use serde_json::Value;

use super::{
    CHUNK, CHUNKS, FILE, GZIPPED, INDEX, INDEX_ANNOTATION, LABEL, PART, PackageError, PolicyCode, Problem, SCRIPT,
    read, readable,
};
use crate::yaml;

/// The maximum number of bytes of a component in one ConfigMap. A ConfigMap can have one mebibyte, so this maximum
/// leaves room for annotations.
pub(super) const ROOM: usize = 900_000;
/// The maximum length of the name of an index. This limit leaves room for the names of chunks, which are longer.
const LONGEST_NAME: usize = 200;

/// The ConfigMaps of a package.
#[derive(Debug, Clone, PartialEq)]
pub struct Packed {
    /// The index.
    pub index: ConfigMap,
    /// The chunks of the component; empty if the component fits into the index.
    pub chunks: Vec<ConfigMap>,
}

impl Packed {
    /// Returns all ConfigMaps in the order in which to write them. The index comes last, so that the chunks exist
    /// before the index.
    pub fn config_maps(&self) -> impl Iterator<Item = &ConfigMap> {
        self.chunks.iter().chain(std::iter::once(&self.index))
    }
}

/// Packs a policy into ConfigMaps: gzips the component, splits it into chunks if necessary, and pins its digest in the
/// policy file. A script stays text without a pin, so that a user can edit it in place.
pub fn pack(name: &str, namespace: &str, file: &PolicyFile, code: Option<&PolicyCode>) -> Result<Packed, PackageError> {
    package(name, namespace, file, code).map_err(|problem| PackageError::new(format!("{namespace}/{name}"), problem))
}

fn package(name: &str, namespace: &str, file: &PolicyFile, code: Option<&PolicyCode>) -> Result<Packed, Problem> {
    if name.len() > LONGEST_NAME || !is_subdomain(name) {
        return Err(Problem::BadName);
    }
    let place = PackageName { name, namespace };
    let Some(PolicyCode { form, bytes: component }) = code else {
        read::settings_alone(file)?;
        return Ok(Packed { index: place.index([(FILE, written(file)?)], None), chunks: Vec::new() });
    };
    let bounds = readable();
    if *form == CodeForm::Script {
        let (found, limit) = (Digest::of(component), bounds.script_bytes);
        if let Some(wanted) = file.sha256.filter(|pin| *pin != found) {
            return Err(LoadError::WrongDigest { found, wanted }.into());
        }
        if component.len() > limit {
            let remedy = "remove code that the policy does not use";
            return Err(Problem::TooLarge { key: SCRIPT, bytes: component.len(), limit, remedy });
        }
        let script = String::from_utf8(component.to_vec()).map_err(|_| Problem::NotText { key: SCRIPT })?;
        let index = place.index([(FILE, written(file)?), (SCRIPT, script)], None);
        return Ok(Packed { index, chunks: Vec::new() });
    }
    let whole = unpacked(component, &bounds)?;
    if whole.len() > bounds.bytes {
        return Err(LoadError::TooLarge { bytes: whole.len(), limit: bounds.bytes }.into());
    }
    let digest = Digest::of(&whole);
    if let Some(wanted) = file.sha256.filter(|pin| *pin != digest && *pin != Digest::of(component)) {
        return Err(LoadError::WrongDigest { found: digest, wanted }.into());
    }
    let text = written(&PolicyFile { sha256: Some(digest), ..file.clone() })?;
    let gzipped = gzip(&whole).map_err(|error| Problem::NotWritten(error.to_string()))?;
    if text.len() + gzipped.len() <= ROOM {
        let index = place.index([(FILE, text)], Some((GZIPPED, gzipped)));
        return Ok(Packed { index, chunks: Vec::new() });
    }
    let parts = gzipped.chunks(ROOM).map(<[u8]>::to_vec);
    let chunks: Vec<ConfigMap> = (1..).zip(parts).map(|(number, part)| place.chunk(&digest, number, part)).collect();
    let names: String =
        chunks.iter().filter_map(|chunk| chunk.metadata.name.as_deref()).flat_map(|name| [name, "\n"]).collect();
    Ok(Packed { index: place.index([(FILE, text), (CHUNKS, names)], None), chunks })
}

/// Serializes the policy file without empty fields. Keeps `settings` unchanged.
fn written(file: &PolicyFile) -> Result<String, Problem> {
    let failed = |error: &dyn std::fmt::Display| Problem::NotWritten(error.to_string());
    let mut value = serde_json::to_value(file).map_err(|error| failed(&error))?;
    if let Some(fields) = value.as_object_mut() {
        for (_, value) in fields.iter_mut().filter(|(name, _)| *name != "settings") {
            shorten(value);
        }
        fields.retain(|name, value| if name == "settings" { !value.is_null() } else { !is_void(value) });
    }
    let text = yaml::text(&value).map_err(|error| failed(&error))?;
    if text.len() > ROOM {
        let remedy = "keep settings short, and large files in ConfigMaps of their own";
        return Err(Problem::TooLarge { key: FILE, bytes: text.len(), limit: ROOM, remedy });
    }
    // Check that the text parses to the same policy file.
    match PolicyFile::parse(&text) {
        Ok(read) if read == *file => Ok(text),
        Ok(_) => Err(failed(&"its text would not parse to the same settings")),
        Err(error) => Err(error.into()),
    }
}

fn shorten(value: &mut Value) {
    if let Some(fields) = value.as_object_mut() {
        fields.values_mut().for_each(shorten);
        fields.retain(|_, value| !is_void(value));
    }
}

fn is_void(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// Compresses bytes. The result depends only on the bytes, because the header has no time and no file name.
fn gzip(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    encoder.finish()
}

struct PackageName<'a> {
    name: &'a str,
    namespace: &'a str,
}

impl PackageName<'_> {
    fn index<const N: usize>(&self, texts: [(&str, String); N], component: Option<(&str, Vec<u8>)>) -> ConfigMap {
        ConfigMap {
            metadata: self.metadata(self.name.to_owned(), INDEX),
            data: Some(texts.into_iter().map(|(key, text)| (key.to_owned(), text)).collect()),
            binary_data: component.map(|(key, bytes)| [(key.to_owned(), ByteString(bytes))].into()),
            immutable: None,
        }
    }

    fn chunk(&self, digest: &Digest, number: usize, part: Vec<u8>) -> ConfigMap {
        let mut metadata = self.metadata(format!("{}-{}-{number}", self.name, digest.short()), CHUNK);
        metadata.annotations = Some([(INDEX_ANNOTATION.to_owned(), self.name.to_owned())].into());
        ConfigMap {
            metadata,
            binary_data: Some([(PART.to_owned(), ByteString(part))].into()),
            immutable: Some(true),
            data: None,
        }
    }

    fn metadata(&self, name: String, label: &str) -> ObjectMeta {
        ObjectMeta {
            name: Some(name),
            namespace: Some(self.namespace.to_owned()),
            labels: Some(BTreeMap::from([(LABEL.to_owned(), label.to_owned())])),
            ..ObjectMeta::default()
        }
    }
}
